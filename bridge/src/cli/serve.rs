//! `picolake serve`: boards as MCP tools, over standard input and output or over HTTP.

use crate::{
    archive::Archive,
    config::{Config, FILE_NAME},
    field::Field,
    mcp::{
        Server,
        http::{self, Options, Token},
        serve_stdio,
    },
    tools::{self, Tools},
};
use anyhow::Context as _;
use clap::Args;
use std::{
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

/// The file of tools that is read when no other is named: it is beside the configuration.
const TOOLS_FILE_NAME: &str = "tools.yaml";
/// Where exports go in the user's data folder.
const EXPORT_FOLDER: &str = "picolake/exports";

/// How long the archive may take to be closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Speak MCP on standard input and output, as Claude Desktop starts it
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// Add the simulated field: three boards, no hardware needed
    #[arg(long)]
    demo: bool,
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
    let mut field = Field::of(config);
    let mut archived = field.clone();
    if args.demo {
        field = field.and(&Field::demo().context("the simulated field does not start")?);
        // Simulated boards are others at every start: in the user's own archive they would only pile up.
        if config.archive.named_path().is_some() {
            archived = field.clone();
        }
    }
    if field.boards().is_empty() {
        tracing::warn!("there are no boards: list them in {FILE_NAME}, or add simulated ones with --demo");
    }
    let archive = match config.archive.options() {
        Some(options) if !archived.boards().is_empty() => Some(Archive::start(options, &archived)),
        _ => None,
    };
    let served = serve(args, named, field, archive.clone()).await;
    if let Some(archive) = archive {
        // A disk that is slow must not keep the program: what is not closed is as good after the next start.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, archive.close()).await;
    }
    served
}

async fn serve(
    args: ServeArgs,
    named: Option<&Path>,
    field: Field,
    archive: Option<Archive>,
) -> anyhow::Result<()> {
    let options = tools::Options {
        archive,
        user_file: args.tools.or_else(|| tools_file(named)),
        export_folder: args.export_folder.or_else(|| dirs::data_dir().map(|data| data.join(EXPORT_FOLDER))),
        ..tools::Options::default()
    };
    let server = Server::new(Tools::new(field, options)?);
    if args.stdio {
        return Ok(serve_stdio(server).await?);
    }
    let token = Token::find(args.token_file.as_deref())?;
    let has_token = token.is_some();
    let options = Options { address: args.http, token, hosts: args.allow_host };
    let listening = http::listen(server, options).await?;
    let address = listening.address().context("the listener has no address")?;
    let token = if has_token { "; clients send Authorization: Bearer TOKEN" } else { "" };
    // Whoever started this may not care to read it: that is no reason to stop.
    let _ = writeln!(
        std::io::stdout(),
        "MCP on http://{address}/mcp (older clients: http://{address}/sse){token}; Ctrl-C stops it"
    );
    Ok(listening.serve(stopped()).await?)
}

/// Waits until somebody wants this program to end: Ctrl-C, or what a service manager sends.
async fn stopped() {
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => {
            if let Err(error) = interrupted {
                tracing::warn!(%error, "Ctrl-C cannot be waited for");
                std::future::pending::<()>().await;
            }
        }
        () = terminated => {}
    }
}

/// The user's file of tools, if there is one beside the configuration.
pub(crate) fn tools_file(config: Option<&Path>) -> Option<PathBuf> {
    let file = config.unwrap_or(Path::new(FILE_NAME)).with_file_name(TOOLS_FILE_NAME);
    file.is_file().then_some(file)
}
