//! A million rows: how soon the first come, how fast the others, and in how much memory.

use super::server::Result;
use picolake_tests::{
    figures::{Aim, Figure},
    serving::{Piped, Serving},
    sim_process::{SimProcess, config_with, serve_command},
    whole_answer::{QueryLines, export},
};
use std::time::Instant;

const ROWS: u32 = 1_000_000;
/// How often the first batch is waited for.
const FIRST_BATCHES: usize = 21;
/// How long the first batch may take.
const FIRST_BATCH_MS: f64 = 20.0;
/// Memory that the bridge may take.
const PEAK_MB: f64 = 40.0;

const SELECT_ALL: &str = "SELECT * FROM vibration";

/// With the board in a process of its own, and in the bridge's.
pub(crate) fn measured() -> Result<Vec<Figure>> {
    let board = SimProcess::with_rows(ROWS);
    let mut figures = streamed("board apart", &board.link)?;
    figures.extend(exported("board apart", &board.link)?);
    drop(board);
    let within = format!("sim:full?rows={ROWS}");
    figures.extend(streamed("board within", &within)?);
    figures.extend(exported("board within", &within)?);
    Ok(figures)
}

fn streamed(board: &str, link: &str) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let config = config_with(folder.path(), link);
    let server = Serving::start_command(serve_command(folder.path(), &config, &["--http", "127.0.0.1:0"]));
    let mut first_ms = Vec::new();
    for _ in 0..=FIRST_BATCHES {
        let begun = Instant::now();
        QueryLines::ask(&server, "demo", SELECT_ALL).message().ok_or("no batch")?;
        first_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    first_ms.remove(0); // the board comes up meanwhile
    first_ms.sort_by(f64::total_cmp);
    let begun = Instant::now();
    let mut lines = QueryLines::ask(&server, "demo", SELECT_ALL);
    let mut last = String::new();
    while let Some(line) = lines.line() {
        last.clear();
        last.push_str(line);
    }
    let seconds = begun.elapsed().as_secs_f64();
    if !last.starts_with("{\"type\":\"complete\"") {
        return Err(last.into());
    }
    let name = |what: &str| format!("POST /query, 1M rows, {board}: {what}");
    let first = Figure::new(name("first batch, p50"), first_ms[first_ms.len() / 2], "ms");
    Ok(vec![
        first.aim(Aim::AtMost(FIRST_BATCH_MS)),
        Figure::new(name("first batch, worst"), first_ms[first_ms.len() - 1], "ms"),
        Figure::new(name("speed"), f64::from(ROWS) / seconds / 1e6, "Mrow/s"),
        peak(name("memory"), server.peak_bytes())?,
    ])
}

fn exported(board: &str, link: &str) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let config = config_with(folder.path(), link);
    let mut server = Piped::start_command(serve_command(folder.path(), &config, &["--stdio"]));
    server.ask("list_databases", serde_json::json!({})); // the board is up
    let begun = Instant::now();
    export(&mut server, "demo", SELECT_ALL, "all.jsonl");
    let seconds = begun.elapsed().as_secs_f64();
    let name = |what: &str| format!("export, 1M rows, {board}: {what}");
    Ok(vec![
        Figure::new(name("speed"), f64::from(ROWS) / seconds / 1e6, "Mrow/s"),
        peak(name("memory"), server.peak_bytes())?,
    ])
}

#[allow(clippy::cast_precision_loss, reason = "no machine has so much memory")]
fn peak(name: String, bytes: Option<u64>) -> Result<Figure> {
    let bytes = bytes.ok_or("this system does not tell how much memory a process has")?;
    Ok(Figure::new(name, bytes as f64 / 1e6, "MB").aim(Aim::AtMost(PEAK_MB)))
}
