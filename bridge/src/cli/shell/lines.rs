//! What a line of the shell means, and what the tab key offers. Reads and writes nothing.

use shared::command::{Format, TOPICS, nearest, parse};

/// What the shell remembers between two lines.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    /// Of what follows.
    pub(crate) database: Option<String>,
    /// The only board that is asked; none is all.
    pub(crate) board: Option<String>,
    /// How answers are written where the command does not say it.
    pub(crate) format: Format,
}

/// What is to be done about a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Quit,
    /// Show this.
    Say(String),
    /// It cannot be done; why.
    Refuse(String),
    /// Send this command to the boards.
    Ask(String),
    /// Run this SELECT on the shell's database.
    Select(String),
}

/// What a line can begin with besides a command.
const SHELL_WORDS: [&str; 9] = ["use", "select", "exit", "quit", "\\b", "\\d", "\\f", "\\q", "\\?"];

/// What stands within commands.
const INNER_WORDS: [&str; 26] = [
    "where",
    "and",
    "dbms",
    "table",
    "name",
    "format",
    "extract",
    "stat",
    "json",
    "mcp",
    "true",
    "false",
    "bring.json",
    "bring.table",
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "count(*)",
    "timestamp",
    "increments(",
    "period(",
    "now()",
    "rows",
];

const SHELL_HELP: &str = "use D         the database of what follows
SELECT …      runs on that database; the answer is whole
\\b BOARD      asks only this board; \\b alone asks all
\\d            its tables; \\d TABLE its columns
\\f F          format of answers: table, json, mcp
\\q            quit
help          the commands of the boards";

impl Shell {
    pub(crate) fn new(database: Option<String>, board: Option<String>) -> Self {
        Self { database, board, format: Format::Table }
    }

    pub(crate) fn prompt(&self) -> String {
        let board = self.board.as_deref().unwrap_or("picolake");
        match &self.database {
            Some(database) => format!("{board}/{database}> "),
            None => format!("{board}> "),
        }
    }

    /// Understands one line.
    pub(crate) fn line(&mut self, line: &str) -> Action {
        let line = line.trim();
        let line = line.strip_suffix(';').unwrap_or(line).trim_end();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word.to_ascii_lowercase().as_str() {
            "" => Action::Nothing,
            "\\q" | "exit" | "quit" => Action::Quit,
            "\\?" => Action::Say(SHELL_HELP.into()),
            "\\d" => self.describe(rest),
            "\\f" => self.set_format(rest),
            "use" => self.use_database(rest),
            "\\b" => {
                self.board = (!rest.is_empty()).then(|| rest.into());
                Action::Nothing
            }
            "select" | "with" => Action::Select(line.into()),
            other if other.starts_with('\\') => {
                Action::Refuse(format!("there is no {word}; \\? lists what there is"))
            }
            _ => Action::Ask(line.into()),
        }
    }

    /// A SELECT as a command, for a board that is asked directly.
    pub(crate) fn select_command(&self, sql: &str) -> Result<String, &'static str> {
        match &self.database {
            Some(database) => Ok(format!("sql {database} \"{sql}\"")),
            None => Err("which database? type `use D` first; get databases lists them"),
        }
    }

    fn use_database(&mut self, name: &str) -> Action {
        // The command language decides what a name is.
        if name.is_empty() || parse(&format!("get tables where dbms = {name}")).is_err() {
            return Action::Refuse("use needs the name of a database; get databases lists them".into());
        }
        self.database = Some(name.into());
        Action::Nothing
    }

    fn describe(&self, table: &str) -> Action {
        let (database, table) = match table.split_once('.') {
            Some((database, table)) => (Some(database), table),
            None => (self.database.as_deref(), table),
        };
        Action::Ask(match (database, table) {
            (None, "") => "blockchain get table".into(),
            (None, _) => return Action::Refuse("which database? type `use D` first, or \\d D.TABLE".into()),
            (Some(database), "") => format!("get tables where dbms = {database}"),
            (Some(database), table) => format!("get columns where dbms = {database} and table = {table}"),
        })
    }

    fn set_format(&mut self, name: &str) -> Action {
        let all = [Format::Table, Format::Json, Format::Mcp];
        match all.into_iter().find(|format| format.name().eq_ignore_ascii_case(name)) {
            Some(format) => {
                self.format = format;
                Action::Nothing
            }
            None => {
                let near = nearest(name, &all.map(Format::name));
                Action::Refuse(near.map_or("a format is table, json or mcp".into(), |near| {
                    format!("there is no format `{name}`; did you mean `{near}`?")
                }))
            }
        }
    }
}

