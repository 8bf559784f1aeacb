//! The bridge's session and the real firmware over a link that damages frames, in virtual time.

use picolake::{
    board::{AnswerError, OwnedRequest, Piece, RowCheck, Session},
    link::{
        ByteStream,
        sim::{self},
    },
};
use picolake_tests::faulty_link::{Faults, FaultyLink};
use shared::{
    link_test::mix,
    message::{Class, LinkTest},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::mpsc, task::LocalSet};

/// Virtual time in which every stream must have ended, well or not.
const STREAM_TIME_MAX: Duration = Duration::from_secs(600);
const STREAMS: u64 = 10_000;
const LINKS_WAITING_MAX: usize = 16;

/// A tenth of the cases in every run, all of them in a soak.
fn streams() -> u64 {
    if std::env::var("PICOLAKE_CASES").is_ok_and(|cases| cases == "all") { STREAMS } else { STREAMS / 10 }
}

#[derive(Debug, Default)]
struct Tally {
    complete: u64,
    failed: u64,
    damaged: u64,
}

/// One stream over links that damage frames both ways and, in some seeds, break.
fn stream(seed: u64) -> Result<Tally, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    let local = LocalSet::new();
    local.block_on(&runtime, run_stream(seed))
}

async fn run_stream(seed: u64) -> Result<Tally, String> {
    let (links_in, links) = mpsc::channel::<FaultyLink>(LINKS_WAITING_MAX);
    tokio::task::spawn_local(sim::run(sim::facts("faults"), links));

    let mut faults = Faults::of(seed, 50);
    faults.cut = if seed.is_multiple_of(4) { 5 } else { 0 }; // every fourth stream's links break, too
    let (opened, damaged) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&damaged);
    let open = move || {
        let nth = opened.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = tokio::io::duplex(1 + (mix(seed ^ nth) % 6000) as usize);
        let board_end = FaultyLink::new(theirs, faults, mix(seed ^ 0xB0A2D ^ nth), Arc::clone(&counter));
        let bridge_end = FaultyLink::new(ours, faults, mix(seed ^ 0xB21D6E ^ nth), Arc::clone(&counter));
        let sent = links_in.try_send(board_end).map_err(|_| "the board is gone".to_string());
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
                Ok(Some(Piece::Rows { count, bytes })) => check.batch(count, &bytes)?,
                Ok(Some(Piece::Part(_))) => {}
                Ok(None) if check.rows == u64::from(rows) => break Ok::<bool, String>(true),
                Ok(None) => break Err(format!("{} of {rows} rows, and it says complete", check.rows)),
                Err(AnswerError::LinkDamaged | AnswerError::BoardRestarted) => break Ok(false),
                Err(error) => break Err(format!("an unfitting error: {error}")),
            }
        }
    };
    let complete = tokio::time::timeout(STREAM_TIME_MAX, ask)
        .await
        .map_err(|_| format!("hung: no end after {STREAM_TIME_MAX:?} of virtual time"))??;
    let damaged = damaged.load(Ordering::Relaxed);
    Ok(Tally { complete: complete.into(), failed: (!complete).into(), damaged })
}

#[test]
fn a_stream_over_a_damaged_link_has_exactly_its_rows_or_says_why_not() {
    let mut sum = Tally::default();
    for seed in 0..streams() {
        let tally = stream(seed).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        sum.complete += tally.complete;
        sum.failed += tally.failed;
        sum.damaged += tally.damaged;
    }
    // The test must have tested something, and faults at this rate must be survived nearly always.
    assert!(sum.damaged > streams(), "{sum:?}");
    assert!(sum.failed * 100 <= sum.complete, "{sum:?}");
}
