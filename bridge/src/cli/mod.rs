//! What a person types: arguments → one of these jobs.
#![allow(clippy::print_stdout, reason = "stdout is where a command line's answer goes")]

mod archive;
mod boards;
mod call;
mod clients;
mod completions;
mod demo;
mod doctor;
mod gateway;
mod install;
mod measure;
mod query;
mod render;
mod run;
mod serve;
mod shell;
mod sim;
mod stop;

use crate::{
    board::Session,
    config::{self, BoardConfig},
};
use clap::{Args, Parser, Subcommand};
use std::{path::PathBuf, time::Duration};

/// How long a command waits for a board to come up: the hellos of a link that gives no answer, and a little.
pub(crate) const UP_TIMEOUT: Duration = Duration::from_secs(10);

/// Ask microcontrollers questions.
#[derive(Debug, Parser)]
#[command(
    name = "picolake",
    version,
    about,
    after_help = "One process owns the boards of a configuration; others ask it, so that several can run at once.\n\nTry it without hardware:  picolake demo"
)]
pub struct Cli {
    /// The file that names the boards; the variable PICOLAKE_CONFIG does the same [default: picolake.yaml, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    job: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Run a simulated field of three boards, no hardware needed
    #[command(after_help = "Example:  picolake demo")]
    Demo,
    /// Run one simulated board that a bridge can reach over TCP or a pseudo-terminal
    #[command(
        after_help = "Examples:\n  picolake sim --tcp 127.0.0.1:7000\n  picolake sim --pty\n  picolake sim --tcp 127.0.0.1:7000 --rows 1000000"
    )]
    Sim(sim::SimArgs),
    /// List the boards: state, link, version, uptime, round-trip time
    #[command(after_help = "Example:  picolake boards\n          picolake boards tcp:192.168.1.20:7000")]
    Boards {
        /// Boards by name or link [default: all of the configuration]
        boards: Vec<String>,
    },
    /// Run one command on a board and print the answer
    #[command(
        after_help = "A board of the configuration is only read unless it says `writable: true` there.\n\nExamples:\n  picolake run pump \"get status\"\n  picolake run tcp:192.168.1.20:7000 \"get version where format = json\"\n  picolake run sim: help"
    )]
    Run(run::RunArgs),
    /// Run a SELECT on every board that has the table
    #[command(
        after_help = "Examples:\n  picolake query \"SELECT timestamp, temperature FROM environment LIMIT 5\" --demo\n  picolake query \"SELECT state, count(*) FROM power GROUP BY state\" --board pump --format json"
    )]
    Query(query::QueryArgs),
    /// Call tools as an MCP client would, from a list of calls
    #[command(
        after_help = "Example:\n  echo '[{\"name\": \"list_databases\"}, {\"name\": \"query\", \"arguments\": {\"table\": \"power\", \"limit\": 3}}]' | picolake call - --demo"
    )]
    Call(call::CallArgs),
    /// Type commands and SELECTs to the boards, one after the other
    #[command(
        after_help = "At the prompt:\n  get status                     any command; help lists them\n  use demo                       the database of what follows\n  SELECT temp FROM environment   runs on that database; the answer is whole\n  \\b pump   \\b                   only this board, all boards\n  \\d   \\d TABLE                  tables, columns of a table\n  \\f json                        format of answers: table, json, mcp\n  get jobs                       exports of every client of these boards\n  \\q                             quit\n\nExamples:\n  picolake shell --demo\n  picolake shell pump\n  picolake shell sim: --database demo\n  echo \"get status\" | picolake shell sim:"
    )]
    Shell(shell::ShellArgs),
    /// Stream test rows from a board and report what its link can do
    #[command(after_help = "Example:  picolake measure serial:/dev/ttyACM0?baud=115200 --rows 20000")]
    Measure(measure::MeasureArgs),
    /// Serve the boards to MCP clients: over standard input and output, or over HTTP
    #[command(
        after_help = "Several `serve --stdio` of one configuration share its boards; HTTP is served by the process that owns them.\n\nExamples:\n  picolake serve --stdio --demo                   simulated boards, for a client that starts this program\n  picolake serve                                  the boards of picolake.yaml on http://127.0.0.1:50051/mcp\n  picolake serve --http 0.0.0.0:50051 --token-file token.txt   for other machines, too"
    )]
    Serve(serve::ServeArgs),
    /// Write the entry that makes an MCP client start this program
    #[command(
        after_help = "What is in the client's file stays, and a backup is left beside it.\n\nExamples:\n  picolake install claude-desktop --demo\n  picolake install claude-code\n  picolake install cursor --print"
    )]
    Install(install::InstallArgs),
    /// Check configuration, boards, clocks, archive and client set-up, and say what to do
    #[command(after_help = "Example:  picolake doctor")]
    Doctor,
    /// Look at the archive: the boards' rows on this machine
    #[command(subcommand)]
    Archive(archive::ArchiveJob),
    /// Check the configuration
    #[command(subcommand)]
    Config(ConfigJob),
    /// Print a script that makes a shell complete this program's command line
    #[command(
        after_help = "Examples:\n  picolake completions bash > ~/.local/share/bash-completion/completions/picolake\n  picolake completions fish > ~/.config/fish/completions/picolake.fish"
    )]
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigJob {
    /// Read the file and say what is in it, or what is wrong with it
    Check,
}

/// Which board.
#[derive(Debug, Args)]
pub(crate) struct BoardArg {
    /// A name from the configuration, or a link: serial:DEVICE?baud=N, tcp:HOST:PORT, unix:PATH, sim:
    board: String,
}

/// Runs what was asked for.
pub fn run(cli: Cli) -> anyhow::Result<()> {
    if let Job::Completions { shell } = cli.job {
        return completions::run(shell); // needs no configuration, and none that is wrong keeps it from working
    }
    let named = config::named(cli.config);
    let named = named.as_deref();
    let config = match (config::load(named), &cli.job) {
        (Err(error), Job::Doctor) => return doctor::broken_config(&error),
        (config, _) => config?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(async {
        match cli.job {
            Job::Demo => demo::run().await,
            Job::Sim(args) => sim::run(args).await,
            Job::Boards { boards } => boards::run(&config, named, &boards).await,
            Job::Run(args) => run::run(&config, named, args).await,
            Job::Query(args) => query::run(&config, named, args).await,
            Job::Call(args) => call::run(&config, named, args).await,
            Job::Shell(args) => shell::run(&config, named, args).await,
            Job::Measure(args) => measure::run(&config, named, args).await,
            Job::Serve(args) => serve::run(&config, named, args).await,
            Job::Install(args) => install::run(named, &args),
            Job::Doctor => doctor::run(&config, named).await,
            Job::Archive(job) => archive::run(&config, &job),
            Job::Completions { shell } => completions::run(shell),
            Job::Config(ConfigJob::Check) => {
                println!("{} boards, no faults", config.boards.len());
                for BoardConfig { name, link, .. } in &config.boards {
                    println!("  {name}  {link}");
                }
                Ok(())
            }
        }
    });
    runtime.shutdown_background(); // a terminal that is being read must not keep the program
    done
}

/// Begins a session and waits until the board answers.
pub(crate) async fn session(board: &BoardConfig) -> anyhow::Result<Session> {
    let session = Session::connect(board.link.clone(), rand::random());
    session.wait_up(UP_TIMEOUT).await?;
    Ok(session)
}
