//! Rows from boards, whichever way they come: as pages, streams and exports read them.

use super::{Joined, OwnedColumn, Question, Scan, Step};
use crate::fault::Fault;
use shared::{schema::Column, value::Value};

/// A batch of rows, as it travelled.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The board it is of, by its place in the scan.
    pub leg: usize,
    /// How many rows.
    pub count: u16,
    /// Their bytes, in the row code.
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
}

impl Source {
    /// The columns of every row.
    pub fn columns(&self) -> &[OwnedColumn] {
        match self {
            Source::Scan(_, question) => &question.answer,
            Source::Joined(joined) => joined.columns(),
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
        }
    }

    /// Gives each row of a batch to `each`.
    pub fn rows(&self, batch: &Batch, mut each: impl FnMut(&[Value<'_>])) -> Result<(), Fault> {
        match self {
            Source::Scan(scan, question) => scan.rows(question, batch, |_, cells| each(cells)),
            Source::Joined(joined) => joined.rows(batch, each),
        }
    }
}

/// Columns as the row code needs them: it asks for types only.
pub(super) fn kinds(columns: &[OwnedColumn]) -> Vec<Column<'static>> {
    columns.iter().map(|column| Column { name: "", kind: column.kind, unit: "" }).collect()
}
