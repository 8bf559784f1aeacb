//! A stream of a board's pages → batches for the store, each page checked. Knows neither the link nor the file.

use super::{ArchiveError, series::SeriesKey};
use shared::{
    clock::UtcClock,
    limits::BODY_BYTES_MAX,
    message::{self, Part, Started},
    page::Page,
    schema,
    value::ColumnType,
};

/// Bytes of pages in one batch: what one board has in memory at most, and what one commit writes.
pub(super) const BATCH_BYTES_MAX: usize = 256 << 10;

/// Rows that come one after the other, and rows between them that the board has overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// Whose rows they are.
    pub(super) key: SeriesKey,
    /// The columns as they travelled.
    pub(super) columns: Vec<u8>,
    /// The clock as it travelled.
    pub(super) clock: Vec<u8>,
    /// Where it begins: not behind what is stored.
    pub(super) from: u64,
    /// In the order of their rows.
    pub(super) pieces: Vec<Piece>,
}

/// What became of the next rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// So many were overwritten.
    Lost(u64),
    /// They are in this page, which may begin before them.
    Page(Box<[u8]>),
}

impl Batch {
    /// Bytes of its pages.
    pub(super) fn byte_count(&self) -> usize {
        let bytes = |piece: &Piece| if let Piece::Page(bytes) = piece { bytes.len() } else { 0 };
        self.pieces.iter().map(bytes).sum()
    }
}

/// Takes one stream.
#[derive(Debug)]
pub(super) struct Intake {
    key: SeriesKey,
    head: Option<Head>,
    clock: Option<Vec<u8>>,
    /// The row that must come next.
    next: u64,
    /// Where the next batch begins.
    batch_from: u64,
    pieces: Vec<Piece>,
    bytes: usize,
    /// Pages in all.
    pages: u64,
}

#[derive(Debug)]
struct Head {
    columns: Vec<u8>,
    kinds: Vec<ColumnType>,
    schema_hash: u32,
    end: u64,
    /// Rows that the head or a batch has told to be lost.
    lost: u64,
}

fn protocol(what: impl Into<String>) -> ArchiveError {
    ArchiveError::Protocol(what.into())
}

impl Intake {
    /// For the stream of a table from a row on.
    pub(super) fn new(key: SeriesKey, from: u64) -> Self {
        Self {
            key,
            head: None,
            clock: None,
            next: from,
            batch_from: from,
            pieces: Vec::new(),
            bytes: 0,
            pages: 0,
        }
    }

    /// Pages that came.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Whether it is time to store what has come.
    pub(super) fn is_full(&self) -> bool {
        self.bytes + shared::limits::PAGE_BYTES > BATCH_BYTES_MAX
    }

    /// The head or the clock.
    pub(super) fn part(&mut self, part: &Part<'_>) -> Result<(), ArchiveError> {
        match part {
            Part::Started(started) if self.head.is_none() => self.start(started),
            Part::Clock(clock) if self.clock.is_none() && self.head.is_some() => {
                if !clock.is_sound() {
                    return Err(protocol("the board's clock runs back"));
                }
                self.clock = Some(clock_bytes(clock)?);
                Ok(())
            }
            _ => Err(protocol("a part came that does not belong to pages")),
        }
    }

    fn start(&mut self, started: &Started<'_>) -> Result<(), ArchiveError> {
        let cursor = started.cursor;
        if Some(cursor.next) != self.next.checked_add(started.lost) || cursor.end > i64::MAX as u64 {
            return Err(protocol(format!(
                "row {} was asked for, and the board begins at row {} of {}",
                self.next, cursor.next, cursor.end
            )));
        }
        let kinds: Vec<ColumnType> = schema::kinds(&started.columns).collect();
        if kinds.first() != Some(&ColumnType::Timestamp) {
            return Err(protocol("the first column of a table is not its time"));
        }
        let mut columns = vec![0; BODY_BYTES_MAX];
        let length = message::write(&started.columns, &mut columns)
            .map_err(|_| protocol("the columns do not fit a frame"))?;
        columns.truncate(length);
        let schema_hash = schema::hash(started.columns.iter().map(|column| (column.name, column.kind)));
        self.head = Some(Head { columns, kinds, schema_hash, end: cursor.end, lost: started.lost });
        self.lose(started.lost);
        Ok(())
    }

