//! The rules, each a function from sources to findings, and what shows that each can fail. Reads no file.

use std::collections::BTreeSet;

use crate::source::{Source, starts_with_path};

const LINES_MAX: usize = 700;

/// Words of code that `shared` must not have: it neither waits nor knows the time.
const SHARED_WORDS_FORBIDDEN: [&str; 4] = ["async", "await", "Instant", "SystemTime"];

/// The only file of the bridge that may name the firmware.
const SIMULATOR: &str = "bridge/src/link/sim.rs";

const NAMES_FORBIDDEN: [&str; 6] = ["common", "helper", "helpers", "misc", "util", "utils"];

pub(crate) fn layer_findings(sources: &[Source], places: &[&str], forbidden: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| places.iter().any(|place| source.is_in(place))) {
        for (line, path) in source.paths_used() {
            if let Some(name) = forbidden.iter().find(|name| starts_with_path(&path, name)) {
                findings.push(source.finding(line, &format!("`{path}`: this layer must not know `{name}`")));
            }
        }
    }
    findings
}

pub(crate) fn firmware_in_bridge_findings(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_in("bridge/src") && source.path != SIMULATOR) {
        for (line, path) in source.paths_used() {
            if starts_with_path(&path, "firmware") {
                let what = format!("`{path}`: only {SIMULATOR} runs the firmware in the bridge");
                findings.push(source.finding(line, &what));
            }
        }
    }
    findings
}

pub(crate) fn shared_word_findings(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_in("shared/src")) {
        for token in source.tokens_outside_tests() {
            if SHARED_WORDS_FORBIDDEN.contains(&token.text.as_str()) {
                let what = format!(
                    "`{}`: shared does not wait and knows no clock; take time as an argument",
                    token.text
                );
                findings.push(source.finding(token.line, &what));
            }
        }
    }
    findings
}

pub(crate) fn no_std_findings(sources: &[Source]) -> Vec<String> {
    let crates = ["shared/src/lib.rs", "firmware/src/lib.rs"];
    let is_root = |source: &&Source| crates.contains(&source.path.as_str());
    let has_no_std = |source: &Source| source.tokens.iter().any(|token| token.text == "no_std");
    let lacking = sources.iter().filter(is_root).filter(|source| !has_no_std(source));
    lacking
        .map(|source| source.finding(1, "add `#![no_std]` (or `#![cfg_attr(not(test), no_std)]`)"))
        .collect()
}

pub(crate) fn length_findings(sources: &[Source]) -> Vec<String> {
    let long = sources.iter().filter(|source| source.line_count > LINES_MAX);
    long.map(|source| {
        source.finding(LINES_MAX + 1, &format!("{} lines; split it by noun", source.line_count))
    })
    .collect()
}

pub(crate) fn leftover_findings(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources {
        let texts: Vec<&str> = source.tokens.iter().map(|token| token.text.as_str()).collect();
        for (at, token) in source.tokens.iter().enumerate() {
            let what = match texts[at..] {
                ["todo" | "unimplemented", "!", ..] => {
                    "finish it, or return an error that says what is not there"
                }
                ["dbg", "!", ..] => "remove it",
                ["#", "[", "ignore", ..] => {
                    "a test runs or goes; one that cannot run here prints `skipped: why`"
                }
                _ => continue,
            };
            findings.push(source.finding(token.line, &format!("left over; {what}")));
        }
    }
    findings
}

pub(crate) fn name_findings(sources: &[Source]) -> Vec<String> {
    let mut findings = BTreeSet::new();
    for source in sources {
        for part in source.path.split('/') {
            let name = part.strip_suffix(".rs").unwrap_or(part);
            if NAMES_FORBIDDEN.contains(&name) {
                findings.insert(
                    source.finding(1, &format!("`{part}` says nothing; name it after what is in it")),
                );
            }
        }
    }
    findings.into_iter().collect()
}

pub(crate) fn first_line_findings(sources: &[Source]) -> Vec<String> {
    let lacking = sources.iter().filter(|source| {
        let is_program = source.path.split('/').any(|part| part == "tests" || part == "bin");
        !(source.first_line.starts_with("//!") || is_program && source.first_line.starts_with("///"))
    });
    lacking
        .map(|source| source.finding(1, "begin with a `//!` line: what the file does, and what not"))
        .collect()
}

pub(crate) fn dependency_findings(
    package: &str,
    dependencies: &[String],
    is_allowed: impl Fn(&str) -> bool,
) -> Vec<String> {
    let forbidden = dependencies.iter().filter(|dependency| !is_allowed(dependency));
    forbidden.map(|dependency| format!("{package}/Cargo.toml: must not depend on `{dependency}`")).collect()
}

// ---- Each rule finds what it is there to find, and no more ----

