//! The conformance suite of MCP, two versions of it, against the bridge's own HTTP server with the suite's fixtures on
//! top. What fails is listed, with the reason, in `conformance/expected_failures.json`; neither more nor less may fail.

#[path = "conformance/fixtures.rs"]
mod fixtures;
#[path = "conformance/profile.rs"]
mod profile;

use picolake::{
    field::Field,
    mcp::{Server, http},
    tools::{self, Tools},
};
use picolake_tests::clients::{self, Node};
use profile::Profile;
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// The suite as it was when revision 2025-11-25 was new, and the newest; both are npm packages.
const SUITE: &str = "conformance/dist/index.js";
const SUITE_NEXT: &str = "conformance-next/dist/index.js";

/// One run at a time: the suite gives a server some hundred milliseconds for an answer.
static TURN: Mutex<()> = Mutex::new(());

/// A scenario that is known not to pass.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// The requirements that it was run for.
    run: String,
    scenario: String,
    reason: String,
}

/// Runs the suite and returns the names of what passed and of what did not, and everything it printed; or says that
/// it cannot be run here.
fn outcome(suite: &str, arguments: &[&str]) -> Option<(BTreeSet<String>, BTreeSet<String>, String)> {
    let node = match Node::find() {
        Ok(node) => node,
        Err(why) => {
            clients::skip("Node with the conformance suite", &why);
            return None;
        }
    };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let listening = runtime.block_on(async {
        let server = Server::new(Tools::new(Field::demo().unwrap(), tools::Options::default()).unwrap());
        let options =
            http::Options { address: "127.0.0.1:0".parse().unwrap(), token: None, hosts: Vec::new() };
        http::listen_as(server, Profile::new, options).await.unwrap()
    });
    let url = format!("http://{}/mcp", listening.address().unwrap());
    let _serving = runtime.spawn(listening.serve(std::future::pending()));
    let mut command = node.package(suite);
    command.args(["server", "--url", &url]).args(arguments);
    let (text, _) = clients::ended(command).unwrap();
    let (passed, failed) = scenarios(&text);
    Some((passed, failed, text))
}

/// Reads the summary: `✓ ping: 1 passed, 0 failed`. A scenario without a check that passed has not passed.
fn scenarios(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let summary = text.split_once("=== SUMMARY ===").map_or("", |(_, summary)| summary);
    let (mut passed, mut failed) = (BTreeSet::new(), BTreeSet::new());
    for line in summary.lines() {
        let Some((name, counts)) = line.split_once(": ") else { continue };
        let Some((_mark, name)) = name.split_once(' ') else { continue };
        let mut counts = counts.split(", ").filter_map(|count| count.split_once(' '));
        let (Some((good, "passed")), Some((bad, "failed"))) = (counts.next(), counts.next()) else {
            continue;
        };
        let has_passed = good != "0" && bad == "0";
        if has_passed { &mut passed } else { &mut failed }.insert(name.to_owned());
    }
    (passed, failed)
}

fn expected(run: &str) -> BTreeSet<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/expected_failures.json");
    let all: Vec<Expected> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(all.iter().all(|one| !one.reason.is_empty()), "every failure has its reason");
    all.into_iter().filter(|one| one.run == run).map(|one| one.scenario).collect()
}

/// Exactly so many scenarios pass, and exactly those fail that are listed for this run.
fn check(run: &str, suite: &str, arguments: &[&str], passes: usize) {
    let Some((passed, failed, text)) = outcome(suite, arguments) else { return };
    let expected = expected(run);
    let unexpected: Vec<_> = failed.difference(&expected).collect();
    assert!(unexpected.is_empty(), "{run}: these fail and are not listed: {unexpected:?}\n{text}");
    let mended: Vec<_> = expected.difference(&failed).collect();
    assert!(mended.is_empty(), "{run}: these are listed and do not fail (any more): {mended:?}\n{text}");
    assert_eq!(passed.len(), passes, "{run}: {text}");
}

#[test]
fn the_active_suite_passes() {
    check("active", SUITE, &["--suite", "active"], 30);
}

#[test]
fn what_revision_2025_11_25_requires_is_there() {
    check("2025-11-25", SUITE_NEXT, &["--requirements", "2025-11-25"], 32);
}

#[test]
fn what_revision_2026_07_28_requires_is_there() {
    check("2026-07-28", SUITE_NEXT, &["--requirements", "2026-07-28"], 40);
}

#[test]
fn a_summary_is_read_as_it_is_meant() {
    let text = "x: 1 passed, 0 failed\n=== SUMMARY ===\n✓ a-b: 2 passed, 0 failed\n✗ c: 1 passed, 1 failed\n\
                ✓ d: 0 passed, 0 failed\n\nTotal: 3 passed, 1 failed\n  ✓ e (pending)\n";
    let (passed, failed) = scenarios(text);
    assert_eq!(passed.into_iter().collect::<Vec<_>>(), ["a-b"]);
    assert_eq!(failed.into_iter().collect::<Vec<_>>(), ["c", "d"]);
}
