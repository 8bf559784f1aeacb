//! `picolake measure BOARD`: streams test rows, checks every one, and reports what the link can do.

use super::{BoardArg, gateway::Estate};
use crate::{
    board::{OwnedRequest, Piece, RowCheck},
    config::{BoardConfig, Config},
    owner::{Lock, holder},
    tools::Options,
};
use anyhow::{Context as _, ensure};
use clap::Args;
use shared::message::{Class, LinkTest, feature};
use std::{io::IsTerminal as _, path::Path, time::Instant};

/// Rows between two lines of progress.
const PROGRESS_ROWS: u64 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    board: BoardArg,
    /// How many rows to stream
    #[arg(long, default_value_t = 10_000)]
    rows: u32,
    /// Tell progress, line by line, also where there is no terminal
    #[arg(long)]
    progress: bool,
}

pub(crate) async fn run(config: &Config, named: Option<&Path>, args: MeasureArgs) -> anyhow::Result<()> {
    let board = config.board(&args.board.board)?;
    let _lock = lock(config, named, &board)?; // nobody else opens the link meanwhile
    let session = super::session(&board).await?;
    let hello = session.wait_up(super::UP_TIMEOUT).await?;
    ensure!(
        hello.features & feature::LINK_TEST != 0,
        "unsupported: this board sends no test rows; its firmware was built without them"
    );
    let seed = rand::random();
    let test = LinkTest { rows: args.rows, seed };
    let (start, mut check, mut payload_bytes) = (Instant::now(), RowCheck::new(seed), 0_u64);
    let mut answer = session.ask(OwnedRequest::LinkTest(test), Class::Interactive).await?;
    let show = std::io::stderr().is_terminal();
    while let Some(piece) = answer.next().await? {
        let Piece::Rows { count, bytes, .. } = piece else { continue };
        let before = check.rows;
        check.batch(count, &bytes).map_err(anyhow::Error::msg)?;
        payload_bytes += bytes.len() as u64;
        if (show || args.progress) && before / PROGRESS_ROWS != check.rows / PROGRESS_ROWS {
            let (begin, end) = if show { ("\r", "") } else { ("", "\n") };
            eprint!("{begin}{} of {} rows{end}", check.rows, args.rows);
        }
    }
    if show {
        eprintln!();
    }
    let seconds = start.elapsed().as_secs_f64();
    ensure!(check.rows == u64::from(args.rows), "{} rows came instead of {}", check.rows, args.rows);
    let hello = session.wait_up(super::UP_TIMEOUT).await.context("after the stream")?;
    let link = session.link_counters();
    println!("{} rows, each as it was sent, in {seconds:.2} s", check.rows);
    println!(
        "{:.1} kB/s of rows, {:.0} rows/s",
        payload_bytes as f64 / seconds / 1e3,
        check.rows as f64 / seconds
    );
    println!(
        "{} frames came in, {} damaged, {} resumes, round trip {}",
        link.frames_in,
        link.frames_damaged,
        link.resumes,
        hello.round_trip.map_or("unknown".into(), |rtt| format!("{:.2} ms", rtt.as_secs_f64() * 1e3)),
    );
    Ok(())
}

/// A link is measured alone: nobody may own the boards of the configuration. A link that was given is nobody's.
fn lock(config: &Config, named: Option<&Path>, board: &BoardConfig) -> anyhow::Result<Option<Lock>> {
    if !config.boards.contains(board) {
        return Ok(None);
    }
    let place = Estate::new(config, named, false, Options::default())?.place;
    let lock = Lock::try_take(&place)?;
    let pid = || holder(&place).map_or("unknown".into(), |pid| pid.to_string());
    ensure!(
        lock.is_some(),
        "another picolake (process {}) has the link of `{}`, and a link is measured alone; stop it first",
        pid(),
        board.name
    );
    Ok(lock)
}
