//! The field: all boards of a configuration, each once, and what tables they have. Runs no query.

mod catalogue;
mod report;

pub use catalogue::{Catalogue, ColumnInfo, TableInfo};
pub use report::{Report, Seen};

use crate::{
    board::{BoardError, Hello, Session},
    config::Config,
    fault::{Fault, quoted},
    link::{ByteStream, sim::Simulation},
};
use futures_util::future::join_all;
use shared::{command::nearest, limits::QUERIES_MAX};
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// The boards of the simulated field.
pub const DEMO_BOARDS: [&str; 3] = ["greenhouse", "pump", "mill"];
/// How long a board may take to come up before a call goes on without it.
pub const UP_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a board may take to list its tables.
pub const CATALOGUE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a board may be gone while it lists them: a link that breaks is opened again meanwhile.
const GONE_GRACE: Duration = Duration::from_secs(3);
/// Streams that a board has open at once for readers who may be slow: one query is left for all others.
pub const STREAMS_MAX: usize = QUERIES_MAX - 1;
/// How long a stream waits until another one ends.
pub const STREAM_TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// The boards, cheap to clone.
#[derive(Clone, Debug)]
pub struct Field {
    boards: Arc<[Arc<Board>]>,
}

/// One board of the field.
#[derive(Debug)]
pub struct Board {
    /// What people call it.
    pub name: String,
    /// Where it is, for people.
    pub link: String,
    /// Whether tools may change what it holds.
    pub writable: bool,
    /// The session with it.
    pub session: Session,
    known: Mutex<Option<Known>>,
    /// Held by the one call that looks whether the tables have changed.
    looking: tokio::sync::Mutex<()>,
    streams: Arc<Semaphore>,
}

/// What was learnt of a board's tables.
#[derive(Clone, Debug)]
struct Known {
    catalogue: Arc<Catalogue>,
    /// The board was asked after this moment, and these were its tables.
    asked: Instant,
}

/// A board and whether it answers.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Which board.
    pub board: Arc<Board>,
    /// What it said of itself, or why it is not there.
    pub hello: Result<Arc<Hello>, Fault>,
}

/// The boards that have a table, and those that could not be asked.
#[derive(Clone, Debug, Default)]
pub struct Having {
    /// In the field's order.
    pub boards: Vec<(Arc<Board>, Arc<Hello>)>,
    /// Boards that do not answer and may have the table.
    pub missing: Vec<(Arc<Board>, Fault)>,
}

impl Board {
    /// A board of this name behind a session.
    pub fn new(name: impl Into<String>, link: impl Into<String>, session: Session, writable: bool) -> Self {
        let streams = Arc::new(Semaphore::new(STREAMS_MAX));
        let (known, looking) = Default::default();
        Self { name: name.into(), link: link.into(), writable, session, known, looking, streams }
    }

    /// The turn of a stream whose reader may be slow; the stream keeps it as long as the board answers.
    pub(crate) async fn stream_turn(&self) -> Result<OwnedSemaphorePermit, Fault> {
        let turn = tokio::time::timeout(STREAM_TURN_TIMEOUT, Arc::clone(&self.streams).acquire_owned());
        turn.await.ok().and_then(Result::ok).ok_or_else(|| {
            let message = format!("board `{}` has {STREAMS_MAX} streams and exports open already", self.name);
            Fault::new(
                "busy",
                message,
                "read them to their end, or cancel one; or ask with a LIMIT as a query",
            )
            .with("board", self.name.as_str())
        })
    }

    /// What tables it has; asked anew when the board has restarted or says that they changed.
    pub async fn catalogue(&self) -> Result<Arc<Catalogue>, Fault> {
        let hello = self.session.wait_up(UP_TIMEOUT).await?;
        if let Some(known) = self.known_catalogue()
            && known.is_of(&hello)
        {
            return Ok(known);
        }
        self.load(&hello).await
    }

