//! The command language: text → [`Command`]. Keywords are case-insensitive, names are not, spaces around `=` are free.
//!
//! A fault is reported with its position and what was expected there; where a word is nearly one that fits, with
//! that word. Nothing is run here, and the SQL in a command is not looked into.

mod help;
pub mod json;
mod nearest;
mod parse;
mod words;

pub use help::{TOPICS, Topic};
pub use nearest::nearest;
pub use parse::parse;

use crate::{limits::TABLE_COLUMNS_MAX, schema::Column};
use json::Members;

/// How an answer is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// As EdgeLake writes it.
    #[default]
    Json,
    /// A table for people.
    Table,
    /// Clean data for models.
    Mcp,
}

impl Format {
    /// As it is written in a command.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Table => "table",
            Format::Mcp => "mcp",
        }
    }
}

/// A parsed command. What it borrows is the text.
#[expect(clippy::large_enum_variant, reason = "there is no heap to put a new table's columns on")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// `get status [where format = F]`
    GetStatus(Option<Format>),
    /// `get version [where format = F]`
    GetVersion(Option<Format>),
    /// `get databases [where format = F]`
    GetDatabases(Option<Format>),
    /// `get processes [where format = F]`
    GetProcesses(Option<Format>),
    /// `get tables where dbms = D [and format = F]`
    GetTables {
        /// The database.
        dbms: &'a str,
        /// How to write the answer.
        format: Option<Format>,
    },
    /// `get columns where dbms = D and table = T [and format = F]`
    GetColumns {
        /// The database.
        dbms: &'a str,
        /// The table.
        table: &'a str,
        /// How to write the answer.
        format: Option<Format>,
    },
    /// `get rows count [where dbms = D [and table = T]] [and format = F]`
    GetRowsCount {
        /// Only this database; always given where a table is.
        dbms: Option<&'a str>,
        /// Only this table.
        table: Option<&'a str>,
        /// How to write the answer.
        format: Option<Format>,
    },
    /// `get jobs [where format = F]`: the bridge's, no board's
    GetJobs(Option<Format>),
    /// `blockchain get table …`
    BlockchainGetTable(BlockchainGetTable<'a>),
    /// `sql D [format = F] [and stat = true|false] "SELECT …"`
    Sql(Sql<'a>),
    /// `explain sql D "SELECT …"`
    ExplainSql(Sql<'a>),
    /// `insert D T {"column": value, …}`
    Insert(Insert<'a>),
    /// `create table D.T (column type, …) [rows = N]`
    CreateTable(CreateTable<'a>),
    /// `set sample D T = 500ms`
    SetSample {
        /// The database.
        dbms: &'a str,
        /// The table whose sampler is meant.
        table: &'a str,
        /// Microseconds from one row to the next; not 0.
        interval_us: u64,
    },
    /// `set time = 2026-11-18T05:00:00Z`
    SetTime(i64),
    /// `help [COMMAND]`: the topics that were asked for
    Help(&'static [Topic]),
    /// `run client (…) COMMAND`: the bridge's, no board's
    RunClient(RunClient<'a>),
}

/// `blockchain get table [where dbms = D [and name = T]] [bring.json|bring.table] [and format = F] [and extract = …]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockchainGetTable<'a> {
    /// Only this database.
    pub dbms: Option<&'a str>,
    /// Only tables of this name.
    pub name: Option<&'a str>,
    /// How to write the answer; `bring.json` and `bring.table` say it where `format` does not.
    pub format: Option<Format>,
    /// Only this column, each value once and in order.
    pub extract: Option<Extract>,
}

/// A column of the answer to `blockchain get table`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extract {
    /// The database.
    Dbms,
    /// The table.
    Name,
}

/// `sql D [format = F] [and stat = true|false] "SELECT …"`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sql<'a> {
    /// The database.
    pub dbms: &'a str,
    /// How to write the answer.
    pub format: Option<Format>,
    /// Whether `format = json` ends with statistics.
    pub statistics: bool,
    /// The SQL, without the quotes around it.
    pub text: &'a str,
    /// Where `text` begins in the command: what a position in the SQL is shifted by.
    pub offset: usize,
}

/// `insert D T {"column": value, …}`. The object was read once and is well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insert<'a> {
    /// The database.
    pub dbms: &'a str,
    /// The table.
    pub table: &'a str,
    /// The object, from `{` to `}`.
    pub json: &'a str,
    /// Where `json` begins in the command.
    pub offset: usize,
}

impl<'a> Insert<'a> {
    /// The columns and their values, one after the other; positions are the command's.
    pub fn members(&self) -> Members<'a> {
        Members::new(self.json, self.offset)
    }
}

/// `create table D.T (column type, …) [rows = N]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTable<'a> {
    /// The database.
    pub dbms: &'a str,
    /// The table.
    pub table: &'a str,
    /// All columns but `timestamp`, which every table has and which is its first. At least one.
    pub columns: heapless::Vec<Column<'a>, { TABLE_COLUMNS_MAX - 1 }>,
    /// For how many rows there is to be room; not 0.
    pub rows: Option<u32>,
}

