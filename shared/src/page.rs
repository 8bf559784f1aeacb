//! Pages: rows of one table packed together in the board's memory, on the wire and in the archive. Says nothing of
//! where pages are kept.
//!
//! ```text
//!    0             4           6              8              16             24             32             1024
//!   ┌─────────────┬───────────┬──────────────┬──────────────┬──────────────┬──────────────┬──────────────┐
//!   │ schema hash │ row count │ payload bits │ first row_id │ time_min     │ time_max     │ rows         │
//!   │ u32         │ u16       │ u16          │ u64          │ u64, µs      │ u64, µs      │ see rowcode  │
//!   └─────────────┴───────────┴──────────────┴──────────────┴──────────────┴──────────────┴──────────────┘
//!   all little-endian · what stands behind the payload means nothing and need not travel
//!   row ids are first, first + 1, … · times are since boot and never run back: min the first row's, max the last's
//! ```
//!
//! The first column of every table is its row's time. A page is readable at any moment, also while rows are added.

use crate::{
    limits::{PAGE_BYTES, PAGE_HEADER_BYTES, PAGE_ROWS_MAX, TABLE_COLUMNS_MAX},
    rowcode::{RowError, TableDecoder, TableEncoder},
    value::{ColumnType, Value},
};

/// Room for one page.
pub type PageBuffer = [u8; PAGE_BYTES];

/// Bits of rows that a page has room for.
pub const PAYLOAD_BITS_MAX: usize = (PAGE_BYTES - PAGE_HEADER_BYTES) * 8;

/// Fills one page after the other with rows of one table. The pages stay with the caller, who hands in the same one
/// until the next is begun.
#[derive(Clone, Debug)]
pub struct PageWriter {
    encoder: TableEncoder,
    head: Head,
}

impl PageWriter {
    /// For rows of these columns, whose first is the time; [`begin`](Self::begin) comes first.
    pub fn new(kinds: impl IntoIterator<Item = ColumnType>) -> Self {
        Self { encoder: TableEncoder::new(kinds), head: Head::default() }
    }

    /// Begins a page without rows.
    pub fn begin(&mut self, page: &mut PageBuffer, schema_hash: u32, first_row_id: u64) {
        self.encoder.reset();
        self.head = Head { schema_hash, first_row_id, ..Head::default() };
        self.head.write(page);
    }

    /// Appends a row, whose first cell is its time. [`RowError::Full`]: nothing is wrong with the row, but it must go
    /// to the next page. On an error page and writer are as before.
    pub fn append(&mut self, page: &mut PageBuffer, cells: &[Value]) -> Result<(), RowError> {
        let Some(Value::Timestamp(time_us)) = cells.first() else { return Err(RowError::Type) };
        let time_us = u64::try_from(*time_us).map_err(|_| RowError::Order)?;
        if time_us < self.head.time_max_us {
            return Err(RowError::Order);
        }
        if self.head.row_count >= PAGE_ROWS_MAX {
            return Err(self.encoder.check(cells).err().unwrap_or(RowError::Full));
        }
        let mut bits = usize::from(self.head.payload_bits);
        self.encoder.append(cells, &mut page[PAGE_HEADER_BYTES..], &mut bits)?;
        self.head.payload_bits = bits as u16; // no more than PAYLOAD_BITS_MAX
        self.head.time_max_us = time_us;
        self.head.row_count += 1;
        if self.head.row_count == 1 {
            self.head.time_min_us = time_us;
            self.head.write(page);
        } else {
            self.head.write_end(page);
        }
        Ok(())
    }

    /// Rows of the page so far.
    pub fn row_count(&self) -> u16 {
        self.head.row_count
    }
}

/// Why bytes are not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
    /// They are fewer than a header's or than the header says, or more than a page's.
    Length,
    /// The header contradicts itself.
    Header,
    /// The rows cannot be read, or are not what the header says.
    Rows,
}

/// A page that is read. Its header is sound; its rows are checked when they are read.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    head: Head,
    bytes: &'a [u8],
}

