//! A call from its name to its answer: look up, apply defaults, check, build, route, run. Has no tool's name in it.

use super::{
    Tools,
    arguments::{self, Usual},
    definition::{Definition, Destination, Work},
    internal, listing,
    paging::{self, Ready, View},
    processes, sql,
    stream::RowStream,
    template::{self, Filled},
};
use crate::{
    fault::{Fault, quoted},
    field::{Field, Having, Standing},
    query::{Context, Select},
};
use futures_util::future::join_all;
use serde_json::{Map, Value};
use shared::command::{self, Command, Format, Sql, nearest};
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// Calls a tool; returns the items of its answer.
pub(super) async fn call(
    tools: &Tools,
    name: &str,
    arguments: Map<String, Value>,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    let definition = look_up(tools, name)?;
    let mut arguments = arguments::prepare(&definition, arguments)?;
    let mut usual = Usual::of(&arguments)?;
    usual.is_local = definition.command.destination == Destination::Local;
    if let Some(cursor) = &usual.cursor {
        return Box::pin(paging::next(tools, cursor, &usual, context)).await;
    }
    if definition.command.builds_sql {
        let built = sql::build(&arguments)?;
        arguments.insert(template::SQL.into(), built.into());
        if usual.database.is_none() {
            let only = only_database(&tools.inner.lake.field, usual.boards.as_deref()).await?;
            arguments.insert("database".into(), only.as_str().into());
            usual.database = Some(only);
        }
    }
    match &definition.command.work {
        Work::Internal(internal) => {
            Box::pin(internal::run(tools, *internal, &arguments, usual, context)).await
        }
        Work::Command(template) => {
            let filled = template.fill(&arguments)?;
            Box::pin(run_command(tools, &definition, &filled, usual, context)).await
        }
    }
}

fn look_up(tools: &Tools, name: &str) -> Result<Arc<Definition>, Fault> {
    let list = tools.list();
    if let Some(definition) = list.iter().find(|definition| definition.name == name) {
        return Ok(Arc::clone(definition));
    }
    let names: Vec<&str> = list.iter().map(|definition| definition.name.as_str()).collect();
    let action = match nearest(name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the tools are: {}", names.join(", ")),
    };
    Err(Fault::new("unknown_tool", format!("there is no tool `{}`", quoted(name)), action))
}

/// What a line of the command language came to.
#[derive(Debug)]
pub(crate) enum Answered {
    /// Rows of a SELECT, all of them.
    Rows {
        /// On their way.
        rows: RowStream,
        /// As the command says it.
        format: Format,
        /// As the command says it.
        statistics: bool,
    },
    /// The answer, and what is to be said of it.
    Items(Vec<String>),
}

/// Runs a line of the command language that is no tool's.
pub(super) async fn command(
    tools: &Tools,
    text: &str,
    boards: Option<Vec<String>>,
    format: Format,
    context: &Context,
) -> Result<Answered, Fault> {
    let mut usual = Usual { boards, ..Usual::default() };
    let (text, parsed) = unwrapped(text, &mut usual)?;
    let format = parsed.format().unwrap_or(format);
    usual.format = Some(format);
    usual.is_plain = usual.boards.as_ref().is_some_and(|boards| boards.len() == 1);
    if let Command::Sql(sql) = &parsed {
        let boards = usual.boards.as_deref();
        let opening = RowStream::open(&tools.inner.lake, sql.dbms, sql.text, boards, context.clone());
        let rows = Box::pin(opening).await.map_err(|fault| shifted(fault, text, sql.text))?;
        return Ok(Answered::Rows { rows, format, statistics: sql.statistics });
    }
    Ok(Answered::Items(Box::pin(run_parsed(tools, None, text, &parsed, usual, context)).await?))
}

