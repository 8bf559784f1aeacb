//! Claude Code's own look at the server that `picolake install` gave it, in a home of its own and without a login,
//! where it can be had.

use picolake_tests::{
    clients::{self, Node},
    program,
};
use std::{path::Path, process::Command};

/// A command that sees a home with nothing in it, and nothing else of the person who runs the tests.
fn at_home(mut command: Command, home: &Path) -> Command {
    command.env_clear().env("HOME", home).env("PICOLAKE_RUNTIME_DIR", home).current_dir(home);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    command
}

#[test]
fn claude_code_connects_to_what_install_wrote() {
    let node = match Node::find() {
        Ok(node) => node,
        Err(why) => return clients::skip("Claude Code", &why),
    };
    let home = tempfile::tempdir().unwrap();
    let runs = |command: Command, arguments: &[&str]| {
        let mut command = at_home(command, home.path());
        command.args(arguments);
        clients::printed(command).unwrap()
    };
    runs(Command::new(program()), &["install", "claude-code", "--demo"]);
    runs(node.tool("claude"), &["mcp", "add", "absent", "--", "/no/such/server"]);
    let list = runs(node.tool("claude"), &["mcp", "list"]);
    let line =
        |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{list}"));
    assert!(line("picolake: ").ends_with("Connected"), "{list}");
    assert!(!line("absent: ").ends_with("Connected"), "{list}");
}
