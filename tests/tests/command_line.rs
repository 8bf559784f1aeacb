//! What a person types and sees: `demo`, `sim`, `boards`, `run`, and every command that the README shows.

use picolake_tests::{picolake as alone, program, runtime};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

/// A `picolake` that runs until this is dropped.
struct Running {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut process =
            alone().args(arguments).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("the program ended").unwrap()
    }

    /// The lines up to and with one that contains `text`.
    fn lines_up_to(&mut self, text: &str) -> Vec<String> {
        let mut lines = vec![self.line()];
        while !lines[lines.len() - 1].contains(text) {
            lines.push(self.line());
        }
        lines
    }

    /// Ctrl-C, and how it ended.
    fn interrupt(mut self) -> Option<i32> {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a command prints; it must end well.
fn printed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{command:?} ended with {}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn picolake(arguments: &[&str]) -> String {
    printed(alone().args(arguments))
}

#[test]
fn the_demo_comes_up_and_what_it_tells_to_try_works() {
    let mut demo = Running::start(&["demo"]);
    let lines = demo.lines_up_to("Ctrl-C stops the field");
    for board in ["greenhouse", "pump", "mill"] {
        assert!(lines.iter().any(|line| line.starts_with(board) && line.contains(" up ")), "{lines:#?}");
    }
    let to_try: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("  ")).collect();
    let expected = ["uptime_us", "avg(voltage)", "get status", "10000 rows, each as it was sent"];
    assert_eq!(to_try.len(), expected.len(), "{lines:#?}");
    for (line, expected) in to_try.iter().zip(expected) {
        let answer = printed(Command::new("sh").args(["-c", line]).env(runtime::VARIABLE, runtime::folder()));
        assert!(answer.contains(expected), "`{line}` gave: {answer}");
    }
    assert_eq!(demo.interrupt(), Some(0));
}

