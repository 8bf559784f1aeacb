//! What a tool is, as `tools.yaml` says it: read and checked. Runs nothing.

use super::template::{Template, TemplateError};
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The standard tools.
const BUILT_IN: &str = include_str!("tools.yaml");
/// What errors call the file of the standard tools.
const BUILT_IN_NAME: &str = "built-in tools.yaml";
/// Tools of a bridge.
const TOOLS_MAX: usize = 256;
/// Characters of a tool's name: what MCP clients take.
const NAME_CHARS_MAX: usize = 64;
/// Bytes of a file of tools.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// One tool.
#[derive(Debug)]
pub struct Definition {
    /// What it is called by.
    pub name: String,
    /// For people.
    pub title: String,
    /// For models.
    pub description: String,
    /// A JSON schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// What it does to the world.
    pub annotations: Annotations,
    pub(super) command: Command,
    pub(super) validator: jsonschema::Validator,
}

/// What a tool does to the world, as MCP's hints say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: bool,
    /// It can destroy something.
    pub destructive: bool,
    /// Twice is the same as once.
    pub idempotent: bool,
    /// It reaches beyond the field.
    pub open_world: bool,
}

impl Default for Annotations {
    fn default() -> Self {
        Self { read_only: true, destructive: false, idempotent: true, open_world: false }
    }
}

/// How a tool's command is made.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) builds_sql: bool,
    pub(super) destination: Destination,
    pub(super) work: Work,
}

/// What a tool runs.
#[derive(Debug)]
pub(super) enum Work {
    /// A line of the command language.
    Command(Template),
    /// Something of the bridge's own.
    Internal(Internal),
}

/// Where a command runs. Which boards are asked is up to the command, not to this: one that names a table is asked of
/// those that have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Destination {
    /// Every board.
    #[default]
    All,
    /// Every board that has the table.
    Network,
    /// This gateway.
    Local,
}

/// What the bridge does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Internal {
    Boards,
    Server,
    Export,
    Job,
    Cancel,
}

