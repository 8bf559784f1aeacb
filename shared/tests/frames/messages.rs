//! Every message and every row arrives as it was; bytes that are none are refused.

use crate::contents::{self, COLUMN_TYPES, are_same};
use proptest::{collection::vec, option, prelude::*, sample::select, strategy::Union};
use serde::{Deserialize, Serialize};
use shared::{
    limits::{BODY_BYTES_MAX, COLUMNS_MAX, COMMAND_BYTES_MAX, REQUESTS_MAX},
    message::{
        self, BoardHello, BridgeHello, Class, Cursor, Done, End, ErrorCode, LinkCounters, LinkTest, Open,
        OpenRequests, Pages, Part, Progress, ProgressList, Request, ResetReason, RowsHead, RowsWriter,
        Started, Status, Version, WireError,
    },
    rowcode::RowDecoder,
    schema::Column,
    value::{ColumnType, Value},
};
use std::fmt::Debug;

/// `message` comes back as it was, also with what a newer version adds behind it, and never from a part of it.
fn assert_returns<'a, T>(message: &T, body: &'a mut [u8])
where
    T: Serialize + Deserialize<'a> + PartialEq + Debug,
{
    let len = message::write(message, body).expect("the message fits a body");
    let body: &'a [u8] = body;
    assert_eq!(message::read::<T>(&body[..len]).as_ref(), Some(message));
    assert_eq!(message::read::<T>(body).as_ref(), Some(message));
    for cut in 0..len {
        assert_eq!(message::read::<T>(&body[..cut]), None, "cut at {cut} of {len}");
    }
}

/// Room for a body; what a message leaves of it is like fields that are not known yet.
fn room() -> [u8; BODY_BYTES_MAX] {
    [0x81; BODY_BYTES_MAX]
}

fn cursor() -> impl Strategy<Value = Cursor> {
    any::<(u64, u64, u64)>().prop_map(|(next, end, rows)| Cursor { next, end, rows })
}

/// A text of up to so many characters.
fn text(chars_max: usize) -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..=chars_max).prop_map(String::from_iter)
}

const ERROR_CODES: [ErrorCode; 17] = [
    ErrorCode::Unsupported,
    ErrorCode::Busy,
    ErrorCode::NotExecuted,
    ErrorCode::UnknownCommand,
    ErrorCode::Syntax,
    ErrorCode::Value,
    ErrorCode::TooLong,
    ErrorCode::Cursor,
    ErrorCode::Capacity,
    ErrorCode::UnknownDatabase,
    ErrorCode::UnknownTable,
    ErrorCode::UnknownColumn,
    ErrorCode::Type,
    ErrorCode::Overflow,
    ErrorCode::Exists,
    ErrorCode::Damaged,
    ErrorCode::Forgotten,
];

const RESET_REASONS: [ResetReason; 5] = [
    ResetReason::Unknown,
    ResetReason::PowerOn,
    ResetReason::Requested,
    ResetReason::Watchdog,
    ResetReason::Panic,
];

/// A cell that owns its text.
#[derive(Clone, Debug)]
enum Cell {
    Plain(Value<'static>),
    Text(String),
}

impl Cell {
    fn value(&self) -> Value<'_> {
        match self {
            Cell::Plain(value) => *value,
            Cell::Text(text) => Value::Text(text),
        }
    }
}

fn cell(kind: ColumnType) -> Union<BoxedStrategy<Cell>> {
    let plain = |value| Cell::Plain(value);
    let full = match kind {
        ColumnType::Bool => any::<bool>().prop_map(move |v| plain(Value::Bool(v))).boxed(),
        ColumnType::Int => any::<i64>().prop_map(move |v| plain(Value::Int(v))).boxed(),
        ColumnType::Timestamp => any::<i64>().prop_map(move |v| plain(Value::Timestamp(v))).boxed(),
        ColumnType::Float32 => {
            any::<u32>().prop_map(move |v| plain(Value::Float32(f32::from_bits(v)))).boxed()
        }
        ColumnType::Float64 => {
            any::<u64>().prop_map(move |v| plain(Value::Float64(f64::from_bits(v)))).boxed()
        }
        ColumnType::Text => text(12).prop_map(Cell::Text).boxed(),
    };
    Union::new_weighted(vec![(1, Just(Cell::Plain(Value::Null)).boxed()), (4, full)])
}

