//! Several requests on one link: who goes first, and how much may be under way.

use crate::{
    board::HELP_PARTS,
    world::{Ended, HELP, LATENCY_US, SLOW, STATUS, Way, World, stream},
};
use shared::{
    device::Transmit,
    host::{Ending, Event, OpenError},
    limits::{COMMAND_BYTES_MAX, CREDIT_BATCHES_MAX, REQUESTS_MAX, WIRE_BYTES_MAX},
    message::{Class, Request, kind},
};

const DONE: Ended = Ended::Done { rows_lost: 0 };

/// Batches of `request` sent in `from_us..to_us`.
fn batches(world: &World, request: u16, from_us: u64, to_us: u64) -> usize {
    let sent = world.sent.iter().filter(|sent| (from_us..to_us).contains(&sent.at_us));
    sent.filter(|sent| sent.header.request == request && sent.header.kind == kind::ROWS).count()
}

#[test]
fn a_short_question_is_answered_within_two_batches_of_a_long_stream() {
    let mut world = World::up();
    world.board.batch_rows = u16::MAX; // as many as fit in a frame
    let long = world.ask(stream(20_000));
    world.run_for_us(50_000);
    let (short, from_us) = (world.ask(STATUS), world.now_us);
    assert_eq!(world.end_of(short), DONE);
    assert_eq!(world.ended(long), None);
    // From the moment the question arrived: a batch may be on its way, and the end of the answer has its own turn.
    let sent = world.sent.iter().filter(|sent| sent.header.request == short && sent.way == Way::ToHost);
    let last_us = sent.map(|sent| sent.at_us).max().unwrap();
    let between = batches(&world, long, from_us + LATENCY_US + 30, last_us + 1);
    assert!(between <= 2, "{between} batches");
    assert_eq!(world.end_of(long), DONE);
}

#[test]
fn interactive_goes_before_background() {
    let mut world = World::up();
    let background = world.ask_as(Class::Background, stream(8_000));
    world.run_for_us(10_000);
    let (interactive, from_us) = (world.ask(stream(4_000)), world.now_us);
    assert_eq!(world.end_of(interactive), DONE);
    assert_eq!(world.ended(background), None);
    let (hers, its) = (
        batches(&world, interactive, from_us + 2 * LATENCY_US, world.now_us),
        batches(&world, background, from_us + 2 * LATENCY_US, world.now_us - 3 * LATENCY_US),
    );
    assert!(hers > 490 && its * 20 < hers, "{hers} interactive batches, {its} background");
    assert_eq!(world.end_of(background), DONE);
    assert_eq!(world.answer(background).rows, Vec::from_iter(0..8_000));
}

#[test]
fn streams_of_one_class_share_alike() {
    let mut world = World::up();
    let streams: Vec<_> = (0..4).map(|_| world.ask(stream(8_000))).collect();
    world.run_for_us(200_000);
    let rows: Vec<_> = streams.iter().map(|request| world.answer(*request).rows.len()).collect();
    let (least, most) = (rows.iter().min().unwrap(), rows.iter().max().unwrap());
    assert!(*least > 100 && most - least <= 16, "{rows:?}");
}

#[test]
fn a_request_that_works_does_not_hold_up_the_others() {
    let mut world = World::up();
    world.board.work_steps = 1_000;
    let slow = world.ask(SLOW);
    world.run_for_us(5_000);
    let (status, rows) = (world.ask(STATUS), world.ask(stream(500)));
    assert_eq!((world.end_of(status), world.end_of(rows)), (DONE, DONE));
    assert_eq!(world.ended(slow), None);
    assert_eq!(world.end_of(slow), DONE);
}

#[test]
fn a_request_may_work_for_minutes_while_the_board_answers_pings() {
    let mut world = World::up();
    world.board.work_steps = 300_000;
    let (slow, from_us) = (world.ask(SLOW), world.now_us);
    assert_eq!(world.end_of(slow), DONE);
    assert!(world.now_us - from_us >= 200_000_000);
    assert_eq!((world.host.counters().resumes, world.ups, world.answer(slow).texts.len()), (0, 1, 1));
}

