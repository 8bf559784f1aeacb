//! The rows of a table as SQLite is given them: pages of boards and archives, and rows that were fetched, packed. Runs
//! no SQL.

use super::limits::{BLOCK_BYTES, BLOCK_ROWS_MAX, CHUNK_PAGES, PACKED_BYTES_MAX};
use crate::{fault::Fault, query::OwnedColumn};
use shared::{
    clock::UtcClock,
    engine::PageColumn,
    limits::COLUMNS_MAX,
    page::Page,
    rowcode::{RowEncoder, RowError},
    value::{ColumnType, Value},
};
use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
};

/// The bytes of one page; whoever reads it shares them.
pub type PageBytes = Arc<[u8]>;

/// A table: its united columns, and where its rows are.
pub struct TableRows {
    /// The columns, without the hidden ones; the first is the row's time.
    pub columns: Vec<OwnedColumn>,
    /// In the order in which rows are to come: by board, then by epoch.
    pub sources: Vec<Source>,
}

impl std::fmt::Debug for TableRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableRows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// Rows of one epoch of one board.
pub struct Source {
    /// The board's id.
    pub board: String,
    /// The epoch.
    pub epoch: u64,
    /// The rows.
    pub rows: SourceRows,
}

/// How the rows of a source are kept.
pub enum SourceRows {
    /// Pages as a board made them.
    Pages {
        /// Reads them from wherever they are.
        reader: Box<dyn PageReader>,
        /// Turns their times into UTC.
        clock: UtcClock,
        /// What their columns are, among the united ones.
        layout: Vec<PageColumn>,
        /// Which of their rows belong to the table.
        rows: Range<u64>,
    },
    /// Rows that were fetched.
    Packed(PackedRows),
}

/// Reads the pages of one epoch of one board's table, as often as a query needs them.
pub trait PageReader: Send + Sync {
    /// The next few pages that hold wanted rows, in the order of their rows; none at the end. Pages without wanted rows
    /// may be among them.
    fn pages(&self, wanted: &Wanted) -> Result<Vec<PageBytes>, Fault>;

    /// How many rows there are, nearly.
    fn row_count(&self) -> u64;
}

/// The rows that a query needs of a source, as far as it is known before they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Their ids.
    pub row_ids: Range<u64>,
    /// Their time, in UTC.
    pub times_us: RangeInclusive<i64>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { row_ids: 0..u64::MAX, times_us: i64::MIN..=i64::MAX }
    }
}

impl Source {
    /// How many rows there are, nearly.
    pub(super) fn row_count(&self) -> u64 {
        match &self.rows {
            SourceRows::Pages { reader, .. } => reader.row_count(),
            SourceRows::Packed(packed) => packed.row_count,
        }
    }
}

/// Pages in memory, in the order of their rows.
impl PageReader for Vec<PageBytes> {
    fn pages(&self, wanted: &Wanted) -> Result<Vec<PageBytes>, Fault> {
        let ends_before =
            |page: &PageBytes| Page::read(page).is_ok_and(|page| page.next_row_id() <= wanted.row_ids.start);
        let first = self.partition_point(ends_before);
        Ok(self.iter().skip(first).take(CHUNK_PAGES).cloned().collect())
    }

    fn row_count(&self) -> u64 {
        self.iter().map(|page| Page::read(page).map_or(0, |page| page.row_count().into())).sum()
    }
}

/// Rows of one epoch of one board that were fetched: some of its columns, any of its rows.
///
/// ```text
///   block   rows in the row code: the columns in use, then the row's id      about three bytes a row
/// ```
#[derive(Debug, Default)]
pub struct PackedRows {
    /// Which of the united columns the cells are.
    pub(super) places: Vec<u8>,
    /// What the cells of a block hold: those columns, then the row's id.
    pub(super) kinds: Vec<ColumnType>,
    pub(super) blocks: Vec<Block>,
    row_count: u64,
    bytes: usize,
}

/// A run of packed rows.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) bytes: Box<[u8]>,
    pub(super) row_count: u16,
    pub(super) row_ids: Range<u64>,
    pub(super) times_us: RangeInclusive<i64>,
}

impl PackedRows {
    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first block that has rows from `row_id` on.
    pub(super) fn block_from(&self, row_id: u64) -> usize {
        self.blocks.partition_point(|block| block.row_ids.end <= row_id)
    }
}

/// Packs the rows of one epoch of one board, which come by their ids.
pub struct PagePacker {
    packed: PackedRows,
    encoder: RowEncoder,
    buffer: Box<[u8]>,
    bits: usize,
    row_count: u16,
    row_ids: Range<u64>,
    times_us: Option<(i64, i64)>,
    time_place: Option<usize>,
    bytes_max: usize,
}

impl PagePacker {
    /// For rows with these of the united columns, each as the board has it. At most `bytes_max` bytes: a statement
    /// shares [`PACKED_BYTES_MAX`](super::PACKED_BYTES_MAX) among its sources.
    pub fn new(columns: &[(u8, ColumnType)], bytes_max: usize) -> Result<Self, Fault> {
        if columns.len() >= COLUMNS_MAX {
            let message = format!("COLUMNS_MAX: at most {} columns of a table can be used", COLUMNS_MAX - 1);
            return Err(Fault::new("capacity", message, "select fewer columns"));
        }
        let places: Vec<u8> = columns.iter().map(|(place, _)| *place).collect();
        let kinds: Vec<ColumnType> = columns.iter().map(|(_, kind)| *kind).chain([ColumnType::Int]).collect();
        Ok(Self {
            encoder: RowEncoder::new(kinds.iter().copied()),
            buffer: vec![0; BLOCK_BYTES].into(),
            bits: 0,
            row_count: 0,
            row_ids: 0..0,
            times_us: None,
            time_place: places.iter().position(|place| *place == 0),
            packed: PackedRows { places, kinds, ..PackedRows::default() },
            bytes_max,
        })
    }

