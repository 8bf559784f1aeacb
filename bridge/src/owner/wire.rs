//! What is said on the local socket: JSON lines. Reads and writes no socket.
//!
//! ```text
//!   owner   {"picolake":1,"pid":4711,"release":"0.1.0","setup":{…}}
//!   guest   {"picolake":1,"wish":"query","sql":"SELECT …",…}            one wish a connection
//!   owner   {"text":"…"} …  {"end":{…}}  or  {"error":{…}}              outcome, names, boards: one line
//!
//!   guest   {"picolake":1,"wish":"mcp"}                                 then MCP lines, both ways
//!   guest   {"jsonrpc":"2.0","method":"picolake/end"}                   no more comes; the rest is answered
//!   owner   {"jsonrpc":"2.0","method":"picolake/goodbye","params":{"lines_read":n}}
//! ```
//!
//! A guest that closes without `picolake/end` has left: what it asked is cancelled. An owner that closes without a
//! goodbye was killed: what it had been asked may have been done. After a goodbye, the lines behind the first n were
//! never read.

use crate::{
    fault::Fault,
    field::Report,
    tools::{self, Outcome},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::{command::Format, format::Printable};
use std::{fmt, path::Path};

/// The version of these lines.
pub(super) const VERSION: u64 = 1;
/// The guest's client has ended its input.
pub(super) const INPUT_END: &str = r#"{"jsonrpc":"2.0","method":"picolake/end"}"#;
/// The method of an owner's last line.
pub(super) const GOODBYE: &str = "picolake/goodbye";

/// What an owner says first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    pub(super) picolake: u64,
    pub(super) pid: u32,
    pub(super) release: String,
    #[serde(default)]
    pub(super) setup: Setup,
}

/// How an owner's tools are set up, as far as a guest could want it otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The user's file of tools.
    pub(crate) tools: Option<String>,
    /// Where exports go.
    pub(crate) export_folder: Option<String>,
    /// Every board can be written to.
    pub(crate) allow_writes: bool,
}

/// What a guest wants of the owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub(crate) enum Wish {
    /// To speak MCP.
    Mcp,
    /// The whole answer to a SELECT, written.
    Query {
        sql: String,
        #[serde(default)]
        database: Option<String>,
        #[serde(default)]
        boards: Option<Vec<String>>,
        #[serde(default)]
        format: Written,
    },
    /// The answer to a line of the command language, written.
    Command {
        command: String,
        #[serde(default)]
        boards: Option<Vec<String>>,
        #[serde(default)]
        format: Written,
    },
    /// A tool's outcome.
    Call {
        name: String,
        #[serde(default)]
        arguments: Map<String, Value>,
    },
    /// Names of databases, tables, columns and boards, for completion.
    Names,
    /// How boards stand; all where none is named.
    Boards {
        #[serde(default)]
        named: Option<Vec<String>>,
    },
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Written {
    #[default]
    Table,
    Json,
    Mcp,
}

/// What an owner says to a wish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The next part of the answer.
    Text(String),
    /// It was complete.
    End(End),
    /// There is no answer, or no more of it.
    Error(Refusal),
    /// What a call came to.
    Outcome { items: Vec<String>, is_error: bool },
    /// Names for completion.
    Names(Vec<String>),
    /// Boards.
    Boards(Vec<Report>),
    /// The owner ends, and has not begun with the wish.
    Goodbye {},
}

/// What is to be said of an answer besides the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Rows that were overwritten on a board before they could be sent.
    #[serde(default)]
    pub(crate) rows_lost: u64,
    /// Timestamps came from a board whose clock nobody has set.
    #[serde(default)]
    pub(crate) clock_unset: bool,
    /// Whatever else.
    #[serde(default)]
    pub(crate) hint: Option<String>,
}

/// A failure as it travels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// What failed.
    pub error: String,
    /// For programs.
    pub code: String,
    /// Operands.
    #[serde(default)]
    pub details: Box<Map<String, Value>>,
    /// What to do next.
    pub suggested_action: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, code, suggested_action, .. } = self;
        write!(f, "{}: {}; {}", Printable(code), Printable(error), Printable(suggested_action))
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self {
            error: fault.message,
            code: fault.code.into(),
            details: fault.details,
            suggested_action: fault.suggested_action,
        }
    }
}

impl From<Outcome> for Reply {
    fn from(Outcome { items, is_error }: Outcome) -> Self {
        Reply::Outcome { items, is_error }
    }
}

impl From<Format> for Written {
    fn from(format: Format) -> Self {
        match format {
            Format::Table => Self::Table,
            Format::Json => Self::Json,
            Format::Mcp => Self::Mcp,
        }
    }
}

