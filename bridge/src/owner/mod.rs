//! One process owns a field: its links, its jobs, its snapshots. Others of the same user ask it over a local socket.
//!
//! ```text
//!   election ── lock free? ── yes: owner ── host ── listens while it lives ─┐
//!      ▲            └─ no:  connect, or wait a moment and look again        │ <key>.sock
//!      │                                                                    │
//!      └─ the owner has gone ── guest ── one wish, its replies ─────────────┤
//!                            └─ relay ── an MCP client's lines, both ways ──┘
//! ```
//!
//! What is said on the socket is in `wire`; what the owner does about it, for guests and for itself, is in `work`. A
//! guest never opens a link. The kernel frees the lock of a process that is killed.

mod election;
mod guest;
mod host;
mod lines;
mod lock;
mod place;
mod relay;
mod wire;
mod work;

pub(crate) use election::{Elected, elect};
pub(crate) use guest::Guest;
pub(crate) use host::Host;
pub(crate) use lock::{Lock, holder};
pub use place::Place;
pub(crate) use relay::relay;
pub(crate) use wire::{End, Refusal, Reply, Setup, Wish};
pub(crate) use work::{Sink, answer};

use std::{io, path::PathBuf, time::Duration};

/// How long it may take until there is an owner: one that ends has this long to answer what it has read.
pub const ELECTION_TIMEOUT: Duration = Duration::from_secs(55);
/// Guests of an owner at once.
pub const GUESTS_MAX: usize = 64;
/// How long a guest may take to say what it wishes, and an owner to greet.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an owner that ends goes on with what guests have asked.
pub const END_TIMEOUT: Duration = Duration::from_secs(48);
/// Bytes of one line on the socket.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Why there is neither an owner here nor a way to one.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// There is no folder for the lock and the socket.
    #[error("there is no folder for the lock of the boards; set PICOLAKE_RUNTIME_DIR to a folder of yours")]
    NoFolder,
    /// A file cannot be used.
    #[error("cannot use {} for the lock of the boards: {source}; set PICOLAKE_RUNTIME_DIR to a folder of yours", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could reach the socket.
    #[error("{} is no safe place for a socket: {why}; {action}", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
        /// What to do.
        action: String,
    },
    /// A socket's path has a limit.
    #[error(
        "{} is too long for a socket's path; set PICOLAKE_RUNTIME_DIR to a folder with a shorter one",
        path.display()
    )]
    PathTooLong {
        /// Which.
        path: PathBuf,
    },
    /// Somebody has the lock and does not answer.
    #[error(
        "{} owns these boards and did not answer within {ELECTION_TIMEOUT:?}; stop it, then try again",
        process(*pid)
    )]
    Silent {
        /// Who, if the lock file says it.
        pid: Option<u32>,
    },
    /// The owner is of another release.
    #[error(
        "picolake {theirs} (process {pid}) owns these boards and this is {ours}: they do not understand each other; \
         stop the older one, then try again"
    )]
    Version {
        /// Its process.
        pid: u32,
        /// Its release.
        theirs: String,
        /// This one.
        ours: &'static str,
    },
    /// The owner was set up otherwise.
    #[error(
        "picolake (process {pid}) owns these boards and its {what} apply, not those given here ({given}); \
         leave them out, or stop that process first"
    )]
    Setup {
        /// Its process.
        pid: u32,
        /// Which option differs, with the owner's value.
        what: String,
        /// What was given.
        given: String,
    },
    /// The owner refused.
    #[error("{0}")]
    Refused(Refusal),
    /// The connection broke.
    #[error("the process that owns these boards has gone before its answer was complete: {0}; ask again")]
    Gone(io::Error),
    /// What the owner needs cannot be set up.
    #[error("{0}")]
    Begin(String),
}

/// A process, for people.
fn process(pid: Option<u32>) -> String {
    pid.map_or("another picolake".into(), |pid| format!("another picolake (process {pid})"))
}
