//! Where the repository and its build products are, and how a step of a job is run. Knows no job.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// The Rust target of the firmware.
pub(crate) const FIRMWARE_TARGET: &str = "thumbv7em-none-eabihf";

/// The repository on this machine.
pub(crate) struct Workspace {
    /// The folder of the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// Cargo's target folder, absolute.
    pub(crate) target: PathBuf,
    cargo: OsString,
}

impl Workspace {
    /// Cargo tells a program that it runs where its package is; started by hand, the place of the build counts.
    pub(crate) fn locate() -> Self {
        let package =
            std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&package).parent().map(Path::to_path_buf).unwrap_or_default();
        let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self { root, target, cargo }
    }

    /// A cargo command in the workspace's root, with the target folder that this process uses.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.cargo);
        command.args(arguments).current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// The folder of the benches' results.
    pub(crate) fn bench_results(&self) -> PathBuf {
        self.target.join("bench")
    }
}

/// Runs a step: says what it does, how long it took, and names it when it fails.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("==> {what}");
    let start = Instant::now();
    let outcome = work();
    let verdict = if outcome.is_ok() { "done" } else { "FAILED" };
    println!("==> {what}: {verdict} in {:.1} s", start.elapsed().as_secs_f64());
    outcome.with_context(|| format!("step `{what}`"))
}

/// Runs a command with its output passed through; any exit status but 0 is an error.
pub(crate) fn check(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start `{program}`"))?;
    ensure!(status.success(), "`{}` ended with {status}", command_line(command));
    Ok(())
}

/// Whether a command can be started and ends well; its output is dropped.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// What one would type: the program's name without its folder, and its arguments.
pub(crate) fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_reads_as_typed() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.args(["build", "-p", "shared"]);
        assert_eq!(command_line(&command), "cargo build -p shared");
    }

    #[test]
    fn a_failing_step_is_named() {
        let error = step("the impossible", || -> Result<()> { anyhow::bail!("no") }).unwrap_err();
        assert_eq!(format!("{error:#}"), "step `the impossible`: no");
    }

    #[test]
    fn a_program_that_is_absent_or_fails_does_not_succeed() {
        assert!(succeeds("rustc", &["--version"]));
        assert!(!succeeds("rustc", &["--no-such-option"]));
        assert!(!succeeds("no-such-program-anywhere", &[]));
    }
}
