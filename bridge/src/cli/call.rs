//! `picolake call FILE`: a list of tool calls, one after the other, as an MCP client would make them.

use super::gateway::{Estate, Gateway};
use crate::{
    config::Config,
    owner::{Reply, Wish},
    tools::Options,
};
use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

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
    /// Add the simulated field: three boards, no hardware needed
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

pub(crate) async fn run(config: &Config, named: Option<&Path>, args: CallArgs) -> anyhow::Result<()> {
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
    let gateway = Gateway::new(Estate::new(config, named, args.demo, options)?);
    let called = make(&gateway, calls).await;
    let settled = settle(&gateway).await;
    gateway.end().await;
    called.and(settled)
}

/// Waits for the jobs that were begun here: they end with this process. Ctrl-C cancels them.
async fn settle(gateway: &Gateway) -> anyhow::Result<()> {
    let Some(jobs) = gateway.jobs().await else { return Ok(()) };
    tokio::select! {
        () = jobs.settled() => {}
        () = super::serve::stopped() => anyhow::bail!("cancelled: the exports that ran have left no file"),
    }
    let list = jobs.list();
    let failed: Vec<String> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter(|job| job["state"] == "failed")
        .map(|job| format!("{}: {}", job["file"], job["failure"]["error"]))
        .collect();
    anyhow::ensure!(failed.is_empty(), "exports have failed: {}", failed.join("; "));
    Ok(())
}

async fn make(gateway: &Gateway, calls: Vec<Call>) -> anyhow::Result<()> {
    let (count, mut failed) = (calls.len(), 0);
    for Call { name, arguments } in calls {
        let called = gateway.get(Wish::Call { name: name.clone(), arguments }).await?;
        let (items, is_error) = match called {
            Reply::Outcome { items, is_error } => (items, is_error),
            Reply::Error(refusal) => anyhow::bail!("{refusal}"),
            other => anyhow::bail!("protocol: a call was answered with {other:?}"),
        };
        failed += u32::from(is_error);
        println!("{}", json!({"name": name, "isError": is_error, "items": items}));
    }
    anyhow::ensure!(failed == 0, "{failed} of {count} calls failed");
    Ok(())
}
