//! Runs a statement in SQLite, on a thread of its own, over tables that it can only read.
//!
//! ```text
//!   what                                       held by
//!   one SELECT, known words only               the parser and the rewriting (beyond, rewrite)
//!   only reading, known functions, own tables  the authorizer, `readonly()`, query_only, no file is open
//!   text, row, columns, depth, instructions    SQLITE_LIMIT_*
//!   time, and whether it is wanted             the progress handler; the reading of pages asks, too
//!   memory                                     the progress handler, for statements that sort, group or materialise
//! ```

use super::{
    Beyond,
    answer::{Answer, Cell, Message, Row},
    beyond::on_deep_stack,
    functions, limits,
    rewrite::{self, Written, virtual_name},
    source::TableRows,
    stop::{self, Stop},
    table,
};
use crate::{
    fault::{Fault, quoted},
    query::{Context, OwnedColumn},
};
use rusqlite::{
    Connection, Error, ErrorCode, OpenFlags, Statement,
    config::DbConfig,
    hooks::{AuthAction, AuthContext, Authorization},
    limits::Limit,
};
use shared::value::ColumnType;
use std::sync::Arc;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit, mpsc},
    time::timeout_at,
};

/// Statements that may run now.
static TURNS: Semaphore = Semaphore::const_new(limits::STATEMENTS_MAX);

/// Opcodes of SQLite that begin to keep rows.
const KEEPING_OPCODES: [&str; 4] = ["OpenEphemeral", "OpenAutoindex", "SorterOpen", "OpenPseudo"];

/// Runs a statement over these tables, in the order of [`Beyond::tables`]. The answer ends with the context's time at the
/// latest; cancelling the context or dropping the answer stops it within milliseconds.
pub async fn run(beyond: Beyond, tables: Vec<TableRows>, context: &Context) -> Result<Answer, Fault> {
    let turn = context.whole(TURNS.acquire()).await?;
    let turn =
        turn.map_err(|_| Fault::new("internal", "queries are not run any more", "start the bridge again"))?;
    let stop = Arc::new(Stop::new(context));
    let stops = stop.cancelled.clone().drop_guard();
    let (sender, messages) = mpsc::channel(limits::BATCHES_WAITING_MAX);
    let out = Out { sender, handle: Handle::current(), stop: Arc::clone(&stop) };
    let tables: Vec<Arc<TableRows>> = tables.into_iter().map(Arc::new).collect();
    let thread = std::thread::Builder::new()
        .name("sqlite".into())
        .stack_size(limits::STACK_BYTES)
        .spawn(move || work(&beyond, &tables, &out, turn))
        .map_err(|error| {
            Fault::new("internal", format!("a query has no thread: {error}"), "ask again later")
        })?;
    // The runtime knows of it: it does not end before it, and a clock that runs when nobody works stands still.
    tokio::task::spawn_blocking(move || thread.join());
    Answer::begin(messages, stops, context).await
}

/// Whether SQLite takes a statement over tables of these columns, in the order of [`Beyond::tables`]: what can be said
/// before any row is fetched. Returns the columns of its answer, each
/// with its type where that is certain.
pub fn check(
    beyond: &Beyond,
    columns: &[Vec<OwnedColumn>],
    context: &Context,
) -> Result<Vec<(String, Option<ColumnType>)>, Fault> {
    let empty =
        |columns: &Vec<OwnedColumn>| Arc::new(TableRows { columns: columns.clone(), sources: Vec::new() });
    let tables: Vec<Arc<TableRows>> = columns.iter().map(empty).collect();
    let stop = Arc::new(Stop::new(context));
    on_deep_stack(|| {
        let columns: Vec<&[OwnedColumn]> = columns.iter().map(Vec::as_slice).collect();
        let written = rewrite::write(beyond, &columns)?;
        let prepared = open(&tables, &stop).and_then(|connection| {
            let statement = connection.prepare(&written.sql)?;
            let kind = |index: usize| written.kinds.get(index).copied().flatten();
            let names = statement.column_names().enumerate();
            let columns = names.map(|(index, name)| (name.to_string(), kind(index))).collect();
            Ok((statement.readonly(), columns))
        });
        match prepared {
            Ok((true, columns)) => Ok(columns),
            Ok((false, _)) => Err(super::beyond::reads_only()),
            Err(error) => Err(stop.take().unwrap_or_else(|| fault_of(&error))),
        }
    })?
}

