//! What people get wrong: one clear line each, exit code 2, no stack trace.

use picolake_tests::picolake as alone;
use shared::{
    frame::{DELIMITER, Fed, FrameBuffer, FrameDecoder, Header},
    limits::WIRE_BYTES_MAX,
    message::{self, BoardHello, BridgeHello, kind},
    version,
};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Output,
};

fn picolake(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap(); // no picolake.yaml in it
    alone().args(arguments).current_dir(folder.path()).output().unwrap()
}

/// Runs it; it must refuse in one line that has all of `words`.
fn refused(arguments: &[&str], words: &[&str]) {
    let Output { status, stdout, stderr } = picolake(arguments);
    let line = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{arguments:?}: {line}");
    assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    assert!(stdout.is_empty(), "a failure must not look like an answer");
    for word in words {
        assert!(line.contains(word), "{line} lacks `{word}`");
    }
}

#[test]
fn an_unknown_scheme_names_the_known_ones() {
    refused(
        &["run", "usb:1", "get status"],
        &["there is no scheme `usb`", "serial:", "tcp:", "unix:", "sim:"],
    );
}

#[test]
fn a_missing_device_is_named() {
    refused(&["run", "serial:/dev/no-such-tty", "get status"], &["/dev/no-such-tty", "plugged in"]);
    refused(&["run", "unix:/no/such/socket", "get status"], &["/no/such/socket", "QEMU"]);
}

#[test]
fn a_port_where_nobody_listens_is_named() {
    // Port 1 is given to nobody who asks the system for one.
    refused(&["run", "tcp:127.0.0.1:1", "get status"], &["127.0.0.1:1", "is the board on"]);
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&["sim", "--tcp", &address], &[&address, "choose a free port"]);
}

#[test]
fn a_board_that_is_not_configured_says_where_to_list_it() {
    refused(&["run", "pump", "get status"], &["no board `pump`", "picolake.yaml"]);
}

#[test]
fn a_bad_command_comes_back_with_its_place() {
    refused(&["run", "sim:", "get statsu"], &["syntax", "did you mean `status`?", "at byte 4"]);
}

/// Serves one connection with `bytes` and keeps it open until the other side leaves.
fn serve(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&bytes).unwrap();
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    format!("tcp:{address}")
}

/// Serves one connection as a board that says hello and answers nothing else.
fn serve_hello(features: u32) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut decoder, mut byte) = (FrameDecoder::default(), [0]);
        loop {
            stream.read_exact(&mut byte).unwrap();
            let Fed::Frame(_, body) = decoder.feed(&mut &byte[..]) else { continue };
            let nonce = message::read::<BridgeHello>(body).expect("the bridge says hello first").nonce;
            stream.write_all(&hello(version::MIN, version::CURRENT, nonce, features)).unwrap();
            break;
        }
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    format!("tcp:{address}")
}

/// The hello of a board, as it travels.
fn hello(version_min: u8, version_max: u8, nonce: u32, features: u32) -> Vec<u8> {
    let mut frame = FrameBuffer::default();
    let hello = BoardHello {
        version_min,
        version_max,
        nonce,
        features,
        body_bytes_max: 1088,
        requests_max: 8,
        board_id: &[1, 2, 3],
        epoch: 1,
        boot_count: 1,
        catalog_hash: 0,
        build: "picolake 99",
    };
    let len = message::write(&hello, frame.body()).unwrap();
    let header = Header { kind: kind::BOARD_HELLO, generation: 0, request: 0, sequence: 0 };
    let mut out = [0; WIRE_BYTES_MAX];
    let sent = frame.seal(header, len, &mut out);
    [&[DELIMITER], &out[..sent]].concat()
}

#[test]
fn a_board_without_test_rows_cannot_be_measured() {
    refused(&["measure", &serve_hello(0)], &["unsupported", "sends no test rows"]);
}

#[test]
fn a_link_that_speaks_another_protocol_is_told_apart_from_a_silent_one() {
    let link = serve(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n".to_vec());
    refused(&["run", &link, "get status"], &["no Picolake board", "32 bytes"]);
}

#[test]
fn a_board_of_another_version_says_which_side_to_update() {
    let link = serve(hello(200, 201, 0, 0));
    refused(&["run", &link, "get status"], &["versions 200 to 201", "update the bridge"]);
}
