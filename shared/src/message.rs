//! What travels in the bodies of frames: postcard, append-only.
//!
//! ```text
//!   kind            from    request  sequence          body
//!   0x01 HELLO      bridge  0        0                 BridgeHello
//!   0x02 OPEN       bridge  r        credit            Open            begins r, or resumes it in a new generation
//!   0x03 CREDIT     bridge  r        credit            –               frames below this sequence may be sent
//!   0x04 CLOSE      bridge  r        0                 –               r is finished with, answered or not
//!   0x05 PING       bridge  0        nonce             Open requests   the board closes all others
//!   0x06 RECALL     bridge  r        credit            –               send the answer to r again, never do r again
//!   0x81 HELLO      board   0        0                 BoardHello
//!   0x82 PART       board   r        n                 Part
//!   0x83 ROWS       board   r        n                 RowsHead, then rows (rowcode) or a page up to the end
//!   0x84 END        board   r        n                 End
//!   0x85 PONG       board   0        nonce             Progress of each request that is open
//!   0x86 UNKNOWN    board   r        the kind          –               a frame of a kind the board does not know
//! ```
//!
//! Fields are only ever added at the end of a struct and variants at the end of an enum; a reader takes the fields
//! it knows and leaves the rest of the body alone.

use crate::{
    clock::UtcClock,
    engine::RowSink,
    limits::{BODY_BYTES_MAX, COMMAND_BYTES_MAX, HINT_BYTES_MAX, PAGE_BYTES, REQUESTS_MAX},
    rowcode::{RowEncoder, RowError},
    schema::Columns,
    value::{ColumnType, Value},
};
use core::fmt;
use serde::{Deserialize, Serialize};

/// The kinds of frames; see the table above.
pub mod kind {
    /// The bridge begins a session.
    pub const BRIDGE_HELLO: u8 = 0x01;
    /// The bridge opens or resumes a request.
    pub const OPEN: u8 = 0x02;
    /// The bridge has room for more.
    pub const CREDIT: u8 = 0x03;
    /// The bridge is done with a request.
    pub const CLOSE: u8 = 0x04;
    /// The bridge asks whether the board is there and how far its requests are.
    pub const PING: u8 = 0x05;
    /// The bridge wants an answer again without the request being run again.
    pub const RECALL: u8 = 0x06;
    /// The board introduces itself.
    pub const BOARD_HELLO: u8 = 0x81;
    /// A part of an answer.
    pub const PART: u8 = 0x82;
    /// A batch of rows.
    pub const ROWS: u8 = 0x83;
    /// The end of an answer.
    pub const END: u8 = 0x84;
    /// The answer to a ping.
    pub const PONG: u8 = 0x85;
    /// The board does not know a kind.
    pub const UNKNOWN: u8 = 0x86;
}

/// What a side can do beyond the wire version, one bit each.
pub mod feature {
    /// The board streams test rows ([`super::Request::LinkTest`]).
    pub const LINK_TEST: u32 = 1 << 0;
    /// The board sends pages as they are ([`super::Request::Pages`]).
    pub const PAGES: u32 = 1 << 1;
}

/// The bridge begins a session; whatever was open before is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeHello {
    /// The oldest version the bridge speaks.
    pub version_min: u8,
    /// The newest version the bridge speaks.
    pub version_max: u8,
    /// Names this session; the board's hello repeats it. Never 0.
    pub nonce: u32,
    /// Bits of [`feature`].
    pub features: u32,
    /// Bytes of body the bridge can take in one frame.
    pub body_bytes_max: u16,
    /// The epoch for a board that cannot draw one by itself. Never 0.
    pub epoch_offer: u64,
}

/// The board introduces itself: in answer to the bridge's hello, at its start, and to any frame without a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardHello<'a> {
    /// The oldest version the board speaks.
    pub version_min: u8,
    /// The newest version the board speaks.
    pub version_max: u8,
    /// The session that is begun with this, 0 for none.
    pub nonce: u32,
    /// Bits of [`feature`].
    pub features: u32,
    /// Bytes of body the board can take in one frame.
    pub body_bytes_max: u16,
    /// Requests the board keeps open at once on this link.
    pub requests_max: u8,
    /// The chip's own id.
    pub board_id: &'a [u8],
    /// Random number of this boot, 0 while it has none.
    pub epoch: u64,
    /// How often the board has started, for display.
    pub boot_count: u32,
    /// Changes when a table or a column does.
    pub catalog_hash: u64,
    /// The firmware's name and version.
    pub build: &'a str,
}

