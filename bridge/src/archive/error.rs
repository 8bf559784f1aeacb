//! Why the archive cannot be read or written, and what to do about it. Every message names the file.

use std::path::{Path, PathBuf};

/// What is wrong. It can be kept and shown more than once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// There is no file, or it cannot be opened or made.
    #[error("cannot open the archive {}: {why}; check the path and its rights, or name another: archive: {{path: FILE}}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Another process has it.
    #[error("another picolake keeps the archive {}; stop it, or give this one a file of its own: archive: {{path: FILE}}", path.display())]
    Locked {
        /// Which file.
        path: PathBuf,
    },
    /// There is no room.
    #[error("the disk of the archive {} is full; free some of it, or let the archive stay smaller: archive: {{max_bytes: N}}; what is stored stays, and copying goes on when there is room", path.display())]
    Full {
        /// Which file.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("the archive {} cannot be written; allow this user to write the file and its folder; what is stored stays", path.display())]
    ReadOnly {
        /// Which file.
        path: PathBuf,
    },
    /// It is not what was written.
    #[error("the archive {} is damaged: {why}; it is left as it is: put a good copy in its place, or move it away and a new one is begun, then start again", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What shows it.
        why: String,
    },
    /// It is a file of another program, or of a newer picolake.
    #[error("{} is no archive that this picolake can use: {why}; name another file: archive: {{path: FILE}}", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// What it is.
        why: String,
    },
    /// The system or SQLite failed in another way.
    #[error("the archive {} failed: {why}; look at the disk and the system's log; what is stored stays", path.display())]
    Failed {
        /// Which file.
        path: PathBuf,
        /// How.
        why: String,
    },
    /// A board sent what does not go with what is stored.
    #[error("{0}; update the firmware or the bridge")]
    Protocol(String),
    /// The program is ending.
    #[error("the archive is closed")]
    Closed,
}

impl ArchiveError {
    /// What SQLite says of a file.
    pub(super) fn of(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::*;
        let (path, why) = (path.to_path_buf(), error.to_string());
        match error.sqlite_error_code() {
            Some(DiskFull) => Self::Full { path },
            Some(ReadOnly | PermissionDenied) => Self::ReadOnly { path },
            Some(DatabaseCorrupt | NotADatabase) => Self::Damaged { path, why },
            Some(CannotOpen) => Self::Open { path, why },
            _ => Self::Failed { path, why },
        }
    }

    /// Whether the same file may work later without anybody restarting this program.
    pub(super) fn may_pass(&self) -> bool {
        !matches!(self, Self::Damaged { .. } | Self::Foreign { .. })
    }
}
