//! What went wrong, under the command it is about.

use super::is_unseen;
use crate::message::WireError;
use core::fmt::{self, Write};

/// Characters of the command that are shown on each side of the fault.
const CONTEXT_CHARS: usize = 48;

/// The command, a caret under the place, and the fault; without a line's end. Of a long command only what stands
/// around the place is shown. A fault without a place is one line.
///
/// ```text
///   get statsu
///       ^ syntax: did you mean `status`?
/// ```
pub fn write_fault(command: &str, error: &WireError<'_>, out: &mut impl Write) -> fmt::Result {
    let place = usize::from(error.position);
    if place > 0 && place <= command.len() {
        let (before, behind) = command.split_at(command.floor_char_boundary(place));
        let shown = before.chars().count().min(CONTEXT_CHARS);
        for c in before.chars().skip(before.chars().count() - shown).chain(behind.chars().take(CONTEXT_CHARS))
        {
            out.write_char(if is_unseen(c) { ' ' } else { c })?;
        }
        write!(out, "\n{:shown$}^ ", "")?;
    }
    write!(out, "{}", error.code.name())?;
    if !error.hint.is_empty() {
        out.write_str(": ")?;
        for c in error.hint.chars() {
            out.write_char(if is_unseen(c) { ' ' } else { c })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::message::ErrorCode;
    use std::string::String;

    fn written(command: &str, position: u16, hint: &str) -> String {
        let mut text = String::new();
        write_fault(command, &WireError { code: ErrorCode::Syntax, position, hint }, &mut text).unwrap();
        text
    }

    #[test]
    fn a_caret_stands_under_the_place() {
        assert_eq!(written("get statsu", 4, "x?"), "get statsu\n    ^ syntax: x?");
        assert_eq!(written("sql ü \u{1b}", 7, ""), "sql ü  \n      ^ syntax");
        assert_eq!(written("got", 0, "did you\nmean `get`?"), "syntax: did you mean `get`?");
        assert_eq!(written("get", 9, ""), "syntax");
        let long = "é".repeat(400);
        let text = written(&long, 500, "x");
        let caret = text.lines().nth(1).unwrap().find('^');
        assert_eq!((text.lines().next().unwrap().chars().count(), caret), (96, Some(48)));
    }
}