/// Where the answer goes.
struct Out {
    sender: mpsc::Sender<Message>,
    handle: Handle,
    stop: Arc<Stop>,
}

impl Out {
    /// Waits until there is room; an error when the answer is not wanted or the time is over.
    fn send(&self, message: Message) -> Result<(), Fault> {
        self.handle.block_on(async {
            tokio::select! {
                biased;
                () = self.stop.cancelled.cancelled() => Err(Fault::cancelled()),
                sent = timeout_at(self.stop.deadline(), self.sender.send(message)) => match sent {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(_)) => Err(Fault::cancelled()),
                    Err(_) => Err(stop::timeout()),
                },
            }
        })
    }
}

fn work(beyond: &Beyond, tables: &[Arc<TableRows>], out: &Out, turn: SemaphorePermit<'static>) {
    let end = answer(beyond, tables, out);
    drop(turn);
    // Whoever does not read any more does not miss it; whoever does has room for it soon.
    let _ = out.sender.blocking_send(Message::End(end));
}

fn answer(beyond: &Beyond, tables: &[Arc<TableRows>], out: &Out) -> Result<(), Fault> {
    let columns: Vec<&[OwnedColumn]> = tables.iter().map(|table| &table.columns[..]).collect();
    let written = rewrite::write(beyond, &columns)?;
    let explained = |error: Error| out.stop.take().unwrap_or_else(|| fault_of(&error));
    let connection = open(tables, &out.stop).map_err(explained)?;
    if keeps_rows(&connection, &written.sql).map_err(explained)? {
        out.stop.keeps_rows();
    }
    let mut statement = connection.prepare(&written.sql).map_err(explained)?;
    if !statement.readonly() {
        return Err(super::beyond::reads_only());
    }
    stream(&mut statement, &written, out).map_err(|ended| match ended {
        Ended::Fault(fault) => fault,
        Ended::Sqlite(error) => explained(error),
    })
}

/// Why a stream ended early.
enum Ended {
    Fault(Fault),
    Sqlite(Error),
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Ended::Fault(fault)
    }
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Ended::Sqlite(error)
    }
}

fn stream(statement: &mut Statement<'_>, written: &Written, out: &Out) -> Result<(), Ended> {
    let names: Vec<String> = statement.column_names().map(Into::into).collect();
    // If the columns were not understood, none is said to be of a type.
    let kinds =
        if written.kinds.len() == names.len() { written.kinds.clone() } else { vec![None; names.len()] };
    let mut names = Some(names);
    let mut rows = statement.query([])?;
    loop {
        let mut batch: Vec<Row> = Vec::new();
        let mut bytes = 0;
        let mut is_last = false;
        while batch.len() < limits::BATCH_ROWS_MAX && bytes < limits::BATCH_BYTES_MAX {
            let Some(row) = rows.next()? else {
                is_last = true;
                break;
            };
            let cells =
                kinds.iter().enumerate().map(|(index, kind)| Ok(Cell::of(row.get_ref(index)?, *kind)));
            let cells: Row = cells.collect::<Result<_, Error>>()?;
            bytes += cells.iter().map(Cell::text_bytes).sum::<usize>();
            batch.push(cells);
        }
        if let Some(names) = names.take() {
            out.send(Message::Columns(columns(names, &kinds, &batch)))?;
        }
        if !batch.is_empty() {
            out.send(Message::Rows(batch))?;
        }
        if is_last {
            return Ok(());
        }
    }
}

/// The columns of the answer: where a type is not certain, that of the first value that there is.
fn columns(names: Vec<String>, kinds: &[Option<ColumnType>], rows: &[Row]) -> Vec<OwnedColumn> {
    let seen = |index: usize| rows.iter().find_map(|row| row.get(index).and_then(Cell::column_type));
    let column = |(index, name): (usize, String)| {
        let kind = kinds.get(index).copied().flatten().or_else(|| seen(index)).unwrap_or(ColumnType::Int);
        OwnedColumn { name, kind, unit: String::new() }
    };
    names.into_iter().enumerate().map(column).collect()
}

