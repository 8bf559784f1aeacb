//! Objects as text: one board's status, one version.

use super::{
    table::{rule, write_padded},
    value::{width, write_json_value},
};
use crate::{
    command::Format,
    message::{Status, Version},
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
                ("tables", int(status.tables.into())),
                ("rows", int(status.rows)),
                ("rows_overwritten_unread", int(status.rows_overwritten_unread)),
                ("rows_missed", int(status.rows_missed)),
                ("queries", int(status.queries.into())),
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
        let value_width = self.fields.iter().map(|(_, value)| width(value)).max().unwrap_or(0);
        rule(out, ['┌', '┬', '┐'], [name_width, value_width])?;
        for (name, value) in &self.fields {
            write!(out, "\n│ {name:<name_width$} │ ")?;
            write_padded(value, value_width, out)?;
            out.write_str(" │")?;
        }
        out.write_char('\n')?;
        rule(out, ['└', '┴', '┘'], [name_width, value_width])
    }
}

/// What is 0 where it is not measured is unknown.
fn measured(bytes: u32) -> Value<'static> {
    if bytes == 0 { Value::Null } else { Value::Int(bytes.into()) }
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
}
