//! `picolake completions`: prints what a shell needs to complete this program's command line. Installs nothing.

use super::Cli;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::io::{self, Write as _};

/// Prints the script for a shell.
pub(crate) fn run(shell: Shell) -> anyhow::Result<()> {
    let mut command = Cli::command();
    let name = command.get_name().to_string();
    let mut script = Vec::new(); // written here first: a reader that leaves is an error, not a panic
    clap_complete::generate(shell, &mut command, name, &mut script);
    Ok(io::stdout().write_all(&script)?)
}
