//! A line that is read word by word: keywords, names, values, numbers. Knows no command.

use super::nearest::nearest;
use crate::{
    limits::{HINT_BYTES_MAX, NAME_BYTES_MAX},
    message::{ErrorCode, Failure},
    time,
};
use core::fmt::Write as _;

/// A line, and how far it is read.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    text: &'a str,
    /// Where the next word, or the space before it, begins.
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Where the next word begins, or the end of the line.
    pub(super) fn position(&self) -> usize {
        let rest = &self.text[self.at..];
        self.at + (rest.len() - rest.trim_start().len())
    }

    /// What is left, without the space around it, and where it begins. It is taken.
    pub(super) fn take_rest(&mut self) -> (usize, &'a str) {
        let start = self.position();
        self.at = self.text.len();
        (start, self.text[start..].trim_end())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.position() == self.text.len()
    }

    /// The next word and where it begins, without taking it. A word ends at a space or before a symbol, which is a
    /// word of its own.
    pub(super) fn peek(&self) -> (usize, &'a str) {
        let start = self.position();
        let rest = &self.text[start..];
        let len = match rest.find(|c: char| c.is_whitespace() || is_symbol(c)) {
            Some(0) => 1, // the space is past, and every symbol is one byte
            Some(len) => len,
            None => rest.len(),
        };
        (start, &rest[..len])
    }

    fn take(&mut self) -> (usize, &'a str) {
        let (start, word) = self.peek();
        self.at = start + word.len();
        (start, word)
    }

    /// Whether the next word is this one; then it is taken.
    pub(super) fn take_if(&mut self, keyword: &str) -> bool {
        let (start, word) = self.peek();
        let found = word.eq_ignore_ascii_case(keyword);
        if found {
            self.at = start + word.len();
        }
        found
    }

    /// One of these words, in any case.
    pub(super) fn keyword(&mut self, expected: &[&'static str]) -> Result<&'static str, Failure> {
        let (start, word) = self.take();
        chosen(ErrorCode::Syntax, start, word, expected)
    }

    /// The first word of a command.
    pub(super) fn command(&mut self, expected: &[&'static str]) -> Result<&'static str, Failure> {
        let (start, word) = self.take();
        chosen(ErrorCode::UnknownCommand, start, word, expected)
    }

    /// `=`, `(`, `)`, `,`
    pub(super) fn symbol(&mut self, symbol: &'static str) -> Result<(), Failure> {
        self.keyword(&[symbol]).map(|_| ())
    }

    /// A word or what stands between two quotes, and where it begins.
    pub(super) fn value(&mut self) -> Result<(usize, &'a str), Failure> {
        let (start, word) = self.take();
        match word {
            "'" | "\"" => {
                let Some(len) = self.text[start + 1..].find(word) else {
                    return Err(syntax(start, format_args!("this {word} is never closed")));
                };
                self.at = start + len + 2;
                Ok((start + 1, &self.text[start + 1..][..len]))
            }
            word => Ok((start, word)),
        }
    }

    /// One of these values, in any case.
    pub(super) fn choice(&mut self, expected: &[&'static str]) -> Result<&'static str, Failure> {
        let (start, value) = self.value()?;
        chosen(ErrorCode::Syntax, start, value, expected)
    }

    /// A name, bare or in quotes. A bare one ends where no letter, digit or `_` follows.
    pub(super) fn name(&mut self) -> Result<&'a str, Failure> {
        let (start, value) = self.value()?;
        let mut name = value;
        if self.at == start + value.len() {
            let len = value.find(|c: char| !is_name_char(c)).unwrap_or(value.len());
            (name, self.at) = (&value[..len], start + len);
        }
        check_name(start, name)?;
        Ok(name)
    }

    /// `.` directly behind a name.
    pub(super) fn dot(&mut self) -> Result<(), Failure> {
        if !self.text[self.at..].starts_with('.') {
            return Err(syntax(self.at, format_args!("expected `.` and a table's name")));
        }
        self.at += 1;
        Ok(())
    }

    /// A whole number without a sign. What stands directly behind it is the next word.
    pub(super) fn number(&mut self) -> Result<(usize, u64), Failure> {
        let start = self.position();
        let rest = &self.text[start..];
        let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if len == 0 {
            return Err(syntax(start, format_args!("expected a whole number")));
        }
        self.at = start + len;
        match rest[..len].parse() {
            Ok(number) => Ok((start, number)),
            Err(_) => Err(Failure::new(ErrorCode::Overflow, start, format_args!("this number is too large"))),
        }
    }

    /// A moment, as RFC 3339 has it.
    pub(super) fn moment(&mut self) -> Result<i64, Failure> {
        let (start, word) = self.value()?;
        time::parse_rfc3339(word).map_err(|offset| {
            let offset = word.floor_char_boundary(offset);
            let hint = format_args!("expected a time such as 2026-11-18T05:00:00Z");
            Failure::new(ErrorCode::Value, start + offset, hint)
        })
    }

    /// What stands between this double quote, the next to be read, and the last one of the line; nothing may follow.
    pub(super) fn quoted_to_last(&mut self) -> Result<(usize, &'a str), Failure> {
        let start = self.position();
        let end = self.text.rfind('"').filter(|end| *end > start);
        let Some(end) = end else {
            return Err(syntax(start, format_args!("this \" is never closed")));
        };
        self.at = end + 1;
        Ok((start + 1, &self.text[start + 1..end]))
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Result<(), Failure> {
        if self.is_at_end() {
            return Ok(());
        }
        Err(syntax(self.position(), format_args!("expected the end of the command")))
    }
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '(' | ')' | ',' | '{' | '\'' | '"')
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `[A-Za-z_][A-Za-z0-9_]*`, and not too long.
pub(super) fn check_name(start: usize, name: &str) -> Result<(), Failure> {
    let is_name = name.chars().all(is_name_char) && name.starts_with(|c: char| !c.is_ascii_digit());
    if !is_name {
        return Err(syntax(start, format_args!("expected a name: letters, digits and _")));
    }
    if name.len() > NAME_BYTES_MAX {
        let hint = format_args!("a name has at most {NAME_BYTES_MAX} bytes");
        return Err(Failure::new(ErrorCode::TooLong, start, hint));
    }
    Ok(())
}

/// A fault in how the command is written.
pub(super) fn syntax(position: usize, hint: core::fmt::Arguments<'_>) -> Failure {
    Failure::new(ErrorCode::Syntax, position, hint)
}

/// The expected word that this is; a fault names the nearest if one is near, else those that were expected.
fn chosen(
    code: ErrorCode,
    start: usize,
    word: &str,
    expected: &[&'static str],
) -> Result<&'static str, Failure> {
    if let Some(keyword) = expected.iter().find(|keyword| keyword.eq_ignore_ascii_case(word)) {
        return Ok(keyword);
    }
    if let Some(near) = nearest(word, expected) {
        return Err(Failure::new(code, start, format_args!("did you mean `{near}`?")));
    }
    let mut list = heapless::String::<HINT_BYTES_MAX>::new();
    for (index, word) in expected.iter().enumerate() {
        let before = if index == 0 { "expected " } else { ", " };
        let is_last = index + 1 == expected.len();
        let room = HINT_BYTES_MAX - list.len() - if is_last { 0 } else { ", …".len() };
        if before.len() + word.len() + "``".len() > room {
            let _ = list.push_str(", …"); // the room for it was left each time
            break;
        }
        let _ = write!(list, "{before}`{word}`");
    }
    Err(Failure::new(code, start, format_args!("{list}")))
}
