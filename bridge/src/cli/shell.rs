//! `picolake shell BOARD`: a prompt, or lines from a pipe; each line is a command or a SELECT.

mod input;
mod lines;

use super::{BoardArg, render};
use crate::{
    board::{AnswerError, Session},
    config::Config,
};
use clap::Args;
use input::Input;
use lines::{Action, Shell};
use shared::{format::write_fault, message::WireError};

#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    board: BoardArg,
    /// The database to begin with, as if `use D` were typed
    #[arg(long, short, value_name = "D")]
    database: Option<String>,
}

pub(crate) async fn run(config: &Config, args: ShellArgs) -> anyhow::Result<()> {
    let board = config.board(&args.board.board)?;
    let session = super::session(&board).await?;
    let mut shell = Shell::new(args.database);
    let mut input = Input::open()?;
    if input.is_terminal() {
        println!("{} answers: type a command, help, or \\q to quit", board.name);
    }
    let (mut asked, mut failed) = (0_u32, 0_u32);
    while let Some(line) = input.next_line(&shell.prompt(&board.name)).await? {
        match shell.line(&line) {
            Action::Nothing => {}
            Action::Quit => break,
            Action::Say(text) => println!("{text}"),
            Action::Refuse(why) => {
                (asked, failed) = (asked + 1, failed + 1);
                eprintln!("{why}");
            }
            Action::Ask(command) => {
                asked += 1;
                match ask(&session, &command, &shell).await {
                    Ok(()) => {}
                    Err(error) if render::is_reader_gone(&error) => return Ok(()),
                    Err(error) => {
                        failed += 1;
                        eprintln!("{}", told(&command, &error));
                    }
                }
            }
        }
    }
    // At a prompt each failure was seen; a script must be told.
    anyhow::ensure!(input.is_terminal() || failed == 0, "{failed} of {asked} commands failed");
    Ok(())
}

/// Writes the answer; Ctrl-C cancels it, on the board too.
async fn ask(session: &Session, command: &str, shell: &Shell) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    tokio::select! {
        answered = render::answer(session, command, shell.format, &mut out) => answered?.tell(),
        stopped = tokio::signal::ctrl_c() => {
            stopped?;
            println!();
            anyhow::bail!("cancelled");
        }
    }
    Ok(())
}

/// A refusal with a caret under its place, anything else as it is.
fn told(command: &str, error: &anyhow::Error) -> String {
    if let Some(AnswerError::Refused { code, position, hint }) = error.downcast_ref() {
        let mut text = String::new();
        let error = WireError { code: *code, position: *position, hint };
        if write_fault(command, &error, &mut text).is_ok() {
            return text;
        }
    }
    format!("{error:#}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::message::ErrorCode;

    #[test]
    fn a_refusal_has_a_caret_and_others_are_lines() {
        let refused = AnswerError::Refused {
            code: ErrorCode::Syntax,
            position: 4,
            hint: "did you mean `status`?".into(),
        };
        let text = told("get statsu", &refused.into());
        assert_eq!(text, "get statsu\n    ^ syntax: did you mean `status`?");
        assert_eq!(told("get status", &anyhow::anyhow!("timeout")), "timeout");
    }
}
