//! `picolake query` and `picolake call`, as a person types them, on the simulated field.

use picolake_tests::picolake;
use serde_json::Value;
use std::{
    io::Write as _,
    process::{Output, Stdio},
};

fn run(arguments: &[&str], input: &str) -> Output {
    let mut process = picolake()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn query_prints_the_rows_of_every_board() {
    let sql = "SELECT _board, _row_id FROM environment WHERE _row_id = 0";
    let rows: Vec<Value> =
        serde_json::from_str(&stdout(&run(&["query", sql, "--demo", "--format", "mcp"], ""))).unwrap();
    assert!(rows.len() <= 3 && rows.iter().all(|row| row["_row_id"] == 0), "{rows:?}");
    let table = stdout(&run(&["query", "SELECT x FROM vibration LIMIT 0", "--demo"], ""));
    assert!(table.starts_with("┌───┐\n│ x │\n"), "{table}");
    let count = "SELECT count(*) AS n FROM power";
    let all = stdout(&run(&["query", count, "--demo", "--format", "mcp"], ""));
    assert!(all.starts_with("[{\"n\":"), "{all}");
    let json = stdout(&run(&["query", count, "--demo", "--board", "pump", "--format", "json"], ""));
    assert!(json.starts_with("{\"Query\":[{\"n\":"), "{json}");
}

#[test]
fn call_answers_each_call_and_says_how_many_failed() {
    let calls = r#"[{"name": "list_databases"}, {"name": "query", "arguments": {"table": "nothing"}}]"#;
    let output = run(&["call", "-", "--demo"], calls);
    assert_eq!(output.status.code(), Some(2));
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["items"][0], "[\"demo\"]");
    assert_eq!((&lines[0]["isError"], &lines[1]["isError"]), (&false.into(), &true.into()));
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 of 2 calls failed"));
    let wrong = run(&["call", "-", "--demo"], "{}");
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("expected a JSON list"), "{wrong:?}");
}

#[test]
fn call_ends_when_its_exports_have() {
    let folder = tempfile::tempdir().unwrap();
    let calls = r#"[{"name": "export", "arguments": {"table": "vibration", "file": "all.jsonl"}},
        {"name": "export", "arguments": {"table": "power", "file": "few.csv", "file_format": "csv"}}]"#;
    let output = run(&["call", "-", "--demo", "--export-folder", folder.path().to_str().unwrap()], calls);
    stdout(&output);
    let mut files: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["all.jsonl", "few.csv"]);
}
