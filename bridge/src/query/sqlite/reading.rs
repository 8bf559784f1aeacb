//! One reading of a table: its sources one behind the other, block by block, only the columns in use. Knows no SQLite.

use super::{
    source::{Block, PackedRows, PageBytes, SourceRows, TableRows, Wanted},
    stop::Stop,
};
use crate::fault::Fault;
use shared::{
    clock::UtcClock,
    engine::PageColumn,
    limits::{COLUMNS_MAX, TABLE_COLUMNS_MAX},
    page::Page,
    rowcode::RowDecoder,
    value::{ColumnType, Value},
};
use std::ops::{Range, RangeInclusive};

/// Bits of a row's number that are its id; those above are its source.
const ROW_ID_BITS: u32 = 44;

/// A cell of a block that was decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stored {
    Null,
    Int(i64),
    Float(f64),
    /// A place in the block's texts.
    Text(u32, u32),
}

/// What a reading leaves out.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    pub(super) wanted: Wanted,
    pub(super) board: Option<String>,
    pub(super) epoch: Option<i64>,
    /// No row can be wanted.
    pub(super) is_empty: bool,
}

/// Reads the rows of a table in their order.
#[derive(Debug, Default)]
pub(super) struct Reading {
    bounds: Bounds,
    /// Which slot of a decoded row each column has; none where it is not in use.
    slots: Vec<Option<u8>>,
    width: usize,
    /// The source that is read, and its rows that come next.
    source: usize,
    next_row_id: u64,
    /// Pages that were handed out and are not decoded, the next one last.
    chunk: Vec<PageBytes>,
    rows: Decoded,
    row: usize,
    is_at_end: bool,
}

/// The rows of one block.
#[derive(Debug, Default)]
struct Decoded {
    cells: Vec<Stored>,
    texts: String,
    row_ids: Vec<u64>,
}

impl Reading {
    /// Begins: `columns_used` has a bit for each column, the last one for all beyond.
    pub(super) fn begin(
        &mut self,
        table: &TableRows,
        columns_used: u64,
        bounds: Bounds,
        stop: &Stop,
    ) -> Result<(), Fault> {
        let is_used = |column: usize| columns_used >> column.min(u64::BITS as usize - 1) & 1 != 0;
        self.slots.clear();
        self.width = 0;
        for column in 0..table.columns.len() {
            self.slots.push(is_used(column).then_some(self.width as u8));
            self.width += usize::from(is_used(column));
        }
        (self.source, self.next_row_id) = (0, bounds.wanted.row_ids.start);
        self.is_at_end = bounds.is_empty;
        self.bounds = bounds;
        self.chunk.clear();
        self.rows.clear();
        self.row = 0;
        if self.is_at_end { Ok(()) } else { self.load(table, stop) }
    }

