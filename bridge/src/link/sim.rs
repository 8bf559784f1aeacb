//! The simulated board: the firmware library itself on the host, behind any byte stream.

use super::ByteStream;
use embedded_io_adapters::tokio_1::FromTokio;
use firmware::{
    Board, Facts, PageBuffer,
    board::{QueryMemory, StackUse, query_memory},
    catalog::TableError,
    clock::Clock,
    sample::sample,
    samplers::{self, Samplers},
    serve::Closed,
};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use shared::{
    limits::{PAGE_BYTES, PAGES_MAX},
    message::ResetReason,
    schema::TableSpec,
};
use std::{cell::RefCell, io, time::Duration};
use tokio::{
    io::DuplexStream,
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

/// Bytes under way in each direction between a simulated board and the bridge.
const PIPE_BYTES: usize = 8192;
/// Links that wait for a simulated board to take them.
const LINKS_WAITING_MAX: usize = 16;

/// Pages of rows that a simulated board has besides those for the rows it begins with.
const PAGES: usize = 96;
/// Rows that fit a page of the table that fills fastest, at the least: some 240 do.
const PAGE_ROWS_MIN: usize = 200;
/// Tables among which the pages are shared out evenly, those that can be created counted as one.
const PAGE_SHARES: usize = 4;
/// Rows that a simulated board can begin with.
pub const ROWS_BEFORE_MAX: u32 = ((PAGES_MAX - PAGES) / PAGE_SHARES * PAGE_ROWS_MIN) as u32;

/// Time as tokio has it, so that tests can make it virtual.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: Instant,
    /// What the board had behind it then.
    uptime_before_us: u64,
}

impl TokioClock {
    /// A board that starts now.
    pub fn start() -> Self {
        Self::after_us(0)
    }

    /// A board that has been running for so long.
    fn after_us(uptime_before_us: u64) -> Self {
        Self { start: Instant::now(), uptime_before_us }
    }
}

impl Clock for TokioClock {
    fn uptime_us(&self) -> u64 {
        let since_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        since_us.saturating_add(self.uptime_before_us)
    }

