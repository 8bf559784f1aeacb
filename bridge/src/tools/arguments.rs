//! A call's arguments: defaults are applied, and the tool's schema is enforced. Errors name the argument.

use super::{Definition, template::missing};
use crate::fault::{Fault, quoted};
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};
use shared::{
    command::{Format, nearest},
    schema::is_name,
};

/// Bytes of all arguments of a call together.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// The argument that goes on with an earlier answer.
const CURSOR: &str = "cursor";
/// What may stand beside it: everything else was said with the first page.
const BESIDE_CURSOR: [&str; 2] = ["format", "limit"];

/// The arguments with the schema's defaults where they were not given, checked.
pub(super) fn prepare(
    definition: &Definition,
    mut arguments: Map<String, Value>,
) -> Result<Map<String, Value>, Fault> {
    let sizes = || arguments.iter().map(|(name, value)| (name.len() + size(value), name));
    if sizes().map(|(bytes, _)| bytes).sum::<usize>() > ARGUMENTS_BYTES_MAX {
        let longest = sizes().max().map(|(_, name)| quoted(name)).unwrap_or_default();
        let message = format!(
            "the arguments have more than {ARGUMENTS_BYTES_MAX} bytes together; the longest is `{longest}`"
        );
        return Err(Fault::new("too_long", message, "shorten it").with("argument", longest));
    }
    let properties = definition.input_schema.get("properties").and_then(Value::as_object);
    arguments.retain(|_, value| !value.is_null()); // as if it were not given
    let is_known = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
    if is_known(CURSOR) && arguments.contains_key(CURSOR) {
        let is_too_much = |name: &&String| {
            *name != CURSOR && !BESIDE_CURSOR.contains(&name.as_str()) && is_known(name.as_str())
        };
        if let Some(name) = arguments.keys().find(is_too_much) {
            let message = format!("argument `{name}` cannot change an answer that `cursor` goes on with");
            let action =
                "give the cursor alone or with limit and format; or leave the cursor out to ask anew";
            return Err(Fault::new("wrong_argument", message, action).with("argument", name.as_str()));
        }
    }
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(default) = schema.get("default")
            && !arguments.contains_key(name)
        {
            arguments.insert(name.clone(), default.clone());
        }
    }
    let arguments = Value::Object(arguments);
    if let Some(error) = definition.validator.iter_errors(&arguments).next() {
        let names: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        return Err(refused(&error, &names));
    }
    match arguments {
        Value::Object(arguments) => Ok(arguments),
        _ => Ok(Map::new()),
    }
}

/// About how much text a value has; it is not written out for that.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(|value| size(value) + 1).sum(),
        Value::Object(map) => map.iter().map(|(name, value)| name.len() + size(value) + 2).sum(),
        _ => 8,
    }
}