    /// Goes on to the next row.
    pub(super) fn advance(&mut self, table: &TableRows, stop: &Stop) -> Result<(), Fault> {
        self.row += 1;
        if self.row < self.rows.row_ids.len() { Ok(()) } else { self.load(table, stop) }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// A cell of the row; NULL where the column is not in use.
    pub(super) fn cell(&self, column: usize) -> Stored {
        let Some(Some(slot)) = self.slots.get(column) else { return Stored::Null };
        let at = self.row * self.width + usize::from(*slot);
        self.rows.cells.get(at).copied().unwrap_or(Stored::Null)
    }

    pub(super) fn text(&self, start: u32, len: u32) -> &str {
        let start = start as usize;
        self.rows.texts.get(start..start + len as usize).unwrap_or_default()
    }

    /// The source of the row, by its place in the table.
    pub(super) fn source(&self) -> usize {
        self.source
    }

    pub(super) fn row_id(&self) -> u64 {
        self.rows.row_ids.get(self.row).copied().unwrap_or(0)
    }

    /// A number that no other row of the table has.
    pub(super) fn number(&self) -> Result<i64, Fault> {
        let is_small = self.row_id() >> ROW_ID_BITS == 0 && self.source >> (63 - ROW_ID_BITS) == 0;
        if !is_small {
            return Err(Fault::new(
                "capacity",
                format!("a table has more than 2^{ROW_ID_BITS} rows"),
                "name fewer boards",
            ));
        }
        Ok((self.source as i64) << ROW_ID_BITS | self.row_id().cast_signed())
    }

    /// Decodes the next block that has a wanted row.
    fn load(&mut self, table: &TableRows, stop: &Stop) -> Result<(), Fault> {
        self.row = 0;
        self.rows.clear();
        while let Some(source) = table.sources.get(self.source) {
            if stop.is_due() {
                return Err(stop.take().unwrap_or_else(Fault::cancelled));
            }
            let is_other = self.bounds.board.as_ref().is_some_and(|board| *board != source.board)
                || self.bounds.epoch.is_some_and(|epoch| epoch != source.epoch.cast_signed());
            let has_more = !is_other
                && match &source.rows {
                    SourceRows::Packed(packed) => self.load_packed(packed)?,
                    SourceRows::Pages { reader, clock, layout, rows } => {
                        if self.chunk.is_empty() {
                            let start = self.next_row_id.max(rows.start);
                            let row_ids = start..rows.end.min(self.bounds.wanted.row_ids.end);
                            let wanted = Wanted { row_ids, ..self.bounds.wanted.clone() };
                            if !wanted.row_ids.is_empty() {
                                self.chunk = reader.pages(&wanted)?;
                                self.chunk.reverse();
                            }
                        }
                        match self.chunk.pop() {
                            Some(page) => {
                                self.load_page(&page, clock, layout, rows)?;
                                true
                            }
                            None => false,
                        }
                    }
                };
            if !self.rows.row_ids.is_empty() {
                return Ok(());
            }
            if !has_more {
                self.source += 1;
                self.next_row_id = self.bounds.wanted.row_ids.start;
                self.chunk.clear();
            }
        }
        self.is_at_end = true;
        Ok(())
    }

    /// False: there is no further block.
    fn load_packed(&mut self, packed: &PackedRows) -> Result<bool, Fault> {
        let Some(block) = packed.blocks.get(packed.block_from(self.next_row_id)) else { return Ok(false) };
        if block.row_ids.start >= self.bounds.wanted.row_ids.end {
            return Ok(false);
        }
        self.next_row_id = block.row_ids.end;
        if overlap(&block.times_us, &self.bounds.wanted.times_us) {
            let Self { bounds, slots, width, rows, .. } = self;
            rows.take_block(packed, block, slots, *width, &bounds.wanted).ok_or_else(damaged)?;
        }
        Ok(true)
    }

    fn load_page(
        &mut self,
        bytes: &[u8],
        clock: &UtcClock,
        layout: &[PageColumn],
        rows: &Range<u64>,
    ) -> Result<(), Fault> {
        let page = Page::read(bytes).map_err(|_| damaged())?;
        if page.next_row_id() <= self.next_row_id && page.row_count() > 0 {
            return Ok(()); // it was read, or is before what is wanted
        }
        let wanted = &self.bounds.wanted;
        let start = self.next_row_id.max(rows.start);
        let row_ids = start..rows.end.min(wanted.row_ids.end);
        self.next_row_id = page.next_row_id().max(start);
        let times_us = clock.date_us(page.time_min_us())..=clock.date_us(page.time_max_us());
        if page.row_count() == 0 || row_ids.is_empty() || !overlap(&times_us, &wanted.times_us) {
            return Ok(());
        }
        let wanted = Wanted { row_ids, times_us: wanted.times_us.clone() };
        let Self { slots, width, rows, .. } = self;
        rows.take_page(&page, clock, layout, slots, *width, &wanted).ok_or_else(damaged)
    }
}

impl Decoded {
    fn clear(&mut self) {
        self.cells.clear();
        self.texts.clear();
        self.row_ids.clear();
    }

