//! `picolake run BOARD COMMAND`: one command, one answer.

use super::BoardArg;
use crate::{
    board::{Answer, OwnedRequest, Piece, Session},
    config::Config,
};
use clap::Args;
use shared::{
    command::{self, Format},
    format::Object,
    message::{Class, Part},
};
use std::time::Duration;

/// How long a command may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(45);

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    board: BoardArg,
    /// The command, such as "get status"; `help` lists them all
    command: String,
}

pub(crate) async fn run(config: &Config, args: RunArgs) -> anyhow::Result<()> {
    let session = super::session(&config.board(&args.board.board)?).await?;
    print!("{}", answer(&session, &args.command).await?);
    Ok(())
}

/// Asks and writes the answer in the format that the command names, `table` if none.
pub(crate) async fn answer(session: &Session, text: &str) -> anyhow::Result<String> {
    let format = command::parse(text).ok().and_then(|command| command.format()).unwrap_or(Format::Table);
    let asked = async {
        let answer = session.ask(OwnedRequest::Command(text.into()), Class::Interactive).await?;
        written(answer, format).await
    };
    match tokio::time::timeout(ANSWER_TIMEOUT, asked).await {
        Ok(written) => written,
        Err(_) => anyhow::bail!("timeout: no complete answer within {ANSWER_TIMEOUT:?}; is the board busy?"),
    }
}

async fn written(mut answer: Answer, format: Format) -> anyhow::Result<String> {
    let mut out = String::new();
    while let Some(piece) = answer.next().await? {
        let Piece::Part(bytes) = &piece else { continue };
        match bytes.part() {
            Some(Part::Status(status)) => Object::status(&status).write(format, &mut out)?,
            Some(Part::Version(version)) => Object::version(&version).write(format, &mut out)?,
            Some(Part::Text(text)) => out.push_str(text),
            Some(Part::Started(_)) => continue,
            None => {
                anyhow::bail!("protocol: the board sent a part this bridge does not know; update the bridge")
            }
        }
        out.push('\n');
    }
    Ok(out)
}
