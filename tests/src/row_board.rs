//! A board that lives in the test, behind TCP: the firmware library with tables whose every row the test knows, also
//! those that were overwritten. It restarts and its links break when the test says so.

use firmware::{
    Board, Facts,
    board::query_memory,
    sample::Schedule,
    store::{Counts, Store},
};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use picolake::link::sim::{self, TokioClock};
use shared::{
    limits::PAGE_BYTES,
    link_test::mix,
    schema::{ColumnSpec, TIME_COLUMN, TableSpec},
    value::{ColumnType, Value},
};
use std::{
    cell::RefCell,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};
use tokio::{net::TcpListener, sync::mpsc, time::MissedTickBehavior};

/// Orders that wait for a board.
const ORDERS_WAITING_MAX: usize = 16;
/// Rows come in bursts, so often.
const BURST_INTERVAL: Duration = Duration::from_millis(2);

const fn column(name: &'static str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec { name, kind, unit: "", description: "" }
}

/// Rows of text are long: a page has few, and its ring turns often.
pub static NOTES: TableSpec =
    TableSpec { dbms: "field", name: "notes", columns: &[TIME_COLUMN, column("text", ColumnType::Text)] };
/// Rows of numbers are short.
pub static COUNTERS: TableSpec = TableSpec {
    dbms: "field",
    name: "counters",
    columns: &[TIME_COLUMN, column("value", ColumnType::Int), column("share", ColumnType::Float32)],
};
/// The tables of every such board.
pub static TABLES: [&TableSpec; 2] = [&NOTES, &COUNTERS];

/// The cells of a row but its time, as text: different for every row of every start of every board.
pub fn cells_of(table: &str, epoch: u64, row: u64) -> (String, i64, f32) {
    let number = mix(epoch ^ mix(row ^ table.len() as u64));
    (format!("{number:>48x}"), (number >> 20) as i64, (number % 10_000) as f32 / 100.0)
}

/// What became of one start of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its random number.
    pub epoch: u64,
    /// What became of the rows of each of [`TABLES`], at its end or up to now.
    pub counts: [Counts; 2],
    /// Whether it has ended.
    pub is_over: bool,
}

/// How fast rows come and how many are kept.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Pages of each table.
    pub pages: usize,
    /// Rows of each table in a burst, at most.
    pub burst_rows: u64,
}

#[derive(Debug)]
enum Order {
    Restart,
    CutLinks,
    Insert(u64),
    Rest,
}

/// The board; it ends when this is dropped.
#[derive(Debug)]
pub struct RowBoard {
    /// Its name.
    pub name: String,
    /// Where it listens, whatever happens to it.
    pub address: SocketAddr,
    /// Its id in hexadecimal.
    pub id: String,
    orders: Option<mpsc::Sender<Order>>,
    starts: Arc<Mutex<Vec<Start>>>,
    thread: Option<JoinHandle<()>>,
}

impl RowBoard {
    /// Starts a board whose behaviour is drawn from a seed.
    pub fn start(name: &str, pace: Pace, seed: u64) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a listener of tokio's");
        let address = listener.local_addr().expect("an address");
        let (orders, waiting) = mpsc::channel(ORDERS_WAITING_MAX);
        let starts: Arc<Mutex<Vec<Start>>> = Arc::default();
        let log = Arc::clone(&starts);
        let facts = sim::facts(name);
        let id = facts.id.iter().map(|byte| format!("{byte:02x}")).collect();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                Life { facts, pace, seed, listener, orders: waiting, log }.run().await;
            });
        });
        Self { name: name.into(), address, id, orders: Some(orders), starts, thread: Some(thread) }
    }

    fn order(&self, order: Order) {
        let orders = self.orders.as_ref().expect("the board lives");
        orders.blocking_send(order).expect("the board takes orders");
    }

    /// Loses everything and starts anew.
    pub fn restart(&self) {
        self.order(Order::Restart);
    }

    /// Breaks its links.
    pub fn cut_links(&self) {
        self.order(Order::CutLinks);
    }

    /// Inserts so many rows into each table, besides those that come by themselves.
    pub fn insert(&self, rows: u64) {
        self.order(Order::Insert(rows));
    }

    /// Lets no more rows come by themselves.
    pub fn rest(&self) {
        self.order(Order::Rest);
    }

    /// Every start so far; what is said of the last is a moment old.
    pub fn starts(&self) -> Vec<Start> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it; returns every start.
    pub fn end(mut self) -> Vec<Start> {
        self.stop();
        self.starts()
    }

    fn stop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the board's thread panicked");
        }
    }
}

