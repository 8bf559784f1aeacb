//! The command language: text → [`Command`]. Keywords are case-insensitive, spaces around `=` are free.
//!
//! A fault is reported with its position and what was expected there; where a word is nearly one that fits, with
//! that word.

use crate::{
    limits::COMMAND_BYTES_MAX,
    message::{ErrorCode, Failure},
    time,
};

/// How an answer is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// As EdgeLake writes it.
    #[default]
    Json,
    /// A table for people.
    Table,
    /// Clean data for models.
    Mcp,
}

/// A parsed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// `get status [where format = F]`
    GetStatus(Option<Format>),
    /// `get version [where format = F]`
    GetVersion(Option<Format>),
    /// `set time = 2026-11-18T05:00:00Z`
    SetTime(i64),
    /// `help [COMMAND]`
    Help(Option<&'a Topic>),
}

impl Command<'_> {
    /// Whether doing it twice does the same as doing it once.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Command::GetStatus(_) | Command::GetVersion(_) | Command::Help(_) => true,
            Command::SetTime(_) => false,
        }
    }

    /// The format that was asked for.
    pub fn format(&self) -> Option<Format> {
        match self {
            Command::GetStatus(format) | Command::GetVersion(format) => *format,
            Command::SetTime(_) | Command::Help(_) => None,
        }
    }
}

/// What `help` knows of one command.
#[derive(Debug, PartialEq, Eq)]
pub struct Topic {
    /// The words it begins with.
    pub words: &'static [&'static str],
    /// How it is written.
    pub usage: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// Every command, in the order in which `help` lists them.
pub const TOPICS: &[Topic] = &[
    Topic {
        words: &["get", "status"],
        usage: "get status [where format = json|table|mcp]",
        about: "uptime, clock, resets, stack and link counters of the board",
    },
    Topic {
        words: &["get", "version"],
        usage: "get version [where format = json|table|mcp]",
        about: "firmware, kind of board and wire versions",
    },
    Topic {
        words: &["set", "time"],
        usage: "set time = 2026-11-18T05:00:00Z",
        about: "sets the board's clock; the bridge does this by itself",
    },
    Topic { words: &["help"], usage: "help [COMMAND]", about: "this list, or one command of it" },
];

/// Reads one line. An error changes nothing anywhere: it is the caller who acts.
pub fn parse(text: &str) -> Result<Command<'static>, Failure> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err(Failure::new(
            ErrorCode::TooLong,
            COMMAND_BYTES_MAX,
            format_args!("a command has at most {COMMAND_BYTES_MAX} bytes"),
        ));
    }
    let mut words = Words { text, at: 0 };
    let command = match words.keyword(&["get", "set", "help"])? {
        "get" => match words.keyword(&["status", "version"])? {
            "status" => Command::GetStatus(words.format()?),
            _ => Command::GetVersion(words.format()?),
        },
        "set" => {
            words.keyword(&["time"])?;
            words.equals()?;
            Command::SetTime(words.moment()?)
        }
        _ => Command::Help(words.topic()?),
    };
    words.end()?;
    Ok(command)
}

/// A line that is read word by word.
struct Words<'a> {
    text: &'a str,
    /// Where the next word, or the space before it, begins.
    at: usize,
}

impl<'a> Words<'a> {
    /// The next word and where it begins, without taking it. A word ends at a space or before `=`, which is its own.
    fn peek(&mut self) -> (usize, &'a str) {
        let rest = &self.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        let ends = |c: char| c.is_whitespace() || c == '=';
        let len = if rest.starts_with('=') { 1 } else { rest.find(ends).unwrap_or(rest.len()) };
        (start, &rest[..len])
    }

    fn take(&mut self) -> (usize, &'a str) {
        let (start, word) = self.peek();
        self.at = start + word.len();
        (start, word)
    }