/// Where the word that is being typed begins, and the words it can become.
pub(crate) fn completions(before: &str, names: &[String]) -> (usize, Vec<String>) {
    let start = before.rfind([' ', '\t', '=', '(', ',']).map_or(0, |space| space + 1);
    let typed = &before[start..];
    let words: Vec<&str> = before[..start].split_whitespace().collect();
    let words = if words.first().is_some_and(|word| word.eq_ignore_ascii_case("help")) {
        &words[1..]
    } else {
        &words
    };
    let depth = words.len();
    let follows = |known: &[&str]| {
        known.len() > depth && words.iter().zip(known).all(|(word, known)| word.eq_ignore_ascii_case(known))
    };
    let mut found: Vec<&str> =
        TOPICS.iter().filter(|topic| follows(topic.words)).map(|topic| topic.words[depth]).collect();
    if before[..start].trim().is_empty() {
        found.extend(SHELL_WORDS);
    } else if found.is_empty() {
        found.extend(INNER_WORDS);
        found.extend(names.iter().map(String::as_str));
    }
    found.retain(|word| {
        word.get(..typed.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(typed)) && *word != typed
    });
    found.dedup();
    (start, found.into_iter().map(str::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> Action {
        Action::Ask(text.into())
    }

    #[test]
    fn lines_become_commands() {
        let mut shell = Shell::new(None, Some("pump".into()));
        assert_eq!(shell.line("  "), Action::Nothing);
        assert_eq!(shell.line("get status;"), ask("get status"));
        assert_eq!(shell.line("SELECT 1"), Action::Select("SELECT 1".into()));
        assert!(shell.select_command("SELECT 1").unwrap_err().contains("use D"));
        assert_eq!(shell.line("\\d"), ask("blockchain get table"));
        assert_eq!(shell.line("\\d demo.t"), ask("get columns where dbms = demo and table = t"));
        assert!(matches!(shell.line("use no name"), Action::Refuse(_)));
        assert_eq!(shell.prompt(), "pump> ");
        assert_eq!(shell.line("USE demo"), Action::Nothing);
        assert_eq!(shell.prompt(), "pump/demo> ");
        assert_eq!(shell.line("select temp from t ;"), Action::Select("select temp from t".into()));
        assert_eq!(shell.line("\\d"), ask("get tables where dbms = demo"));
        assert_eq!(shell.line("\\d t"), ask("get columns where dbms = demo and table = t"));
        assert_eq!(shell.line("\\f JSON"), Action::Nothing);
        assert_eq!(shell.format, Format::Json);
        assert!(matches!(shell.line("\\f jsno"), Action::Refuse(why) if why.contains("`json`")));
        assert!(matches!(shell.line("\\x"), Action::Refuse(_)));
        assert_eq!(shell.line("\\b"), Action::Nothing);
        assert_eq!(shell.prompt(), "picolake/demo> ");
        assert_eq!((shell.line("\\b mill"), shell.prompt()), (Action::Nothing, "mill/demo> ".into()));
        assert_eq!(shell.line("\\q"), Action::Quit);
    }

    #[test]
    fn what_the_shell_sends_is_a_command() {
        let mut shell = Shell::new(Some("demo".into()), None);
        for line in ["\\d", "\\d t", "select \"a b\" from t where x = 'y'", "get status"] {
            let command = match shell.line(line) {
                Action::Ask(command) => command,
                Action::Select(sql) => shell.select_command(&sql).unwrap(),
                other => panic!("{line}: {other:?}"),
            };
            parse(&command).unwrap_or_else(|failure| panic!("{command}: {failure:?}"));
        }
    }

    #[test]
    fn the_tab_key_offers_what_can_follow() {
        let names = ["temp", "environment", "demo"].map(String::from);
        for (before, start, words) in [
            ("get st", 4, &["status"][..]),
            ("GET ro", 4, &["rows"]),
            ("get rows ", 9, &["count"]),
            ("se", 0, &["set", "select"]),
            ("help bl", 5, &["blockchain"]),
            ("get status wh", 11, &["where", "WHERE"]),
            ("get tables where dbms=d and format=js", 35, &["json"]),
            ("SELECT te", 7, &["temp"]),
            ("select avg(te", 11, &["temp"]),
            ("SELECT temp FROM env", 17, &["environment"]),
            ("use de", 4, &["demo"]),
            ("\\d en", 3, &["environment"]),
            ("ü", 0, &[]),
        ] {
            assert_eq!(
                completions(before, &names),
                (start, words.iter().map(|word| (*word).into()).collect()),
                "{before}"
            );
        }
    }
}