    /// None if the bytes are not rows.
    fn take_page(
        &mut self,
        page: &Page<'_>,
        clock: &UtcClock,
        layout: &[PageColumn],
        slots: &[Option<u8>],
        width: usize,
        wanted: &Wanted,
    ) -> Option<()> {
        let mut decoder = page.rows(layout.iter().map(|column| column.kind));
        let places: Vec<Option<u8>> =
            layout.iter().map(|column| slots.get(usize::from(column.column)).copied().flatten()).collect();
        decoder.want(mask(&places));
        let offset = |time_us: u64| clock.date_us(time_us).wrapping_sub_unsigned(time_us);
        let (first_us, last_us) = (offset(page.time_min_us()), offset(page.time_max_us()));
        let offset_us = (first_us == last_us).then_some(first_us);
        let mut cells = [Value::Null; TABLE_COLUMNS_MAX];
        let mut row_id = page.first_row_id();
        while row_id < wanted.row_ids.end && decoder.next_row(&mut cells).ok()? {
            row_id += 1;
            if row_id <= wanted.row_ids.start {
                continue;
            }
            if let (Some(Value::Timestamp(time_us)), Some(Some(_))) = (cells.first_mut(), places.first()) {
                let date_us = match offset_us {
                    Some(offset_us) => time_us.wrapping_add(offset_us),
                    None => clock.date_us(time_us.cast_unsigned()),
                };
                if !wanted.times_us.contains(&date_us) {
                    continue;
                }
                // The place keeps what the decoder put there: it may count on from it.
                self.put(row_id - 1, width, &cells, &places, layout.iter().map(|column| column.to));
                let time_slot = places.first().copied().flatten().map_or(0, usize::from);
                let at = self.cells.len() - width + time_slot;
                if let Some(cell) = self.cells.get_mut(at) {
                    *cell = Stored::Int(date_us);
                }
                continue;
            }
            self.put(row_id - 1, width, &cells, &places, layout.iter().map(|column| column.to));
        }
        Some(())
    }

    /// None if the bytes are not rows.
    fn take_block(
        &mut self,
        packed: &PackedRows,
        block: &Block,
        slots: &[Option<u8>],
        width: usize,
        wanted: &Wanted,
    ) -> Option<()> {
        let mut decoder = RowDecoder::new(packed.kinds.iter().copied(), &block.bytes, block.row_count);
        let places: Vec<Option<u8>> =
            packed.places.iter().map(|place| slots.get(usize::from(*place)).copied().flatten()).collect();
        decoder.want(mask(&places) | 1 << places.len());
        let time_at = packed.places.iter().zip(&places).position(|(of, slot)| *of == 0 && slot.is_some());
        let mut cells = [Value::Null; COLUMNS_MAX];
        while decoder.next_row(&mut cells).ok()? {
            let Some(Value::Int(id)) = cells.get(places.len()) else { return None };
            let row_id = id.cast_unsigned();
            let time = time_at.and_then(|at| cells.get(at));
            let is_outside = matches!(time, Some(Value::Timestamp(us)) if !wanted.times_us.contains(us));
            if wanted.row_ids.contains(&row_id) && !is_outside {
                self.put(row_id, width, &cells, &places, packed.kinds.iter().copied());
            }
        }
        Some(())
    }

    fn put(
        &mut self,
        row_id: u64,
        width: usize,
        cells: &[Value<'_>],
        places: &[Option<u8>],
        kinds: impl Iterator<Item = ColumnType>,
    ) {
        let start = self.cells.len();
        self.cells.resize(start + width, Stored::Null);
        self.row_ids.push(row_id);
        for ((value, place), kind) in cells.iter().zip(places).zip(kinds) {
            let Some(cell) = place.and_then(|slot| self.cells.get_mut(start + usize::from(slot))) else {
                continue;
            };
            *cell = match *value {
                Value::Null => Stored::Null,
                Value::Bool(v) => Stored::Int(v.into()),
                Value::Int(v) if kind == ColumnType::Float64 => Stored::Float(v as f64),
                Value::Int(v) | Value::Timestamp(v) => Stored::Int(v),
                Value::Float32(v) => Stored::Float(v.into()),
                Value::Float64(v) => Stored::Float(v),
                Value::Text(text) => {
                    let place = Stored::Text(self.texts.len() as u32, text.len() as u32);
                    self.texts.push_str(text);
                    place
                }
            };
        }
    }
}

fn mask(places: &[Option<u8>]) -> u32 {
    places.iter().enumerate().fold(0, |mask, (at, place)| mask | u32::from(place.is_some()) << at)
}

fn overlap(a: &RangeInclusive<i64>, b: &RangeInclusive<i64>) -> bool {
    a.start() <= b.end() && b.start() <= a.end()
}

fn damaged() -> Fault {
    let action = "the other rows can be read: narrow the time, or leave out the board";
    Fault::new("damaged", "a page of rows cannot be read", action)
}
