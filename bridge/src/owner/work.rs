//! What a wish comes to: the same code for a guest over the socket and for a person at the owner's own terminal.

use super::{
    Wish,
    wire::{End, Refusal, Reply},
};
use crate::{
    fault::Fault,
    query::OwnedColumn,
    tools::{Answered, Context, RowStream, Tools},
};
use serde_json::Value;
use shared::{
    command::Format,
    format::{RowsFormat, Shape, Statistics},
    schema::Column,
    value::ColumnType,
};
use std::{
    collections::BTreeSet,
    io,
    time::{Duration, Instant},
};

/// How long a whole answer may take: somebody sits there and can press Ctrl-C.
const QUERY_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Names for completion at most.
const NAMES_MAX: usize = 4096;

/// Where replies go, as fast as they are taken there.
pub(crate) trait Sink: Send {
    /// Takes one. An error says that nobody wants more.
    fn reply(&mut self, reply: Reply) -> impl Future<Output = io::Result<()>> + Send;
}

/// Why a wish was not fulfilled.
#[derive(Debug)]
enum Unfulfilled {
    /// Whoever wished is told.
    Fault(Fault),
    /// There is nobody to tell.
    Gone(io::Error),
}

impl From<Fault> for Unfulfilled {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for Unfulfilled {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

impl From<std::fmt::Error> for Unfulfilled {
    fn from(_: std::fmt::Error) -> Self {
        let message = "more different values than can be sorted here";
        Self::Fault(Fault::new("capacity", message, "ask without extract"))
    }
}

/// Fulfils a wish; the last reply is its end or its error. Dropping this cancels what was asked, on the boards too.
pub(crate) async fn answer(tools: &Tools, wish: Wish, sink: &mut impl Sink) -> io::Result<()> {
    let last = match fulfil(tools, wish, sink).await {
        Ok(last) => last,
        Err(Unfulfilled::Fault(fault)) => Reply::Error(fault.into()),
        Err(Unfulfilled::Gone(error)) => return Err(error),
    };
    sink.reply(last).await
}

async fn fulfil(tools: &Tools, wish: Wish, sink: &mut impl Sink) -> Result<Reply, Unfulfilled> {
    let whole = || Context { deadline: tokio::time::Instant::now() + QUERY_TIMEOUT, ..Context::default() };
    let start = Instant::now();
    Ok(match wish {
        Wish::Mcp => Reply::Error(Refusal {
            error: "MCP is not asked for in a reply".into(),
            code: "protocol".into(),
            suggested_action: "wish for something else".into(),
            ..Refusal::default()
        }),
        Wish::Query { sql, database, boards, format } => {
            let rows = tools.stream(database.as_deref(), &sql, boards.as_deref(), whole()).await?;
            write(rows, format.into(), true, start, sink).await?
        }
        Wish::Command { command, boards, format } => {
            match tools.command(&command, boards, format.into(), whole()).await? {
                Answered::Rows { rows, format, statistics } => {
                    write(rows, format, statistics, start, sink).await?
                }
                Answered::Items(items) => told(items, sink).await?,
            }
        }
        Wish::Call { name, arguments } => tools.call(&name, arguments, Context::default()).await.into(),
        Wish::Names => Reply::Names(names(tools).await),
        Wish::Boards { named } => Reply::Boards(tools.field().reports(named.as_deref()).await?),
    })
}

/// Writes each batch as it comes; the first one gives a table its widths.
async fn write(
    mut rows: RowStream,
    format: Format,
    statistics: bool,
    start: Instant,
    sink: &mut impl Sink,
) -> Result<Reply, Unfulfilled> {
    let owned = rows.columns().to_vec();
    let columns: Vec<Column<'_>> = owned.iter().map(OwnedColumn::borrowed).collect();
    let mut writer = RowsFormat::new(Shape::Query { statistics }, format, &columns);
    let mut text = String::new();
    let mut has_begun = false;
    while let Some(batch) = rows.next_batch().await? {
        if !has_begun {
            rows.measure(&batch, |cells| writer.measure(cells))?;
            writer.begin(&mut text)?;
            has_begun = true;
        }
        let mut written = Ok(());
        rows.rows(&batch, |cells| written = written.and_then(|()| writer.row(cells, &mut text)))?;
        written?;
        sink.reply(Reply::Text(std::mem::take(&mut text))).await?;
    }
    if !has_begun {
        writer.begin(&mut text)?;
    }
    let time_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    writer.end(&Statistics { time_us, nodes: rows.boards() }, &mut text)?;
    text.push('\n');
    sink.reply(Reply::Text(text)).await?;
    let has_times = columns.iter().any(|column| column.kind == ColumnType::Timestamp);
    let clock_unset = has_times && !rows.is_clock_set();
    Ok(Reply::End(End { rows_lost: rows.rows_lost(), clock_unset, hint: None }))
}

/// The first item is the answer, the second what is to be said of it.
async fn told(items: Vec<String>, sink: &mut impl Sink) -> Result<Reply, Unfulfilled> {
    let mut items = items.into_iter();
    if let Some(mut text) = items.next().filter(|text| !text.is_empty()) {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        sink.reply(Reply::Text(text)).await?;
    }
    let notes: Value = items.next().and_then(|notes| serde_json::from_str(&notes).ok()).unwrap_or_default();
    let missing = notes["boards"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|board| Some(format!("{}: {}", board["name"].as_str()?, board["missing"].as_str()?)));
    let hints: Vec<String> = notes["hint"].as_str().map(str::to_string).into_iter().chain(missing).collect();
    let hint = (!hints.is_empty()).then(|| hints.join("; "));
    Ok(Reply::End(End { hint, ..End::default() }))
}

/// Every name once, of what is known now.
async fn names(tools: &Tools) -> Vec<String> {
    let mut names = BTreeSet::new();
    let boards = tools.field().boards();
    let catalogues = futures_util::future::join_all(boards.iter().map(|board| board.catalogue())).await;
    for (board, catalogue) in boards.iter().zip(catalogues) {
        names.insert(board.name.clone());
        let Some(catalogue) = catalogue.ok().or_else(|| board.known_catalogue()) else { continue };
        for table in &catalogue.tables {
            names.extend([table.dbms.clone(), table.name.clone()]);
            names.extend(table.columns.iter().map(|column| column.name.clone()));
        }
    }
    names.into_iter().take(NAMES_MAX).collect()
}
