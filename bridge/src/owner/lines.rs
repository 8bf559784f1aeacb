//! Lines from a stream, each with a limit. What has been read of a line stays when reading is given up in the middle.

use super::LINE_BYTES_MAX;
use std::io;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// A line over the limit; all of it was skipped.
    TooLong,
    /// Nothing comes any more. What was begun is no line.
    End,
}

/// Reads lines.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    reader: BufReader<R>,
    begun: Vec<u8>,
    is_skipping: bool,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader: BufReader::new(reader),
            begun: Vec::new(),
            is_skipping: false,
            bytes_max: LINE_BYTES_MAX,
        }
    }

    /// The next line. Giving up in the middle loses nothing.
    pub(super) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let there = self.reader.fill_buf().await?;
            if there.is_empty() {
                return Ok(Line::End);
            }
            let end = there.iter().position(|byte| *byte == b'\n');
            let part = &there[..end.unwrap_or(there.len())];
            if self.is_skipping || self.begun.len() + part.len() > self.bytes_max {
                (self.is_skipping, self.begun) = (true, Vec::new());
            } else {
                self.begun.extend_from_slice(part);
            }
            let taken = part.len() + usize::from(end.is_some());
            self.reader.consume(taken);
            if end.is_some() {
                if std::mem::take(&mut self.is_skipping) {
                    return Ok(Line::TooLong);
                }
                let mut line = std::mem::take(&mut self.begun);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(Line::Whole(line));
            }
        }
    }

    /// What was begun when nothing came any more: whoever reads a person's or a program's lines may take it for one.
    pub(super) fn rest(&mut self) -> Option<Line> {
        if std::mem::take(&mut self.is_skipping) {
            return Some(Line::TooLong);
        }
        let begun = std::mem::take(&mut self.begun);
        (!begun.is_empty()).then_some(Line::Whole(begun))
    }

    /// Waits until the other side has gone; what it says meanwhile is of no interest.
    pub(super) async fn gone(&mut self) {
        while let Ok(there) = self.reader.fill_buf().await {
            let count = there.len();
            if count == 0 {
                return;
            }
            self.reader.consume(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn lines_come_whole_and_a_long_one_is_skipped() {
        let (mut there, here) = tokio::io::duplex(8);
        let mut lines = LineReader { bytes_max: 10, ..LineReader::new(here) };
        let writing = tokio::spawn(async move {
            there.write_all(b"one\r\n\n12345678901\nten chars!\nhalf").await.unwrap();
        });
        for expected in ["one", "", "-", "ten chars!"] {
            let line = match lines.next().await.unwrap() {
                Line::TooLong => "-".into(),
                Line::Whole(line) => String::from_utf8(line).unwrap(),
                Line::End => panic!("it ended before {expected}"),
            };
            assert_eq!(line, expected);
        }
        writing.await.unwrap();
        assert_eq!(lines.next().await.unwrap(), Line::End, "half a line is none");
        assert_eq!(lines.rest(), Some(Line::Whole(b"half".into())), "unless it is asked for");
        assert_eq!(lines.rest(), None);
    }

    #[tokio::test]
    async fn giving_up_in_the_middle_of_a_line_loses_nothing() {
        let (mut there, here) = tokio::io::duplex(64);
        let mut lines = LineReader::new(here);
        there.write_all(b"ha").await.unwrap();
        tokio::select! {
            biased;
            line = lines.next() => panic!("{line:?}"),
            () = std::future::ready(()) => {}
        }
        there.write_all(b"lf\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), Line::Whole(b"half".into()));
    }
}
