//! Requests that must not be run twice: what their ending says is what happened.

use crate::world::{Ended, Fate, STATUS, Way, World, stream};
use shared::{
    limits::REQUESTS_MAX,
    message::{Class, Request, kind},
};

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