impl Drop for RowBoard {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the board's thread runs.
struct Life {
    facts: Facts,
    pace: Pace,
    seed: u64,
    listener: TcpListener,
    orders: mpsc::Receiver<Order>,
    log: Arc<Mutex<Vec<Start>>>,
}

impl Life {
    async fn run(mut self) {
        let mut is_resting = false;
        while self.one_start(&mut is_resting).await {}
    }

    fn draw(&mut self) -> u64 {
        self.seed = mix(self.seed);
        self.seed
    }

    /// Lives until it is restarted; false if nobody wants it any more.
    async fn one_start(&mut self, is_resting: &mut bool) -> bool {
        let epoch = self.draw().max(1);
        let facts = Facts { epoch, ..self.facts.clone() };
        let mut memory = vec![[0; PAGE_BYTES]; self.pace.pages * TABLES.len()];
        let mut queries = Box::new(query_memory());
        let tables = TABLES.map(|table| (table, self.pace.pages));
        let store = Store::new(&mut memory, &tables).expect("tables that fit");
        let board = RefCell::new(Board::new(facts, store, Schedule::default(), &mut queries));
        let clock = TokioClock::start();
        self.note(Start { epoch, counts: Default::default(), is_over: false });
        let mut served = FuturesUnordered::new();
        let mut bursts = tokio::time::interval(BURST_INTERVAL);
        bursts.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let mut rows = [0; 2];
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (link, _) = accepted.expect("links come");
                    link.set_nodelay(true).expect("a link of TCP");
                    served.push(sim::serve(&board, clock, link));
                }
                Some(_) = served.next() => {}
                _ = bursts.tick(), if !*is_resting => {
                    rows = [self.draw(), self.draw()].map(|draw| draw % (self.pace.burst_rows + 1));
                }
                order = self.orders.recv() => match order {
                    Some(Order::CutLinks) => served.clear(),
                    Some(Order::Insert(count)) => rows = [count; 2],
                    Some(Order::Rest) => *is_resting = true,
                    Some(Order::Restart) | None => {
                        drop(served);
                        self.note_counts(&mut board.borrow_mut(), true);
                        return order.is_some();
                    }
                },
            }
            let mut board = board.borrow_mut();
            for (table, rows) in TABLES.iter().zip(rows) {
                insert(&mut board, table, epoch, rows, &clock);
            }
            self.note_counts(&mut board, false);
        }
    }

    fn note(&self, start: Start) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(start);
    }

    fn note_counts(&self, board: &mut Board<'_>, is_over: bool) {
        let counts = TABLES.map(|table| {
            let store = board.store_mut();
            let id = store.catalog().find(table.dbms, table.name).expect("its table");
            store.counts(id).expect("its table's counts")
        });
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let start = log.last_mut().expect("this start");
        (start.counts, start.is_over) = (counts, is_over);
    }
}

fn insert(board: &mut Board<'_>, table: &TableSpec, epoch: u64, rows: u64, clock: &TokioClock) {
    use firmware::clock::Clock as _;
    let id = board.store_mut().catalog().find(table.dbms, table.name).expect("its table");
    for _ in 0..rows {
        let row = board.store_mut().next_row_id(id);
        let (text, value, share) = cells_of(table.name, epoch, row);
        let texts = [Value::Text(&text)];
        let numbers = [Value::Int(value), Value::Float32(share)];
        let cells: &[Value<'_>] = if table.name == NOTES.name { &texts } else { &numbers };
        board.store_mut().insert(id, clock.uptime_us(), cells).expect("a row that fits");
    }
}
