//! One question to many boards: how long it takes, and how many bytes travel when boards compute and when they do not.
#![allow(clippy::print_stdout, reason = "a bench says what it does")]

use picolake::{
    board::Session,
    field::{Board, Field},
    link::{ByteStream, sim::Simulation},
    tools::{Options, Tools},
};
use picolake_tests::{
    field::answer,
    figures::{Aim, Figure, report},
};
use serde_json::json;
use std::{
    error::Error,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Instant,
};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

const BOARDS: [usize; 4] = [1, 10, 100, 1_000];
const ROWS: u32 = 10_000;
const ROUNDS: usize = 7;
/// Of rows that every board has: what comes meanwhile does not count.
const SQL: &str = "SELECT count(*) AS n, avg(x) AS a, max(z) AS m FROM vibration WHERE _row_id < 10000";
/// Milliseconds for the largest field.
const LATENCY_AIM_MS: f64 = 1_000.0;
/// Percent of the bytes that travel where boards send their rows.
const BYTES_AIM_PERCENT: f64 = 1.0;

/// A link that counts what comes over it.
struct Counted(DuplexStream, Arc<AtomicU64>);

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let polled = Pin::new(&mut self.0).poll_read(task, out);
        self.1.fetch_add((out.filled().len() - before) as u64, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.0).poll_write(task, bytes);
        if let Poll::Ready(Ok(count)) = polled {
            self.1.fetch_add(count as u64, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(task)
    }
}

/// A field of boards whose links are counted together.
async fn field(count: usize, bytes: &Arc<AtomicU64>) -> io::Result<Field> {
    let mut boards = Vec::with_capacity(count);
    for nth in 0..count {
        let name = format!("board{nth:04}");
        let simulation = Simulation::with_rows(&name, ROWS).await?;
        let bytes = Arc::clone(bytes);
        let open = move || {
            let link = simulation.connect();
            let bytes = Arc::clone(&bytes);
            async move {
                link.map(|link| Box::new(Counted(link, bytes)) as Box<dyn ByteStream>)
                    .map_err(|error| error.to_string())
            }
        };
        boards.push(Board::new(name, "sim:", Session::connect_with(open, nth as u64), false));
    }
    Ok(Field::new(boards))
}

/// The median time of the question, and the bytes that it moved.
async fn asked(tools: &Tools, boards: usize, bytes: &AtomicU64, rounds: usize) -> (f64, f64) {
    let wanted = boards as u64 * u64::from(ROWS);
    let (mut times_ms, mut moved) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (begun, before) = (Instant::now(), bytes.load(Ordering::Relaxed));
        let items = answer(tools, "query", json!({"sql": SQL, "strict": true})).await;
        times_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        moved.push((bytes.load(Ordering::Relaxed) - before) as f64);
        assert_eq!(items[0][0]["n"], wanted, "{items:?}");
    }
    times_ms.sort_by(f64::total_cmp);
    moved.sort_by(f64::total_cmp);
    (times_ms[rounds / 2], moved[rounds / 2])
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut figures = Vec::new();
    for boards in BOARDS {
        let measured = runtime.block_on(async {
            let bytes = Arc::new(AtomicU64::new(0));
            let field = field(boards, &bytes).await?;
            let pushed = Tools::new(field.clone(), Options::default())?;
            let options = Options { without_pushdown: true, ..Options::default() };
            let plain = Tools::new(field, options)?;
            asked(&pushed, boards, &bytes, 1).await; // what tables there are is asked once
            let (ms, bytes_pushed) = asked(&pushed, boards, &bytes, ROUNDS).await;
            let (plain_ms, bytes_plain) =
                asked(&plain, boards, &bytes, if boards > 100 { 1 } else { 3 }).await;
            Ok::<_, Box<dyn Error>>((ms, plain_ms, bytes_pushed, bytes_plain))
        })?;
        let (ms, plain_ms, bytes_pushed, bytes_plain) = measured;
        let of = |what: &str| format!("{boards} boards × {ROWS} rows, {what}");
        let mut latency = Figure::new(of("aggregate p50"), ms, "ms");
        if boards == 1_000 {
            latency = latency.aim(Aim::AtMost(LATENCY_AIM_MS));
        }
        figures.push(latency);
        figures.push(Figure::new(of("the same from whole rows"), plain_ms, "ms"));
        figures.push(Figure::new(of("bytes on the links"), bytes_pushed, "B"));
        let share = 100.0 * bytes_pushed / bytes_plain;
        figures.push(Figure::new(of("share of the bytes"), share, "%").aim(Aim::AtMost(BYTES_AIM_PERCENT)));
    }
    report("fleet", &figures)
}