/// `run client ([board, …]) COMMAND`. The command was parsed once and is well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunClient<'a> {
    /// What stands between the parentheses.
    pub(crate) boards: &'a str,
    /// What is to be run on each.
    pub command: &'a str,
    /// Where `command` begins in the whole command.
    pub offset: usize,
}

impl<'a> RunClient<'a> {
    /// The boards by name; none means every board that has the table.
    pub fn boards(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.boards.split(',').map(str::trim).filter(|board| !board.is_empty())
    }
}

/// The byte of `text` at which `part`, a slice of it, begins; 0 if it is empty or none of its slices. What a [`Command`] borrows
/// is found again so.
pub fn position_of(text: &str, part: &str) -> usize {
    let offset = part.as_ptr().addr().checked_sub(text.as_ptr().addr());
    offset.filter(|offset| !part.is_empty() && offset + part.len() <= text.len()).unwrap_or(0)
}

/// The byte at which the value behind the last `=` of a command begins.
pub fn position_of_last_value(text: &str) -> usize {
    let Some(equals) = text.rfind('=') else { return 0 };
    let value = text[equals + 1..].trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '\'' | '"'));
    text.len() - value.len()
}

impl Command<'_> {
    /// Whether doing it twice does the same as doing it once.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Command::SetTime(_) => false, // late, it would set a time that is past
            Command::RunClient(run) => parse(run.command).is_ok_and(|command| command.is_repeatable()),
            other => !other.is_write(),
        }
    }

    /// Whether it changes what the board holds or how it samples.
    pub fn is_write(&self) -> bool {
        match self {
            Command::Insert(_) | Command::CreateTable(_) | Command::SetSample { .. } => true,
            Command::RunClient(run) => parse(run.command).is_ok_and(|command| command.is_write()),
            Command::GetStatus(_)
            | Command::GetVersion(_)
            | Command::GetDatabases(_)
            | Command::GetProcesses(_)
            | Command::GetTables { .. }
            | Command::GetColumns { .. }
            | Command::GetRowsCount { .. }
            | Command::GetJobs(_)
            | Command::BlockchainGetTable(_)
            | Command::Sql(_)
            | Command::ExplainSql(_)
            | Command::SetTime(_)
            | Command::Help(_) => false,
        }
    }

    /// The format that was asked for.
    pub fn format(&self) -> Option<Format> {
        match self {
            Command::GetStatus(format)
            | Command::GetVersion(format)
            | Command::GetDatabases(format)
            | Command::GetProcesses(format)
            | Command::GetJobs(format)
            | Command::GetTables { format, .. }
            | Command::GetColumns { format, .. }
            | Command::GetRowsCount { format, .. } => *format,
            Command::BlockchainGetTable(get) => get.format,
            Command::Sql(sql) | Command::ExplainSql(sql) => sql.format,
            Command::RunClient(run) => parse(run.command).ok().and_then(|command| command.format()),
            Command::Insert(_)
            | Command::CreateTable(_)
            | Command::SetSample { .. }
            | Command::SetTime(_)
            | Command::Help(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{limits::COMMAND_BYTES_MAX, message::ErrorCode, value::ColumnType};
    use std::{format, string::String, vec::Vec};

    #[test]
    fn keywords_are_free_in_case_and_space() {
        assert_eq!(parse("  GET   Status "), Ok(Command::GetStatus(None)));
        assert_eq!(parse("get status where format=MCP"), Ok(Command::GetStatus(Some(Format::Mcp))));
        assert_eq!(parse("get version where format = table"), Ok(Command::GetVersion(Some(Format::Table))));
        assert_eq!(parse("get databases where format='json'"), Ok(Command::GetDatabases(Some(Format::Json))));
        assert_eq!(parse("get processes"), Ok(Command::GetProcesses(None)));
        assert_eq!(parse("get jobs"), Ok(Command::GetJobs(None)));
        assert_eq!(parse("set time=1970-01-01T00:00:01Z"), Ok(Command::SetTime(1_000_000)));
        assert_eq!(parse("set time = '1970-01-01 00:00:01Z'"), Ok(Command::SetTime(1_000_000)));
        assert_eq!(parse("help"), Ok(Command::Help(TOPICS)));
        assert_eq!(parse("help get version"), Ok(Command::Help(&TOPICS[1..2])));
        assert_eq!(parse("help GET"), Ok(Command::Help(&TOPICS[..8])));
    }

    #[test]
    fn conditions_come_in_any_order() {
        let tables = Command::GetTables { dbms: "demo", format: Some(Format::Mcp) };
        assert_eq!(parse("get tables where dbms = demo and format = mcp"), Ok(tables.clone()));
        assert_eq!(parse("get tables where format=mcp and dbms=\"demo\""), Ok(tables));
        let columns = Command::GetColumns { dbms: "demo", table: "t", format: None };
        assert_eq!(parse("get columns where table = t and dbms = demo"), Ok(columns));
        let count = |dbms, table, format| Ok(Command::GetRowsCount { dbms, table, format });
        assert_eq!(parse("get rows count"), count(None, None, None));
        assert_eq!(parse("get rows count where format = json"), count(None, None, Some(Format::Json)));
        assert_eq!(parse("get rows count and format = json"), count(None, None, Some(Format::Json)));
        assert_eq!(
            parse("get rows count where dbms = Demo and table = T"),
            count(Some("Demo"), Some("T"), None)
        );
        let blockchain = |get| Ok(Command::BlockchainGetTable(get));
        assert_eq!(parse("blockchain get table"), blockchain(BlockchainGetTable::default()));
        let all = BlockchainGetTable {
            dbms: Some("demo"),
            name: Some("t"),
            format: Some(Format::Mcp),
            extract: Some(Extract::Name),
        };
        let text =
            "blockchain get table where dbms=demo and name=t bring.json and format=mcp and extract=name";
        assert_eq!(parse(text), blockchain(all));
        let brought = BlockchainGetTable { format: Some(Format::Table), ..Default::default() };
        assert_eq!(parse("blockchain get table BRING.TABLE"), blockchain(brought));
    }

    #[test]
    fn sql_is_what_stands_between_the_first_and_the_last_quote() {
        let sql = |text| match parse(text) {
            Ok(Command::Sql(sql) | Command::ExplainSql(sql)) => sql,
            other => panic!("{text}: {other:?}"),
        };
        let whole = r#"sql demo format = table and stat=false "SELECT "a b" FROM t" "#;
        let found = sql(whole);
        assert_eq!((found.dbms, found.format, found.statistics), ("demo", Some(Format::Table), false));
        assert_eq!(found.text, r#"SELECT "a b" FROM t"#);
        assert!(whole[found.offset..].starts_with(found.text));
        let found = sql("SQL demo select 1 from t where x = \"format\"  ");
        assert_eq!((found.text, found.statistics), ("select 1 from t where x = \"format\"", true));
        assert_eq!(sql("sql demo stat = false and format = mcp \"x\"").format, Some(Format::Mcp));
        assert_eq!(sql("sql demo and format = mcp \"x\"").format, Some(Format::Mcp));
        assert_eq!(sql("explain sql demo \"SELECT 1\"").text, "SELECT 1");
    }

    #[test]
    fn writes_are_read_into_their_parts() {
        let text = r#"insert demo notes {"level": 3, "text": "a } b"}"#;
        let Ok(Command::Insert(insert)) = parse(text) else { panic!("{:?}", parse(text)) };
        assert_eq!((insert.dbms, insert.table, insert.offset), ("demo", "notes", 18));
        let mut members = insert.members();
        let member = members.next_member().unwrap().unwrap();
        assert_eq!((member.name, member.position, member.value_position), ("level", 20, 28));

        let create = |text| match parse(text) {
            Ok(Command::CreateTable(create)) => create,
            other => panic!("{text}: {other:?}"),
        };
        let table =
            create("create table demo.notes (timestamp TIMESTAMP, temp float '°C', n int) rows = 500");
        assert_eq!((table.dbms, table.table, table.rows), ("demo", "notes", Some(500)));
        assert_eq!(
            table.columns,
            [
                Column { name: "temp", kind: ColumnType::Float64, unit: "°C" },
                Column { name: "n", kind: ColumnType::Int, unit: "" }
            ]
        );
        assert_eq!(create("create table d.t(x float32)").columns[0].kind, ColumnType::Float32);

        let sample = |interval_us| Ok(Command::SetSample { dbms: "d", table: "t", interval_us });
        assert_eq!(parse("set sample d t = 500ms"), sample(500_000));
        assert_eq!(parse("set sample d t=2 MIN"), sample(120_000_000));
        assert_eq!(parse("set sample d t = 7us"), sample(7));
        assert_eq!(parse("set sample d t = 1h"), sample(3_600_000_000));
        assert_eq!(parse("set sample d t = 1s"), sample(1_000_000));
    }

    #[test]
    fn what_a_command_borrows_is_found_again_in_its_text() {
        let text = "get columns where table = 'dbms' and dbms = d";
        let Ok(Command::GetColumns { dbms, table, .. }) = parse(text) else { panic!("{:?}", parse(text)) };
        assert_eq!((position_of(text, table), position_of(text, dbms)), (27, 44));
        assert_eq!(position_of(text, ""), 0);
        assert_eq!(position_of(&text[10..], &text[..5]), 0);
        assert_eq!(position_of(&text[..10], &text[5..]), 0);
        assert_eq!(position_of_last_value("set time = '2026-11-18T05:00:00Z'"), 12);
        assert_eq!(position_of_last_value("set sample d t=7us"), 15);
        assert_eq!((position_of_last_value("help"), position_of_last_value("a =")), (0, 3));
    }

    #[test]
    fn a_client_runs_one_command() {
        let text = "run client ( pump,gate/way ) get status where format = mcp";
        let Ok(Command::RunClient(run)) = parse(text) else { panic!("{:?}", parse(text)) };
        assert_eq!(run.boards().collect::<Vec<_>>(), ["pump", "gate/way"]);
        assert_eq!(&text[run.offset..], run.command);
        assert_eq!(parse(text).unwrap().format(), Some(Format::Mcp));
        let Ok(Command::RunClient(run)) = parse("run client () sql d \"SELECT 1\"") else { panic!() };
        assert_eq!(run.boards().count(), 0);
        let write = parse("run client () insert d t {}").unwrap();
        assert!(write.is_write() && !write.is_repeatable());
    }

    #[test]
    fn writes_and_what_must_not_run_twice_are_known() {
        for topic in TOPICS {
            let command = parse(topic.example).unwrap();
            assert_eq!(command.is_write(), topic.about.ends_with("a write"), "{}", topic.example);
            let is_set_time = matches!(command, Command::SetTime(_));
            assert_eq!(command.is_repeatable(), !command.is_write() && !is_set_time);
        }
    }

    fn fault(text: &str) -> (ErrorCode, u16, String) {
        let failure = parse(text).unwrap_err();
        (failure.code, failure.position, failure.hint.as_str().into())
    }

    #[test]
    fn a_fault_has_its_place_and_a_suggestion() {
        use ErrorCode::{Syntax, UnknownCommand, Value};
        let firsts = "expected `get`, `blockchain`, `sql`, `explain`, `insert`, …";
        for (text, code, position, hint) in [
            ("got status", UnknownCommand, 0, "did you mean `get`?"),
            ("", UnknownCommand, 0, firsts),
            ("  xyzzy", UnknownCommand, 2, firsts),
            ("get statsu", Syntax, 4, "did you mean `status`?"),
            ("get", Syntax, 3, "expected `status`, `version`, `databases`, `processes`, …"),
            ("get status please", Syntax, 11, "expected `where`"),
            ("set time = 2026-11-31T05:00:00Z", Value, 19, "expected a time such as 2026-11-18T05:00:00Z"),
            ("help me", Syntax, 5, firsts),
            ("help sql now", Syntax, 9, "expected the end of the command"),
            ("get tables", Syntax, 10, "expected `dbms = NAME` too"),
            ("get tables where dbsm = demo", Syntax, 17, "did you mean `dbms`?"),
            ("get tables where dbms = demo, format = x", Syntax, 28, "expected `and`"),
            ("get tables where dbms = demo and dbms = x", Syntax, 33, "`dbms` is given twice"),
            ("get tables where dbms = 'demo", Syntax, 24, "this ' is never closed"),
            ("get tables where dbms = 3d", Syntax, 24, "expected a name: letters, digits and _"),
            ("get columns where dbms = demo", Syntax, 29, "expected `table = NAME` too"),
            ("get rows count where table = t", Syntax, 30, "expected `dbms = NAME` too"),
            ("blockchain get table where extract = x", Syntax, 37, "expected `dbms`, `name`"),
            ("sql demo", Syntax, 8, "expected a SELECT in double quotes"),
            ("sql demo \"SELECT 1", Syntax, 9, "this \" is never closed"),
            ("sql demo \"SELECT 1\" x", Syntax, 20, "expected the end of the command"),
            ("sql demo selec 1", Syntax, 9, "did you mean `SELECT`?"),
            (
                "sql demo format = json stat = true \"x\"",
                Syntax,
                23,
                "expected `and`, or a SELECT in double quotes",
            ),
            ("sql demo \" \"", Syntax, 10, "expected a SELECT"),
            ("explain demo", Syntax, 8, "expected `sql`"),
            ("insert demo notes level=3", Syntax, 18, "expected `{`"),
            ("create table demo (x int)", Syntax, 17, "expected `.` and a table's name"),
            ("create table d.t (x inte)", Syntax, 20, "did you mean `int`?"),
            ("create table d.t ()", Syntax, 18, "expected a name: letters, digits and _"),
            (
                "create table d.t (timestamp timestamp)",
                Syntax,
                38,
                "a table needs a column besides `timestamp`",
            ),
            (
                "create table d.t (x int) rows = 0",
                Value,
                32,
                "expected a number of rows from 1 to 4294967295",
            ),
            ("create table d.t (x int, x int)", ErrorCode::Exists, 25, "there are two columns `x`"),
            ("create table d.t (_epoch int)", ErrorCode::Exists, 18, "`_epoch` is a column of every table"),
            ("set sample d t = 5", Syntax, 18, "expected `us`, `ms`, `s`, `min`, `h`"),
            ("set sample d t = 0s", Value, 17, "expected a time above 0"),
            ("run client get status", Syntax, 11, "expected `(`"),
            ("run client (a get status", Syntax, 12, "expected board names and then `)`"),
            ("run client (a b) get status", Syntax, 12, "expected a board's name"),
            ("run client (a,) get status", Syntax, 14, "expected a board's name"),
            ("run client () get statsu", Syntax, 18, "did you mean `status`?"),
            ("run client () run client () help", Syntax, 18, "`run client` cannot be run on a board"),
        ] {
            assert_eq!(fault(text), (code, position, hint.into()), "{text}");
        }
        assert_eq!(fault(&"é".repeat(COMMAND_BYTES_MAX / 2 + 1)).0, ErrorCode::TooLong);
        assert_eq!(fault(&format!("get tables where dbms = {}", "d".repeat(33))).0, ErrorCode::TooLong);
        assert_eq!(fault("set sample d t = 99999999999999999999s").0, ErrorCode::Overflow);
        assert_eq!(fault("set sample d t = 9999999999999999h").0, ErrorCode::Overflow);
        let columns: Vec<_> = (0..TABLE_COLUMNS_MAX).map(|n| format!("c{n} int")).collect();
        let text = format!("create table d.t ({})", columns.join(", "));
        assert_eq!(fault(&text).0, ErrorCode::Capacity);
        assert_eq!(fault("create table d.t (x int, timestamp timestamp)").0, ErrorCode::Exists);
    }
}
