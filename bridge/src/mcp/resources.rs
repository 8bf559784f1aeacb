//! Resources: each table's columns, each board's status and each export's file, under addresses of their own.

use super::{CALL_TIMEOUT, Server};
use crate::{
    jobs::{self, Excerpt},
    tools::{CHARACTERS_MAX, Context, Outcome},
};
use rmcp::{
    ErrorData,
    model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What the address of a table begins with; its database and name follow.
const TABLES: &str = "picolake://tables/";
/// What the address of a board begins with; its name and `/status` follow.
const BOARDS: &str = "picolake://boards/";
const STATUS: &str = "/status";
const JSON: &str = "application/json";
const JSON_LINES: &str = "application/x-ndjson";
const CSV: &str = "text/csv";
/// Characters of a file that are read: what is said of a file that is longer has room beside them.
const EXCERPT_CHARACTERS_MAX: usize = CHARACTERS_MAX - 8_000;
/// The tool that tells a board's status.
const STATUS_TOOL: &str = "node_status";
/// Bytes of an address.
const ADDRESS_BYTES_MAX: usize = 1024;

/// What an address means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Table { database: String, table: String },
    Status { board: String },
    Job { id: String },
}

impl Place {
    pub(super) fn parse(uri: &str) -> Option<Self> {
        if uri.len() > ADDRESS_BYTES_MAX {
            return None;
        }
        if let Some(rest) = uri.strip_prefix(TABLES) {
            let (database, table) = rest.split_once('/')?;
            return Some(Place::Table { database: decoded(database)?, table: decoded(table)? });
        }
        if let Some(id) = uri.strip_prefix(jobs::ADDRESS) {
            return Some(Place::Job { id: decoded(id)? });
        }
        let board = uri.strip_prefix(BOARDS)?.strip_suffix(STATUS)?;
        Some(Place::Status { board: decoded(board)? })
    }

    fn uri(&self) -> String {
        match self {
            Place::Table { database, table } => format!("{TABLES}{}/{}", encoded(database), encoded(table)),
            Place::Status { board } => format!("{BOARDS}{}{STATUS}", encoded(board)),
            Place::Job { id } => format!("{}{}", jobs::ADDRESS, encoded(id)),
        }
    }
}

/// The kinds of address, for clients that make their own.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{TABLES}{{database}}/{{table}}"), "table")
            .with_title("A table")
            .with_description("Columns with types and units, and the boards that have the table")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{BOARDS}{{board}}{STATUS}"), "board status")
            .with_title("A board's status")
            .with_description("Whether it answers, its uptime, clock, rows and link")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{}{{job}}", jobs::ADDRESS), "export")
            .with_title("An export's file")
            .with_description("The beginning of the file of an export that is complete"),
    ]
}

impl Server {
    /// Every table, then every board, then every export that is complete.
    pub(super) async fn resources(&self) -> Vec<Resource> {
        let mut resources = Vec::new();
        for ((database, table), found) in self.all_tables().await {
            let name = format!("{database}.{table}");
            let about = format!("Columns of {name}, on {} boards", found.boards.len());
            let uri = Place::Table { database, table }.uri();
            resources.push(Resource::new(uri, name).with_description(about).with_mime_type(JSON));
        }
        for board in self.board_names() {
            let name = format!("{board} status");
            let uri = Place::Status { board }.uri();
            resources.push(Resource::new(uri, name).with_mime_type(JSON));
        }
        for (id, file) in self.tools.jobs().complete() {
            let about = "An export's file; the beginning, where it is long";
            resources.push(Resource::new(Place::Job { id }.uri(), file).with_description(about));
        }
        resources
    }

