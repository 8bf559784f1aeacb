//! The JSON object of an insert: a pull reader without a heap, and its values as those of columns.
//!
//! It reads one flat object. A list or an object in it, a name twice, and a text longer than a cell are refused where
//! they stand.

use super::words::{check_name, syntax};
use crate::{
    limits::{TABLE_COLUMNS_MAX, TEXT_BYTES_MAX},
    message::{ErrorCode, Failure},
    schema::{Column, TIME_COLUMN},
    time,
    value::{ColumnType, Value},
};
use core::fmt;

/// A text with its escapes undone.
pub type JsonText = heapless::String<TEXT_BYTES_MAX>;

/// One name of the object and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The column's name.
    pub name: &'a str,
    /// Where the name stands in the command.
    pub position: usize,
    /// The value.
    pub value: JsonValue<'a>,
    /// Where the value stands in the command.
    pub value_position: usize,
}

/// A value as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonValue<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number's own text: its digits are not rounded before its column is known.
    Number(&'a str),
    /// `"…"`
    Text(JsonText),
}

/// The members of an object, one after the other.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    text: &'a str,
    /// Where `text` begins in the command.
    offset: usize,
    at: usize,
    state: State,
    names: heapless::Vec<&'a str, TABLE_COLUMNS_MAX>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    Within,
    End,
}

impl<'a> Members<'a> {
    /// Reads the object `text`, which begins at `offset` of the command.
    pub fn new(text: &'a str, offset: usize) -> Self {
        Self { text, offset, at: 0, state: State::Begin, names: heapless::Vec::new() }
    }

