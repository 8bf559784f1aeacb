//! Frames that are lost, damaged or doubled, one at a time: what heals, and how.

use crate::{
    board::HELP_PARTS,
    world::{Ended, Fate, HELP, STATUS, Way, World, stream},
};
use shared::{
    frame::{FrameBuffer, Header},
    limits::{CREDIT_BATCHES_MAX, REQUESTS_MAX, RESUMES_MAX, WIRE_BYTES_MAX},
    link_test::mix,
    message::{Request, kind},
};

const DONE: Ended = Ended::Done { rows_lost: 0 };

#[test]
fn a_lost_open_of_a_repeatable_request_is_asked_again() {
    let mut world = World::up();
    world.next_frame(kind::OPEN, Fate::Lost);
    let request = world.ask(STATUS);
    assert_eq!(world.end_of(request), DONE);
    assert_eq!((world.count(kind::OPEN), world.answer(request).texts.len()), (2, 1));
}

#[test]
fn a_damaged_batch_costs_a_resend_and_no_row() {
    for fate in [Fate::Lost, Fate::Damaged] {
        let mut world = World::up();
        world.next_frame(kind::ROWS, fate);
        let request = world.ask(stream(500));
        assert_eq!(world.end_of(request), DONE);
        assert_eq!(world.answer(request).rows, Vec::from_iter(0..500));
        assert_eq!(world.host.counters().resumes, 1);
    }
}

#[test]
fn any_single_frame_may_be_lost_damaged_or_doubled() {
    for fate in [Fate::Lost, Fate::Damaged, Fate::Twice] {
        for unlucky in 0.. {
            let mut world = World::new();
            let mut index = 0;
            world.fate(move |_, _| {
                index += 1;
                if index == unlucky + 1 { fate } else { Fate::Arrives }
            });
            let (rows, help, time) = (world.ask(stream(60)), world.ask(HELP), world.ask(Request::SetTime(1)));
            let ends = (world.end_of(rows), world.end_of(help));
            let unlucky_frame = world.sent.iter().find(|sent| sent.fate != Fate::Arrives).copied();
            assert_eq!(ends, (DONE, DONE), "{unlucky_frame:?}");
            assert_eq!(world.answer(rows).rows, Vec::from_iter(0..60), "{unlucky_frame:?}");
            assert_eq!(world.answer(help).texts.len() as u32, HELP_PARTS, "{unlucky_frame:?}");
            let executed = world.board.executed.get(&1).copied().unwrap_or(0);
            match world.end_of(time) {
                Ended::Done { .. } => assert_eq!(executed, 1, "{unlucky_frame:?}"),
                Ended::NotExecuted => assert_eq!(executed, 0, "{unlucky_frame:?}"),
                other => panic!("{other:?} after {unlucky_frame:?}"),
            }
            world.run_for_us(5_000_000);
            if unlucky_frame.is_none() {
                break;
            }
        }
    }
}

#[test]
fn a_lost_first_frame_of_a_stream_heals() {
    let mut world = World::up();
    world.next_frame(kind::PART, Fate::Lost);
    let request = world.ask(stream(100));
    assert_eq!(world.end_of(request), DONE);
    assert_eq!((world.answer(request).started, world.answer(request).rows.len()), (1, 100));
}

#[test]
fn a_lost_last_batch_heals() {
    let mut world = World::up();
    world.board.batch_rows = 50;
    world.fate({
        let mut lost = 0;
        move |_, header| {
            // The last batch and the end behind it: no later frame shows the gap.
            let is_last = header.generation == 0 && header.sequence >= 2 && header.kind > kind::PART;
            lost += u32::from(is_last);
            if is_last && lost <= 2 { Fate::Lost } else { Fate::Arrives }
        }
    });
    let request = world.ask(stream(100));
    assert_eq!(world.end_of(request), DONE);
    assert_eq!(world.answer(request).rows, Vec::from_iter(0..100));
}

#[test]
fn a_lost_end_of_a_stream_heals() {
    let mut world = World::up();
    world.next_frame(kind::END, Fate::Lost);
    let request = world.ask(stream(100));
    assert_eq!(world.end_of(request), DONE);
    assert_eq!(world.answer(request).rows, Vec::from_iter(0..100));
}

#[test]
fn a_lost_end_doubles_no_part() {
    let mut world = World::up();
    world.next_frame(kind::END, Fate::Lost);
    let request = world.ask(HELP);
    assert_eq!(world.end_of(request), DONE);
    assert_eq!(
        world.answer(request).texts,
        ["part 1 of 4", "part 2 of 4", "part 3 of 4", "part 4 of 4"],
        "each part comes once"
    );
}

