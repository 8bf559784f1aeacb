//! The task that copies one board's rows: asks each table for its pages from the watermark on, again and again. Knows
//! neither SQL nor the file.

use super::{
    ArchiveError, Inner,
    intake::Intake,
    series::SeriesKey,
    status::{SyncKey, SyncState},
    writer::now_us,
};
use crate::{
    board::{AnswerError, Hello, OwnedRequest, Piece, Session, State},
    field::{Board, TableInfo},
};
use shared::message::{Class, feature};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long pages may wait in memory for others to be stored with.
const BATCH_TIME_MAX: Duration = Duration::from_millis(250);
/// A stream of more pages is followed by another at once: the board may have filled as many meanwhile.
const CATCH_UP_PAGES: u64 = 4;
/// How long a link may be away until a stream over it is given up; what came of it is stored.
const OFFLINE_GRACE: Duration = Duration::from_secs(3);
/// After a failure the next try waits, twice as long each time, up to this.
const RETRY_MAX: Duration = Duration::from_secs(15);
/// How often the board is asked what tables it has: one may have been created.
const TABLES_INTERVAL: Duration = Duration::from_secs(30);

/// Why a table was not copied.
enum Stop {
    /// The board is not there or has restarted: the next round sees.
    Board,
    /// It will be tried again, later.
    Failed(SyncState),
}

impl From<ArchiveError> for Stop {
    fn from(error: ArchiveError) -> Self {
        let why = error.to_string();
        Stop::Failed(match error {
            ArchiveError::Protocol(_) => SyncState::Failing(why),
            _ => SyncState::Stalled(why),
        })
    }
}

/// What a look at all tables came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Round {
    Current,
    Behind,
}

/// When a table that failed is tried again.
#[derive(Debug)]
struct Retry {
    failures: u32,
    at: Instant,
}

struct Copying {
    inner: Arc<Inner>,
    board: Arc<Board>,
    interval: Duration,
    /// The tables that failed when they were last tried; at most as many as a board lists.
    retries: BTreeMap<SyncKey, Retry>,
}

/// Copies until the task is dropped.
pub(super) async fn run(inner: Arc<Inner>, board: Arc<Board>, interval: Duration) {
    let mut copying = Copying { inner, board, interval, retries: BTreeMap::new() };
    let mut tables_at = Instant::now();
    loop {
        if tables_at.elapsed() >= TABLES_INTERVAL {
            copying.board.forget_catalogue();
            copying.retries.clear(); // of tables that may be gone
            tables_at = Instant::now();
        }
        match copying.round().await {
            Round::Behind => tokio::task::yield_now().await,
            Round::Current => tokio::time::sleep(interval).await,
        }
    }
}

impl Copying {
    async fn round(&mut self) -> Round {
        let Self { inner, board, .. } = self;
        let standing = &inner.standing;
        let Some(hello) = up(&board.session).await else {
            standing.update_board(&board.name, &SyncState::Offline);
            return Round::Current;
        };
        if hello.features & feature::PAGES == 0 {
            standing.update_board(&board.name, &SyncState::Unsupported);
            return Round::Current;
        }
        // A board on two links is copied once, and a row of an earlier start never comes after one of a later.
        let turn = inner.turn(&hello.board_id);
        let _turn = turn.lock().await;
        let catalogue = match board.catalogue().await {
            Ok(catalogue) => catalogue,
            Err(fault) => {
                standing.update_board(&board.name, &SyncState::Failing(fault.to_string()));
                return Round::Current;
            }
        };
        standing.knows_tables(&board.name);
        let mut round = Round::Current;
        for table in &catalogue.tables {
            let key = (board.name.clone(), table.dbms.clone(), table.name.clone());
            if self.retries.get(&key).is_some_and(|retry| retry.at > Instant::now()) {
                continue;
            }
            match copy(inner, board, &hello, table, &key).await {
                Ok(pages) => {
                    self.retries.remove(&key);
                    if pages > CATCH_UP_PAGES {
                        round = Round::Behind;
                    }
                }
                Err(Stop::Board) => return Round::Current,
                Err(Stop::Failed(state)) => {
                    standing.update(&key, |table| table.state = state);
                    let failures = self.retries.get(&key).map_or(1, |retry| retry.failures + 1);
                    let wait = self.interval.saturating_mul(1 << failures.min(16)).min(RETRY_MAX);
                    self.retries.insert(key, Retry { failures, at: Instant::now() + wait });
                }
            }
        }
        round
    }
}

