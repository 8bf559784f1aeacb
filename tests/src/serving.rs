//! `picolake serve` as a process of its own: over HTTP at an address, or over pipes, line by line.

use crate::{picolake, program, runtime};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
};

/// A server over HTTP; it is stopped when this is dropped.
#[derive(Debug)]
pub struct Serving {
    process: Child,
    /// Kept, so that what it prints later has a reader.
    _output: BufReader<ChildStdout>,
    /// Such as `http://127.0.0.1:4711`.
    pub url: String,
}

impl Serving {
    /// `picolake serve --http 127.0.0.1:0` and these arguments.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    /// The same at another address; it is reached over loopback.
    pub fn start_at(address: &str, arguments: &[&str]) -> Self {
        let mut command = picolake();
        command.args(["serve", "--http", address]).args(arguments).env_remove("PICOLAKE_TOKEN");
        Self::start_command(command)
    }

    /// Any program that says in its first line where it listens.
    pub fn start_command(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the server starts");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("its output is a pipe"));
        output.read_line(&mut line).expect("it says where it listens");
        let url = line.strip_prefix("MCP on ").and_then(|rest| rest.split("/mcp").next());
        let url = url.unwrap_or_else(|| panic!("it says where it listens, not: {line}"));
        Self { process, _output: output, url: url.replace("0.0.0.0", "127.0.0.1") }
    }

    /// Sends it a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        signal(&self.process, name);
    }

    /// Waits until it ends.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait().expect("it ends")
    }

    /// The most memory it has had so far.
    pub fn peak_bytes(&self) -> Option<u64> {
        peak_bytes(&self.process)
    }

    /// The address of a route.
    pub fn at(&self, route: &str) -> String {
        format!("{}{route}", self.url)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server over pipes, spoken to in raw JSON. It is stopped when this is dropped.
#[derive(Debug)]
pub struct Piped {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Piped {
    /// `picolake serve --stdio` and these arguments, after the greeting.
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = picolake();
        command.args(["serve", "--stdio"]).args(arguments);
        Self::start_command(command)
    }

    /// The same twice: the first owns the boards, the second asks it for them.
    pub fn start_two(arguments: &[&str]) -> [Self; 2] {
        let folder = runtime::folder();
        ["owner", "guest"].map(|_| {
            let mut command = Command::new(program());
            command.env(runtime::VARIABLE, &folder).args(["serve", "--stdio"]).args(arguments);
            Self::start_command(command)
        })
    }

    /// Any server over pipes, after the greeting.
    pub fn start_command(command: Command) -> Self {
        let mut piped = Self::start_silently(command);
        piped.send(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "pipes", "version": "1"}}}));
        let greeting = piped.receive().expect("an answer to initialize");
        assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18", "{greeting}");
        piped.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        piped
    }

    /// Any server over pipes; nothing was said yet.
    pub fn start_silently(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the server starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("its output is a pipe"));
        Self { process, input, output }
    }

    /// The most memory it has had so far.
    pub fn peak_bytes(&self) -> Option<u64> {
        peak_bytes(&self.process)
    }

    /// Sends one message.
    pub fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the input is open");
        writeln!(input, "{message}").expect("the server reads");
    }

    /// Calls a tool and does not wait.
    pub fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    /// Calls a tool that must answer; its data.
    pub fn ask(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(1, tool, arguments);
        let answer = self.receive().expect("an answer");
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The next message, or none at the output's end. Every line must be one.
    pub fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line).expect("the output is text") == 0 {
            return None;
        }
        Some(
            serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("{error}: stdout carries only MCP: {line}")),
        )
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it at once, without a chance to do anything about it.
    pub fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.wait();
    }

    /// Calls a tool that must answer; its first text as JSON.
    pub fn answer(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.call(id, tool, arguments);
        let message = self.receive().expect("an answer");
        assert_eq!((&message["id"], &message["result"]["isError"]), (&json!(id), &json!(false)), "{message}");
        let text = message["result"]["content"][0]["text"].as_str().expect("a text");
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Sends the last bytes of the input.
    pub fn send_last(&mut self, bytes: &[u8]) {
        let mut input = self.input.take().expect("the input is open");
        input.write_all(bytes).expect("the server reads");
    }

    /// Sends a line that may be no message.
    pub fn send_bytes(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(line).and_then(|()| input.write_all(b"\n")).expect("the server reads");
    }

    /// Sends it a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        signal(&self.process, name);
    }

    /// Ends the server's input.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// Waits until it ends.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait().expect("it ends")
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn signal(process: &Child, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(process.id().to_string()).status();
    assert!(sent.expect("kill is there").success());
}

/// The most memory that a process has had so far, where the system tells it. Of a debug build without the pages of its
/// program, of which those alone are over 30 MB; the bench measures a release build, whole.
fn peak_bytes(process: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let bytes = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    let program = if cfg!(debug_assertions) { bytes("RssFile:")? } else { 0 };
    Some(bytes("VmHWM:")?.saturating_sub(program))
}
