//! The row store: for each table a ring of pages in memory that was given once. Knows no clock, waits for nobody.
//!
//! ```text
//!   pages   ┌ table 0 ──────────────────────┐┌ table 1 ───────┐┌ free, for tables that are created ┐
//!           │ sealed  sealed  open   oldest ││ open     –     ││                                   │
//!           └──────────────────▲──────▲─────┘└────────────────┘└───────────────────────────────────┘
//!                              │      └ goes when the open page is full
//!                              └ the next row; readable like the others
//! ```
//!
//! A reader keeps nothing here: its cursor is the row_id it wants next. Rows that were overwritten before it came are
//! the difference between that and the first row_id of the page it gets.

use crate::catalog::{Catalog, TableError, TableId};
use shared::{
    limits::{CREATED_PAGES_DEFAULT, PAGES_MAX, TABLE_COLUMNS_MAX, TABLE_PAGES_MIN, TABLES_MAX},
    page::{PAYLOAD_BITS_MAX, Page, PageBuffer, PageWriter},
    rowcode::RowError,
    schema::{Column, TIME_COLUMN, TableSpec},
    value::Value,
};

/// Bits of a cell, as a guess of how many pages so many rows need.
const CELL_BITS_GUESS: usize = 16;

/// The rows of all tables.
#[derive(Debug)]
pub struct Store<'m> {
    pages: &'m mut [PageBuffer],
    catalog: Catalog,
    /// One for each table.
    rings: heapless::Vec<Ring, TABLES_MAX>,
    /// Pages that are a table's; the others are free.
    pages_used: usize,
}

/// The pages of one table.
#[derive(Debug)]
struct Ring {
    /// Its first page and how many it has.
    begin: usize,
    capacity: usize,
    /// The page that is written, counted from `begin`.
    open: usize,
    /// Pages that hold rows or are open: those up to `open`, backwards around the ring.
    held: usize,
    writer: PageWriter,
    schema_hash: u32,
    time_last_us: u64,
    counts: Counts,
}

/// What became of the rows of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The row_id of the oldest row that is there, or of the next one.
    pub first_row_id: u64,
    /// The row_id that the next row will have: as many were inserted.
    pub next_row_id: u64,
    /// Rows that went because others came.
    pub rows_overwritten: u64,
    /// Those of them that no archive had acknowledged.
    pub rows_overwritten_unread: u64,
    /// Rows before this one are in an archive.
    pub acknowledged_row_id: u64,
}

