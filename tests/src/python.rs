//! A Python with the official SDK of MCP, where one can be had. Knows no script.

use crate::program;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The SDK's package, pinned.
pub const SDK_PACKAGE: &str = "mcp==2.3.0";

/// A Python that has the SDK, made in the target folder at the first time; or why there is none.
pub fn python_with_sdk() -> Result<PathBuf, String> {
    let target = program().ancestors().nth(2).expect("programs are in TARGET/PROFILE").to_owned();
    let folder = target.join("python-sdk");
    let python = folder.join("bin").join("python");
    let has_sdk = || ran(Command::new(&python).args(["-c", "import mcp"]));
    if python.is_file() && has_sdk().is_ok() {
        return Ok(python);
    }
    ran(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    ran(Command::new(&python).args(["-m", "pip", "install", "--quiet", SDK_PACKAGE]))?;
    has_sdk()?;
    Ok(python)
}

/// A script of this package.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

/// What a command printed, or how it failed.
pub fn ran(command: &mut Command) -> Result<Output, String> {
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
