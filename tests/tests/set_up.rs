//! `picolake install` and `picolake doctor`, in a home of their own.

use picolake_tests::{picolake, program};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

/// A user with nothing in its home.
struct User {
    home: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    /// What `picolake` prints, and whether it ended well.
    fn runs(&self, arguments: &[&str]) -> (String, bool) {
        let output = picolake()
            .args(arguments)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("XDG_CONFIG_HOME", self.path(".config"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout) + &text(output.stderr), output.status.success())
    }
}

fn json_in(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_client_gets_an_entry_that_starts_this_program() {
    let user = User::new();
    for (client, file) in [
        ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("claude-code", ".claude.json"),
        ("cursor", ".cursor/mcp.json"),
    ] {
        if cfg!(not(target_os = "linux")) && client == "claude-desktop" {
            continue; // its folder is the system's there
        }
        let (said, is_good) = user.runs(&["install", client, "--demo"]);
        assert!(is_good, "{said}");
        let entry = &json_in(&user.path(file))["mcpServers"]["picolake"];
        assert_eq!(entry["command"], program().to_str().unwrap(), "{entry}");
        assert_eq!(entry["args"], json!(["serve", "--stdio", "--demo"]));
    }
    let (said, is_good) = user.runs(&["doctor"]);
    assert!(is_good, "{said}");
    assert!(said.contains("ok     Claude Code: starts this picolake"), "{said}");
}

#[test]
fn what_a_client_has_stays_as_it_is_and_a_backup_is_left() {
    let user = User::new();
    let file = user.path(".claude.json");
    let before = "{\"z\": [1, 2.50], \"mcpServers\": {\"other\": {\"command\": \"x\"}}, \"a\": null}";
    fs::write(&file, before).unwrap();
    assert!(user.runs(&["install", "claude-code"]).1);
    assert_eq!(fs::read_to_string(user.path(".claude.json.backup-1")).unwrap(), before);
    let after = fs::read_to_string(&file).unwrap();
    let place = |text| after.find(text).unwrap_or_else(|| panic!("no {text} in {after}"));
    assert!(place("\"z\"") < place("\"other\"") && place("\"picolake\"") < place("\"a\""), "{after}");
    let (said, is_good) = user.runs(&["install", "claude-code"]);
    assert!(is_good && said.contains("already"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
    assert!(!user.path(".claude.json.backup-2").exists());
}

#[test]
fn a_client_file_that_is_broken_is_not_touched() {
    let user = User::new();
    let file = user.path(".claude.json");
    for broken in ["{\"a\": 1,}", "[]", "{\"mcpServers\": 7}"] {
        fs::write(&file, broken).unwrap();
        let (said, is_good) = user.runs(&["install", "claude-code"]);
        assert!(!is_good && said.contains("mend it first"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    }
}

#[test]
fn print_shows_the_entry_and_writes_nothing() {
    let user = User::new();
    fs::write(user.path("picolake.yaml"), "boards: []\n").unwrap();
    let (said, is_good) = user.runs(&["install", "cursor", "--print"]);
    assert!(is_good && said.contains("mcpServers") && said.contains("--config"), "{said}");
    assert!(said.contains(user.path("picolake.yaml").canonicalize().unwrap().to_str().unwrap()), "{said}");
    assert!(!user.path(".cursor").exists());
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let user = User::new();
    let boards = "boards:\n- {name: good, link: 'sim:'}\n- {name: gone, link: 'unix:/no/such'}\n";
    fs::write(user.path("picolake.yaml"), boards).unwrap();
    let (said, is_good) = user.runs(&["doctor"]);
    assert!(!is_good, "{said}");
    for words in [
        "lists 2 boards",
        "ok     board good: picolake",
        "FAULT  board gone at unix:/no/such",
        "→ check power",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    fs::write(user.path("picolake.yaml"), "boards: 7\n").unwrap();
    let (said, is_good) = user.runs(&["doctor"]);
    assert!(!is_good && said.contains("FAULT  picolake.yaml") && said.contains('→'), "{said}");
}
