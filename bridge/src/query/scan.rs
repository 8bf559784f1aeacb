//! A stream of rows from each board, one board behind the other. Each board is asked at once and waits for its turn.

use super::{
    Context, OwnedColumn, Question,
    columns::fitted,
    context::Progress,
    question::TableShape,
    source::{Batch, kinds},
};
use crate::{
    board::{Answer, OwnedRequest, PartBytes, Piece, Session, State, decode_rows},
    fault::Fault,
    field::{Board, UP_TIMEOUT},
};
use futures_util::future::join_all;
use shared::{
    engine::Fragment,
    limits::COLUMNS_MAX,
    message::{Class, Part},
    schema::Column,
    value::{ColumnType, Value},
};
use std::{collections::VecDeque, ops::Range, sync::Arc};
use tokio::sync::OwnedSemaphorePermit;

/// What a snapshot keeps of a board: these rows of this boot, the first not yet given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The boot.
    pub epoch: u64,
    /// By row_id.
    pub rows: Range<u64>,
}

/// A board's part in a scan.
#[derive(Clone, Debug)]
pub struct Leg {
    /// Which board.
    pub board: Arc<Board>,
    /// The chip's own id, in hexadecimal.
    pub board_id: String,
    /// The boot in which it was when the question was planned.
    pub epoch: u64,
    /// The type that each column of the question's table has on it; none where it has no such column.
    pub kinds: Arc<[Option<ColumnType>]>,
    /// The board's table has just the question's columns, in their order.
    pub is_same: bool,
    /// The rows that are wanted; none is all there are now.
    pub pin: Option<Pin>,
}

impl Leg {
    /// Whether the board runs and is in another boot than the one whose rows are wanted.
    fn has_restarted(&self) -> bool {
        match (self.board.session.state(), &self.pin) {
            (State::Up(hello), Some(pin)) => hello.epoch != pin.epoch,
            _ => false,
        }
    }
}

/// What comes next.
#[derive(Debug)]
pub enum Step {
    /// Rows.
    Rows(Batch),
    /// A board's part is complete; so many rows of it were overwritten before they could be sent.
    Complete(usize, u64),
    /// A board's part failed: what came of it does not count.
    Failed(usize, Fault),
    /// That was the last.
    End,
}

/// A leg whose head has arrived.
#[derive(Debug)]
struct Open {
    answer: Answer,
    /// The board's columns, for the row code; the last is the row's id.
    kinds: Vec<Column<'static>>,
    /// What the board does of a stream; the rest is done here.
    fragment: Fragment,
    /// Rows of the snapshot that were gone when it was asked.
    rows_lost: u64,
    /// What is lost before the first batch.
    lost_untold: u64,
    /// Given back when the board's part has ended.
    _turn: Option<OwnedSemaphorePermit>,
}

/// A scan under way.
#[derive(Debug)]
pub struct Scan {
    /// The boards that are read, and the rows of each.
    pub legs: Vec<Leg>,
    /// Boards' clocks are all set.
    pub clock_set: bool,
    shape: TableShape,
    open: VecDeque<Result<Open, Fault>>,
    current: usize,
    context: Context,
    progress: Progress,
    /// Rows that were overwritten before they could be sent: of all boards, and of the present one.
    rows_lost: u64,
    leg_lost: u64,
}

/// What arrived first of a leg.
struct Head {
    answer: Answer,
    columns: Vec<OwnedColumn>,
    pin: Pin,
    rows_lost: u64,
    lost_at_start: u64,
    clock_set: bool,
    fragment: Fragment,
}

impl Scan {
    /// Asks every board for its part and waits for their heads. `limit` is of the rows of each. An error if no board
    /// can answer; a board that fails alone is a failed [`Step`].
    pub async fn open(
        question: &Question,
        fragment: Fragment,
        legs: Vec<Leg>,
        limit: Option<u64>,
        context: &Context,
        class: Class,
    ) -> Result<Self, Fault> {
        let turns = turns(&legs, context, class).await?;
        let heads = join_all(legs.iter().map(|leg| head(question, fragment, leg, limit, context, class)));
        let heads = heads.await;
        if context.cancelled.is_cancelled() {
            return Err(Fault::cancelled());
        }
        let boards = u32::try_from(legs.len()).unwrap_or(u32::MAX);
        let mut scan = Self {
            legs,
            clock_set: true,
            shape: question.shape(),
            open: VecDeque::new(),
            current: 0,
            context: context.clone(),
            progress: Progress { boards, ..Progress::default() },
            rows_lost: 0,
            leg_lost: 0,
        };
        for ((leg, head), _turn) in scan.legs.iter_mut().zip(heads).zip(turns) {
            let opened = match head {
                Err(fault) => Err(fault.with("board", leg.board.name.as_str())),
                Ok(Head { answer, columns, pin, rows_lost, lost_at_start, clock_set, fragment }) => {
                    scan.clock_set &= clock_set;
                    leg.epoch = pin.epoch;
                    leg.pin = Some(pin);
                    let lost_untold = rows_lost.saturating_add(lost_at_start);
                    Ok(Open { answer, kinds: kinds(&columns), fragment, rows_lost, lost_untold, _turn })
                }
            };
            scan.open.push_back(opened);
        }
        if scan.open.iter().all(Result::is_err)
            && let Some(Err(fault)) = scan.open.pop_front()
        {
            return Err(fault);
        }
        Ok(scan)
    }

