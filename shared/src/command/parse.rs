//! Reads one line as a [`Command`]: one function for each command that has more than conditions.

use super::{
    BlockchainGetTable, Command, CreateTable, Extract, Format, Insert, RunClient, Sql, help,
    json::Members,
    words::{Words, syntax},
};
use crate::{
    limits::{COMMAND_BYTES_MAX, TABLE_COLUMNS_MAX, UNIT_BYTES_MAX},
    message::{ErrorCode, Failure},
    schema::{Column, HIDDEN_COLUMNS, TIME_COLUMN},
    value::ColumnType,
};

/// Reads one line. An error changes nothing anywhere: it is the caller who acts.
pub fn parse(text: &str) -> Result<Command<'_>, Failure> {
    parse_at(text, Depth::Whole)
}

/// Whether a line is what was typed, or the command within `run client`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Whole,
    Within,
}

fn parse_at(text: &str, depth: Depth) -> Result<Command<'_>, Failure> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err(Failure::new(
            ErrorCode::TooLong,
            COMMAND_BYTES_MAX,
            format_args!("a command has at most {COMMAND_BYTES_MAX} bytes"),
        ));
    }
    let mut words = Words::new(text);
    let command = match words.command(&help::first_words())? {
        "get" => get(&mut words)?,
        "blockchain" => blockchain(&mut words)?,
        "sql" => Command::Sql(sql(&mut words, &["format", "stat"])?),
        "explain" => {
            words.keyword(&["sql"])?;
            Command::ExplainSql(sql(&mut words, &["format"])?)
        }
        "insert" => Command::Insert(insert(&mut words)?),
        "create" => Command::CreateTable(create_table(&mut words)?),
        "set" => set(&mut words)?,
        "run" => Command::RunClient(run_client(&mut words, depth)?),
        _ => Command::Help(help::topics(&mut words)?),
    };
    words.end()?;
    Ok(command)
}

fn get<'a>(words: &mut Words<'a>) -> Result<Command<'a>, Failure> {
    const WHAT: &[&str] =
        &["status", "version", "databases", "processes", "tables", "columns", "rows", "jobs"];
    Ok(match words.keyword(WHAT)? {
        "tables" => {
            let found = conditions(words, &["dbms", "format"])?;
            Command::GetTables { dbms: found.needed(words, "dbms", found.dbms)?, format: found.format }
        }
        "columns" => {
            let found = conditions(words, &["dbms", "table", "format"])?;
            let dbms = found.needed(words, "dbms", found.dbms)?;
            Command::GetColumns {
                dbms,
                table: found.needed(words, "table", found.table)?,
                format: found.format,
            }
        }
        "rows" => {
            words.keyword(&["count"])?;
            let found = conditions(words, &["dbms", "table", "format"])?;
            if found.table.is_some() {
                found.needed(words, "dbms", found.dbms)?;
            }
            Command::GetRowsCount { dbms: found.dbms, table: found.table, format: found.format }
        }
        what => {
            let format = conditions(words, &["format"])?.format;
            match what {
                "status" => Command::GetStatus(format),
                "version" => Command::GetVersion(format),
                "databases" => Command::GetDatabases(format),
                "processes" => Command::GetProcesses(format),
                _ => Command::GetJobs(format),
            }
        }
    })
}

fn blockchain<'a>(words: &mut Words<'a>) -> Result<Command<'a>, Failure> {
    words.keyword(&["get"])?;
    words.keyword(&["table"])?;
    let found = conditions(words, &["dbms", "name", "format", "extract", "bring.json", "bring.table"])?;
    if found.name.is_some() {
        found.needed(words, "dbms", found.dbms)?;
    }
    Ok(Command::BlockchainGetTable(BlockchainGetTable {
        dbms: found.dbms,
        name: found.name,
        format: found.format.or(found.bring),
        extract: found.extract,
    }))
}

/// What stands behind `where`, in any order.
#[derive(Default)]
struct Conditions<'a> {
    dbms: Option<&'a str>,
    table: Option<&'a str>,
    name: Option<&'a str>,
    format: Option<Format>,
    bring: Option<Format>,
    extract: Option<Extract>,
    statistics: Option<bool>,
}

