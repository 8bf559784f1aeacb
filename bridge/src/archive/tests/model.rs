//! A board as a queue of pages, and the stream of them that an archive gets. Made of the same pages as a board's.

use crate::archive::{
    SeriesKey,
    intake::{Batch, Intake},
};
use shared::{
    clock::UtcClock,
    limits::PAGE_BYTES,
    message::{Cursor, Part, Started},
    page::{Page, PageBuffer, PageWriter},
    rowcode::RowError,
    schema::{self, Column},
    value::{ColumnType, Value},
};
use std::collections::{BTreeSet, VecDeque};

pub(super) const TEXT_TABLE: [Column<'static>; 2] = [
    Column { name: "timestamp", kind: ColumnType::Timestamp, unit: "" },
    Column { name: "text", kind: ColumnType::Text, unit: "" },
];

const SENSOR_TABLE: [Column<'static>; 4] = [
    Column { name: "timestamp", kind: ColumnType::Timestamp, unit: "" },
    Column { name: "temperature", kind: ColumnType::Float32, unit: "°C" },
    Column { name: "humidity", kind: ColumnType::Float32, unit: "%" },
    Column { name: "pressure", kind: ColumnType::Float32, unit: "hPa" },
];

/// A board with one table, whose oldest page goes when there are too many.
#[derive(Debug)]
pub(super) struct ModelBoard {
    pub(super) epoch: u64,
    /// Rows of all its starts.
    pub(super) rows_in_all: u64,
    columns: &'static [Column<'static>],
    pages: VecDeque<PageBuffer>,
    pages_max: usize,
    writer: PageWriter,
    next_row: u64,
}

/// What a stream brought.
pub(super) struct Stream {
    pub(super) batch: Batch,
    /// The rows that the board still had.
    pub(super) held: BTreeSet<u64>,
}

/// Different for every row, and so long that a page has few.
pub(super) fn text_of(epoch: u64, row: u64) -> String {
    let number = NUMBERS_OF_EPOCH * epoch + row;
    format!("{number:>20}{:>40x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

const NUMBERS_OF_EPOCH: u64 = 1 << 32;

/// The row_id that a text tells.
pub(super) fn row_of(text: &str) -> u64 {
    let number: u64 = text[..20].trim().parse().unwrap();
    number % NUMBERS_OF_EPOCH
}

pub(super) fn texts<'p>(page: &Page<'p>) -> impl Iterator<Item = (u64, String)> + use<'p> {
    let mut rows = page.rows(schema::kinds(&TEXT_TABLE));
    let range = page.first_row_id()..page.next_row_id();
    range.map(move |row| {
        let mut cells = [Value::Null; 2];
        assert!(rows.next_row(&mut cells).unwrap());
        let Value::Text(text) = cells[1] else { panic!("{cells:?}") };
        (row, text.to_string())
    })
}

impl ModelBoard {
    pub(super) fn new(pages_max: usize) -> Self {
        Self::of(&TEXT_TABLE, pages_max)
    }

    pub(super) fn of_sensors(pages_max: usize) -> Self {
        Self::of(&SENSOR_TABLE, pages_max)
    }

    fn of(columns: &'static [Column<'static>], pages_max: usize) -> Self {
        let mut board = Self {
            epoch: 0,
            rows_in_all: 0,
            columns,
            pages: VecDeque::new(),
            pages_max,
            writer: PageWriter::new(schema::kinds(columns)),
            next_row: 0,
        };
        board.restart();
        board
    }

    pub(super) fn restart(&mut self) {
        self.epoch += 1;
        self.next_row = 0;
        self.pages.clear();
        self.begin_page();
    }

    fn schema_hash(&self) -> u32 {
        schema::hash(self.columns.iter().map(|column| (column.name, column.kind)))
    }

    fn begin_page(&mut self) {
        if self.pages.len() == self.pages_max {
            self.pages.pop_front();
        }
        let mut page = [0; PAGE_BYTES];
        self.writer.begin(&mut page, self.schema_hash(), self.next_row);
        self.pages.push_back(page);
    }

    pub(super) fn insert(&mut self, rows: u64) {
        for _ in 0..rows {
            let row = self.next_row;
            let text = text_of(self.epoch, row);
            let time = Value::Timestamp((row * 1_000) as i64);
            let wave = |period: u64, scale: f32| ((row * 7919) % period) as f32 / 100.0 + scale;
            let sensors = [
                time,
                Value::Float32(wave(40, 20.0)),
                Value::Float32(wave(60, 40.0)),
                Value::Float32(wave(30, 990.0)),
            ];
            let texts = [time, Value::Text(&text)];
            let cells: &[Value<'_>] = if self.columns.len() == 2 { &texts } else { &sensors };
            let page = self.pages.back_mut().unwrap();
            if let Err(full) = self.writer.append(page, cells) {
                assert_eq!(full, RowError::Full);
                self.begin_page();
                self.writer.append(self.pages.back_mut().unwrap(), cells).unwrap();
            }
            self.next_row += 1;
            self.rows_in_all += 1;
        }
    }

    /// The pages from a row on as a board sends them, at most so many, then the link breaks.
    pub(super) fn stream(&self, from: u64, pages_max: usize) -> Stream {
        let key = SeriesKey {
            board_id: "0a0b".into(),
            epoch: self.epoch,
            dbms: "demo".into(),
            table: "notes".into(),
        };
        let mut clock = UtcClock::default();
        clock.set(0, 0);
        let pages: Vec<Page<'_>> = self.pages.iter().map(|page| Page::read(page).unwrap()).collect();
        let oldest = pages[0].first_row_id();
        let next = from.max(oldest).min(self.next_row);
        let mut intake = Intake::new(key, from);
        let cursor = Cursor { next, end: self.next_row, rows: 0 };
        let columns = self.columns.iter().copied().collect();
        let head = Started { columns, cursor, lost: next - from, clock_set: true };
        intake.part(&Part::Started(head)).unwrap();
        intake.part(&Part::Clock(clock)).unwrap();
        let wanted = pages.iter().filter(|page| page.next_row_id() > next);
        let mut at = next;
        for page in wanted.clone().take(pages_max) {
            let count = (page.next_row_id() - at) as u16;
            intake.page(count, page.bytes(), 0).unwrap();
            at = page.next_row_id();
        }
        if wanted.count() <= pages_max {
            intake.end(next - from).unwrap();
        }
        Stream { batch: intake.take_batch().unwrap(), held: (oldest..self.next_row).collect() }
    }
}