impl<'m> Store<'m> {
    /// A store in `pages` with these tables, each with so many of the pages; the rest is for tables that are created.
    pub fn new(
        pages: &'m mut [PageBuffer],
        tables: &[(&'static TableSpec, usize)],
    ) -> Result<Self, TableError> {
        let mut store = Self::empty(pages);
        for (spec, budget) in tables {
            store.add(spec, *budget)?;
        }
        Ok(store)
    }

    /// A store in `pages` without tables.
    pub fn empty(pages: &'m mut [PageBuffer]) -> Self {
        Self { pages, catalog: Catalog::default(), rings: heapless::Vec::new(), pages_used: 0 }
    }

    /// Adds a table that the board was built with, in so many pages.
    pub(crate) fn add(&mut self, spec: &'static TableSpec, budget: usize) -> Result<(), TableError> {
        self.check_pages(budget)?;
        let id = self.catalog.add(spec)?;
        self.begin_ring(id, budget)
    }

    /// How many pages there are.
    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Which tables there are.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Makes a table of these columns, which may begin with the time or leave it out, for about `rows` rows.
    pub fn create(
        &mut self,
        dbms: &str,
        name: &str,
        columns: &[Column<'_>],
        rows: Option<u32>,
    ) -> Result<TableId, TableError> {
        let columns = match columns {
            [first, rest @ ..] if first.name == TIME_COLUMN.name && first.kind == TIME_COLUMN.kind => rest,
            _ => columns,
        };
        self.catalog.can_create(dbms, name, columns)?;
        let budget = rows.map_or(CREATED_PAGES_DEFAULT, |rows| pages_for(rows, columns.len() + 1));
        self.check_pages(budget)?;
        let id = self.catalog.create(dbms, name, columns)?;
        self.begin_ring(id, budget)?;
        Ok(id)
    }

    /// Inserts a row of these cells, the time not among them, and returns its row_id. Takes bounded time. On an error
    /// everything is as before: [`RowError::Width`] also if there is no such table.
    pub fn insert(&mut self, table: TableId, uptime_us: u64, cells: &[Value]) -> Result<u64, RowError> {
        let ring = self.rings.get_mut(table.index()).ok_or(RowError::Width)?;
        let time_us = uptime_us.clamp(ring.time_last_us, i64::MAX as u64);
        let mut row = [Value::Null; TABLE_COLUMNS_MAX];
        row[0] = Value::Timestamp(time_us as i64);
        row.get_mut(1..=cells.len()).ok_or(RowError::Width)?.copy_from_slice(cells);
        let row = &row[..=cells.len()];
        let pages = self.pages.get_mut(ring.begin..ring.begin + ring.capacity).ok_or(RowError::Full)?;
        match ring.writer.append(&mut pages[ring.open], row) {
            // Nothing is wrong with the row, and a fresh page has room for any row.
            Err(RowError::Full) => {
                ring.turn(pages);
                ring.writer.append(&mut pages[ring.open], row)?;
            }
            other => other?,
        }
        ring.time_last_us = time_us;
        ring.counts.next_row_id += 1;
        Ok(ring.counts.next_row_id - 1)
    }

    /// The page that holds this row or, if it was overwritten, the oldest there is. Nothing if the row is not there yet.
    pub fn page_with(&self, table: TableId, row_id: u64) -> Option<&[u8]> {
        let ring = self.rings.get(table.index())?;
        if row_id >= ring.counts.next_row_id {
            return None;
        }
        // Pages are in the order of their rows: the last that does not begin behind the row, else the oldest.
        let (mut low, mut high) = (0, ring.held);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let page = self.page(ring, middle)?;
            (low, high) = if page.first_row_id() <= row_id { (middle, high) } else { (low, middle) };
        }
        self.page(ring, low).map(|page| page.bytes())
    }

    /// What became of the rows of a table.
    pub fn counts(&self, table: TableId) -> Option<Counts> {
        self.rings.get(table.index()).map(|ring| ring.counts)
    }

    /// The row_id of the oldest row that is there, or of the next one.
    pub fn first_row_id(&self, table: TableId) -> u64 {
        self.counts(table).unwrap_or_default().first_row_id
    }

    /// The row_id that the next row will have.
    pub fn next_row_id(&self, table: TableId) -> u64 {
        self.counts(table).unwrap_or_default().next_row_id
    }

    /// An archive has every row before `next_row_id`.
    pub fn acknowledge(&mut self, table: TableId, next_row_id: u64) {
        if let Some(Ring { counts, .. }) = self.rings.get_mut(table.index()) {
            let next_row_id = next_row_id.min(counts.next_row_id);
            counts.acknowledged_row_id = counts.acknowledged_row_id.max(next_row_id);
        }
    }

    /// Pages that no table has.
    pub fn pages_free(&self) -> usize {
        self.pages.len() - self.pages_used
    }

    /// Pages that a table has.
    pub fn pages_of(&self, table: TableId) -> usize {
        self.rings.get(table.index()).map_or(0, |ring| ring.capacity)
    }

    /// The page at this place, counted from the oldest.
    fn page(&self, ring: &Ring, place: usize) -> Option<Page<'_>> {
        let place = (ring.open + ring.capacity + 1 - ring.held + place) % ring.capacity;
        Page::read(self.pages.get(ring.begin + place)?).ok()
    }

    fn check_pages(&self, budget: usize) -> Result<(), TableError> {
        if self.pages.len() > PAGES_MAX {
            return Err(TableError::Capacity("PAGES_MAX", PAGES_MAX));
        }
        if budget < TABLE_PAGES_MIN {
            return Err(TableError::Capacity("TABLE_PAGES_MIN", TABLE_PAGES_MIN));
        }
        if budget > self.pages_free() {
            return Err(TableError::Capacity("pages free", self.pages_free()));
        }
        Ok(())
    }

    /// Gives a table its pages, which were checked to be there.
    fn begin_ring(&mut self, id: TableId, capacity: usize) -> Result<(), TableError> {
        let full = TableError::Capacity("TABLES_MAX", TABLES_MAX);
        let table = self.catalog.table(id).ok_or(full)?;
        let schema_hash = table.schema_hash();
        let mut ring = Ring {
            begin: self.pages_used,
            capacity,
            open: 0,
            held: 1,
            writer: PageWriter::new(table.kinds()),
            schema_hash,
            time_last_us: 0,
            counts: Counts::default(),
        };
        ring.writer.begin(&mut self.pages[self.pages_used], schema_hash, 0);
        self.pages_used += capacity;
        self.rings.push(ring).map_err(|_| full)
    }
}

impl Ring {
    /// Seals the open page and opens the next, where the oldest may have to go.
    fn turn(&mut self, pages: &mut [PageBuffer]) {
        self.open = (self.open + 1) % self.capacity;
        let page = &mut pages[self.open];
        if self.held < self.capacity {
            self.held += 1;
        } else if let Ok(oldest) = Page::read(page) {
            let rows = u64::from(oldest.row_count());
            let Counts { acknowledged_row_id, .. } = self.counts;
            let unread = oldest.next_row_id().saturating_sub(acknowledged_row_id).min(rows);
            self.counts.first_row_id = oldest.next_row_id();
            self.counts.rows_overwritten += rows;
            self.counts.rows_overwritten_unread += unread;
        }
        self.writer.begin(page, self.schema_hash, self.counts.next_row_id);
    }
}

/// About how many pages so many rows need, and one that is being filled.
fn pages_for(rows: u32, width: usize) -> usize {
    let bits = (rows as usize).saturating_mul(width * CELL_BITS_GUESS);
    (bits.div_ceil(PAYLOAD_BITS_MAX) + 1).max(TABLE_PAGES_MIN)
}
