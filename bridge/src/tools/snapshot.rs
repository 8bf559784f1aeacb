//! Answers that are given in pages: what the next page needs of the first, for a while.

use crate::{
    fault::Fault,
    query::{Batch, Leg, Question, Source},
};
use serde_json::{Map, Value};
use shared::command::Format;
use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Snapshots that are kept; the one that was not read for the longest time goes first.
const SNAPSHOTS_MAX: usize = 64;
/// How long a snapshot is kept.
const SNAPSHOT_LIFETIME: Duration = Duration::from_secs(600);

/// What the pages of an answer have in common.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// When it was taken, in microseconds since 1970 UTC.
    pub(super) as_of_us: i64,
    pub(super) rest: Rest,
    /// Boards whose part is missing, and why.
    pub(super) missing: Map<String, Value>,
    /// The same of boards that failed on a later page, by their places among those of `rest`.
    pub(super) failed: Mutex<BTreeMap<usize, (String, Value)>>,
    pub(super) is_strict: bool,
    /// As the query said it, for pages where nobody says another one.
    pub(super) format: Format,
    pub(super) has_statistics: bool,
}

impl Snapshot {
    /// Boards whose part is missing from what is before a position or everywhere, and why.
    pub(super) fn missing_before(&self, position: Position) -> Map<String, Value> {
        let mut missing = self.missing.clone();
        missing.extend(self.lock_failed().range(..position.leg).map(|(_, failed)| failed.clone()));
        missing
    }

    /// A later page was read: the board at this place failed, or gave its part after all.
    pub(super) fn note(&self, leg: usize, failed: Option<(String, Value)>) {
        match failed {
            Some(failed) => drop(self.lock_failed().insert(leg, failed)),
            None => drop(self.lock_failed().remove(&leg)),
        }
    }

    fn lock_failed(&self) -> MutexGuard<'_, BTreeMap<usize, (String, Value)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the rows of the next pages are.
#[derive(Debug)]
pub(super) enum Rest {
    /// On these boards, each with the rows that belong to the snapshot.
    Boards(Box<Question>, Vec<Leg>),
    /// Here: the whole answer.
    Kept(Box<Source>, Vec<Batch>),
}

impl Snapshot {
    /// Whether a page can begin there: no cursor that this bridge gave leads anywhere else.
    pub(super) fn has(&self, position: Position) -> bool {
        let Position { leg, next, rows } = position;
        match &self.rest {
            Rest::Kept(_, batches) => {
                leg == 0 && next == 0 && rows <= batches.iter().map(|batch| u64::from(batch.count)).sum()
            }
            Rest::Boards(_, legs) => {
                let pinned = |leg: &Leg| leg.pin.as_ref().map_or(0..0, |pin| pin.rows.clone());
                let Some(present) = legs.get(leg).map(pinned) else { return false };
                let length = |rows: Range<u64>| rows.end.saturating_sub(rows.start);
                let before = legs[..leg].iter().map(|leg| length(pinned(leg)));
                let given = if next == 0 { 0 } else { next.saturating_sub(present.start) };
                let most = before.fold(given, u64::saturating_add);
                (next == 0 || (present.start..=present.end).contains(&next)) && rows <= most
            }
        }
    }
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The board that is read.
    pub(super) leg: usize,
    /// Its next row by row_id; the first of a board where it is 0.
    pub(super) next: u64,
    /// Rows given or skipped so far.
    pub(super) rows: u64,
}

/// The snapshots that are kept.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    kept: VecDeque<(u64, Instant, Arc<Snapshot>)>,
}

impl Snapshots {
    /// Keeps one; returns what it is found by.
    pub(super) fn keep(&mut self, snapshot: Arc<Snapshot>) -> u64 {
        let id = rand::random();
        if self.kept.len() == SNAPSHOTS_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((id, Instant::now(), snapshot));
        id
    }

    fn find(&mut self, id: u64) -> Option<Arc<Snapshot>> {
        self.kept.retain(|(_, taken, _)| taken.elapsed() < SNAPSHOT_LIFETIME);
        let place = self.kept.iter().position(|(other, ..)| *other == id)?;
        let found = self.kept.remove(place)?;
        let snapshot = Arc::clone(&found.2);
        self.kept.push_back(found); // what is read goes last
        Some(snapshot)
    }

    /// The snapshot and the place in it that a cursor names.
    pub(super) fn open(&mut self, cursor: &str) -> Result<(u64, Arc<Snapshot>, Position), Fault> {
        let (id, position) = read_cursor(cursor).ok_or_else(forged)?;
        let snapshot = self.find(id).ok_or_else(|| {
            let minutes = SNAPSHOT_LIFETIME.as_secs() / 60;
            let message = format!("the cursor has expired: {SNAPSHOTS_MAX} are kept, for {minutes} minutes");
            Fault::new("cursor_expired", message, "ask again without the cursor")
        })?;
        Ok((id, snapshot, position))
    }
}

/// A cursor that is nobody's.
pub(super) fn forged() -> Fault {
    let message = "argument `cursor` is not one that this bridge gave";
    Fault::new("wrong_argument", message, "give next_cursor as it was").with("argument", "cursor")
}

/// As callers get it.
pub(super) fn write_cursor(id: u64, position: Position) -> String {
    let Position { leg, next, rows } = position;
    format!("{id:016x}-{leg}-{next}-{rows}")
}

fn read_cursor(cursor: &str) -> Option<(u64, Position)> {
    let mut parts = cursor.split('-');
    let id = parts.next().filter(|id| id.len() == 16)?;
    let id = u64::from_str_radix(id, 16).ok()?;
    let position = Position {
        leg: parts.next()?.parse().ok()?,
        next: parts.next()?.parse().ok()?,
        rows: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some((id, position))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Arc<Snapshot> {
        Arc::new(Snapshot {
            as_of_us: 0,
            rest: Rest::Boards(Box::new(Question::empty()), Vec::new()),
            missing: Map::new(),
            failed: Mutex::default(),
            is_strict: false,
            format: Format::Mcp,
            has_statistics: true,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_cursor_is_good_until_it_is_old_or_one_of_too_many() {
        let mut snapshots = Snapshots::default();
        let position = Position { leg: 2, next: 70, rows: 100 };
        let first = write_cursor(snapshots.keep(snapshot()), position);
        assert_eq!(snapshots.open(&first).unwrap().2, position);
        for _ in 1..SNAPSHOTS_MAX {
            snapshots.keep(snapshot());
        }
        let second = write_cursor(snapshots.kept[1].0, position);
        assert!(snapshots.open(&second).is_ok(), "what is read stays");
        let last = write_cursor(snapshots.keep(snapshot()), position);
        assert_eq!(snapshots.open(&first).unwrap_err().code, "cursor_expired");
        assert!(snapshots.open(&second).is_ok() && snapshots.open(&last).is_ok());
        tokio::time::advance(SNAPSHOT_LIFETIME).await;
        assert_eq!(snapshots.open(&last).unwrap_err().code, "cursor_expired");
        for forged in [
            "",
            "x",
            "0-0-0-0",
            "0000000000000001-0-0",
            "0000000000000001-0-0-0-0",
            "0000000000000001--1-0-0",
        ] {
            assert_eq!(snapshots.open(forged).unwrap_err().code, "wrong_argument", "{forged}");
        }
    }
}