impl From<Written> for Format {
    fn from(written: Written) -> Self {
        match written {
            Written::Table => Self::Table,
            Written::Json => Self::Json,
            Written::Mcp => Self::Mcp,
        }
    }
}

impl Setup {
    /// Of these options.
    pub(crate) fn of(options: &tools::Options) -> Self {
        let text =
            |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into()).to_string_lossy().into_owned();
        Self {
            tools: options.user_file.as_deref().map(text),
            export_folder: options.export_folder.as_deref().map(text),
            allow_writes: options.allow_writes,
        }
    }

    /// An option of `given` that the owner does not have so: which, and what was given.
    pub(super) fn differs_from(&self, given: &Setup) -> Option<(String, String)> {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
        for (name, ours, given) in [
            ("tools", &self.tools, &given.tools),
            ("export folder", &self.export_folder, &given.export_folder),
        ] {
            if given.is_some() && given != ours {
                return Some((format!("{name} ({})", shown(ours)), shown(given)));
            }
        }
        (given.allow_writes && !self.allow_writes)
            .then(|| ("rules for writing (boards are only read)".into(), "--allow-writes".into()))
    }
}

impl Greeting {
    pub(super) fn new(setup: &Setup) -> Self {
        let (pid, release) = (std::process::id(), env!("CARGO_PKG_VERSION").to_string());
        Self { picolake: VERSION, pid, release, setup: setup.clone() }
    }
}

/// A wish as a line.
pub(super) fn wish_line(wish: &Wish) -> serde_json::Result<String> {
    let mut line = Map::from_iter([("picolake".to_string(), VERSION.into())]);
    if let Value::Object(wish) = serde_json::to_value(wish)? {
        line.extend(wish);
    }
    serde_json::to_string(&line)
}

/// What a guest's first line wishes, or why not.
pub(super) fn read_wish(line: &[u8]) -> Result<Wish, Refusal> {
    let refuse = |error: String, action: &str| Refusal {
        error,
        code: "protocol".into(),
        suggested_action: action.into(),
        ..Refusal::default()
    };
    let Ok(mut line) = serde_json::from_slice::<Map<String, Value>>(line) else {
        return Err(refuse("the first line is no wish".into(), "begin with {\"picolake\":1,\"wish\":…}"));
    };
    match line.remove("picolake").and_then(|version| version.as_u64()) {
        Some(VERSION) => serde_json::from_value(line.into())
            .map_err(|error| refuse(format!("the wish cannot be read: {error}"), "correct it")),
        other => {
            let theirs = other.map_or("none".into(), |version| version.to_string());
            let error = format!("this socket speaks version {VERSION}, the guest {theirs}");
            Err(refuse(error, "stop the older picolake, and start it again from the newer release"))
        }
    }
}

/// The owner's last line to an MCP guest.
pub(super) fn goodbye(lines_read: u64) -> String {
    json!({"jsonrpc": "2.0", "method": GOODBYE, "params": {"lines_read": lines_read}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_read_back_as_they_are_written() {
        for wish in [
            Wish::Mcp,
            Wish::Names,
            Wish::Query { sql: "SELECT '\n'".into(), database: None, boards: None, format: Written::Mcp },
            Wish::Call { name: "x".into(), arguments: Map::from_iter([("n".into(), u64::MAX.into())]) },
            Wish::Boards { named: Some(vec!["pump".into()]) },
        ] {
            let line = wish_line(&wish).unwrap();
            assert!(line.starts_with("{\"picolake\":1,\"wish\":\"") && !line.contains('\n'), "{line}");
            assert_eq!(read_wish(line.as_bytes()).unwrap(), wish);
        }
    }

    #[test]
    fn what_is_no_wish_is_refused_and_another_version_says_what_to_do() {
        for line in ["", "GET / HTTP/1.1", "[]", "{\"picolake\":1}", "{\"picolake\":1,\"wish\":\"all\"}"] {
            assert_eq!(read_wish(line.as_bytes()).unwrap_err().code, "protocol", "{line}");
        }
        let refused = read_wish(b"{\"picolake\":2,\"wish\":\"mcp\"}").unwrap_err().to_string();
        assert!(
            refused.contains("version 1, the guest 2") && refused.contains("stop the older"),
            "{refused}"
        );
    }

    #[test]
    fn only_options_that_were_given_can_differ() {
        let ours = Setup { tools: Some("/a".into()), ..Setup::default() };
        assert_eq!(ours.differs_from(&Setup::default()), None);
        assert_eq!(ours.differs_from(&ours), None);
        let given = Setup { tools: Some("/b".into()), ..Setup::default() };
        assert_eq!(ours.differs_from(&given).unwrap(), ("tools (/a)".into(), "/b".into()));
        assert!(ours.differs_from(&Setup { allow_writes: true, ..Setup::default() }).is_some());
    }
}
