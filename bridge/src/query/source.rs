//! Rows from boards, whichever way they come: as pages, streams and exports read them.

use super::{Joined, OwnedColumn, Question, Scan, StatementRows, Step};
use crate::fault::Fault;
use shared::{schema::Column, value::Value};

/// Bytes of an answer that is kept for the pages that follow the first.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// A batch of rows, as it travelled.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The board it is of, by its place in the scan.
    pub leg: usize,
    /// How many rows.
    pub count: u16,
    /// Their bytes, as their source writes them.
    pub bytes: Vec<u8>,
    /// Rows before these that were overwritten before they could be sent, since the batch before.
    pub lost: u64,
}

/// Rows from boards.
#[derive(Debug)]
pub enum Source {
    /// As they are read.
    Scan(Box<Scan>, Box<Question>),
    /// Put together here.
    Joined(Box<Joined>),
    /// Computed by SQLite.
    Beyond(Box<StatementRows>),
}

impl Source {
    /// The columns of every row.
    pub fn columns(&self) -> &[OwnedColumn] {
        match self {
            Source::Scan(_, question) => &question.answer,
            Source::Joined(joined) => joined.columns(),
            Source::Beyond(rows) => rows.columns(),
        }
    }

    /// The next batch, or the end. Here a board that fails fails the whole answer.
    pub async fn next(&mut self) -> Result<Option<Batch>, Fault> {
        match self {
            Source::Scan(scan, _) => loop {
                match scan.next().await {
                    Step::Rows(batch) => return Ok(Some(batch)),
                    Step::Complete(..) => {}
                    Step::Failed(_, fault) => return Err(fault),
                    Step::End => return Ok(None),
                }
            },
            Source::Joined(joined) => joined.next_batch(),
            Source::Beyond(rows) => rows.next_batch().await,
        }
    }

    /// Gives each row of a batch to `each`.
    pub fn rows(&self, batch: &Batch, mut each: impl FnMut(&[Value<'_>])) -> Result<(), Fault> {
        match self {
            Source::Scan(scan, question) => scan.rows(question, batch, |_, cells| each(cells)),
            Source::Joined(joined) => joined.rows(batch, each),
            Source::Beyond(rows) => rows.rows(batch, each),
        }
    }

    /// Rows that boards overwrote before they could send them, as far as it has come.
    pub fn rows_lost(&self) -> u64 {
        match self {
            Source::Scan(scan, _) => scan.rows_lost(),
            Source::Joined(joined) => joined.rows_lost,
            Source::Beyond(rows) => rows.rows_lost,
        }
    }

    /// Whether the clocks of all boards are set.
    pub fn is_clock_set(&self) -> bool {
        match self {
            Source::Scan(scan, _) => scan.clock_set,
            Source::Joined(joined) => joined.clock_set,
            Source::Beyond(rows) => rows.clock_set,
        }
    }

    /// The boards that it is from.
    pub fn boards(&self) -> Vec<String> {
        match self {
            Source::Scan(scan, _) => scan.legs.iter().map(|leg| leg.board.name.clone()).collect(),
            Source::Joined(joined) => joined.boards.clone(),
            Source::Beyond(rows) => rows.boards.clone(),
        }
    }

    /// Boards whose part is not in it, and why, as far as that is known before its rows are read.
    pub fn missing(&self) -> &[(String, Fault)] {
        match self {
            Source::Scan(..) => &[],
            Source::Joined(joined) => &joined.missing,
            Source::Beyond(rows) => &rows.missing,
        }
    }

    /// The rest of the answer, which must not be larger than can be kept.
    pub async fn keep(&mut self) -> Result<Vec<Batch>, Fault> {
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while let Some(batch) = self.next().await? {
            bytes += batch.bytes.len();
            if bytes > KEPT_BYTES_MAX {
                let message = format!("the computed answer has more than {KEPT_BYTES_MAX} bytes");
                return Err(Fault::new("capacity", message, "add a LIMIT, or export the answer as a job"));
            }
            batches.push(batch);
        }
        Ok(batches)
    }
}

/// Columns as the row code needs them: it asks for types only.
pub(super) fn kinds(columns: &[OwnedColumn]) -> Vec<Column<'static>> {
    columns.iter().map(|column| Column { name: "", kind: column.kind, unit: "" }).collect()
}
