//! What is put together here from the parts of several boards: groups, different rows, the first rows in an order.
//!
//! ```text
//!   each board ── its fragment ──▶ groups, different or first rows ──▶ absorb, feed ──┐
//!        └─ has no room for it ──▶ its rows ────────────────────────▶ feed ───────────┴──▶ the joined answer
//! ```
//!
//! A board's part counts when it is complete. One that fails spoils nothing: it is left out and named.

use super::{
    Context, Leg, OwnedColumn, Progress, Question, Scan, Select, Step,
    scan::{began, is_too_much},
    source::{Batch, kinds},
};
use crate::{
    board::{Piece, decode_rows},
    fault::Fault,
    field::{Board, Having},
};
use futures_util::{StreamExt as _, stream};
use shared::{
    engine::{Fragment, Pages, Progress as Stepped, RowSink},
    limits::{COLUMNS_MAX, WORKSPACE_BYTES},
    message::{Class, Part},
    rowcode::{RowEncoder, RowError},
    schema::Column,
    value::{ColumnType, Value},
};
use std::sync::Arc;

/// Boards that are asked at once for what they compute.
const BOARDS_AT_ONCE: usize = 256;
/// Bytes of an answer at most that a bridge believes: what a board computes fits its workspace, and each row of it
/// can repeat a text.
const PART_BYTES_MAX: usize = 64 * WORKSPACE_BYTES;
/// Bytes of a batch of the joined answer.
const BATCH_BYTES: usize = 16 * 1024;

/// An answer that was put together here, batch by batch.
#[derive(Debug)]
pub struct Joined {
    question: Question,
    kinds: Vec<Column<'static>>,
    /// Boards whose part is in it.
    pub boards: Vec<String>,
    /// Boards whose part is not, and why.
    pub missing: Vec<(String, Fault)>,
    /// Rows that were overwritten before they could be read.
    pub rows_lost: u64,
    /// Whether all boards' timestamps are UTC.
    pub clock_set: bool,
}

/// A question and the boards that it reaches.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub question: Question,
    /// The boards that are asked.
    pub legs: Vec<Leg>,
    /// Boards that are not there and may have the table, and why.
    pub missing: Vec<(String, Fault)>,
}

impl Asked {
    /// Plans a SELECT over the boards that have its table and finds out where its periods end. Strictly, a board that
    /// is not there is an error.
    pub async fn plan(select: &Select<'_>, having: Having, context: &Context) -> Result<Self, Fault> {
        let Select { database, sql, now_us, is_strict, .. } = *select;
        let (question, legs) = Question::plan(database, sql, now_us, &having)?;
        let mut missing = Vec::new();
        for (board, fault) in having.missing {
            if is_strict {
                return Err(fault);
            }
            missing.push((board.name.clone(), fault));
        }
        let mut asked = Self { question, legs, missing };
        asked.set_periods(is_strict, context).await?;
        Ok(asked)
    }

    /// Ends every period at the last row of all boards that is not too late.
    async fn set_periods(&mut self, is_strict: bool, context: &Context) -> Result<(), Fault> {
        let Self { question, legs, missing } = self;
        while let Some(period) = question.query.period() {
            let mut asked = Vec::with_capacity(legs.len());
            for leg in legs.iter() {
                let command = question.period_command(period, leg);
                asked.push(computed(Arc::clone(&leg.board), command, context.clone()));
            }
            let answers: Vec<_> = stream::iter(asked).buffered(BOARDS_AT_ONCE).collect().await;
            let mut latest_us = None;
            for (leg, answer) in answers.into_iter().enumerate().rev() {
                match answer {
                    Ok(part) => latest_us = latest_us.max(part.latest_us()?),
                    Err(fault) => leave_out(legs, leg, fault, missing, is_strict)?,
                }
            }
            question.query.set_period(latest_us)?;
        }
        Ok(())
    }
}

/// What a board computed.
#[derive(Default)]
struct Computed {
    kinds: Vec<Column<'static>>,
    batches: Vec<(u16, Vec<u8>)>,
    rows_lost: u64,
    clock_set: bool,
}

impl Computed {
    /// The latest moment in its first column.
    fn latest_us(&self) -> Result<Option<i64>, Fault> {
        let mut latest_us = None;
        for (count, bytes) in &self.batches {
            let read = decode_rows(&self.kinds, *count, bytes, |cells| {
                if let Some(Value::Timestamp(us)) = cells.first() {
                    latest_us = latest_us.max(Some(*us));
                }
            });
            read.map_err(|_| Fault::protocol("a batch cannot be read"))?;
        }
        Ok(latest_us)
    }
}

