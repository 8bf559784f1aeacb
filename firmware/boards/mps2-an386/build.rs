//! Hands the linker cortex-m-rt's and defmt's scripts and the folder of the board's `memory.x`.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let package = folder("CARGO_MANIFEST_DIR");
    let workspace = package.ancestors().nth(3).expect("the package is three folders deep");
    println!("cargo:rustc-link-search={}", workspace.display());
    println!("cargo:rerun-if-changed={}", workspace.join("memory.x").display());
    println!("cargo:rerun-if-changed=build.rs");

    // cortex-m-rt includes a device.x with the names of default handlers; the vector table in
    // `interrupts.rs` needs none.
    let out = folder("OUT_DIR");
    fs::write(out.join("device.x"), "").expect("OUT_DIR is writable");
    println!("cargo:rustc-link-search={}", out.display());

    // `--nmagic`: segments start where memory.x says, not on a host's page boundary.
    for argument in ["--nmagic", "-Tlink.x", "-Tdefmt.x"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}

fn folder(variable: &str) -> PathBuf {
    PathBuf::from(env::var(variable).expect("cargo sets it"))
}
