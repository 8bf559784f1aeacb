//! Where the shell's lines come from: a terminal with line editing, history and completion, or a pipe.
//!
//! A thread of its own reads, since reading waits: it is asked for one line at a time.

use super::lines::completions;
use rustyline::{
    Config, Context, Editor, Helper, completion::Completer, error::ReadlineError, highlight::Highlighter,
    hint::Hinter, history::FileHistory, validate::Validator,
};
use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc as thread},
};
use tokio::sync::mpsc;

/// Lines that are remembered.
const HISTORY_LINES_MAX: usize = 1_000;

/// The asker's end. The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Input {
    prompts: thread::Sender<String>,
    lines: mpsc::Receiver<io::Result<String>>,
    is_terminal: bool,
    names: Names,
}

/// Names of databases, tables, columns and boards, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<Mutex<Vec<String>>>);

impl Names {
    pub(crate) fn set(&self, names: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }
}

impl Input {
    /// Reads from standard input, whatever that is.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let is_terminal = io::stdin().is_terminal();
        let names = Names::default();
        let mut source = if is_terminal { Source::terminal(names.clone())? } else { Source::Pipe };
        let (prompts, asked) = thread::channel::<String>();
        let (found, lines) = mpsc::channel(1);
        std::thread::Builder::new().name("shell input".into()).spawn(move || {
            while let Ok(prompt) = asked.recv() {
                let Some(line) = source.next_line(&prompt) else { break };
                if found.blocking_send(line).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { prompts, lines, is_terminal, names })
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// What the tab key offers besides words of commands.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// The next line; none at the end. The prompt is shown on a terminal only.
    pub(crate) async fn next_line(&mut self, prompt: &str) -> io::Result<Option<String>> {
        if self.prompts.send(prompt.into()).is_err() {
            return Ok(None);
        }
        self.lines.recv().await.transpose()
    }
}

#[expect(clippy::large_enum_variant, reason = "there is one")]
enum Source {
    Terminal(Editor<Words, FileHistory>, Option<PathBuf>),
    Pipe,
}

impl Source {
    fn terminal(names: Names) -> anyhow::Result<Self> {
        let config = Config::builder().max_history_size(HISTORY_LINES_MAX)?.history_ignore_dups(true)?;
        let mut editor = Editor::with_config(config.auto_add_history(true).build())?;
        editor.set_helper(Some(Words(names)));
        let path = dirs::data_dir().map(|folder| folder.join("picolake").join("shell_history"));
        if let Some(path) = &path {
            let _ = editor.load_history(path); // there is none at the first start
        }
        Ok(Source::Terminal(editor, path))
    }

    fn next_line(&mut self, prompt: &str) -> Option<io::Result<String>> {
        match self {
            Source::Pipe => io::stdin().lines().next(), // the buffer between two lines is the process's
            Source::Terminal(editor, path) => match editor.readline(prompt) {
                Ok(line) => {
                    if let Some(path) = path {
                        // A shell without a history is still one.
                        let _ = path.parent().map(std::fs::create_dir_all);
                        let _ = editor.append_history(path);
                    }
                    Some(Ok(line))
                }
                Err(ReadlineError::Interrupted) => Some(Ok(String::new())), // Ctrl-C empties the line
                Err(ReadlineError::Eof) => None,
                Err(error) => Some(Err(io::Error::other(error))),
            },
        }
    }
}

/// Completes the words of commands, and names.
struct Words(Names);

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let names = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(completions(line.get(..at).unwrap_or_default(), &names))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}
