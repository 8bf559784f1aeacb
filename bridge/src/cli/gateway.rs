//! The way from the command line to the boards: through this process if it owns them, else through the one that does.

use crate::{
    archive::Archive,
    config::{Config, FILE_NAME},
    field::Field,
    jobs::Jobs,
    mcp::Server,
    owner::{
        Elected, End, Guest, Host, Lock, OwnerError, Place, Refusal, Reply, Setup, Sink, Wish, answer, elect,
    },
    tools::{Options, Tools},
};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::sync::Mutex;

/// Where exports go in the user's data folder.
const EXPORT_FOLDER: &str = "picolake/exports";
/// The file of tools that is read when no other is named: it is beside the configuration.
const TOOLS_FILE_NAME: &str = "tools.yaml";
/// Times that an owner may end between its greeting and a wish.
const ATTEMPTS_MAX: u32 = 8;
/// How long the archive may take to be closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// A wait at the end that is longer is explained.
const END_PATIENCE: Duration = Duration::from_millis(500);

/// What is needed to own a field.
#[derive(Clone, Debug)]
pub(crate) struct Estate {
    config: Config,
    is_demo: bool,
    /// The owner copies the boards' rows: one that stays.
    has_archive: bool,
    options: Options,
    /// The options that were given, not those that are usual.
    given: Setup,
    pub(crate) place: Place,
}

/// The boards, for one command of the command line.
#[derive(Debug)]
pub(crate) struct Gateway {
    estate: Estate,
    /// There while this process is the owner.
    host: Mutex<Option<Host>>,
}

/// Why a wish was not even answered with an error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// Whoever reads standard output has gone, or it cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

enum Way {
    Owner(Tools),
    Guest(Guest),
}

impl Estate {
    /// The boards of the configuration, and the simulated ones if they are wanted; tools as they are usual where
    /// nothing else is given.
    pub(crate) fn new(
        config: &Config,
        named: Option<&Path>,
        is_demo: bool,
        given: Options,
    ) -> Result<Self, OwnerError> {
        let file = named.unwrap_or(Path::new(FILE_NAME));
        let place = Place::of(file.exists().then_some(file), is_demo)?;
        let setup = Setup::of(&given);
        let options = Options { user_file: given.user_file.or_else(|| tools_file(named)), ..given };
        Ok(Self { config: config.clone(), is_demo, has_archive: false, options, given: setup, place })
    }

    /// The same for an owner that stays, and so copies the boards' rows.
    pub(crate) fn with_archive(self) -> Self {
        Self { has_archive: true, ..self }
    }

    /// Opens the links and listens for guests.
    pub(crate) fn begin(&self, lock: Lock) -> Result<Host, OwnerError> {
        let fail = |what: &str, error: &dyn std::error::Error| OwnerError::Begin(format!("{what}{error}"));
        let mut field = Field::of(&self.config);
        let mut archived = field.clone();
        if self.is_demo {
            let demo = Field::demo().map_err(|error| fail("the simulated field does not start: ", &error))?;
            field = field.and(&demo);
            // Simulated boards are others at every start: in the user's own archive they would only pile up.
            if self.config.archive.named_path().is_some() {
                archived = field.clone();
            }
        }
        let archive = match self.config.archive.options() {
            Some(options) if self.has_archive && !archived.boards().is_empty() => {
                Some(Archive::start(options, &archived))
            }
            _ => None,
        };
        let export_folder = self.options.export_folder.clone().or_else(usual_export_folder);
        let views = self.config.views.clone();
        let options = Options { archive, export_folder, views, ..self.options.clone() };
        let tools = Tools::new(field, options).map_err(|error| fail("", &error))?;
        Host::listen(lock, Server::new(tools))
    }

    /// What this process is to the field.
    pub(crate) async fn elect(&self) -> Result<Elected, OwnerError> {
        elect(&self.place, &self.given).await
    }
}

impl Gateway {
    pub(crate) fn new(estate: Estate) -> Self {
        Self { estate, host: Mutex::default() }
    }

    /// The same for commands that have no options of their own.
    pub(crate) fn to(config: &Config, named: Option<&Path>, is_demo: bool) -> Result<Self, OwnerError> {
        Ok(Self::new(Estate::new(config, named, is_demo, Options::default())?))
    }