/// The place of a fault within a command, not within its SQL.
fn shifted(mut fault: Fault, command: &str, sql: &str) -> Fault {
    let begin = (sql.as_ptr() as usize).saturating_sub(command.as_ptr() as usize);
    if let Some(position) = fault.details.get("position").and_then(Value::as_u64) {
        fault.details.insert("position".into(), (position + begin as u64).into());
    }
    fault
}

/// A tool's line of the command language.
async fn run_command(
    tools: &Tools,
    definition: &Definition,
    filled: &Filled,
    mut usual: Usual,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    let (text, parsed) = unwrapped(&filled.command, &mut usual)?;
    let parsed = match (parsed, filled.select.as_deref()) {
        (Command::Sql(sql), Some(text)) => Command::Sql(Sql { text, ..sql }),
        (Command::ExplainSql(sql), Some(text)) => Command::ExplainSql(Sql { text, ..sql }),
        (parsed, _) => parsed,
    };
    run_parsed(tools, Some(definition), text, &parsed, usual, context).await
}

/// The command itself; `run client (…)` around it says for which boards.
fn unwrapped<'t>(text: &'t str, usual: &mut Usual) -> Result<(&'t str, Command<'t>), Fault> {
    let parsed =
        command::parse(text).map_err(|failure| Fault::from(failure).with("command", quoted(text)))?;
    Ok(match parsed {
        Command::RunClient(run) => {
            let named: Vec<String> = run.boards().map(str::to_string).collect();
            if !named.is_empty() {
                usual.boards = Some(named);
            }
            (run.command, command::parse(run.command)?)
        }
        parsed => (text, parsed),
    })
}

/// Routes a command and runs it.
async fn run_parsed(
    tools: &Tools,
    definition: Option<&Definition>,
    text: &str,
    parsed: &Command<'_>,
    usual: Usual,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    let field = &tools.inner.lake.field;
    match parsed {
        other if usual.is_local && !matches!(other, Command::Sql(_)) => {
            let message = "this tool runs on the gateway itself, where only SQL does";
            Err(Fault::new("local_not_available", message, "use a tool that asks the boards"))
        }
        Command::Sql(sql) => Box::pin(query(tools, sql, usual, context)).await,
        Command::GetJobs(format) => {
            let format = usual.format.or(*format).unwrap_or(Format::Mcp);
            Ok(vec![tools.inner.jobs.written(format)])
        }
        Command::GetTables { dbms, .. } => {
            let boards = field.standing(usual.boards.as_deref()).await?;
            let view = |name: &str| (dbms.to_string(), vec![name.to_string()]);
            let views = tools.inner.lake.views.names(dbms).map(view).collect();
            Box::pin(listing::run_with(boards, text, parsed, &usual, context, views)).await
        }
        Command::GetColumns { dbms, table, .. } if tools.inner.lake.views.has(dbms, table) => {
            let all = format!("SELECT * FROM \"{table}\"");
            let sql = Sql { dbms, format: None, statistics: false, text: &all, offset: 0 };
            let planned = tools.inner.lake.planned(&select(&sql, &usual, now_us()), context).await?;
            listing::columns_of(planned, parsed, &usual)
        }
        Command::GetColumns { dbms, table, .. } => {
            let having = field.boards_with(dbms, table, usual.boards.as_deref()).await?;
            Box::pin(listing::run(standing(having), text, parsed, &usual, context)).await
        }
        Command::ExplainSql(sql) => {
            let planned = tools.inner.lake.planned(&select(sql, &usual, now_us()), context).await?;
            Box::pin(listing::explain(planned, parsed, &usual, context)).await
        }
        other if other.is_write() || !other.is_repeatable() => {
            let board = writable(tools, definition, &usual).await?;
            let written = Box::pin(listing::run(vec![board.clone()], text, parsed, &usual, context)).await;
            if matches!(other, Command::CreateTable(_)) {
                board.board.forget_catalogue();
            }
            written
        }
        Command::GetProcesses(_) => {
            let boards = field.standing(usual.boards.as_deref()).await?;
            let own = tools.archive().map(processes::of_archive).unwrap_or_default();
            Box::pin(listing::run_with(boards, text, parsed, &usual, context, own)).await
        }
        _ => {
            let boards = field.standing(usual.boards.as_deref()).await?;
            Box::pin(listing::run(boards, text, parsed, &usual, context)).await
        }
    }
}

