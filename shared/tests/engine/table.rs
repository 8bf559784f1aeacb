//! A table in memory: pages as a board fills them, and queries over them.

use shared::{
    engine::{Pages, Progress, Query, RowSink},
    message::Failure,
    page::{PageBuffer, PageWriter},
    rowcode::RowError,
    schema::Column,
    value::{ColumnType, Value},
};

pub(crate) const BOARD: &str = "0102";
pub(crate) const EPOCH: u64 = 77;

/// Columns and pages.
pub(crate) struct Table {
    pub(crate) columns: Vec<Column<'static>>,
    pages: Vec<PageBuffer>,
    writer: PageWriter,
    next_row_id: u64,
    /// What is added to times since boot.
    pub(crate) offset_us: i64,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, ColumnType)]) -> Self {
        let time = Column { name: "timestamp", kind: ColumnType::Timestamp, unit: "" };
        let others = columns.iter().map(|(name, kind)| Column { name, kind: *kind, unit: "u" });
        let columns: Vec<_> = [time].into_iter().chain(others).collect();
        let writer = PageWriter::new(columns.iter().map(|column| column.kind));
        Self { columns, pages: Vec::new(), writer, next_row_id: 0, offset_us: 0 }
    }

    pub(crate) fn insert(&mut self, time_us: i64, cells: &[Value<'_>]) {
        let row: Vec<_> = [Value::Timestamp(time_us)].into_iter().chain(cells.iter().copied()).collect();
        let full = match self.pages.last_mut() {
            Some(page) => self.writer.append(page, &row),
            None => Err(RowError::Full),
        };
        if full == Err(RowError::Full) {
            let mut page = [0; shared::limits::PAGE_BYTES];
            self.writer.begin(&mut page, 1, self.next_row_id);
            self.writer.append(&mut page, &row).unwrap();
            self.pages.push(page);
        } else {
            full.unwrap();
        }
        self.next_row_id += 1;
    }

    /// Forgets the oldest page.
    pub(crate) fn drop_page(&mut self) {
        self.pages.remove(0);
    }

    /// The oldest row that is there.
    pub(crate) fn first_row_id(&self) -> u64 {
        shared::page::Page::read(&self.pages[0][..]).unwrap().first_row_id()
    }

    pub(crate) fn rows(&self) -> u64 {
        self.next_row_id
    }

    pub(crate) fn open(&self, sql: &str, now_us: i64) -> Result<Box<Query>, Failure> {
        let mut query = Box::new(Query::new());
        query.open(sql, &self.columns, now_us, 0..self.next_row_id)?;
        Ok(query)
    }

    /// The rows of the answer, cells as text separated by spaces; or code and position.
    pub(crate) fn ask(&self, sql: &str) -> Vec<String> {
        self.answer(sql).unwrap_or_else(|f| vec![format!("{} at {}: {}", f.code.name(), f.position, f.hint)])
    }

    pub(crate) fn answer(&self, sql: &str) -> Result<Vec<String>, Failure> {
        let mut query = self.open(sql, NOW_US)?;
        let mut rows = Vec::new();
        run(&mut query, self, &mut rows)?;
        Ok(rows)
    }
}

/// 2026-11-18T05:00:00Z
pub(crate) const NOW_US: i64 = 1_794_978_000_000_000;

/// Runs a query to its end.
pub(crate) fn run(query: &mut Query, pages: &Table, rows: &mut Vec<String>) -> Result<(), Failure> {
    loop {
        let mut sink = Texts(Vec::new());
        match query.step(pages, &mut sink)? {
            Progress::Working => assert!(sink.0.is_empty()),
            Progress::Rows(_) => rows.append(&mut sink.0),
            Progress::Done => return Ok(()),
        }
    }
}

/// Takes a few rows at a time, as a frame does.
pub(crate) struct Texts(pub(crate) Vec<String>);

impl RowSink for Texts {
    fn push(&mut self, cells: &[Value<'_>]) -> Result<(), RowError> {
        if self.0.len() == 7 {
            return Err(RowError::Full);
        }
        let text = |value: &Value<'_>| {
            let mut text = String::new();
            shared::format::write_cell(value, &mut text).unwrap();
            text
        };
        self.0.push(cells.iter().map(text).collect::<Vec<_>>().join(" "));
        Ok(())
    }
}

impl Pages for Table {
    fn page(&self, row_id: u64) -> Option<&[u8]> {
        let ends_after =
            |page: &&PageBuffer| shared::page::Page::read(&page[..]).unwrap().next_row_id() > row_id;
        self.pages.iter().find(ends_after).map(|page| &page[..])
    }

    fn utc_us(&self, time_us: u64) -> i64 {
        time_us.cast_signed() + self.offset_us
    }

    fn board(&self) -> &str {
        BOARD
    }

    fn epoch(&self) -> u64 {
        EPOCH
    }
}
