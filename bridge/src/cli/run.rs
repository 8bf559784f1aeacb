//! `picolake run BOARD COMMAND`: one command, one answer.

use super::{BoardArg, render};
use crate::config::Config;
use clap::Args;
use shared::command::Format;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    board: BoardArg,
    /// The command, such as "get status"; `help` lists them all
    command: String,
}

pub(crate) async fn run(config: &Config, args: RunArgs) -> anyhow::Result<()> {
    let session = super::session(&config.board(&args.board.board)?).await?;
    match render::answer(&session, &args.command, Format::Table, &mut std::io::stdout()).await {
        Ok(notes) => notes.tell(),
        Err(error) if render::is_reader_gone(&error) => {} // `picolake run … | head` has what it wants
        Err(error) => return Err(error),
    }
    Ok(())
}
