//! What is in a stream of bytes by the drawing in `frame.rs`, found the slow way, against [`FrameDecoder`].

use crate::script::Script;
use shared::{
    frame::{DELIMITER, Damage, Fed, FrameBuffer, FrameDecoder, Header},
    limits::{BODY_BYTES_MAX, CRC_BYTES, HEADER_BYTES, WIRE_BYTES_MAX},
};

/// What stood before a delimiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Frame(Header, Vec<u8>),
    Damaged(Damage),
}

/// A frame that is like no other here.
pub(crate) fn good_frame() -> (Vec<u8>, Found) {
    let header = Header { kind: 0x5A, generation: 7, request: 0x1234, sequence: 0xDEAD_BEEF };
    let body = b"a good\0frame".to_vec();
    (sealed(header, &body), Found::Frame(header, body))
}

/// A frame on the wire, its delimiter included.
pub(crate) fn sealed(header: Header, body: &[u8]) -> Vec<u8> {
    let mut frame = FrameBuffer::default();
    let mut out = [0; WIRE_BYTES_MAX];
    frame.body()[..body.len()].copy_from_slice(body);
    let len = frame.seal(header, body.len(), &mut out);
    out[..len].to_vec()
}

/// What a decoder says to these pieces of a stream.
pub(crate) fn found<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<Found> {
    let mut decoder = FrameDecoder::default();
    let mut all = Vec::new();
    for mut piece in pieces {
        loop {
            let before = piece.len();
            match decoder.feed(&mut piece) {
                Fed::More => break,
                Fed::Frame(header, body) => all.push(Found::Frame(header, body.to_vec())),
                Fed::Damaged(damage) => all.push(Found::Damaged(damage)),
            }
            assert!(piece.len() < before, "something was found in nothing");
        }
        assert!(piece.is_empty(), "bytes were left where there is no more");
    }
    all
}

/// Pieces of `bytes`, cut at `points`; some may be empty.
pub(crate) fn cut<'b>(bytes: &'b [u8], points: &[u16]) -> Vec<&'b [u8]> {
    let mut points: Vec<usize> = points.iter().map(|point| usize::from(*point) % (bytes.len() + 1)).collect();
    points.sort_unstable();
    let mut pieces = Vec::new();
    let mut begin = 0;
    for point in points.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[begin..point]);
        begin = point;
    }
    pieces
}

/// What is in a stream.
pub(crate) fn expected(stream: &[u8]) -> Vec<Found> {
    let mut ended: Vec<&[u8]> = stream.split(|byte| *byte == DELIMITER).collect();
    ended.pop(); // no delimiter ends it yet
    ended.into_iter().filter(|stuffed| !stuffed.is_empty()).map(expected_of).collect()
}

fn expected_of(stuffed: &[u8]) -> Found {
    if stuffed.len() > WIRE_BYTES_MAX {
        return Found::Damaged(Damage::TooLong);
    }
    let Some(plain) = unstuffed(stuffed).filter(|plain| plain.len() >= HEADER_BYTES + CRC_BYTES) else {
        return Found::Damaged(Damage::Malformed);
    };
    let (checked, check_sum) = plain.split_at(plain.len() - CRC_BYTES);
    let (header, body) = checked.split_at(HEADER_BYTES);
    if body.len() > BODY_BYTES_MAX {
        return Found::Damaged(Damage::TooLong);
    }
    if crc(checked).to_le_bytes() != check_sum {
        return Found::Damaged(Damage::Crc);
    }
    let little_endian =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
    let header = Header {
        kind: header[0],
        generation: header[1],
        request: little_endian(&header[2..4]) as u16,
        sequence: little_endian(&header[4..8]),
    };
    Found::Frame(header, body.to_vec())
}

/// COBS backwards: each code counts itself and the bytes up to the next zero, 255 those up to no zero.
fn unstuffed(mut stuffed: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    while let Some((code, rest)) = stuffed.split_first() {
        let (run, rest) = rest.split_at_checked(usize::from(*code) - 1)?;
        plain.extend(run);
        if *code < 0xFF && !rest.is_empty() {
            plain.push(0);
        }
        stuffed = rest;
    }
    Some(plain)
}

/// CRC-32/ISO-HDLC, bit by bit.
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
    }
    !crc
}

/// Follows what an end of the protocol hears, to compare its counters with.
#[derive(Default)]
pub(crate) struct Listener {
    begun: Vec<u8>,
    pub(crate) frames: u64,
    pub(crate) damaged: u64,
}

impl Listener {
    /// What these bytes complete.
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> Vec<Found> {
        self.begun.extend(bytes);
        let all = expected(&self.begun);
        let ended = self.begun.iter().rposition(|byte| *byte == DELIMITER).map_or(0, |end| end + 1);
        self.begun.drain(..ended);
        for found in &all {
            match found {
                Found::Frame(..) => self.frames += 1,
                Found::Damaged(_) => self.damaged += 1,
            }
        }
        all
    }

    /// What was begun is forgotten.
    pub(crate) fn reset(&mut self) {
        self.begun.clear();
    }
}

/// What a bad line may bring: bytes, delimiters, frames whole and spoilt, runs without an end.
pub(crate) fn noise(script: &mut Script<'_>) -> Option<Vec<u8>> {
    let what = script.below(8)?;
    match what {
        0 => return script.bytes().map(<[u8]>::to_vec),
        1 => return Some(vec![DELIMITER; usize::from(script.below(4)?)]),
        2 => {
            let byte = script.byte()?.max(1);
            return Some(vec![byte; script.point(3 * WIRE_BYTES_MAX)?]);
        }
        _ => {}
    }
    let mut frame = sealed(script.header()?, &script.body()?);
    let at = script.point(frame.len() - 1)?;
    match what {
        3 => frame[at] ^= 1 << script.below(8)?,
        4 => frame.truncate(at),
        5 => frame.insert(at, script.byte()?),
        6 => frame.truncate(frame.len() - 1), // its delimiter is lost
        _ => {}
    }
    Some(frame)
}

/// Any stream, as it is and as a script of noise: the decoder finds what is in it however it is split, never a body
/// that is too long, and after a delimiter the next good frame.
pub(crate) fn check(bytes: &[u8]) {
    check_stream(bytes, &[]);
    let mut script = Script::new(bytes);
    let Some(points) = script.below(8).and_then(|count| (0..count).map(|_| script.u16()).collect()) else {
        return;
    };
    let points: Vec<u16> = points;
    let stream: Vec<u8> = std::iter::from_fn(|| noise(&mut script)).take(16).flatten().collect();
    check_stream(&stream, &points);
}

fn check_stream(stream: &[u8], points: &[u16]) {
    let (frame, good) = good_frame();
    let mut stream = stream.to_vec();
    stream.push(DELIMITER);
    let mut all = expected(&stream);
    all.push(good);
    stream.extend(frame);

    assert_eq!(found([&stream[..]]), all, "whole");
    assert_eq!(found(cut(&stream, points)), all, "cut at {points:?}");
    assert_eq!(found(stream.chunks(1)), all, "byte by byte");
    let is_too_long = |found: &Found| matches!(found, Found::Frame(_, body) if body.len() > BODY_BYTES_MAX);
    assert!(!all.iter().any(is_too_long));
}
