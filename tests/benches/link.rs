//! What the wire costs and what a link carries: `cargo xtask bench link`.

use picolake::{
    board::{OwnedRequest, Piece, RowCheck, Session},
    link::{
        ByteStream,
        sim::{self},
    },
};
use picolake_tests::{
    faulty_link::{Faults, FaultyLink},
    figures::{Aim, Figure, report},
    paced_link::paced_line,
    qemu::{Qemu, image},
};
use shared::{
    frame::{FrameBuffer, Header},
    limits::{BODY_BYTES_MAX, WIRE_BYTES_MAX},
    message::{Class, LinkTest},
};
use std::{
    error::Error,
    io::Read as _,
    net::TcpStream,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{io::DuplexStream, task::LocalSet};

/// Virtual seconds of line that one figure takes.
const LINE_SECONDS: u64 = 60;
const ROUNDS: usize = 5;
const ROUND_TRIPS: usize = 500;
const TCP_ROWS: u32 = 300_000;
/// Bytes a line carries in a second: ten bits each.
const BITS_PER_BYTE: u64 = 10;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut figures = frame_overhead();
    for (baud, aim_clean, aim_damaged) in [(115_200, 0.96, 0.85), (921_600, 0.96, 0.85)] {
        for (per_thousand, aim) in [(0, aim_clean), (10, aim_damaged)] {
            let value = line_share(baud, per_thousand)?;
            let name = format!("rows' share of a line of {baud} baud, {} % damaged", per_thousand / 10);
            figures.push(Figure::new(name, value, "share").aim(Aim::AtLeast(aim)));
        }
    }
    if let Some(image) = image("bench link on QEMU") {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        figures.extend(runtime.block_on(qemu_figures(&image))?);
    }
    report("link", &figures)
}

/// What a frame adds to its body on the wire, empty and full.
fn frame_overhead() -> Vec<Figure> {
    let mut figures = Vec::new();
    for body_bytes in [0, BODY_BYTES_MAX] {
        let mut frame = FrameBuffer::default();
        frame.body().fill(0x5A);
        let header = Header { kind: 0x83, generation: 1, request: 0x0101, sequence: 0x0101_0101 };
        let sent = frame.seal(header, body_bytes, &mut [0; WIRE_BYTES_MAX]);
        let name = format!("overhead of a frame with {body_bytes} bytes of body");
        figures.push(Figure::new(name, (sent - body_bytes) as f64, "B"));
    }
    figures
}

/// Streams over a paced line in virtual time; returns the share of the line's bytes that were rows.
fn line_share(baud: u64, damaged_per_thousand: u64) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let capacity = baud / BITS_PER_BYTE * LINE_SECONDS;
    LocalSet::new().block_on(&runtime, async move {
        let (board_end, bridge_end) = paced_line(baud);
        let faults = Faults { flip: damaged_per_thousand, ..Faults::default() };
        let board_end = FaultyLink::new(board_end, faults, 1, Arc::default());
        let (links_in, links) = tokio::sync::mpsc::channel(1);
        links_in.try_send(sim::Attached::Connection(board_end)).map_err(|_| "the board takes no link")?;
        tokio::task::spawn_local(sim::run(sim::facts("bench"), links));
        let session = one_link(bridge_end);
        session.wait_up(Duration::from_secs(10)).await?;

        let start = tokio::time::Instant::now();
        let rows = u32::MAX;
        let mut answer =
            session.ask(OwnedRequest::LinkTest(LinkTest { rows, seed: 1 }), Class::Interactive).await?;
        let (mut check, mut row_bytes) = (RowCheck::new(1), 0);
        while start.elapsed() < Duration::from_secs(LINE_SECONDS) {
            if let Some(Piece::Rows { count, bytes, .. }) = answer.next().await? {
                check.batch(count, &bytes)?;
                row_bytes += bytes.len() as u64;
            }
        }
        let carried = capacity as f64 * start.elapsed().as_secs_f64() / LINE_SECONDS as f64;
        Ok(row_bytes as f64 / carried)
    })
}

/// A session whose only link is this one.
fn one_link(link: DuplexStream) -> Session {
    let link = Mutex::new(Some(link));
    let open = move || {
        let link = link.lock().ok().and_then(|mut link| link.take());
        async move { link.map(|link| Box::new(link) as Box<dyn ByteStream>).ok_or("the line broke".to_string()) }
    };
    Session::connect_with(open, 1)
}

/// Throughput beside a raw send on the same stack, and round trips, medians of rounds that alternate.
async fn qemu_figures(image: &std::path::Path) -> Result<Vec<Figure>> {
    let board = Qemu::boot(image)?;
    let session = Session::connect(board.tcp.clone(), rand::random());
    while session.wait_up(Duration::from_secs(30)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (start, mut row_bytes) = (Instant::now(), 0_usize);
        let ask = OwnedRequest::LinkTest(LinkTest { rows: TCP_ROWS, seed: 1 });
        let mut answer = session.ask(ask, Class::Interactive).await?;
        while let Some(piece) = answer.next().await? {
            if let Piece::Rows { bytes, .. } = piece {
                row_bytes += bytes.len();
            }
        }
        ours.push(row_bytes as f64 / start.elapsed().as_secs_f64());
        raw.push(raw_rate(board.raw_port, row_bytes)?);
    }
    let (ours, raw) = (median(&mut ours), median(&mut raw));
    let mut trips = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let start = Instant::now();
        let mut answer = session.ask(OwnedRequest::Command("get status".into()), Class::Interactive).await?;
        while answer.next().await?.is_some() {}
        trips.push(start.elapsed().as_secs_f64() * 1e3);
    }
    trips.sort_by(f64::total_cmp);
    Ok(vec![
        Figure::new("TCP from QEMU, rows", ours / 1e6, "MB/s"),
        Figure::new("TCP from QEMU, raw send", raw / 1e6, "MB/s"),
        Figure::new("TCP from QEMU, rows to raw", ours / raw, "share").aim(Aim::AtLeast(0.5)),
        Figure::new("get status over TCP, p50", trips[trips.len() / 2], "ms"),
        Figure::new("get status over TCP, p99", trips[trips.len() * 99 / 100], "ms"),
    ])
}

/// Bytes a second that the board sends as fast as it can.
fn raw_rate(port: u16, bytes: usize) -> Result<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let (mut buffer, mut left, start) = (vec![0; 16 * 1024], bytes, Instant::now());
    while left > 0 {
        match stream.read(&mut buffer)? {
            0 => return Err("the raw sender stopped; was the image built with bench-raw-tcp?".into()),
            read => left = left.saturating_sub(read),
        }
    }
    Ok(bytes as f64 / start.elapsed().as_secs_f64())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
