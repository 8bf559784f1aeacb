//! `picolake run BOARD COMMAND`: one command, one answer.

use super::BoardArg;
use crate::{
    board::{Answer, OwnedRequest, Piece, Session},
    config::Config,
};
use clap::Args;
use shared::{
    command::{self, Format},
    format::{Object, Printable},
    message::{Class, Part},
};
use std::{
    fmt::{self, Write as _},
    time::Duration,
};

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
        let Some(part) = bytes.part() else {
            anyhow::bail!("protocol: the board sent a part this bridge does not know; update the bridge")
        };
        write_part(&part, format, &mut out)?;
    }
    Ok(out)
}

/// A part on a line of its own; what the board says in it does not reach a terminal as it is.
fn write_part(part: &Part<'_>, format: Format, out: &mut String) -> fmt::Result {
    match part {
        Part::Status(status) => Object::status(status).write(format, out)?,
        Part::Version(version) => Object::version(version).write(format, out)?,
        Part::Text(text) => write!(out, "{}", Printable(text))?,
        Part::Started(_) => return Ok(()),
    }
    out.write_char('\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::message::Version;

    #[test]
    fn a_forged_text_or_build_does_not_reach_the_terminal_as_it_is() {
        let forged = "\x1b[2Jgone\r";
        let version = Version { build: forged, board: forged, wire_min: 1, wire_max: 1 };
        for part in [Part::Text(forged), Part::Version(version)] {
            for format in [Format::Table, Format::Json, Format::Mcp] {
                let mut out = String::new();
                write_part(&part, format, &mut out).unwrap();
                assert!(out.contains("gone"), "{out}");
                assert!(out.chars().all(|c| c == '\n' || !c.is_control()), "{out:?}");
            }
        }
    }
}