/// A database without a file that has nothing but these tables, and can do nothing but read them.
fn open(tables: &[Arc<TableRows>], stop: &Arc<Stop>) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_MEMORY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(":memory:", flags)?;
    for (index, table) in tables.iter().enumerate() {
        table::add(&connection, &virtual_name(index), table, stop)?;
    }
    functions::add(&connection)?;
    connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA query_only = ON;")?;
    for (config, is_on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false), // a name that is none is an error, not a text
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(config, is_on)?;
    }
    for (limit, bound) in [
        (Limit::SQLITE_LIMIT_LENGTH, limits::VALUE_BYTES_MAX),
        (Limit::SQLITE_LIMIT_COLUMN, limits::ANSWER_COLUMNS_MAX),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, limits::SQL_DEPTH_MAX as i32),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, limits::COMPOUND_SELECTS_MAX),
        (Limit::SQLITE_LIMIT_VDBE_OP, limits::INSTRUCTIONS_MAX),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, limits::ARGUMENTS_MAX),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, limits::PATTERN_BYTES_MAX),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, bound)?;
    }
    let watcher = Arc::clone(stop);
    connection.progress_handler(limits::INSTRUCTIONS_PER_LOOK, Some(move || watcher.is_due()))?;
    connection.authorizer(Some(authorize))?;
    Ok(connection)
}

fn authorize(context: AuthContext<'_>) -> Authorization {
    let is_allowed = match context.action {
        AuthAction::Select | AuthAction::Recursive => true,
        // A row's number in SQLite says nothing; `_row_id` is its id.
        AuthAction::Read { table_name, column_name } => {
            !column_name.eq_ignore_ascii_case("rowid")
                && !table_name.to_ascii_lowercase().starts_with("sqlite_")
        }
        AuthAction::Function { function_name } => functions::is_allowed(function_name),
        _ => false,
    };
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}

/// Whether a statement sorts, groups or materialises: then rows stay in SQLite's memory.
fn keeps_rows(connection: &Connection, sql: &str) -> rusqlite::Result<bool> {
    let mut program = connection.prepare(&format!("EXPLAIN {sql}"))?;
    let mut instructions = program.query([])?;
    while let Some(instruction) = instructions.next()? {
        let opcode = instruction.get_ref("opcode")?.as_str().unwrap_or_default();
        if KEEPING_OPCODES.contains(&opcode) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What SQLite says, with its code.
fn fault_of(error: &Error) -> Fault {
    let (code, message) = match error {
        Error::SqliteFailure(failure, message) => (Some(failure.code), message.clone()),
        Error::SqlInputError { error, msg, .. } => (Some(error.code), Some(msg.clone())),
        _ => (None, None),
    };
    let message = message.unwrap_or_else(|| error.to_string());
    let has = |part: &str| message.contains(part);
    let (name, action) = match code {
        Some(ErrorCode::TooBig | ErrorCode::OutOfMemory) => {
            ("capacity", "make shorter texts and fewer columns: a value has at most 100,000 bytes")
        }
        _ if has("not authorized") || has("prohibited") => {
            ("unsupported", "use SQLite's functions of texts, numbers and time")
        }
        _ if has("no such column") => ("unknown_column", "look up the table's columns, then ask again"),
        _ if has("no such function") => ("unsupported", "use SQLite's functions of texts, numbers and time"),
        _ if has("integer overflow") => ("overflow", "compute with floats: x::float"),
        _ if has("outside the calendar") => ("overflow", "move the moment by less"),
        _ if has("too many")
            || has("too large")
            || has("too complex")
            || has("overflow")
            || has("at most") =>
        {
            ("capacity", "take the statement apart and ask for one part after the other")
        }
        _ => ("syntax", "correct it where the error says, and ask again"),
    };
    Fault::new(name, quoted(&message), action)
}