#[test]
fn a_simulated_board_answers_over_tcp_and_over_a_serial_look_alike() {
    let mut sim = Running::start(&["sim", "--tcp", "127.0.0.1:0", "--pty"]);
    let links = [(); 2].map(|()| sim.line().strip_prefix("simulated board on ").unwrap().to_owned());
    assert!(links[0].starts_with("serial:/dev/") && links[1].starts_with("tcp:127.0.0.1:"), "{links:?}");
    for link in &links {
        assert!(picolake(&["run", link, "get status"]).contains("│ simulated"));
        let version = picolake(&["run", link, "get version where format = json"]);
        assert!(version.contains(r#""board":"simulated""#), "{version}");
        assert!(picolake(&["run", link, "help"]).contains("get version"));
        let measured = picolake(&["measure", link, "--rows", "2000"]);
        assert!(measured.contains("2000 rows, each as it was sent"), "{measured}");
    }
    let list = picolake(&["boards", &links[0], &links[1]]);
    assert_eq!(list.matches(" up ").count(), 2, "{list}");
    assert!(list.contains(&format!("{}: the same board as {}", links[1], links[0])), "{list}");
    assert_eq!(sim.interrupt(), Some(0));
}

#[test]
fn boards_are_listed_by_the_names_of_the_configuration() {
    let mut sim = Running::start(&["sim", "--tcp", "127.0.0.1:0"]);
    let link = sim.line().strip_prefix("simulated board on ").unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let file =
        format!("boards:\n- {{name: pump, link: '{link}'}}\n- {{name: mill, link: 'unix:/no/such'}}\n");
    std::fs::write(folder.path().join("picolake.yaml"), file).unwrap();
    let in_folder = |arguments: &[&str]| printed(alone().args(arguments).current_dir(folder.path()));
    assert!(in_folder(&["config", "check"]).starts_with("2 boards, no faults"));
    assert!(in_folder(&["run", "pump", "get status"]).contains("uptime_us"));
    let list = in_folder(&["boards"]);
    let lines: Vec<_> = list.lines().collect();
    assert!(lines[0].starts_with("NAME"), "{list}");
    assert!(lines[1].starts_with("pump  up ") && lines[1].ends_with("ms"), "{list}");
    assert!(lines[2].starts_with("mill  offline "), "{list}");
    assert!(lines[3].starts_with("mill: cannot open unix:/no/such"), "{list}");
}

/// What `picolake shell sim:` prints for these lines, and whether it ended well.
fn shell(lines: &str) -> (String, String, bool) {
    let mut process = alone()
        .args(["shell", "sim:"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

#[test]
fn the_shell_answers_each_line_of_a_pipe() {
    let (answers, errors, ended_well) =
        shell("get status\n\nget version where format = mcp;\n\\f json\nget version\n\\q\nget status\n");
    assert!(ended_well, "{errors}");
    assert_eq!(answers.matches("uptime_us").count(), 1, "{answers}");
    assert!(answers.contains("┌") && !answers.contains('>'), "a pipe sees no prompt: {answers}");
    let lines: Vec<_> = answers.lines().rev().take(2).collect();
    assert!(lines[0].starts_with("{\"Version\":{\"build\":\"picolake"), "{answers}");
    assert!(lines[1].starts_with("{\"build\":\"picolake"), "{answers}");
}

#[test]
fn the_shell_takes_sql_and_shows_tables() {
    let (answers, errors, ended_well) = shell(
        "use demo\n\\d\n\\d power\nSELECT count(*) >= 1 AS has_rows FROM power\n\
         create table lab.notes (n int, note text)\ninsert lab notes {\"n\": 1, \"note\": \"ü\"}\n\
         sql lab format = json \"SELECT n, note FROM notes\"\nsql lab format = mcp and stat = false \"SELECT * FROM notes LIMIT 0\"\n",
    );
    assert!(ended_well, "{errors}");
    for words in [
        "environment",
        "voltage",
        "│ has_rows │",
        "│ true ",
        r#"{"Query":[{"n":1,"note":"ü"}],"Statistics""#,
        "[]",
    ] {
        assert!(answers.contains(words), "{words} is not in {answers}");
    }
}

#[test]
fn the_shell_shows_where_a_command_is_wrong_and_goes_on() {
    let (answers, errors, ended_well) = shell("get statsu\nSELECT 1\nget version\n");
    assert!(!ended_well && answers.contains("wire_max"), "{answers}");
    assert!(errors.contains("get statsu\n    ^ syntax: did you mean `status`?\n"), "{errors}");
    assert!(errors.contains("use D"), "{errors}");
    assert!(errors.contains("2 of 3 commands failed"), "{errors}");
}

#[test]
fn help_shows_every_command_and_an_example_of_one() {
    let all = picolake(&["run", "sim:", "help"]);
    for usage in ["get tables where dbms = D", "sql D [format = F]", "create table D.T", "set sample D T"] {
        assert!(all.contains(usage), "{all}");
    }
    assert!(!all.contains("example:"), "{all}");
    let one = picolake(&["run", "sim:", "help insert"]);
    assert!(one.contains("example: insert demo notes {"), "{one}");
    for job in ["run", "shell"] {
        let help = picolake(&[job, "--help"]);
        assert!(help.contains("Examples:"), "{help}");
    }
}

#[test]
fn every_command_of_the_readme_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let mut sim = Running::start(&["sim", "--tcp", "127.0.0.1:0"]);
    let board = sim.line().strip_prefix("simulated board on ").unwrap().to_owned();
    let mut tried = 0;
    let program = program().display().to_string();
    let mut is_shell = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            is_shell = line == "```sh"; // what is printed is no command
        }
        // A board on a desk is a simulated one here.
        let command = line
            .replace("cargo run --release --", &program)
            .replace("target/release/picolake", &program)
            .replace("tcp:127.0.0.1:7000", &board);
        if !is_shell || !command.contains(&program) || command.ends_with(" demo") {
            continue; // the demo has a test of its own
        }
        let folder = tempfile::tempdir().unwrap(); // a client's files are written there, too
        let in_folder = |shell: &mut Command| {
            printed(shell.args(["-c", &command]).current_dir(folder.path()).env("HOME", folder.path()))
        };
        let mut shell = Command::new("sh");
        shell
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env(runtime::VARIABLE, runtime::folder());
        let answer = in_folder(&mut shell);
        assert!(!answer.is_empty(), "`{line}` printed nothing");
        tried += 1;
    }
    assert!(tried >= 10, "the README shows only {tried} commands");
}

#[test]
fn every_shell_gets_its_completions_whatever_the_configuration_is() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = picolake(&["completions", shell, "--config", "there/is/none.yaml"]);
        for word in ["picolake", "doctor", "allow-writes"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
}

#[test]
fn the_tools_that_the_readme_shows_can_be_called() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, shown) = readme.split_once("```yaml\ntools:").expect("it shows a file of tools");
    let folder = tempfile::tempdir().unwrap();
    let shown = format!("tools:{}", shown.split("```").next().unwrap());
    std::fs::write(folder.path().join("tools.yaml"), shown).unwrap();
    let calls = r#"[{"name": "lowest_voltage", "arguments": {"state": "idle"}}]"#;
    std::fs::write(folder.path().join("calls.json"), calls).unwrap();
    let mut call = alone();
    call.args(["call", "calls.json", "--demo", "--tools", "tools.yaml"]).current_dir(folder.path());
    let answer = printed(&mut call);
    assert!(answer.contains(r#""isError":false"#) && answer.contains("volts"), "{answer}");
}
