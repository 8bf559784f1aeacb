//! Resources: each table's columns, each board's status and each export's file, under addresses of their own.

use super::{CALL_TIMEOUT, Server};
use crate::{
    field::ColumnInfo,
    jobs::{self, Excerpt},
    tools::{Answered, CHARACTERS_MAX, Context, ToolError},
};
use rmcp::{
    ErrorData,
    model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde_json::{Map, Value, json};
use shared::{command::Format, format::is_unseen};
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
/// What a board is asked for its status. No tool's work: a user's file may hide or replace every one.
const STATUS_COMMAND: &str = "get status";
/// The code of a board that is not there.
const OFFLINE: &str = "board_offline";
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
                let columns: Vec<Value> = found.columns.iter().map(about_column).collect();
                let about =
                    json!({"database": database, "table": table, "boards": found.boards, "columns": columns});
                seen(&about.to_string())
            }
            Some(Place::Status { board }) => {
                if !self.board_names().contains(&board) {
                    return Err(absent("there is no such board; resources/list names those there are"));
                }
                self.status(board, cancelled).await?
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

    /// A board's status. That a board is offline is its status, too; any other failure is none.
    async fn status(&self, board: String, cancelled: CancellationToken) -> Result<String, ErrorData> {
        let context = Context {
            deadline: Instant::now() + CALL_TIMEOUT,
            cancelled,
            progress: None,
            client: "resource".into(),
        };
        let failed =
            |fault: ToolError| ErrorData::internal_error(fault.message.clone(), Some(fault.to_json()));
        match self.tools.command(STATUS_COMMAND, Some(vec![board]), Format::Mcp, context).await {
            Ok(Answered::Items(items)) if !items.is_empty() => Ok(items.into_iter().take(1).collect()),
            Ok(_) => Err(failed(ToolError::protocol("the board's answer has no status"))),
            Err(fault) if fault.code == OFFLINE => Ok(fault.to_json().to_string()),
            Err(fault) => Err(failed(fault)),
        }
    }
}

/// A column as its board tells it.
fn about_column(column: &ColumnInfo) -> Value {
    let mut about = Map::new();
    about.insert("name".into(), column.name.clone().into());
    about.insert("type".into(), column.kind.clone().into());
    for (key, text) in [("unit", &column.unit), ("description", &column.description)] {
        if !text.is_empty() {
            about.insert(key.into(), text.clone().into());
        }
    }
    Value::Object(about)
}

/// The same JSON with every character escaped that is not seen; serde_json leaves all but control characters. It
/// writes none outside of texts, so that an escape is right wherever one stands.
fn seen(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unseen(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
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
    use crate::{
        board::Session,
        field::{Board, Field},
        tools::{Options, Tools},
    };
    use shared::value::ColumnType;

    fn text_of(read: ReadResourceResult) -> Value {
        let contents = serde_json::to_value(&read.contents[0]).unwrap();
        serde_json::from_str(contents["text"].as_str().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_status_is_there_though_the_tool_for_it_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tools.yaml");
        std::fs::write(&file, "tools: [{name: node_status, hidden: true}]").unwrap();
        let options = Options { user_file: Some(file), ..Options::default() };
        let server = Server::new(Tools::new(Field::demo().unwrap(), options).unwrap());
        let read = server.resource("picolake://boards/pump/status", CancellationToken::new()).await;
        let status = text_of(read.unwrap());
        assert!(status.to_string().contains("uptime_us"), "{status}");
    }

    #[tokio::test]
    async fn a_status_that_could_not_be_had_is_an_error_unless_the_board_is_offline() {
        let server = Server::new(Tools::new(Field::demo().unwrap(), Options::default()).unwrap());
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let error = server.resource("picolake://boards/pump/status", cancelled).await.unwrap_err();
        assert_eq!(error.data.unwrap()["code"], "cancelled");

        let session = Session::connect_with(async || Err("nobody is there".into()), 1);
        let away = Field::new([Board::new("away", "nowhere", session, false)]);
        let server = Server::new(Tools::new(away, Options::default()).unwrap());
        let read = server.resource("picolake://boards/away/status", CancellationToken::new()).await;
        assert_eq!(text_of(read.unwrap())["code"], OFFLINE);
    }

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
    fn a_devices_unit_and_description_are_escaped_and_not_changed() {
        let text = "\u{1b}[2J \u{202e}\u{200b}\u{e0068} \"}],[{";
        let column = ColumnInfo {
            name: "x".into(),
            kind: text.into(),
            column_type: ColumnType::Int,
            unit: text.into(),
            description: text.into(),
        };
        let written = seen(&about_column(&column).to_string());
        assert!(!written.chars().any(is_unseen), "{written:?}");
        let read: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read, json!({"name": "x", "type": text, "unit": text, "description": text}));
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