#[test]
fn a_lost_credit_heals() {
    let mut world = World::up();
    world.fate({
        let mut credits = 0;
        move |_, header| {
            credits += u32::from(header.kind == kind::CREDIT);
            if header.kind == kind::CREDIT && credits <= 3 { Fate::Lost } else { Fate::Arrives }
        }
    });
    let request = world.ask(stream(8 * CREDIT_BATCHES_MAX * 4));
    assert_eq!(world.end_of(request), DONE);
    assert_eq!(world.answer(request).rows.len() as u32, 8 * CREDIT_BATCHES_MAX * 4);
    assert_eq!(world.host.counters().resumes, 0);
}

#[test]
fn cancelling_frees_the_slot() {
    let mut world = World::up();
    for _ in 0..3 * REQUESTS_MAX {
        let request = world.ask(stream(100_000));
        world.run_for_us(20_000);
        world.cancel(request);
        world.run_for_us(20_000);
        let rows = world.answer(request).rows.len();
        world.run_for_us(20_000);
        assert_eq!(world.answer(request).rows.len(), rows);
    }
    world.sent.clear();
    world.run_for_us(1_000_000);
    assert_eq!(world.count(kind::ROWS), 0);
}

#[test]
fn a_lost_close_is_made_up_for_by_the_next_ping() {
    let mut world = World::up();
    world.consumes = false;
    world.fate(|_, header| if header.kind == kind::CLOSE { Fate::Lost } else { Fate::Arrives });
    for _ in 0..REQUESTS_MAX {
        let request = world.ask(stream(100_000));
        world.run_for_us(100_000); // the board has used its credit and is quiet
        world.cancel(request);
    }
    world.run_for_us(5_000_000);
    world.consumes = true;
    world.sent.clear();
    let all: Vec<_> = (0..REQUESTS_MAX).map(|_| world.ask(STATUS)).collect();
    world.run_for_us(100_000);
    assert!(all.iter().all(|request| world.ended(*request) == Some(DONE)));
    let refusals = world.sent.iter().filter(|s| s.header.kind == kind::END && s.header.generation > 0);
    assert_eq!(refusals.count(), 0);
}

#[test]
fn a_board_that_is_busy_with_what_was_closed_heals() {
    let mut world = World::up();
    world.consumes = false;
    world.fate(|_, header| if header.kind == kind::CLOSE { Fate::Lost } else { Fate::Arrives });
    let closed: Vec<_> = (0..REQUESTS_MAX).map(|_| world.ask(stream(100_000))).collect();
    world.run_for_us(100_000);
    closed.into_iter().for_each(|request| world.cancel(request));
    let (status, time) = (world.ask(STATUS), world.ask(Request::SetTime(3)));
    assert_eq!((world.end_of(status), world.end_of(time)), (DONE, DONE));
    assert_eq!(world.board.executed[&3], 1);
    assert!(world.count(kind::OPEN) > REQUESTS_MAX + 2, "the board was never busy");
}

#[test]
fn a_link_that_never_lets_an_answer_through_is_given_up() {
    let mut world = World::up();
    world.fate(|way, header| match header.kind {
        kind::PONG => Fate::Arrives,
        _ if way == Way::ToHost => Fate::Lost,
        _ => Fate::Arrives,
    });
    let (status, once) = (world.ask(STATUS), world.ask(Request::SetTime(5)));
    assert_eq!((world.end_of(status), world.end_of(once)), (Ended::LinkDamaged, Ended::OutcomeUnknown));
    assert_eq!(world.count(kind::OPEN) as u32, RESUMES_MAX + 2);
    assert_eq!(world.board.executed[&5], 1);
}

#[test]
fn a_link_that_damages_every_long_frame_is_given_up() {
    let mut world = World::up();
    world.fate(|_, header| if header.kind == kind::ROWS { Fate::Damaged } else { Fate::Arrives });
    let request = world.ask(stream(1_000));
    assert_eq!(world.end_of(request), Ended::LinkDamaged);
    assert_eq!(world.answer(request).rows, []);
}

#[test]
fn a_long_stream_may_be_resumed_more_often_than_a_generation_can_count() {
    let mut world = World::up();
    let mut batches = 0;
    world.fate(move |_, header| {
        batches += u64::from(header.kind == kind::ROWS);
        if header.kind == kind::ROWS && mix(batches).is_multiple_of(3) { Fate::Lost } else { Fate::Arrives }
    });
    let request = world.ask(stream(8_000));
    assert_eq!(world.end_of(request), DONE);
    assert_eq!(world.answer(request).rows, Vec::from_iter(0..8_000));
    assert!(world.host.counters().resumes > 300);
    // Generation 0 is what begins a request: the board would take another for a copy.
    let begins = world.sent.iter().filter(|s| s.header.kind == kind::OPEN && s.header.generation == 0);
    assert_eq!(begins.count(), 1);
}