impl<'a> Conditions<'a> {
    /// `KEY = VALUE`, where the key is the next word.
    fn read(&mut self, words: &mut Words<'a>, known: &[&'static str]) -> Result<(), Failure> {
        let start = words.position();
        let key = words.keyword(known)?;
        if !key.starts_with("bring") {
            words.symbol("=")?;
        }
        let is_new = match key {
            "dbms" => self.dbms.replace(words.name()?).is_none(),
            "table" => self.table.replace(words.name()?).is_none(),
            "name" => self.name.replace(words.name()?).is_none(),
            "bring.json" => self.bring.replace(Format::Json).is_none(),
            "bring.table" => self.bring.replace(Format::Table).is_none(),
            "stat" => self.statistics.replace(words.choice(&["true", "false"])? == "true").is_none(),
            "extract" => {
                let column =
                    if words.choice(&["dbms", "name"])? == "dbms" { Extract::Dbms } else { Extract::Name };
                self.extract.replace(column).is_none()
            }
            _ => self.format.replace(format(words)?).is_none(),
        };
        if is_new { Ok(()) } else { Err(syntax(start, format_args!("`{key}` is given twice"))) }
    }

    /// A condition that must be there.
    fn needed(&self, words: &Words<'a>, key: &str, value: Option<&'a str>) -> Result<&'a str, Failure> {
        value.ok_or_else(|| syntax(words.position(), format_args!("expected `{key} = NAME` too")))
    }
}

/// `[where KEY = VALUE [and KEY = VALUE] …]` up to the end of the line; `bring.…` needs no word before it.
fn conditions<'a>(words: &mut Words<'a>, known: &[&'static str]) -> Result<Conditions<'a>, Failure> {
    let mut found = Conditions::default();
    let mut joint = "where";
    while !words.is_at_end() {
        let is_bring =
            known.iter().any(|key| key.starts_with("bring") && *key == lower(words.peek().1).as_str());
        if !is_bring && !words.take_if("and") {
            words.keyword(&[joint])?;
        }
        found.read(words, known)?;
        joint = "and";
    }
    Ok(found)
}

/// A short word in lower case; a long one as nothing.
fn lower(word: &str) -> heapless::String<16> {
    let mut lower = heapless::String::try_from(word).unwrap_or_default();
    lower.make_ascii_lowercase();
    lower
}

fn format(words: &mut Words<'_>) -> Result<Format, Failure> {
    Ok(match words.choice(&["json", "table", "mcp"])? {
        "json" => Format::Json,
        "table" => Format::Table,
        _ => Format::Mcp,
    })
}

/// `D [format = F] [and stat = true|false] "SELECT …"`, or the SELECT without quotes up to the end of the line.
fn sql<'a>(words: &mut Words<'a>, known: &[&'static str]) -> Result<Sql<'a>, Failure> {
    let dbms = words.name()?;
    let mut found = Conditions::default();
    let mut is_first = true;
    let (offset, text) = loop {
        let (start, word) = words.peek();
        match word {
            "\"" => break words.quoted_to_last()?,
            "" => return Err(syntax(start, format_args!("expected a SELECT in double quotes"))),
            word if ["select", "with"].iter().any(|begin| begin.eq_ignore_ascii_case(word)) => {
                break words.take_rest();
            }
            _ => {}
        }
        if !words.take_if("and") && !is_first {
            return Err(syntax(start, format_args!("expected `and`, or a SELECT in double quotes")));
        }
        if is_first && !known.iter().any(|key| key.eq_ignore_ascii_case(words.peek().1)) {
            words.keyword(&["format", "stat", "SELECT"])?;
        }
        found.read(words, known)?;
        is_first = false;
    };
    if text.trim().is_empty() {
        return Err(syntax(offset, format_args!("expected a SELECT")));
    }
    Ok(Sql { dbms, format: found.format, statistics: found.statistics.unwrap_or(true), text, offset })
}

fn insert<'a>(words: &mut Words<'a>) -> Result<Insert<'a>, Failure> {
    let (dbms, table) = (words.name()?, words.name()?);
    let (offset, json) = words.take_rest();
    let mut members = Members::new(json, offset);
    while members.next_member()?.is_some() {}
    Ok(Insert { dbms, table, json, offset })
}

fn set<'a>(words: &mut Words<'a>) -> Result<Command<'a>, Failure> {
    if words.keyword(&["sample", "time"])? == "time" {
        words.symbol("=")?;
        return Ok(Command::SetTime(words.moment()?));
    }
    let (dbms, table) = (words.name()?, words.name()?);
    words.symbol("=")?;
    let (start, number) = words.number()?;
    let unit_us = match words.keyword(&["us", "ms", "s", "min", "h"])? {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "min" => 60_000_000,
        _ => 3_600_000_000,
    };
    let interval_us =
        number.checked_mul(unit_us).filter(|interval_us| *interval_us <= i64::MAX.cast_unsigned());
    match interval_us {
        None => Err(Failure::new(ErrorCode::Overflow, start, format_args!("this time is too long"))),
        Some(0) => Err(Failure::new(ErrorCode::Value, start, format_args!("expected a time above 0"))),
        Some(interval_us) => Ok(Command::SetSample { dbms, table, interval_us }),
    }
}