/// Which requests go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// Somebody waits for it.
    Interactive,
    /// It has time: sent only when no interactive request has anything to send.
    Background,
}

/// Where a stream of rows goes on: rows from `next` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The first row that has not been received.
    pub next: u64,
    /// The row at which the stream was bound to end when it began.
    pub end: u64,
    /// Rows of the answer that came before `next`: a scan passes more than it answers with, and a LIMIT counts these.
    pub rows: u64,
}

/// Begins a request, or resumes it in a new generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open<'a> {
    /// Which requests go first.
    pub class: Class,
    /// Where to go on; none begins at the beginning.
    pub cursor: Option<Cursor>,
    /// What is asked.
    #[serde(borrow)]
    pub request: Request<'a>,
}

/// What is asked of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request<'a> {
    /// A line of the command language.
    Command(&'a str),
    /// It is now this many microseconds since 1970-01-01 UTC.
    SetTime(i64),
    /// Stream this many made-up rows, to measure the link.
    LinkTest(LinkTest),
    /// Send the pages of a table as they are, for an archive.
    #[serde(borrow)]
    Pages(Pages<'a>),
}

impl Request<'_> {
    /// Whether asking twice does the same as asking once. What does not is sent at most once.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Request::Command(text) => {
                crate::command::parse(text).is_ok_and(|command| command.is_repeatable())
            }
            Request::SetTime(_) => false, // late, it would set a time that is past
            Request::LinkTest(_) | Request::Pages(_) => true,
        }
    }
}

/// Made-up rows, the same for the same seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTest {
    /// How many.
    pub rows: u32,
    /// What they are made from.
    pub seed: u32,
}

/// The pages of one table from one row on.
///
/// The answer is [`Part::Started`] with the table's columns, [`Part::Clock`], then a page in each [`kind::ROWS`] frame,
/// header and all. The first page may begin before the row, and the last may hold rows that came after `Started`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages<'a> {
    /// The database.
    pub dbms: &'a str,
    /// The table.
    pub table: &'a str,
    /// The boot whose rows are meant: numbers of rows of another mean nothing.
    pub epoch: u64,
    /// The first row that is wanted.
    pub from: u64,
    /// An archive has every row before `from` for good.
    pub acknowledges: bool,
}

/// A piece of an answer that is not rows.
#[expect(clippy::large_enum_variant, reason = "there is no heap to put the columns on")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Part<'a> {
    /// A stream of rows begins, or goes on in a new generation.
    #[serde(borrow)]
    Started(Started<'a>),
    /// The answer to `get status`.
    Status(Status<'a>),
    /// The answer to `get version`.
    Version(Version<'a>),
    /// Text for a person, such as a line of help.
    Text(&'a str),
    /// How the times in pages become dates.
    Clock(UtcClock),
}

/// What the rows that follow are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started<'a> {
    /// The columns of every row.
    #[serde(borrow)]
    pub columns: Columns<'a>,
    /// The first row that follows, the row at which this stream will end, and how many of the answer came before.
    pub cursor: Cursor,
    /// Rows that were overwritten before they could be sent, since the stream's cursor.
    pub lost: u64,
    /// Whether timestamps are UTC; where nobody has set the clock they count from the board's start.
    pub clock_set: bool,
}

/// In front of a batch of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsHead {
    /// How many rows follow.
    pub count: u16,
    /// Where the stream goes on after them.
    pub next: u64,
    /// Rows that were overwritten before they could be sent, since the batch or the head before.
    pub lost: u64,
}

/// Why the board started last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResetReason {
    /// It cannot be told.
    Unknown,
    /// The power came on.
    PowerOn,
    /// Somebody asked for it: a reset pin, a debugger, a command.
    Requested,
    /// The watchdog bit.
    Watchdog,
    /// The firmware panicked.
    Panic,
}

impl ResetReason {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            ResetReason::Unknown => "unknown",
            ResetReason::PowerOn => "power on",
            ResetReason::Requested => "requested",
            ResetReason::Watchdog => "watchdog",
            ResetReason::Panic => "panic",
        }
    }
}

