//! Rows out of pages, one page at a time.

use super::{
    eval::Fault,
    plan::{CELLS_MAX, Plan},
    query::fitted,
};
use crate::{
    limits::TABLE_COLUMNS_MAX,
    page::Page,
    rowcode::TableDecoder,
    schema::HIDDEN_COLUMNS,
    value::{ColumnType, Value},
};
use core::ops::Range;

/// Where the pages of one table come from: a board's memory, or an archive.
pub trait Pages {
    /// The page that holds this row, or the oldest behind it if that one is gone.
    fn page(&self, row_id: u64) -> Option<&[u8]>;

    /// UTC of a time since the boot in which the pages were written. Rises at least as fast as the time, so that what
    /// is added to two times is added to all between them.
    fn utc_us(&self, time_us: u64) -> i64;

    /// The id of the board, in hexadecimal.
    fn board(&self) -> &str;

    /// The epoch in which the rows were written.
    fn epoch(&self) -> u64;

    /// The columns of the pages, where they are not those of the query's table.
    fn layout(&self) -> Option<&[PageColumn]> {
        None
    }
}

/// A column of a page whose table is not quite the query's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageColumn {
    /// What it holds.
    pub kind: ColumnType,
    /// Which column of the query's table it is.
    pub column: u8,
    /// What that holds: the same, or floats where these are integers.
    pub to: ColumnType,
}

/// Why a page could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanFault {
    /// An expression has no value.
    Expression(Fault),
    /// The page's bytes are not its rows.
    Damaged,
}

/// The page's bytes are not its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

impl From<Damaged> for ScanFault {
    fn from(Damaged: Damaged) -> Self {
        ScanFault::Damaged
    }
}

impl From<Fault> for ScanFault {
    fn from(fault: Fault) -> Self {
        ScanFault::Expression(fault)
    }
}

/// The rows of a page, one after the other, with their hidden columns.
#[derive(Debug)]
pub(super) struct PageRows<'p> {
    decoder: TableDecoder<'p>,
    cells: [Value<'p>; CELLS_MAX],
    width: usize,
    /// Which rows are wanted.
    rows: Range<u64>,
    /// The row that comes next.
    next: u64,
    /// UTC less the time since boot, where it is the same for all rows.
    offset_us: Option<i64>,
}

impl<'p> PageRows<'p> {
    /// Those of the rows `rows` that the page has.
    #[inline(never)]
    pub(super) fn new(pages: &'p impl Pages, page: &Page<'p>, plan: &Plan, rows: Range<u64>) -> Self {
        let kinds = &plan.kinds;
        let mut cells = [Value::Null; CELLS_MAX];
        let width = kinds.len();
        cells[width] = Value::Text(pages.board());
        cells[width + 1] = Value::Int(pages.epoch().cast_signed());
        let offset = |time_us: u64| pages.utc_us(time_us).wrapping_sub_unsigned(time_us);
        let (first_us, last_us) = (offset(page.time_min_us()), offset(page.time_max_us()));
        let decoder = match pages.layout() {
            None => {
                let mut decoder = page.rows(kinds.iter().copied());
                decoder.want(plan.columns_used);
                decoder
            }
            Some(layout) => page.rows(layout.iter().map(|column| column.kind)),
        };
        Self {
            decoder,
            cells,
            width,
            rows,
            next: page.first_row_id(),
            offset_us: (first_us == last_us).then_some(first_us),
        }
    }

    /// Goes on to the next row; false at the end.
    #[inline(always)]
    pub(super) fn advance(&mut self, pages: &impl Pages) -> Result<bool, Damaged> {
        loop {
            if self.next >= self.rows.end {
                return Ok(false);
            }
            let is_there = match pages.layout() {
                None => self.decoder.next_row(&mut self.cells[..self.width]).map_err(|_| Damaged)?,
                Some(layout) => self.next_placed(layout)?,
            };
            if !is_there {
                return Ok(false);
            }
            self.next += 1;
            if self.next > self.rows.start {
                break;
            }
        }
        if let Value::Timestamp(time_us) = &mut self.cells[0] {
            *time_us = match self.offset_us {
                Some(offset_us) => time_us.wrapping_add(offset_us),
                None => pages.utc_us(time_us.cast_unsigned()),
            };
        }
        self.cells[self.width + 2] = Value::Int(self.next.wrapping_sub(1).cast_signed());
        Ok(true)
    }

    /// Reads a row of another table; a column that it has not stays NULL.
    fn next_placed(&mut self, layout: &[PageColumn]) -> Result<bool, Damaged> {
        let mut read = [Value::Null; TABLE_COLUMNS_MAX];
        let is_there = self.decoder.next_row(&mut read[..layout.len()]).map_err(|_| Damaged)?;
        for (value, column) in read.iter().zip(layout) {
            if let Some(cell) = self.cells[..self.width].get_mut(usize::from(column.column)) {
                *cell = fitted(*value, column.to);
            }
        }
        Ok(is_there)
    }

    /// The row, as it is after [`advance`](Self::advance).
    #[inline]
    pub(super) fn cells(&self) -> &[Value<'p>] {
        &self.cells[..self.width + HIDDEN_COLUMNS.len()]
    }

    /// The first row that was not shown.
    pub(super) fn next(&self) -> u64 {
        self.next.max(self.rows.start)
    }
}
