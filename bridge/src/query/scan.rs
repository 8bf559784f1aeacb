//! A stream of rows from each board, one board behind the other. Each board is asked at once and waits for its turn.

use super::{
    Context, OwnedColumn, Statement, United,
    columns::fitted,
    context::Progress,
    source::{Batch, kinds},
};
use crate::{
    board::{Answer, OwnedRequest, Piece, State, decode_rows},
    fault::Fault,
    field::{Board, UP_TIMEOUT},
};
use futures_util::future::join_all;
use shared::{
    limits::COLUMNS_MAX,
    message::{Class, Part},
    schema::Column,
    value::Value,
};
use std::{collections::VecDeque, ops::Range, sync::Arc};

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
    /// Where each of its columns stands among the united ones; the id has none.
    places: Vec<usize>,
    /// Rows of the snapshot that were gone when it was asked.
    rows_lost: u64,
    /// What is lost before the first batch.
    lost_untold: u64,
}

/// A scan under way.
#[derive(Debug)]
pub struct Scan {
    /// The columns of every row.
    pub united: United,
    /// The boards that are read, and the rows of each.
    pub legs: Vec<Leg>,
    /// Boards' clocks are all set.
    pub clock_set: bool,
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
}

impl Scan {
    /// Asks every board and waits for their heads. `limit` is of the rows of each. An error if no board can answer,
    /// or if their columns do not fit together; a board that fails alone is a failed [`Step`].
    pub async fn open(
        database: &str,
        statement: &Statement,
        legs: Vec<Leg>,
        limit: Option<u64>,
        context: &Context,
        class: Class,
    ) -> Result<Self, Fault> {
        let heads = join_all(legs.iter().map(|leg| head(database, statement, leg, limit, context, class)));
        let heads = heads.await;
        if context.cancelled.is_cancelled() {
            return Err(Fault::cancelled());
        }
        let boards = u32::try_from(legs.len()).unwrap_or(u32::MAX);
        let mut scan = Self {
            united: United::default(),
            legs,
            clock_set: true,
            open: VecDeque::new(),
            current: 0,
            context: context.clone(),
            progress: Progress { boards, ..Progress::default() },
            rows_lost: 0,
            leg_lost: 0,
        };
        for (leg, head) in scan.legs.iter_mut().zip(heads) {
            let opened = match head {
                Err(fault) => Err(fault.with("board", leg.board.name.as_str())),
                Ok(Head { answer, columns, pin, rows_lost, lost_at_start, clock_set }) => {
                    let shown = columns.split_last().map_or(&[][..], |(_, shown)| shown);
                    let places = scan.united.add(&leg.board.name, shown)?;
                    scan.clock_set &= clock_set;
                    leg.pin = Some(pin);
                    let lost_untold = rows_lost + lost_at_start;
                    Ok(Open { answer, kinds: kinds(&columns), places, rows_lost, lost_untold })
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
                    let lost = lost + std::mem::take(&mut open.lost_untold);
                    self.rows_lost += lost;
                    self.leg_lost += lost;
                    return Step::Rows(Batch { leg, count, bytes, lost });
                }
                Ok(Ok(Some(Piece::Part(_)))) => Fault::protocol("a part came among rows"),
                Ok(Ok(None)) => {
                    let lost = open.rows_lost + open.answer.complete().map_or(0, |end| end.rows_lost);
                    self.rows_lost += lost.saturating_sub(std::mem::take(&mut self.leg_lost));
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

    /// Gives each row of a batch of the present board to `each`, with its row_id.
    pub fn rows(&self, batch: &Batch, mut each: impl FnMut(u64, &[Value<'_>])) -> Result<(), Fault> {
        let Some(Ok(open)) = self.open.front() else {
            return Err(Fault::protocol("a batch of a board that has ended"));
        };
        let columns = &self.united.columns;
        if columns.len() > COLUMNS_MAX {
            let message = format!("COLUMNS_MAX: the boards' columns together are more than {COLUMNS_MAX}");
            return Err(Fault::new("capacity", message, "select fewer columns"));
        }
        // Most often every board has the same columns: then a row is as it came.
        let is_as_it_came = open.places.len() == columns.len()
            && open.places.iter().zip(0..).all(|(place, index)| *place == index)
            && open.kinds.iter().zip(columns).all(|(here, united)| here.kind == united.kind);
        decode_rows(&open.kinds, batch.count, &batch.bytes, |cells| {
            let Some((Value::Int(row_id), shown)) = cells.split_last() else { return };
            if is_as_it_came {
                return each(row_id.cast_unsigned(), shown);
            }
            let mut united = [Value::Null; COLUMNS_MAX];
            for (place, cell) in open.places.iter().zip(shown) {
                if let (Some(to), Some(column)) = (united.get_mut(*place), columns.get(*place)) {
                    *to = fitted(*cell, column.kind);
                }
            }
            each(row_id.cast_unsigned(), &united[..columns.len()]);
        })
        .map_err(|_| Fault::protocol("a batch cannot be read"))
    }
}

fn restarted() -> Fault {
    let message = "the board restarted since the first rows, and the others are gone";
    Fault::new("board_restarted", message, "ask again from the beginning")
}

async fn head(
    database: &str,
    statement: &Statement,
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
    let command = format!("sql {database} \"{}\"", statement.stream_sql(rows, limit)?);
    let mut answer = context.board(session, session.ask(OwnedRequest::Command(command), class)).await??;
    let piece = context.board(session, answer.next()).await??;
    let Some(Piece::Part(bytes)) = piece else { return Err(Fault::protocol("an answer has no columns")) };
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
    Ok(Head {
        columns: started.columns.iter().map(OwnedColumn::from).collect(),
        pin: Pin { epoch, rows: first.max(started.cursor.next).min(end)..end },
        rows_lost: overwritten.min(end.saturating_sub(first)),
        lost_at_start: started.lost,
        clock_set: started.clock_set,
        answer,
    })
}
