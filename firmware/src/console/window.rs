//! Text of any length through a small buffer: it is written again and again, and each time the next piece is sent.

use super::Gone;
use core::fmt;
use embedded_io_async::Write;

/// Bytes that are sent at once.
const WINDOW_BYTES: usize = 256;

/// Takes the piece of a text that begins `skip` bytes from its beginning. A line ends with CR and LF.
#[derive(Debug)]
pub(super) struct Window {
    skip: usize,
    /// Bytes of the whole text so far.
    seen: usize,
    bytes: heapless::Vec<u8, WINDOW_BYTES>,
}

impl Window {
    fn put(&mut self, byte: u8) {
        if self.seen >= self.skip {
            let _ = self.bytes.push(byte); // what does not fit comes next time
        }
        self.seen += 1;
    }
}

impl fmt::Write for Window {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                self.put(b'\r');
            }
            self.put(byte);
        }
        Ok(())
    }
}

/// Sends what `write` writes, the same each time it is called. Says whether it could write it.
pub(super) async fn send(
    tx: &mut impl Write,
    write: impl Fn(&mut Window) -> fmt::Result,
) -> Result<fmt::Result, Gone> {
    let mut sent = 0;
    loop {
        let mut window = Window { skip: sent, seen: 0, bytes: heapless::Vec::new() };
        let written = write(&mut window);
        tx.write_all(&window.bytes).await.map_err(|_| Gone)?;
        sent += window.bytes.len();
        if window.bytes.is_empty() || sent >= window.seen {
            return Ok(written);
        }
    }
}
