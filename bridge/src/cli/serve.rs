//! `picolake serve`: boards as MCP tools, over standard input and output or over HTTP.

use super::gateway::{self, Estate};
use super::stop::Stop;
use crate::{
    config::{Config, FILE_NAME},
    mcp::{
        http::{self, Options, Token},
        pipes, serve_stdio,
    },
    owner::{Elected, Host, OwnerError, relay},
    tools,
};
use anyhow::Context as _;
use clap::Args;
use std::{
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// How long HTTP waits for an owner that may be a short command.
const OWNER_PATIENCE: Duration = Duration::from_secs(3);
/// The pause between two looks at it.
const OWNER_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Speak MCP on standard input and output, as Claude Desktop starts it
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// Add the simulated field: three boards, no hardware needed
    #[arg(long)]
    demo: bool,
    /// Add the simulated field only where no configuration is named and none lists a board
    #[arg(long)]
    demo_unless_configured: bool,
    /// Serve HTTP here: /mcp, /sse, /query, /healthz, /metrics
    #[arg(long, value_name = "ADDR", default_value = http::ADDRESS_DEFAULT)]
    http: SocketAddr,
    /// A file with the token that HTTP clients must send; the variable PICOLAKE_TOKEN does the same
    #[arg(long, value_name = "FILE", conflicts_with = "stdio")]
    token_file: Option<PathBuf>,
    /// A name besides localhost and its addresses by which HTTP clients reach this machine
    #[arg(long, value_name = "NAME", conflicts_with = "stdio")]
    allow_host: Vec<String>,
    /// A file that adds, replaces or hides tools [default: tools.yaml beside the configuration, if it is there]
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Where the tool `export` writes [default: picolake/exports in the user's data folder]
    #[arg(long, value_name = "FOLDER")]
    export_folder: Option<PathBuf>,
}

pub(crate) async fn run(config: &Config, named: Option<&Path>, args: ServeArgs) -> anyhow::Result<()> {
    let is_configured = named.is_some() || !config.boards.is_empty();
    let is_demo = args.demo || args.demo_unless_configured && !is_configured;
    if config.boards.is_empty() && !is_demo {
        tracing::warn!("there are no boards: list them in {FILE_NAME}, or add simulated ones with --demo");
    }
    let given = tools::Options {
        user_file: args.tools.clone(),
        export_folder: args.export_folder.clone(),
        ..tools::Options::default()
    };
    let estate = Estate::new(config, named, is_demo, given)?.with_archive();
    let mut stop = Stop::new()?;
    let mut elected = estate.elect().await?;
    let begun = Instant::now();
    while !args.stdio && matches!(elected, Elected::Guest(_)) && begun.elapsed() < OWNER_PATIENCE {
        drop(elected); // it may be a command that is about to end
        tokio::time::sleep(OWNER_PAUSE).await;
        elected = estate.elect().await?;
    }
    match (elected, args.stdio) {
        (Elected::Guest(guest), true) => {
            let elected = Elected::Guest(guest);
            stop.then_at_once(|first| async { Ok(carry(&estate, elected, first).await?) }).await
        }
        (Elected::Guest(guest), false) => anyhow::bail!(
            "another picolake (process {}) owns these boards, and HTTP is served by their owner; stop it first, or \
             use `picolake serve --stdio`, which shares them",
            guest.pid
        ),
        (Elected::Owner(lock), true) => {
            let host = estate.begin(lock)?;
            let server = host.server().for_session(CancellationToken::new());
            let served = stop.then_at_once(|first| async { Ok(serve_stdio(server, first).await?) }).await;
            gateway::end(host).await;
            served
        }
        (Elected::Owner(lock), false) => {
            let host = estate.begin(lock)?;
            let served = serve_http(&host, args, &mut stop).await;
            gateway::end(host).await;
            served
        }
    }
}

/// Carries a client's lines to the owner of the boards, whoever that is at the time.
async fn carry(
    estate: &Estate,
    elected: Elected,
    stopped: impl Future<Output = ()>,
) -> Result<(), OwnerError> {
    let (input, output) = pipes();
    let begin = |lock| estate.begin(lock);
    relay(input, output, &estate.place, elected, begin, stopped).await
}

async fn serve_http(host: &Host, args: ServeArgs, stop: &mut Stop) -> anyhow::Result<()> {
    let token = Token::find(args.token_file.as_deref())?;
    let has_token = token.is_some();
    let options = Options { address: args.http, token, hosts: args.allow_host };
    let listening = http::listen(host.server().clone(), options).await?;
    let address = listening.address().context("the listener has no address")?;
    let token = if has_token { "; clients send Authorization: Bearer TOKEN" } else { "" };
    // Whoever started this may not care to read it: that is no reason to stop.
    let _ = writeln!(
        std::io::stdout(),
        "MCP on http://{address}/mcp (older clients: http://{address}/sse){token}; Ctrl-C stops it"
    );
    stop.then_at_once(|first| async { Ok(listening.serve(first).await?) }).await
}

/// Waits until somebody wants this program to end: Ctrl-C, or what a service manager sends.
pub(crate) async fn stopped() {
    let waited = async { Stop::new()?.signal().await };
    if let Err(error) = waited.await {
        tracing::warn!(%error, "nobody can end this by a signal");
        std::future::pending::<()>().await;
    }
}
