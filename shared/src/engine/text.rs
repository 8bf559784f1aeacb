//! What expressions do with text: LIKE, case, and numbers ↔ text.

use super::{
    eval::{Bump, Fault},
    number::Number,
};
use crate::{format, message::ErrorCode, sql::tree::NodeId, value::Value};
use core::fmt::{self, Write};

/// `x LIKE pattern`: `%` is any text, `_` any character; ASCII letters match in either case.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Where to go on if what follows the last `%` does not match here.
    let mut retry: Option<(core::str::Chars<'_>, core::str::Chars<'_>)> = None;
    loop {
        let mut rest = pattern.clone();
        match rest.next() {
            Some('%') => {
                retry = Some((text.clone(), rest.clone()));
                pattern = rest;
                continue;
            }
            Some(wanted) => {
                let mut ahead = text.clone();
                if ahead.next().is_some_and(|found| wanted == '_' || wanted.eq_ignore_ascii_case(&found)) {
                    (text, pattern) = (ahead, rest);
                    continue;
                }
            }
            None if text.as_str().is_empty() => return true,
            None => {}
        }
        let Some((from, after)) = &mut retry else { return false };
        if from.next().is_none() {
            return false;
        }
        (text, pattern) = (from.clone(), after.clone());
    }
}

/// A copy with every byte mapped; `map` changes ASCII letters only.
pub(super) fn cased<'v>(
    id: NodeId,
    text: &str,
    map: fn(&u8) -> u8,
    bump: &mut Bump<'v>,
) -> Result<Value<'v>, Fault> {
    let room = take(id, bump, text.len())?;
    room.iter_mut().zip(text.as_bytes()).for_each(|(to, from)| *to = map(from));
    Ok(Value::Text(core::str::from_utf8(room).unwrap_or_default()))
}

/// A value as text: `x::text`.
pub(super) fn written<'v>(id: NodeId, value: Value<'_>, bump: &mut Bump<'v>) -> Result<Value<'v>, Fault> {
    let mut line = Line { room: core::mem::take(bump), used: 0 };
    let done = match Number::of(value) {
        Some(Number::Float(v)) if v.is_infinite() => line.write_str(if v < 0.0 { "-Inf" } else { "Inf" }),
        _ => format::write_cell(&value, &mut line),
    };
    let (text, rest) = line.room.split_at_mut(line.used);
    *bump = rest;
    done.map_err(|_| full(id))?;
    Ok(Value::Text(core::str::from_utf8(text).unwrap_or_default()))
}

struct Line<'v> {
    room: &'v mut [u8],
    used: usize,
}

impl Write for Line<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.room.get_mut(self.used..self.used + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}

fn take<'v>(id: NodeId, bump: &mut Bump<'v>, bytes: usize) -> Result<&'v mut [u8], Fault> {
    let room = core::mem::take(bump);
    if bytes > room.len() {
        *bump = room;
        return Err(full(id));
    }
    let (taken, rest) = room.split_at_mut(bytes);
    *bump = rest;
    Ok(taken)
}

fn full(id: NodeId) -> Fault {
    Fault::new(ErrorCode::Capacity, id, "EXPRESSION_TEXT_BYTES_MAX: the row's expressions make too much text")
}

/// The whole number that a text begins with, 0 if it begins with none.
pub(super) fn int_prefix(text: &str) -> i64 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let (is_negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut number = 0_i64;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        let digit = i64::from(digit - b'0');
        let grown = number.checked_mul(10).and_then(|number| {
            if is_negative { number.checked_sub(digit) } else { number.checked_add(digit) }
        });
        match grown {
            Some(grown) => number = grown,
            None => return if is_negative { i64::MIN } else { i64::MAX },
        }
    }
    number
}

/// The number that a text begins with, 0 if it begins with none.
pub(super) fn float_prefix(text: &str) -> f64 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut any = whole;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        any += fraction;
        end += 1 + fraction;
    }
    if any == 0 {
        return 0.0;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = if signed <= bytes.len() { digits(signed) } else { 0 };
        if exponent > 0 {
            end = signed + exponent;
        }
    }
    text[..end].parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_knows_any_text_and_any_character() {
        for (text, pattern, expected) in [
            ("running", "run%", true),
            ("RUNNING", "run%g", true),
            ("running", "r_n%", true),
            ("running", "run", false),
            ("", "%", true),
            ("", "_", false),
            ("überhitzt", "_ber%", true),
            ("Über", "über", false),
            ("aab", "%ab", true),
            ("abcabd", "%ab_", true),
            ("a%b", "a%b", true),
            ("mississippi", "m%is%ip%", true),
            ("mississippi", "m%is%ix%", false),
        ] {
            assert_eq!(is_like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn numbers_are_read_from_the_beginning_of_a_text() {
        for (text, int, float) in [
            ("12abc", 12, 12.0),
            (" -7.5e1x", -7, -75.0),
            ("abc", 0, 0.0),
            ("", 0, 0.0),
            (".5", 0, 0.5),
            ("1e", 1, 1.0),
            ("-", 0, 0.0),
            ("99999999999999999999", i64::MAX, 1e20),
            ("é", 0, 0.0),
        ] {
            assert_eq!((int_prefix(text), float_prefix(text)), (int, float), "{text}");
        }
    }
}