    /// The next member; none at the end of the object, behind which nothing may follow. After a fault there is
    /// nothing more of use.
    pub fn next_member(&mut self) -> Result<Option<Member<'a>>, Failure> {
        match self.state {
            State::End => return Ok(None),
            State::Begin => {
                self.expect('{')?;
                if self.take('}') {
                    return self.finish();
                }
            }
            State::Within => {
                if self.take('}') {
                    return self.finish();
                }
                if !self.take(',') {
                    return Err(self.fault(format_args!("expected `,` or `}}`")));
                }
            }
        }
        self.state = State::Within;
        let (name, position) = self.name()?;
        self.expect(':')?;
        self.skip_space();
        let value_position = self.offset + self.at;
        let value = self.value(name)?;
        Ok(Some(Member { name, position, value, value_position }))
    }

    fn finish(&mut self) -> Result<Option<Member<'a>>, Failure> {
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.fault(format_args!("expected the end of the command")));
        }
        self.state = State::End;
        Ok(None)
    }

    /// A column's name. Escapes are not read in it: no name needs one.
    fn name(&mut self) -> Result<(&'a str, usize), Failure> {
        self.skip_space();
        let start = self.at + 1;
        if !self.take('"') {
            return Err(self.fault(format_args!("expected a column's name in double quotes")));
        }
        let Some(len) = self.rest().find('"') else {
            self.at = start - 1;
            return Err(self.fault(format_args!("this \" is never closed")));
        };
        let (name, position) = (&self.rest()[..len], self.offset + start);
        self.at = start + len + 1;
        check_name(position, name)?;
        if self.names.contains(&name) {
            return Err(syntax(position, format_args!("`{name}` is given twice")));
        }
        if self.names.push(name).is_err() {
            let hint = format_args!("a table has at most {TABLE_COLUMNS_MAX} columns");
            return Err(Failure::new(ErrorCode::Capacity, position, hint));
        }
        Ok((name, position))
    }

    fn value(&mut self, column: &str) -> Result<JsonValue<'a>, Failure> {
        let words =
            [("null", JsonValue::Null), ("true", JsonValue::Bool(true)), ("false", JsonValue::Bool(false))];
        for (word, value) in words {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        match self.rest().bytes().next() {
            Some(b'"') => self.text_value(column).map(JsonValue::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(JsonValue::Number),
            Some(b'{' | b'[') => {
                let hint = format_args!("`{column}` takes one value, no list and no object");
                Err(Failure::new(ErrorCode::Type, self.offset + self.at, hint))
            }
            _ => Err(self.fault(format_args!("expected a number, \"text\", true, false or null"))),
        }
    }

    /// `-1.5e3`, as JSON has it: no plus, no leading zero, no bare point.
    fn number(&mut self) -> Result<&'a str, Failure> {
        let start = self.at;
        self.take_byte(b"-");
        if !self.take_byte(b"0") {
            self.digits()?;
        }
        if self.take_byte(b".") {
            self.digits()?;
        }
        if self.take_byte(b"eE") {
            self.take_byte(b"+-");
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    /// One digit at least.
    fn digits(&mut self) -> Result<(), Failure> {
        let rest = self.rest();
        let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if len == 0 {
            return Err(self.fault(format_args!("expected a digit")));
        }
        self.at += len;
        Ok(())
    }

    fn text_value(&mut self, column: &str) -> Result<JsonText, Failure> {
        let start = self.at;
        self.at += 1;
        let mut text = JsonText::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                self.at = start;
                return Err(self.fault(format_args!("this \" is never closed")));
            };
            let c = match c {
                '"' => {
                    self.at += 1;
                    return Ok(text);
                }
                '\\' => self.escape()?,
                c if c < ' ' => return Err(self.fault(format_args!("write this character as an escape"))),
                c => {
                    self.at += c.len_utf8();
                    c
                }
            };
            if text.push(c).is_err() {
                let hint = format_args!("`{column}` takes at most {TEXT_BYTES_MAX} bytes");
                return Err(Failure::new(ErrorCode::TooLong, self.offset + start, hint));
            }
        }
    }

    /// `\n`, `\u00fc`, `\ud83d\ude00`
    fn escape(&mut self) -> Result<char, Failure> {
        let start = self.at;
        let plain = match self.text.as_bytes().get(start + 1) {
            Some(c @ (b'"' | b'\\' | b'/')) => Some(char::from(*c)),
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            _ => None,
        };
        if let Some(c) = plain {
            self.at += 2;
            return Ok(c);
        }
        let unit = self.unit();
        let found = match unit {
            Some(high @ 0xD800..0xDC00) => match self.unit() {
                Some(low @ 0xDC00..0xE000) => {
                    char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
                }
                _ => None,
            },
            Some(code) => char::from_u32(code),
            None => None,
        };
        found.ok_or_else(|| {
            self.at = start;
            self.fault(format_args!("this escape is none of JSON's"))
        })
    }

    /// `\uXXXX`, as its number; taken only if it is one.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest().strip_prefix("\\u")?.get(..4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 6;
        u32::from_str_radix(digits, 16).ok()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Whether this comes next, space aside; then it is taken.
    fn take(&mut self, symbol: char) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(symbol);
        self.at += usize::from(found);
        found
    }

    fn take_byte(&mut self, bytes: &[u8]) -> bool {
        let found = self.rest().bytes().next().is_some_and(|byte| bytes.contains(&byte));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: char) -> Result<(), Failure> {
        if self.take(symbol) { Ok(()) } else { Err(self.fault(format_args!("expected `{symbol}`"))) }
    }

    /// A fault where the reader stands.
    fn fault(&self, hint: fmt::Arguments<'_>) -> Failure {
        syntax(self.offset + self.at, hint)
    }
}