impl<'a> Page<'a> {
    /// Reads a page from the front of any bytes.
    pub fn read(bytes: &'a [u8]) -> Result<Self, PageError> {
        let head = Head::read(bytes.first_chunk().ok_or(PageError::Length)?);
        let bits = usize::from(head.payload_bits);
        let rows = usize::from(head.row_count);
        let is_sound = bits <= PAYLOAD_BITS_MAX
            && head.row_count <= PAGE_ROWS_MAX
            && if rows == 0 { bits == 0 && head.time_max_us == 0 } else { bits >= 2 * rows }
            && head.time_min_us <= head.time_max_us
            && i64::try_from(head.time_max_us).is_ok()
            && head.first_row_id.checked_add(rows as u64).is_some();
        if !is_sound {
            return Err(PageError::Header);
        }
        let bytes = bytes.get(..PAGE_HEADER_BYTES + bits.div_ceil(8)).ok_or(PageError::Length)?;
        Ok(Self { head, bytes })
    }

    /// Tells the columns that its rows have; see [`crate::schema::hash`].
    pub fn schema_hash(&self) -> u32 {
        self.head.schema_hash
    }

    /// How many rows there are.
    pub fn row_count(&self) -> u16 {
        self.head.row_count
    }

    /// The row_id of the first row.
    pub fn first_row_id(&self) -> u64 {
        self.head.first_row_id
    }

    /// The row_id behind the last row's.
    pub fn next_row_id(&self) -> u64 {
        self.head.first_row_id + u64::from(self.head.row_count)
    }

    /// The first row's time since boot; 0 without rows.
    pub fn time_min_us(&self) -> u64 {
        self.head.time_min_us
    }

    /// The last row's time since boot; 0 without rows.
    pub fn time_max_us(&self) -> u64 {
        self.head.time_max_us
    }

    /// Header and rows, without what stands behind them: what travels.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads the rows, which must be of these columns.
    pub fn rows(&self, kinds: impl IntoIterator<Item = ColumnType>) -> TableDecoder<'a> {
        TableDecoder::new(kinds, &self.bytes[PAGE_HEADER_BYTES..], self.head.row_count)
    }

    /// Reads every row and compares them with the header: what is done once with a page from elsewhere.
    pub fn check(&self, kinds: impl IntoIterator<Item = ColumnType>) -> Result<(), PageError> {
        let mut rows = self.rows(kinds);
        let mut cells = [Value::Null; TABLE_COLUMNS_MAX];
        let mut times_us = (0, 0);
        let mut count = 0;
        while rows.next_row(&mut cells).map_err(|_| PageError::Rows)? {
            let Value::Timestamp(time_us) = cells[0] else { return Err(PageError::Rows) };
            let time_us = u64::try_from(time_us).map_err(|_| PageError::Rows)?;
            if time_us < times_us.1 {
                return Err(PageError::Rows);
            }
            times_us = (if count == 0 { time_us } else { times_us.0 }, time_us);
            count += 1;
        }
        let is_same = times_us == (self.head.time_min_us, self.head.time_max_us);
        if is_same { Ok(()) } else { Err(PageError::Rows) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    schema_hash: u32,
    row_count: u16,
    payload_bits: u16,
    first_row_id: u64,
    time_min_us: u64,
    time_max_us: u64,
}

impl Head {
    /// Writes what a row changes that is not the first.
    #[inline]
    fn write_end(&self, page: &mut PageBuffer) {
        page[4..6].copy_from_slice(&self.row_count.to_le_bytes());
        page[6..8].copy_from_slice(&self.payload_bits.to_le_bytes());
        page[24..32].copy_from_slice(&self.time_max_us.to_le_bytes());
    }

    #[inline(never)]
    fn write(&self, page: &mut PageBuffer) {
        page[..4].copy_from_slice(&self.schema_hash.to_le_bytes());
        page[4..6].copy_from_slice(&self.row_count.to_le_bytes());
        page[6..8].copy_from_slice(&self.payload_bits.to_le_bytes());
        page[8..16].copy_from_slice(&self.first_row_id.to_le_bytes());
        page[16..24].copy_from_slice(&self.time_min_us.to_le_bytes());
        page[24..32].copy_from_slice(&self.time_max_us.to_le_bytes());
    }

    fn read(bytes: &[u8; PAGE_HEADER_BYTES]) -> Self {
        let byte = |at: usize| bytes[at];
        let long = |at: usize| u64::from_le_bytes(core::array::from_fn(|index| bytes[at + index]));
        Self {
            schema_hash: u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]),
            row_count: u16::from_le_bytes([byte(4), byte(5)]),
            payload_bits: u16::from_le_bytes([byte(6), byte(7)]),
            first_row_id: long(8),
            time_min_us: long(16),
            time_max_us: long(24),
        }
    }
}

const _: () = assert!(PAYLOAD_BITS_MAX <= u16::MAX as usize);
