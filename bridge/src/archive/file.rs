//! The archive's SQLite file: who may write it, how it is opened, what tables it has. Knows nothing of boards.
//!
//! ```text
//!   series  ┌ one for each (board, epoch, database, table) ────────────────────────────┐
//!           │ columns, clock, watermark: the next row that is not stored yet           │
//!           └───────────┬───────────────────────────────────────┬──────────────────────┘
//!   runs    ┌───────────▼──────────────────────────────┐  gaps ┌▼─────────────────────┐
//!           │ rows [first, next), times since boot,    │       │ rows [from, to) that │
//!           │ count, CRC-32: found without their bytes │       │ the board overwrote  │
//!           └───────────┬──────────────────────────────┘       └──────────────────────┘
//!   blobs   ┌───────────▼──────────────────────────────┐
//!           │ page, page, … as the board sent them     │
//!           └──────────────────────────────────────────┘
//! ```

use super::ArchiveError;
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

/// "PLak": whose file it is.
const APPLICATION_ID: i32 = 0x504C_616B;
/// Rises when a table of the file changes.
const VERSION: i32 = 1;
/// How long a connection waits for another; readers and the writer never wait for each other, a recovery may.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pages of the write-ahead log until it is written back to the file: 4 MB.
const WAL_PAGES: u32 = 1000;
/// Bytes to which the write-ahead log is cut when it was written back.
const WAL_BYTES_KEPT: u32 = 8 << 20;
/// KiB of the file that a connection keeps in memory.
const CACHE_KIB: u32 = 2048;
/// Faults that a check of the file lists.
const FAULTS_LISTED_MAX: u32 = 3;

/// Blobs are long and have a table of their own, so that looking for runs does not read them. With SQLite's pages of
/// 4 KiB and blobs of up to 16 KiB the file was 1.019 times the bytes in it; with blobs of 1 KiB, 1.23 times; larger
/// pages did not help, and each commit writes whole ones.
const SCHEMA: &str = "
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    board TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    dbms TEXT NOT NULL,
    name TEXT NOT NULL,
    columns BLOB NOT NULL,
    clock BLOB NOT NULL,
    watermark INTEGER NOT NULL,
    merged_to INTEGER NOT NULL,
    retired_to INTEGER NOT NULL,
    rows_retired INTEGER NOT NULL,
    rows_lost INTEGER NOT NULL,
    begun_us INTEGER NOT NULL,
    synced_us INTEGER NOT NULL,
    ended_us INTEGER,
    UNIQUE (board, epoch, dbms, name)
) STRICT;
CREATE INDEX series_by_table ON series (dbms, name);
CREATE TABLE runs (
    series INTEGER NOT NULL REFERENCES series (id),
    first_row INTEGER NOT NULL,
    next_row INTEGER NOT NULL,
    row_count INTEGER NOT NULL,
    time_min_us INTEGER NOT NULL,
    time_max_us INTEGER NOT NULL,
    byte_count INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    stored_us INTEGER NOT NULL,
    blob INTEGER NOT NULL REFERENCES blobs (id),
    PRIMARY KEY (series, first_row)
) STRICT, WITHOUT ROWID;
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE gaps (
    series INTEGER NOT NULL REFERENCES series (id),
    from_row INTEGER NOT NULL,
    to_row INTEGER,
    at_us INTEGER NOT NULL,
    PRIMARY KEY (series, from_row)
) STRICT, WITHOUT ROWID;
";

/// The file as the one process has it that may write it.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) connection: Connection,
    /// Held while the connection is.
    _lock: File,
}

/// Takes the file for this process, makes it where it is not there, and checks it. A file that is damaged or somebody
/// else's stays as it is, to the byte.
pub(super) fn own(path: &Path) -> Result<Owned, ArchiveError> {
    let lock = lock(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| opening(path, &error))?;
    prepare(path, &connection)?;
    Ok(Owned { connection, _lock: lock })
}

