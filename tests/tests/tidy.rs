//! Holds the repository to its own rules: who may know what (ARCHITECTURE.md), and what a source file looks like.
//! Reads `cargo metadata` for the packages' dependencies and the sources' tokens for the rest.

#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/source.rs"]
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

use rules::{
    dependency_findings, firmware_in_bridge_findings, first_line_findings, layer_findings, leftover_findings,
    length_findings, name_findings, no_std_findings, shared_word_findings,
};
use source::Source;

/// A package of the workspace and the only dependencies that it may have.
const DEPENDENCIES_ALLOWED: [(&str, &[&str]); 2] = [
    ("shared", &["cobs", "crc", "heapless", "libm", "postcard", "serde"]),
    (
        "firmware",
        &[
            "defmt",
            "embassy-futures",
            "embassy-net",
            "embassy-sync",
            "embassy-time",
            "embedded-io-async",
            "heapless",
            "shared",
        ],
    ),
];

/// What no board may depend on: the protocol is the firmware library's part, the host's side is the bridge's.
const BOARD_DEPENDENCIES_FORBIDDEN: [&str; 5] = ["cobs", "picolake", "postcard", "serde-json-core", "tokio"];

/// Places, and the paths that code there must not name.
const LAYERS: [(&[&str], &[&str]); 8] = [
    (&["shared/src"], &["std", "alloc"]),
    (&["firmware/boards"], &["shared::frame", "shared::message", "picolake"]),
    (&["bridge/src/link", "bridge/src/board"], &["rmcp", "serde_json", "axum"]),
    (&["bridge/src/cli"], &["shared::frame", "cobs", "postcard"]),
    (
        &[
            "bridge/src/field",
            "bridge/src/query",
            "bridge/src/archive",
            "bridge/src/tools",
            "bridge/src/jobs",
        ],
        &["rmcp", "axum", "tokio_serial"],
    ),
    (&["bridge/src/query"], &["serde_json"]),
    (
        &["bridge/src/owner"],
        &["rmcp", "axum", "shared::frame", "shared::message", "tokio_serial", "crate::link", "crate::board"],
    ),
    (&["bridge/src/mcp"], &["shared::frame", "tokio_serial", "cobs", "postcard"]),
];

#[test]
fn packages_depend_only_on_what_their_layer_may_know() {
    let packages = packages(&root());
    let mut findings = Vec::new();
    for (name, allowed) in DEPENDENCIES_ALLOWED {
        let package = packages.iter().find(|package| package.name.as_str() == name);
        let package = package.unwrap_or_else(|| panic!("the workspace has no package `{name}`"));
        findings.extend(dependency_findings(name, &dependencies(package), |name| allowed.contains(&name)));
    }
    report(findings);
}

#[test]
fn boards_depend_on_no_part_of_the_protocol_and_not_on_the_bridge() {
    let mut boards_read = 0;
    let mut findings = Vec::new();
    for folder in fs::read_dir(root().join("firmware/boards")).unwrap().map(|entry| entry.unwrap().path()) {
        if !folder.join("Cargo.toml").is_file() {
            continue;
        }
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let packages = packages(&folder);
        let package = packages.iter().find(|package| package.name.as_str() == name);
        let package = package.unwrap_or_else(|| panic!("firmware/boards/{name} holds no package `{name}`"));
        let is_allowed = |name: &str| !BOARD_DEPENDENCIES_FORBIDDEN.contains(&name);
        findings.extend(dependency_findings(
            &format!("firmware/boards/{name}"),
            &dependencies(package),
            is_allowed,
        ));
        boards_read += 1;
    }
    assert!(boards_read > 0, "no board was read");
    report(findings);
}

#[test]
fn every_layer_names_only_what_it_may_know() {
    let sources = sources();
    for place in ["shared/src", "firmware/boards", "bridge/src"] {
        assert!(sources.iter().any(|source| source.is_in(place)), "no source was read in {place}");
    }
    report(
        LAYERS.iter().flat_map(|(places, forbidden)| layer_findings(&sources, places, forbidden)).collect(),
    );
}

#[test]
fn the_bridge_runs_the_firmware_only_as_its_simulator() {
    report(firmware_in_bridge_findings(&sources_in("bridge/src")));
}

#[test]
fn shared_neither_waits_nor_knows_the_time() {
    report(shared_word_findings(&sources_in("shared/src")));
}

#[test]
fn shared_and_firmware_are_no_std() {
    let roots =
        sources().into_iter().filter(|source| source.path.ends_with("src/lib.rs")).collect::<Vec<_>>();
    for path in ["shared/src/lib.rs", "firmware/src/lib.rs"] {
        assert!(roots.iter().any(|source| source.path == path), "{path} was not read");
    }
    report(no_std_findings(&roots));
}

#[test]
fn no_file_is_too_long_to_read() {
    report(length_findings(&sources()));
}

#[test]
fn nothing_is_left_over_from_work_in_progress() {
    report(leftover_findings(&sources()));
}

#[test]
fn no_file_or_folder_has_a_name_that_says_nothing() {
    report(name_findings(&sources()));
}

#[test]
fn every_file_begins_with_what_it_does() {
    report(first_line_findings(&sources()));
}

// ---- Reading the repository ----

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Rust file of the repository; never none.
fn sources() -> Vec<Source> {
    let root = root();
    let mut sources = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") {
                let from_root = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                sources.push(Source::new(&from_root, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(sources.iter().any(|source| source.path == "tests/tests/tidy.rs"), "not even this file was read");
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// The Rust files in a folder; never none.
fn sources_in(place: &str) -> Vec<Source> {
    let found: Vec<_> = sources().into_iter().filter(|source| source.is_in(place)).collect();
    assert!(!found.is_empty(), "no source was read in {place}");
    found
}

/// The packages of the workspace that a folder's Cargo.toml belongs to.
fn packages(folder: &Path) -> Vec<Package> {
    let metadata = MetadataCommand::new().manifest_path(folder.join("Cargo.toml")).no_deps().exec();
    metadata.unwrap_or_else(|error| panic!("cargo metadata in {}: {error}", folder.display())).packages
}

/// What a package is built with: neither its tests' nor its build script's dependencies.
fn dependencies(package: &Package) -> Vec<String> {
    let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
    normal.map(|dependency| dependency.name.clone()).collect()
}

fn report(findings: Vec<String>) {
    assert!(findings.is_empty(), "{} findings:\n  {}\n", findings.len(), findings.join("\n  "));
}
