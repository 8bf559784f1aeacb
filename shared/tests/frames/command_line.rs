//! Any text as a command: a fault has a place in the text, and what is understood means the same however it is written.

use crate::script::Script;
use shared::{
    command::{self, Command, Extract, Format, Insert, json::Members},
    limits::{COMMAND_BYTES_MAX, TABLE_COLUMNS_MAX},
    message::{ErrorCode, Request},
    schema::Column,
    time::{self, Utc},
    value::ColumnType,
};

/// What commands are made of, and what nearly is.
#[rustfmt::skip]
const WORDS: [&str; 62] = [
    "set time = ", "set time=", "get status where format = ", "get version where format=", "help get ",
    "get", "set", "help", "status", "version", "time", "where", "format", "=", "json", "table", "mcp",
    " ", " ", "\t", "\u{2003}", "GET", "Set", "helq", "ü", "2026-11-18T05:00:00", "Z",
    "get tables where ", "get columns where ", "get rows count ", "blockchain get table ", "sql demo ",
    "explain sql demo ", "insert demo t ", "create table d.t (", "set sample d t = ", "run client (",
    "dbms = demo ", "table = t ", "name = t ", "and ", "extract = ", "bring.json ", "stat = ", "true", "false",
    "\"", "'", "\"SELECT 1\"", "select x", "{\"a\":1}", "(", ")", ", ", ".", "int", "float '°C'", "rows = 9",
    "500ms", "7h", "pump", "_1",
];

/// What objects are made of, and what nearly is.
#[rustfmt::skip]
const JSON_PIECES: [&str; 30] = [
    "{", "}", "[", "]", ":", ",", "\"", "\"a\":", "\"b\":", "\"timestamp\":", "null", "true", "false", "-", "0",
    "1", "9223372036854775808", ".5", "e", "+39", "\\", "\\n", "\\u00fc", "\\ud83d", "\\ude00", "\\ud8", " ", "\n",
    "überhitzt", "2026-11-18T05:00:00Z",
];

/// What moments are made of, and what nearly is: day, time of day, fraction, offset.
const MOMENT_PIECES: [[&str; 5]; 4] = [
    ["0001-01-01", "9999-12-31", "2024-02-29", "2023-02-29", "0000-13-00"],
    ["T00:00:00", "t23:59:59", "T24:00:00", "T1", ""],
    ["", ".999999", ".9999999", ".000001", "."],
    ["Z", "+00:01", "-23:59", "z", ""],
];

/// Any bytes: as text, as a choice of words, as a moment.
pub(crate) fn check(bytes: &[u8]) {
    check_text(&String::from_utf8_lossy(bytes));
    let word = |byte: &u8| match *byte {
        letter @ 0x60..0x7F => String::from(char::from(letter)),
        other => WORDS[usize::from(other) % WORDS.len()].to_string(),
    };
    check_text(&bytes.iter().map(word).collect::<String>());
    let mut script = Script::new(bytes);
    let pieces = MOMENT_PIECES.iter().map_while(|pieces| Some(pieces[usize::from(script.below(5)?)]));
    check_text(&format!("set time = {}", pieces.collect::<String>()));
    check_json(&String::from_utf8_lossy(bytes));
    let pieces: String =
        bytes.iter().map(|byte| JSON_PIECES[usize::from(*byte) % JSON_PIECES.len()]).collect();
    check_json(&pieces);
    check_json(&format!("{{\"a\":\"{pieces}"));
    check_json(&format!("{{\"a\":{pieces}"));
}

/// An object ends or has a fault in the text; a value becomes a column's or has a fault where it stands.
fn check_json(text: &str) {
    const OFFSET: usize = 3;
    let is_place = |position: usize| position.checked_sub(OFFSET).is_some_and(|at| text.is_char_boundary(at));
    let mut members = Members::new(text, OFFSET);
    let mut names = Vec::new();
    loop {
        match members.next_member() {
            Ok(None) => return assert_eq!(members.next_member(), Ok(None)),
            Err(failure) => return assert!(is_place(failure.position.into()), "{failure:?} in {text:?}"),
            Ok(Some(member)) => {
                assert!(text[member.position - OFFSET..].starts_with(member.name));
                assert!(!names.contains(&member.name) && names.len() < TABLE_COLUMNS_MAX);
                names.push(member.name);
                for kind in crate::contents::COLUMN_TYPES {
                    let column = Column { name: member.name, kind, unit: "" };
                    match member.value_of(&column) {
                        Ok(value) => assert!(value.column_type().is_none_or(|found| found == kind)),
                        Err(failure) => assert!(is_place(failure.position.into()), "{failure:?} in {text:?}"),
                    }
                }
            }
        }
    }
}

