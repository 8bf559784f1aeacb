//! `picolake query SELECT`: the whole answer of every board that has the table, batch by batch.

use super::render::is_reader_gone;
use crate::{
    config::Config,
    query::OwnedColumn,
    tools::{Context, Options, RowStream, Tools},
};
use clap::{Args, ValueEnum};
use shared::{
    command::Format,
    format::{RowsFormat, Shape, Statistics},
    schema::Column,
};
use std::{
    io::Write,
    time::{Duration, Instant},
};

/// How long a query may take: somebody sits there and can press Ctrl-C.
const QUERY_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// The SELECT
    sql: String,
    /// The database [default: the only one there is]
    #[arg(long, short, value_name = "D")]
    database: Option<String>,
    /// Only this board; can be given several times [default: every board that has the table]
    #[arg(long = "board", short, value_name = "NAME")]
    boards: Vec<String>,
    /// How the answer is written
    #[arg(long, short, value_enum, default_value_t = Written::Table)]
    format: Written,
    /// Ask a simulated field of three boards
    #[arg(long)]
    demo: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Written {
    Table,
    Json,
    Mcp,
}

pub(crate) async fn run(config: &Config, args: QueryArgs) -> anyhow::Result<()> {
    let tools = Tools::new(super::field(config, args.demo)?, Options::default())?;
    let boards = (!args.boards.is_empty()).then_some(args.boards.as_slice());
    let context = Context { deadline: tokio::time::Instant::now() + QUERY_TIMEOUT, ..Context::default() };
    let format = match args.format {
        Written::Table => Format::Table,
        Written::Json => Format::Json,
        Written::Mcp => Format::Mcp,
    };
    let start = Instant::now();
    let opened = tools.stream(args.database.as_deref(), &args.sql, boards, context).await;
    let rows = opened.map_err(|fault| anyhow::anyhow!("{fault}; {}", fault.suggested_action))?;
    let mut out = std::io::stdout();
    tokio::select! {
        written = write(rows, format, start, &mut out) => match written {
            Err(error) if is_reader_gone(&error) => Ok(()), // `picolake query … | head` has what it wants
            written => written,
        },
        stopped = tokio::signal::ctrl_c() => {
            stopped?;
            anyhow::bail!("cancelled")
        }
    }
}

/// Writes each batch as it comes; the first one gives a table its widths.
async fn write(
    mut rows: RowStream,
    format: Format,
    start: Instant,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let owned = rows.columns().to_vec();
    let columns: Vec<Column<'_>> = owned.iter().map(OwnedColumn::borrowed).collect();
    let mut writer = RowsFormat::new(Shape::Query { statistics: true }, format, &columns);
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
        out.write_all(text.as_bytes())?;
        out.flush()?;
        text.clear();
    }
    if !has_begun {
        writer.begin(&mut text)?;
    }
    let time_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    writer.end(&Statistics { time_us, nodes: rows.boards() }, &mut text)?;
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()?;
    if rows.rows_lost() > 0 {
        eprintln!("note: {} rows were overwritten on a board before they could be sent", rows.rows_lost());
    }
    Ok(())
}
