//! The test run: images, sizes, then `cargo test` with its output passed through and counted.

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::image::{self, IMAGE_VARIABLE, QEMU_BOARD};
use crate::relay::{self, Stream};
use crate::tally::Tally;
use crate::workspace::{Workspace, command_line, step};
use crate::{setup, size};

/// Tells seeded tests to run every case instead of a few.
const CASES_VARIABLE: &str = "PICOLAKE_CASES";

/// The test programs whose cases come from seeds. Only these are built: optimised, that takes long.
const SEEDED: [&str; 7] = ["archive", "faults", "fleet", "oracle", "sqlite", "protocol", "frames"];

/// Everything: set-up, every image, sizes, every host package's tests.
pub(crate) fn run(workspace: &Workspace, filter: &[String], tally: &mut Tally) -> Result<()> {
    step("set-up", || setup::run(workspace))?;
    let elf = step("image of the QEMU board", || image::build(workspace, &[]))?;
    step("image of the real board", || image::build_real_board(workspace))?;
    step("sizes", || size::check_image(workspace, &elf))?;
    let mut tests = workspace.cargo(&["test", "--workspace", "--exclude", QEMU_BOARD]);
    step("tests", || run_tests(&mut tests, filter, &elf, tally))
}

/// All seeded cases of the packages that have some, optimised.
pub(crate) fn soak(workspace: &Workspace, filter: &[String], tally: &mut Tally) -> Result<()> {
    step("set-up", || setup::run(workspace))?;
    let elf = step("image of the QEMU board", || image::build(workspace, &[]))?;
    let mut tests = workspace.cargo(&["test", "--release", "-p", "picolake-tests", "-p", "shared"]);
    for name in SEEDED {
        tests.args(["--test", name]);
    }
    tests.env(CASES_VARIABLE, "all");
    step("tests with all cases", || run_tests(&mut tests, filter, &elf, tally))
}

fn run_tests(command: &mut Command, filter: &[String], elf: &Path, tally: &mut Tally) -> Result<()> {
    command.arg("--no-fail-fast").env(IMAGE_VARIABLE, elf);
    if !filter.is_empty() {
        command.arg("--").args(filter);
    }
    let status = relay::run(command, |stream, line| {
        let text = String::from_utf8_lossy(line);
        match stream {
            Stream::Stdout => tally.read_stdout(text.trim_end()),
            Stream::Stderr => tally.read_stderr(text.trim_end()),
        }
        pass_on(stream, line)
    })?;
    if !tally.failed_names().is_empty() {
        eprintln!("\nfailed tests:");
        tally.failed_names().iter().for_each(|name| eprintln!("  {name}"));
    }
    if !status.success() {
        bail!("`{}` ended with {status}", command_line(command));
    }
    ensure!(tally.failed() == 0, "tests failed, but cargo's exit status says otherwise");
    ensure!(tally.programs() > 0, "no test program printed a result");
    Ok(())
}

fn pass_on(stream: Stream, line: &[u8]) -> Result<()> {
    let written = match stream {
        Stream::Stdout => io::stdout().write_all(line).and_then(|()| io::stdout().flush()),
        Stream::Stderr => io::stderr().write_all(line),
    };
    written.context("cannot pass output on")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    // What these scripts print goes on to this program's own output, so they print no line that would be counted there.
    fn outcome(script: &str) -> Result<()> {
        let mut tally = Tally::default();
        run_tests(Command::new("sh").args(["-c", script]), &[], Path::new("image"), &mut tally)
    }

    #[test]
    fn a_run_without_any_result_is_an_error() {
        assert!(outcome("exit 0").unwrap_err().to_string().contains("no test program"));
    }

    #[test]
    fn a_run_that_ends_badly_is_an_error_that_names_the_command() {
        let error = outcome("exit 3").unwrap_err().to_string();
        assert!(error.starts_with("`sh -c exit 3 --no-fail-fast` ended with"), "{error}");
    }

    #[test]
    fn the_tests_are_told_which_image_to_boot() {
        let error = outcome("test \"$PICOLAKE_QEMU_IMAGE\" = image").unwrap_err().to_string();
        assert!(error.contains("no test program"), "{error}");
    }
}
