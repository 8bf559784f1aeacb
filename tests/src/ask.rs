//! Commands asked of a board through the bridge's session, and whole answers.

use crate::oracle::{Answer, Cell};
use picolake::board::{AnswerError, OwnedRequest, Piece, Session, decode_rows};
use shared::{
    message::{Class, Part},
    schema::Columns,
    value::Value,
};

/// An answer of rows, and what is to be said of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Names and rows.
    pub answer: Answer,
    /// Rows that the board overwrote before it could send them.
    pub lost: u64,
    /// Whether timestamps are UTC.
    pub clock_set: bool,
    /// The frames that carried rows.
    pub batches: u64,
}

/// Asks a command that answers in rows, or in nothing.
pub async fn ask(session: &Session, command: &str) -> Result<Rows, AnswerError> {
    let asked = session.ask(OwnedRequest::Command(command.into()), Class::Interactive);
    let mut answer = asked.await.map_err(|_| AnswerError::SessionEnded)?;
    let mut rows = Rows::default();
    let mut head = None;
    while let Some(piece) = answer.next().await? {
        match piece {
            Piece::Part(bytes) => head = Some(bytes),
            Piece::Rows { count, bytes, .. } => {
                let Some(Part::Started(started)) = head.as_ref().and_then(|head| head.part()) else {
                    return Err(AnswerError::Protocol("rows came before their columns"));
                };
                rows.batches += 1;
                take(&started.columns, count, &bytes, &mut rows.answer.rows)?;
            }
        }
    }
    if let Some(Part::Started(started)) = head.as_ref().and_then(|head| head.part()) {
        rows.answer.columns = started.columns.iter().map(|column| column.name.to_string()).collect();
        rows.clock_set = started.clock_set;
    }
    rows.lost = answer.complete().map_or(0, |complete| complete.rows_lost);
    Ok(rows)
}

/// Asks SQL of database `demo`.
pub async fn ask_sql(session: &Session, sql: &str) -> Result<Rows, AnswerError> {
    ask(session, &format!("sql demo \"{sql}\"")).await
}

fn take(
    columns: &Columns<'_>,
    count: u16,
    bytes: &[u8],
    rows: &mut Vec<Vec<Cell>>,
) -> Result<(), AnswerError> {
    decode_rows(columns, count, bytes, |cells| rows.push(cells.iter().map(Cell::from).collect()))
        .map_err(|_| AnswerError::Protocol("a batch cannot be read"))
}

impl From<&Value<'_>> for Cell {
    fn from(value: &Value<'_>) -> Self {
        match *value {
            Value::Null => Cell::Null,
            Value::Bool(v) => Cell::Bool(v),
            Value::Int(v) => Cell::Int(v),
            Value::Float32(v) => Cell::Float32(v),
            Value::Float64(v) => Cell::Float(v),
            Value::Timestamp(v) => Cell::Timestamp(v),
            Value::Text(v) => Cell::Text(v.into()),
        }
    }
}
