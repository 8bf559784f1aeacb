//! A simulated board behind a TCP port, whose way to the bridge a test can make slow, and a second way to it that is not:
//! so a test sees what the board does for a bridge that waits.

use crate::{ask::ask, oracle::Cell};
use picolake::{
    board::Session,
    link::{ByteStream, sim::Simulation},
};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    runtime::Runtime,
    time::{Instant, sleep},
};

/// Bytes between the board and its slow way: what the board has sent into it is soon on the way itself.
const PIPE_BYTES: usize = 256;
/// Bytes that are carried at once.
const CHUNK_BYTES: usize = 64;
/// How exact the rate is.
const TICK: Duration = Duration::from_millis(5);
/// How long the board may take to be there.
const PATIENCE: Duration = Duration::from_secs(20);
/// So many rows are enough for an answer that takes a slow line a while.
const ROWS_ENOUGH: i64 = 1500;

/// A board, and a configuration that names it.
#[derive(Debug)]
pub struct SlowBoard {
    /// The way that is not slow.
    pub session: Session,
    way: Arc<Way>,
    folder: tempfile::TempDir,
    /// Its own, so that a test that waits for a process does not hold the board up.
    runtime: Option<Runtime>,
}

#[derive(Debug, Default)]
struct Way {
    /// Zero is as many as there are.
    bytes_per_s: AtomicU64,
    connections: AtomicUsize,
}

impl Way {
    /// Waits as long as these bytes take; the rate may change meanwhile.
    async fn take_time_for(&self, bytes: u64) {
        let begun = Instant::now();
        loop {
            let bytes_per_s = self.bytes_per_s.load(Ordering::Relaxed);
            if bytes_per_s == 0 || begun.elapsed() >= Duration::from_millis(bytes * 1000 / bytes_per_s) {
                return;
            }
            sleep(TICK).await;
        }
    }
}

impl SlowBoard {
    /// Starts a board called `pump` that has rows, with a way that is fast until [`slow_down`](Self::slow_down).
    pub async fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread");
        let simulation = Simulation::named("pump").expect("a thread");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it has one").to_string();
        let listener = listener.into_std().expect("it is a socket");
        let way = Arc::<Way>::default();
        runtime.spawn(accept(listener, simulation.clone(), Arc::clone(&way)));
        let open = move || {
            let link = simulation.connect();
            async move {
                link.map(|link| Box::new(link) as Box<dyn ByteStream>).map_err(|error| error.to_string())
            }
        };
        let entered = runtime.enter();
        let session = Session::connect_with(open, 1);
        drop(entered);
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!("boards:\n- {{name: pump, link: 'tcp:{address}'}}\narchive: {{enabled: false}}\n");
        std::fs::write(folder.path().join("picolake.yaml"), file).expect("it can be written");
        session.wait_up(PATIENCE).await.expect("the board is there");
        ask(&session, "set sample demo vibration = 1ms").await.expect("the board obeys");
        let board = Self { session, way, folder, runtime: Some(runtime) };
        let count = "sql demo \"SELECT count(*) FROM vibration\"";
        while !matches!(board.cell(count).await, Cell::Int(ROWS_ENOUGH..)) {} // they come by the board's own clock
        board
    }

    /// The file that names it.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("picolake.yaml")
    }

    /// From now on so many bytes a second come to the bridge; 0 is as many as there are. What goes to the board is as fast as ever.
    pub fn slow_down(&self, bytes_per_s: u64) {
        self.way.bytes_per_s.store(bytes_per_s, Ordering::Relaxed);
    }

    /// How often a bridge has connected.
    pub fn connections(&self) -> usize {
        self.way.connections.load(Ordering::Relaxed)
    }

    /// Waits until the board runs so many queries.
    pub async fn runs(&self, queries: u8) {
        let expected = format!("{queries} of ");
        let waited =
            tokio::time::timeout(PATIENCE, async { while !self.queries().await.starts_with(&expected) {} });
        assert!(waited.await.is_ok(), "{queries} queries were expected, there are {}", self.queries().await);
    }

    /// Such as `0 of 3`.
    async fn queries(&self) -> String {
        let listed = ask(&self.session, "get processes").await.expect("the board answers");
        let last = listed.answer.rows.into_iter().next_back().and_then(|row| row.into_iter().next_back());
        let Some(Cell::Text(detail)) = last else { panic!("its queries are last") };
        detail
    }

    async fn cell(&self, command: &str) -> Cell {
        let rows = ask(&self.session, command).await.expect("the board answers").answer.rows;
        rows.into_iter().flatten().next().expect("a value")
    }
}

impl Drop for SlowBoard {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: std::net::TcpListener, simulation: Simulation, way: Arc<Way>) {
    let listener = TcpListener::from_std(listener).expect("it does not block");
    while let Ok((bridge, _)) = listener.accept().await {
        bridge.set_nodelay(true).expect("it is TCP");
        way.connections.fetch_add(1, Ordering::Relaxed);
        let (board, theirs) = tokio::io::duplex(PIPE_BYTES);
        simulation.attach(Box::new(theirs)).expect("the board takes it");
        let (mut from_board, mut to_board) = tokio::io::split(board);
        let (mut from_bridge, mut to_bridge) = bridge.into_split();
        let way = Arc::clone(&way);
        tokio::spawn(async move {
            let slowly = async {
                let mut chunk = [0; CHUNK_BYTES];
                while let Ok(len @ 1..) = from_board.read(&mut chunk).await {
                    way.take_time_for(len as u64).await;
                    if to_bridge.write_all(&chunk[..len]).await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = slowly => {}
                _ = tokio::io::copy(&mut from_bridge, &mut to_board) => {}
            }
        });
    }
}
