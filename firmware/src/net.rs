//! TCP links: the board listens, bridges connect.

use crate::{Board, clock::Clock, serve};
use core::cell::RefCell;
use embassy_net::{Stack, tcp::TcpSocket};
use embassy_time::{Duration, with_timeout};

/// Where a board listens.
pub const LINK_PORT: u16 = 7000;
/// A socket has no backlog: while one serves, the other accepts. Each takes a [`serve_tcp`] of its own.
pub const LINK_SOCKETS: usize = 2;
/// A peer that has gone silently gives its socket back after this time.
pub const LINK_TIMEOUT: Duration = Duration::from_secs(30);

const LINK_KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long a link that is being closed waits for its peer to take the last bytes.
const LINK_FLUSH_MAX: Duration = Duration::from_secs(2);
/// How long the reset of such a link may take to leave the board.
const LINK_ABORT_MAX: Duration = Duration::from_millis(100);
const LINK_RX_BYTES: usize = 2048;
const LINK_TX_BYTES: usize = 4096;

/// Buffers of a TCP link. Make them static: a task's own would pass over the stack at its start.
#[derive(Debug)]
pub struct LinkBuffers {
    /// What was received and not read yet.
    pub rx: [u8; LINK_RX_BYTES],
    /// What was sent and not acknowledged yet.
    pub tx: [u8; LINK_TX_BYTES],
}

impl LinkBuffers {
    /// Empty ones.
    #[expect(clippy::new_without_default, reason = "a default would be made on the stack")]
    pub const fn new() -> Self {
        Self { rx: [0; LINK_RX_BYTES], tx: [0; LINK_TX_BYTES] }
    }
}

/// Serves one connection to [`LINK_PORT`] after the other.
pub async fn serve_tcp(
    board: &RefCell<Board>,
    network: Stack<'_>,
    buffers: &mut LinkBuffers,
    clock: &impl Clock,
) -> ! {
    loop {
        let mut socket = TcpSocket::new(network, &mut buffers.rx, &mut buffers.tx);
        socket.set_nagle_enabled(false);
        socket.set_timeout(Some(LINK_TIMEOUT));
        socket.set_keep_alive(Some(LINK_KEEP_ALIVE));
        if socket.accept(LINK_PORT).await.is_err() {
            continue;
        }
        let (rx, tx) = socket.split();
        let _closed = serve(board, clock, rx, tx).await;
        #[cfg(feature = "defmt")]
        defmt::info!("TCP link: {}", _closed);
        socket.close();
        // What was written last is still on its way; an error means that nobody waits for it.
        if with_timeout(LINK_FLUSH_MAX, socket.flush()).await.is_err() {
            // The peer is there and takes nothing: it is told once that the link is gone.
            socket.abort();
            let _ = with_timeout(LINK_ABORT_MAX, socket.flush()).await;
        }
    }
}
