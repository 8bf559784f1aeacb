//! The simulated board: the firmware library itself on the host, behind any byte stream.

use super::ByteStream;
use embedded_io_adapters::tokio_1::FromTokio;
use firmware::{
    Facts,
    board::{StackUse, query_memory},
    clock::Clock,
    sample::sample,
    samplers::{self, Samplers},
};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use shared::{limits::PAGE_BYTES, message::ResetReason};
use std::{cell::RefCell, io, time::Duration};
use tokio::{
    io::DuplexStream,
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// Bytes under way in each direction between a simulated board and the bridge.
const PIPE_BYTES: usize = 8192;
/// Links that wait for a simulated board to take them.
const LINKS_WAITING_MAX: usize = 16;

/// Pages of rows that a simulated board has.
const PAGES: usize = 96;

/// Time as tokio has it, so that tests can make it virtual.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock(Instant);

impl TokioClock {
    /// A board that starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TokioClock {
    fn uptime_us(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    async fn sleep_until_us(&self, uptime_us: u64) {
        sleep_until(self.0 + Duration::from_micros(uptime_us)).await;
    }
}

/// What a simulated board of this name is: the same id each time, another epoch each time.
pub fn facts(name: &str) -> Facts {
    let id = name.bytes().fold(0x5157_u64, |id, byte| shared::link_test::mix(id ^ u64::from(byte)));
    Facts {
        kind: "simulated",
        id: heapless::Vec::from_slice(&id.to_be_bytes()).unwrap_or_default(),
        epoch: rand::random::<u64>().max(1),
        boot_count: 1,
        panic_count: 0,
        reset_reason: ResetReason::PowerOn,
        stack: StackUse::default,
    }
}

/// Runs a board on the caller's thread: its sensors, and every link that comes. Ends when no more can come and all
/// are closed.
pub async fn run<L: ByteStream>(facts: Facts, mut links: mpsc::Receiver<L>) {
    let clock = TokioClock::start();
    let mut pages = vec![[0; PAGE_BYTES]; PAGES];
    let mut queries = Box::new(query_memory());
    let mut samplers = Samplers::new(facts.id.iter().fold(0, |seed, byte| seed << 8 | u32::from(*byte)));
    let board = match samplers::board(facts, &mut pages, &mut queries, &mut samplers, 0) {
        Ok(board) => RefCell::new(board),
        Err(error) => return tracing::error!(?error, "a simulated board's tables do not fit its memory"),
    };
    let mut served = FuturesUnordered::new();
    let mut sampling = std::pin::pin!(sample(&board, &clock));
    let mut is_open = true;
    while is_open || !served.is_empty() {
        tokio::select! {
            link = links.recv(), if is_open => match link {
                Some(link) => {
                    let (rx, tx) = tokio::io::split(link);
                    served.push(firmware::serve(&board, &clock, FromTokio::new(rx), FromTokio::new(tx)));
                }
                None => is_open = false,
            },
            Some(_) = served.next(), if !served.is_empty() => {}
            _ = &mut sampling => {}
        }
    }
}

/// A simulated board on a thread of its own. It ends when this is dropped and its links are closed.
#[derive(Clone, Debug)]
pub struct Simulation {
    links: mpsc::Sender<Box<dyn ByteStream>>,
}

impl std::fmt::Debug for dyn ByteStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ByteStream")
    }
}

impl Simulation {
    /// Starts a board of this name.
    pub fn named(name: &str) -> io::Result<Self> {
        let facts = facts(name);
        let (links, waiting) = mpsc::channel::<Box<dyn ByteStream>>(LINKS_WAITING_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name(format!("board {name}")).spawn(move || {
            runtime.block_on(run(facts, waiting));
        })?;
        Ok(Self { links })
    }

    /// A new link to the board.
    pub fn connect(&self) -> io::Result<DuplexStream> {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        self.attach(Box::new(theirs))?;
        Ok(ours)
    }

    /// Gives the board a link that somebody else opened.
    pub fn attach(&self, link: Box<dyn ByteStream>) -> io::Result<()> {
        self.links.try_send(link).map_err(|_| io::Error::other("the simulated board takes no more links"))
    }
}
