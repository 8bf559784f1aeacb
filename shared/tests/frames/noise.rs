//! As many seeded cases of noise as fit into a time: nothing panics, and after each a good frame is found.

use crate::{command_line, contents, device_end, host_end, sql_text, stream};
use shared::link_test::mix;
use std::{
    env,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

const SCRIPT_BYTES_MAX: u64 = 4_000;

/// The bytes of one case. Some have only small numbers or repeat themselves: other things happen with those.
fn script(seed: u64) -> Vec<u8> {
    let mut number = mix(seed);
    let mut dice = |bound: u64| {
        number = number.wrapping_add(1);
        mix(number) % bound
    };
    let len = dice(SCRIPT_BYTES_MAX) >> dice(8);
    let bound = [256, 256, 128, 16][dice(4) as usize];
    let mut bytes: Vec<u8> = Vec::new();
    while (bytes.len() as u64) < len {
        if dice(32) == 0 {
            let again = bytes.split_off(bytes.len() - dice(bytes.len() as u64 + 1).min(64) as usize);
            bytes.extend(again.repeat(2));
        }
        bytes.push(dice(bound) as u8);
    }
    bytes
}

fn run(seed: u64) {
    let script = script(seed);
    stream::check(&script);
    contents::check(&script);
    command_line::check(&script);
    sql_text::check(&script);
    device_end::check(&script);
    host_end::check(&script);
}

#[test]
fn noise_does_no_harm_and_the_next_good_frame_is_found() {
    let all = env::var("PICOLAKE_CASES").is_ok_and(|cases| cases == "all");
    let time_max = Duration::from_secs(if all { 60 } else { 10 });
    let seed: u64 = match env::var("PICOLAKE_SEED") {
        Ok(seed) => seed.parse().expect("a seed is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64),
    };
    let begun = Instant::now();
    let mut cases = 0;
    while begun.elapsed() < time_max {
        let seed = seed.wrapping_add(cases);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("seed {seed}: run it first with PICOLAKE_SEED={seed}");
            resume_unwind(panic);
        }
        cases += 1;
    }
    // Past the capture of the test's output: how many ran is worth knowing when all is well.
    let _ = writeln!(std::io::stderr(), "{cases} cases of noise from seed {seed} in {:?}", begun.elapsed());
}
