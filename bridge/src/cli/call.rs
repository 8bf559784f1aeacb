//! `picolake call FILE`: a list of tool calls, one after the other, as an MCP client would make them.

use crate::{
    config::Config,
    tools::{Context, Options, Tools},
};
use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{io::Read as _, path::PathBuf};

/// Calls of one list.
const CALLS_MAX: usize = 10_000;

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// A JSON list of {"name": …, "arguments": {…}}, or - for standard input
    file: PathBuf,
    /// A file of tools of your own
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Where the tool `export` writes
    #[arg(long, value_name = "FOLDER")]
    export_folder: Option<PathBuf>,
    /// Let tools write to every board, whatever the configuration says
    #[arg(long)]
    allow_writes: bool,
    /// Call them on a simulated field of three boards
    #[arg(long)]
    demo: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

pub(crate) async fn run(config: &Config, args: CallArgs) -> anyhow::Result<()> {
    let mut text = String::new();
    if args.file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    } else {
        let read = std::fs::read_to_string(&args.file);
        text = read.with_context(|| format!("cannot read {}", args.file.display()))?;
    }
    let expected = "expected a JSON list such as [{\"name\": \"list_databases\", \"arguments\": {}}]";
    let calls: Vec<Call> = serde_json::from_str(&text).context(expected)?;
    anyhow::ensure!(
        calls.len() <= CALLS_MAX,
        "{} calls are more than {CALLS_MAX}; split the list",
        calls.len()
    );
    let options = Options {
        user_file: args.tools,
        export_folder: args.export_folder,
        allow_writes: args.allow_writes,
        ..Options::default()
    };
    let tools = Tools::new(super::field(config, args.demo)?, options)?;
    let (count, mut failed) = (calls.len(), 0);
    for Call { name, arguments } in calls {
        let outcome = tools.call(&name, arguments, Context::default()).await;
        failed += u32::from(outcome.is_error);
        println!("{}", json!({"name": name, "isError": outcome.is_error, "items": outcome.items}));
    }
    anyhow::ensure!(failed == 0, "{failed} of {count} calls failed");
    Ok(())
}
