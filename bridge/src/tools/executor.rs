//! A call from its name to its answer: look up, apply defaults, check, build, route, run. Has no tool's name in it.

use super::{
    Tools,
    arguments::{self, Usual},
    definition::{Definition, Destination, Work},
    internal, listing,
    paging::{self, Ready, View},
    processes, sql, template,
};
use crate::{
    fault::{Fault, quoted},
    field::{Field, Having, Standing},
    query::{Context, Statement},
};
use serde_json::{Map, Value};
use shared::command::{self, Command, Sql, nearest};
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
    if definition.command.destination == Destination::Local {
        let message = "this tool runs on the gateway itself, which keeps no rows yet";
        return Err(Fault::new("local_not_available", message, "use a tool that asks the boards"));
    }
    if let Some(cursor) = &usual.cursor {
        return Box::pin(paging::next(tools, cursor, View::new(&usual, true), context)).await;
    }
    if definition.command.builds_sql {
        let built = sql::build(&arguments)?;
        arguments.insert(template::SQL.into(), built.into());
        if usual.database.is_none() {
            let only = only_database(&tools.inner.field, usual.boards.as_deref()).await?;
            arguments.insert("database".into(), only.as_str().into());
            usual.database = Some(only);
        }
    }
    match &definition.command.work {
        Work::Internal(internal) => {
            Box::pin(internal::run(tools, *internal, &arguments, usual, context)).await
        }
        Work::Command(template) => {
            let text = template.fill(&arguments)?;
            Box::pin(run_command(tools, &definition, &text, usual, context)).await
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

/// Routes a line of the command language and runs it.
async fn run_command(
    tools: &Tools,
    definition: &Definition,
    text: &str,
    mut usual: Usual,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    let parsed =
        command::parse(text).map_err(|failure| Fault::from(failure).with("command", quoted(text)))?;
    let (text, parsed) = match parsed {
        Command::RunClient(run) => {
            let named: Vec<String> = run.boards().map(str::to_string).collect();
            if !named.is_empty() {
                usual.boards = Some(named);
            }
            (run.command, command::parse(run.command)?)
        }
        parsed => (text, parsed),
    };
    let field = &tools.inner.field;
    match &parsed {
        Command::Sql(sql) => Box::pin(query(tools, sql, usual, context)).await,
        Command::GetJobs(_) => Ok(vec![tools.inner.jobs.list().to_string()]),
        Command::GetColumns { dbms, table, .. } => {
            let having = field.boards_with(dbms, table, usual.boards.as_deref()).await?;
            Box::pin(listing::run(standing(having), text, &parsed, &usual, context)).await
        }
        Command::ExplainSql(sql) => {
            let table = Statement::parse(sql.text, now_us())?.table;
            let having = field.boards_with(sql.dbms, &table, usual.boards.as_deref()).await?;
            Box::pin(listing::run(standing(having), text, &parsed, &usual, context)).await
        }
        other if other.is_write() || !other.is_repeatable() => {
            let board = writable(tools, definition, &usual).await?;
            let written = Box::pin(listing::run(vec![board.clone()], text, &parsed, &usual, context)).await;
            if matches!(other, Command::CreateTable(_)) {
                board.board.forget_catalogue();
            }
            written
        }
        Command::GetProcesses(_) => {
            let boards = field.standing(usual.boards.as_deref()).await?;
            let own = tools.archive().map(processes::of_archive).unwrap_or_default();
            Box::pin(listing::run_with(boards, text, &parsed, &usual, context, own)).await
        }
        _ => {
            let boards = field.standing(usual.boards.as_deref()).await?;
            Box::pin(listing::run(boards, text, &parsed, &usual, context)).await
        }
    }
}

/// The one board that a write is for, if it may be written to.
async fn writable(tools: &Tools, definition: &Definition, usual: &Usual) -> Result<Standing, Fault> {
    if definition.annotations.read_only {
        let message = format!("`{}` only reads, and this command changes something", definition.name);
        let action = "use a tool for it; one of your own needs annotations: { read_only: false }";
        return Err(Fault::new("write_refused", message, action));
    }
    let boards = tools.inner.field.standing(usual.boards.as_deref()).await?;
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
    let (statement, having) =
        routed(&tools.inner.field, sql.dbms, sql.text, usual.boards.as_deref(), now_us).await?;
    let database = sql.dbms.to_string();
    let ready = Ready { database, statement, having, now_us, is_strict: usual.is_strict };
    Box::pin(paging::first(tools, ready, view, context)).await
}

/// A SELECT and the boards that it reaches. What groups or sorts over several boards needs one named.
pub(super) async fn routed(
    field: &Field,
    database: &str,
    sql: &str,
    boards: Option<&[String]>,
    now_us: i64,
) -> Result<(Statement, Having), Fault> {
    let statement = Statement::parse(sql, now_us)?;
    let having = field.boards_with(database, &statement.table, boards).await?;
    if statement.needs_one_board() && having.boards.len() + having.missing.len() > 1 {
        let there = having.boards.iter().map(|(board, _)| board.name.as_str());
        let names: Vec<&str> =
            there.chain(having.missing.iter().map(|(board, _)| board.name.as_str())).collect();
        let message =
            format!("{} boards have this table, and rows of one are grouped or sorted", names.len());
        let action = format!("name one in `boards`, such as [\"{}\"], and combine the answers", names[0]);
        return Err(Fault::new("needs_board", message, action).with("boards", names));
    }
    Ok((statement, having))
}

/// The database that is meant where none is named: the only one there is.
pub(super) async fn only_database(field: &Field, boards: Option<&[String]>) -> Result<String, Fault> {
    let mut databases: Vec<String> = Vec::new();
    let mut first_fault = None;
    for standing in field.standing(boards).await? {
        let asked = match standing.hello {
            Ok(_) => standing.board.catalogue().await,
            Err(fault) => Err(fault),
        };
        let known = asked.or_else(|fault| standing.board.known_catalogue().ok_or(fault));
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