impl Member<'_> {
    /// The value as one of `column`, exactly: what does not fit is refused, nothing is rounded but decimals to the
    /// nearest float.
    pub fn value_of(&self, column: &Column<'_>) -> Result<Value<'_>, Failure> {
        let fail = |code, hint: fmt::Arguments<'_>| Err(Failure::new(code, self.value_position, hint));
        let name = column.name;
        if name == TIME_COLUMN.name {
            let hint = format_args!("leave `{name}` out: the board dates rows itself");
            return Err(Failure::new(ErrorCode::Value, self.position, hint));
        }
        match (&self.value, column.kind) {
            (JsonValue::Null, _) => Ok(Value::Null),
            (JsonValue::Bool(v), ColumnType::Bool) => Ok(Value::Bool(*v)),
            (JsonValue::Text(v), ColumnType::Text) => Ok(Value::Text(v)),
            (JsonValue::Text(v), ColumnType::Timestamp) => match time::parse_rfc3339(v) {
                Ok(utc_us) => Ok(Value::Timestamp(utc_us)),
                Err(_) => fail(ErrorCode::Value, format_args!("`{name}` takes 2026-11-18T05:00:00Z")),
            },
            (JsonValue::Number(v), ColumnType::Int) if v.contains(['.', 'e', 'E']) => {
                fail(ErrorCode::Type, format_args!("`{name}` takes whole numbers"))
            }
            (JsonValue::Number(v), ColumnType::Int) => match v.parse() {
                Ok(number) => Ok(Value::Int(number)),
                Err(_) => fail(ErrorCode::Overflow, format_args!("`{name}` takes 64 bits")),
            },
            (JsonValue::Number(v), ColumnType::Float32) => match v.parse::<f32>() {
                Ok(number) if number.is_finite() => Ok(Value::Float32(number)),
                _ => fail(ErrorCode::Overflow, format_args!("`{name}` takes a float of 32 bits")),
            },
            (JsonValue::Number(v), ColumnType::Float64) => match v.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Value::Float64(number)),
                _ => fail(ErrorCode::Overflow, format_args!("`{name}` takes a float of 64 bits")),
            },
            (value, kind) => fail(
                ErrorCode::Type,
                format_args!("`{name}` takes {}, not {}", wanted(kind), value.type_name()),
            ),
        }
    }
}

impl JsonValue<'_> {
    const fn type_name(&self) -> &'static str {
        match self {
            JsonValue::Null => "null",
            JsonValue::Bool(_) => "bool",
            JsonValue::Number(_) => "a number",
            JsonValue::Text(_) => "text",
        }
    }
}

