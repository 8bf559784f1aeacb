//! The engine over pages in memory, as an [`Engine`] for the oracle.

use picolake_tests::oracle::{Answer, Cell, Engine, Table};
use shared::{
    engine::{Pages, Progress, Query, RowSink, Workspace},
    limits::PAGE_BYTES,
    message::{ErrorCode, Failure},
    page::{Page, PageBuffer, PageWriter},
    rowcode::RowError,
    schema::{self, Column},
    value::{ColumnType, Value},
};
use std::ops::Range;

/// Enough memory for every group and row that the engine's other bounds allow.
const WORKSPACE_BYTES: usize = 256 * 1024;
/// Rows that a sink takes before it is full, as a frame would be.
const SINK_ROWS_MAX: usize = 7;
/// Steps in which any query ends.
const STEPS_MAX: usize = 100_000;

/// One table in pages, and the memory of a query.
pub(crate) struct PagesEngine {
    pub(crate) columns: Vec<Column<'static>>,
    pub(crate) pages: TablePages,
    pub(crate) rows: Range<u64>,
    pub(crate) now_us: i64,
    query: Box<Query<Workspace<WORKSPACE_BYTES>>>,
    /// Cells so far that are not of their column's type: integers that overflowed into floats.
    pub(crate) misfits: u64,
}

impl PagesEngine {
    pub(crate) fn new(table: &Table) -> Self {
        Self::beginning_at(table, 0)
    }

    /// The same whose first row has this id.
    pub(crate) fn beginning_at(table: &Table, first: u64) -> Self {
        let columns: Vec<Column<'static>> = table
            .columns
            .iter()
            .map(|column| Column { name: column.name, kind: column.kind, unit: "" })
            .collect();
        let pages = TablePages::of(table, &columns, first);
        let rows = first..first + table.rows.len() as u64;
        Self { columns, pages, rows, now_us: table.now_us, query: Box::default(), misfits: 0 }
    }

    pub(crate) fn answer(&mut self, sql: &str) -> Result<Answer, Failure> {
        let Self { columns, pages, query, misfits, .. } = self;
        query.open(sql, columns, self.now_us, self.rows.clone())?;
        let names = query.columns(columns).map(|column| column.name.to_string()).collect();
        let kinds: Vec<ColumnType> = query.kinds().collect();
        let mut answer = Answer { columns: names, rows: Vec::new() };
        for _ in 0..STEPS_MAX {
            let mut sink = Sink { kinds: &kinds, rows: Vec::new(), misfits };
            let progress = query.step(pages, &mut sink)?;
            answer.rows.extend(sink.rows);
            if progress == Progress::Done {
                return Ok(answer);
            }
        }
        panic!("{sql} does not end");
    }
}

impl Engine for PagesEngine {
    fn run(&mut self, sql: &str) -> Result<Answer, (ErrorCode, String)> {
        self.answer(sql).map_err(|failure| (failure.code, failure.hint.to_string()))
    }
}

struct Sink<'s> {
    kinds: &'s [ColumnType],
    rows: Vec<Vec<Cell>>,
    misfits: &'s mut u64,
}

impl RowSink for Sink<'_> {
    fn push(&mut self, cells: &[Value<'_>]) -> Result<(), RowError> {
        if self.rows.len() == SINK_ROWS_MAX {
            return Err(RowError::Full);
        }
        let is_misfit =
            |(cell, kind): &(&Value<'_>, &ColumnType)| cell.column_type().is_some_and(|of| of != **kind);
        *self.misfits += cells.iter().zip(self.kinds).filter(is_misfit).count() as u64;
        self.rows.push(cells.iter().map(as_cell).collect());
        Ok(())
    }
}

pub(crate) fn as_cell(value: &Value<'_>) -> Cell {
    match *value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Bool(value),
        Value::Int(value) => Cell::Int(value),
        Value::Float32(value) => Cell::Float32(value),
        Value::Float64(value) => Cell::Float(value),
        Value::Timestamp(value) => Cell::Timestamp(value),
        Value::Text(text) => Cell::Text(text.to_string()),
    }
}

pub(crate) fn as_value(cell: &Cell) -> Value<'_> {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => Value::Bool(*value),
        Cell::Int(value) => Value::Int(*value),
        Cell::Float(value) => Value::Float64(*value),
        Cell::Float32(value) => Value::Float32(*value),
        Cell::Timestamp(value) => Value::Timestamp(*value),
        Cell::Text(text) => Value::Text(text),
    }
}

/// The pages of one table. The board was started at its first row.
pub(crate) struct TablePages {
    pages: Vec<PageBuffer>,
    boot_us: i64,
}

impl TablePages {
    fn of(table: &Table, columns: &[Column<'_>], first: u64) -> Self {
        let boot_us = match table.rows.first().map(|row| &row[0]) {
            Some(Cell::Timestamp(us)) => *us,
            _ => 0,
        };
        let hash = schema::hash(columns.iter().map(|column| (column.name, column.kind)));
        let mut writer = PageWriter::new(schema::kinds(columns));
        let mut pages: Vec<PageBuffer> = Vec::new();
        for (row_id, row) in (first..).zip(&table.rows) {
            let mut cells: Vec<Value<'_>> = row.iter().map(as_value).collect();
            if let Value::Timestamp(us) = &mut cells[0] {
                *us -= boot_us;
            }
            let is_full = match pages.last_mut() {
                Some(page) => match writer.append(page, &cells) {
                    Ok(()) => false,
                    Err(RowError::Full) => true,
                    Err(error) => panic!("{row:?}: {error:?}"),
                },
                None => true,
            };
            if is_full {
                let mut page = [0; PAGE_BYTES];
                writer.begin(&mut page, hash, row_id);
                writer.append(&mut page, &cells).expect("a row fits an empty page");
                pages.push(page);
            }
        }
        Self { pages, boot_us }
    }
}

impl Pages for TablePages {
    fn page(&self, row_id: u64) -> Option<&[u8]> {
        let has_row =
            |page: &&PageBuffer| Page::read(&page[..]).is_ok_and(|page| page.next_row_id() > row_id);
        self.pages.iter().find(has_row).map(|page| &page[..])
    }

    fn utc_us(&self, time_us: u64) -> i64 {
        self.boot_us + time_us.cast_signed()
    }

    fn board(&self) -> &str {
        "0123456789abcdef"
    }

    fn epoch(&self) -> u64 {
        1
    }
}
