//! A serial line: bytes at the line's rate, ten bit times each, in both directions.

use std::{task::Poll, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf},
    time::{Instant, sleep_until},
};

/// Bytes the line carries at once.
const CHUNK_BYTES: usize = 64;
/// Bytes that wait for the line: a UART's ring, not a whole frame.
const RING_BYTES: usize = 512;
/// Start bit, eight bits, stop bit.
const BITS_PER_BYTE: u64 = 10;

/// Two ends joined by a line of `baud` bits a second. Runs on tokio's clock, so virtual time works.
/// It lasts as long as its ends do. Returns the board's end and the bridge's.
pub fn paced_line(baud: u64) -> (DuplexStream, DuplexStream) {
    let (board, board_far) = tokio::io::duplex(RING_BYTES);
    let (bridge, bridge_far) = tokio::io::duplex(RING_BYTES);
    let (board_rx, board_tx) = tokio::io::split(board_far);
    let (bridge_rx, bridge_tx) = tokio::io::split(bridge_far);
    tokio::spawn(carry(board_rx, bridge_tx, baud));
    tokio::spawn(carry(bridge_rx, board_tx, baud));
    (board, bridge)
}

/// Carries bytes one way; a byte arrives when its last bit has.
async fn carry(mut from: ReadHalf<DuplexStream>, mut to: WriteHalf<DuplexStream>, baud: u64) {
    let mut chunk = [0; CHUNK_BYTES];
    let mut free_at = Instant::now();
    loop {
        // Bytes that were waiting follow the last ones without a pause, however late a timer woke us.
        let waiting = poll_once(from.read(&mut chunk)).await;
        let read = match waiting {
            Some(read) => read,
            None => {
                let read = from.read(&mut chunk).await;
                free_at = free_at.max(Instant::now());
                read
            }
        };
        let Ok(len @ 1..) = read else { return };
        free_at += Duration::from_nanos(len as u64 * BITS_PER_BYTE * 1_000_000_000 / baud);
        sleep_until(free_at).await;
        if to.write_all(&chunk[..len]).await.is_err() {
            return;
        }
    }
}

/// What a future has ready now.
async fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