    /// What comes next. Dropping the future loses nothing; dropping the scan cancels it on the boards.
    pub async fn next(&mut self) -> Step {
        let leg = self.current;
        let Some(front) = self.open.front_mut() else { return Step::End };
        let fault = match front {
            Err(fault) => fault.clone(),
            Ok(open) => match self.context.board(&self.legs[leg].board.session, open.answer.next()).await {
                // A stream of which no rows had come begins again, among the rows of another boot.
                Ok(Ok(Some(Piece::Rows { .. }))) if self.legs[leg].has_restarted() => restarted(),
                Ok(Ok(Some(Piece::Rows { count, bytes, lost }))) => {
                    self.progress.rows += u64::from(count);
                    self.context.report(self.progress);
                    let lost = lost.saturating_add(std::mem::take(&mut open.lost_untold));
                    self.rows_lost = self.rows_lost.saturating_add(lost);
                    self.leg_lost = self.leg_lost.saturating_add(lost);
                    return Step::Rows(Batch { leg, count, bytes, lost });
                }
                Ok(Ok(Some(Piece::Part(_)))) => Fault::protocol("a part came among rows"),
                Ok(Ok(None)) => {
                    let told = open.answer.complete().map_or(0, |end| end.rows_lost);
                    let lost = open.rows_lost.saturating_add(told);
                    let untold = lost.saturating_sub(std::mem::take(&mut self.leg_lost));
                    self.rows_lost = self.rows_lost.saturating_add(untold);
                    self.open.pop_front();
                    self.current += 1;
                    self.progress.boards_done += 1;
                    self.context.report(self.progress);
                    return Step::Complete(leg, lost);
                }
                Ok(Err(error)) => Fault::from(error),
                Err(fault) => fault,
            },
        };
        self.open.pop_front();
        self.current += 1;
        let name = self.legs.get(leg).map_or("", |leg| leg.board.name.as_str());
        Step::Failed(leg, fault.with("board", name))
    }

    /// Rows that were overwritten before they could be sent, as far as it has come.
    pub fn rows_lost(&self) -> u64 {
        self.rows_lost
    }

