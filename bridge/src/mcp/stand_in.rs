//! A stand-in for the tools: the same names and shapes, two tools. Goes when the tools are there.

use crate::board::Session;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::{sync::mpsc::UnboundedSender, time::Instant};
use tokio_util::sync::CancellationToken;

#[derive(Clone, Debug)]
pub struct Tools {
    field: Field,
}

#[derive(Clone, Debug)]
pub struct Field {
    boards: Arc<[Arc<Board>]>,
}

impl Field {
    pub fn boards(&self) -> &[Arc<Board>] {
        &self.boards
    }
}

#[derive(Debug)]
pub struct Board {
    pub name: String,
    pub session: Session,
}

impl Board {
    pub async fn catalogue(&self) -> Result<Arc<Catalogue>, ToolError> {
        Ok(Arc::default())
    }
    pub fn known_catalogue(&self) -> Option<Arc<Catalogue>> {
        None
    }
}

#[derive(Debug, Default)]
pub struct Catalogue {
    pub tables: Vec<TableInfo>,
}

#[derive(Debug)]
pub struct TableInfo {
    pub dbms: String,
    pub name: String,
    pub columns: Vec<ColumnInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    pub name: String,
    pub kind: String,
    pub unit: String,
    pub description: String,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Annotations {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

#[derive(Clone, Debug)]
pub struct Definition {
    pub name: String,
    pub title: String,
    pub description: String,
    pub input_schema: Map<String, Value>,
    pub annotations: Annotations,
}

#[derive(Clone, Debug)]
pub struct Context {
    pub deadline: Instant,
    pub cancelled: CancellationToken,
    pub progress: Option<UnboundedSender<Progress>>,
    pub client: String,
}

#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub rows: u64,
    pub boards_done: u32,
    pub boards: u32,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub items: Vec<String>,
    pub is_error: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(String);

impl ToolError {
    pub fn to_json(&self) -> Value {
        json!({"error": self.0})
    }
}

#[derive(Debug)]
pub struct RowsJson {
    pub rows: String,
    pub row_count: u64,
}

#[derive(Debug)]
pub struct RowStream(u64);

impl RowStream {
    pub async fn next(&mut self) -> Result<Option<RowsJson>, ToolError> {
        self.0 += 1;
        Ok((self.0 <= 2).then(|| RowsJson { rows: "[{\"n\":1}]".into(), row_count: 1 }))
    }
}

impl Tools {
    pub fn new(boards: Vec<(String, Session)>) -> Self {
        let boards = boards.into_iter().map(|(name, session)| Arc::new(Board { name, session })).collect();
        Self { field: Field { boards } }
    }

    pub fn field(&self) -> &Field {
        &self.field
    }

    pub fn list(&self) -> Vec<Arc<Definition>> {
        ["list_databases", "list_boards"]
            .map(|name| {
                let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
                Arc::new(Definition {
                    name: name.into(),
                    title: name.into(),
                    description: name.into(),
                    input_schema: schema.as_object().cloned().unwrap_or_default(),
                    annotations: Annotations { read_only: true, idempotent: true, ..Annotations::default() },
                })
            })
            .into()
    }

    pub async fn call(&self, name: &str, _arguments: Map<String, Value>, context: Context) -> Outcome {
        if let Some(progress) = &context.progress {
            let _ = progress.send(Progress { rows: 1, boards_done: 1, boards: 3 });
        }
        match name {
            "list_databases" => Outcome { items: vec![r#"["demo"]"#.into()], is_error: false },
            "list_boards" => {
                let names: Vec<&String> = self.field.boards.iter().map(|board| &board.name).collect();
                Outcome { items: vec![json!(names).to_string()], is_error: false }
            }
            _ => Outcome { items: vec![json!({"code": "unknown_tool"}).to_string()], is_error: true },
        }
    }

    pub async fn stream_query(&self, _: &str, _: &str, _: Context) -> Result<RowStream, ToolError> {
        Ok(RowStream(0))
    }
}
