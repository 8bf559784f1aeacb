//! The bridge's sessions where links come late, break early, or nobody waits for them any more; in virtual time.

use firmware::Board;
use picolake::{
    board::{OwnedRequest, Piece, Session, State},
    link::{
        ByteStream,
        sim::{self, TokioClock},
    },
};
use shared::{
    frame::{Fed, FrameBuffer, FrameDecoder, Header},
    limits::{BODY_BYTES_MAX, REQUESTS_MAX, WIRE_BYTES_MAX},
    message::{self, BoardHello, BridgeHello, Class, Part, kind},
    version,
};
use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    sync::mpsc,
    task::LocalSet,
    time::sleep,
};

const PIPE_BYTES: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(600);
/// A moment in which everything that is ready happens.
const MOMENT: Duration = Duration::from_millis(1);

type Opened = Result<Box<dyn ByteStream>, String>;

/// Serves each link with the firmware, one board for all.
fn spawn_board() -> mpsc::UnboundedSender<DuplexStream> {
    let (links_in, mut links) = mpsc::unbounded_channel();
    tokio::task::spawn_local(async move {
        let (board, clock) = (RefCell::new(Board::new(sim::facts("sessions"))), TokioClock::start());
        while let Some(link) = links.recv().await {
            sim::serve(&board, clock, link).await;
        }
    });
    links_in
}

/// A link to the board.
fn plug(board: &mpsc::UnboundedSender<DuplexStream>) -> Opened {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    board.send(theirs).map_err(|_| "the board is gone".to_string())?;
    Ok(Box::new(ours))
}

/// The board's UTC, once it has answered.
async fn utc_us(session: &Session) -> Option<i64> {
    let ask = OwnedRequest::Command("get status".into());
    let mut answer = session.ask(ask, Class::Interactive).await.unwrap();
    let mut utc_us = None;
    while let Some(piece) = tokio::time::timeout(PATIENCE, answer.next()).await.expect("an answer").unwrap() {
        if let Piece::Part(bytes) = &piece
            && let Some(Part::Status(status)) = bytes.part()
        {
            utc_us = status.utc_us;
        }
    }
    utc_us
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_cancelled_before_the_link_came_up_is_never_sent() {
    let test = async {
        let board = spawn_board();
        let open = move || {
            let board = board.clone();
            async move {
                sleep(Duration::from_secs(2)).await;
                plug(&board)
            }
        };
        let session = Session::connect_with(open, 1);
        let far = OwnedRequest::Command("set time = 9000-01-01T00:00:00Z".into());
        drop(session.ask(far, Class::Interactive).await.unwrap());
        let utc_us = utc_us(&session).await.expect("the session has set the clock");
        assert!(utc_us < 200_000_000_000_000_000, "a cancelled request was run: {utc_us}");
    };
    LocalSet::new().run_until(test).await;
}

/// Answers the bridge's hello, reads no more, and hangs up.
async fn hang_up_after_hello(mut link: DuplexStream) {
    let mut decoder = FrameDecoder::default();
    loop {
        let byte = [link.read_u8().await.unwrap()];
        let Fed::Frame(_, body) = decoder.feed(&mut &byte[..]) else { continue };
        let nonce = message::read::<BridgeHello>(body).expect("the bridge speaks first").nonce;
        let hello = BoardHello {
            version_min: version::MIN,
            version_max: version::CURRENT,
            nonce,
            features: 0,
            body_bytes_max: BODY_BYTES_MAX as u16,
            requests_max: REQUESTS_MAX as u8,
            board_id: &[1],
            epoch: 1,
            boot_count: 1,
            catalog_hash: 0,
            build: "hangs up",
        };
        let (mut frame, mut out) = (FrameBuffer::default(), [0; WIRE_BYTES_MAX]);
        let len = message::write(&hello, frame.body()).unwrap();
        let header = Header { kind: kind::BOARD_HELLO, generation: 0, request: 0, sequence: 0 };
        let len = frame.seal(header, len, &mut out);
        link.write_all(&out[..len]).await.unwrap();
        return sleep(MOMENT).await;
    }
}

#[tokio::test(start_paused = true)]
async fn links_that_break_before_the_clock_is_set_use_up_no_room() {
    let test = async {
        let (board, opened) = (spawn_board(), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&opened);
        let open = move || {
            let link = if counter.fetch_add(1, Ordering::Relaxed) < 2 * REQUESTS_MAX {
                let (ours, theirs) = tokio::io::duplex(4); // less than a ping
                tokio::spawn(hang_up_after_hello(theirs));
                Ok(Box::new(ours) as Box<dyn ByteStream>)
            } else {
                plug(&board)
            };
            async { link }
        };
        let session = Session::connect_with(open, 1);
        tokio::time::timeout(PATIENCE, async {
            while opened.load(Ordering::Relaxed) < REQUESTS_MAX + 2 {
                sleep(MOMENT).await;
            }
        })
        .await
        .expect("the session connects again and again");
        assert!(utc_us(&session).await.is_some());
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_dropped_while_its_link_opens_ends_at_once() {
    let held = Arc::new(());
    let holder = Arc::clone(&held);
    let open = move || {
        let holder = Arc::clone(&holder);
        async move {
            let _holder = holder;
            std::future::pending::<Opened>().await
        }
    };
    let session = Session::connect_with(open, 1);
    sleep(MOMENT).await;
    assert_eq!(Arc::strong_count(&held), 3);
    drop(session);
    sleep(MOMENT).await;
    assert_eq!(Arc::strong_count(&held), 1, "the session lives on");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_dropped_while_it_waits_to_connect_again_ends_at_once() {
    let held = Arc::new(());
    let holder = Arc::clone(&held);
    let open = move || {
        let _holder = &holder;
        async { Opened::Err("nobody there".into()) }
    };
    let session = Session::connect_with(open, 1);
    sleep(Duration::from_secs(120)).await; // the waits have grown by now
    assert!(matches!(session.state(), State::Offline { .. }));
    drop(session);
    sleep(MOMENT).await;
    assert_eq!(Arc::strong_count(&held), 1, "the session lives on");
}