    /// What tables it has, where it has this one; else asked of the board now. A board does not tell that a table was
    /// created by somebody else.
    async fn catalogue_for(&self, dbms: &str, table: &str) -> Result<Arc<Catalogue>, Fault> {
        let called = Instant::now();
        let known = self.catalogue().await?;
        if known.table(dbms, table).is_some() {
            return Ok(known);
        }
        self.bounded(async {
            // Calls that wait here share the next look: however many there are, the board is asked once at a time.
            let _alone = self.looking.lock().await;
            if let Some(known) = self.lock().clone().filter(|known| known.asked > called) {
                return Ok(known.catalogue);
            }
            let (known, asked) = (self.catalogue().await?, Instant::now());
            if !known.is_current(&self.session).await? {
                return self.load(&*self.session.wait_up(UP_TIMEOUT).await?).await;
            }
            *self.lock() = Some(Known { catalogue: Arc::clone(&known), asked });
            Ok(known)
        })
        .await
    }

    async fn load(&self, hello: &Hello) -> Result<Arc<Catalogue>, Fault> {
        let asked = Instant::now();
        let catalogue = Arc::new(self.bounded(Catalogue::load(&self.session, hello)).await?);
        *self.lock() = Some(Known { catalogue: Arc::clone(&catalogue), asked });
        Ok(catalogue)
    }

    /// Asks the board for its tables, and gives up when it is gone or takes too long.
    async fn bounded<T>(&self, asking: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let asking = async {
            tokio::select! {
                asked = asking => asked,
                why = self.session.wait_gone(GONE_GRACE) => Err(BoardError::Offline(why).into()),
            }
        };
        tokio::time::timeout(CATALOGUE_TIMEOUT, asking).await.map_err(|_| {
            let message = format!("board `{}` did not list its tables in {CATALOGUE_TIMEOUT:?}", self.name);
            Fault::new("timeout", message, "look whether the board is busy, then ask again")
        })?
    }

    /// What was known of its tables last, whether it is there or not.
    pub fn known_catalogue(&self) -> Option<Arc<Catalogue>> {
        self.lock().as_ref().map(|known| Arc::clone(&known.catalogue))
    }