fn create_table<'a>(words: &mut Words<'a>) -> Result<CreateTable<'a>, Failure> {
    words.keyword(&["table"])?;
    let dbms = words.name()?;
    words.dot()?;
    let table = words.name()?;
    words.symbol("(")?;
    let mut columns = heapless::Vec::new();
    let mut is_first = true;
    loop {
        let start = words.position();
        let column = column(words)?;
        if column.name == TIME_COLUMN.name {
            let is_right = is_first && column.kind == ColumnType::Timestamp;
            if !is_right {
                let hint = format_args!("every table has `{}` as its first column", TIME_COLUMN.name);
                return Err(Failure::new(ErrorCode::Exists, start, hint));
            }
        } else {
            add_column(&mut columns, start, column)?;
        }
        is_first = false;
        if words.keyword(&[",", ")"])? == ")" {
            break;
        }
    }
    if columns.is_empty() {
        return Err(syntax(words.position(), format_args!("a table needs a column besides `timestamp`")));
    }
    let mut rows = None;
    if !words.is_at_end() {
        words.keyword(&["rows"])?;
        words.symbol("=")?;
        let (start, number) = words.number()?;
        rows = u32::try_from(number).ok().filter(|rows| *rows > 0);
        if rows.is_none() {
            let hint = format_args!("expected a number of rows from 1 to {}", u32::MAX);
            return Err(Failure::new(ErrorCode::Value, start, hint));
        }
    }
    Ok(CreateTable { dbms, table, columns, rows })
}

fn add_column<'a, const N: usize>(
    columns: &mut heapless::Vec<Column<'a>, N>,
    start: usize,
    column: Column<'a>,
) -> Result<(), Failure> {
    let Column { name, .. } = column;
    if HIDDEN_COLUMNS.iter().any(|hidden| hidden.name == name) {
        let hint = format_args!("`{name}` is a column of every table");
        return Err(Failure::new(ErrorCode::Exists, start, hint));
    }
    if columns.iter().any(|other| other.name == name) {
        let hint = format_args!("there are two columns `{name}`");
        return Err(Failure::new(ErrorCode::Exists, start, hint));
    }
    columns.push(column).map_err(|_| {
        let hint = format_args!("a table has at most {TABLE_COLUMNS_MAX} columns, `timestamp` too");
        Failure::new(ErrorCode::Capacity, start, hint)
    })
}

/// `column type ['unit']`
fn column<'a>(words: &mut Words<'a>) -> Result<Column<'a>, Failure> {
    let name = words.name()?;
    let kind = match words.keyword(&["bool", "int", "float", "float32", "float64", "timestamp", "text"])? {
        "bool" => ColumnType::Bool,
        "int" => ColumnType::Int,
        "float32" => ColumnType::Float32,
        "float" | "float64" => ColumnType::Float64,
        "timestamp" => ColumnType::Timestamp,
        _ => ColumnType::Text,
    };
    let mut unit = "";
    if matches!(words.peek().1, "'" | "\"") {
        let start;
        (start, unit) = words.value()?;
        if unit.len() > UNIT_BYTES_MAX {
            let hint = format_args!("a unit has at most {UNIT_BYTES_MAX} bytes");
            return Err(Failure::new(ErrorCode::TooLong, start, hint));
        }
    }
    Ok(Column { name, kind, unit })
}

fn run_client<'a>(words: &mut Words<'a>, depth: Depth) -> Result<RunClient<'a>, Failure> {
    let start = words.position();
    words.keyword(&["client"])?;
    if depth == Depth::Within {
        return Err(syntax(start, format_args!("`run client` cannot be run on a board")));
    }
    words.symbol("(")?;
    let open = words.position();
    let (start, rest) = words.take_rest();
    let Some(close) = rest.find(')') else {
        return Err(syntax(open, format_args!("expected board names and then `)`")));
    };
    let boards = &rest[..close];
    let mut at = start;
    for board in boards.split(',') {
        let name = board.trim();
        let name_at = at + (board.len() - board.trim_start().len());
        let is_only = boards.trim().is_empty();
        if (name.is_empty() && !is_only) || name.contains(|c: char| c.is_whitespace() || "('\"".contains(c)) {
            return Err(syntax(name_at, format_args!("expected a board's name")));
        }
        at += board.len() + 1;
    }
    let after = &rest[close + 1..];
    let command = after.trim_start();
    let offset = start + close + 1 + (after.len() - command.len());
    match parse_at(command, Depth::Within) {
        Ok(_) => Ok(RunClient { boards, command, offset }),
        Err(failure) => Err(failure.shifted(offset)),
    }
}
