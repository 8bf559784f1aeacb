//! What rows cost the board: instructions for each, counted in QEMU, and bytes of each, in pages and on the wire:
//! `cargo xtask bench board`.

use firmware::{
    Board, Facts,
    bench::{SEED, SUBJECTS, Subject},
    board::{ResetReason, StackUse, query_memory},
    samplers::{self, Samplers},
    store::Store,
};
use picolake_tests::{
    figures::{Aim, Figure, report},
    qemu::{image, run_counted},
};
use serde::Serialize;
use shared::{
    device::{Answerer as _, Now, Step},
    frame::{FrameBuffer, Header},
    limits::{PAGE_BYTES, WIRE_BYTES_MAX},
    message::{LinkCounters, Request, kind},
    value::Value,
};
use std::{collections::BTreeMap, error::Error};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Rows whose bytes are counted: more than fit, so that the oldest pages went.
const ROWS: u64 = 30_000;
/// Bytes of memory in which rows are counted.
const MEMORY_BYTES: usize = 64 * 1024;
/// A board's clock is set when its rows are read.
const UTC_US: i64 = 1_794_978_000_000_000;
/// Tells the flash that the image takes; `cargo xtask bench` sets it.
const FLASH_VARIABLE: &str = "PICOLAKE_FLASH_BYTES";
const FLASH_BYTES_AIM: f64 = 160.0 * 1024.0;

fn main() -> Result<()> {
    let mut figures = Vec::new();
    if let Some(image) = image("bench board on QEMU") {
        figures.extend(instructions(&run_counted(&image)?)?);
    }
    for subject in &SUBJECTS {
        figures.extend(bytes(subject)?);
    }
    if let Ok(flash) = std::env::var(FLASH_VARIABLE) {
        let figure = Figure::new("image with both links and SQL, flash", flash.parse()?, "B");
        figures.push(figure.aim(Aim::AtMost(FLASH_BYTES_AIM)));
    }
    report("board", &figures)
}

/// Reads lines `name: ticks / rows`; the first says how many instructions a tick is.
fn instructions(text: &str) -> Result<Vec<Figure>> {
    let mut lines = text.lines().filter_map(|line| {
        let (name, share) = line.split_once(": ")?;
        let (ticks, rows) = share.split_once(" / ")?;
        Some((name, ticks.parse::<f64>().ok()? / rows.parse::<f64>().ok()?))
    });
    let (_, tick) = lines.next().filter(|(name, _)| *name == "tick").ok_or("the image said nothing")?;
    let figures: Vec<_> = lines
        .map(|(name, ticks)| {
            let figure = Figure::new(name, ticks * tick, "instr");
            match instructions_aim(name) {
                Some(aim) => figure.aim(aim),
                None => figure,
            }
        })
        .collect();
    if figures.is_empty() { Err("the image measured nothing".into()) } else { Ok(figures) }
}

fn instructions_aim(name: &str) -> Option<Aim> {
    match name {
        "filtered aggregate over integers" => Some(Aim::AtMost(500.0)),
        "filtered aggregate over floats" => Some(Aim::AtMost(1_200.0)),
        name if name.ends_with("median") => Some(Aim::AtMost(1_000.0)),
        name if name.ends_with("worst") => Some(Aim::AtMost(20_000.0)),
        _ => None,
    }
}

/// Bytes of a row in pages and on the wire, beside what others make of the same rows.
fn bytes(subject: &Subject) -> Result<Vec<Figure>> {
    let name = subject.table.name;
    let in_pages = rows_in_memory(subject)?;
    let bytes_aim = match name {
        "environment" => 3.5,
        "power" => 4.0,
        _ => 6.0,
    };
    let held = Figure::new(format!("{name}: rows held in 64 KiB"), in_pages, "rows");
    let figure = |what: &str, bytes: f64| Figure::new(format!("{name}: a row {what}"), bytes, "B");
    let [postcard, cbor, json] = plain_bytes(subject)?;
    Ok(vec![
        figure("in pages", MEMORY_BYTES as f64 / in_pages).aim(Aim::AtMost(bytes_aim)),
        figure("on the wire", wire_bytes(subject)?),
        figure("in plain postcard", postcard),
        figure("in CBOR", cbor),
        figure("in JSON", json),
        if name == "environment" { held.aim(Aim::AtLeast(15_000.0)) } else { held },
    ])
}

