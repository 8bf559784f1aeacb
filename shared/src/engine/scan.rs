//! Rows out of pages, one page at a time.

use super::{eval::Fault, plan::CELLS_MAX};
use crate::{
    message::{ErrorCode, Failure},
    page::Page,
    value::{ColumnType, Value},
};
use core::ops::Range;

/// Where the pages of one table come from: a board's memory, or an archive.
pub trait Pages {
    /// The page that holds this row, or the oldest behind it if that one is gone.
    fn page(&self, row_id: u64) -> Option<&[u8]>;

    /// UTC of a time since the boot in which the pages were written. Never falls as the time rises.
    fn utc_us(&self, time_us: u64) -> i64;

    /// The id of the board, in hexadecimal.
    fn board(&self) -> &str;

    /// The epoch in which the rows were written.
    fn epoch(&self) -> u64;
}

/// Whether a scan goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// With the next row.
    Next,
    /// Not now; this row comes again.
    Stop,
}

/// How far a scan has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visited {
    /// The first row that was not visited.
    pub(super) next: u64,
}

/// Why a page could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanFault {
    /// An expression has no value.
    Expression(Fault),
    /// The page's bytes are not its rows.
    Damaged,
}

impl From<Fault> for ScanFault {
    fn from(fault: Fault) -> Self {
        ScanFault::Expression(fault)
    }
}

impl ScanFault {
    pub(super) fn failure(self, of: impl FnOnce(Fault) -> Failure) -> Failure {
        match self {
            ScanFault::Expression(fault) => of(fault),
            ScanFault::Damaged => {
                Failure::new(ErrorCode::Damaged, 0, format_args!("a page of the table cannot be read"))
            }
        }
    }
}

/// Shows the rows `rows` of a page, those that it has, one after the other, with their hidden columns.
pub(super) fn visit_page<'p>(
    pages: &'p impl Pages,
    page: &Page<'p>,
    kinds: &[ColumnType],
    rows: Range<u64>,
    mut visit: impl FnMut(u64, &[Value<'p>]) -> Result<Flow, Fault>,
) -> Result<Visited, ScanFault> {
    let mut cells = [Value::Null; CELLS_MAX];
    let width = kinds.len();
    cells[width] = Value::Text(pages.board());
    cells[width + 1] = Value::Int(pages.epoch().cast_signed());
    let mut decoder = page.rows(kinds.iter().copied());
    let mut row_id = page.first_row_id();
    while row_id < rows.end {
        match decoder.next_row(&mut cells[..width]) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => return Err(ScanFault::Damaged),
        }
        if row_id >= rows.start {
            if let Value::Timestamp(time_us) = cells[0] {
                cells[0] = Value::Timestamp(pages.utc_us(time_us.cast_unsigned()));
            }
            cells[width + 2] = Value::Int(row_id.cast_signed());
            if visit(row_id, &cells[..width + 3])? == Flow::Stop {
                break;
            }
        }
        row_id += 1;
    }
    Ok(Visited { next: row_id.max(rows.start) })
}