const fn wanted(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Timestamp => "a time as text",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::{string::String, vec::Vec};

    fn read(text: &str) -> Result<Vec<(String, String)>, (ErrorCode, u16, String)> {
        let mut members = Members::new(text, 100);
        let mut found = Vec::new();
        loop {
            match members.next_member() {
                Ok(None) => return Ok(found),
                Ok(Some(member)) => {
                    found.push((member.name.into(), std::format!("{:?}", member.value)));
                }
                Err(failure) => {
                    return Err((failure.code, failure.position - 100, failure.hint.as_str().into()));
                }
            }
        }
    }

    #[test]
    fn a_flat_object_is_read() {
        assert_eq!(read("{}"), Ok(Vec::new()));
        assert_eq!(read(" { } "), Ok(Vec::new()));
        let text = r#"{"a":null,"b" : true ,"c":-0.5e+10,"d":"x\"\\\/\n\u00fc\ud83d\ude00ü"}"#;
        let found: Vec<String> = read(text).unwrap().into_iter().map(|(_, value)| value).collect();
        assert_eq!(
            found,
            ["Null", "Bool(true)", "Number(\"-0.5e+10\")", "Text(\"x\\\"\\\\/\\nü\u{1F600}ü\")"]
        );
    }

    #[test]
    fn a_fault_stands_where_it_is() {
        let fault = |text: &str| read(text).map_err(|(code, position, _)| (code, position)).unwrap_err();
        let syntax = |position| (ErrorCode::Syntax, position);
        assert_eq!(fault(""), syntax(0));
        assert_eq!(fault("[1]"), syntax(0));
        assert_eq!(fault("{a:1}"), syntax(1));
        assert_eq!(fault(r#"{"a"}"#), syntax(4));
        assert_eq!(fault(r#"{"a":1,}"#), syntax(7));
        assert_eq!(fault(r#"{"a":1"#), syntax(6));
        assert_eq!(fault(r#"{"a":1} x"#), syntax(8));
        assert_eq!(fault(r#"{"a":01}"#), syntax(6));
        assert_eq!(fault(r#"{"a":.5}"#), syntax(5));
        assert_eq!(fault(r#"{"a":1.}"#), syntax(7));
        assert_eq!(fault(r#"{"a":1,"a":2}"#), syntax(8));
        assert_eq!(fault(r#"{"a b":1}"#), syntax(2));
        assert_eq!(fault(r#"{"a":"\x"}"#), syntax(6));
        assert_eq!(fault(r#"{"a":"\ud800"}"#), syntax(6));
        assert_eq!(fault("{\"a\":\"\n\"}"), syntax(6));
        assert_eq!(fault(r#"{"a":"x}"#), syntax(5));
        assert_eq!(fault(r#"{"a":[1]}"#), (ErrorCode::Type, 5));
        assert_eq!(fault(r#"{"a":{}}"#), (ErrorCode::Type, 5));
        let long = std::format!("{{\"a\":\"{}\"}}", "é".repeat(TEXT_BYTES_MAX / 2 + 1));
        assert_eq!(fault(&long), (ErrorCode::TooLong, 5));
        let many: Vec<_> = (0..=TABLE_COLUMNS_MAX).map(|n| std::format!("\"c{n}\":1")).collect();
        assert_eq!(fault(&std::format!("{{{}}}", many.join(","))).0, ErrorCode::Capacity);
    }

    fn converted(json: &str, kind: ColumnType) -> Result<String, (ErrorCode, String)> {
        let text = std::format!("{{\"c\":{json}}}");
        let member = Members::new(&text, 0).next_member().unwrap().unwrap();
        let column = Column { name: "c", kind, unit: "" };
        match member.value_of(&column) {
            Ok(value) => Ok(std::format!("{value:?}")),
            Err(failure) => {
                assert_eq!(failure.position, 5);
                assert!(failure.hint.contains("`c`"), "{failure:?}");
                Err((failure.code, failure.hint.as_str().into()))
            }
        }
    }

    #[test]
    fn a_value_that_is_not_its_columns_is_refused() {
        use ColumnType::{Bool, Float32, Float64, Int, Text, Timestamp};
        let ok = |json, kind| converted(json, kind).unwrap();
        let code = |json, kind| converted(json, kind).unwrap_err().0;
        assert_eq!(ok("9223372036854775807", Int), "Int(9223372036854775807)");
        assert_eq!(ok("-9223372036854775808", Int), "Int(-9223372036854775808)");
        assert_eq!(code("9223372036854775808", Int), ErrorCode::Overflow);
        assert_eq!(code("1.0", Int), ErrorCode::Type);
        assert_eq!(code("1e3", Int), ErrorCode::Type);
        assert_eq!(code("true", Int), ErrorCode::Type);
        assert_eq!(ok("20.1", Float32), "Float32(20.1)");
        assert_eq!(code("1e39", Float32), ErrorCode::Overflow);
        assert_eq!(ok("1e39", Float64), "Float64(1e39)");
        assert_eq!(code("1e309", Float64), ErrorCode::Overflow);
        assert_eq!(ok("9007199254740993", Float64), "Float64(9007199254740992.0)");
        assert_eq!(code("\"1\"", Float64), ErrorCode::Type);
        assert_eq!(code("1", Text), ErrorCode::Type);
        assert_eq!(code("1", Bool), ErrorCode::Type);
        assert_eq!(ok("\"1970-01-01T00:00:01Z\"", Timestamp), "Timestamp(1000000)");
        assert_eq!(code("\"yesterday\"", Timestamp), ErrorCode::Value);
        assert_eq!(code("1", Timestamp), ErrorCode::Type);
        for kind in [Bool, Int, Float32, Float64, Timestamp, Text] {
            assert_eq!(ok("null", kind), "Null");
        }
    }

    #[test]
    fn the_board_dates_rows_itself() {
        let member = Members::new(r#"{"timestamp":null}"#, 0).next_member().unwrap().unwrap();
        let column = Column { name: "timestamp", kind: ColumnType::Timestamp, unit: "" };
        let failure = member.value_of(&column).unwrap_err();
        assert_eq!((failure.code, failure.position), (ErrorCode::Value, 2));
    }
}