/// The one board that a write is for, if it may be written to.
async fn writable(tools: &Tools, definition: Option<&Definition>, usual: &Usual) -> Result<Standing, Fault> {
    if let Some(definition) = definition.filter(|definition| definition.annotations.read_only) {
        let message = format!("`{}` only reads, and this command changes something", definition.name);
        let action = "use a tool for it; one of your own needs annotations: { read_only: false }";
        return Err(Fault::new("write_refused", message, action));
    }
    let boards = tools.inner.lake.field.standing(usual.boards.as_deref()).await?;
    let [board] = <[Standing; 1]>::try_from(boards).map_err(|boards| {
        let names: Vec<&str> = boards.iter().map(|standing| standing.board.name.as_str()).collect();
        let action = format!("name one in `boards`: {}", names.join(", "));
        Fault::new("needs_board", "a write is for one board", action)
    })?;
    if !board.board.writable && !tools.inner.options.allow_writes {
        let name = &board.board.name;
        let message = format!("board `{name}` is read only");
        let action =
            format!("to allow it, write `writable: true` at board `{name}` in picolake.yaml and start again");
        return Err(Fault::new("write_refused", message, action).with("board", name.as_str()));
    }
    Ok(board)
}

/// Runs SQL on the boards that have its table.
async fn query(
    tools: &Tools,
    sql: &Sql<'_>,
    mut usual: Usual,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    usual.format = usual.format.or(sql.format);
    let view = View::new(&usual, sql.statistics);
    let now_us = now_us();
    let planned = tools.inner.lake.planned(&select(sql, &usual, now_us), context).await?;
    let ready = Ready { planned, now_us, is_strict: usual.is_strict };
    Box::pin(paging::first(tools, ready, view, context)).await
}

fn select<'q>(sql: &Sql<'q>, usual: &'q Usual, now_us: i64) -> Select<'q> {
    let boards = usual.boards.as_deref();
    Select {
        database: sql.dbms,
        sql: sql.text,
        boards,
        now_us,
        is_strict: usual.is_strict,
        is_local: usual.is_local,
    }
}

/// The database that is meant where none is named: the only one there is.
pub(super) async fn only_database(field: &Field, boards: Option<&[String]>) -> Result<String, Fault> {
    let mut databases: Vec<String> = Vec::new();
    let mut first_fault = None;
    let standing = field.standing(boards).await?;
    let catalogues = join_all(standing.iter().map(async |standing| {
        let asked = match &standing.hello {
            Ok(_) => standing.board.catalogue().await,
            Err(fault) => Err(fault.clone()),
        };
        asked.or_else(|fault| standing.board.known_catalogue().ok_or(fault))
    }));
    for known in catalogues.await {
        match known {
            Ok(catalogue) => databases.extend(catalogue.databases().into_iter().map(str::to_string)),
            Err(fault) => {
                first_fault.get_or_insert(fault);
            }
        }
    }
    databases.sort_unstable();
    databases.dedup();
    match (databases.as_slice(), first_fault) {
        ([only], _) => Ok(only.clone()),
        ([], Some(fault)) => Err(fault),
        _ => Err(template::missing("database").with("databases", databases)),
    }
}

fn standing(having: Having) -> Vec<Standing> {
    let there = having.boards.into_iter().map(|(board, hello)| Standing { board, hello: Ok(hello) });
    let missing = having.missing.into_iter().map(|(board, fault)| Standing { board, hello: Err(fault) });
    there.chain(missing).collect()
}

/// Now, in microseconds since 1970 UTC.
pub(super) fn now_us() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}
