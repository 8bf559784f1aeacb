//! Requests that must not be run twice: what their ending says is what happened.

use crate::world::{Ended, Fate, SLOW, STATUS, Way, World, stream};
use shared::{
    frame::{FrameBuffer, Header},
    limits::{REQUESTS_MAX, WIRE_BYTES_MAX},
    message::{self, Class, OpenRequests, Request, kind},
};
use std::{cell::RefCell, rc::Rc};

const DONE: Ended = Ended::Done { rows_lost: 0 };
const TIME: i64 = 1_795_000_000_000_000;
const SET_TIME: Request<'static> = Request::SetTime(TIME);

fn executed(world: &World) -> u32 {
    world.board.executed.get(&TIME).copied().unwrap_or(0)
}

#[test]
fn a_lost_open_was_not_executed() {
    for fate in [Fate::Lost, Fate::Damaged] {
        let mut world = World::up();
        world.next_frame(kind::OPEN, fate);
        let request = world.ask(SET_TIME);
        assert_eq!(world.end_of(request), Ended::NotExecuted);
        world.run_for_us(10_000_000);
        assert_eq!((executed(&world), world.count(kind::OPEN)), (0, 1));
    }
}

#[test]
fn a_lost_end_is_recalled() {
    let mut world = World::up();
    world.next_frame(kind::END, Fate::Lost);
    let request = world.ask(SET_TIME);
    assert_eq!(world.end_of(request), DONE);
    assert_eq!((executed(&world), world.count(kind::OPEN), world.count(kind::RECALL)), (1, 1, 1));
}

#[test]
fn a_recalled_answer_brings_each_part_once() {
    let mut world = World::up();
    world.next_frame(kind::END, Fate::Lost);
    let request = world.ask(Request::Command("set time = 2026-11-18T05:00:00Z"));
    assert_eq!(world.end_of(request), DONE);
    assert_eq!((world.answer(request).texts.len(), world.board.executed.len()), (1, 1));
    assert!(world.board.executed.values().all(|times| *times == 1));
}

#[test]
fn a_lost_recall_is_sent_again() {
    let mut world = World::up();
    world.fate({
        let mut lost = 0;
        move |_, header| {
            let unlucky = matches!(header.kind, kind::END | kind::RECALL) && lost < 4;
            lost += u32::from(unlucky);
            if unlucky { Fate::Lost } else { Fate::Arrives }
        }
    });
    let request = world.ask(SET_TIME);
    assert_eq!(world.end_of(request), DONE);
    assert_eq!(executed(&world), 1);
}

#[test]
fn a_link_that_is_cut_after_sending_leaves_the_outcome_unknown() {
    for is_lost in [false, true] {
        let mut world = World::up();
        world.fate(move |way, _| if is_lost || way == Way::ToHost { Fate::Lost } else { Fate::Arrives });
        let request = world.ask(SET_TIME);
        world.run_for_us(50_000);
        assert_eq!(executed(&world), u32::from(!is_lost));
        world.cut();
        assert_eq!(world.ended(request), Some(Ended::OutcomeUnknown));
        world.fate(|_, _| Fate::Arrives);
        world.plug();
        world.run_for_us(10_000_000);
        assert_eq!(executed(&world), u32::from(!is_lost));
    }
}

#[test]
fn a_board_that_restarts_leaves_the_outcome_unknown() {
    let mut world = World::up();
    world.next_frame(kind::END, Fate::Lost);
    let request = world.ask(SET_TIME);
    world.run_for_us(5_000);
    world.restart_board();
    assert_eq!(world.end_of(request), Ended::OutcomeUnknown);
    assert_eq!(executed(&world), 1);
}

#[test]
fn what_was_not_sent_before_the_link_was_cut_is_sent_on_the_next() {
    let mut world = World::up();
    let request = world.ask(SET_TIME);
    world.cut();
    assert_eq!(world.ended(request), None);
    world.plug();
    assert_eq!(world.end_of(request), DONE);
    assert_eq!(executed(&world), 1);
}

#[test]
fn the_first_open_of_a_new_request_is_not_taken_for_a_copy_after_a_long_stream_was_resumed() {
    let mut world = World::up();
    world.consumes = false;
    let long = world.ask_as(Class::Background, stream(50_000));
    world.run_for_us(100_000);
    // Far more requests than half of their numbers, then a new link.
    for _ in 0..40_000 / (REQUESTS_MAX - 1) {
        for _ in 1..REQUESTS_MAX {
            let request = world.host.open(&STATUS, Class::Interactive).unwrap();
            world.host.close(request);
        }
    }
    world.cut();
    world.plug();
    world.run_for_us(100_000);
    let request = world.ask(SET_TIME);
    assert_eq!(world.end_of(request), DONE);
    assert_eq!((executed(&world), world.ended(long)), (1, None));
}