#[test]
fn rows_that_were_overwritten_are_counted_once() {
    let mut world = World::up();
    world.board.row_first = 10;
    let request = world.ask(stream(400));
    world.run_until(1_000_000, |world| world.answer(request).rows.len() >= 64);
    let have = world.answer(request).rows.len() as u64;
    // Overwritten while the stream is cut off; then twice more before a batch comes through.
    world.cut();
    world.board.row_first = 200;
    world.plug();
    let mut batches = 0;
    world.fate(move |_, header| {
        batches += u32::from(header.kind == kind::ROWS);
        if header.kind == kind::ROWS && batches < 3 { Fate::Lost } else { Fate::Arrives }
    });
    let rows_lost = 10 + 200 - (10 + have);
    assert_eq!(world.end_of(request), Ended::Done { rows_lost });
    assert_eq!(world.answer(request).rows, Vec::from_iter((10..10 + have).chain(200..400)));
}

#[test]
fn a_resumed_stream_tells_how_many_rows_came_before() {
    let mut world = World::up();
    world.board.row_first = 10;
    world.next_frame(kind::ROWS, Fate::Lost);
    let request = world.ask(stream(400));
    world.run_until(1_000_000, |world| world.answer(request).rows.len() >= 64);
    world.cut();
    let have = world.answer(request).rows.len() as u64;
    world.plug();
    assert_eq!(world.end_of(request), Ended::Done { rows_lost: 10 });
    let resumed: Vec<_> = world.board.resumed.iter().map(|cursor| (cursor.next, cursor.rows)).collect();
    assert_eq!(resumed, [(10, 0), (10 + have, have)]);
}

#[test]
fn work_is_given_back_when_its_request_is_closed_fails_or_is_forgotten() {
    let mut world = World::up();
    let requests = [world.ask(stream(50_000)), world.ask(stream(50_000)), world.ask(STATUS)];
    world.run_for_us(50_000);
    assert_eq!(world.board.works_open, 2, "the status was answered and closed");
    world.cancel(requests[0]);
    world.run_for_us(5_000);
    assert_eq!(world.board.works_open, 1);
    world.next_frame(kind::CLOSE, Fate::Lost);
    world.cancel(requests[1]);
    world.run_for_us(10_000_000);
    assert_eq!(world.board.works_open, 0, "a ping tells what the lost close did not");
    let failing = world.ask(Request::Command("get jobs"));
    assert!(matches!(world.end_of(failing), Ended::Failed(_)));
    assert_eq!(world.board.works_open, 0);
    world.ask(stream(50_000));
    world.run_for_us(20_000);
    let deadline_us = world.device.deadline_us().unwrap();
    assert!(world.device.expire(deadline_us, &mut world.board));
    assert_eq!(world.board.works_open, 0);
}

#[test]
fn frames_of_every_kind_may_come_twice() {
    let mut world = World::new();
    world.fate(|_, _| Fate::Twice);
    let requests = [world.ask(stream(2_000)), world.ask(HELP), world.ask(Request::SetTime(1))];
    for request in requests {
        assert_eq!(world.end_of(request), DONE);
    }
    world.run_for_us(10_000_000);
    assert_eq!(world.answer(requests[0]).rows, Vec::from_iter(0..2_000));
    assert_eq!(world.answer(requests[1]).texts.len() as u32, HELP_PARTS);
    assert_eq!((world.board.executed[&1], world.ups, world.host.counters().resumes), (1, 1, 0));
}

#[test]
fn a_kind_that_the_board_does_not_know_is_named() {
    let mut world = World::up();
    let mut frame = FrameBuffer::default();
    let mut out = [0; WIRE_BYTES_MAX];
    let len = frame.seal(Header { kind: 0x42, generation: 3, request: 9, sequence: 1 }, 0, &mut out);
    world.put(Way::ToBoard, &out[..len]);
    world.sent.clear();
    world.run_for_us(10_000);
    assert_eq!(world.sent.len(), 1);
    let answer = Header { kind: kind::UNKNOWN, generation: 0, request: 9, sequence: 0x42 };
    assert_eq!(world.sent[0].header, answer);
}

#[test]
fn a_request_ends_when_the_board_does_not_know_its_kind() {
    let mut world = World::up();
    let request = world.ask(stream(10_000));
    world.run_for_us(5_000);
    let mut frame = FrameBuffer::default();
    let mut out = [0; WIRE_BYTES_MAX];
    let len = frame.seal(Header { kind: 0x42, generation: 0, request, sequence: 0 }, 0, &mut out);
    world.put(Way::ToBoard, &out[..len]);
    assert!(matches!(world.end_of(request), Ended::Protocol(_)));
}
