//! The real image in QEMU, asked by the real bridge over both of its links.

use picolake::{
    board::{AnswerError, Hello, OwnedRequest, Piece, RowCheck, Session, State},
    link::Address,
};
use picolake_tests::qemu::{Qemu, image};
use shared::message::{Class, LinkTest, Part};
use std::{process::Stdio, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::Command,
};

/// QEMU shares two cores with everything else.
const PATIENCE: Duration = Duration::from_secs(60);
const BOOTS: u32 = 20;
/// Of one core, while both links are connected and nothing is asked.
const IDLE_CPU_MAX: f64 = 0.03;
/// Connections that the image serves at once.
const LINK_SOCKETS: usize = 2;
/// More rows than any test waits for.
const ROWS_ENDLESS: u32 = u32::MAX;

/// Waits until the board is up, through as many attempts as it takes to boot.
async fn up(session: &Session) -> Arc<Hello> {
    let attempts = async {
        loop {
            match session.wait_up(PATIENCE).await {
                Ok(hello) => return hello,
                // The session tries again by itself; its next state says how that went.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, attempts).await.expect("the board comes up")
}

fn connect(link: &Address) -> Session {
    Session::connect(link.clone(), rand::random())
}

/// Asks a command; the answer's first part must be what `read` makes something of.
async fn ask<T>(session: &Session, text: &str, read: impl Fn(Part<'_>) -> Option<T>) -> T {
    let asked = async {
        let mut answer = session.ask(OwnedRequest::Command(text.into()), Class::Interactive).await.unwrap();
        let mut found = None;
        while let Some(piece) = answer.next().await.unwrap() {
            if let Piece::Part(bytes) = &piece {
                found = found.or_else(|| bytes.part().and_then(&read));
            }
        }
        found.expect("the answer has the part that was asked for")
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("the board answers")
}

/// Streams test rows and checks each, up to `rows_max` of them.
async fn stream(session: &Session, rows: u32, rows_max: u64) -> Result<u64, AnswerError> {
    let mut answer =
        session.ask(OwnedRequest::LinkTest(LinkTest { rows, seed: 7 }), Class::Interactive).await.unwrap();
    let mut check = RowCheck::new(7);
    while check.rows < rows_max
        && let Some(piece) =
            tokio::time::timeout(PATIENCE, answer.next()).await.expect("rows go on coming")?
    {
        if let Piece::Rows { count, bytes, .. } = piece {
            check.batch(count, &bytes).unwrap();
        }
    }
    Ok(check.rows)
}

#[tokio::test]
async fn twenty_boots_in_a_row_come_up_on_both_links() {
    let Some(image) = image("twenty boots") else { return };
    for _ in 0..BOOTS {
        let board = Qemu::boot(&image).unwrap();
        let (serial, tcp) = (connect(&board.serial), connect(&board.tcp));
        let (by_serial, by_tcp) = (up(&serial).await, up(&tcp).await);
        assert_eq!(by_serial.board_id, by_tcp.board_id, "one board, two links");
        assert_eq!(by_serial.epoch, by_tcp.epoch, "one boot, one epoch");
        assert_ne!(by_serial.epoch, 0);
    }
}

#[tokio::test]
async fn status_version_and_help_are_answered_on_both_links() {
    let Some(image) = image("status, version, help") else { return };
    let board = Qemu::boot(&image).unwrap();
    for link in [&board.serial, &board.tcp] {
        let session = connect(link);
        up(&session).await;
        let version = |part: Part<'_>| match part {
            Part::Version(version) => Some(version.build.to_string()),
            _ => None,
        };
        assert_eq!(ask(&session, "get version", version).await, firmware::BUILD);
        let clock = |part: Part<'_>| match part {
            Part::Status(status) => Some((status.board.to_string(), status.utc_us, status.stack_bytes)),
            _ => None,
        };
        let (kind, utc_us, stack_bytes) = ask(&session, "get status", clock).await;
        assert_eq!(kind, "mps2-an386");
        assert!(utc_us.is_some(), "the bridge has set the clock before the first answer");
        assert!(stack_bytes > 0, "the stack is measured");
        let text = |part: Part<'_>| if let Part::Text(text) = part { Some(text.to_string()) } else { None };
        assert!(ask(&session, "help", text).await.starts_with("get status"));
        assert_eq!(stream(&session, 2_000, u64::MAX).await, Ok(2_000));
    }
}

#[tokio::test]
async fn a_reset_in_mid_stream_is_seen_by_its_new_epoch_and_reconnected() {
    let Some(image) = image("reset in mid-stream") else { return };
    let mut board = Qemu::boot(&image).unwrap();
    for link in [board.serial.clone(), board.tcp.clone()] {
        let session = connect(&link);
        let before = up(&session).await;
        let ask = OwnedRequest::LinkTest(LinkTest { rows: ROWS_ENDLESS, seed: 7 });
        let mut answer = session.ask(ask, Class::Interactive).await.unwrap();
        let (mut check, mut is_reset) = (RowCheck::new(7), false);
        let ended = loop {
            match tokio::time::timeout(PATIENCE, answer.next()).await.expect("rows, or an end") {
                Ok(Some(Piece::Rows { count, bytes, .. })) => check.batch(count, &bytes).unwrap(),
                Ok(Some(Piece::Part(_))) => {}
                other => break other,
            }
            if check.rows > 500 && !is_reset {
                board.reset().unwrap();
                is_reset = true;
            }
        };
        assert_eq!(ended, Err(AnswerError::BoardRestarted), "after {} rows", check.rows);
        let after = up(&session).await;
        assert_ne!(after.epoch, before.epoch);
        assert_eq!(after.boot_count, before.boot_count + 1);
        assert_eq!(after.board_id, before.board_id);
        assert_eq!(stream(&session, 1_000, u64::MAX).await, Ok(1_000));
    }
}

#[tokio::test(flavor = "multi_thread")] // sessions that were dropped must close their links while the test waits
async fn a_bridge_killed_in_mid_stream_leaves_the_board_ready_for_the_next() {
    let Some(image) = image("bridge killed") else { return };
    let board = Qemu::boot(&image).unwrap();
    for link in [&board.serial, &board.tcp] {
        up(&connect(link)).await;
        for _ in 0..3 {
            let mut bridge = Command::from(picolake_tests::picolake())
                .args(["measure", &link.to_string(), "--rows", &ROWS_ENDLESS.to_string(), "--progress"])
                .stderr(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            // It tells its progress when rows have come.
            let mut lines = BufReader::new(bridge.stderr.take().unwrap()).lines();
            let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("progress is told");
            let line = line.unwrap().unwrap_or_default();
            assert!(line.ends_with(&format!("of {ROWS_ENDLESS} rows")), "{line}");
            bridge.kill().await.unwrap();
            let session = connect(link);
            up(&session).await;
            assert_eq!(stream(&session, 1_000, u64::MAX).await, Ok(1_000));
        }
    }
}

#[tokio::test]
async fn mute_connections_on_every_socket_do_not_lock_a_bridge_out() {
    let Some(image) = image("mute connections") else { return };
    let board = Qemu::boot(&image).unwrap();
    up(&connect(&board.serial)).await; // the network is up, too
    let Address::Tcp(to) = &board.tcp else { panic!("{} is no TCP link", board.tcp) };
    let mut mute = Vec::new();
    for _ in 0..LINK_SOCKETS {
        let mut connection = tokio::net::TcpStream::connect(to).await.unwrap();
        // The board's hello shows that one of its sockets has taken the connection.
        let heard = tokio::time::timeout(PATIENCE, connection.read_u8()).await.expect("the board says hello");
        assert_eq!(heard.unwrap(), shared::frame::DELIMITER);
        mute.push(connection);
    }
    let session = connect(&board.tcp);
    up(&session).await;
    assert_eq!(stream(&session, 1_000, u64::MAX).await, Ok(1_000));
    drop(mute);
}

#[tokio::test]
async fn two_boards_at_once_are_two_boards_and_idle_ones_sleep() {
    let Some(image) = image("two boards, idle") else { return };
    let boards = [Qemu::boot(&image).unwrap(), Qemu::boot(&image).unwrap()];
    let sessions: Vec<Session> =
        boards.iter().flat_map(|board| [connect(&board.serial), connect(&board.tcp)]).collect();
    let mut ids = Vec::new();
    for session in &sessions {
        ids.push(up(session).await.board_id.clone());
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(ids[2], ids[3]);
    assert_ne!(ids[0], ids[2]);

    // A measure of time, not a wait for something to happen.
    let span = Duration::from_secs(5);
    let before = boards[0].cpu_time().unwrap();
    tokio::time::sleep(span).await;
    let used = boards[0].cpu_time().unwrap() - before;
    assert!(used.as_secs_f64() < IDLE_CPU_MAX * span.as_secs_f64(), "{used:?} of {span:?} while idle");
    assert!(sessions.iter().all(|session| matches!(session.state(), State::Up(_))));
}