/// How the board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status<'a> {
    /// The kind of board.
    pub board: &'a str,
    /// Microseconds since it started.
    pub uptime_us: u64,
    /// Microseconds since 1970-01-01 UTC; none while the clock is not set.
    pub utc_us: Option<i64>,
    /// How often it has started.
    pub boot_count: u32,
    /// How often it has panicked.
    pub panic_count: u32,
    /// Why it started last.
    pub reset_reason: ResetReason,
    /// The most stack that was ever used, in bytes; 0 where it is not measured.
    pub stack_bytes_used_max: u32,
    /// The stack there is, in bytes; 0 where it is not measured.
    pub stack_bytes: u32,
    /// What the link has seen on which this was asked.
    pub link: LinkCounters,
    /// Tables there are.
    pub tables: u16,
    /// Rows that all tables hold.
    pub rows: u64,
    /// Rows that were overwritten before an archive had them.
    pub rows_overwritten_unread: u64,
    /// Queries that are running.
    pub queries: u8,
    /// Rows that samplers should have made and no table has: they came too late, or the row was refused.
    pub rows_missed: u64,
}

/// What one link has seen on its present connection; the next one counts from 0. On a serial line, which never closes,
/// a connection lasts until the bridge has been quiet for too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Sessions that were begun.
    pub sessions: u64,
    /// Whole frames that came in.
    pub frames_in: u64,
    /// Frames that came in damaged.
    pub frames_damaged: u64,
    /// Frames that went out.
    pub frames_out: u64,
    /// Requests that were resumed.
    pub resumes: u64,
}

/// What the board runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version<'a> {
    /// The firmware's name and version.
    pub build: &'a str,
    /// The kind of board.
    pub board: &'a str,
    /// The oldest wire version it speaks.
    pub wire_min: u8,
    /// The newest wire version it speaks.
    pub wire_max: u8,
}

/// How an answer ended.
pub type End<'a> = Result<Done, WireError<'a>>;

/// An answer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Rows sent in this generation.
    pub rows: u64,
    /// Rows that were overwritten before they could be sent, since the last batch or the head.
    pub lost: u64,
}

/// What went wrong, for programs. Append-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorCode {
    /// The board does not know this request.
    Unsupported,
    /// The board has as many requests open as it can.
    Busy,
    /// The board never saw the request it was asked about; it was not run.
    NotExecuted,
    /// The command is not one.
    UnknownCommand,
    /// The command is not written as it should be.
    Syntax,
    /// A value is not one that can be taken.
    Value,
    /// The command is longer than can be taken.
    TooLong,
    /// The cursor is not one of this stream.
    Cursor,
    /// More is needed than a bound allows; the hint names the bound.
    Capacity,
    /// There is no such database.
    UnknownDatabase,
    /// There is no such table.
    UnknownTable,
    /// There is no such column.
    UnknownColumn,
    /// A value of another type is needed here.
    Type,
    /// A number is too large for what is computed.
    Overflow,
    /// Something of this name is there already.
    Exists,
    /// What is stored cannot be read.
    Damaged,
    /// The board may have run the request it was asked about, and has no answer any more.
    Forgotten,
}

impl ErrorCode {
    /// The code as programs and people see it.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorCode::Unsupported => "unsupported",
            ErrorCode::Busy => "busy",
            ErrorCode::NotExecuted => "not_executed",
            ErrorCode::UnknownCommand => "unknown_command",
            ErrorCode::Syntax => "syntax",
            ErrorCode::Value => "value",
            ErrorCode::TooLong => "too_long",
            ErrorCode::Cursor => "cursor",
            ErrorCode::Capacity => "capacity",
            ErrorCode::UnknownDatabase => "unknown_database",
            ErrorCode::UnknownTable => "unknown_table",
            ErrorCode::UnknownColumn => "unknown_column",
            ErrorCode::Type => "type",
            ErrorCode::Overflow => "overflow",
            ErrorCode::Exists => "exists",
            ErrorCode::Damaged => "damaged",
            ErrorCode::Forgotten => "forgotten",
        }
    }
}

/// What went wrong, as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireError<'a> {
    /// What went wrong.
    pub code: ErrorCode,
    /// The byte of the command where it went wrong, 0 where that says nothing.
    pub position: u16,
    /// What was expected or what to do.
    pub hint: &'a str,
}

/// A [`WireError`] that is kept: what the board's parts return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub code: ErrorCode,
    /// The byte of the command where it went wrong.
    pub position: u16,
    /// What was expected or what to do; cut at [`HINT_BYTES_MAX`].
    pub hint: heapless::String<HINT_BYTES_MAX>,
}

