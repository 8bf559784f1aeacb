//! The official Python SDK of MCP as a client, over stdio, streamable HTTP and SSE, where Python can be had.

use picolake_tests::{program, runtime, serving::Serving};
use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The SDK's package, pinned.
const PACKAGE: &str = "mcp==2.3.0";

/// A Python that has the SDK, made in the target folder at the first time; or why there is none.
fn python_with_sdk() -> Result<PathBuf, String> {
    let target = program().ancestors().nth(2).expect("programs are in TARGET/PROFILE").to_owned();
    let folder = target.join("python-sdk");
    let python = folder.join("bin").join("python");
    let has_sdk = || ran(Command::new(&python).args(["-c", "import mcp"]));
    if python.is_file() && has_sdk().is_ok() {
        return Ok(python);
    }
    ran(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    ran(Command::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]))?;
    has_sdk()?;
    Ok(python)
}

fn ran(command: &mut Command) -> Result<Output, String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = errors.lines().rev().take(12).collect();
            Err(format!(
                "{command:?} ended with {}: {}",
                output.status,
                last.into_iter().rev().collect::<Vec<_>>().join("\n")
            ))
        }
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

#[test]
fn the_official_python_client_gets_answers_on_every_transport() {
    let python = match python_with_sdk() {
        Ok(python) => python,
        Err(why) => {
            // Not `eprintln!`: the test runner would keep that to itself.
            let _ = writeln!(io::stderr(), "skipped: no Python with {PACKAGE}: {}", why.replace('\n', " "));
            return;
        }
    };
    let server = Serving::start(&["--demo"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join("python_sdk.py");
    let mut client = Command::new(python);
    client.env(runtime::VARIABLE, runtime::folder()).arg(script).arg(program()).arg(&server.url);
    let output = ran(&mut client).unwrap();
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