/// What the board says of itself, if it is there and has a start to count rows by.
async fn up(session: &Session) -> Option<Arc<Hello>> {
    let hello = session.wait_up(OFFLINE_GRACE).await.ok()?;
    (hello.epoch != 0).then_some(hello)
}

/// Copies what a table has from the watermark on; returns how many pages came.
async fn copy(
    inner: &Inner,
    board: &Board,
    hello: &Hello,
    table: &TableInfo,
    key: &SyncKey,
) -> Result<u64, Stop> {
    let series = SeriesKey {
        board_id: hello.board_id.clone(),
        epoch: hello.epoch,
        dbms: table.dbms.clone(),
        table: table.name.clone(),
    };
    let from = inner.watermark(&series).await?;
    inner.standing.update(key, |table| table.watermark = Some(from));
    let request = OwnedRequest::Pages {
        dbms: table.dbms.clone(),
        table: table.name.clone(),
        epoch: hello.epoch,
        from,
        acknowledges: true, // the watermark is of what is on the disk
    };
    let mut answer = board.session.ask(request, Class::Background).await.map_err(|_| Stop::Board)?;
    let mut intake = Intake::new(series.clone(), from);
    let mut stored_at = Instant::now();
    let stop = loop {
        let piece = tokio::select! {
            piece = answer.next() => piece,
            _ = board.session.wait_gone(OFFLINE_GRACE) => break Some(Stop::Board),
        };
        let taken = match piece {
            Ok(Some(Piece::Part(bytes))) => match bytes.part() {
                Some(part) => intake.part(&part),
                None => Err(ArchiveError::Protocol("a part came that this bridge does not know".into())),
            },
            Ok(Some(Piece::Rows { count, bytes, lost })) => intake.page(count, &bytes, lost),
            Ok(None) => {
                let lost = answer.complete().map_or(0, |complete| complete.rows_lost);
                break intake.end(lost).err().map(Stop::from);
            }
            Err(error) => break Some(stopped(&board.session, hello, &error)),
        };
        if let Err(error) = taken {
            break Some(error.into());
        }
        if intake.is_full() || intake.pages() > 0 && stored_at.elapsed() >= BATCH_TIME_MAX {
            inner.standing.update(key, |table| table.state = SyncState::Copying);
            store(inner, &mut intake, key).await?;
            stored_at = Instant::now();
        }
    };
    // What came before it broke is as good as the rest.
    store(inner, &mut intake, key).await?;
    match stop {
        Some(stop) => Err(stop),
        None => {
            let now_us = now_us();
            inner.note_synced(series, now_us);
            inner.standing.update(key, |table| {
                (table.state, table.synced_us) = (SyncState::Current, Some(now_us));
            });
            Ok(intake.pages())
        }
    }
}

async fn store(inner: &Inner, intake: &mut Intake, key: &SyncKey) -> Result<(), Stop> {
    let Some(batch) = intake.take_batch() else { return Ok(()) };
    let stored = inner.put(batch).await?;
    inner.standing.update(key, |table| {
        table.rows_copied += stored.rows;
        table.rows_lost += stored.lost;
        table.watermark = Some(stored.watermark);
    });
    Ok(())
}

/// A board that has restarted or gone is no failure: the next round sees how it is.
fn stopped(session: &Session, hello: &Hello, error: &AnswerError) -> Stop {
    let is_same_start = matches!(session.state(), State::Up(now) if now.epoch == hello.epoch);
    match error {
        AnswerError::BoardRestarted | AnswerError::SessionEnded => Stop::Board,
        AnswerError::Refused { .. } if !is_same_start => Stop::Board,
        error => Stop::Failed(SyncState::Failing(error.to_string())),
    }
}