/// Opens the file only to read it, also while another process writes it.
pub(super) fn reader(path: &Path) -> Result<Connection, ArchiveError> {
    if !path.is_file() {
        return Err(ArchiveError::Open { path: path.into(), why: "there is no such file yet".into() });
    }
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| opening(path, &error))?;
    let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
    connection.busy_timeout(BUSY_TIMEOUT).map_err(of)?;
    connection.pragma_update(None, "cache_size", -i64::from(CACHE_KIB)).map_err(of)?;
    if !is_ours(path, &connection)? {
        return Err(ArchiveError::Open { path: path.into(), why: "it is still empty".into() });
    }
    Ok(connection)
}

/// SQLite's write-ahead log beside the archive.
pub(super) fn log_path(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// A file beside the archive.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(ending);
    name.into()
}

/// Locks the file beside the archive that its owner keeps locked.
fn lock(path: &Path) -> Result<File, ArchiveError> {
    let cannot = |error: std::io::Error| ArchiveError::Open { path: path.into(), why: error.to_string() };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    let file = File::options().create(true).truncate(false).write(true).open(beside(path, ".lock"));
    let file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            ArchiveError::ReadOnly { path: path.into() }
        }
        std::io::ErrorKind::StorageFull => ArchiveError::Full { path: path.into() },
        _ => cannot(error),
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ArchiveError::Locked { path: path.into() }),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}

fn prepare(path: &Path, connection: &Connection) -> Result<(), ArchiveError> {
    let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
    connection.busy_timeout(BUSY_TIMEOUT).map_err(of)?;
    // Until it is known to be sound, closing must not write the log back into it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(of)?;
    let is_there = is_ours(path, connection)?;
    if connection.is_readonly("main").map_err(of)? {
        return Err(ArchiveError::ReadOnly { path: path.into() });
    }
    if is_there {
        check(path, connection)?;
    } else {
        connection.pragma_update(None, "page_size", 4096).map_err(of)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(of)?;
    }
    connection.pragma_update(None, "journal_mode", "WAL").map_err(of)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(of)?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES).map_err(of)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT).map_err(of)?;
    connection.pragma_update(None, "foreign_keys", false).map_err(of)?;
    connection.pragma_update(None, "cache_size", -i64::from(CACHE_KIB)).map_err(of)?;
    if !is_there {
        connection
            .execute_batch(&format!(
                "BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
            ))
            .map_err(of)?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(of)?;
    Ok(())
}

/// Whether there is an archive in the file; false if nothing is in it. An error for anything else.
fn is_ours(path: &Path, connection: &Connection) -> Result<bool, ArchiveError> {
    let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(of);
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(of)?;
    let foreign = |why: String| Err(ArchiveError::Foreign { path: path.into(), why });
    match (application, version, objects) {
        (0, 0, 0) => Ok(false),
        (APPLICATION_ID, VERSION, _) => Ok(true),
        (APPLICATION_ID, version, _) => foreign(format!("its version is {version}, not {VERSION}")),
        _ => foreign("it is a database of another program".into()),
    }
}

/// Looks at every page of the file. What is in the blobs is checked when it is read, by its CRC.
fn check(path: &Path, connection: &Connection) -> Result<(), ArchiveError> {
    let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
    let sql = format!("PRAGMA quick_check({FAULTS_LISTED_MAX})");
    let mut statement = connection.prepare(&sql).map_err(of)?;
    let found = statement.query_map([], |row| row.get::<_, String>(0)).map_err(of)?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(of)?;
    if found == ["ok"] {
        return Ok(());
    }
    let why = found.join("; ").replace('\n', " ");
    Err(ArchiveError::Damaged { path: path.into(), why })
}

/// Some systems say no more than that a file cannot be opened.
fn opening(path: &Path, error: &rusqlite::Error) -> ArchiveError {
    match ArchiveError::of(path, error) {
        ArchiveError::Failed { path, why } => ArchiveError::Open { path, why },
        other => other,
    }
}
