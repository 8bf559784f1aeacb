//! Builds the firmware images: the QEMU board's, which the tests boot, and the real board's, which must compile.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::workspace::{FIRMWARE_TARGET, Workspace, check};

/// The package and the program of the QEMU board.
pub(crate) const QEMU_BOARD: &str = "mps2-an386";

/// What a cargo command needs to mean the QEMU board's image.
pub(crate) const QEMU_BOARD_ARGUMENTS: [&str; 6] =
    ["-p", QEMU_BOARD, "--profile", "firmware", "--target", FIRMWARE_TARGET];

/// The variable that tells tests and benches which image to boot.
pub(crate) const IMAGE_VARIABLE: &str = "PICOLAKE_QEMU_IMAGE";

/// The real board, a package outside the workspace.
const REAL_BOARD: &str = "firmware/boards/nucleo-h743zi";

/// Builds the QEMU board's image and returns the ELF's path. With features it is another image and has another folder.
pub(crate) fn build(workspace: &Workspace, features: &[&str]) -> Result<PathBuf> {
    build_program(workspace, QEMU_BOARD, features)
}

/// Builds one program of the QEMU board's package and returns the ELF's path.
pub(crate) fn build_program(workspace: &Workspace, program: &str, features: &[&str]) -> Result<PathBuf> {
    let target =
        if features.is_empty() { workspace.target.clone() } else { workspace.target.join("bench-image") };
    let mut command = workspace.cargo(&["build"]);
    command.args(QEMU_BOARD_ARGUMENTS).args(["--bin", program]).arg("--target-dir").arg(&target);
    if !features.is_empty() {
        command.arg("--features").arg(features.join(","));
    }
    check(&mut command)?;
    let elf = target.join(FIRMWARE_TARGET).join("firmware").join(program);
    ensure!(elf.is_file(), "the build went well, but there is no image at {}", elf.display());
    Ok(elf)
}

/// Builds the real board's image.
pub(crate) fn build_real_board(workspace: &Workspace) -> Result<()> {
    check(&mut real_board_cargo(workspace, &["build", "--release"])?)
}

/// A cargo command in the real board's folder, whose configuration names target and runner.
pub(crate) fn real_board_cargo(workspace: &Workspace, arguments: &[&str]) -> Result<Command> {
    let folder = workspace.root.join(REAL_BOARD);
    ensure!(folder.is_dir(), "the board's folder {REAL_BOARD} does not exist");
    let mut command = workspace.cargo(arguments);
    command.current_dir(folder).env("CARGO_TARGET_DIR", workspace.target.join("boards"));
    Ok(command)
}
