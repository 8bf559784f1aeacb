//! `picolake serve` as a process of its own: over HTTP at an address, or over pipes, line by line.

use crate::program;
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
        let mut command = Command::new(program());
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
        let mut command = Command::new(program());
        command.args(["serve", "--stdio"]).args(arguments);
        Self::start_command(command)
    }

    /// Any server over pipes, after the greeting.
    pub fn start_command(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the server starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("its output is a pipe"));
        let mut piped = Self { process, input, output };
        piped.send(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "pipes", "version": "1"}}}));
        let greeting = piped.receive().expect("an answer to initialize");
        assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18", "{greeting}");
        piped.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        piped
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.process.id()
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