#[test]
fn a_stream_never_exceeds_its_credit() {
    let mut world = World::up();
    world.consumes = false;
    let streams = [world.ask(stream(50_000)), world.ask_as(Class::Background, stream(40_000))];
    world.run_for_us(10_000_000);
    for request in streams {
        assert_eq!(world.answer(request).parts, CREDIT_BATCHES_MAX);
        let frames = world.sent.iter().filter(|s| s.way == Way::ToHost && s.header.request == request);
        assert_eq!(frames.count() as u32, CREDIT_BATCHES_MAX);
        // One by one: what is done with makes room for as much.
        for _ in 0..3 {
            world.host.consumed(request, 8);
            let before = world.answer(request).parts;
            world.run_for_us(100_000);
            assert_eq!(world.answer(request).parts, before + 8);
        }
    }
    assert_eq!(world.host.counters().resumes, 0);
}

#[test]
fn a_caller_that_is_slow_gets_every_row() {
    let mut world = World::up();
    world.consumes = false;
    let request = world.ask(stream(1_000));
    let mut consumed = 0;
    while world.ended(request).is_none() {
        world.run_for_us(700_000);
        let parts = (world.answer(request).parts - consumed).min(3);
        world.host.consumed(request, parts);
        consumed += parts;
        assert!(world.answer(request).parts - consumed <= CREDIT_BATCHES_MAX);
    }
    assert_eq!(world.ended(request), Some(DONE));
    assert_eq!(world.answer(request).rows, Vec::from_iter(0..1_000));
}

#[test]
fn no_more_requests_are_taken_than_there_is_room_for() {
    let mut world = World::up();
    let requests: Vec<_> = (0..REQUESTS_MAX).map(|_| world.ask(HELP)).collect();
    assert_eq!(world.host.open(&STATUS, Class::Interactive), Err(OpenError::Full));
    for request in requests {
        assert_eq!(world.end_of(request), DONE);
        assert_eq!(world.answer(request).texts.len() as u32, HELP_PARTS);
    }
    assert!(world.host.open(&STATUS, Class::Interactive).is_ok());
}

#[test]
fn a_request_that_fits_in_no_frame_is_not_taken() {
    let mut world = World::up();
    let longest = "x".repeat(COMMAND_BYTES_MAX);
    let request = world.ask(Request::Command(&longest));
    assert!(matches!(world.end_of(request), Ended::Failed(_)));
    let too_long = "x".repeat(2 * COMMAND_BYTES_MAX);
    let opened = world.host.open(&Request::Command(&too_long), Class::Interactive);
    assert_eq!(opened, Err(OpenError::TooLong));
}

#[test]
fn request_numbers_come_round_without_confusion() {
    let mut world = World::up();
    let long = world.ask_as(Class::Background, SLOW);
    world.board.work_steps = u32::MAX;
    world.run_for_us(10_000);
    let mut out = [0; WIRE_BYTES_MAX];
    for round in 0..70_000_u32 {
        let request = world.host.open(&Request::SetTime(i64::from(round)), Class::Interactive).unwrap();
        assert!(request != 0 && request != long, "number {request} is taken");
        let mut ended = false;
        while !ended {
            world.now_us += 10;
            while let Some(len) = world.host.transmit(world.now_us, &mut out) {
                world.device.feed(world.now_us, &mut world.board, &out[..len]);
            }
            while let Transmit::Frame(len) = world.device.transmit(world.now_us, &mut world.board, &mut out) {
                world.host.feed(world.now_us, &out[..len], |event| {
                    if let Event::Ended(number, ending) = event {
                        assert_eq!((number, ending), (request, Ending::Done { rows_lost: 0 }));
                        ended = true;
                    }
                });
            }
        }
    }
    assert_eq!(world.board.executed.len(), 70_000);
    assert!(world.board.executed.values().all(|times| *times == 1));
    assert_eq!(world.host.counters().resumes, 0);
}
