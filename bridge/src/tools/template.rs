//! A command with places for arguments: every argument is quoted for the place where it stands. Runs nothing.
//!
//! No argument can end a command, a text or a name, or add a condition: what would is refused and named.

use crate::{
    fault::{Fault, quoted},
    query::check_select,
};
use serde_json::{Map, Value};
use shared::{
    command::{self, Command, nearest},
    limits::COMMAND_BYTES_MAX,
    schema::is_name,
    sql,
};

/// The argument that a SELECT is put into when it is built.
pub(super) const SQL: &str = "sql";

/// A command with places for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<Piece>,
    is_sql: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Argument(String, Place),
}

/// A command, and the SELECT that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// Where a whole SELECT was given, a short one stands in its place.
    pub(super) command: String,
    /// The one that was given, which may be longer than a command.
    pub(super) select: Option<String>,
}

/// What stands in a command for a SELECT that was given.
const SELECT_STAND_IN: &str = "SELECT 1 FROM t";

/// Where an argument stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It is the whole command.
    Whole,
    /// Outside quotes: a name, a number, a boolean, an object.
    Word,
    /// Between two of these quotes of the command, which has no way to write the quote itself.
    Quoted(char),
    /// The whole SELECT of a `sql` command.
    Select,
    /// In the SELECT, outside quotes: a name, a number, a boolean.
    SqlWord,
    /// In the SELECT, between single quotes.
    SqlText,
    /// In the SELECT, between double quotes.
    SqlName,
}

/// A template that is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum TemplateError {
    #[error("the template has no argument `{{{name}}}` to fill in; {hint}")]
    Unknown { name: String, hint: String },
    #[error("the template has a `{{` that is no argument; write {{name}} with a property of input_schema")]
    Brace,
    #[error("the template is no command: {0}; try it with `picolake run`")]
    Command(String),
}

impl Template {
    /// Reads a template whose arguments are the properties of `schema`, and tries it with made-up ones.
    pub(super) fn parse(
        text: &str,
        schema: &Map<String, Value>,
        builds_sql: bool,
    ) -> Result<Self, TemplateError> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut names: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        if builds_sql && !names.contains(&SQL) {
            names.push(SQL);
        }
        let mut scanner = Scanner::new(text);
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            scanner.pass(&rest[..open]);
            let name_on = &rest[open + 1..];
            let name = name_on.split('}').next().filter(|name| is_name(name) && name.len() < name_on.len());
            let name = name.ok_or(TemplateError::Brace)?;
            if !names.contains(&name) {
                let hint = match nearest(name, &names) {
                    Some(near) => format!("did you mean {{{near}}}?"),
                    None => "add it to input_schema's properties".into(),
                };
                return Err(TemplateError::Unknown { name: name.into(), hint });
            }
            pieces.push(Piece::Text(rest[..open].into()));
            rest = &name_on[name.len() + 1..];
            pieces.push(Piece::Argument(name.into(), scanner.place(text, rest)));
        }
        pieces.push(Piece::Text(rest.into()));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        let template = Self { pieces, is_sql: scanner.is_sql };
        template.try_out(properties)?;
        Ok(template)
    }

    /// Whether it is a `sql` or an `explain sql` command.
    pub(super) fn is_sql(&self) -> bool {
        self.is_sql
    }

    /// The command with these arguments.
    pub(super) fn fill(&self, arguments: &Map<String, Value>) -> Result<Filled, Fault> {
        let mut text = String::new();
        let mut select = None;
        for piece in &self.pieces {
            match piece {
                Piece::Text(written) => text.push_str(written),
                Piece::Argument(name, place) => {
                    let value =
                        arguments.get(name).filter(|value| !value.is_null()).ok_or_else(|| missing(name))?;
                    let written = write(value, *place).map_err(|why| wrong(name, value, why))?;
                    if *place == Place::Select {
                        text.push_str(SELECT_STAND_IN);
                        select = Some(written);
                    } else {
                        text.push_str(&written);
                    }
                }
            }
            if text.len() > COMMAND_BYTES_MAX {
                let message =
                    format!("COMMAND_BYTES_MAX: the command has more than {COMMAND_BYTES_MAX} bytes");
                return Err(Fault::new("too_long", message, "shorten the arguments"));
            }
        }
        Ok(Filled { command: text, select })
    }

    /// Fills in an argument of the right type everywhere; what comes of it must be a command.
    fn try_out(&self, properties: Option<&Map<String, Value>>) -> Result<(), TemplateError> {
        let mut arguments = Map::new();
        for piece in &self.pieces {
            let Piece::Argument(name, place) = piece else { continue };
            let schema = properties.and_then(|properties| properties.get(name));
            arguments.insert(name.clone(), sample(schema, *place));
        }
        let text = self.fill(&arguments).map_err(|fault| TemplateError::Command(fault.message))?.command;
        match command::parse(&text) {
            Ok(Command::Sql(sql) | Command::ExplainSql(sql)) => sql::parse(sql.text)
                .map(|_| ())
                .map_err(|failure| TemplateError::Command(failure.hint.to_string())),
            Ok(_) => Ok(()),
            Err(failure) => Err(TemplateError::Command(failure.hint.to_string())),
        }
    }
}