    async fn sleep_until_us(&self, uptime_us: u64) {
        let since_us = uptime_us.saturating_sub(self.uptime_before_us);
        sleep_until(self.start + Duration::from_micros(since_us)).await;
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

/// What the rows of a simulated board's sensors are made from.
pub fn sensor_seed(facts: &Facts) -> u32 {
    facts.id.iter().fold(0, |seed, byte| seed << 8 | u32::from(*byte))
}

/// The memory that a board's rows and queries are in.
#[derive(Debug)]
pub struct Memory {
    /// As bytes: so many zeros cost no memory until they are written.
    pages: Vec<u8>,
    queries: Box<QueryMemory>,
    samplers: Samplers,
}

impl Memory {
    /// For one board.
    pub fn new() -> Self {
        Self::for_rows(0)
    }

    /// For one board that begins with so many rows, at most [`ROWS_BEFORE_MAX`].
    fn for_rows(rows: u32) -> Self {
        let pages = PAGES + PAGE_SHARES * (rows as usize).div_ceil(PAGE_ROWS_MIN);
        Self {
            pages: vec![0; pages * PAGE_BYTES],
            queries: Box::new(query_memory()),
            samplers: Samplers::new(0),
        }
    }

    /// A board that has just started in this memory. Its sensors' rows are made from its id.
    pub fn board(&mut self, facts: Facts) -> Result<Board<'_>, TableError> {
        self.samplers = Samplers::new(sensor_seed(&facts));
        let (pages, _): (&mut [PageBuffer], _) = self.pages.as_chunks_mut();
        samplers::board(facts, pages, &mut self.queries, &mut self.samplers, 0)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

/// A link that somebody else opened.
#[derive(Debug)]
pub enum Attached<L> {
    /// It is closed when its session ends.
    Connection(L),
    /// It stays when a session ends or nobody begins one, as a serial port does.
    Line(L),
}

/// Runs a board on the caller's thread: its sensors, and every link that comes. Ends when no more can come and all
/// are closed.
pub async fn run<L: ByteStream>(facts: Facts, links: mpsc::Receiver<Attached<L>>) {
    run_after(0, || {}, facts, links).await;
}

/// The same for a board that has made so many rows already, as fast as this machine can; then it is `ready`.
async fn run_after<L: ByteStream>(
    rows_before: u32,
    ready: impl FnOnce(),
    facts: Facts,
    mut links: mpsc::Receiver<Attached<L>>,
) {
    let mut memory = Memory::for_rows(rows_before);
    let mut board = match memory.board(facts) {
        Ok(board) => board,
        Err(error) => return tracing::error!(?error, "a simulated board's tables do not fit its memory"),
    };
    let clock = TokioClock::after_us(fill(&mut board, rows_before));
    let board = RefCell::new(board);
    ready();
    let mut served = FuturesUnordered::new();
    let mut sampling = std::pin::pin!(sample(&board, &clock));
    let mut is_open = true;
    while is_open || !served.is_empty() {
        tokio::select! {
            biased; // in an order that a seed can repeat; each is looked at whenever any has something to do
            link = links.recv(), if is_open => match link {
                Some(link) => served.push(serve_attached(&board, clock, link)),
                None => is_open = false,
            },
            Some(()) = served.next() => {}
            _ = &mut sampling => {}
        }
    }
}

/// Lets the sensors of a board that has just started make their rows, each at its time, until the fastest has made so
/// many; returns how long the board would have run for that.
fn fill(board: &mut Board<'_>, rows: u32) -> u64 {
    let mut uptime_us = 0;
    let TableSpec { dbms, name, .. } = samplers::vibration::TABLE;
    let Some(fastest) = board.store_mut().catalog().find(dbms, name) else { return uptime_us };
    while board.store_mut().next_row_id(fastest) < u64::from(rows) {
        let Some(due_us) = board.sample(uptime_us) else { break };
        uptime_us = due_us;
    }
    uptime_us
}

async fn serve_attached<L: ByteStream>(board: &RefCell<Board<'_>>, clock: TokioClock, link: Attached<L>) {
    match link {
        Attached::Connection(link) => drop(serve(board, clock, link).await),
        Attached::Line(line) => serve_line(board, clock, line).await,
    }
}

/// Serves one link of a board until it closes, on the caller's thread.
pub async fn serve(board: &RefCell<Board<'_>>, clock: TokioClock, link: impl ByteStream) -> Closed {
    let (rx, tx) = tokio::io::split(link);
    firmware::serve(board, &clock, FromTokio::new(rx), FromTokio::new(tx)).await
}

/// Serves a line that stays when a session ends or nobody begins one, until it breaks.
pub async fn serve_line(board: &RefCell<Board<'_>>, clock: TokioClock, line: impl ByteStream) {
    let (rx, tx) = tokio::io::split(line);
    let (mut rx, mut tx) = (FromTokio::new(rx), FromTokio::new(tx));
    while firmware::serve(board, &clock, &mut rx, &mut tx).await != Closed::Link {}
}

/// A simulated board on a thread of its own. It ends when this is dropped and its links are closed.
#[derive(Clone, Debug)]
pub struct Simulation {
    links: mpsc::Sender<Attached<Box<dyn ByteStream>>>,
}

impl std::fmt::Debug for dyn ByteStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ByteStream")
    }
}

impl Simulation {
    /// Starts a board of this name.
    pub fn named(name: &str) -> io::Result<Self> {
        Self::start(name, 0, || {})
    }

    /// Starts a board of this name whose fastest sensor has made so many rows already; waits until they are there.
    pub async fn with_rows(name: &str, rows_before: u32) -> io::Result<Self> {
        let (ready_in, ready) = oneshot::channel();
        let board = Self::start(name, rows_before, || {
            let _ = ready_in.send(()); // nobody waits any more: the board ends by itself
        })?;
        ready.await.map_err(|_| {
            io::Error::other(format!(
                "a simulated board has no room for {rows_before} rows, only for {ROWS_BEFORE_MAX}"
            ))
        })?;
        Ok(board)
    }

    fn start(name: &str, rows_before: u32, ready: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let facts = facts(name);
        let (links, waiting) = mpsc::channel(LINKS_WAITING_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name(format!("board {name}")).spawn(move || {
            runtime.block_on(run_after(rows_before, ready, facts, waiting));
        })?;
        Ok(Self { links })
    }

    /// A new link to the board.
    pub fn connect(&self) -> io::Result<DuplexStream> {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        self.attach(Box::new(theirs))?;
        Ok(ours)
    }

    /// Gives the board a connection that somebody else opened; the board closes it when its session ends.
    pub fn attach(&self, connection: Box<dyn ByteStream>) -> io::Result<()> {
        self.give(Attached::Connection(connection))
    }

    /// Gives the board a line, such as a serial port; one session after the other runs on it.
    pub fn attach_line(&self, line: Box<dyn ByteStream>) -> io::Result<()> {
        self.give(Attached::Line(line))
    }

    fn give(&self, link: Attached<Box<dyn ByteStream>>) -> io::Result<()> {
        self.links.try_send(link).map_err(|_| io::Error::other("the simulated board takes no more links"))
    }
}
