//! What MCP clients get, to the byte: `tools/list`, and a call of each tool in each format that it has, on the
//! simulated field over stdio, against the files in `tests/golden`.
//!
//! `PICOLAKE_GOLDEN=write cargo test -p picolake-tests --test golden` writes the files anew; read their difference.

#[path = "golden/normal.rs"]
mod normal;

use normal::normal;
use picolake_tests::serving::Piped;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long the first rows, or an export of them, may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fields of a board's status that time and the machine's load change.
const COUNTS_ROWS: &[&str] = &["rows", "rows_missed"];
/// Fields of a job that may or may not have got further before its first status is told.
const GOES_ON: &[&str] = &["boards", "boards_done", "bytes", "rows", "state"];

#[test]
fn every_answer_is_what_its_file_says() {
    let exports = tempfile::tempdir().unwrap();
    let mut client = Client::start(&["--demo", "--export-folder", exports.path().to_str().unwrap()]);
    let mut golden = Golden::new();
    let list = client.ask("tools/list", json!({}));
    golden.compare("tools_list.json", &pretty(&list));
    client.wait_for_rows(&["greenhouse", "pump", "mill"]);

    let first_rows = json!({"table": "power", "where": "_row_id < 2", "limit": 4,
        "select": ["_board", "_row_id", "voltage", "current", "state"]});
    let groups = json!({"table": "power", "where": "_row_id < 2", "boards": ["mill"], "group_by": ["state"],
        "select": ["state", "count(*) AS n", "max(voltage) AS highest"]});
    let times = json!({"table": "environment", "where": "_row_id < 1", "select": ["timestamp", "_row_id"]});
    let all_boards = json!({"table": "power", "select": ["count(*)"], "format": "mcp"});
    let row = json!({"database": "demo", "table": "power", "row": {"voltage": 1.5}, "boards": ["pump"]});
    let plan = json!({"table": "power", "order_by": ["voltage DESC"], "where": "voltage > 200"});
    let export = |file: &str, file_format: &str| {
        json!({"sql": "SELECT _row_id, voltage, state FROM power WHERE _row_id < 2", "file": file,
            "file_format": file_format})
    };
    let mut calls = Calls { list, called: BTreeSet::new() };
    for (file, tool, arguments, fields) in [
        ("list_databases", "list_databases", json!({}), &[][..]),
        ("list_tables", "list_tables", json!({"database": "demo"}), &[]),
        ("get_schema", "get_schema", json!({"database": "demo", "table": "power"}), &[]),
        ("query", "query", first_rows, &[]),
        ("query_groups", "query", groups, &[]),
        ("query_times", "query", times, &[]),
        ("query_all_boards", "query", all_boards, &[]),
        ("explain_query", "explain_query", plan, &[]),
        ("node_status", "node_status", json!({}), COUNTS_ROWS),
        ("server_info", "server_info", json!({}), &[]),
        ("list_boards", "list_boards", json!({}), &[]),
        ("run_command", "run_command", json!({"command": "blockchain get table where dbms = demo"}), &[]),
        ("run_command_help", "run_command", json!({"command": "help", "format": "table"}), &[]),
        ("insert_row_refused", "insert_row", row.clone(), &[]),
    ] {
        calls.compare(&mut client, &mut golden, file, tool, &arguments, fields);
    }

    for (file, exported, file_format) in
        [("export", "rows.jsonl", "jsonl"), ("export_csv", "rows.csv", "csv")]
    {
        calls.compare(&mut client, &mut golden, file, "export", &export(exported, file_format), GOES_ON);
        client.wait_for_jobs();
        golden.compare(exported, &fs::read_to_string(exports.path().join(exported)).unwrap());
    }
    let job = client.jobs()[0]["job"].clone();
    calls.compare(&mut client, &mut golden, "job_status", "job_status", &json!({"job": job}), &[]);
    calls.compare(&mut client, &mut golden, "job_status_all", "job_status", &json!({}), &[]);
    calls.compare(&mut client, &mut golden, "cancel_job", "cancel_job", &json!({"job": job}), &[]);

    let config = exports.path().join("picolake.yaml");
    fs::write(&config, "boards: [{name: pump, link: 'sim:pump', writable: true}]\narchive: {enabled: false}")
        .unwrap();
    let mut writer = Client::start(&["--config", config.to_str().unwrap()]);
    writer.wait_for_rows(&["pump"]);
    calls.compare(&mut writer, &mut golden, "insert_row", "insert_row", &row, &[]);

    let listed: BTreeSet<String> = calls.tools().map(|tool| text(&tool["name"])).collect();
    assert_eq!(calls.called, listed, "each tool is called");
    golden.end();
}

// ---- The client ----

/// A client that has one request under way at a time.
struct Client {
    server: Piped,
    last_id: u64,
}

