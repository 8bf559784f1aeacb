//! Runs a command and hands on its output line by line while it runs. Prints nothing, counts nothing.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::workspace::command_line;

/// How long output may stay open after the command's end. A process that it left behind can hold it for ever.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);
const OUTPUT_POLL: Duration = Duration::from_millis(100);

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// A stream and one of its lines, its end included.
type Line = (Stream, Vec<u8>);

/// Runs a command to its end. `take` gets every line, in each stream's order.
pub(crate) fn run(
    command: &mut Command,
    mut take: impl FnMut(Stream, &[u8]) -> Result<()>,
) -> Result<ExitStatus> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", command_line(command)))?;
    let (sender, lines) = channel();
    if let Some(stdout) = child.stdout.take() {
        send_lines(stdout, Stream::Stdout, sender.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        send_lines(stderr, Stream::Stderr, sender.clone());
    }
    drop(sender);
    while let Some((stream, line)) = next_line(&lines, &mut child)? {
        take(stream, &line)?;
    }
    child.wait().with_context(|| format!("cannot wait for `{}`", command_line(command)))
}

/// Reads a stream to its end on a thread of its own.
fn send_lines(source: impl Read + Send + 'static, stream: Stream, sender: Sender<Line>) {
    thread::spawn(move || {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        while source.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            if sender.send((stream, std::mem::take(&mut line))).is_err() {
                return;
            }
        }
    });
}

/// Waits for a line; none when both streams have ended.
fn next_line(lines: &Receiver<Line>, child: &mut Child) -> Result<Option<Line>> {
    let mut ended_at = None;
    loop {
        match lines.recv_timeout(OUTPUT_POLL) {
            Ok(line) => return Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_some() => {
                let ended_at = *ended_at.get_or_insert_with(Instant::now);
                ensure!(
                    ended_at.elapsed() < OUTPUT_GRACE,
                    "the command ended and left a process behind that holds its output open"
                );
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> (Result<ExitStatus>, Vec<Line>) {
        let mut lines = Vec::new();
        let outcome = run(Command::new("sh").args(["-c", script]), |stream, line| {
            lines.push((stream, line.to_vec()));
            Ok(())
        });
        (outcome, lines)
    }

    #[test]
    fn every_line_of_both_streams_arrives_and_the_exit_status_is_kept() {
        let (status, lines) = shell("echo one; printf '\\377\\376\\nno end' >&2; echo two; exit 7");
        assert_eq!(status.unwrap().code(), Some(7));
        let of = |wanted: Stream| {
            let of_stream = lines.iter().filter(move |(stream, _)| *stream == wanted);
            of_stream.flat_map(|(_, line)| line.clone()).collect::<Vec<u8>>()
        };
        assert_eq!(of(Stream::Stdout), b"one\ntwo\n");
        assert_eq!(of(Stream::Stderr), b"\xFF\xFE\nno end");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn a_process_left_behind_is_reported_and_does_not_hang_the_run() {
        let (outcome, lines) = shell("sleep 20 & echo one");
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("left a process behind"), "{error}");
        assert_eq!(lines, [(Stream::Stdout, b"one\n".to_vec())]);
    }

    #[test]
    fn a_program_that_is_absent_is_an_error() {
        assert!(run(&mut Command::new("no-such-program-anywhere"), |_, _| Ok(())).is_err());
    }
}