/// A value to try a template with.
fn sample(schema: Option<&Value>, place: Place) -> Value {
    let of = |key| schema.and_then(|schema| schema.get(key));
    match (place, of("type").and_then(Value::as_str)) {
        (Place::Whole, _) => "help".into(),
        (Place::Select, _) => "SELECT * FROM t".into(),
        (_, Some("integer" | "number")) => 1.into(),
        (_, Some("boolean")) => true.into(),
        (_, Some("object")) => serde_json::json!({"x": 1}),
        _ => match of("enum").and_then(|list| list.get(0)) {
            Some(first) => first.clone(),
            None => "x".into(),
        },
    }
}

pub(super) fn missing(name: &str) -> Fault {
    let message = format!("argument `{name}` is missing");
    Fault::new("missing_argument", message, format!("call again with `{name}`")).with("argument", name)
}

fn wrong(name: &str, value: &Value, why: &str) -> Fault {
    let shown = value.as_str().map_or_else(|| quoted(&value.to_string()), quoted);
    let message = format!("argument `{name}` cannot be `{shown}`: {why}");
    Fault::new("wrong_argument", message, format!("correct `{name}` and call again")).with("argument", name)
}

/// Writes a value so that it ends where it stands.
fn write(value: &Value, place: Place) -> Result<String, &'static str> {
    const SCALAR: &str = "it must be a text, a number or a boolean here";
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Object(_) if place == Place::Word => return Ok(value.to_string()),
        _ => return Err(SCALAR),
    };
    if text.contains(|c: char| c.is_control()) {
        return Err("it has control characters or line ends in it");
    }
    match place {
        Place::Whole => Ok(text),
        Place::Quoted(quote) if text.contains(quote) => Err("it has the quote in it that it stands between"),
        Place::Quoted(_) => Ok(text),
        Place::SqlText => Ok(text.replace('\'', "''")),
        Place::SqlName if is_name(&text) => Ok(text),
        Place::Select => {
            check_select(&text).map_err(|_| "it is no SELECT")?;
            Ok(text)
        }
        Place::Word | Place::SqlWord | Place::SqlName => match value {
            Value::Number(number)
                if place == Place::SqlWord && number.as_f64().is_some_and(f64::is_sign_negative) =>
            {
                Ok(format!("({number})"))
            }
            Value::Number(_) | Value::Bool(_) if place != Place::SqlName => Ok(text),
            _ if !is_name(&text) => Err("it is no name: letters, digits and _"),
            _ if place == Place::SqlWord => Ok(format!("\"{text}\"")),
            _ => Ok(text),
        },
    }
}

/// Knows in which quotes the text that it has passed leaves off.
struct Scanner {
    is_sql: bool,
    /// The double quote in which the SELECT of a `sql` command stands was passed.
    in_select: bool,
    quote: Option<char>,
    passed_any: bool,
    /// The last character that was passed opened the SELECT.
    just_opened: bool,
}

impl Scanner {
    fn new(text: &str) -> Self {
        let mut words = text.split_whitespace().map(str::to_ascii_lowercase);
        let first = words.next().unwrap_or_default();
        let is_sql = first == "sql" || first == "explain" && words.next().as_deref() == Some("sql");
        Self { is_sql, in_select: false, quote: None, passed_any: false, just_opened: false }
    }

    fn pass(&mut self, text: &str) {
        for c in text.chars() {
            self.just_opened = false;
            match self.quote {
                Some(quote) if c == quote => self.quote = None,
                Some(_) => {}
                None if c == '"' && self.is_sql && !self.in_select => {
                    (self.in_select, self.just_opened) = (true, true);
                }
                None if c == '\'' || c == '"' => self.quote = Some(c),
                None => {}
            }
        }
        self.passed_any |= !text.is_empty();
    }

