//! What must hold before a change goes in: formatting, lints, then the whole test run.

use anyhow::{Result, ensure};

use crate::image::{QEMU_BOARD, QEMU_BOARD_ARGUMENTS, real_board_cargo};
use crate::tally::Tally;
use crate::workspace::{Workspace, check, step};
use crate::{setup, test};

const DENY_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    step("rustfmt and clippy are there", || components(workspace))?;
    step("formatting", || check(&mut workspace.cargo(&["fmt", "--all", "--check"])))?;
    step("formatting of the real board", || check(&mut real_board_cargo(workspace, &["fmt", "--check"])?))?;
    // The boards' lints need the firmware's target.
    step("set-up", || setup::run(workspace))?;
    step("lints of the host packages", || {
        let arguments = ["clippy", "--workspace", "--exclude", QEMU_BOARD, "--all-targets"];
        check(workspace.cargo(&arguments).args(DENY_WARNINGS))
    })?;
    step("lints of the QEMU board", || {
        check(workspace.cargo(&["clippy"]).args(QEMU_BOARD_ARGUMENTS).args(DENY_WARNINGS))
    })?;
    step("lints of the QEMU board with all its features", || {
        let mut clippy = workspace.cargo(&["clippy"]);
        check(clippy.args(QEMU_BOARD_ARGUMENTS).arg("--all-features").args(DENY_WARNINGS))
    })?;
    step("lints of the real board", || {
        check(real_board_cargo(workspace, &["clippy", "--release"])?.args(DENY_WARNINGS))
    })?;
    test::run(workspace, &[], tally)
}

fn components(workspace: &Workspace) -> Result<()> {
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let there =
            workspace.cargo(&[command, "--version"]).output().is_ok_and(|output| output.status.success());
        ensure!(there, "`cargo {command}` is missing; install it: rustup component add {component}");
    }
    Ok(())
}
