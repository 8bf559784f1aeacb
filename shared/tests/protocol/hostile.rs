//! A board that breaks the protocol, by fault or on purpose: its request ends, nothing panics, no row comes twice.

use crate::world::{Ended, World, stream};
use shared::{
    frame::{FrameBuffer, Header},
    limits::{CREDIT_BATCHES_MAX, WIRE_BYTES_MAX},
    link_test,
    message::{self, Cursor, End, ErrorCode, Part, RowsHead, Started, WireError, kind},
};

fn frame<T: serde::Serialize>(header: Header, message: &T) -> Vec<u8> {
    let mut frame = FrameBuffer::default();
    let mut out = [0; WIRE_BYTES_MAX];
    let len = message::write(message, frame.body()).unwrap();
    let len = frame.seal(header, len, &mut out);
    out[..len].to_vec()
}

fn started(next: u64, lost: u64) -> Part<'static> {
    let columns = link_test::COLUMNS.into_iter().collect();
    Part::Started(Started { columns, cursor: Cursor { next, end: 50_000, rows: 0 }, lost, clock_set: true })
}

/// A world whose caller holds as many batches as it may, and the stream they are of.
fn full() -> (World, u16) {
    let mut world = World::up();
    world.consumes = false;
    let request = world.ask(stream(50_000));
    world.run_for_us(100_000);
    assert_eq!(world.answer(request).parts, CREDIT_BATCHES_MAX);
    (world, request)
}

#[test]
fn a_board_that_sends_more_than_it_may_is_stopped() {
    let (mut world, request) = full();
    for sequence in CREDIT_BATCHES_MAX..100 {
        let header = Header { kind: kind::ROWS, generation: 0, request, sequence };
        world.hear(&frame(header, &RowsHead { count: 0, next: 50_000, lost: 0 }));
    }
    assert!(matches!(world.ended(request), Some(Ended::Protocol(_))), "{:?}", world.ended(request));
    assert_eq!(world.answer(request).parts, CREDIT_BATCHES_MAX);
}

#[test]
fn a_refusal_needs_no_credit() {
    let (mut world, request) = full();
    world.cut();
    world.plug();
    world.run_for_us(100_000); // resumed, with no credit: the caller has still done with nothing
    let header = Header { kind: kind::END, generation: 1, request, sequence: 0 };
    let refusal = |code| End::Err(WireError { code, position: 0, hint: "" });
    world.hear(&frame(header, &refusal(ErrorCode::Busy)));
    assert_eq!(world.ended(request), None);
    world.consumes = true;
    world.host.consumed(request, CREDIT_BATCHES_MAX);
    assert_eq!(world.end_of(request), Ended::Done { rows_lost: 0 });
    assert_eq!(world.answer(request).rows, Vec::from_iter(0..50_000));
}

#[test]
fn a_resumed_stream_that_goes_back_is_stopped() {
    let mut world = World::up();
    let request = world.ask(stream(50_000));
    world.run_until(1_000_000, |world| world.answer(request).rows.len() > 100);
    world.cut();
    let rows = world.answer(request).rows.len();
    world.plug();
    world.fate(|_, header| match header.kind {
        kind::PART | kind::ROWS => crate::world::Fate::Lost,
        _ => crate::world::Fate::Arrives,
    });
    world.run_until(1_000_000, |world| world.count(kind::PART) > 1);
    let generation = world.sent.iter().rev().find(|s| s.header.kind == kind::PART).unwrap().header.generation;
    world.hear(&frame(Header { kind: kind::PART, generation, request, sequence: 0 }, &started(0, 0)));
    assert!(matches!(world.ended(request), Some(Ended::Protocol(_))), "{:?}", world.ended(request));
    assert_eq!(world.answer(request).rows.len(), rows);
}

#[test]
fn a_stream_that_counts_other_rows_before_it_is_stopped() {
    let mut world = World::up();
    let request = world.ask(stream(50_000));
    world.fate(|_, header| match header.kind {
        kind::PART | kind::ROWS => crate::world::Fate::Lost,
        _ => crate::world::Fate::Arrives,
    });
    world.run_until(1_000_000, |world| world.count(kind::PART) > 0);
    let Part::Started(mut forged) = started(0, 0) else { panic!() };
    forged.cursor.rows = 7;
    let header = Header { kind: kind::PART, generation: 0, request, sequence: 0 };
    world.hear(&frame(header, &Part::Started(forged)));
    assert!(matches!(world.ended(request), Some(Ended::Protocol(_))), "{:?}", world.ended(request));
}

#[test]
fn a_board_that_has_lost_more_rows_than_can_be_counted_does_no_harm() {
    let mut world = World::up();
    let request = world.ask(stream(50_000));
    world.fate(|_, header| match header.kind {
        kind::PART | kind::ROWS => crate::world::Fate::Lost,
        _ => crate::world::Fate::Arrives,
    });
    world.run_until(1_000_000, |world| world.count(kind::PART) > 0);
    for sequence in 0..3 {
        let header = Header { kind: kind::PART, generation: 0, request, sequence };
        world.hear(&frame(header, &started(0, u64::MAX)));
    }
}