/// Columns, and rows of them.
fn table() -> impl Strategy<Value = (Vec<ColumnType>, Vec<Vec<Cell>>)> {
    vec(select(&COLUMN_TYPES[..]), 1..=COLUMNS_MAX).prop_flat_map(|kinds| {
        let row: Vec<_> = kinds.iter().copied().map(cell).collect();
        (Just(kinds), vec(row, 0..12))
    })
}

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn any_bytes_are_read_without_harm(bytes in vec(any::<u8>(), 0..=BODY_BYTES_MAX)) {
        contents::check(&bytes);
    }

    /// Small numbers are tags, short lengths and ends of varints: such bytes are messages more often.
    #[test]
    fn bytes_that_are_nearly_messages_are_read_without_harm(
        bytes in vec(prop_oneof![0_u8..6, 0_u8..0x80, any::<u8>()], 0..120),
    ) {
        contents::check(&bytes);
    }

    #[test]
    fn a_bridges_hello_returns(
        (version_min, version_max, nonce) in any::<(u8, u8, u32)>(),
        (features, body_bytes_max, epoch_offer) in any::<(u32, u16, u64)>(),
    ) {
        let hello = BridgeHello { version_min, version_max, nonce, features, body_bytes_max, epoch_offer };
        assert_returns(&hello, &mut room());
    }

    #[test]
    fn a_boards_hello_returns(
        (version_min, version_max, nonce, features) in any::<(u8, u8, u32, u32)>(),
        (body_bytes_max, requests_max, epoch) in any::<(u16, u8, u64)>(),
        (boot_count, catalog_hash) in any::<(u32, u64)>(),
        board_id in vec(any::<u8>(), 0..32),
        build in text(48),
    ) {
        let hello = BoardHello {
            version_min,
            version_max,
            nonce,
            features,
            body_bytes_max,
            requests_max,
            board_id: &board_id,
            epoch,
            boot_count,
            catalog_hash,
            build: &build,
        };
        assert_returns(&hello, &mut room());
    }

    #[test]
    fn a_request_returns(
        class in select(&[Class::Interactive, Class::Background][..]),
        cursor in option::of(cursor()),
        command in text(COMMAND_BYTES_MAX / 4),
        (utc_us, rows, seed) in any::<(i64, u32, u32)>(),
        (epoch, from, acknowledges) in any::<(u64, u64, bool)>(),
    ) {
        let link_test = Request::LinkTest(LinkTest { rows, seed });
        let pages = Request::Pages(Pages { dbms: "demo", table: "power", epoch, from, acknowledges });
        for request in [Request::Command(&command), Request::SetTime(utc_us), link_test, pages] {
            assert_returns(&Open { class, cursor, request }, &mut room());
        }
    }

    #[test]
    fn the_head_of_a_stream_returns(
        columns in vec((text(4), select(&COLUMN_TYPES[..]), text(2)), 0..=COLUMNS_MAX),
        cursor in cursor(),
        (lost, clock_set) in any::<(u64, bool)>(),
    ) {
        let columns = columns.iter().map(|(name, kind, unit)| Column { name, kind: *kind, unit }).collect();
        assert_returns(&Part::Started(Started { columns, cursor, lost, clock_set }), &mut room());
    }

    #[test]
    fn what_a_board_says_of_itself_returns(
        (board, build) in (text(32), text(32)),
        (uptime_us, utc_us, boot_count, panic_count) in any::<(u64, Option<i64>, u32, u32)>(),
        reset_reason in select(&RESET_REASONS[..]),
        (stack_bytes_used_max, stack_bytes, wire_min, wire_max) in any::<(u32, u32, u8, u8)>(),
        (sessions, frames_in, frames_damaged, frames_out, resumes) in any::<(u64, u64, u64, u64, u64)>(),
        (tables, rows, rows_overwritten_unread, queries, rows_missed) in any::<(u16, u64, u64, u8, u64)>(),
    ) {
        let link = LinkCounters { sessions, frames_in, frames_damaged, frames_out, resumes };
        let status = Status {
            board: &board,
            uptime_us,
            utc_us,
            boot_count,
            panic_count,
            reset_reason,
            stack_bytes_used_max,
            stack_bytes,
            link,
            tables,
            rows,
            rows_overwritten_unread,
            queries,
            rows_missed,
        };
        assert_returns(&Part::Status(status), &mut room());
        let version = Version { build: &build, board: &board, wire_min, wire_max };
        assert_returns(&Part::Version(version), &mut room());
        assert_returns(&Part::Text(&build), &mut room());
    }

    #[test]
    fn an_end_returns(
        rows in any::<u64>(),
        code in select(&ERROR_CODES[..]),
        position in any::<u16>(),
        hint in text(64),
    ) {
        assert_returns(&End::Ok(Done { rows, lost: rows / 2 }), &mut room());
        assert_returns(&End::Err(WireError { code, position, hint: &hint }), &mut room());
    }

    #[test]
    fn a_ping_and_its_pong_return(progress in vec(any::<(u16, u8, u32)>(), 0..=REQUESTS_MAX)) {
        let open: OpenRequests = progress.iter().map(|(request, ..)| *request).collect();
        assert_returns(&open, &mut room());
        let progress: ProgressList = progress
            .into_iter()
            .map(|(request, generation, sequence)| Progress { request, generation, sequence })
            .collect();
        assert_returns(&progress, &mut room());
    }

    #[test]
    fn rows_return_as_they_were((kinds, rows) in table(), next in any::<u64>()) {
        let mut body = room();
        let mut writer = RowsWriter::new(&mut body, kinds.iter().copied());
        let mut written = Vec::new();
        for row in &rows {
            let cells: Vec<Value<'_>> = row.iter().map(Cell::value).collect();
            if writer.push(&cells).is_ok() {
                written.push(cells); // one that does not fit leaves no trace
            }
        }
        let len = writer.finish(next, next / 2).expect("the rows have room");
        assert_returns(&RowsHead { count: written.len() as u16, next, lost: next / 2 }, &mut room());

        let (head, bytes) = message::read_rows(&body[..len]).expect("a batch");
        prop_assert_eq!(head, RowsHead { count: written.len() as u16, next, lost: next / 2 });
        let mut reader = RowDecoder::new(kinds.iter().copied(), bytes, head.count);
        let mut cells = vec![Value::Null; kinds.len()];
        for row in written {
            prop_assert_eq!(reader.next_row(&mut cells), Ok(true));
            prop_assert!(are_same(&cells, &row), "{:?} became {:?}", row, cells);
        }
        prop_assert_eq!(reader.next_row(&mut cells), Ok(false));
    }
}
