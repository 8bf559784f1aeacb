//! Boards as the rest of the bridge sees them: [`Session::connect`] one, [`Session::ask`] it, read the [`Answer`].

mod answer;
mod backoff;
mod row_check;
mod rows;
mod task;

pub use answer::{Answer, AnswerError, Complete, PartBytes, Piece};
pub use row_check::RowCheck;
pub use rows::decode_rows;

use crate::link::Address;
use answer::Ask;
use shared::{
    host::HostCounters,
    limits::COMMAND_BYTES_MAX,
    message::{BoardHello, Class, LinkTest, Pages, Request},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, mpsc, watch};

/// Requests that wait for a board while it has as many open as it takes.
pub const ASKS_WAITING_MAX: usize = 64;

/// A board, whether it is there or not. The session behind it connects again by itself, and ends when the last
/// clone of this is dropped.
#[derive(Clone, Debug)]
pub struct Session {
    asks: mpsc::Sender<Ask>,
    state: watch::Receiver<State>,
    wake: Arc<Notify>,
    counters: Arc<Mutex<HostCounters>>,
}

/// How it stands with a board.
#[derive(Clone, Debug)]
pub enum State {
    /// A link is being opened, or the hello is under way.
    Connecting,
    /// It answers.
    Up(Arc<Hello>),
    /// It does not; another attempt follows.
    Offline {
        /// Why not.
        why: Arc<str>,
        /// When the next attempt begins.
        retry_in: Duration,
    },
}

/// What a board said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The chip's own id, in hexadecimal.
    pub board_id: String,
    /// The random number of its boot.
    pub epoch: u64,
    /// How often it has started.
    pub boot_count: u32,
    /// The firmware's name and version.
    pub build: String,
    /// What it can do: bits of [`feature`](shared::message::feature).
    pub features: u32,
    /// The newest wire version it speaks.
    pub wire_max: u8,
    /// Changes when a table or a column does.
    pub catalog_hash: u64,
    /// The round-trip time of the last ping.
    pub round_trip: Option<Duration>,
}

/// Why a board could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// It is not there.
    #[error("{0}")]
    Offline(Arc<str>),
    /// It did not get ready in time.
    #[error("the board did not answer within {0:?}; is it on, and is the link the right one?")]
    Timeout(Duration),
    /// The command does not fit.
    #[error("the command has {0} bytes, at most {COMMAND_BYTES_MAX} can be sent; shorten it")]
    TooLong(usize),
    /// The session has ended with the program.
    #[error("the session with the board has ended")]
    Ended,
}

/// A request that can be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedRequest {
    /// See [`Request::Command`].
    Command(String),
    /// See [`Request::LinkTest`].
    LinkTest(LinkTest),
    /// See [`Request::Pages`].
    Pages {
        /// The database.
        dbms: String,
        /// The table.
        table: String,
        /// The boot whose rows are meant.
        epoch: u64,
        /// The first row that is wanted.
        from: u64,
        /// Every row before it is in an archive for good.
        acknowledges: bool,
    },
}

impl OwnedRequest {
    fn as_wire(&self) -> Request<'_> {
        match self {
            OwnedRequest::Command(text) => Request::Command(text),
            OwnedRequest::LinkTest(test) => Request::LinkTest(*test),
            OwnedRequest::Pages { dbms, table, epoch, from, acknowledges } => {
                Request::Pages(Pages { dbms, table, epoch: *epoch, from: *from, acknowledges: *acknowledges })
            }
        }
    }
}

impl Hello {
    fn of(hello: &BoardHello<'_>) -> Self {
        Self {
            board_id: hello.board_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            epoch: hello.epoch,
            boot_count: hello.boot_count,
            build: hello.build.into(),
            features: hello.features,
            wire_max: hello.version_max,
            catalog_hash: hello.catalog_hash,
            round_trip: None,
        }
    }
}

impl Session {
    /// Begins a session on the runtime of the caller. `seed` gives nonces, epochs and jitter.
    pub fn connect(link: Address, seed: u64) -> Self {
        let opener = move || {
            let link = link.clone();
            async move { link.open().await.map_err(|error| error.to_string()) }
        };
        Self::connect_with(opener, seed)
    }

    /// The same over links that `open` opens.
    pub fn connect_with<F, O>(open: O, seed: u64) -> Self
    where
        O: Fn() -> F + Send + 'static,
        F: Future<Output = Result<Box<dyn crate::link::ByteStream>, String>> + Send + 'static,
    {
        let (asks, waiting) = mpsc::channel(ASKS_WAITING_MAX);
        let (state_in, state) = watch::channel(State::Connecting);
        let wake = Arc::new(Notify::new());
        let counters = Arc::new(Mutex::default());
        let shared = task::Shared {
            asks: waiting,
            state: state_in,
            wake: Arc::clone(&wake),
            counters: Arc::clone(&counters),
        };
        tokio::spawn(task::run(open, seed, shared));
        Self { asks, state, wake, counters }
    }

    /// How it stands now.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// What the board's links have seen from this end since the session began.
    pub fn link_counters(&self) -> HostCounters {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the board answers, or until the first attempt has failed, or until `limit`.
    pub async fn wait_up(&self, limit: Duration) -> Result<Arc<Hello>, BoardError> {
        let mut state = self.state.clone();
        let settled =
            tokio::time::timeout(limit, state.wait_for(|state| !matches!(state, State::Connecting)));
        match settled.await {
            Err(_) => Err(BoardError::Timeout(limit)),
            Ok(Err(_)) => Err(BoardError::Ended),
            Ok(Ok(settled)) => match &*settled {
                State::Up(hello) => Ok(Arc::clone(hello)),
                State::Offline { why, .. } => Err(BoardError::Offline(Arc::clone(why))),
                State::Connecting => Err(BoardError::Ended),
            },
        }
    }

    /// Waits until the board has not been there for `grace`; returns why. A link that breaks and comes again is no
    /// reason: answers go on over it.
    pub async fn wait_gone(&self, grace: Duration) -> Arc<str> {
        let ended = || Arc::from("the session with the board has ended");
        let mut state = self.state.clone();
        loop {
            if state.wait_for(|state| !matches!(state, State::Up(_))).await.is_err() {
                return ended();
            }
            match tokio::time::timeout(grace, state.wait_for(|state| matches!(state, State::Up(_)))).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) => return ended(),
                Err(_) => {
                    return match &*self.state.borrow() {
                        State::Offline { why, .. } => Arc::clone(why),
                        _ => Arc::from("the board does not answer"),
                    };
                }
            }
        }
    }

    /// Asks the board. What was not sent yet when a link breaks is sent on the next one. Dropping the answer
    /// cancels the request, on the board too.
    pub async fn ask(&self, request: OwnedRequest, class: Class) -> Result<Answer, BoardError> {
        if let OwnedRequest::Command(text) = &request
            && text.len() > COMMAND_BYTES_MAX
        {
            return Err(BoardError::TooLong(text.len()));
        }
        let (ask, answer) = answer::pair(request, class, Arc::clone(&self.wake));
        self.asks.send(ask).await.map_err(|_| BoardError::Ended)?;
        Ok(answer)
    }
}
