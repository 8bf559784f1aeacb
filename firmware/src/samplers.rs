//! Made-up sensors for boards without real ones, in database `demo`: the same rows each time for the same seed, so that
//! tests know every one of them.
//!
//! A real sensor is a file like these: a table, and a `sample` that asks a driver instead of a formula. Floats are made
//! by dividing a whole number, which is how the row code keeps them in few bits.

pub mod environment;
pub mod power;
pub mod vibration;

use shared::link_test::mix;

/// The database of the made-up sensors.
const DBMS: &str = "demo";

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
