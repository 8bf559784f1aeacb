//! `picolake query SELECT`: the whole answer of every board that has the table, batch by batch.

use super::gateway::{Gateway, print};
use crate::{config::Config, owner::Wish};
use clap::{Args, ValueEnum};
use shared::command::Format;
use std::path::Path;

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
    /// Add the simulated field: three boards, no hardware needed
    #[arg(long)]
    demo: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Written {
    Table,
    Json,
    Mcp,
}

pub(crate) async fn run(config: &Config, named: Option<&Path>, args: QueryArgs) -> anyhow::Result<()> {
    let gateway = Gateway::to(config, named, args.demo)?;
    let format = match args.format {
        Written::Table => Format::Table,
        Written::Json => Format::Json,
        Written::Mcp => Format::Mcp,
    };
    let boards = (!args.boards.is_empty()).then_some(args.boards);
    let wish = Wish::Query { sql: args.sql, database: args.database, boards, format: format.into() };
    let printed = print(&gateway, wish).await;
    gateway.end().await;
    printed
}