    fn lose(&mut self, rows: u64) {
        if rows > 0 {
            self.next += rows;
            self.pieces.push(Piece::Lost(rows));
        }
    }

    /// A page of `count` rows of the stream, before which `lost` were overwritten.
    pub(super) fn page(&mut self, count: u16, bytes: &[u8], lost: u64) -> Result<(), ArchiveError> {
        let next = self.next;
        let Some(head) = &mut self.head else { return Err(protocol("a page came before its columns")) };
        if self.clock.is_none() {
            return Err(protocol("a page came before its clock"));
        }
        let first = next.checked_add(lost).filter(|first| *first < head.end);
        let first = first.ok_or_else(|| protocol("more rows are lost than the stream has"))?;
        let page = Page::read(bytes).map_err(|error| protocol(format!("a page is not one: {error:?}")))?;
        page.check(head.kinds.iter().copied())
            .map_err(|error| protocol(format!("rows of a page cannot be read: {error:?}")))?;
        if page.schema_hash() != head.schema_hash {
            return Err(protocol("a page has other columns than its table"));
        }
        let rows = page.next_row_id().min(head.end).checked_sub(first);
        // A page is either a whole one, or the rest of one whose beginning was read before.
        let is_next = page.first_row_id() <= first && (lost == 0 || page.first_row_id() == first);
        let is_next = is_next && i64::try_from(page.next_row_id()).is_ok();
        if !is_next || rows != Some(u64::from(count)) || count == 0 {
            return Err(protocol(format!(
                "a page has rows {} to {}, and row {first} must come next",
                page.first_row_id(),
                page.next_row_id()
            )));
        }
        head.lost += lost;
        let (page_next, page_bytes) = (page.next_row_id(), page.bytes());
        self.lose(lost);
        self.next = page_next;
        self.bytes += page_bytes.len();
        self.pages += 1;
        self.pieces.push(Piece::Page(page_bytes.into()));
        Ok(())
    }

    /// A page whose rows are all of the stream but those that came before.
    pub(super) fn next_page(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let next = Page::read(bytes).map(|page| page.next_row_id()).unwrap_or_default();
        let count = next.checked_sub(self.next).and_then(|count| u16::try_from(count).ok());
        self.page(count.unwrap_or_default(), bytes, 0)
    }

    /// The end of the stream, in which `rows_lost` were lost in all.
    pub(super) fn end(&mut self, rows_lost: u64) -> Result<(), ArchiveError> {
        let Some(head) = &self.head else { return Err(protocol("a stream ended before it began")) };
        let untold = rows_lost.checked_sub(head.lost);
        let untold = untold.ok_or_else(|| protocol("fewer rows are lost than the board has told"))?;
        let end = head.end;
        if self.next.checked_add(untold).is_none_or(|next| next < end || untold > 0 && next != end) {
            return Err(protocol(format!(
                "the stream ended at row {} and {untold} lost, not at {end}",
                self.next
            )));
        }
        self.lose(untold);
        Ok(())
    }

    /// What has come since the last batch; none before head and clock.
    pub(super) fn take_batch(&mut self) -> Option<Batch> {
        let (head, clock) = (self.head.as_ref()?, self.clock.as_ref()?);
        let batch = Batch {
            key: self.key.clone(),
            columns: head.columns.clone(),
            clock: clock.clone(),
            from: self.batch_from,
            pieces: std::mem::take(&mut self.pieces),
        };
        (self.batch_from, self.bytes) = (self.next, 0);
        Some(batch)
    }
}

/// A clock as it travels and is kept.
pub(super) fn clock_bytes(clock: &UtcClock) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = vec![0; BODY_BYTES_MAX];
    let length = message::write(clock, &mut bytes).map_err(|_| protocol("a clock does not fit a frame"))?;
    bytes.truncate(length);
    Ok(bytes)
}
