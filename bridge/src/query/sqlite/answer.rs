//! The answer of a statement: batches of rows as they come, each value of its column's type.

use crate::{
    fault::Fault,
    query::{Context, OwnedColumn},
};
use rusqlite::types::ValueRef;
use shared::value::{ColumnType, Value};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

/// A value that is kept.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "as in `shared::value::Value`")]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float32(f32),
    Float64(f64),
    Timestamp(i64),
    Text(Box<str>),
}

impl Cell {
    /// As the formatter takes it.
    pub fn value(&self) -> Value<'_> {
        match self {
            Cell::Null => Value::Null,
            Cell::Bool(value) => Value::Bool(*value),
            Cell::Int(value) => Value::Int(*value),
            Cell::Float32(value) => Value::Float32(*value),
            Cell::Float64(value) => Value::Float64(*value),
            Cell::Timestamp(value) => Value::Timestamp(*value),
            Cell::Text(text) => Value::Text(text),
        }
    }

    /// SQLite's value, of the type that its column certainly has; where it has another after all, of its own.
    pub(super) fn of(value: ValueRef<'_>, kind: Option<ColumnType>) -> Self {
        match (value, kind) {
            (ValueRef::Null, _) => Cell::Null,
            (ValueRef::Integer(value @ (0 | 1)), Some(ColumnType::Bool)) => Cell::Bool(value == 1),
            (ValueRef::Integer(value), Some(ColumnType::Timestamp)) => Cell::Timestamp(value),
            (ValueRef::Integer(value), _) => Cell::Int(value),
            (ValueRef::Real(value), Some(ColumnType::Float32)) if f64::from(value as f32) == value => {
                Cell::Float32(value as f32)
            }
            (ValueRef::Real(value), _) => Cell::Float64(value),
            (ValueRef::Text(bytes) | ValueRef::Blob(bytes), _) => {
                Cell::Text(String::from_utf8_lossy(bytes).into())
            }
        }
    }

    /// The type of the column that it would be in.
    pub(super) fn column_type(&self) -> Option<ColumnType> {
        self.value().column_type()
    }

    /// Bytes of its text.
    pub(super) fn text_bytes(&self) -> usize {
        if let Cell::Text(text) = self { text.len() } else { 0 }
    }
}

/// One row.
pub type Row = Vec<Cell>;

/// What the thread of a statement says.
#[derive(Debug)]
pub(super) enum Message {
    Columns(Vec<OwnedColumn>),
    Rows(Vec<Row>),
    End(Result<(), Fault>),
}

/// The answer of a statement that runs. Dropping it stops the statement.
#[derive(Debug)]
pub struct Answer {
    columns: Vec<OwnedColumn>,
    messages: mpsc::Receiver<Message>,
    is_ended: bool,
    _stops: DropGuard,
}

impl Answer {
    /// Waits until the columns are known.
    pub(super) async fn begin(
        mut messages: mpsc::Receiver<Message>,
        stops: DropGuard,
        context: &Context,
    ) -> Result<Self, Fault> {
        match context.whole(messages.recv()).await? {
            Some(Message::Columns(columns)) => Ok(Self { columns, messages, is_ended: false, _stops: stops }),
            Some(Message::End(Err(fault))) => Err(fault),
            _ => Err(gone()),
        }
    }

    /// The columns of every row.
    pub fn columns(&self) -> &[OwnedColumn] {
        &self.columns
    }

    /// The next batch, or the end.
    pub async fn next(&mut self) -> Result<Option<Vec<Row>>, Fault> {
        if self.is_ended {
            return Ok(None);
        }
        match self.messages.recv().await {
            Some(Message::Rows(rows)) => Ok(Some(rows)),
            Some(Message::End(end)) => {
                self.is_ended = true;
                end.map(|()| None)
            }
            Some(Message::Columns(_)) | None => {
                self.is_ended = true;
                Err(gone())
            }
        }
    }
}

/// The thread ended without a word.
fn gone() -> Fault {
    Fault::new("internal", "the query ended without an answer", "ask again; if it happens again, report it")
}
