//! What the end-to-end tests and benches share: links that damage or delay, boards in QEMU, SQLite as the oracle, MCP
//! clients of others, and figures.
//!
//! There is no fake board here: every test runs the firmware library itself, simulated or in QEMU.

pub mod ask;
pub mod clients;
pub mod faulty_link;
pub mod field;
pub mod figures;
pub mod http_server;
pub mod oracle;
pub mod paced_link;
pub mod qemu;
pub mod row_board;
pub mod runtime;
pub mod sensors;
pub mod serving;
pub mod sim_process;
pub mod slow_board;
pub mod spread;
pub mod whole_answer;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The program `picolake`, built from the sources as they are now: `cargo test` alone would not build it.
pub fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(build_program).clone()
}

/// The program on its own: it shares no boards with another one.
pub fn picolake() -> Command {
    let mut command = Command::new(program());
    command.env(runtime::VARIABLE, runtime::folder());
    command
}

fn build_program() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let profile = test.ancestors().nth(2).expect("tests run in TARGET/PROFILE/deps");
    let target = profile.parent().expect("a profile's folder is in the target folder");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--quiet", "--package", "picolake", "--target-dir"]).arg(target);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo is there").success(), "{cargo:?} failed");
    profile.join("picolake")
}
