//! `picolake sim` as a process of its own: a board whose memory is not the bridge's.

use crate::program;
use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

/// What such a board is called, from which its sensors' rows are made.
pub const NAME: &str = "sim";

/// A simulated board that is reached over TCP; it is stopped when this is dropped.
#[derive(Debug)]
pub struct SimProcess {
    process: Child,
    /// Kept, so that what it prints later has a reader.
    _output: BufReader<ChildStdout>,
    /// Such as `tcp:127.0.0.1:4711`.
    pub link: String,
}

impl SimProcess {
    /// Starts one whose fastest sensor has made so many rows; waits until they are there.
    pub fn with_rows(rows: u32) -> Self {
        let mut command = Command::new(program());
        command.args(["sim", "--tcp", "127.0.0.1:0", "--rows", &rows.to_string()]);
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the board starts");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("its output is a pipe"));
        output.read_line(&mut line).expect("it says where it is");
        let link = line.trim_end().strip_prefix("simulated board on ");
        let link = link.unwrap_or_else(|| panic!("it says where it is, not: {line}")).to_owned();
        Self { process, _output: output, link }
    }
}

impl Drop for SimProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes a configuration with one board, `big`, behind this link; returns the file.
pub fn config_with(folder: &Path, link: &str) -> PathBuf {
    let file = folder.join("picolake.yaml");
    std::fs::write(&file, format!("boards:\n  - name: big\n    link: {link}\narchive: {{enabled: false}}\n"))
        .expect("the folder is there");
    file
}

/// `picolake serve` on that configuration; what it keeps while it runs is in the folder, too.
pub fn serve_command(folder: &Path, config: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.arg("--config").arg(config).arg("serve").args(arguments);
    command.arg("--export-folder").arg(folder.join("exports"));
    command.env("PICOLAKE_RUNTIME_DIR", folder).env_remove("PICOLAKE_TOKEN");
    command
}
