//! How the archive stands: its file, and how far the copy of each board's table is. Kept in memory by the process that
//! copies; what is stored is read from the file.

use super::{ArchiveError, Series, series};
use rusqlite::Connection;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How the file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is being opened and checked.
    Opening,
    /// It is written and read.
    Open,
    /// It is not written; why.
    Failed(ArchiveError),
}

/// How the copy of one table of one board is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSync {
    /// What it is doing.
    pub state: SyncState,
    /// Rows copied since this program started.
    pub rows_copied: u64,
    /// Rows found to be overwritten since this program started.
    pub rows_lost: u64,
    /// The next row that is not copied; none before it is known.
    pub watermark: Option<u64>,
    /// When the board last had no more, µs since 1970.
    pub synced_us: Option<i64>,
}

/// What a copy is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncState {
    /// It has not begun.
    Waiting,
    /// Rows are on their way.
    Copying,
    /// The board had no more when it was last asked.
    Current,
    /// The board is not there.
    Offline,
    /// The board's firmware cannot send pages.
    Unsupported,
    /// It failed and is tried again; why.
    Failing(String),
    /// The archive's own file fails, as [`Health`] says, and is tried again; why.
    Stalled(String),
}

impl SyncState {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            SyncState::Waiting => "waiting",
            SyncState::Copying => "copying",
            SyncState::Current => "current",
            SyncState::Offline => "offline",
            SyncState::Unsupported => "unsupported",
            SyncState::Failing(_) | SyncState::Stalled(_) => "failing",
        }
    }
}

/// Which table of which board: (board's name, database, table); the last two are empty for all of a board.
pub type SyncKey = (String, String, String);

/// What is shared by the writer, the copying tasks and whoever looks.
#[derive(Debug)]
pub(super) struct Standing {
    health: Mutex<Health>,
    tables: Mutex<BTreeMap<SyncKey, TableSync>>,
}

impl Standing {
    pub(super) fn new() -> Self {
        Self { health: Mutex::new(Health::Opening), tables: Mutex::default() }
    }

    pub(super) fn health(&self) -> Health {
        lock(&self.health).clone()
    }

    /// Notes how the file is; says so in the log when that changes.
    pub(super) fn set(&self, health: Health) {
        let before = std::mem::replace(&mut *lock(&self.health), health.clone());
        match (&before, &health) {
            (before, now) if before == now => {}
            (_, Health::Failed(error)) => {
                tracing::error!("rows are not archived: {error}; the boards are served all the same")
            }
            (Health::Failed(_), Health::Open) => tracing::warn!("the archive is written again"),
            _ => {}
        }
    }

    pub(super) fn tables(&self) -> BTreeMap<SyncKey, TableSync> {
        lock(&self.tables).clone()
    }

    /// Changes what is known of a table's copy; says so in the log when it begins or ceases to fail.
    pub(super) fn update(&self, key: &SyncKey, change: impl FnOnce(&mut TableSync)) {
        let mut tables = lock(&self.tables);
        let table = tables.entry(key.clone()).or_default();
        let before = table.state.clone();
        change(table);
        let (board, dbms, name) = key;
        match (&before, &table.state) {
            (before, now) if before == now => {}
            (_, SyncState::Failing(why)) => {
                tracing::warn!(board, dbms, table = name, why, "rows are not copied")
            }
            (_, SyncState::Unsupported) => {
                tracing::warn!(
                    board,
                    "its firmware cannot send pages, so its rows are not archived; update it"
                )
            }
            (SyncState::Failing(_), SyncState::Current) => {
                tracing::warn!(board, dbms, table = name, "rows are copied again")
            }
            _ => {}
        }
    }

    /// All tables of a board are so.
    pub(super) fn update_board(&self, board: &str, state: &SyncState) {
        let keys: Vec<SyncKey> =
            lock(&self.tables).keys().filter(|(name, ..)| name == board).cloned().collect();
        if keys.is_empty() {
            return self.update(&(board.into(), String::new(), String::new()), |table| {
                table.state = state.clone();
            });
        }
        for key in keys {
            self.update(&key, |table| table.state = state.clone());
        }
    }

    /// The tables of a board are known: what stood for all of them goes.
    pub(super) fn knows_tables(&self, board: &str) {
        lock(&self.tables).remove(&(board.into(), String::new(), String::new()));
    }
}

impl Default for TableSync {
    fn default() -> Self {
        Self { state: SyncState::Waiting, rows_copied: 0, rows_lost: 0, watermark: None, synced_us: None }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// Every series, with what is stored of it.
    pub series: Vec<(Series, StoredFigures)>,
    /// Bytes of the file, the log beside it not among them.
    pub file_bytes: u64,
    /// Those of them that are free for new rows.
    pub free_bytes: u64,
}

/// What is stored of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredFigures {
    /// Rows.
    pub rows: u64,
    /// Bytes of their pages.
    pub bytes: u64,
    /// Runs of pages.
    pub runs: u64,
    /// Gaps whose rows are counted.
    pub gaps: u64,
}

/// Reads what the file holds.
pub(super) fn contents(path: &Path, connection: &Connection) -> Result<Contents, ArchiveError> {
    let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
    let transaction = connection.unchecked_transaction().map_err(of)?;
    let mut figures: BTreeMap<i64, StoredFigures> = BTreeMap::new();
    {
        let sql = "SELECT series, sum(row_count), sum(byte_count), count(*), (SELECT count(*) FROM gaps WHERE gaps.series = runs.series AND to_row IS NOT NULL) FROM runs GROUP BY series";
        let mut statement = transaction.prepare(sql).map_err(of)?;
        let mut rows = statement.query([]).map_err(of)?;
        while let Some(row) = rows.next().map_err(of)? {
            let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned).map_err(of);
            let stored =
                StoredFigures { rows: number(1)?, bytes: number(2)?, runs: number(3)?, gaps: number(4)? };
            figures.insert(row.get(0).map_err(of)?, stored);
        }
    }
    let series = series::read_all(path, &transaction, None)?;
    let pragma = |name| {
        let read = transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        read.map(i64::cast_unsigned).map_err(of)
    };
    let page_bytes = pragma("page_size")?;
    Ok(Contents {
        series: series
            .into_iter()
            .map(|series| {
                let stored = figures.get(&series.id).copied().unwrap_or_default();
                (series, stored)
            })
            .collect(),
        file_bytes: pragma("page_count")? * page_bytes,
        free_bytes: pragma("freelist_count")? * page_bytes,
    })
}
