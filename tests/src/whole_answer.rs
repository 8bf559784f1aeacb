//! Whole answers of a server process, as programs get them: streamed through `POST /query`, or exported as a job.
//! Keeps no rows.

use crate::serving::{Piped, Serving};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// How long a whole answer may take, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often the state of an export is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The lines of a `POST /query`, one in memory at a time. Dropping it leaves the server.
#[derive(Debug)]
pub struct QueryLines {
    input: BufReader<TcpStream>,
    line: String,
}

impl QueryLines {
    /// Asks, and reads the head of the answer.
    pub fn ask(server: &Serving, database: &str, sql: &str) -> Self {
        let address = server.url.strip_prefix("http://").expect("an address");
        let mut connection = TcpStream::connect(address).expect("the server listens");
        connection.set_read_timeout(Some(PATIENCE)).expect("a time");
        let body = json!({"database": database, "sql": sql}).to_string();
        // Version 1.0, so that the body comes as it is and ends with the connection.
        let head = "POST /query HTTP/1.0\r\nContent-Type: application/json\r\n";
        let length = body.len();
        write!(connection, "{head}Host: {address}\r\nContent-Length: {length}\r\n\r\n{body}")
            .expect("the server reads");
        let mut lines = Self { input: BufReader::new(connection), line: String::new() };
        let status = lines.line().expect("a status").to_owned();
        assert!(status.contains(" 200 "), "{status}");
        while !lines.line().expect("a head").is_empty() {}
        lines
    }

    /// The next message; none at the end.
    pub fn message(&mut self) -> Option<Value> {
        let line = self.line()?;
        Some(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    /// The next line as it came; none at the end.
    pub fn line(&mut self) -> Option<&str> {
        self.line.clear();
        let len = self.input.read_line(&mut self.line).expect("the stream goes on");
        (len > 0).then(|| self.line.trim_end_matches(['\r', '\n']))
    }
}

/// Exports an answer into this file and waits until the job has ended well; returns its last state.
pub fn export(server: &mut Piped, database: &str, sql: &str, file: &str) -> Value {
    let patience = Instant::now() + PATIENCE;
    let mut job = server.ask("export", json!({"database": database, "sql": sql, "file": file}));
    let id = job["job"].clone();
    while job["state"] == "running" {
        assert!(Instant::now() < patience, "{job}");
        std::thread::sleep(LOOK_INTERVAL);
        job = server.ask("job_status", json!({"job": id}));
    }
    assert_eq!(job["state"], "complete", "{job}");
    job
}