impl Failure {
    /// A failure at a position of the command.
    pub fn new(code: ErrorCode, position: usize, hint: fmt::Arguments<'_>) -> Self {
        struct Cut<'s>(&'s mut heapless::String<HINT_BYTES_MAX>);
        impl fmt::Write for Cut<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                let room = HINT_BYTES_MAX - self.0.len();
                let cut = text.floor_char_boundary(room.min(text.len()));
                self.0.push_str(&text[..cut]).map_err(|_| fmt::Error)
            }
        }
        let mut text = heapless::String::new();
        // A hint that does not fit is cut: an error of the formatter cannot mean anything else here.
        let _ = fmt::Write::write_fmt(&mut Cut(&mut text), hint);
        Self { code, position: u16::try_from(position).unwrap_or(u16::MAX), hint: text }
    }

    /// The same in a text that begins `offset` bytes further on.
    pub fn shifted(mut self, offset: usize) -> Self {
        let position = usize::from(self.position).saturating_add(offset);
        self.position = u16::try_from(position).unwrap_or(u16::MAX);
        self
    }

    /// As it travels.
    pub fn as_wire(&self) -> WireError<'_> {
        WireError { code: self.code, position: self.position, hint: &self.hint }
    }
}

/// The requests the bridge has open, in a ping.
pub type OpenRequests = heapless::Vec<u16, REQUESTS_MAX>;

/// How far the board has come with a request, in a pong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Which request.
    pub request: u16,
    /// Its generation on the board.
    pub generation: u8,
    /// The sequence of the next frame: all below it were sent before this pong.
    pub sequence: u32,
}

/// One [`Progress`] for each request the board has open.
pub type ProgressList = heapless::Vec<Progress, REQUESTS_MAX>;

/// The body is longer than a frame's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyTooLong;

/// Writes a message to the front of `body`; returns how many bytes it took.
pub fn write<T: Serialize>(message: &T, body: &mut [u8]) -> Result<usize, BodyTooLong> {
    postcard::to_slice(message, body).map(|used| used.len()).map_err(|_| BodyTooLong)
}

/// Reads a message from the front of `body`; what newer versions added behind it is left alone.
pub fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    postcard::take_from_bytes(body).ok().map(|(message, _)| message)
}

/// Reads the head of a batch and the rows behind it.
pub fn read_rows(body: &[u8]) -> Option<(RowsHead, &[u8])> {
    postcard::take_from_bytes(body).ok()
}

/// Fills the body of a [`kind::ROWS`] frame row by row, in place.
#[derive(Debug)]
pub struct RowsWriter<'b> {
    body: &'b mut [u8],
    encoder: RowEncoder,
    bits: usize,
    count: u16,
}

/// Fills the body of a [`kind::ROWS`] frame with a page; returns the bytes of the body.
pub fn write_page(head: &RowsHead, page: &[u8], body: &mut [u8]) -> Result<usize, BodyTooLong> {
    let head_bytes = write(head, body)?;
    let room = body.get_mut(head_bytes..head_bytes + page.len()).ok_or(BodyTooLong)?;
    room.copy_from_slice(page);
    Ok(head_bytes + page.len())
}

/// The most a [`RowsHead`] takes: a varint of 16 bits and two of 64.
const ROWS_HEAD_BYTES_MAX: usize = 3 + 10 + 10;

impl<'b> RowsWriter<'b> {
    /// Begins a batch of rows of these columns in `body`.
    pub fn new(body: &'b mut [u8], kinds: impl IntoIterator<Item = ColumnType>) -> Self {
        Self { body, encoder: RowEncoder::new(kinds), bits: 0, count: 0 }
    }

    /// Appends one row. A row that fails leaves no trace.
    pub fn push(&mut self, cells: &[Value]) -> Result<(), RowError> {
        let count = self.count.checked_add(1).ok_or(RowError::Full)?;
        let room = self.body.get_mut(ROWS_HEAD_BYTES_MAX..).unwrap_or_default();
        self.encoder.append(cells, room, &mut self.bits)?;
        self.count = count;
        Ok(())
    }

    /// How many rows there are.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Ends the batch, before which `lost` rows are missing; returns the bytes of the body.
    pub fn finish(self, next: u64, lost: u64) -> Result<usize, BodyTooLong> {
        let head = RowsHead { count: self.count, next, lost };
        let head_bytes = write(&head, self.body)?;
        let row_bytes = self.bits.div_ceil(8);
        if row_bytes > 0 {
            self.body.copy_within(ROWS_HEAD_BYTES_MAX..ROWS_HEAD_BYTES_MAX + row_bytes, head_bytes);
        }
        Ok(head_bytes + row_bytes)
    }
}

impl RowSink for RowsWriter<'_> {
    fn push(&mut self, cells: &[Value<'_>]) -> Result<(), RowError> {
        RowsWriter::push(self, cells)
    }
}

const _: () = assert!(COMMAND_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(PAGE_BYTES + ROWS_HEAD_BYTES_MAX <= BODY_BYTES_MAX);
