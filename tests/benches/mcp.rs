//! What a call costs an MCP client, beside a bare rmcp server and the official Python SDK in the same run:
//! `cargo xtask bench mcp`.
#![allow(clippy::print_stdout, reason = "a bench prints its table")]

#[path = "mcp/bare.rs"]
mod bare;
#[path = "mcp/rows.rs"]
mod rows;
#[path = "mcp/server.rs"]
mod server;
#[path = "mcp/whole.rs"]
mod whole;

use picolake_tests::{
    clients::{python, source},
    figures::{Aim, Figure, report},
    serving::Piped,
    sim_process::{config_with, serve_command},
};
use rows::{Pages, ROWS_FEW, ROWS_MANY};
use serde_json::{Value, json};
use server::{Result, Server, Way};
use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// Rows that the simulated board begins with: more than are read.
const BOARD_ROWS: u32 = 20_000;
/// Calls before the first that counts, of each case.
const WARM_UP: usize = 20;
/// Starts of each server.
const STARTS: usize = 7;
/// How much `list_databases` may take above the floor.
const ABOVE_FLOOR_MS: f64 = 0.2;
/// How often rows may take what the same bytes take from a bare server.
const ROWS_RATIO: f64 = 2.0;
/// How much faster than the Python server the small answer, and the many rows, should be.
const PYTHON_RATIO_FEW: f64 = 4.0;
const PYTHON_RATIO_MANY: f64 = 1.5;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// A tool that asks no board.
    Nothing,
    Databases,
    Few,
    /// A page that is as large as an answer may be.
    Cap,
    /// All rows, page by page.
    Many,
}

impl Case {
    const ALL: [Case; 5] = [Case::Nothing, Case::Databases, Case::Few, Case::Cap, Case::Many];

    fn name(self) -> String {
        match self {
            Case::Nothing => "no-op".into(),
            Case::Databases => "list_databases".into(),
            Case::Few => format!("{ROWS_FEW} rows"),
            Case::Cap => "a page at the cap".into(),
            Case::Many => format!("{ROWS_MANY} rows by cursor"),
        }
    }

    /// How often it is measured.
    fn calls(self) -> usize {
        match self {
            Case::Nothing | Case::Databases | Case::Few => 600,
            Case::Cap => 300,
            Case::Many => 31,
        }
    }
}

/// The servers, each with the same rows.
struct Servers {
    ours: Server,
    bare: Server,
    python: Option<Server>,
    pages: Pages,
}

/// How each server is started.
struct Commands<'f> {
    folder: &'f Path,
    texts: PathBuf,
    database: PathBuf,
    python: Option<PathBuf>,
}

impl Commands<'_> {
    fn ours(&self, way: Way) -> Command {
        let config = config_with(self.folder, &format!("sim:big?rows={BOARD_ROWS}"));
        match way {
            Way::Stdio => serve_command(self.folder, &config, &["--stdio"]),
            Way::Http => serve_command(self.folder, &config, &["--http", "127.0.0.1:0"]),
        }
    }

    fn bare(&self, way: Way) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(bare::WAY_VARIABLE, way.name()).env(bare::TEXTS_VARIABLE, &self.texts);
        Ok(command)
    }

    fn python(&self, way: Way) -> Option<Command> {
        let mut command = Command::new(self.python.as_ref()?);
        command.arg(source("python_server.py")).arg(way.name().to_lowercase()).arg(&self.database);
        Some(command)
    }
}

impl Servers {
    fn start(commands: &Commands<'_>, way: Way) -> Result<Self> {
        let mut ours = Server::start(way, commands.ours(way))?;
        let pages = Pages::read(&mut ours)?;
        pages.write(&commands.texts, &commands.database)?;
        let bare = Server::start(way, commands.bare(way)?)?;
        let python = commands.python(way).map(|command| Server::start(way, command)).transpose()?;
        let mut servers = Self { ours, bare, python, pages };
        servers.check()?;
        Ok(servers)
    }

