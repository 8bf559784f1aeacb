//! Seeded faults: frames are dropped, flipped, doubled alone and in runs, cut, split and merged in both
//! directions while several requests are under way; links break and boards restart. Every request ends, and its ending
//! is the truth.

use crate::{
    board::HELP_PARTS,
    world::{Ended, HELP, SLOW, World, stream},
};
use shared::{
    link_test::mix,
    message::{Class, Request},
};
use std::{
    cell::RefCell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

/// Virtual time in which every request has ended.
const END_US_MAX: u64 = 300_000_000;

/// Numbers that look random, the same for the same seed.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % bound
    }

    fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// Frames that may come again in a run.
const RUN_FRAMES_MAX: usize = 5;

/// What a bad line has of one direction.
#[derive(Default)]
struct Line {
    /// Bytes that wait until the next frame comes.
    kept: Vec<u8>,
    /// The last frames.
    last: VecDeque<Vec<u8>>,
}

type Lines = Rc<RefCell<[Line; 2]>>;

/// What a bad line makes of the bytes of one frame.
fn mangle(dice: &mut Dice, per_mille: u64, line: &mut Line, frame: &[u8]) -> Vec<u8> {
    let Line { kept, last } = line;
    last.push_back(frame.to_vec());
    if last.len() > RUN_FRAMES_MAX {
        last.pop_front();
    }
    let mut bytes = frame.to_vec();
    if dice.chance(per_mille) {
        let at = dice.below(bytes.len() as u64) as usize;
        match dice.below(7) {
            0 => bytes.clear(),
            1 => bytes[at] ^= 1 << dice.below(8),
            2 => bytes = bytes.repeat(2),
            3 => bytes.truncate(at), // its delimiter is gone, too: the next frame is spoilt with it
            4 => bytes.insert(at, dice.below(256) as u8),
            5 => {
                let run = 1 + dice.below(last.len() as u64) as usize;
                bytes.extend(last.iter().skip(last.len() - run).flatten());
            }
            _ => {
                bytes.remove(at);
            }
        }
    }
    // Split and merge: some bytes wait until the next frame comes.
    kept.extend(bytes);
    let held = if dice.chance(per_mille) { dice.below(kept.len() as u64 + 1) as usize } else { 0 };
    let rest = kept.split_off(kept.len() - held);
    std::mem::replace(kept, rest)
}

fn run(seed: u64) {
    let mut dice = Dice(mix(seed));
    let mut world = World::new();
    let per_mille = 1 + dice.below(50);
    let (mut fate, lines) = (dice.clone(), Lines::default());
    fate.0 ^= 0x5EED;
    let carried = Rc::clone(&lines);
    world.mangle = Some(Box::new(move |way, frame| {
        let line = &mut carried.borrow_mut()[usize::from(way == crate::world::Way::ToHost)];
        mangle(&mut fate, per_mille, line, frame)
    }));
    world.board.batch_rows = [4, 8, 60][dice.below(3) as usize];
    world.board.work_steps = dice.below(2_000) as u32;

    let mut asked = Vec::new();
    for index in 0..12_i64 {
        let class = if dice.chance(300) { Class::Background } else { Class::Interactive };
        let request = match dice.below(4) {
            0 => Request::SetTime(index),
            1 => HELP,
            2 => SLOW,
            _ => stream(dice.below(400) as u32),
        };
        // Wait for a slot.
        let open = |world: &World| asked.iter().filter(|(r, _)| world.ended(*r).is_none()).count();
        world.run_until(END_US_MAX, |world| !world.downs.is_empty() || open(world) < 6);
        reconnect(&mut world, &lines);
        world.run_until(END_US_MAX, |world| open(world) < 6);
        asked.push((world.ask_as(class, request), request));
        world.run_for_us(dice.below(20_000));
        if dice.chance(40) {
            world.restart_board();
            forget_runs(&lines);
        } else if dice.chance(40) {
            world.cut();
            world.plug();
            forget_runs(&lines);
        }
    }
    let until_us = world.now_us + END_US_MAX;
    while world.now_us < until_us && asked.iter().any(|(request, _)| world.ended(*request).is_none()) {
        let asked = &asked;
        world.run_until(until_us - world.now_us, move |world| {
            !world.downs.is_empty() || asked.iter().all(|(request, _)| world.ended(*request).is_some())
        });
        reconnect(&mut world, &lines);
    }
    for (request, what) in asked {
        check(&world, request, what);
    }
}

/// What the bridge does when a link is of no use.
fn reconnect(world: &mut World, lines: &Lines) {
    if world.downs.drain(..).count() > 0 {
        world.cut();
        forget_runs(lines);
        world.run_for_us(100_000);
        world.plug();
    }
}

/// No frame outlives the connection it was sent on, nor the boot of the board it was sent to.
fn forget_runs(lines: &Lines) {
    lines.borrow_mut().iter_mut().for_each(|line| line.last.clear());
}

fn check(world: &World, request: u16, what: Request<'_>) {
    let answer = world.answer(request);
    let ended = answer.ended.unwrap_or_else(|| panic!("{what:?} never ended"));
    let is_done = ended == Ended::Done { rows_lost: 0 };
    assert!(!matches!(ended, Ended::Protocol(_) | Ended::Failed(_)), "{what:?} ended as {ended:?}");
    match what {
        Request::SetTime(time) => {
            let times = world.board.executed.get(&time).copied().unwrap_or(0);
            match ended {
                Ended::Done { .. } => assert_eq!(times, 1, "{what:?}"),
                Ended::NotExecuted => assert_eq!(times, 0, "{what:?}"),
                _ => assert!(times <= 1, "{what:?} was done {times} times"),
            }
        }
        Request::LinkTest(test) => {
            let rows = if is_done { u64::from(test.rows) } else { answer.rows.len() as u64 };
            assert_eq!(answer.rows, Vec::from_iter(0..rows), "{what:?} ended as {ended:?}");
            assert!(answer.started <= 1 && (answer.started == 1 || !is_done));
        }
        Request::Command(_) => {
            let texts = if what == HELP { HELP_PARTS as usize } else { 1 };
            assert!(answer.texts.len() == texts || !is_done && answer.texts.len() < texts, "{answer:?}");
        }
        Request::Pages(_) => unreachable!("no test here asks for pages"),
    }
}

#[test]
fn every_request_ends_and_its_ending_is_the_truth() {
    let all = std::env::var("PICOLAKE_CASES").is_ok_and(|cases| cases == "all");
    let only = std::env::var("PICOLAKE_SEED").ok().map(|seed| seed.parse().expect("a seed is a number"));
    let seeds = match only {
        Some(seed) => seed..seed + 1,
        None => 0..if all { 3_000 } else { 300 },
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("seed {seed}: run it alone with PICOLAKE_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