fn refused(error: &jsonschema::ValidationError<'_>, names: &[&str]) -> Fault {
    let path = error.instance_path().to_string();
    let argument = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    match error.kind() {
        ValidationErrorKind::Required { property } if argument.is_empty() => {
            missing(property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } if argument.is_empty() => {
            let name = unexpected.first().map(String::as_str).unwrap_or_default();
            let action = match nearest(name, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "call it without arguments".into(),
                None => format!("it takes: {}", names.join(", ")),
            };
            let message = format!("there is no argument `{}`", quoted(name));
            Fault::new("unknown_argument", message, action).with("argument", quoted(name))
        }
        _ => {
            let message = format!("argument `{argument}`: {}", quoted(&error.to_string()));
            let action = format!("correct `{argument}` as the tool's input schema says");
            Fault::new("wrong_argument", message, action).with("argument", argument).with("path", path)
        }
    }
}

/// The arguments that mean the same in every tool.
#[derive(Clone, Debug, Default)]
pub(super) struct Usual {
    pub(super) boards: Option<Vec<String>>,
    pub(super) format: Option<Format>,
    pub(super) limit: Option<u64>,
    pub(super) cursor: Option<String>,
    pub(super) database: Option<String>,
    pub(super) is_strict: bool,
    /// One board was asked, and the answer is its own: no name is beside it.
    pub(super) is_plain: bool,
    /// The tool runs on the gateway alone.
    pub(super) is_local: bool,
}

impl Usual {
    pub(super) fn of(arguments: &Map<String, Value>) -> Result<Self, Fault> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let format = match text("format") {
            None => None,
            Some("mcp") => Some(Format::Mcp),
            Some("json") => Some(Format::Json),
            Some("table") => Some(Format::Table),
            Some(_) => {
                let action = "write mcp, json or table";
                return Err(Fault::new("wrong_argument", "argument `format` is no format", action));
            }
        };
        let database = text("database").map(str::to_string);
        if database.as_deref().is_some_and(|name| !is_name(name)) {
            let message = "argument `database` is no name: letters, digits and _";
            return Err(Fault::new("wrong_argument", message, "name a database").with("argument", "database"));
        }
        Ok(Self {
            boards: arguments
                .get("boards")
                .and_then(Value::as_array)
                .map(|list| list.iter().filter_map(Value::as_str).map(str::to_string).collect()),
            format,
            limit: arguments.get("limit").and_then(Value::as_u64),
            cursor: text("cursor").map(str::to_string),
            database,
            is_strict: arguments.get("strict").and_then(Value::as_bool).unwrap_or(false),
            is_plain: false,
            is_local: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::definition, *};
    use serde_json::json;

    fn prepared(tool: &str, arguments: Value) -> Result<Value, (String, String)> {
        let tools = definition::load(None).unwrap();
        let definition = tools.iter().find(|other| other.name == tool).unwrap();
        let arguments = arguments.as_object().unwrap().clone();
        match prepare(definition, arguments) {
            Ok(arguments) => Ok(arguments.into()),
            Err(fault) => Err((fault.code.into(), fault.message + "; " + &fault.suggested_action)),
        }
    }

    #[test]
    fn defaults_are_applied() {
        let arguments = prepared("query", json!({"table": "t", "where": null})).unwrap();
        assert_eq!(
            arguments,
            json!({"table": "t", "select": ["*"], "limit": 100, "strict": false, "format": "mcp"})
        );
    }

    #[test]
    fn a_cursor_stands_alone_or_with_limit_and_format() {
        let going_on = json!({"cursor": "c", "limit": 5, "format": "json", "table": null});
        let arguments = prepared("query", going_on).unwrap();
        assert_eq!((&arguments["cursor"], &arguments["limit"]), (&json!("c"), &json!(5)));
    }

    #[test]
    fn each_wrong_argument_is_named() {
        for (tool, arguments, code, named) in [
            ("list_tables", json!({}), "missing_argument", "`database`"),
            ("list_tables", json!({"database": null}), "missing_argument", "`database`"),
            (
                "list_tables",
                json!({"databse": "x", "database": "y"}),
                "unknown_argument",
                "did you mean `database`?",
            ),
            ("list_tables", json!({"database": 7}), "wrong_argument", "`database`"),
            ("query", json!({"limit": 0}), "wrong_argument", "`limit`"),
            ("query", json!({"limit": "many"}), "wrong_argument", "`limit`"),
            ("query", json!({"format": "xml"}), "wrong_argument", "`format`"),
            ("query", json!({"boards": []}), "wrong_argument", "`boards`"),
            ("query", json!({"select": [1]}), "wrong_argument", "`select`"),
            ("query", json!({"where": "x".repeat(1 << 20)}), "too_long", "`where`"),
            (
                "query",
                json!({"where": "x".repeat(40_000), "sql": "x".repeat(30_000)}),
                "too_long",
                "the longest is `where`",
            ),
            ("query", json!({"cursor": "c", "limit": 5, "table": "t"}), "wrong_argument", "`table`"),
            ("query", json!({"cursor": "c", "strict": true}), "wrong_argument", "`strict`"),
            ("run_command", json!({"cursor": "c", "command": "help"}), "wrong_argument", "`command`"),
            ("query", json!({"cursor": "c", "tabel": "t"}), "unknown_argument", "did you mean `table`?"),
        ] {
            let (found, message) = prepared(tool, arguments.clone()).unwrap_err();
            assert_eq!(found, code, "{message}");
            assert!(message.contains(named), "{message}");
            assert!(message.len() < 400, "{message}");
        }
    }
}
