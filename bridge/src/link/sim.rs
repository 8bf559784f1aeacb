//! The simulated board: the firmware library itself on the host, behind any byte stream.

use super::ByteStream;
use embedded_io_adapters::tokio_1::FromTokio;
use firmware::{Board, Facts, board::StackUse, clock::Clock, serve::Closed};
use shared::message::ResetReason;
use std::{cell::RefCell, io, rc::Rc, time::Duration};
use tokio::{
    io::DuplexStream,
    sync::mpsc,
    task::LocalSet,
    time::{Instant, sleep_until},
};

/// Bytes under way in each direction between a simulated board and the bridge.
const PIPE_BYTES: usize = 8192;
/// Links that wait for a simulated board to take them.
const LINKS_WAITING_MAX: usize = 16;

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

/// Serves one link of a board until it closes, on the caller's thread.
pub async fn serve(
    board: &RefCell<Board>,
    clock: TokioClock,
    link: impl ByteStream,
) -> firmware::serve::Closed {
    let (rx, tx) = tokio::io::split(link);
    firmware::serve(board, &clock, FromTokio::new(rx), FromTokio::new(tx)).await
}

/// Serves a line that stays when a session ends or nobody begins one, such as a serial port, until it breaks.
pub async fn serve_line(board: &RefCell<Board>, clock: TokioClock, line: impl ByteStream) {
    let (rx, tx) = tokio::io::split(line);
    let (mut rx, mut tx) = (FromTokio::new(rx), FromTokio::new(tx));
    while firmware::serve(board, &clock, &mut rx, &mut tx).await != Closed::Link {}
}

/// A link that somebody else opened.
enum Attached {
    /// It is closed when its session ends.
    Connection(Box<dyn ByteStream>),
    /// It stays.
    Line(Box<dyn ByteStream>),
}

/// A simulated board on a thread of its own. It ends when this is dropped and its links are closed.
#[derive(Clone, Debug)]
pub struct Simulation {
    links: mpsc::Sender<Attached>,
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
        let (links, mut waiting) = mpsc::channel(LINKS_WAITING_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name(format!("board {name}")).spawn(move || {
            let local = LocalSet::new();
            let board = Rc::new(RefCell::new(Board::new(facts)));
            local.spawn_local(async move {
                let clock = TokioClock::start();
                while let Some(link) = waiting.recv().await {
                    let board = Rc::clone(&board);
                    tokio::task::spawn_local(async move {
                        match link {
                            Attached::Connection(link) => drop(serve(&board, clock, link).await),
                            Attached::Line(line) => serve_line(&board, clock, line).await,
                        }
                    });
                }
            });
            runtime.block_on(local);
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

    fn give(&self, link: Attached) -> io::Result<()> {
        self.links.try_send(link).map_err(|_| io::Error::other("the simulated board takes no more links"))
    }
}
