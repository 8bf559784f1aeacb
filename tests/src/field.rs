//! A field of simulated boards in virtual time, whose links a test can cut, and tools that work on it.

use picolake::{
    board::Session,
    field::{Board, Field},
    link::{
        ByteStream,
        sim::{self, Attached},
    },
    tools::{Context, Options, Outcome, Tools},
};
use serde_json::{Map, Value};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::DuplexStream,
    sync::{Notify, mpsc},
    task::LocalSet,
};

const PIPE_BYTES: usize = 4096;
/// No test takes longer, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Runs a test whose clock goes on when nobody has anything to do.
pub fn in_virtual_time<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new()
        .block_on(&runtime, async { tokio::time::timeout(PATIENCE, test).await.expect("it hangs") })
}

/// A simulated board of a test's field.
#[derive(Clone, Debug)]
pub struct SimBoard {
    /// Its name.
    pub name: String,
    /// What its sensors' rows are made from.
    pub seed: u32,
    links: mpsc::Sender<Attached<DuplexStream>>,
    is_cut: Arc<AtomicBool>,
    cut: Arc<Notify>,
    stall: Arc<Notify>,
}

impl SimBoard {
    /// Starts a board. Must be called in a [`LocalSet`].
    pub fn start(name: &str) -> Self {
        let facts = sim::facts(name);
        let seed = sim::sensor_seed(&facts);
        let (links, waiting) = mpsc::channel(16);
        tokio::task::spawn_local(sim::run(facts, waiting));
        Self {
            name: name.into(),
            seed,
            links,
            is_cut: Arc::default(),
            cut: Arc::default(),
            stall: Arc::default(),
        }
    }

    /// A session with it, over links that [`cut`](Self::cut) breaks.
    pub fn session(&self) -> Session {
        let board = self.clone();
        let open = move || {
            let opened = board.open();
            async move { opened }
        };
        Session::connect_with(open, u64::from(self.seed))
    }

    fn open(&self) -> Result<Box<dyn ByteStream>, String> {
        if self.is_cut.load(Ordering::Relaxed) {
            return Err("the cable is cut".into());
        }
        let (ours, mut middle_here) = tokio::io::duplex(PIPE_BYTES);
        let (mut middle_there, theirs) = tokio::io::duplex(PIPE_BYTES);
        self.links.try_send(Attached::Connection(theirs)).map_err(|_| "no board".to_string())?;
        let (cut, stall) = (Arc::clone(&self.cut), Arc::clone(&self.stall));
        tokio::spawn(async move {
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut middle_here, &mut middle_there) => {}
                () = cut.notified() => {}
                () = stall.notified() => cut.notified().await,
            }
        });
        Ok(Box::new(ours))
    }

    /// Breaks its links; none opens again.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        self.cut.notify_waiters();
    }

    /// Lets nothing pass on its links any more, and keeps them open.
    pub fn stall(&self) {
        self.stall.notify_waiters();
    }

    /// As a member of a field.
    pub fn board(&self, writable: bool) -> Board {
        Board::new(self.name.clone(), format!("sim:{}", self.name), self.session(), writable)
    }
}

/// Simulated boards of these names, all of them writable, and tools on them.
pub fn tools_on(names: &[&str], options: Options) -> (Vec<SimBoard>, Tools) {
    let boards: Vec<SimBoard> = names.iter().map(|name| SimBoard::start(name)).collect();
    let field = Field::new(boards.iter().map(|board| board.board(true)));
    (boards, Tools::new(field, options).unwrap())
}

/// Calls a tool with an object of arguments.
pub async fn call(tools: &Tools, name: &str, arguments: Value) -> Outcome {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    tools.call(name, arguments, Context::default()).await
}

/// Calls a tool that must answer; its items as JSON.
pub async fn answer(tools: &Tools, name: &str, arguments: Value) -> Vec<Value> {
    let outcome = call(tools, name, arguments.clone()).await;
    assert!(!outcome.is_error, "{name} {arguments}: {outcome:?}");
    outcome.items.iter().map(|item| serde_json::from_str(item).expect(item)).collect()
}

/// Calls a tool that must fail; its error.
pub async fn error(tools: &Tools, name: &str, arguments: Value) -> Map<String, Value> {
    let outcome = call(tools, name, arguments.clone()).await;
    assert!(outcome.is_error, "{name} {arguments}: {outcome:?}");
    assert_eq!(outcome.items.len(), 1);
    let Ok(Value::Object(error)) = serde_json::from_str(&outcome.items[0]) else { panic!("{outcome:?}") };
    for field in ["error", "code", "suggested_action"] {
        let is_said = error[field].as_str().is_some_and(|text| !text.is_empty());
        assert!(is_said, "{field} of {error:?}");
    }
    assert!(error["details"].is_object(), "{error:?}");
    error
}
