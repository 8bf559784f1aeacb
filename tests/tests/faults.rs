//! The bridge's session and the real firmware over a link that damages frames, in virtual time.

use firmware::Facts;
use picolake::{
    board::{AnswerError, OwnedRequest, Piece, RowCheck, Session},
    link::{
        ByteStream,
        sim::{self, Attached},
    },
};
use picolake_tests::faulty_link::{Faults, FaultyLink};
use shared::{
    host::HostCounters,
    link_test::mix,
    message::{Class, LinkTest},
};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::mpsc, task::LocalSet, time::Instant};

/// Virtual time in which every stream must have ended, well or not.
const STREAM_TIME_MAX: Duration = Duration::from_secs(600);
const STREAMS: u64 = 10_000;
const LINKS_WAITING_MAX: usize = 16;

/// A tenth of the cases in every run, all of them in a soak.
fn streams() -> u64 {
    if std::env::var("PICOLAKE_CASES").is_ok_and(|cases| cases == "all") { STREAMS } else { STREAMS / 10 }
}

/// One seed alone, or the first so many.
fn seeds() -> Range<u64> {
    match std::env::var("PICOLAKE_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a seed is a number");
            seed..seed + 1
        }
        Err(_) => 0..streams(),
    }
}

/// How one stream went.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    complete: bool,
    damaged: u64,
    time: Duration,
    link: HostCounters,
}

/// One stream over links that damage frames both ways and, in some seeds, break.
fn stream(seed: u64) -> Result<Run, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    let local = LocalSet::new();
    local.block_on(&runtime, run_stream(seed))
}

async fn run_stream(seed: u64) -> Result<Run, String> {
    let start = Instant::now();
    let facts = Facts { epoch: mix(seed).max(1), ..sim::facts("faults") };
    let (links_in, links) = mpsc::channel(LINKS_WAITING_MAX);
    tokio::task::spawn_local(sim::run(facts, links));

    let mut faults = Faults::of(seed, 50);
    faults.cut = if seed.is_multiple_of(4) { 5 } else { 0 }; // every fourth stream's links break, too
    let (opened, damaged) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&damaged);
    let open = move || {
        let nth = opened.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = tokio::io::duplex(1 + (mix(seed ^ nth) % 6000) as usize);
        let board_end = FaultyLink::new(theirs, faults, mix(seed ^ 0xB0A2D ^ nth), Arc::clone(&counter));
        let bridge_end = FaultyLink::new(ours, faults, mix(seed ^ 0xB21D6E ^ nth), Arc::clone(&counter));
        let sent =
            links_in.try_send(Attached::Connection(board_end)).map_err(|_| "the board is gone".to_string());
        async move { sent.map(|()| Box::new(bridge_end) as Box<dyn ByteStream>) }
    };
    let session = Session::connect_with(open, mix(seed));

    let rows = (mix(seed ^ 0x2085) % 6_000) as u32;
    let test = LinkTest { rows, seed: seed as u32 };
    let ask = async {
        let mut check = RowCheck::new(test.seed);
        let mut answer = session
            .ask(OwnedRequest::LinkTest(test), Class::Interactive)
            .await
            .map_err(|error| error.to_string())?;
        loop {
            match answer.next().await {
                Ok(Some(Piece::Rows { count, bytes, .. })) => check.batch(count, &bytes)?,
                Ok(Some(Piece::Part(_))) => {}
                Ok(None) if check.rows == u64::from(rows) => break Ok::<bool, String>(true),
                Ok(None) => break Err(format!("{} of {rows} rows, and it says complete", check.rows)),
                Err(AnswerError::LinkDamaged) => break Ok(false),
                Err(error) => break Err(format!("an unfitting error: {error}")),
            }
        }
    };
    let complete = tokio::time::timeout(STREAM_TIME_MAX, ask)
        .await
        .map_err(|_| format!("hung: no end after {STREAM_TIME_MAX:?} of virtual time"))??;
    let damaged = damaged.load(Ordering::Relaxed);
    Ok(Run { complete, damaged, time: start.elapsed(), link: session.link_counters() })
}

#[test]
fn a_stream_over_a_damaged_link_has_exactly_its_rows_or_says_why_not() {
    let (mut complete, mut failed, mut damaged) = (0, 0, 0);
    for seed in seeds() {
        let run = stream(seed)
            .unwrap_or_else(|fault| panic!("seed {seed} (alone with PICOLAKE_SEED={seed}): {fault}"));
        complete += u64::from(run.complete);
        failed += u64::from(!run.complete);
        damaged += run.damaged;
    }
    // The test must have tested something, and faults at this rate must be survived nearly always.
    if seeds().count() > 1 {
        assert!(damaged > streams(), "{damaged} frames were damaged");
        assert!(failed * 100 <= complete, "{failed} failed, {complete} were complete");
    }
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    for seed in 0..20 {
        assert_eq!(stream(seed), stream(seed), "seed {seed}");
    }
}
