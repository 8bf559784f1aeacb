//! `picolake shell [BOARD]`: a prompt, or lines from a pipe; each line is a command or a SELECT.

mod input;
mod lines;

use super::{
    gateway::{Gateway, Shown},
    render,
};
use crate::{
    board::{AnswerError, Session},
    config::Config,
    owner::{Refusal, Reply, Wish},
};
use clap::Args;
use input::Input;
use lines::{Action, Shell};
use shared::{format::write_fault, message::WireError};
use std::{path::Path, sync::Arc};
use tokio::task::JoinSet;

/// Characters of a line that are shown on each side of a caret.
const CONTEXT_CHARS: usize = 60;

#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// Only this board: a name from the configuration, or a link such as tcp:HOST:PORT [default: all boards]
    board: Option<String>,
    /// The database to begin with, as if `use D` were typed
    #[arg(long, short, value_name = "D")]
    database: Option<String>,
    /// Add the simulated field: three boards, no hardware needed
    #[arg(long)]
    demo: bool,
}

/// Whom the shell asks.
enum Asked {
    /// The boards of the configuration, through their owner.
    Field(Arc<Gateway>),
    /// One board at a link that was given.
    Link(Session),
}

/// Why a line was not answered.
enum Unanswered {
    /// Nobody reads what is printed.
    ReaderGone,
    /// For the person who typed it.
    Told(String),
}

pub(crate) async fn run(config: &Config, named: Option<&Path>, args: ShellArgs) -> anyhow::Result<()> {
    let is_link = args.board.as_ref().is_some_and(|board| board.contains(':'));
    let asked = match &args.board {
        Some(board) if is_link => Asked::Link(super::session(&config.board(board)?).await?),
        Some(board) if !args.demo => {
            config.board(board)?; // a name that is wrong is told before the prompt
            Asked::Field(Arc::new(Gateway::to(config, named, args.demo)?))
        }
        _ => Asked::Field(Arc::new(Gateway::to(config, named, args.demo)?)),
    };
    let mut input = Input::open()?;
    let mut learning = JoinSet::new();
    if let Asked::Field(gateway) = &asked {
        gateway.owner().await?; // boards come up while the first line is typed
        if input.is_terminal() {
            learning.spawn(learn(Arc::clone(gateway), input.names().clone()));
        }
    }
    if input.is_terminal() {
        println!("type a command, a SELECT, help, \\? for what this shell adds, or \\q to quit");
    }
    let done = answer_lines(&asked, Shell::new(args.database, args.board), &mut input).await;
    learning.shutdown().await;
    if let Asked::Field(gateway) = asked
        && let Some(gateway) = Arc::into_inner(gateway)
    {
        gateway.end().await;
    }
    done
}

async fn answer_lines(asked: &Asked, mut shell: Shell, input: &mut Input) -> anyhow::Result<()> {
    let (mut count, mut failed) = (0_u32, 0_u32);
    while let Some(line) = input.next_line(&shell.prompt()).await? {
        let answered = match shell.line(&line) {
            Action::Nothing => continue,
            Action::Quit => break,
            Action::Say(text) => {
                println!("{text}");
                continue;
            }
            Action::Refuse(why) => Err(Unanswered::Told(why)),
            Action::Ask(command) => asked.command(&command, &shell).await,
            Action::Select(sql) => asked.select(&sql, &shell).await,
        };
        count += 1;
        match answered {
            Ok(()) => {}
            Err(Unanswered::ReaderGone) => return Ok(()),
            Err(Unanswered::Told(why)) => {
                failed += 1;
                eprintln!("{why}");
            }
        }
    }
    // At a prompt each failure was seen; a script must be told.
    anyhow::ensure!(input.is_terminal() || failed == 0, "{failed} of {count} commands failed");
    Ok(())
}

/// Names for the tab key; a shell without them is still one.
async fn learn(gateway: Arc<Gateway>, names: input::Names) {
    if let Ok(Reply::Names(found)) = gateway.get(Wish::Names).await {
        names.set(found);
    }
}