impl Internal {
    const ALL: [(&'static str, Internal); 5] = [
        ("boards", Internal::Boards),
        ("server", Internal::Server),
        ("export", Internal::Export),
        ("job", Internal::Job),
        ("cancel", Internal::Cancel),
    ];
}

/// What is wrong with a file of tools.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not YAML of the right shape.
    #[error("{}:{line}: {message}", path.display())]
    Shape {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: u64,
        /// What is wrong, and what to write instead.
        message: String,
    },
    /// A tool is not one.
    #[error("{}:{line}: tool `{tool}`: {message}", path.display())]
    Tool {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: u64,
        /// Which tool.
        tool: String,
        /// What is wrong, and what to write instead.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tools: Vec<Spanned<FileTool>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTool {
    name: String,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    command: Option<Spanned<FileCommand>>,
    input_schema: Option<Spanned<Map<String, Value>>>,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCommand {
    #[serde(rename = "type")]
    kind: Kind,
    template: String,
    #[serde(default)]
    build_sql: bool,
    #[serde(default)]
    destination: Destination,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Get,
    Sql,
    Internal,
}

/// The standard tools, and those of a user's file instead of them, behind them, or hiding them.
pub(super) fn load(user_file: Option<&Path>) -> Result<Vec<Arc<Definition>>, DefinitionError> {
    let mut tools = Vec::new();
    add(&mut tools, Path::new(BUILT_IN_NAME), BUILT_IN)?;
    if let Some(path) = user_file {
        add(&mut tools, path, &read(path)?)?;
    }
    Ok(tools)
}

/// Another number when the file has something else in it, or cannot be read any more. Its time would not tell two
/// writes of one moment apart.
pub(super) fn fingerprint(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    read(path).map_err(|error| error.to_string()).hash(&mut hasher);
    hasher.finish()
}

fn read(path: &Path) -> Result<String, DefinitionError> {
    let read = || {
        if std::fs::metadata(path)?.len() > FILE_BYTES_MAX {
            return Err(std::io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        std::fs::read_to_string(path)
    };
    read().map_err(|source| DefinitionError::Read { path: path.into(), source })
}

fn add(tools: &mut Vec<Arc<Definition>>, path: &Path, text: &str) -> Result<(), DefinitionError> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let message = error.to_string().lines().next().unwrap_or_default().to_string();
        DefinitionError::Shape { path: path.into(), line, message }
    })?;
    let mut seen: Vec<String> = Vec::new();
    for tool in file.tools {
        let line = tool.referenced.line();
        let tool = tool.value;
        let name = tool.name.clone();
        let fail =
            |(line, message)| DefinitionError::Tool { path: path.into(), line, tool: name.clone(), message };
        if seen.contains(&name) {
            return Err(fail((line, "it is there twice; give one another name".into())));
        }
        seen.push(name.clone());
        let place = tools.iter().position(|other| other.name == name);
        match (tool.hidden, place) {
            (true, Some(place)) => drop(tools.remove(place)),
            (true, None) => {
                return Err(fail((line, "there is no such tool to hide; correct the name".into())));
            }
            (false, place) => {
                let tool = Arc::new(checked(tool, line).map_err(fail)?);
                match place {
                    Some(place) => tools[place] = tool,
                    None if tools.len() == TOOLS_MAX => {
                        return Err(fail((
                            line,
                            format!("there are more than {TOOLS_MAX} tools; remove some"),
                        )));
                    }
                    None => tools.push(tool),
                }
            }
        }
    }
    Ok(())
}

type Wrong = (u64, String);

fn checked(tool: FileTool, line: u64) -> Result<Definition, Wrong> {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if tool.name.is_empty() || tool.name.len() > NAME_CHARS_MAX || !tool.name.chars().all(is_name_char) {
        return Err((line, format!("a name has letters, digits, _ and -, at most {NAME_CHARS_MAX}")));
    }
    if tool.description.is_empty() {
        return Err((line, "it has no `description`; say what it does, models choose tools by it".into()));
    }
    let Some(command) = tool.command else {
        return Err((
            line,
            "it has no `command`; write command: { type: get, template: \"get status\" }".into(),
        ));
    };
    let mut input_schema = Map::from_iter([("type".to_string(), Value::from("object"))]);
    let mut schema_line = line;
    if let Some(schema) = tool.input_schema {
        schema_line = schema.referenced.line();
        input_schema.extend(schema.value);
    }
    if input_schema.get("type") != Some(&Value::from("object")) {
        return Err((schema_line, "`input_schema` has another type; write type: object".into()));
    }
    let validator = jsonschema::validator_for(&Value::Object(input_schema.clone()))
        .map_err(|error| (schema_line, format!("`input_schema` is no JSON schema: {error}; correct it")))?;
    let command = checked_command(&command.value, command.referenced.line(), &input_schema)?;
    let title = if tool.title.is_empty() { tool.name.clone() } else { tool.title };
    Ok(Definition {
        name: tool.name,
        title,
        description: tool.description,
        input_schema,
        annotations: tool.annotations,
        command,
        validator,
    })
}

fn checked_command(command: &FileCommand, line: u64, schema: &Map<String, Value>) -> Result<Command, Wrong> {
    let FileCommand { kind, template, build_sql, destination } = command;
    let work = if *kind == Kind::Internal {
        let found = Internal::ALL.iter().find(|(name, _)| name == template);
        let (_, internal) = found.ok_or_else(|| {
            let names: Vec<&str> = Internal::ALL.iter().map(|(name, _)| *name).collect();
            (
                line,
                format!(
                    "`template: {template}`: nothing internal has this name; write one of {}",
                    names.join(", ")
                ),
            )
        })?;
        Work::Internal(*internal)
    } else {
        let parsed = Template::parse(template, schema, *build_sql);
        let template = parsed.map_err(|error: TemplateError| (line, error.to_string()))?;
        if *kind == Kind::Sql && !template.is_sql() {
            return Err((
                line,
                "a template of type sql begins with `sql` or `explain sql`; write type: get".into(),
            ));
        }
        Work::Command(template)
    };
    Ok(Command { builds_sql: *build_sql, destination: *destination, work })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Result<Vec<Arc<Definition>>, String> {
        let mut tools = load(None).unwrap();
        add(&mut tools, Path::new("my.yaml"), text).map_err(|error| error.to_string())?;
        Ok(tools)
    }

    #[test]
    fn the_standard_tools_are_all_there() {
        let tools = load(None).unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        for name in [
            "list_databases",
            "list_tables",
            "get_schema",
            "query",
            "node_status",
            "server_info",
            "list_boards",
            "explain_query",
            "run_command",
            "export",
            "job_status",
            "cancel_job",
            "insert_row",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        for tool in &tools {
            let writes = ["export", "cancel_job", "insert_row"].contains(&tool.name.as_str());
            assert_eq!(tool.annotations.read_only, !writes, "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            // Clients refuse a schema that chooses between shapes at its top.
            assert!(["anyOf", "oneOf", "allOf"].iter().all(|word| !tool.input_schema.contains_key(*word)));
        }
    }

    #[test]
    fn a_file_adds_replaces_and_hides() {
        let text = "tools:\n  - { name: query, hidden: true }\n  - name: list_tables\n    description: x\n    \
                    command: { type: get, template: get status }\n  - name: mine\n    description: y\n    \
                    command: { type: get, template: get version }\n";
        let tools = loaded(text).unwrap();
        let find = |name: &str| tools.iter().find(|tool| tool.name == name);
        assert!(find("query").is_none());
        assert_eq!(find("list_tables").unwrap().description, "x");
        assert_eq!(find("mine").unwrap().title, "mine");
        assert_eq!(tools.len(), load(None).unwrap().len());
    }

    #[test]
    fn a_fault_is_named_with_file_line_and_what_to_write() {
        let tool = |rest: &str| format!("tools:\n\n  - name: mine\n    description: x\n{rest}");
        let get = "    command: { type: get, template: get status }\n";
        for (text, line, said) in [
            ("tool: []".to_string(), 1, "tool"),
            (tool("    commnd: 1\n"), 5, "commnd"),
            (tool(""), 3, "no `command`"),
            (tool("    command: { type: fly, template: x }\n"), 5, "fly"),
            (tool("    command: { type: get, template: get statsu }\n"), 5, "did you mean `status`?"),
            (tool("    command: { type: get, template: \"get tables where dbms = {db}\" }\n"), 5, "{db}"),
            (tool("    command: { type: sql, template: get status }\n"), 5, "type: get"),
            (tool("    command: { type: get, template: \"get tables where dbms = {db\" }\n"), 5, "}"),
            (tool("    command: { type: get, template: 7 }\n"), 5, "no command"),
            (tool("    command: { type: get, template: \"get status\n"), 5, ""),
            (tool("    command: { type: sql, template: \"sql demo \\\"SELECT x FROM t\" }\n"), 5, "command"),
            (tool("    command: { type: get, template: get status, destination: moon }\n"), 5, "moon"),
            (tool("    command: { type: get, template: get status, fast: true }\n"), 5, "fast"),
            (tool(&format!("{get}    annotations: {{ read_only: maybe }}\n")), 6, "invalid boolean"),
            (tool(&format!("{get}    hidden: tru\n")), 6, "invalid boolean"),
            (tool("    command: { type: internal, template: fly }\n"), 5, "boards, server"),
            (tool(&format!("{get}    input_schema: {{ type: array }}\n")), 6, "type: object"),
            (tool(&format!("{get}    input_schema: {{ properties: 7 }}\n")), 6, "JSON schema"),
            ("tools: [{name: nobody, hidden: true}]".to_string(), 1, "no such tool to hide"),
            ("tools: [{name: 'a b', description: x}]".to_string(), 1, "letters, digits"),
        ] {
            let error = loaded(&text).unwrap_err();
            assert!(error.starts_with(&format!("my.yaml:{line}: ")), "{text}\n{error}");
            assert!(error.contains(said), "{text}\n{error}");
        }
        let twice = tool(&format!("{get}  - name: mine\n    description: x\n{get}"));
        assert!(loaded(&twice).unwrap_err().contains("there twice"));
    }
}