/// Rows that a store of 64 KiB holds just before its oldest page goes, headers and all.
fn rows_in_memory(subject: &Subject) -> Result<f64> {
    let mut pages = vec![[0; PAGE_BYTES]; MEMORY_BYTES / PAGE_BYTES];
    let budget = pages.len();
    let mut store =
        Store::new(&mut pages, &[(subject.table, budget)]).map_err(|error| format!("{error:?}"))?;
    let table = store.catalog().find(subject.table.dbms, subject.table.name).ok_or("no table")?;
    let mut held_max = 0;
    for index in 0..ROWS {
        let cells = (subject.row)(SEED, index);
        store.insert(table, subject.time_us(index), &cells).map_err(|error| format!("{error:?}"))?;
        held_max = held_max.max(store.next_row_id(table) - store.first_row_id(table));
    }
    Ok(held_max as f64)
}

/// What a row takes when all are read over a link, with all that frames add.
fn wire_bytes(subject: &Subject) -> Result<f64> {
    let mut pages = vec![[0; PAGE_BYTES]; 4 * MEMORY_BYTES / PAGE_BYTES];
    let mut queries = Box::new(query_memory());
    let mut samplers = Samplers::new(SEED);
    let mut board = samplers::board(facts(), &mut pages, &mut queries, &mut samplers, 0)
        .map_err(|error| format!("{error:?}"))?;
    let table = board.store_mut().catalog().find(subject.table.dbms, subject.table.name).ok_or("no table")?;
    for index in 0..ROWS / 4 {
        let cells = (subject.row)(SEED, index);
        let inserted = board.store_mut().insert(table, subject.time_us(index), &cells);
        inserted.map_err(|error| format!("{error:?}"))?;
    }
    let command = format!("sql demo \"SELECT * FROM {}\"", subject.table.name);
    let (rows, bytes) = stream(&mut board, &command)?;
    Ok(bytes as f64 / rows as f64)
}

/// Asks, and counts the rows and the bytes of the frames with rows.
fn stream(board: &mut Board<'_>, command: &str) -> Result<(u64, usize)> {
    let link = LinkCounters::default();
    let now = Now { uptime_us: 0, link: &link };
    let failed = |failure: &dyn std::fmt::Debug| format!("{command}: {failure:?}");
    board.open(Request::SetTime(UTC_US), None, now).map_err(|failure| failed(&failure))?;
    let mut work = board.open(Request::Command(command), None, now).map_err(|failure| failed(&failure))?;
    let (mut frame, mut sequence, mut sent) = (FrameBuffer::default(), 0, 0);
    loop {
        match board.step(&mut work, frame.body(), now) {
            Step::Working | Step::Part(_) => {}
            Step::Rows(len) => {
                let header = Header { kind: kind::ROWS, generation: 0, request: 1, sequence };
                sent += frame.seal(header, len, &mut [0; WIRE_BYTES_MAX]);
                sequence += 1;
            }
            Step::Done(done) => {
                board.close(work);
                return Ok((done.rows, sent));
            }
            Step::Failed(failure) => return Err(failed(&failure).into()),
        }
    }
}

fn facts() -> Facts {
    Facts {
        kind: "bench",
        id: [0; 6].into_iter().collect(),
        epoch: 1,
        boot_count: 0,
        panic_count: 0,
        reset_reason: ResetReason::Unknown,
        stack: StackUse::default,
    }
}

/// A cell as any program would write it.
#[derive(Serialize)]
#[serde(untagged)]
enum Cell {
    Int(i64),
    Float(f32),
    Text(&'static str),
}

/// Bytes of a row as a sequence of its cells: in postcard, CBOR, and JSON with the names of the columns.
fn plain_bytes(subject: &Subject) -> Result<[f64; 3]> {
    const SAMPLE: u64 = 10_000;
    let mut bytes = [0; 3];
    for index in 0..SAMPLE {
        let time_us = UTC_US.saturating_add_unsigned(subject.time_us(index));
        let cells = (subject.row)(SEED, index).map(|value| match value {
            Value::Float32(v) => Cell::Float(v),
            Value::Text(v) => Cell::Text(v),
            Value::Int(v) => Cell::Int(v),
            _ => Cell::Int(0),
        });
        let [a, b, c] = cells;
        let row = (time_us, a, b, c);
        bytes[0] += postcard::to_allocvec(&row)?.len();
        let mut cbor = Vec::new();
        ciborium::into_writer(&row, &mut cbor)?;
        bytes[1] += cbor.len();
        let (time_us, a, b, c) = row;
        let names = subject.table.columns.iter().map(|column| column.name);
        let object: BTreeMap<_, _> = names.zip([Cell::Int(time_us), a, b, c]).collect();
        bytes[2] += serde_json::to_string(&object)?.len();
    }
    Ok(bytes.map(|bytes| bytes as f64 / SAMPLE as f64))
}
