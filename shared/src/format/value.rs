//! One value as text: as JSON, and for a person.

use crate::{time::Utc, value::Value};
use core::fmt::{self, Write};

/// One value as JSON. NaN and infinities are null; integers stay exact.
pub fn write_json_value(value: &Value<'_>, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(v) => write!(out, "{v}"),
        Value::Int(v) => write_int(*v, out),
        Value::Float32(v) if v.is_finite() => write!(out, "{v:?}"),
        Value::Float64(v) if v.is_finite() => write!(out, "{v:?}"),
        Value::Float32(_) | Value::Float64(_) => out.write_str("null"),
        Value::Timestamp(v) => {
            out.write_char('"')?;
            Utc(*v).write(out)?;
            out.write_char('"')
        }
        Value::Text(v) => write_json_text(v, out),
    }
}

/// Whether a character is not seen as itself: control characters, those that turn the direction of the text around
/// them or have no width, line ends of other kinds, and the tags that repeat ASCII unseen. A device's text that has
/// them could show a person something else than it is.
#[inline(never)]
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A whole number. Many cells are one, and the general way to write them stood out in the profile of a page.
#[inline(never)]
fn write_int(value: i64, out: &mut dyn Write) -> fmt::Result {
    let mut digits = [0; 20]; // as many as i64::MIN has, and its sign
    let (mut rest, mut at) = (value.unsigned_abs(), digits.len());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.write_str(core::str::from_utf8(&digits[at..]).unwrap_or_default())
}

/// Text as a JSON string; characters that are not seen are escaped.
#[inline(never)]
pub fn write_json_text(text: &str, out: &mut dyn Write) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || is_unseen(c)) {
        let (plain, escaped) = rest.split_at(at);
        out.write_str(plain)?;
        let mut chars = escaped.chars();
        match chars.next() {
            Some('\n') => out.write_str("\\n")?,
            Some('\r') => out.write_str("\\r")?,
            Some('\t') => out.write_str("\\t")?,
            Some(c) if is_unseen(c) => {
                c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))?;
            }
            Some(c) => {
                out.write_char('\\')?;
                out.write_char(c)?;
            }
            None => {}
        }
        rest = chars.as_str();
    }
    out.write_str(rest)?;
    out.write_char('"')
}

/// One value for a person; characters of a device's text that are not seen are escaped.
#[inline(never)]
pub fn write_cell(value: &Value<'_>, mut out: &mut dyn Write) -> fmt::Result {
    match value {
        Value::Text(text) => text.chars().try_for_each(|c| {
            if is_unseen(c) { write!(out, "{}", c.escape_default()) } else { out.write_char(c) }
        }),
        Value::Timestamp(v) => Utc(*v).write(out),
        other => write_json_value(other, &mut out),
    }
}

/// A device's text for a person: prints with what is not seen escaped, as [`write_cell`] does.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_cell(&Value::Text(self.0), f)
    }
}

/// Characters that [`write_cell`] writes.
pub(super) fn width(value: &Value<'_>) -> usize {
    let mut count = Count(0);
    let _ = write_cell(value, &mut count); // counting does not fail
    count.0
}

/// Counts characters instead of writing them.
struct Count(usize);

impl Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.chars().count();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::{format, string::String};

    fn json(value: Value<'_>) -> String {
        let mut text = String::new();
        write_json_value(&value, &mut text).unwrap();
        text
    }

    #[test]
    fn values_are_json_values() {
        assert_eq!(json(Value::Null), "null");
        assert_eq!(json(Value::Bool(true)), "true");
        assert_eq!(json(Value::Int(9_007_199_254_740_993)), "9007199254740993");
        assert_eq!(json(Value::Int(i64::MIN)), "-9223372036854775808");
        assert_eq!(json(Value::Timestamp(1_500_000)), "\"1970-01-01T00:00:01.5Z\"");
        assert_eq!(json(Value::Text("a\"\\\n\u{1b}\u{85}ü")), r#""a\"\\\n\u001b\u0085ü""#);
    }

    #[test]
    fn floats_are_the_shortest_text_that_reads_back_in_their_width() {
        assert_eq!(json(Value::Float32(20.1)), "20.1");
        assert_eq!(json(Value::Float64(20.1_f32.into())), "20.100000381469727");
        assert_eq!(json(Value::Float64(-0.0)), "-0.0");
        assert_eq!(json(Value::Float64(1e300)), "1e300");
        assert_eq!(json(Value::Float64(1.0)), "1.0");
        for not_finite in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(json(Value::Float64(not_finite)), "null");
            assert_eq!(json(Value::Float32(not_finite as f32)), "null");
        }
        for bits in (0..=u32::MAX).step_by(65_521) {
            let float = f32::from_bits(bits);
            if float.is_finite() {
                assert_eq!(json(Value::Float32(float)).parse::<f32>().map(f32::to_bits), Ok(bits));
            }
            let wide = f64::from_bits(u64::from(bits) << 32 | u64::from(bits.reverse_bits()));
            if wide.is_finite() {
                let text = json(Value::Float64(wide));
                assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(wide.to_bits()));
                assert!(!text.contains('+') && text.len() <= 25, "{text}");
            }
        }
    }

    #[test]
    fn what_is_not_seen_is_escaped_and_reads_back() {
        let text = "a\u{202e}b\u{200b}\u{2028}\u{2066}\u{feff}\u{e0041}\u{7f}é日";
        let written = json(Value::Text(text));
        assert_eq!(written, r#""a\u202eb\u200b\u2028\u2066\ufeff\udb40\udc41\u007fé日""#);
        let mut cell = String::new();
        write_cell(&Value::Text(text), &mut cell).unwrap();
        assert_eq!(cell, r"a\u{202e}b\u{200b}\u{2028}\u{2066}\u{feff}\u{e0041}\u{7f}é日");
        assert!(!written.contains(is_unseen) && !cell.contains(is_unseen));
    }

    #[test]
    fn a_cell_has_no_control_characters() {
        let value = Value::Text("a\t\u{1b}[2Jü");
        let mut text = String::new();
        write_cell(&value, &mut text).unwrap();
        assert_eq!(text, "a\\t\\u{1b}[2Jü");
        assert_eq!(width(&value), text.chars().count());
        assert_eq!(width(&Value::Int(-10)), format!("{}", -10).len());
    }
}