    /// All give the same rows, to the byte.
    fn check(&mut self) -> Result<()> {
        let Self { bare, python, pages, .. } = self;
        for (nth, items) in pages.items.iter().enumerate() {
            if bare.call("text", &json!({"page": nth}))?.items != *items {
                return Err("the bare server has other texts".into());
            }
        }
        let Some(python) = python else { return Ok(()) };
        let mut after = json!(-1);
        for (items, rows) in pages.items.iter().zip(&pages.rows).skip(1) {
            let answer = python.call("query", &json!({"limit": rows, "after": after}))?;
            if answer.items[0] != items[0] {
                return Err("the Python server has other rows".into());
            }
            after = next_row(&answer.items)?;
        }
        Ok(())
    }

    fn ours(&mut self, case: Case) -> Result<Duration> {
        let ours = &mut self.ours;
        let none = json!({});
        match case {
            Case::Nothing => Ok(ours.call("server_info", &none)?.took),
            Case::Databases => Ok(ours.call("list_databases", &none)?.took),
            Case::Few => Ok(ours.call("query", &rows::few())?.took),
            Case::Cap => Ok(ours.call("query", &rows::cap())?.took),
            Case::Many => {
                let mut answer = ours.call("query", &rows::cap())?;
                let mut took = answer.took;
                while let Some(cursor) = rows::next_cursor(&answer.items)? {
                    answer = ours.call("query", &rows::behind(&cursor))?;
                    took += answer.took;
                }
                Ok(took)
            }
        }
    }

    fn bare(&mut self, case: Case) -> Result<Duration> {
        let bare = &mut self.bare;
        let mut text = |page: usize| Ok(bare.call("text", &json!({"page": page}))?.took);
        match case {
            Case::Nothing | Case::Databases => Ok(bare.call("nothing", &json!({}))?.took),
            Case::Few => text(0),
            Case::Cap => text(1),
            Case::Many => (1..self.pages.items.len()).map(text).sum(),
        }
    }

    fn python(&mut self, case: Case) -> Result<Option<Duration>> {
        let Some(python) = &mut self.python else { return Ok(None) };
        let mut query =
            |limit: usize, after: &Value| python.call("query", &json!({"limit": limit, "after": after}));
        let first = json!(-1);
        Ok(Some(match case {
            Case::Nothing | Case::Databases => python.call("list_databases", &json!({}))?.took,
            Case::Few => query(self.pages.rows[0], &first)?.took,
            Case::Cap => query(self.pages.rows[1], &first)?.took,
            Case::Many => {
                let (mut took, mut after) = (Duration::ZERO, first);
                for rows in &self.pages.rows[1..] {
                    let answer = query(*rows, &after)?;
                    took += answer.took;
                    after = next_row(&answer.items)?;
                }
                took
            }
        }))
    }
}

/// Where the Python server's answer goes on.
fn next_row(items: &[String]) -> Result<Value> {
    let notes: Value = serde_json::from_str(items.get(1).ok_or("no notes")?)?;
    Ok(notes["next"].clone())
}

/// Times of one server in milliseconds.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn push(&mut self, took: Duration) {
        self.0.push(took.as_secs_f64() * 1e3);
    }

    /// The middle, and what one in a hundred exceeds.
    fn quantiles(&mut self) -> (f64, f64) {
        self.0.sort_by(f64::total_cmp);
        (self.0[self.0.len() / 2], self.0[self.0.len() * 99 / 100])
    }
}

fn main() -> Result<()> {
    if let Ok(way) = std::env::var(bare::WAY_VARIABLE) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        return runtime.block_on(bare::serve(&way));
    }
    let python = python().map_err(|why| println!("without the Python server: {why}")).ok();
    let folder = tempfile::tempdir()?;
    let (texts, database) = (folder.path().join("texts.json"), folder.path().join("rows.db"));
    let commands = Commands { folder: folder.path(), texts, database, python };
    let mut figures = Vec::new();
    for way in [Way::Stdio, Way::Http] {
        let mut servers = Servers::start(&commands, way)?;
        for case in Case::ALL {
            figures.extend(compared(way, case, &mut servers)?);
        }
        figures.extend(memory(way, &servers));
    }
    figures.extend(starts(&commands)?);
    figures.extend(whole::measured()?);
    report("mcp", &figures)
}

