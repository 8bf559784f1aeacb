//! Bytes from a terminal → lines: CR, LF or both end one; backspace takes a character back.

use embedded_io_async::Read;

/// Bytes taken from the console at once.
const READ_BYTES: usize = 64;

const CTRL_C: u8 = 0x03;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const DELETE: u8 = 0x7F;

/// What the next line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// It is in the buffer.
    Whole,
    /// It was longer than the buffer and is gone.
    TooLong,
    /// The console has ended or failed.
    End,
}

/// What was read and not used yet.
#[derive(Debug)]
pub(super) struct Lines {
    chunk: [u8; READ_BYTES],
    used: usize,
    len: usize,
    /// The last byte was CR: an LF directly behind it belongs to it.
    was_cr: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self { chunk: [0; READ_BYTES], used: 0, len: 0, was_cr: false }
    }
}

impl Lines {
    /// Reads the next line into `line`. A line that the end of the console cuts off is dropped.
    pub(super) async fn next<const N: usize>(
        &mut self,
        rx: &mut impl Read,
        line: &mut heapless::Vec<u8, N>,
    ) -> Line {
        line.clear();
        let mut is_too_long = false;
        loop {
            if self.used == self.len {
                match rx.read(&mut self.chunk).await {
                    Ok(0) | Err(_) => return Line::End,
                    Ok(len) => (self.used, self.len) = (0, len),
                }
            }
            let byte = self.chunk[self.used];
            self.used += 1;
            let was_cr = core::mem::replace(&mut self.was_cr, byte == b'\r');
            match byte {
                b'\n' if was_cr => {}
                b'\r' | b'\n' if is_too_long => return Line::TooLong,
                b'\r' | b'\n' => return Line::Whole,
                BACKSPACE | DELETE => take_character(line),
                CTRL_C | CTRL_U => {
                    line.clear();
                    is_too_long = false;
                }
                byte => is_too_long |= line.push(byte).is_err(),
            }
        }
    }
}

/// Takes back the last character with all its bytes.
fn take_character<const N: usize>(line: &mut heapless::Vec<u8, N>) {
    while let Some(byte) = line.pop() {
        let is_behind_the_first = byte & 0b1100_0000 == 0b1000_0000;
        if !is_behind_the_first {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use embassy_futures::block_on;
    use std::{string::String, vec::Vec};

    fn read(bytes: &[u8]) -> Vec<Result<String, Line>> {
        let (mut rx, mut lines, mut line) = (bytes, Lines::default(), heapless::Vec::<u8, 8>::new());
        let mut found = Vec::new();
        loop {
            match block_on(lines.next(&mut rx, &mut line)) {
                Line::Whole => found.push(Ok(String::from_utf8(line.to_vec()).unwrap())),
                Line::End => return found,
                other => found.push(Err(other)),
            }
        }
    }

    #[test]
    fn lines_end_with_cr_or_lf_or_both() {
        let ok = |text: &str| Ok(text.into());
        assert_eq!(read(b"a\rb\nc\r\nd\r\n\ne"), [ok("a"), ok("b"), ok("c"), ok("d"), ok("")]);
        let many: Vec<_> = read("get\r\n".repeat(100).as_bytes());
        assert_eq!(many, std::vec![ok("get"); 100]);
    }

    #[test]
    fn backspace_takes_a_character_and_ctrl_u_the_line() {
        let ok = |text: &str| Ok(text.into());
        assert_eq!(read("\x08aü\x7fb\x08\x08x\r".as_bytes()), [ok("x")]);
        assert_eq!(read(b"abc\x15de\rf\x03g\r"), [ok("de"), ok("g")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_not_half_a_line() {
        assert_eq!(
            read(b"123456789\rok\r12345678\r"),
            [Err(Line::TooLong), Ok("ok".into()), Ok("12345678".into())]
        );
    }
}