impl Joined {
    /// Asks the boards and joins what they answer. Strictly, a board that fails is an error; so is it if all fail.
    pub async fn ask(asked: Asked, is_strict: bool, context: &Context) -> Result<Self, Fault> {
        let Asked { mut question, mut legs, mut missing } = asked;
        loop {
            question.query.start_over();
            match Gathering::all(&mut question, &legs, context).await {
                Ok(Gathering { failed, rows_lost, clock_set, .. }) => {
                    for (leg, fault) in failed.into_iter().rev() {
                        leave_out(&mut legs, leg, fault, &mut missing, is_strict)?;
                    }
                    question.query.end_reading()?;
                    let boards = legs.iter().map(|leg| leg.board.name.clone()).collect();
                    let kinds = kinds(&question.answer);
                    return Ok(Self { question, kinds, boards, missing, rows_lost, clock_set });
                }
                Err(Broken::Here(fault)) => return Err(fault),
                Err(Broken::Board(_, fault)) if context.cancelled.is_cancelled() => return Err(fault),
                // Some of its rows have been taken already: once more without them.
                Err(Broken::Board(leg, fault)) => {
                    leave_out(&mut legs, leg, fault, &mut missing, is_strict)?;
                }
            }
        }
    }

    /// The columns of every row.
    pub fn columns(&self) -> &[OwnedColumn] {
        let Question { answer, .. } = &self.question;
        answer
    }

    /// The next rows, or the end.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Fault> {
        let kinds: Vec<ColumnType> = self.kinds.iter().map(|column| column.kind).collect();
        let mut sink =
            BatchSink { encoder: RowEncoder::new(kinds), bytes: vec![0; BATCH_BYTES], bits: 0, count: 0 };
        loop {
            match self.question.query.step(&NoPages, &mut sink)? {
                Stepped::Working => {}
                Stepped::Done => return Ok(None),
                Stepped::Rows(_) => {
                    let mut bytes = sink.bytes;
                    bytes.truncate(sink.bits.div_ceil(8));
                    return Ok(Some(Batch { leg: 0, count: sink.count, bytes, lost: 0 }));
                }
            }
        }
    }

    /// Gives each row of a batch to `each`.
    pub fn rows(&self, batch: &Batch, each: impl FnMut(&[Value<'_>])) -> Result<(), Fault> {
        decode_rows(&self.kinds, batch.count, &batch.bytes, each)
            .map_err(|_| Fault::protocol("a batch cannot be read"))
    }
}

/// Why the parts cannot be joined.
enum Broken {
    /// A leg failed after some of its rows were taken.
    Board(usize, Fault),
    /// There is no room here, or the question itself fails.
    Here(Fault),
}

/// How far the boards have been joined.
struct Gathering {
    /// Legs that gave nothing, and why.
    failed: Vec<(usize, Fault)>,
    rows_lost: u64,
    clock_set: bool,
    progress: Progress,
}

impl Gathering {
    async fn all(question: &mut Question, legs: &[Leg], context: &Context) -> Result<Self, Broken> {
        let boards = u32::try_from(legs.len()).unwrap_or(u32::MAX);
        let mut gathering = Self {
            failed: Vec::new(),
            rows_lost: 0,
            clock_set: true,
            progress: Progress { boards, ..Progress::default() },
        };
        let best = question.fragment();
        if matches!(best, Fragment::Rows | Fragment::All) {
            gathering.feed(question, best, 0, legs, context).await?;
            return Ok(gathering);
        }
        let mut asked = Vec::with_capacity(legs.len());
        for leg in legs {
            let command = question.command(best, leg, None).map_err(Broken::Here)?;
            asked.push(computed(Arc::clone(&leg.board), Some(command), context.clone()));
        }
        let mut answers = std::pin::pin!(stream::iter(asked).buffered(BOARDS_AT_ONCE));
        let mut at = 0;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(part) => gathering.take(question, best, &part, &legs[at], at)?,
                Err(fault) if is_too_much(&fault) => {
                    gathering.feed(question, Fragment::Rows, at, &legs[at..=at], context).await?;
                }
                Err(fault) => gathering.failed.push((at, fault)),
            }
            gathering.progress.boards_done += 1;
            context.report(gathering.progress);
            at += 1;
            if question.query.is_enough() {
                break;
            }
        }
        Ok(gathering)
    }

    /// Takes what a board computed.
    fn take(
        &mut self,
        question: &mut Question,
        fragment: Fragment,
        part: &Computed,
        leg: &Leg,
        at: usize,
    ) -> Result<(), Broken> {
        let shape = question.shape();
        self.rows_lost += part.rows_lost;
        self.clock_set &= part.clock_set;
        for (count, bytes) in &part.batches {
            self.progress.rows += u64::from(*count);
            let mut taken = Ok(());
            let decoded = decode_rows(&part.kinds, *count, bytes, |cells| {
                if taken.is_err() {
                    return;
                }
                taken = if fragment == Fragment::Top {
                    question.query.feed(&shape.row(cells, leg)[..shape.width()])
                } else {
                    question.query.absorb(cells)
                };
            });
            taken.map_err(|failure| Broken::Here(failure.into()))?;
            decoded.map_err(|_| Broken::Board(at, Fault::protocol("a batch cannot be read")))?;
        }
        Ok(())
    }

    /// Takes the rows of boards one after the other; `first` is the number of the first leg.
    async fn feed(
        &mut self,
        question: &mut Question,
        fragment: Fragment,
        first: usize,
        legs: &[Leg],
        context: &Context,
    ) -> Result<(), Broken> {
        let opened = Scan::open(question, fragment, legs.to_vec(), None, context, Class::Interactive).await;
        let mut scan = match opened {
            Ok(scan) => scan,
            Err(fault) => {
                self.failed.extend((first..first + legs.len()).map(|leg| (leg, fault.clone())));
                return Ok(());
            }
        };
        self.clock_set &= scan.clock_set;
        let mut has_taken = false;
        loop {
            match scan.next().await {
                Step::End => return Ok(()),
                Step::Rows(batch) => {
                    has_taken = true;
                    self.progress.rows += u64::from(batch.count);
                    let mut taken = Ok(());
                    let read = scan.table_rows(&batch, |row| {
                        if taken.is_ok() {
                            taken = question.query.feed(row);
                        }
                    });
                    taken.map_err(|failure| Broken::Here(failure.into()))?;
                    read.map_err(|fault| Broken::Board(first + batch.leg, fault))?;
                }
                Step::Complete(_, lost) => {
                    has_taken = false;
                    self.rows_lost += lost;
                    context.report(self.progress);
                }
                Step::Failed(leg, fault) if has_taken => return Err(Broken::Board(first + leg, fault)),
                Step::Failed(leg, fault) => self.failed.push((first + leg, fault)),
            }
        }
    }
}

