//! The official Python SDK of MCP as a client, over stdio, streamable HTTP and SSE, where Python can be had.

use picolake_tests::{clients, program, serving::Serving};
use std::{path::Path, process::Command};

#[test]
fn the_official_python_client_gets_answers_on_every_transport() {
    let python = match clients::python() {
        Ok(python) => python,
        Err(why) => return clients::skip(&format!("Python with {}", clients::PYTHON_PACKAGE), &why),
    };
    let server = Serving::start(&["--demo"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join("python_sdk.py");
    let runtime = tempfile::tempdir().unwrap();
    let mut client = Command::new(python);
    client.arg(script).arg(program()).arg(&server.url).env("PICOLAKE_RUNTIME_DIR", runtime.path());
    let text = clients::printed(client).unwrap();
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