    /// What is at an address.
    pub(super) async fn resource(
        &self,
        uri: &str,
        cancelled: CancellationToken,
    ) -> Result<ReadResourceResult, ErrorData> {
        let absent = |why: &str| ErrorData::resource_not_found(why.to_owned(), Some(json!({"uri": uri})));
        let text = match Place::parse(uri) {
            None => {
                return Err(absent(
                    "an address is picolake://tables/DATABASE/TABLE, picolake://boards/BOARD/status or \
                     picolake://jobs/JOB",
                ));
            }
            Some(Place::Table { database, table }) => {
                let found = self.all_tables().await.remove(&(database.clone(), table.clone()));
                let found = found
                    .ok_or_else(|| absent("no board has this table; resources/list names those there are"))?;
                let columns: Vec<Value> = found
                    .columns
                    .iter()
                    .map(|column| {
                        let mut about = Map::new();
                        about.insert("name".into(), column.name.clone().into());
                        about.insert("type".into(), column.kind.clone().into());
                        for (key, text) in [("unit", &column.unit), ("description", &column.description)] {
                            if !text.is_empty() {
                                about.insert(key.into(), text.clone().into());
                            }
                        }
                        Value::Object(about)
                    })
                    .collect();
                json!({"database": database, "table": table, "boards": found.boards, "columns": columns})
                    .to_string()
            }
            Some(Place::Status { board }) => {
                if !self.board_names().contains(&board) {
                    return Err(absent("there is no such board; resources/list names those there are"));
                }
                self.status(board, cancelled).await
            }
            Some(Place::Job { id }) => {
                let excerpt = self.tools.jobs().excerpt(&id, EXCERPT_CHARACTERS_MAX).await;
                let excerpt = excerpt
                    .map_err(|fault| absent(&format!("{}; {}", fault.message, fault.suggested_action)))?;
                return Ok(shown(excerpt, uri));
            }
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(JSON)]))
    }

    /// A board's status, or why it has none: that a board is offline is its status, too.
    async fn status(&self, board: String, cancelled: CancellationToken) -> String {
        let mut arguments = Map::new();
        arguments.insert("boards".into(), json!([board]));
        let context = Context {
            deadline: Instant::now() + CALL_TIMEOUT,
            cancelled,
            progress: None,
            client: "resource".into(),
        };
        let Outcome { items, .. } = self.tools.call(STATUS_TOOL, arguments, context).await;
        items.into_iter().next().unwrap_or_else(|| "{}".into())
    }
}

/// An export's file; where it is cut, a second text says so.
fn shown(excerpt: Excerpt, uri: &str) -> ReadResourceResult {
    let Excerpt { text, path, bytes, is_cut, is_csv } = excerpt;
    let note = json!({
        "truncated": true, "bytes_shown": text.len(), "bytes": bytes, "path": path.to_string_lossy(),
        "hint": "this is the beginning of the file; open it at path for the rest, or query for less",
    });
    let kind = if is_csv { CSV } else { JSON_LINES };
    let mut contents = vec![ResourceContents::text(text, uri).with_mime_type(kind)];
    if is_cut {
        contents.push(ResourceContents::text(note.to_string(), uri).with_mime_type(JSON));
    }
    ReadResourceResult::new(contents)
}

/// A name as a part of an address: what is not a letter, a digit or one of `-._~` is written %XX.
fn encoded(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The name that a part of an address stands for; none if it stands for none.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'/' => return None,
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok().filter(|text| !text.starts_with('+'))?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_returns_from_its_address() {
        for name in ["pump", "a/b", "ü %", "100%", "x?y#z", "..", "+1"] {
            let status = Place::Status { board: name.into() };
            let table = Place::Table { database: name.into(), table: "t".into() };
            assert_eq!(Place::parse(&status.uri()), Some(status.clone()), "{}", status.uri());
            assert_eq!(Place::parse(&table.uri()), Some(table));
        }
    }

    #[test]
    fn what_is_no_address_is_none() {
        for uri in [
            "",
            "picolake://",
            "file:///etc/passwd",
            "picolake://tables/demo",
            "picolake://tables/demo/",
            "picolake://tables/a/b/c",
            "picolake://boards//status",
            "picolake://boards/%/status",
            "picolake://boards/%+1/status",
            "picolake://boards/%FF/status",
            "picolake://boards/pump",
            "picolake://jobs/",
            "picolake://jobs/a/b",
        ] {
            assert_eq!(Place::parse(uri), None, "{uri}");
        }
    }
}
