//! What a board does with links on which nobody speaks, or nobody reads; in virtual time.

use firmware::{Board, serve::Closed};
use picolake::link::sim::{self, TokioClock};
use shared::{
    frame::WireBuffer,
    host::Host,
    limits::{LINK_MUTE_US_MAX, SESSION_QUIET_US_MAX, WIRE_BYTES_MAX},
    message::{Class, LinkTest, Request},
};
use std::{cell::RefCell, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    time::{Instant, sleep, timeout},
};

const PIPE_BYTES: usize = 256;
const MUTE_MAX: Duration = Duration::from_micros(LINK_MUTE_US_MAX);
const QUIET_MAX: Duration = Duration::from_micros(SESSION_QUIET_US_MAX);
/// More than any deadline's rounding.
const MARGIN: Duration = Duration::from_millis(10);

fn board() -> RefCell<Board> {
    RefCell::new(Board::new(sim::facts("links")))
}

/// Everything a bridge has to say now.
async fn say(host: &mut Host, link: &mut DuplexStream) {
    let mut out: WireBuffer = [0; WIRE_BYTES_MAX];
    while let Some(len) = host.transmit(0, &mut out) {
        link.write_all(&out[..len]).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_nobody_says_hello_is_closed() {
    let (board, start) = (board(), Instant::now());
    let (mut bridge, link) = tokio::io::duplex(PIPE_BYTES);
    let chatter = async {
        loop {
            bridge.write_all(b"GET / HTTP/1.1\r\n\0").await.unwrap();
            sleep(Duration::from_millis(300)).await;
        }
    };
    let closed = tokio::select! {
        closed = sim::serve(&board, TokioClock::start(), link) => closed,
        () = chatter => unreachable!("it goes on for ever"),
    };
    assert_eq!(closed, Closed::Mute);
    assert!(start.elapsed() >= MUTE_MAX && start.elapsed() < MUTE_MAX + MARGIN, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_no_bytes_does_not_hold_a_connection() {
    let (board, start) = (board(), Instant::now());
    let (mut bridge, link) = tokio::io::duplex(PIPE_BYTES);
    let served = async { sim::serve(&board, TokioClock::start(), link).await };
    let asks_and_does_not_read = async {
        let mut host = Host::new(1);
        host.connect(0);
        say(&mut host, &mut bridge).await;
        let mut input = [0; PIPE_BYTES];
        let mut is_up = false;
        while !is_up {
            let len = bridge.read(&mut input).await.unwrap();
            host.feed(0, &input[..len], |_| is_up = true);
        }
        host.open(&Request::LinkTest(LinkTest { rows: 1_000, seed: 1 }), Class::Interactive).unwrap();
        say(&mut host, &mut bridge).await;
        std::future::pending::<()>().await;
    };
    let closed = tokio::select! {
        closed = timeout(QUIET_MAX * 2, served) => closed.expect("the board gives the connection up"),
        () = asks_and_does_not_read => unreachable!("it goes on for ever"),
    };
    assert_eq!(closed, Closed::Quiet);
    assert!(start.elapsed() < QUIET_MAX + MARGIN, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_line_on_which_nobody_spoke_for_an_hour_still_answers() {
    let board = board();
    let (mut bridge, line) = tokio::io::duplex(PIPE_BYTES);
    let asks_after_an_hour = async {
        let mut host = Host::new(1);
        let mut input = [0; PIPE_BYTES];
        let hour = sleep(Duration::from_secs(3600));
        tokio::pin!(hour);
        loop {
            tokio::select! {
                () = &mut hour => break,
                read = bridge.read(&mut input) => assert_ne!(read.unwrap(), 0, "the line was closed"),
            }
        }
        host.connect(0);
        say(&mut host, &mut bridge).await;
        let mut is_up = false;
        while !is_up {
            let len = bridge.read(&mut input).await.unwrap();
            host.feed(0, &input[..len], |_| is_up = true);
        }
    };
    tokio::select! {
        () = sim::serve_line(&board, TokioClock::start(), line) => panic!("the line was given up"),
        () = asks_after_an_hour => {}
    }
}