#[test]
fn the_layer_rule_finds_imports_groups_and_paths_in_code() {
    let code = "//! x\nuse crate::{a, serde_json::Value};\nuse {tokio::net, rmcp::{self, model as m}};\n\
                fn f() { let rmcp = serde_json::json!(\"axum::x\"); } // axum::serve\n\
                pub use ::axum;\n";
    let sources =
        [Source::new("bridge/src/link/tcp.rs", code), Source::new("bridge/src/mcp/server.rs", code)];
    assert_eq!(
        layer_findings(&sources, &["bridge/src/link"], &["rmcp", "serde_json", "axum"]),
        [
            "bridge/src/link/tcp.rs:3: `rmcp::self`: this layer must not know `rmcp`",
            "bridge/src/link/tcp.rs:3: `rmcp::model`: this layer must not know `rmcp`",
            "bridge/src/link/tcp.rs:4: `serde_json::json`: this layer must not know `serde_json`",
            "bridge/src/link/tcp.rs:5: `axum`: this layer must not know `axum`",
        ]
    );
}

#[test]
fn the_layer_rule_knows_modules_of_a_crate_and_files_named_like_a_folder() {
    let code = "use shared::{message::Request, frame::{self, FrameDecoder}};\nuse shared::framework;\nuse shared::*;\n";
    let findings =
        layer_findings(&[Source::new("bridge/src/mcp.rs", code)], &["bridge/src/mcp"], &["shared::frame"]);
    assert_eq!(findings.len(), 2, "{findings:?}");
    let elsewhere = [Source::new("bridge/src/mcp_like.rs", code), Source::new("tests/src/lib.rs", code)];
    assert_eq!(layer_findings(&elsewhere, &["bridge/src/mcp"], &["shared::frame"]), [""; 0]);
}

#[test]
fn the_layer_rule_leaves_out_tests_but_nothing_after_them() {
    let code = "#[cfg(all(test, unix))]\nuse std::vec;\n#[cfg(test)]\nmod tests {\n  use std::{vec::Vec, fmt};\n  fn f() {}\n}\n\
                #[cfg(feature = \"x\")]\nfn g() -> std::vec::Vec<u8> { }\nextern crate alloc;\n";
    let findings =
        layer_findings(&[Source::new("shared/src/page.rs", code)], &["shared/src"], &["std", "alloc"]);
    assert_eq!(
        findings,
        [
            "shared/src/page.rs:9: `std::vec::Vec`: this layer must not know `std`",
            "shared/src/page.rs:10: `alloc`: this layer must not know `alloc`",
        ]
    );
}

#[test]
fn the_simulator_rule_finds_the_firmware_elsewhere_in_the_bridge() {
    let code = "//! x\nuse firmware::serve;\n";
    for path in ["bridge/src/link/sim.rs", "tests/src/lib.rs"] {
        assert_eq!(firmware_in_bridge_findings(&[Source::new(path, code)]), [""; 0]);
    }
    for path in ["bridge/src/main.rs", "bridge/src/link/tcp.rs", "bridge/src/cli/sim.rs"] {
        assert_eq!(firmware_in_bridge_findings(&[Source::new(path, code)]).len(), 1, "{path}");
    }
}

#[test]
fn the_rules_of_shared_find_waiting_clocks_and_a_missing_no_std() {
    let code = "//! async\nasync fn f() {}\nfn g(now: Instant) {}\nfn h() { \"await\"; 'a'; }\n";
    let source = [Source::new("shared/src/lib.rs", code)];
    assert_eq!(shared_word_findings(&source).len(), 2);
    assert_eq!(no_std_findings(&source).len(), 1);
    assert_eq!(
        no_std_findings(&[Source::new("shared/src/lib.rs", "//! x\n#![cfg_attr(not(test), no_std)]\n")]),
        [""; 0]
    );
}

#[test]
fn the_rules_of_files_find_length_leftovers_names_and_a_missing_first_line() {
    let long = Source::new("xtask/src/main.rs", &"\n".repeat(LINES_MAX + 1));
    let short = Source::new("xtask/src/main.rs", &"\n".repeat(LINES_MAX));
    assert_eq!(length_findings(&[long, short]).len(), 1);

    let code =
        "fn f() { todo!() }\nfn g() { unimplemented!(\"x\"); dbg!(1); }\n#[ignore = \"slow\"]\nfn h() {}\n";
    let quoted = "/* todo!() /* dbg!() */ */ const A: &str = r#\"todo!() \" \"#; const B: &[u8] = b\"\\\"todo!()\"; // dbg!()\n\
                  fn f<'a>(todo: &'a u8) { let c = ['\"', '\\'', '\\u{22}']; }\n";
    assert_eq!(leftover_findings(&[Source::new("bridge/src/main.rs", code)]).len(), 4);
    assert_eq!(leftover_findings(&[Source::new("bridge/src/main.rs", quoted)]), [""; 0]);

    let named = ["bridge/src/utils.rs", "tests/tests/common/mod.rs", "shared/src/commands.rs"];
    assert_eq!(name_findings(&named.map(|path| Source::new(path, ""))).len(), 2);

    let begun = [
        ("bridge/src/a.rs", "//! x"),
        ("tests/tests/b.rs", "/// x"),
        ("bridge/src/c.rs", "/// x"),
        ("d.rs", ""),
    ];
    assert_eq!(first_line_findings(&begun.map(|(path, text)| Source::new(path, text))).len(), 2);
}

#[test]
fn the_dependency_rule_finds_what_is_not_allowed() {
    let dependencies = ["serde".to_owned(), "tokio".to_owned()];
    let findings = dependency_findings("shared", &dependencies, |name| name == "serde");
    assert_eq!(findings, ["shared/Cargo.toml: must not depend on `tokio`"]);
}