fn check_text(text: &str) {
    let parsed = command::parse(text);
    let is_repeatable = parsed.as_ref().is_ok_and(Command::is_repeatable);
    assert_eq!(Request::Command(text).is_repeatable(), is_repeatable);
    let command = match parsed {
        Ok(command) => command,
        Err(failure) => {
            let is_too_long = text.len() > COMMAND_BYTES_MAX;
            assert!(!is_too_long || failure.code == ErrorCode::TooLong);
            assert!(is_too_long || text.is_char_boundary(failure.position.into()), "{failure:?} in {text:?}");
            assert!(!failure.hint.is_empty());
            return;
        }
    };
    assert!(!command.is_write() || !command.is_repeatable());
    let flipped = flip_case(text);
    if !text.contains('{') {
        let flipped = command::parse(&flipped).unwrap_or_else(|failure| panic!("{failure:?} in {flipped:?}"));
        assert_eq!(std::mem::discriminant(&flipped), std::mem::discriminant(&command));
        assert_eq!(flipped.format(), command.format(), "the case of {text:?} matters");
    }
    let again = written(&command);
    match command::parse(&again) {
        Ok(command) => assert_eq!(written(&command), again, "{text:?}"),
        Err(failure) => assert!(again.len() > COMMAND_BYTES_MAX, "{failure:?}: {text:?} is {again:?}"),
    }
    let has_text = text.contains(['"', '\'']) || text.to_ascii_lowercase().contains("sql");
    let spaced = format!("\t {} ", text.replace('=', " = "));
    if !has_text && spaced.len() <= COMMAND_BYTES_MAX {
        let spaced = command::parse(&spaced).unwrap_or_else(|failure| panic!("{failure:?} in {spaced:?}"));
        assert_eq!(written(&spaced), again, "space in {text:?} matters");
    }
    let more = format!("{text} =");
    if !has_text && more.len() <= COMMAND_BYTES_MAX {
        let failure = command::parse(&more).expect_err("a command ends where it ends");
        assert!(usize::from(failure.position) <= more.len());
    }
}

/// A command as `help` shows it.
fn written(command: &Command<'_>) -> String {
    let with = |text: &str, conditions: &[(&str, Option<&str>)]| {
        let given =
            conditions.iter().filter_map(|(key, value)| value.map(|value| format!("{key} = {value}")));
        let given = given.collect::<Vec<_>>().join(" and ");
        if given.is_empty() { text.to_string() } else { format!("{text} where {given}") }
    };
    let format = ("format", command.format().map(Format::name));
    match command {
        Command::GetStatus(_) => with("get status", &[format]),
        Command::GetVersion(_) => with("get version", &[format]),
        Command::GetDatabases(_) => with("get databases", &[format]),
        Command::GetProcesses(_) => with("get processes", &[format]),
        Command::GetJobs(_) => with("get jobs", &[format]),
        Command::GetTables { dbms, .. } => with("get tables", &[("dbms", Some(dbms)), format]),
        Command::GetColumns { dbms, table, .. } => {
            with("get columns", &[("dbms", Some(dbms)), ("table", Some(table)), format])
        }
        Command::GetRowsCount { dbms, table, .. } => {
            with("get rows count", &[("dbms", *dbms), ("table", *table), format])
        }
        Command::BlockchainGetTable(get) => {
            let extract = get.extract.map(|extract| if extract == Extract::Dbms { "dbms" } else { "name" });
            let conditions = [("dbms", get.dbms), ("name", get.name), format, ("extract", extract)];
            with("blockchain get table", &conditions)
        }
        Command::Sql(sql) => {
            let format =
                sql.format.map_or(String::new(), |format| format!("format = {} and ", format.name()));
            format!("sql {} {format}stat = {} \"{}\"", sql.dbms, sql.statistics, sql.text)
        }
        Command::ExplainSql(sql) => {
            let format = sql.format.map_or(String::new(), |format| format!("format = {} ", format.name()));
            format!("explain sql {} {format}\"{}\"", sql.dbms, sql.text)
        }
        Command::Insert(Insert { dbms, table, json, .. }) => format!("insert {dbms} {table} {json}"),
        Command::CreateTable(create) => {
            let quote = |unit: &str| if unit.contains('"') { '\'' } else { '"' };
            let name = |column: &Column<'_>| match column.kind {
                ColumnType::Float32 => "float32",
                other => other.name(),
            };
            let columns = create.columns.iter().map(|column| {
                let quote = quote(column.unit);
                format!("{} {} {quote}{}{quote}", column.name, name(column), column.unit)
            });
            let columns = columns.collect::<Vec<_>>().join(", ");
            let rows = create.rows.map_or(String::new(), |rows| format!(" rows = {rows}"));
            format!("create table {}.{} ({columns}){rows}", create.dbms, create.table)
        }
        Command::SetSample { dbms, table, interval_us } => {
            format!("set sample {dbms} {table} = {interval_us}us")
        }
        Command::SetTime(utc_us) => {
            assert!((time::UTC_US_MIN..=time::UTC_US_MAX).contains(utc_us));
            format!("set time = {}", Utc(*utc_us))
        }
        Command::Help([topic]) => format!("help {}", topic.words.join(" ")),
        Command::Help(topics) if topics.len() == command::TOPICS.len() => "help".to_string(),
        Command::Help(topics) => format!("help {}", topics[0].words[0]),
        Command::RunClient(run) => {
            let boards: Vec<_> = run.boards().collect();
            format!("run client ({}) {}", boards.join(", "), run.command)
        }
    }
}

fn flip_case(text: &str) -> String {
    let flip = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    text.chars().map(flip).collect()
}
