//! A server that is measured, and the way to it: over pipes or over HTTP, in raw JSON.

use picolake_tests::serving::{Piped, Serving};
use serde_json::{Value, json};
use std::{
    process::Command,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How a client reaches a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Stdio,
    Http,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Stdio => "stdio",
            Way::Http => "HTTP",
        }
    }
}

/// A server and the way to it.
pub(crate) enum Server {
    Pipes(Piped),
    Http(Box<Http>),
}

/// A session over HTTP.
pub(crate) struct Http {
    process: Serving,
    client: reqwest::Client,
    url: String,
    session: String,
    runtime: Runtime,
}

/// What a call came to.
pub(crate) struct Answer {
    pub(crate) took: Duration,
    /// The texts.
    pub(crate) items: Vec<String>,
}

impl Server {
    pub(crate) fn start(way: Way, command: Command) -> Result<Self> {
        match way {
            Way::Stdio => Ok(Self::Pipes(Piped::start_command(command))),
            Way::Http => Self::http(Serving::start_command(command)),
        }
    }

    fn http(process: Serving) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = reqwest::Client::builder().tcp_nodelay(true).build()?;
        let url = process.at("/mcp");
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}});
        let answer = runtime.block_on(post(&client, &url, None, &hello))?;
        let session = answer.headers().get("mcp-session-id").ok_or("no session")?.to_str()?.to_owned();
        runtime.block_on(answer.bytes())?;
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        runtime.block_on(post(&client, &url, Some(&session), &begun))?;
        Ok(Self::Http(Box::new(Http { process, client, url, session, runtime })))
    }

    /// One call, until its client has read the answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer> {
        let begun = Instant::now();
        let mut answer: Value = match self {
            Server::Pipes(pipes) => {
                pipes.call(1, tool, arguments.clone());
                pipes.receive().ok_or("the server ended")?
            }
            Server::Http(http) => {
                let Http { client, url, session, runtime, .. } = &**http;
                let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": tool, "arguments": arguments}});
                let text = runtime
                    .block_on(async { post(client, url, Some(session), &call).await?.text().await })?;
                let mut data = text.lines().filter_map(|line| line.strip_prefix("data: {"));
                serde_json::from_str(&format!("{{{}", data.next_back().ok_or("no data")?))?
            }
        };
        let took = begun.elapsed();
        let result = answer["result"].take();
        let items = result["content"].as_array().ok_or("no content")?;
        let items: Vec<String> =
            items.iter().filter_map(|item| Some(item["text"].as_str()?.to_owned())).collect();
        if result["isError"] == true || items.is_empty() {
            return Err(result.to_string().into());
        }
        Ok(Answer { took, items })
    }

    /// The most memory that it has had so far.
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        match self {
            Server::Pipes(pipes) => pipes.peak_bytes(),
            Server::Http(http) => http.process.peak_bytes(),
        }
    }
}

async fn post(
    client: &reqwest::Client,
    url: &str,
    session: Option<&str>,
    message: &Value,
) -> reqwest::Result<reqwest::Response> {
    let mut request = client.post(url).header("accept", "application/json, text/event-stream").json(message);
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    request.send().await
}