/// Goes on without a board, if it may and others are left.
fn leave_out(
    legs: &mut Vec<Leg>,
    leg: usize,
    fault: Fault,
    missing: &mut Vec<(String, Fault)>,
    is_strict: bool,
) -> Result<(), Fault> {
    if is_strict || legs.len() == 1 {
        return Err(fault);
    }
    missing.push((legs.remove(leg).board.name.clone(), fault));
    Ok(())
}

/// The whole answer of a board that computes one; nothing where it is asked nothing.
async fn computed(board: Arc<Board>, command: Option<String>, context: Context) -> Result<Computed, Fault> {
    let asked = async {
        match command {
            Some(command) => whole_answer(&board, command, &context).await,
            None => Ok(Computed { clock_set: true, ..Computed::default() }),
        }
    };
    asked.await.map_err(|fault| fault.with("board", board.name.as_str()))
}

async fn whole_answer(board: &Board, command: String, context: &Context) -> Result<Computed, Fault> {
    let session = &board.session;
    let (mut answer, head) = began(session, command, context, Class::Interactive).await?;
    let Some(Part::Started(started)) = head.part() else {
        return Err(Fault::protocol("an answer does not begin with its columns"));
    };
    let columns: Vec<OwnedColumn> = started.columns.iter().map(OwnedColumn::from).collect();
    let mut part = Computed { kinds: kinds(&columns), clock_set: started.clock_set, ..Computed::default() };
    let mut bytes_kept = 0;
    while let Some(piece) = context.board(session, answer.next()).await?? {
        let Piece::Rows { count, bytes, .. } = piece else {
            return Err(Fault::protocol("a part came among rows"));
        };
        bytes_kept += bytes.len();
        if bytes_kept > PART_BYTES_MAX {
            let message = format!("a board's answer has more than {PART_BYTES_MAX} bytes");
            return Err(Fault::new("capacity", message, "add a LIMIT or a narrower WHERE"));
        }
        part.batches.push((count, bytes));
    }
    part.rows_lost = answer.complete().map_or(0, |end| end.rows_lost);
    Ok(part)
}

/// Everything has been read when an answer is given.
struct NoPages;

impl Pages for NoPages {
    fn page(&self, _: u64) -> Option<&[u8]> {
        None
    }

    fn utc_us(&self, time_us: u64) -> i64 {
        time_us.cast_signed()
    }

    fn board(&self) -> &str {
        ""
    }

    fn epoch(&self) -> u64 {
        0
    }
}

struct BatchSink {
    encoder: RowEncoder,
    bytes: Vec<u8>,
    bits: usize,
    count: u16,
}

impl RowSink for BatchSink {
    fn push(&mut self, cells: &[Value<'_>]) -> Result<(), RowError> {
        let count = self.count.checked_add(1).ok_or(RowError::Full)?;
        self.encoder.append(cells, &mut self.bytes, &mut self.bits)?;
        self.count = count;
        Ok(())
    }
}

const _: () = assert!(BATCH_BYTES > COLUMNS_MAX * 128);