    /// The next [`catalogue`](Self::catalogue) asks the board.
    pub fn forget_catalogue(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Field {
    /// Of these boards, in this order.
    pub fn new(boards: impl IntoIterator<Item = Board>) -> Self {
        Self { boards: boards.into_iter().map(Arc::new).collect() }
    }

    /// The boards of a configuration. Begins a session with each on the caller's runtime.
    pub fn of(config: &Config) -> Self {
        Self::new(config.boards.iter().map(|board| {
            let session = Session::connect(board.link.clone(), rand::random());
            Board::new(board.name.clone(), board.link.to_string(), session, board.writable)
        }))
    }

    /// The simulated field: three boards on this machine, only read unless writes are allowed.
    pub fn demo() -> io::Result<Self> {
        let mut boards = Vec::new();
        for name in DEMO_BOARDS {
            let simulation = Simulation::named(name)?;
            let open = move || {
                let link = simulation.connect();
                async move {
                    link.map(|link| Box::new(link) as Box<dyn ByteStream>).map_err(|error| error.to_string())
                }
            };
            let session = Session::connect_with(open, rand::random());
            boards.push(Board::new(name, format!("sim:{name}"), session, false));
        }
        Ok(Self::new(boards))
    }

    /// The same boards and these behind them.
    #[must_use]
    pub fn and(&self, more: &Field) -> Self {
        Self { boards: self.boards.iter().chain(more.boards.iter()).cloned().collect() }
    }

    /// Every board as it is configured.
    pub fn boards(&self) -> &[Arc<Board>] {
        &self.boards
    }

    /// The board of this name.
    pub fn board(&self, name: &str) -> Result<&Arc<Board>, Fault> {
        if let Some(board) = self.boards.iter().find(|board| board.name == name) {
            return Ok(board);
        }
        let names: Vec<&str> = self.boards.iter().map(|board| board.name.as_str()).collect();
        let action = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "list boards in picolake.yaml".into(),
            None => format!("name one of: {}", names.join(", ")),
        };
        Err(Fault::new("unknown_board", format!("there is no board `{}`", quoted(name)), action))
    }

    /// The boards that are named, or all, and how each stands. Waits a little for those that are coming up. A board
    /// that is reached over two links is there once.
    pub async fn standing(&self, named: Option<&[String]>) -> Result<Vec<Standing>, Fault> {
        let boards: Vec<Arc<Board>> = match named {
            None => self.boards.to_vec(),
            Some(names) => names.iter().map(|name| self.board(name).cloned()).collect::<Result<_, _>>()?,
        };
        if boards.is_empty() {
            let action = "list boards in picolake.yaml, or start with --demo for a simulated field";
            return Err(Fault::new("no_boards", "no boards are configured", action));
        }
        let hellos = join_all(boards.iter().map(|board| board.session.wait_up(UP_TIMEOUT))).await;
        let mut standing: Vec<Standing> = Vec::new();
        for (board, hello) in boards.into_iter().zip(hellos) {
            let is_there_already = match &hello {
                Ok(hello) => standing
                    .iter()
                    .any(|other| other.hello.as_ref().is_ok_and(|other| other.board_id == hello.board_id)),
                Err(_) => standing.iter().any(|other| Arc::ptr_eq(&other.board, &board)),
            };
            if !is_there_already {
                let hello = hello.map_err(|error| Fault::from(error).with("board", board.name.as_str()));
                standing.push(Standing { board, hello });
            }
        }
        Ok(standing)
    }

    /// The boards, of those named or of all, that have this table. None of them is an error that names the nearest.
    pub async fn boards_with(
        &self,
        dbms: &str,
        table: &str,
        named: Option<&[String]>,
    ) -> Result<Having, Fault> {
        let standing = self.standing(named).await?;
        let having = find(&standing, dbms, table).await;
        if having.boards.is_empty() {
            return Err(match having.missing.into_iter().next() {
                Some((_, fault)) => fault,
                None => unknown(&standing, dbms, table),
            });
        }
        Ok(having)
    }
}

async fn find(standing: &[Standing], dbms: &str, table: &str) -> Having {
    let catalogues = join_all(standing.iter().map(async |standing| match &standing.hello {
        Ok(_) => standing.board.catalogue_for(dbms, table).await,
        Err(fault) => Err(fault.clone()),
    }));
    let mut having = Having::default();
    for (standing, catalogue) in standing.iter().zip(catalogues.await) {
        let board = Arc::clone(&standing.board);
        let catalogue = catalogue.and_then(|catalogue| Ok((catalogue, standing.hello.clone()?)));
        match catalogue {
            Ok((catalogue, hello)) => {
                if catalogue.table(dbms, table).is_some() {
                    having.boards.push((board, hello));
                }
            }
            Err(fault) => {
                let known = board.known_catalogue();
                // One that was there a moment ago and then did not tell may have it, whatever was known.
                if standing.hello.is_ok() || known.is_none_or(|known| known.table(dbms, table).is_some()) {
                    having.missing.push((board, fault));
                }
            }
        }
    }
    having
}

/// No board has the table: what was probably meant.
fn unknown(standing: &[Standing], dbms: &str, table: &str) -> Fault {
    let catalogues: Vec<_> =
        standing.iter().filter_map(|standing| standing.board.known_catalogue()).collect();
    let tables = || catalogues.iter().flat_map(|catalogue| &catalogue.tables);
    let mut databases: Vec<&str> = tables().map(|table| table.dbms.as_str()).collect();
    databases.sort_unstable();
    databases.dedup();
    if !databases.contains(&dbms) {
        let action = suggestion(dbms, &databases, "the databases are");
        let message = format!("there is no database `{}`", quoted(dbms));
        return Fault::new("unknown_database", message, action);
    }
    let mut names: Vec<&str> =
        tables().filter(|table| table.dbms == dbms).map(|table| table.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let action = suggestion(table, &names, "its tables are");
    let message = format!("database `{dbms}` has no table `{}`", quoted(table));
    Fault::new("unknown_table", message, action)
}

fn suggestion(word: &str, names: &[&str], otherwise: &str) -> String {
    match nearest(word, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{otherwise}: {}", names.join(", ")),
    }
}