    /// Gives each row of the answer that a batch of the present board makes to `each`, with its row_id.
    pub fn rows(
        &self,
        question: &Question,
        batch: &Batch,
        mut each: impl FnMut(u64, &[Value<'_>]),
    ) -> Result<(), Fault> {
        let mut failed = Ok(());
        self.decode(batch, |fragment, cells| {
            let Some((Value::Int(row_id), shown)) = cells.split_last() else { return };
            let row_id = row_id.cast_unsigned();
            if fragment == Fragment::Stream {
                let mut row = [Value::Null; COLUMNS_MAX];
                for ((to, column), cell) in row.iter_mut().zip(&question.answer).zip(shown) {
                    *to = fitted(*cell, column.kind);
                }
                each(row_id, &row[..question.answer.len()]);
            } else if failed.is_ok() {
                let row = self.shape.row(cells, &self.legs[batch.leg]);
                failed = question.stream_row(&row[..self.shape.width()], |row| each(row_id, row));
            }
        })?;
        Ok(failed?)
    }

    /// Gives each row of the table that a batch of the present board has to `each`, with the hidden columns.
    pub(super) fn table_rows(&self, batch: &Batch, mut each: impl FnMut(&[Value<'_>])) -> Result<(), Fault> {
        let Some(leg) = self.legs.get(batch.leg) else { return Ok(()) };
        self.decode(batch, |_, cells| each(&self.shape.row(cells, leg)[..self.shape.width()]))
    }

    fn decode(&self, batch: &Batch, mut each: impl FnMut(Fragment, &[Value<'_>])) -> Result<(), Fault> {
        let Some(Ok(open)) = self.open.front() else {
            return Err(Fault::protocol("a batch of a board that has ended"));
        };
        decode_rows(&open.kinds, batch.count, &batch.bytes, |cells| each(open.fragment, cells))
            .map_err(|_| Fault::protocol("a batch cannot be read"))
    }
}

/// A turn on each board for a scan whose reader may be slow; others need none. They are taken in the order of the
/// boards' names, so that no two scans wait for each other.
async fn turns(
    legs: &[Leg],
    context: &Context,
    class: Class,
) -> Result<Vec<Option<OwnedSemaphorePermit>>, Fault> {
    let mut turns: Vec<Option<OwnedSemaphorePermit>> = legs.iter().map(|_| None).collect();
    if class == Class::Background {
        let mut order: Vec<usize> = (0..legs.len()).collect();
        order.sort_by_key(|leg| &legs[*leg].board.name);
        for leg in order {
            turns[leg] = Some(context.whole(legs[leg].board.stream_turn()).await??);
        }
    }
    Ok(turns)
}

fn restarted() -> Fault {
    let message = "the board restarted since the first rows, and the others are gone";
    Fault::new("board_restarted", message, "ask again from the beginning")
}

async fn head(
    question: &Question,
    fragment: Fragment,
    leg: &Leg,
    limit: Option<u64>,
    context: &Context,
    class: Class,
) -> Result<Head, Fault> {
    let session = &leg.board.session;
    let epoch = context.board(session, session.wait_up(UP_TIMEOUT)).await??.epoch;
    if leg.pin.as_ref().is_some_and(|pin| pin.epoch != epoch) {
        return Err(restarted());
    }
    let rows = leg.pin.as_ref().map(|pin| &pin.rows);
    // What a board has no room for is done here, from more of its rows; LIMIT then counts others.
    let simpler = match fragment {
        Fragment::Stream => &[Fragment::Stream, Fragment::Rows, Fragment::All][..],
        Fragment::Top => &[Fragment::Top],
        Fragment::All => &[Fragment::All],
        _ => &[Fragment::Rows, Fragment::All],
    };
    let mut refused = None;
    for fragment in simpler {
        let limit = limit.filter(|_| matches!(fragment, Fragment::Stream | Fragment::Top));
        let command = question.command(*fragment, leg, limit)?;
        match began(session, command, context, class).await {
            Ok((answer, bytes)) => {
                let Some(Part::Started(started)) = bytes.part() else {
                    return Err(Fault::protocol("an answer does not begin with its columns"));
                };
                if context.board(session, session.wait_up(UP_TIMEOUT)).await??.epoch != epoch {
                    return Err(restarted()); // between the two: whose rows these are is not known
                }
                // Rows that were there when the snapshot was taken, and are not any more.
                let first = rows.map_or(started.cursor.next, |rows| rows.start);
                let overwritten = started.cursor.next.saturating_sub(first);
                let end = rows.map_or(started.cursor.end, |rows| rows.end);
                return Ok(Head {
                    columns: started.columns.iter().map(OwnedColumn::from).collect(),
                    pin: Pin { epoch, rows: first.max(started.cursor.next).min(end)..end },
                    rows_lost: overwritten.min(end.saturating_sub(first)),
                    lost_at_start: started.lost,
                    clock_set: started.clock_set,
                    fragment: *fragment,
                    answer,
                });
            }
            Err(fault) if is_too_much(&fault) => refused = Some(fault),
            Err(fault) => return Err(fault),
        }
    }
    Err(refused.unwrap_or_else(|| Fault::protocol("a board was asked nothing")))
}

/// Asks a board and waits for the head of its answer.
pub(super) async fn began(
    session: &Session,
    command: String,
    context: &Context,
    class: Class,
) -> Result<(Answer, PartBytes), Fault> {
    let mut answer = context.board(session, session.ask(OwnedRequest::Command(command), class)).await??;
    match context.board(session, answer.next()).await?? {
        Some(Piece::Part(bytes)) => Ok((answer, bytes)),
        _ => Err(Fault::protocol("an answer has no columns")),
    }
}

/// Whether a board refused because it has no room, or is too old, for what it was asked: then it is done here.
pub(super) fn is_too_much(fault: &Fault) -> bool {
    let codes = ["capacity", "too_long", "overflow", "type", "unsupported", "syntax", "unknown_command"];
    codes.contains(&fault.code)
}
