//! `cargo xtask JOB`: the few jobs that need more than cargo. Here: arguments, dispatch, exit code.
#![allow(
    clippy::print_stdout,
    reason = "a job's report is for the terminal; no protocol runs on this stdout"
)]

mod bench;
mod ci;
mod dist;
mod elf;
mod image;
mod relay;
mod setup;
mod size;
mod symbol_name;
mod tally;
mod test;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use tally::Tally;
use workspace::Workspace;

/// The jobs of this repository that need more than cargo.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    /// Make this machine ready: the Rust target of the firmware, and QEMU.
    #[command(after_help = "Example:\n  cargo xtask setup")]
    Setup,
    /// Build the firmware image of the QEMU board and print its path.
    #[command(after_help = "Example:\n  cargo xtask build")]
    Build,
    /// Set up, build every image, check sizes, run every test; ends with `N passed, M failed, K skipped`.
    #[command(after_help = "Examples:\n  cargo xtask test\n  cargo xtask test -- wire --nocapture")]
    Test {
        /// Given to each test program: a filter on test names and its options.
        #[arg(last = true)]
        filter: Vec<String>,
    },
    /// Run all seeded cases of the wire and end-to-end tests, optimised; takes long.
    #[command(
        after_help = "Examples:\n  cargo xtask soak\n  cargo xtask soak -- a_stream_over_a_damaged_link"
    )]
    Soak {
        /// Given to each test program: a filter on test names and its options.
        #[arg(last = true)]
        filter: Vec<String>,
    },
    /// Print flash and RAM of the firmware image; fails when it is over a budget.
    #[command(after_help = "Example:\n  cargo xtask size")]
    Size,
    /// Run one bench, or all: prints a table, writes target/bench/NAME.json, says which aims were missed.
    #[command(after_help = "Examples:\n  cargo xtask bench link\n  cargo xtask bench all --strict")]
    Bench {
        /// The bench's name, or `all`.
        #[arg(value_parser = bench::names())]
        name: String,
        /// Fail when an aim is missed.
        #[arg(long)]
        strict: bool,
    },
    /// Pack what is given to others into target/dist; prints the file's path.
    #[command(subcommand)]
    Dist(dist::Package),
    /// Check formatting and lints, then do what `test` does.
    #[command(after_help = "Example:\n  cargo xtask ci")]
    Ci,
}

fn main() -> ExitCode {
    let workspace = Workspace::locate();
    match Arguments::parse().job {
        Job::Setup => close(setup::run(&workspace)),
        Job::Build => close(image::build(&workspace, &[]).map(|elf| println!("{}", elf.display()))),
        Job::Size => close(size::run(&workspace)),
        Job::Bench { name, strict } => close(bench::run(&workspace, &name, strict)),
        Job::Dist(package) => {
            close(dist::run(&workspace, &package).map(|file| println!("{}", file.display())))
        }
        Job::Test { filter } => close_counted(|tally| test::run(&workspace, &filter, tally)),
        Job::Soak { filter } => close_counted(|tally| test::soak(&workspace, &filter, tally)),
        Job::Ci => close_counted(|tally| ci::run(&workspace, tally)),
    }
}

fn close(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a job that counts tests. The counts are its last line, however it ends.
fn close_counted(job: impl FnOnce(&mut Tally) -> Result<()>) -> ExitCode {
    let mut tally = Tally::default();
    let outcome = job(&mut tally);
    if outcome.is_err() {
        tally.count_failed_step();
    }
    let code = close(outcome);
    println!("{tally}");
    code
}
