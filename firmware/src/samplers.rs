//! Made-up sensors for boards without real ones, in database `demo`: the same rows each time for the same seed, so that
//! tests know every one of them.
//!
//! A real sensor is a file like these: a table, and a `sample` that asks a driver instead of a formula. Floats are made
//! by dividing a whole number, which is how the row code keeps them in few bits.

pub mod environment;
pub mod power;
pub mod vibration;

use crate::{
    board::{Board, Facts, QueryMemory},
    catalog::TableError,
    sample::Sampler,
};
use environment::Environment;
use power::Power;
use shared::{link_test::mix, page::PageBuffer};
use vibration::Vibration;

/// The database of the made-up sensors.
const DBMS: &str = "demo";

/// One sensor of each kind.
#[derive(Clone, Copy, Debug)]
pub struct Samplers {
    environment: Environment,
    power: Power,
    vibration: Vibration,
}

impl Samplers {
    /// Sensors whose rows are made from this seed.
    pub const fn new(seed: u32) -> Self {
        Self { environment: Environment { seed }, power: Power { seed }, vibration: Vibration { seed } }
    }
}

/// A board with one sensor of each kind; see [`add`].
pub fn board<'m>(
    facts: Facts,
    pages: &'m mut [PageBuffer],
    queries: &'m mut QueryMemory,
    samplers: &'m mut Samplers,
    uptime_us: u64,
) -> Result<Board<'m>, TableError> {
    let mut board = Board::empty(facts, pages, queries);
    add(&mut board, samplers, uptime_us)?;
    Ok(board)
}

/// Gives a board one sensor of each kind. Each table has a quarter of the pages; the rest is for tables that are
/// created.
pub fn add<'m>(board: &mut Board<'m>, samplers: &'m mut Samplers, uptime_us: u64) -> Result<(), TableError> {
    let Samplers { environment, power, vibration } = samplers;
    let all: [&'m mut dyn Sampler; 3] = [environment, power, vibration];
    let quarter = board.store.page_count() / 4;
    for sampler in all {
        board.store.add(sampler.table(), quarter)?;
        board.schedule.add(&board.store, sampler, uptime_us);
    }
    Ok(())
}

/// Whole noise around 0, small more often than large, at most `bound` off.
fn noise(seed: u32, index: u64, column: u64, bound: i32) -> i32 {
    let random = mix((u64::from(seed) << 32).wrapping_add(index.wrapping_mul(8)).wrapping_add(column));
    let dice = |shift: u32| ((random >> shift) & 0xFFFF) as i64;
    let sum = dice(0) + dice(16) + dice(32) - 3 * 0x7FFF;
    (sum * i64::from(bound) / (3 * 0x8000)) as i32
}

/// A smooth wave between −1000 and 1000 that begins at 0 and returns after `period`: two parabolas, near enough to a
/// sine.
fn wave(index: u64, period: u64) -> i32 {
    let half = (period / 2).max(1);
    let at = index % half;
    let height = (4_000 * at * (half - at) / (half * half)) as i32;
    if (index / half).is_multiple_of(2) { height } else { -height }
}