    /// Takes a row: its id, which is above those before, and its cells, timestamps in UTC.
    pub fn push(&mut self, row_id: u64, cells: &[Value<'_>]) -> Result<(), Fault> {
        if row_id < self.row_ids.end || row_id == u64::MAX {
            return Err(Fault::protocol("rows of a board do not come by their ids"));
        }
        let mut row = [Value::Null; COLUMNS_MAX];
        let (Some(place), Some(id)) = (row.get_mut(..cells.len()), i64::try_from(row_id).ok()) else {
            return Err(Fault::protocol("a row of a board is too wide, or its id too large"));
        };
        place.copy_from_slice(cells);
        if let Some(last) = row.get_mut(cells.len()) {
            *last = Value::Int(id);
        }
        let row = row.get(..=cells.len()).unwrap_or_default();
        if self.row_count == BLOCK_ROWS_MAX {
            self.end_block()?;
        }
        let written = match self.encoder.append(row, &mut self.buffer, &mut self.bits) {
            Err(RowError::Full) => {
                self.end_block()?;
                self.encoder.append(row, &mut self.buffer, &mut self.bits)
            }
            written => written,
        };
        written.map_err(|_| Fault::protocol("a row of a board is not of its columns"))?;
        if self.row_count == 0 {
            self.row_ids.start = row_id;
        }
        (self.row_ids.end, self.row_count) = (row_id + 1, self.row_count + 1);
        match self.time_place.and_then(|place| cells.get(place)) {
            Some(Value::Timestamp(us)) => {
                let (first, last) = self.times_us.unwrap_or((*us, *us));
                self.times_us = Some((first.min(*us), last.max(*us)));
            }
            _ => self.times_us = Some((i64::MIN, i64::MAX)),
        }
        Ok(())
    }

    /// All rows were taken.
    pub fn finish(mut self) -> Result<PackedRows, Fault> {
        self.end_block()?;
        Ok(self.packed)
    }

    fn end_block(&mut self) -> Result<(), Fault> {
        let Some((first_us, last_us)) = self.times_us.take() else { return Ok(()) };
        let bytes: Box<[u8]> = self.buffer.get(..self.bits.div_ceil(8)).unwrap_or_default().into();
        self.packed.bytes += bytes.len() + size_of::<Block>();
        if self.packed.bytes > self.bytes_max {
            let message = format!(
                "PACKED_BYTES_MAX: the rows that this needs from the boards take more than {PACKED_BYTES_MAX} bytes"
            );
            let action = "ask for fewer: a narrower WHERE on each table, fewer columns, fewer boards";
            return Err(Fault::new("capacity", message, action));
        }
        self.packed.row_count += u64::from(self.row_count);
        self.packed.blocks.push(Block {
            bytes,
            row_count: self.row_count,
            row_ids: self.row_ids.clone(),
            times_us: first_us..=last_us,
        });
        (self.bits, self.row_count) = (0, 0);
        self.encoder.reset();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::rowcode::RowDecoder;

    const COLUMNS: [(u8, ColumnType); 2] = [(0, ColumnType::Timestamp), (3, ColumnType::Float32)];

    #[test]
    fn packed_rows_take_few_bytes_and_return_as_they_were() {
        let mut packer = PagePacker::new(&COLUMNS, 1 << 20).unwrap();
        let row = |id: u64| {
            [Value::Timestamp(1_700_000_000_000_000 + 1_000_000 * id.cast_signed()), Value::Float32(20.5)]
        };
        let ids: Vec<u64> = (7..20_000).filter(|id| id % 5 != 0).collect();
        ids.iter().for_each(|id| packer.push(*id, &row(*id)).unwrap());
        let packed = packer.finish().unwrap();
        assert!(packed.bytes() < 4 * ids.len(), "{} bytes for {} rows", packed.bytes(), ids.len());
        let mut read = Vec::new();
        for block in &packed.blocks {
            let mut rows = RowDecoder::new(packed.kinds.iter().copied(), &block.bytes, block.row_count);
            let mut cells = [Value::Null; 3];
            while rows.next_row(&mut cells).unwrap() {
                let Value::Int(id) = cells[2] else { panic!("{cells:?}") };
                assert_eq!(cells[..2], row(id.cast_unsigned()));
                read.push(id.cast_unsigned());
            }
            assert_eq!(block.row_ids.end, read.last().unwrap() + 1);
        }
        assert_eq!(read, ids);
        assert_eq!(packed.block_from(0), 0);
        assert_eq!(packed.block_from(19_999), packed.blocks.len() - 1);
        assert_eq!(packed.block_from(20_000), packed.blocks.len());
    }

    #[test]
    fn packing_has_a_bound_and_rows_an_order() {
        let mut packer = PagePacker::new(&COLUMNS, 4096).unwrap();
        let row = |us: i64| [Value::Timestamp(us.wrapping_mul(0x5851_F42D_4C95_7F2D)), Value::Float32(0.1)];
        let fault = (0..).find_map(|id| packer.push(id as u64, &row(id)).err()).unwrap();
        assert_eq!(fault.code, "capacity");
        let mut packer = PagePacker::new(&COLUMNS, 4096).unwrap();
        packer.push(5, &row(1)).unwrap();
        assert_eq!(packer.push(5, &row(2)).unwrap_err().code, "protocol");
        assert_eq!(packer.push(9, &[Value::Null]).unwrap_err().code, "protocol");
    }
}
