//! `picolake serve`: boards as MCP tools, over standard input and output or over HTTP.

use crate::{
    board::Session,
    config::{BoardConfig, Config, FILE_NAME},
    link::Address,
    mcp::{
        Server,
        http::{self, Options, Token},
        serve_stdio,
        tools::Tools,
    },
};
use anyhow::Context as _;
use clap::Args;
use std::{io::Write as _, net::SocketAddr, path::PathBuf};

/// The boards of the simulated field.
pub(crate) const DEMO_BOARDS: [&str; 3] = ["greenhouse", "pump", "mill"];

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
}

pub(crate) async fn run(config: &Config, args: ServeArgs) -> anyhow::Result<()> {
    let mut boards = config.boards.clone();
    if args.demo {
        boards.extend(
            DEMO_BOARDS.map(|name| BoardConfig { name: name.into(), link: Address::Sim(name.into()) }),
        );
    }
    if boards.is_empty() {
        tracing::warn!("there are no boards: list them in {FILE_NAME}, or add simulated ones with --demo");
    }
    let sessions =
        boards.into_iter().map(|board| (board.name, Session::connect(board.link, rand::random()))).collect();
    let server = Server::new(Tools::new(sessions));
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
    let stopped = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::warn!(%error, "Ctrl-C cannot be waited for");
            std::future::pending::<()>().await;
        }
    };
    Ok(listening.serve(stopped).await?)
}