    /// The place of an argument that stands here, before `rest`, in the template `whole`.
    fn place(&mut self, whole: &str, rest: &str) -> Place {
        let opened = std::mem::take(&mut self.just_opened);
        let is_whole = whole.starts_with('{') && rest.is_empty() && !self.passed_any;
        self.passed_any = true;
        match (self.in_select, self.quote) {
            _ if is_whole => Place::Whole,
            (true, None) if opened && rest.trim_end() == "\"" => Place::Select,
            (true, None) => Place::SqlWord,
            (true, Some('\'')) => Place::SqlText,
            (true, Some(_)) => Place::SqlName,
            (false, Some(quote)) => Place::Quoted(quote),
            (false, None) => Place::Word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(text: &str) -> Result<Template, TemplateError> {
        let schema = json!({"properties": {
            "database": {"type": "string"}, "table": {"type": "string"}, "word": {"type": "string"},
            "number": {"type": "number"}, "row": {"type": "object"}, "command": {"type": "string"},
        }});
        Template::parse(text, schema.as_object().unwrap(), text.contains("{sql}"))
    }

    fn filled(text: &str, arguments: Value) -> Result<String, String> {
        let fault = |fault: Fault| format!("{}: {}", fault.code, fault.message);
        template(text)
            .unwrap()
            .fill(arguments.as_object().unwrap())
            .map(|filled| filled.command)
            .map_err(fault)
    }

    const HOSTILE: [&str; 10] = [
        "x' OR '1'='1",
        "x\" OR 1=1",
        "x; get status",
        "x\nget status",
        "x\0",
        "a b",
        "x and format = table",
        "}",
        "it's",
        "",
    ];

    #[test]
    fn a_name_is_a_name_and_nothing_else() {
        let text = "get columns where dbms = {database} and table = '{table}'";
        let good = filled(text, json!({"database": "demo", "table": "t"})).unwrap();
        assert_eq!(good, "get columns where dbms = demo and table = 't'");
        for hostile in HOSTILE {
            let error = filled(text, json!({"database": hostile, "table": "t"})).unwrap_err();
            assert!(error.starts_with("wrong_argument: argument `database`"), "{hostile}: {error}");
            if let Ok(text) = filled(text, json!({"database": "demo", "table": hostile})) {
                let parsed = command::parse(&text);
                let is_whole = matches!(parsed, Err(_) | Ok(Command::GetColumns { format: None, .. }));
                assert!(is_whole, "{text}: {parsed:?}");
            }
        }
    }

    #[test]
    fn a_text_in_sql_stays_a_text() {
        let text = "sql {database} \"SELECT {word} FROM {table} WHERE a = '{command}' AND b < {number}\"";
        for hostile in HOSTILE {
            let arguments =
                json!({"database": "d", "word": "w", "table": "t", "command": hostile, "number": -1.5});
            match filled(text, arguments) {
                Err(error) => assert!(error.contains("control characters"), "{hostile}: {error}"),
                Ok(text) => {
                    let Ok(Command::Sql(sql)) = command::parse(&text) else { panic!("{text}") };
                    let select = sql::parse(sql.text).unwrap();
                    assert_eq!(select.tree.nodes.len(), 8, "{text}: no node was added");
                    assert!(text.contains("b < (-1.5)"), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_wrong_template_says_what_to_write() {
        let error = |text| template(text).unwrap_err().to_string();
        assert!(error("get tables where dbms = {databse}").contains("did you mean {database}?"));
        assert!(error("get tables where dbms = {}").contains("no argument"));
        assert!(error("get tabels where dbms = {database}").contains("did you mean `tables`?"));
        assert!(error("sql {database} \"SELECT FROM {table}\"").contains("no command"));
        assert!(template("{command}").is_ok());
        assert!(template("insert {database} {table} {row}").is_ok());
        assert!(template("sql {database} \"{sql}\"").is_ok_and(|template| template.is_sql()));
    }

    #[test]
    fn objects_and_long_texts_are_bounded() {
        let row = json!({"a": "x\n\"}", "b": 1});
        let text =
            filled("insert {database} {table} {row}", json!({"database": "d", "table": "t", "row": row}))
                .unwrap();
        assert_eq!(text, r#"insert d t {"a":"x\n\"}","b":1}"#);
        assert!(command::parse(&text).is_ok());
        let long = filled("{command}", json!({"command": "x".repeat(1 << 20)})).unwrap_err();
        assert!(long.starts_with("too_long"), "{long}");
        assert!(
            filled("{command}", json!({})).unwrap_err().starts_with("missing_argument: argument `command`")
        );
    }
}
