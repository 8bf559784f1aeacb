//! Any text as a command: a fault has a place in the text, and what is understood means the same however it is written.

use crate::script::Script;
use shared::{
    command::{self, Command, Format},
    limits::COMMAND_BYTES_MAX,
    message::{ErrorCode, Request},
    time::{self, Utc},
};

/// What commands are made of, and what nearly is.
#[rustfmt::skip]
const WORDS: [&str; 27] = [
    "set time = ", "set time=", "get status where format = ", "get version where format=", "help get ",
    "get", "set", "help", "status", "version", "time", "where", "format", "=", "json", "table", "mcp",
    " ", " ", "\t", "\u{2003}", "GET", "Set", "helq", "ü", "2026-11-18T05:00:00", "Z",
];

/// What moments are made of, and what nearly is: day, time of day, fraction, offset.
const MOMENT_PIECES: [[&str; 5]; 4] = [
    ["0001-01-01", "9999-12-31", "2024-02-29", "2023-02-29", "0000-13-00"],
    ["T00:00:00", "t23:59:59", "T24:00:00", "T1", ""],
    ["", ".999999", ".9999999", ".000001", "."],
    ["Z", "+00:01", "-23:59", "z", ""],
];

/// Any bytes: as text, as a choice of words, as a moment.
pub(crate) fn check(bytes: &[u8]) {
    check_text(&String::from_utf8_lossy(bytes));
    let word = |byte: &u8| match *byte {
        letter @ 0x60..0x7F => String::from(char::from(letter)),
        other => WORDS[usize::from(other) % WORDS.len()].to_string(),
    };
    check_text(&bytes.iter().map(word).collect::<String>());
    let mut script = Script::new(bytes);
    let pieces = MOMENT_PIECES.iter().map_while(|pieces| Some(pieces[usize::from(script.below(5)?)]));
    check_text(&format!("set time = {}", pieces.collect::<String>()));
}

fn check_text(text: &str) {
    let parsed = command::parse(text);
    assert_eq!(command::parse(&flip_case(text)), parsed, "the case of {text:?} matters");
    let is_repeatable = parsed.as_ref().is_ok_and(Command::is_repeatable);
    assert_eq!(Request::Command(text).is_repeatable(), is_repeatable);
    let command = match parsed {
        Ok(command) => command,
        Err(failure) => {
            let is_too_long = text.len() > COMMAND_BYTES_MAX;
            assert_eq!(failure.code == ErrorCode::TooLong, is_too_long);
            assert!(is_too_long || text.is_char_boundary(failure.position.into()), "{failure:?} in {text:?}");
            assert!(!failure.hint.is_empty());
            return;
        }
    };
    let written = written(&command);
    assert_eq!(command::parse(&written), Ok(command), "{text:?} is {written:?}");
    let spaced = format!("\t {} ", text.replace('=', " = "));
    if spaced.len() <= COMMAND_BYTES_MAX {
        assert_eq!(command::parse(&spaced), Ok(command), "space in {text:?} matters");
    }
    let more = format!("{text} =");
    if more.len() <= COMMAND_BYTES_MAX {
        let failure = command::parse(&more).expect_err("a command ends where it ends");
        assert!(usize::from(failure.position) <= more.len());
    }
}

/// A command as `help` shows it.
fn written(command: &Command<'_>) -> String {
    let name = match command {
        Command::GetStatus(_) => "get status",
        Command::GetVersion(_) => "get version",
        Command::SetTime(utc_us) => {
            assert!((time::UTC_US_MIN..=time::UTC_US_MAX).contains(utc_us));
            return format!("set time = {}", Utc(*utc_us));
        }
        Command::Help(None) => return "help".to_string(),
        Command::Help(Some(topic)) => return format!("help {}", topic.words.join(" ")),
    };
    match command.format() {
        None => name.to_string(),
        Some(Format::Json) => format!("{name} where format = json"),
        Some(Format::Table) => format!("{name} where format = table"),
        Some(Format::Mcp) => format!("{name} where format = mcp"),
    }
}

fn flip_case(text: &str) -> String {
    let flip = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    text.chars().map(flip).collect()
}
