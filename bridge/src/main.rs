//! The program `picolake`: reads the command line, runs it, and turns errors into one line and an exit code.

use clap::Parser as _;
use std::process::ExitCode;

/// What was asked cannot be done as it was asked: a wrong address, a board that is not there.
const EXIT_REFUSED: u8 = 2;
/// What is logged unless PICOLAKE_LOG says otherwise. That a client asked for what is not there is told to the client.
const LOG_DEFAULT: &str = "warn,rmcp=error";

fn main() -> ExitCode {
    let cli = picolake::cli::Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("PICOLAKE_LOG")
                .unwrap_or_else(|_| LOG_DEFAULT.into()),
        )
        .with_writer(std::io::stderr)
        .init();
    match picolake::cli::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("picolake: {error:#}");
            ExitCode::from(EXIT_REFUSED)
        }
    }
}