    fn keyword(&mut self, expected: &[&'static str]) -> Result<&'static str, Failure> {
        let (start, word) = self.take();
        match expected.iter().find(|keyword| keyword.eq_ignore_ascii_case(word)) {
            Some(keyword) => Ok(keyword),
            None => Err(unexpected(start, word, expected)),
        }
    }

    fn equals(&mut self) -> Result<(), Failure> {
        let (start, word) = self.take();
        if word == "=" { Ok(()) } else { Err(unexpected(start, word, &["="])) }
    }

    /// `[where format = F]`
    fn format(&mut self) -> Result<Option<Format>, Failure> {
        if self.peek().1.is_empty() {
            return Ok(None);
        }
        self.keyword(&["where"])?;
        self.keyword(&["format"])?;
        self.equals()?;
        Ok(Some(match self.keyword(&["json", "table", "mcp"])? {
            "json" => Format::Json,
            "table" => Format::Table,
            _ => Format::Mcp,
        }))
    }

    fn moment(&mut self) -> Result<i64, Failure> {
        let (start, word) = self.take();
        time::parse_rfc3339(word).map_err(|offset| {
            let hint = format_args!("expected a time such as 2026-11-18T05:00:00Z");
            Failure::new(ErrorCode::Value, start + offset, hint)
        })
    }

    fn topic(&mut self) -> Result<Option<&'static Topic>, Failure> {
        if self.peek().1.is_empty() {
            return Ok(None);
        }
        let mut firsts: heapless::Vec<&'static str, { TOPICS.len() }> = heapless::Vec::new();
        for word in TOPICS.iter().map(|topic| topic.words[0]) {
            if !firsts.contains(&word) {
                let _ = firsts.push(word); // there is room for every topic's
            }
        }
        let first = self.keyword(&firsts)?;
        let seconds: heapless::Vec<&'static str, { TOPICS.len() }> = TOPICS
            .iter()
            .filter(|topic| topic.words[0] == first)
            .filter_map(|topic| topic.words.get(1).copied())
            .collect();
        let second = if seconds.is_empty() { None } else { Some(self.keyword(&seconds)?) };
        Ok(TOPICS.iter().find(|t| t.words[0] == first && t.words.get(1).copied() == second))
    }

    fn end(&mut self) -> Result<(), Failure> {
        let (start, word) = self.peek();
        if word.is_empty() {
            return Ok(());
        }
        Err(Failure::new(ErrorCode::Syntax, start, format_args!("expected the end of the command")))
    }
}

/// The word at `start` is none of `expected`; names the nearest if one is near, else all.
fn unexpected(start: usize, word: &str, expected: &[&'static str]) -> Failure {
    let code = if start == 0 { ErrorCode::UnknownCommand } else { ErrorCode::Syntax };
    if let Some(near) = nearest(word, expected) {
        return Failure::new(code, start, format_args!("did you mean `{near}`?"));
    }
    struct List<'a>(&'a [&'static str]);
    impl core::fmt::Display for List<'_> {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            for (index, word) in self.0.iter().enumerate() {
                let before = if index == 0 { "" } else { ", " };
                write!(f, "{before}`{word}`")?;
            }
            Ok(())
        }
    }
    Failure::new(code, start, format_args!("expected {}", List(expected)))
}

/// The candidate that takes the fewest edits from `word`, if they are few for its length.
pub fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let (edits, near) = candidates
        .iter()
        .map(|candidate| (edit_distance(word, candidate), *candidate))
        .min_by_key(|(edits, _)| *edits)?;
    (edits <= near.len().div_ceil(3)).then_some(near)
}

/// Levenshtein's distance in bytes, ASCII case aside. Words longer than a name are far from everything.
fn edit_distance(a: &str, b: &str) -> usize {
    const MAX: usize = crate::limits::NAME_BYTES_MAX;
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() > MAX || b.len() > MAX {
        return usize::MAX;
    }
    let mut row: [usize; MAX + 1] = core::array::from_fn(|index| index);
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(!from.eq_ignore_ascii_case(to));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_free_in_case_and_space() {
        assert_eq!(parse("  GET   Status "), Ok(Command::GetStatus(None)));
        assert_eq!(parse("get status where format=MCP"), Ok(Command::GetStatus(Some(Format::Mcp))));
        assert_eq!(parse("get version where format = table"), Ok(Command::GetVersion(Some(Format::Table))));
        assert_eq!(parse("set time=1970-01-01T00:00:01Z"), Ok(Command::SetTime(1_000_000)));
        assert_eq!(parse("help"), Ok(Command::Help(None)));
        assert_eq!(parse("help get version"), Ok(Command::Help(Some(&TOPICS[1]))));
    }

    #[test]
    fn a_fault_has_its_place_and_a_suggestion() {
        let fault = |text| {
            let failure = parse(text).unwrap_err();
            (failure.code, failure.position, failure.hint)
        };
        let hint = |text: &str| heapless::String::try_from(text).unwrap();
        assert_eq!(fault("got status"), (ErrorCode::UnknownCommand, 0, hint("did you mean `get`?")));
        assert_eq!(fault("get statsu"), (ErrorCode::Syntax, 4, hint("did you mean `status`?")));
        assert_eq!(fault("get"), (ErrorCode::Syntax, 3, hint("expected `status`, `version`")));
        assert_eq!(fault(""), (ErrorCode::UnknownCommand, 0, hint("expected `get`, `set`, `help`")));
        assert_eq!(fault("get status please"), (ErrorCode::Syntax, 11, hint("expected `where`")));
        let moment = hint("expected a time such as 2026-11-18T05:00:00Z");
        assert_eq!(fault("set time = 2026-11-31T05:00:00Z"), (ErrorCode::Value, 19, moment));
        assert_eq!(fault("help me"), (ErrorCode::Syntax, 5, hint("expected `get`, `set`, `help`")));
        assert_eq!(parse(&"é".repeat_to(COMMAND_BYTES_MAX + 2)).unwrap_err().code, ErrorCode::TooLong);
    }

    trait RepeatTo {
        fn repeat_to(&self, bytes: usize) -> heapless::String<2048>;
    }
    impl RepeatTo for str {
        fn repeat_to(&self, bytes: usize) -> heapless::String<2048> {
            let mut text = heapless::String::new();
            while text.len() < bytes {
                text.push_str(self).unwrap();
            }
            text
        }
    }
}
