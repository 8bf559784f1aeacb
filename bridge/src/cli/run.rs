//! `picolake run BOARD COMMAND`: one command, one answer.

use super::{
    BoardArg,
    gateway::{Gateway, print},
    render,
};
use crate::{config::Config, owner::Wish};
use clap::Args;
use shared::command::Format;
use std::path::Path;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    board: BoardArg,
    /// The command, such as "get status"; `help` lists them all
    command: String,
}

pub(crate) async fn run(config: &Config, named: Option<&Path>, args: RunArgs) -> anyhow::Result<()> {
    let board = config.board(&args.board.board)?;
    if config.boards.contains(&board) {
        let gateway = Gateway::to(config, named, false)?;
        let boards = Some(vec![board.name]);
        let wish = Wish::Command { command: args.command, boards, format: Format::Table.into() };
        let printed = print(&gateway, wish).await;
        gateway.end().await;
        return printed;
    }
    let session = super::session(&board).await?;
    match render::answer(&session, &args.command, Format::Table, &mut std::io::stdout()).await {
        Ok(notes) => notes.tell(),
        Err(error) if render::is_reader_gone(&error) => {} // `picolake run … | head` has what it wants
        Err(error) => return Err(error),
    }
    Ok(())
}