impl Asked {
    async fn command(&self, command: &str, shell: &Shell) -> Result<(), Unanswered> {
        match self {
            Self::Link(session) => on_link(session, command, shell).await,
            Self::Field(gateway) => {
                let boards = shell.board.clone().map(|board| vec![board]);
                let wish = Wish::Command { command: command.into(), boards, format: shell.format.into() };
                on_field(gateway, wish, command).await
            }
        }
    }

    async fn select(&self, sql: &str, shell: &Shell) -> Result<(), Unanswered> {
        match self {
            Self::Link(session) => {
                let command = shell.select_command(sql).map_err(|why| Unanswered::Told(why.into()))?;
                on_link(session, &command, shell).await
            }
            Self::Field(gateway) => {
                let boards = shell.board.clone().map(|board| vec![board]);
                let (sql, database) = (sql.to_string(), shell.database.clone());
                let wish = Wish::Query { sql: sql.clone(), database, boards, format: shell.format.into() };
                on_field(gateway, wish, &sql).await
            }
        }
    }
}

/// Writes the answer; Ctrl-C cancels it, on the boards too.
async fn on_field(gateway: &Gateway, wish: Wish, text: &str) -> Result<(), Unanswered> {
    let mut shown = Shown::new(std::io::stdout());
    tokio::select! {
        asked = gateway.ask(wish, &mut shown) => match asked {
            Err(error) if error.is_reader_gone() => return Err(Unanswered::ReaderGone),
            Err(error) => return Err(Unanswered::Told(error.to_string())),
            Ok(()) => {}
        },
        stopped = tokio::signal::ctrl_c() => return Err(cancelled(stopped)),
    }
    shown.told().map_err(|refusal| Unanswered::Told(pointed(text, &refusal)))
}

/// The same for a board that is asked directly.
async fn on_link(session: &Session, command: &str, shell: &Shell) -> Result<(), Unanswered> {
    let mut out = std::io::stdout();
    let answered = tokio::select! {
        answered = render::answer(session, command, shell.format, &mut out) => answered,
        stopped = tokio::signal::ctrl_c() => return Err(cancelled(stopped)),
    };
    match answered {
        Ok(notes) => {
            notes.tell();
            Ok(())
        }
        Err(error) if render::is_reader_gone(&error) => Err(Unanswered::ReaderGone),
        Err(error) => Err(Unanswered::Told(told(command, &error))),
    }
}

fn cancelled(stopped: std::io::Result<()>) -> Unanswered {
    println!();
    Unanswered::Told(stopped.map_or_else(|error| error.to_string(), |()| "cancelled".into()))
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

/// The same for what came through the boards' owner.
fn pointed(text: &str, refusal: &Refusal) -> String {
    let place = refusal.details.get("position").and_then(serde_json::Value::as_u64);
    let place =
        place.and_then(|place| usize::try_from(place).ok()).filter(|place| (1..=text.len()).contains(place));
    let Some(place) = place else { return refusal.to_string() };
    let (before, behind) = text.split_at(text.floor_char_boundary(place));
    let skipped = before.chars().count().saturating_sub(CONTEXT_CHARS);
    let shown = before.chars().skip(skipped).chain(behind.chars().take(CONTEXT_CHARS));
    let shown: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{shown}\n{}^ {refusal}", " ".repeat(before.chars().count() - skipped))
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

    #[test]
    fn a_refusal_of_the_owner_has_its_caret_too() {
        let refusal = |position: u64| Refusal {
            error: "did you mean `status`?".into(),
            code: "syntax".into(),
            details: Box::new(serde_json::Map::from_iter([("position".into(), position.into())])),
            suggested_action: "correct it".into(),
        };
        let line = "syntax: did you mean `status`?; correct it";
        assert_eq!(pointed("get statsu", &refusal(4)), format!("get statsu\n    ^ {line}"));
        assert_eq!(pointed("get statsu", &refusal(40)), line);
        assert!(pointed(&"ü".repeat(200), &refusal(399)).ends_with(&format!("{}^ {line}", " ".repeat(60))));
    }
}