/// One case on every server, call by call in turn, so that what else the machine does falls on all alike.
fn compared(way: Way, case: Case, servers: &mut Servers) -> Result<Vec<Figure>> {
    let (mut ours, mut bare, mut python) = (Times::default(), Times::default(), Times::default());
    let warm_up = WARM_UP.min(case.calls());
    for nth in 0..warm_up + case.calls() {
        // By turns: who comes behind the slowest finds the machine still at work for it.
        let (our_time, bare_time) = if nth % 2 == 0 {
            let our_time = servers.ours(case)?;
            (our_time, servers.bare(case)?)
        } else {
            let bare_time = servers.bare(case)?;
            (servers.ours(case)?, bare_time)
        };
        let python_time = servers.python(case)?;
        if nth >= warm_up {
            ours.push(our_time);
            bare.push(bare_time);
            python_time.into_iter().for_each(|took| python.push(took));
        }
    }
    let name = |what: &str| format!("{}, {}{what}", way.name(), case.name());
    let mut figures = Vec::new();
    let mut p50s = Vec::new();
    for (who, times) in [("", &mut ours), (", bare rmcp", &mut bare), (", Python", &mut python)] {
        if times.0.is_empty() {
            continue;
        }
        let (p50, p99) = times.quantiles();
        figures.push(Figure::new(name(&format!("{who}, p50")), p50, "ms"));
        figures.push(Figure::new(name(&format!("{who}, p99")), p99, "ms"));
        p50s.push(p50);
    }
    match case {
        Case::Nothing => {}
        Case::Databases => {
            let above = Figure::new(name(": above bare rmcp"), p50s[0] - p50s[1], "ms");
            figures.push(above.aim(Aim::AtMost(ABOVE_FLOOR_MS)));
        }
        Case::Few | Case::Cap | Case::Many => {
            let ratio = Figure::new(name(": to the same bytes, bare"), p50s[0] / p50s[1], "times");
            figures.push(ratio.aim(Aim::AtMost(ROWS_RATIO)));
        }
    }
    if let Some(python) = p50s.get(2) {
        let faster = Figure::new(name(": faster than Python"), python / p50s[0], "times");
        figures.push(match case {
            Case::Few => faster.aim(Aim::AtLeast(PYTHON_RATIO_FEW)),
            Case::Many => faster.aim(Aim::AtLeast(PYTHON_RATIO_MANY)),
            _ => faster,
        });
    }
    Ok(figures)
}

/// The most memory that each server had, after all cases.
#[allow(clippy::cast_precision_loss, reason = "no machine has so much memory")]
fn memory(way: Way, servers: &Servers) -> Vec<Figure> {
    let named = [
        ("", Some(&servers.ours)),
        (", bare rmcp", Some(&servers.bare)),
        (", Python", servers.python.as_ref()),
    ];
    let peak = |(who, server): (&str, Option<&Server>)| {
        let bytes = server?.peak_bytes()?;
        Some(Figure::new(format!("{}, memory{who}", way.name()), bytes as f64 / 1e6, "MB"))
    };
    named.into_iter().filter_map(peak).collect()
}

/// From a program's start to its list of tools, over pipes.
fn starts(commands: &Commands<'_>) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let (mut ours, mut bare, mut python) = (Times::default(), Times::default(), Times::default());
    for _ in 0..STARTS {
        ours.push(started(commands.ours(Way::Stdio))?);
        bare.push(started(commands.bare(Way::Stdio)?)?);
        if let Some(command) = commands.python(Way::Stdio) {
            python.push(started(command)?);
        }
    }
    for (who, mut times) in [("", ours), (", bare rmcp", bare), (", Python", python)] {
        if !times.0.is_empty() {
            figures.push(Figure::new(format!("start to tools/list{who}, p50"), times.quantiles().0, "ms"));
        }
    }
    Ok(figures)
}

fn started(command: Command) -> Result<Duration> {
    let begun = Instant::now();
    let mut server = Piped::start_command(command);
    server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let answer = server.receive().ok_or("the server ended")?;
    let took = begun.elapsed();
    if answer["result"]["tools"].is_array() { Ok(took) } else { Err(answer.to_string().into()) }
}
