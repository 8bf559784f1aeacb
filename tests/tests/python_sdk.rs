//! The official Python SDK of MCP as a client, over stdio, streamable HTTP and SSE, where Python can be had.

use picolake_tests::{
    program,
    python::{SDK_PACKAGE, python_with_sdk, ran, script},
    serving::Serving,
};
use std::{
    io::{self, Write as _},
    process::Command,
};

#[test]
fn the_official_python_client_gets_answers_on_every_transport() {
    let python = match python_with_sdk() {
        Ok(python) => python,
        Err(why) => {
            // Not `eprintln!`: the test runner would keep that to itself.
            let _ =
                writeln!(io::stderr(), "skipped: no Python with {SDK_PACKAGE}: {}", why.replace('\n', " "));
            return;
        }
    };
    let server = Serving::start(&["--demo"]);
    let output =
        ran(Command::new(python).arg(script("python_sdk.py")).arg(program()).arg(&server.url)).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let ways: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(
        ways,
        [
            "stdio 2026-07-28",
            "stdio-legacy 2025-11-25",
            "http 2026-07-28",
            "http-legacy 2025-11-25",
            "sse 2025-11-25"
        ]
    );
}