    /// Asks, and hands on the replies. Dropping this cancels what was asked, on the boards too. An owner that has
    /// ended between two wishes is followed by another one, which may be this process.
    pub(crate) async fn ask(&self, wish: Wish, sink: &mut impl Sink) -> Result<(), AskError> {
        for _ in 0..ATTEMPTS_MAX {
            let mut guest = match self.way().await? {
                Way::Owner(tools) => return Ok(answer(&tools, wish, sink).await?),
                Way::Guest(guest) => guest,
            };
            if guest.wish(&wish).await.is_err() {
                continue;
            }
            loop {
                match guest.next().await? {
                    Reply::Goodbye {} => break,
                    reply => {
                        let is_last = !matches!(reply, Reply::Text(_));
                        sink.reply(reply).await?;
                        if is_last {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Err(OwnerError::Silent { pid: crate::owner::holder(&self.estate.place) }.into())
    }

    /// Asks for what is one reply.
    pub(crate) async fn get(&self, wish: Wish) -> Result<Reply, AskError> {
        let mut shown = Shown::new(io::sink());
        self.ask(wish, &mut shown).await?;
        Ok(shown.last)
    }

    /// The other process that owns the boards, if one does; else this one does now.
    pub(crate) async fn owner(&self) -> Result<Option<u32>, OwnerError> {
        Ok(match self.way().await? {
            Way::Owner(_) => None,
            Way::Guest(guest) => Some(guest.pid),
        })
    }

    async fn way(&self) -> Result<Way, OwnerError> {
        let mut host = self.host.lock().await;
        if let Some(host) = &*host {
            return Ok(Way::Owner(host.server().tools().clone()));
        }
        Ok(match self.estate.elect().await? {
            Elected::Guest(guest) => Way::Guest(guest),
            Elected::Owner(lock) => {
                let begun = host.insert(self.estate.begin(lock)?);
                Way::Owner(begun.server().tools().clone())
            }
        })
    }

    /// The jobs of this process, if it owns the boards: others go on when it has ended.
    pub(crate) async fn jobs(&self) -> Option<Jobs> {
        self.host.lock().await.as_ref().map(|host| host.server().tools().jobs().clone())
    }

    /// Ends in order: guests get what they have asked. Ctrl-C does not wait for that.
    pub(crate) async fn end(self) {
        if let Some(host) = self.host.into_inner() {
            end(host).await;
        }
    }
}

/// Ends an owner, and says so if that takes long.
pub(crate) async fn end(host: Host) {
    let archive = host.server().tools().archive().cloned();
    let mut ending = std::pin::pin!(host.end());
    if tokio::time::timeout(END_PATIENCE, &mut ending).await.is_err() {
        eprintln!(
            "note: other programs use the boards through this one; it ends when they have their answers"
        );
        tokio::select! {
            () = ending => {}
            () = super::serve::stopped() => {}
        }
    }
    if let Some(archive) = archive {
        // A disk that is slow must not keep the program: what is not closed is as good after the next start.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, archive.close()).await;
    }
}

/// Replies for a person: texts go out as they come, the last reply is kept.
#[derive(Debug)]
pub(crate) struct Shown<W> {
    out: W,
    /// How it ended.
    pub(crate) last: Reply,
}

impl<W: Write + Send> Shown<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, last: Reply::End(End::default()) }
    }

    /// Says what is to be said besides the answer, or why there is none.
    pub(crate) fn told(self) -> Result<(), Refusal> {
        match self.last {
            Reply::Error(refusal) => return Err(refusal),
            Reply::End(End { rows_lost, clock_unset, hint }) => {
                if rows_lost > 0 {
                    eprintln!("note: {rows_lost} rows were overwritten on a board before they could be sent");
                }
                if clock_unset {
                    eprintln!("note: a board's clock is not set; its timestamps count from its start");
                }
                if let Some(hint) = hint {
                    eprintln!("note: {}", shared::format::Printable(&hint));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl<W: Write + Send> Sink for Shown<W> {
    async fn reply(&mut self, reply: Reply) -> io::Result<()> {
        match reply {
            Reply::Text(text) => {
                self.out.write_all(text.as_bytes())?;
                self.out.flush()
            }
            last => {
                self.last = last;
                Ok(())
            }
        }
    }
}

impl AskError {
    /// Whether it only says that whoever read standard output has gone.
    pub(crate) fn is_reader_gone(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Asks and writes the answer to standard output; Ctrl-C cancels it, on the boards too.
pub(crate) async fn print(gateway: &Gateway, wish: Wish) -> anyhow::Result<()> {
    let mut shown = Shown::new(io::stdout());
    tokio::select! {
        asked = gateway.ask(wish, &mut shown) => match asked {
            Err(error) if error.is_reader_gone() => return Ok(()), // `picolake query … | head` has what it wants
            asked => asked?,
        },
        stopped = tokio::signal::ctrl_c() => {
            stopped?;
            anyhow::bail!("cancelled");
        }
    }
    shown.told().map_err(|refusal| anyhow::anyhow!("{refusal}"))
}

/// Where exports go where nothing else is said; boards can be asked without it.
fn usual_export_folder() -> Option<PathBuf> {
    let folder = dirs::data_dir()?.join(EXPORT_FOLDER);
    std::fs::create_dir_all(&folder).is_ok().then_some(folder)
}

/// The user's file of tools, if there is one beside the configuration.
pub(crate) fn tools_file(config: Option<&Path>) -> Option<PathBuf> {
    let file = config.unwrap_or(Path::new(FILE_NAME)).with_file_name(TOOLS_FILE_NAME);
    file.is_file().then_some(file)
}
