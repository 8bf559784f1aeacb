//! What the archive has of one table of one board since one start of it: read from the file, for whoever queries.

use super::ArchiveError;
use crate::query::OwnedColumn;
use rusqlite::{Connection, Row, params};
use shared::{clock::UtcClock, message, schema::Columns};
use std::path::Path;

/// Whose rows: row_ids count within this.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesKey {
    /// The chip's own id, in hexadecimal.
    pub board_id: String,
    /// The random number of the board's start.
    pub epoch: u64,
    /// The database.
    pub dbms: String,
    /// The table.
    pub table: String,
}

/// What is stored of a series, as it was when this was read.
///
/// Rows `first_row..watermark` are in the archive, except those of [`gaps`](super::Archive::gaps); rows from
/// `watermark` on are only on the board, if at all. A query that covers both reads the archive up to this watermark
/// and asks the board for `_row_id >= watermark`: what is copied meanwhile is behind the watermark of this value, and
/// [`Chunks`](super::Chunks) leave it out.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its number in the file.
    pub id: i64,
    /// Whose rows.
    pub key: SeriesKey,
    /// The columns of every row; the first is the time.
    pub columns: Vec<OwnedColumn>,
    /// Turns the time since boot that pages hold into dates.
    pub clock: UtcClock,
    /// Rows before this one were given up by retention.
    pub first_row: u64,
    /// The next row that is not stored yet.
    pub watermark: u64,
    /// Rows that the board overwrote before they were copied, those after its last restart not among them.
    pub rows_lost: u64,
    /// Rows that retention gave up.
    pub rows_retired: u64,
    /// When the board was last found to have no more, µs since 1970; while it is quiet, up to
    /// [`SYNCED_WRITE_US`](super::SYNCED_WRITE_US) old.
    pub as_of_us: i64,
    /// The board has started again since: nothing more will come.
    pub is_ended: bool,
}

/// Rows of a series that the board overwrote before they were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first.
    pub from_row: u64,
    /// The one behind the last; none where the board restarted and nobody knows how many there were.
    pub to_row: Option<u64>,
    /// When it was found, µs since 1970.
    pub at_us: i64,
}

const COLUMNS: &str = "id, board, epoch, dbms, name, columns, clock, retired_to, watermark, rows_lost, rows_retired, synced_us, ended_us";

/// The series of a table over all boards and starts, or of all tables.
pub(super) fn read_all(
    path: &Path,
    connection: &Connection,
    table: Option<(&str, &str)>,
) -> Result<Vec<Series>, ArchiveError> {
    let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
    let condition = if table.is_some() { "WHERE dbms = ?1 AND name = ?2" } else { "" };
    let sql = format!("SELECT {COLUMNS} FROM series {condition} ORDER BY dbms, name, board, id");
    let mut statement = connection.prepare_cached(&sql).map_err(of)?;
    let mut rows = match table {
        Some((dbms, name)) => statement.query(params![dbms, name]),
        None => statement.query([]),
    }
    .map_err(of)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().map_err(of)? {
        all.push(read(path, row)?);
    }
    Ok(all)
}

fn read(path: &Path, row: &Row<'_>) -> Result<Series, ArchiveError> {
    let damaged = |what: &str| ArchiveError::Damaged { path: path.into(), why: what.into() };
    let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
    let number = |index: usize| row.get::<_, i64>(index).map(i64::cast_unsigned).map_err(of);
    let columns = row.get_ref(5).map_err(of)?.as_blob().map_err(|_| damaged("columns are no bytes"))?;
    let columns = message::read::<Columns<'_>>(columns).ok_or_else(|| damaged("columns cannot be read"))?;
    let clock = row.get_ref(6).map_err(of)?.as_blob().map_err(|_| damaged("a clock is no bytes"))?;
    let clock = message::read::<UtcClock>(clock).filter(UtcClock::is_sound);
    Ok(Series {
        id: row.get(0).map_err(of)?,
        key: SeriesKey {
            board_id: row.get(1).map_err(of)?,
            epoch: number(2)?,
            dbms: row.get(3).map_err(of)?,
            table: row.get(4).map_err(of)?,
        },
        columns: columns.iter().map(OwnedColumn::from).collect(),
        clock: clock.ok_or_else(|| damaged("a clock cannot be read"))?,
        first_row: number(7)?,
        watermark: number(8)?,
        rows_lost: number(9)?,
        rows_retired: number(10)?,
        as_of_us: row.get(11).map_err(of)?,
        is_ended: row.get::<_, Option<i64>>(12).map_err(of)?.is_some(),
    })
}

/// The gaps of a series, in the order of their rows.
pub(super) fn gaps(path: &Path, connection: &Connection, series: i64) -> Result<Vec<Gap>, ArchiveError> {
    let of = |error: rusqlite::Error| ArchiveError::of(path, &error);
    let sql = "SELECT from_row, to_row, at_us FROM gaps WHERE series = ? ORDER BY from_row";
    let mut statement = connection.prepare_cached(sql).map_err(of)?;
    let gaps = statement.query_map([series], |row| {
        Ok(Gap {
            from_row: row.get::<_, i64>(0)?.cast_unsigned(),
            to_row: row.get::<_, Option<i64>>(1)?.map(i64::cast_unsigned),
            at_us: row.get(2)?,
        })
    });
    gaps.map_err(of)?.collect::<Result<_, _>>().map_err(of)
}