impl Client {
    fn start(arguments: &[&str]) -> Self {
        Self { server: Piped::start(arguments), last_id: 0 }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.server.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut answer = self.server.receive().expect("an answer");
        assert_eq!(answer["id"], id, "only the answer comes: {answer}");
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].take()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The first item of an answer that must be good.
    fn data(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
        serde_json::from_str(&text(&result["content"][0]["text"])).unwrap()
    }

    /// Asks until each of these boards has the rows that are compared.
    fn wait_for_rows(&mut self, boards: &[&str]) {
        let rows = json!({"table": "power", "where": "_row_id < 2", "select": ["_row_id"], "boards": boards});
        let others =
            json!({"table": "environment", "where": "_row_id < 1", "select": ["_row_id"], "boards": boards});
        self.ask_until(&format!("the first rows of {boards:?}"), |client| {
            let mut count = |query| {
                let result = client.call("query", query);
                let rows = serde_json::from_str::<Value>(&text(&result["content"][0]["text"])).unwrap();
                rows.as_array().map_or(0, Vec::len) // an error is no list: a board comes up
            };
            count(&rows) == 2 * boards.len() && count(&others) == boards.len()
        });
    }

    fn jobs(&mut self) -> Vec<Value> {
        self.data("job_status", &json!({})).as_array().unwrap().clone()
    }

    fn wait_for_jobs(&mut self) {
        self.ask_until("the end of all jobs", |client| {
            client.jobs().iter().all(|job| job["state"] != "running")
        });
    }

    fn ask_until(&mut self, what: &str, is_so: impl Fn(&mut Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < PATIENCE, "{what} did not come in {PATIENCE:?}");
        }
    }
}

/// The calls that were compared, of the tools that are listed.
struct Calls {
    list: Value,
    called: BTreeSet<String>,
}

impl Calls {
    fn tools(&self) -> impl Iterator<Item = &Value> {
        self.list["tools"].as_array().expect("tools are listed").iter()
    }

    /// Compares the answer in each format that the tool has, or in the one that the arguments name.
    fn compare(
        &mut self,
        client: &mut Client,
        golden: &mut Golden,
        file: &str,
        tool: &str,
        arguments: &Value,
        fields: &[&str],
    ) {
        let listed = self.tools().find(|listed| listed["name"] == tool).expect(tool);
        let formats = listed["inputSchema"]["properties"]["format"]["enum"].as_array().cloned();
        let formats = formats.filter(|_| arguments.get("format").is_none());
        self.called.insert(tool.to_owned());
        let mut one = |name: &str, arguments: &Value| {
            let result = normal(&client.call(tool, arguments), fields);
            let mut call = json!({"tool": tool, "arguments": arguments});
            if let Some(job) = call["arguments"].get_mut("job") {
                *job = "<job>".into();
            }
            golden.compare(name, &pretty(&json!({"call": call, "result": result})));
        };
        let Some(formats) = formats else {
            return one(&format!("{file}.json"), arguments);
        };
        assert!(formats.len() > 1, "{tool} has formats");
        for format in formats {
            let mut arguments = arguments.clone();
            arguments["format"] = format.clone();
            one(&format!("{file}.{}.json", text(&format)), &arguments);
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text, not {value}")).to_owned()
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

// ---- The files ----

/// The files, and what was found to differ from them.
struct Golden {
    folder: PathBuf,
    is_written: bool,
    names: BTreeSet<String>,
    differences: Vec<String>,
}

impl Golden {
    fn new() -> Self {
        let is_written = match std::env::var("PICOLAKE_GOLDEN") {
            Err(_) => false,
            Ok(value) if value == "write" => true,
            Ok(value) => panic!("PICOLAKE_GOLDEN is `{value}`; write `write`, or leave it out"),
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
        Self { folder, is_written, names: BTreeSet::new(), differences: Vec::new() }
    }

    fn compare(&mut self, name: &str, found: &str) {
        assert!(self.names.insert(name.to_owned()), "{name} is compared once");
        let path = self.folder.join(name);
        if self.is_written {
            fs::create_dir_all(&self.folder).unwrap();
            fs::write(&path, found).unwrap();
            return;
        }
        let expected = fs::read_to_string(&path).unwrap_or_else(|error| format!("({error})\n"));
        if expected != found {
            self.differences
                .push(format!("---- tests/golden/{name} says:\n{expected}---- the answer is:\n{found}"));
        }
    }

    /// Tells every difference, and every file that nothing was compared with.
    fn end(mut self) {
        for entry in fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if self.names.contains(&name) {
                continue;
            }
            if self.is_written {
                fs::remove_file(entry.path()).unwrap();
            } else {
                self.differences.push(format!("---- tests/golden/{name} is no answer to any call\n"));
            }
        }
        assert!(
            self.differences.is_empty(),
            "{} differ; if they should, PICOLAKE_GOLDEN=write writes the files anew\n{}",
            self.differences.len(),
            self.differences.concat()
        );
    }
}
