//! What a call costs an MCP client, beside a bare rmcp server in the same run: `cargo xtask bench mcp`.
#![allow(clippy::print_stdout, reason = "a bench prints its table")]

#[path = "mcp/bare.rs"]
mod bare;

use picolake_tests::{
    figures::{Aim, Figure, report},
    picolake,
    serving::{Piped, Serving},
};
use serde_json::{Value, json};
use std::{
    error::Error,
    process::Command,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// Calls of each case; they alternate with the floor's.
const CALLS: usize = 1000;
/// Calls before the first that counts.
const WARM_UP: usize = 50;
/// Rows of the answer that is measured.
const ROWS: usize = 100;
/// How much `list_databases` may take above the floor.
const ABOVE_FLOOR_MS: f64 = 0.2;
/// How often rows may take what the same bytes take from a bare server.
const ROWS_RATIO: f64 = 2.0;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A session over HTTP.
struct Http {
    _process: Serving,
    client: reqwest::Client,
    url: String,
    session: String,
    runtime: Runtime,
}

/// A server and the way to it.
enum Server {
    Pipes(Piped),
    Http(Box<Http>),
}

impl Server {
    fn pipes(command: Command) -> Self {
        Self::Pipes(Piped::start_command(command))
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
        Ok(Self::Http(Box::new(Http { _process: process, client, url, session, runtime })))
    }

    /// One call; how long it took, and the text of its first item.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(Duration, String)> {
        let begun = Instant::now();
        let answer: Value = match self {
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
        let text = answer["result"]["content"][0]["text"].as_str().ok_or_else(|| answer.to_string())?;
        if answer["result"]["isError"] == true {
            return Err(text.into());
        }
        Ok((took, text.to_owned()))
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

fn main() -> Result<()> {
    if let Ok(way) = std::env::var(bare::WAY_VARIABLE) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        return runtime.block_on(bare::serve(&way));
    }
    let folder = tempfile::tempdir()?;
    let text_file = folder.path().join("rows.json");
    let mut figures = Vec::new();
    for way in ["stdio", "HTTP"] {
        let mut ours = match way {
            "stdio" => {
                let mut command = picolake();
                command.args(["serve", "--stdio", "--demo"]);
                Server::pipes(command)
            }
            _ => Server::http(Serving::start(&["--demo"]))?,
        };
        std::fs::write(&text_file, rows_when_there(&mut ours)?)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.env(bare::WAY_VARIABLE, way.to_lowercase()).env(bare::TEXT_VARIABLE, &text_file);
        let mut floor = match way {
            "stdio" => Server::pipes(command),
            _ => Server::http(Serving::start_command(command))?,
        };
        figures.extend(compared(way, &mut ours, &mut floor)?);
    }
    report("mcp", &figures)
}

fn rows_arguments() -> Value {
    json!({"database": "demo", "sql": "SELECT * FROM vibration", "limit": ROWS})
}

/// The answer with as many rows as are measured, once the boards have made them.
fn rows_when_there(server: &mut Server) -> Result<String> {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let (_, text) = server.call("query", &rows_arguments())?;
        if serde_json::from_str::<Vec<Value>>(&text)?.len() == ROWS {
            return Ok(text);
        }
        if Instant::now() > patience {
            return Err("the simulated boards do not make enough rows".into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Each case beside the floor's, call by call in turn.
fn compared(way: &str, ours: &mut Server, floor: &mut Server) -> Result<Vec<Figure>> {
    let none = json!({});
    let rows = rows_arguments();
    let mut figures = Vec::new();
    for (tool, arguments, floor_tool) in
        [("server_info", &none, "nothing"), ("list_databases", &none, "nothing"), ("query", &rows, "text")]
    {
        let (mut our_times, mut floor_times) = (Vec::new(), Vec::new());
        for nth in 0..WARM_UP + CALLS {
            let (took, _) = ours.call(tool, arguments)?;
            let (floor_took, _) = floor.call(floor_tool, &none)?;
            if nth >= WARM_UP {
                our_times.push(took.as_secs_f64() * 1e3);
                floor_times.push(floor_took.as_secs_f64() * 1e3);
            }
        }
        let (our_p50, our_p99) = quantiles(&mut our_times);
        let (floor_p50, floor_p99) = quantiles(&mut floor_times);
        let case = if tool == "query" { format!("{ROWS} rows") } else { tool.to_owned() };
        let mut push = |name: String, value, unit, aim: Option<f64>| {
            figures.push(Figure { aim: aim.map(Aim::AtMost), ..Figure::new(name, value, unit) });
        };
        push(format!("{way}, {case}, p50"), our_p50, "ms", None);
        push(format!("{way}, {case}, p99"), our_p99, "ms", None);
        push(format!("{way}, bare rmcp beside {case}, p50"), floor_p50, "ms", None);
        push(format!("{way}, bare rmcp beside {case}, p99"), floor_p99, "ms", None);
        match tool {
            "list_databases" => {
                push(
                    format!("{way}, {case} above bare rmcp"),
                    our_p50 - floor_p50,
                    "ms",
                    Some(ABOVE_FLOOR_MS),
                );
            }
            "query" => {
                push(
                    format!("{way}, {case} to the same bytes"),
                    our_p50 / floor_p50,
                    "times",
                    Some(ROWS_RATIO),
                );
            }
            _ => {}
        }
    }
    Ok(figures)
}

/// The middle, and what one in a hundred exceeds.
fn quantiles(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}
