//! Answers as text: one formatter for the bridge and for a board's console.
//!
//! ```text
//!   mcp    {"board":"mps2-an386","uptime":"12s",…}            clean data
//!   json   {"Status":{"board":"mps2-an386",…}}                as EdgeLake
//!   table  a frame of box characters, a line for each field
//! ```

use crate::{
    command::Format,
    message::{Status, Version},
    time::Utc,
    value::Value,
};
use core::fmt::{self, Write};

/// Fields an object can have.
pub const FIELDS_MAX: usize = 24;

/// A named list of values: one board's status, one version.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    /// What `format = json` wraps it in.
    pub title: &'static str,
    /// Names and values in order.
    pub fields: heapless::Vec<(&'static str, Value<'a>), FIELDS_MAX>,
}

impl<'a> Object<'a> {
    fn new(title: &'static str, fields: &[(&'static str, Value<'a>)]) -> Self {
        Self { title, fields: fields.iter().copied().take(FIELDS_MAX).collect() }
    }

    /// The answer to `get status`.
    pub fn status(status: &Status<'a>) -> Self {
        let int = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        Self::new(
            "Status",
            &[
                ("board", Value::Text(status.board)),
                ("uptime_us", int(status.uptime_us)),
                ("time", status.utc_us.map_or(Value::Null, Value::Timestamp)),
                ("clock_set", Value::Bool(status.utc_us.is_some())),
                ("boot_count", int(status.boot_count.into())),
                ("panic_count", int(status.panic_count.into())),
                ("reset_reason", Value::Text(status.reset_reason.name())),
                ("stack_bytes_used_max", measured(status.stack_bytes_used_max)),
                ("stack_bytes", measured(status.stack_bytes)),
                ("link_sessions", int(status.link.sessions)),
                ("link_frames_in", int(status.link.frames_in)),
                ("link_frames_out", int(status.link.frames_out)),
                ("link_frames_damaged", int(status.link.frames_damaged)),
                ("link_resumes", int(status.link.resumes)),
            ],
        )
    }

    /// The answer to `get version`.
    pub fn version(version: &Version<'a>) -> Self {
        Self::new(
            "Version",
            &[
                ("build", Value::Text(version.build)),
                ("board", Value::Text(version.board)),
                ("wire_min", Value::Int(version.wire_min.into())),
                ("wire_max", Value::Int(version.wire_max.into())),
            ],
        )
    }

    /// Writes it in a format, without a line's end.
    pub fn write(&self, format: Format, out: &mut impl Write) -> fmt::Result {
        match format {
            Format::Mcp => self.write_json(out),
            Format::Json => {
                write!(out, "{{\"{}\":", self.title)?;
                self.write_json(out)?;
                out.write_char('}')
            }
            Format::Table => self.write_table(out),
        }
    }

    fn write_json(&self, out: &mut impl Write) -> fmt::Result {
        out.write_char('{')?;
        for (index, (name, value)) in self.fields.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}\"{name}\":")?;
            write_json_value(value, out)?;
        }
        out.write_char('}')
    }

    fn write_table(&self, out: &mut impl Write) -> fmt::Result {
        let name_width = self.fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut value_width = 0;
        for (_, value) in &self.fields {
            let mut count = Count(0);
            write_cell(value, &mut count)?;
            value_width = value_width.max(count.0);
        }
        rule(out, '┌', '┬', '┐', name_width, value_width)?;
        for (name, value) in &self.fields {
            let mut count = Count(0);
            write_cell(value, &mut count)?;
            write!(out, "\n│ {name:<name_width$} │ ")?;
            write_cell(value, out)?;
            write!(out, "{:1$} │", "", value_width - count.0)?;
        }
        out.write_char('\n')?;
        rule(out, '└', '┴', '┘', name_width, value_width)
    }
}

/// What is 0 where it is not measured is unknown.
fn measured(bytes: u32) -> Value<'static> {
    if bytes == 0 { Value::Null } else { Value::Int(bytes.into()) }
}

fn rule(out: &mut impl Write, left: char, middle: char, right: char, a: usize, b: usize) -> fmt::Result {
    out.write_char(left)?;
    (0..a + 2).try_for_each(|_| out.write_char('─'))?;
    out.write_char(middle)?;
    (0..b + 2).try_for_each(|_| out.write_char('─'))?;
    out.write_char(right)
}

/// One value as JSON. NaN and infinities are null; integers stay exact.
pub fn write_json_value(value: &Value<'_>, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(v) => write!(out, "{v}"),
        Value::Int(v) => write!(out, "{v}"),
        Value::Float32(v) if v.is_finite() => write!(out, "{v:?}"),
        Value::Float64(v) if v.is_finite() => write!(out, "{v:?}"),
        Value::Float32(_) | Value::Float64(_) => out.write_str("null"),
        Value::Timestamp(v) => write!(out, "\"{}\"", Utc(*v)),
        Value::Text(v) => write_json_text(v, out),
    }
}

/// Text as a JSON string.
pub fn write_json_text(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c.is_control() => write!(out, "\\u{:04x}", c as u32)?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

/// One value for a person; control characters of a device's text are escaped.
pub fn write_cell(value: &Value<'_>, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Text(text) => text.chars().try_for_each(|c| {
            if c.is_control() { write!(out, "{}", c.escape_default()) } else { out.write_char(c) }
        }),
        Value::Timestamp(v) => write!(out, "{}", Utc(*v)),
        other => write_json_value(other, out),
    }
}

/// A device's text for a person: prints with its control characters escaped, as [`write_cell`] does.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_cell(&Value::Text(self.0), f)
    }
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
    use std::string::String;

    fn written(format: Format) -> String {
        let object = Object::new(
            "Version",
            &[("build", Value::Text("a\"\u{1b}ü")), ("wire_max", Value::Int(i64::MAX)), ("x", Value::Null)],
        );
        let mut text = String::new();
        object.write(format, &mut text).unwrap();
        text
    }

    #[test]
    fn each_format_has_its_shape() {
        let object = r#"{"build":"a\"\u001bü","wire_max":9223372036854775807,"x":null}"#;
        assert_eq!(written(Format::Mcp), object);
        assert_eq!(written(Format::Json), std::format!("{{\"Version\":{object}}}"));
        assert_eq!(
            written(Format::Table),
            "┌──────────┬─────────────────────┐\n\
             │ build    │ a\"\\u{1b}ü           │\n\
             │ wire_max │ 9223372036854775807 │\n\
             │ x        │ null                │\n\
             └──────────┴─────────────────────┘"
        );
    }

    #[test]
    fn values_are_json_values() {
        let json = |value: Value<'_>| {
            let mut text = String::new();
            write_json_value(&value, &mut text).unwrap();
            text
        };
        assert_eq!(json(Value::Float32(20.1)), "20.1");
        assert_eq!(json(Value::Float64(f64::NAN)), "null");
        assert_eq!(json(Value::Timestamp(1_500_000)), "\"1970-01-01T00:00:01.5Z\"");
        assert_eq!(json(Value::Bool(true)), "true");
    }
}
