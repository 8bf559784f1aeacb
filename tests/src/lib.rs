//! What the end-to-end tests and benches share: links that damage or delay, and boards in QEMU.
//!
//! There is no fake board here: every test runs the firmware library itself, simulated or in QEMU.

pub mod faulty_link;
pub mod paced_link;
pub mod qemu;

use std::path::PathBuf;

/// The program `picolake`. Cargo builds it beside the tests, one folder up.
pub fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("a test knows where it is");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.push("picolake");
    assert!(path.exists(), "{} is not there: `cargo build -p picolake` makes it", path.display());
    path
}
