//! Hands the linker cortex-m-rt's and defmt's scripts and the folder of this board's `memory.x`.

fn main() {
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rustc-link-search={package}");
    println!("cargo:rerun-if-changed=memory.x");
    println!("cargo:rerun-if-changed=build.rs");

    // Here and not as rustflags, which are joined to those of the configs further up.
    // `--nmagic`: segments start where memory.x says, not on a host's page boundary.
    for argument in ["--nmagic", "-Tlink.x", "-Tdefmt.x"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