/// Every run of `frames` frames to the board, from the one with index `first` on, comes twice.
fn double_runs(world: &mut World, frames: usize, first: usize) {
    let (mut run, mut index) = (Vec::new(), 0);
    world.mangle = Some(Box::new(move |way, frame| {
        if way == Way::ToHost {
            return frame.to_vec();
        }
        index += 1;
        if index > first {
            run.push(frame.to_vec());
        }
        let mut bytes = frame.to_vec();
        if run.len() == frames {
            bytes.extend(run.drain(..).flatten());
        }
        bytes
    }));
}

#[test]
fn a_link_that_doubles_runs_of_frames_makes_no_ending_a_lie() {
    for (frames, first) in (1..=5).flat_map(|frames| (0..frames).map(move |first| (frames, first))) {
        let mut world = World::up();
        double_runs(&mut world, frames, first);
        for time in 0..60 {
            world.board.work_steps = 400; // slow answers: there are pings between the requests
            let slow = world.ask(SLOW);
            world.run_for_us(250_000 + 7_000 * u64::try_from(time).unwrap());
            let request = world.ask(Request::SetTime(time));
            let ended = world.end_of(request);
            let executed = world.board.executed.get(&time).copied().unwrap_or(0);
            match ended {
                Ended::Done { .. } => assert_eq!(executed, 1),
                Ended::NotExecuted => assert_eq!(executed, 0, "runs of {frames} from {first} on"),
                Ended::OutcomeUnknown => assert!(executed <= 1),
                other => panic!("{other:?}"),
            }
            assert_eq!(world.end_of(slow), DONE);
        }
    }
}

#[test]
fn what_a_late_ping_made_the_board_forget_has_an_unknown_outcome() {
    let mut world = World::up();
    world.next_frame(kind::END, Fate::Lost);
    let request = world.ask(SET_TIME);
    world.run_for_us(5_000);
    let none = Header { kind: kind::PING, generation: 0, request: 0, sequence: 1 };
    let (mut frame, mut out) = (FrameBuffer::default(), [0; WIRE_BYTES_MAX]);
    let len = message::write(&OpenRequests::new(), frame.body()).unwrap();
    let len = frame.seal(none, len, &mut out);
    world.device.feed(world.now_us, &mut world.board, &out[..len]);
    assert_eq!(world.end_of(request), Ended::OutcomeUnknown);
    assert_eq!(executed(&world), 1);
}

#[test]
fn a_lost_open_was_not_executed_though_a_later_one_was() {
    let mut world = World::up();
    world.next_frame(kind::OPEN, Fate::Lost);
    let (lost, later) = (world.ask(SET_TIME), world.ask(Request::SetTime(1)));
    assert_eq!((world.end_of(lost), world.end_of(later)), (Ended::NotExecuted, DONE));
    assert_eq!((executed(&world), world.board.executed[&1]), (0, 1));
}

#[test]
fn a_copy_of_an_open_that_was_sent_again_does_nothing() {
    let mut world = World::up();
    world.consumes = false;
    world.fate(|_, header| if header.kind == kind::CLOSE { Fate::Lost } else { Fate::Arrives });
    let closed: Vec<_> = (0..REQUESTS_MAX).map(|_| world.ask(stream(100_000))).collect();
    world.run_for_us(100_000);
    closed.into_iter().for_each(|request| world.cancel(request));
    // The board is busy with what was closed, so the request is opened in generation 1; a relay keeps that frame.
    let kept = Rc::new(RefCell::new(Vec::new()));
    let keeper = Rc::clone(&kept);
    world.mangle = Some(Box::new(move |way, frame| {
        if way == Way::ToBoard {
            keeper.borrow_mut().push(frame.to_vec());
        }
        frame.to_vec()
    }));
    let request = world.ask(SET_TIME);
    assert_eq!(world.end_of(request), DONE);
    assert!(world.count(kind::OPEN) > REQUESTS_MAX + 1, "the board was never busy");
    world.run_for_us(5_000_000); // a ping has closed it on the board
    for frame in kept.take() {
        world.device.feed(world.now_us, &mut world.board, &frame);
    }
    assert_eq!(executed(&world), 1);
}
