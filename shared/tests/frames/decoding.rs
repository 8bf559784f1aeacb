//! Frames, whatever happens to them on the way.

use crate::stream::{Found, crc, cut, expected, found, good_frame, sealed};
use proptest::{collection::vec, prelude::*};
use shared::{
    frame::{DELIMITER, Damage, Fed, FrameDecoder, Header},
    limits::{BODY_BYTES_MAX, WIRE_BYTES_MAX},
};

fn header() -> impl Strategy<Value = Header> {
    any::<(u8, u8, u16, u32)>().prop_map(|(kind, generation, request, sequence)| Header {
        kind,
        generation,
        request,
        sequence,
    })
}

/// Zeros and long runs without one are what stuffing is about.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), Just(0), Just(1), Just(0xFF)];
    prop_oneof![
        vec(byte, 0..=BODY_BYTES_MAX),
        vec(1_u8.., 0..=BODY_BYTES_MAX),
        (any::<u8>(), 0..=BODY_BYTES_MAX).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn points() -> impl Strategy<Value = Vec<u16>> {
    vec(any::<u16>(), 0..8)
}

/// A frame that is flipped, cut, longer or without an end; a run of bytes; anything.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let spoilt =
        (header(), body(), any::<u16>(), any::<u8>(), 0..4).prop_map(|(header, body, at, byte, how)| {
            let mut frame = sealed(header, &body);
            let at = usize::from(at) % frame.len();
            match how {
                0 => frame[at] ^= 1 << (byte % 8),
                1 => frame.truncate(at),
                2 => frame.insert(at, byte),
                _ => frame.truncate(frame.len() - 1),
            }
            frame
        });
    let run = (1_u8.., 0..3 * WIRE_BYTES_MAX).prop_map(|(byte, len)| vec![byte; len]);
    let whole = (header(), body()).prop_map(|(header, body)| sealed(header, &body));
    prop_oneof![3 => spoilt, 1 => run, 1 => whole, 2 => vec(any::<u8>(), 0..300)]
}

fn garbages() -> impl Strategy<Value = Vec<u8>> {
    vec(garbage(), 0..5).prop_map(|all| all.concat())
}

/// A frame as no sender makes it: the body may be longer than a frame's.
fn stuffed_by_hand(body: &[u8]) -> Vec<u8> {
    let mut plain = [&[1, 0, 0, 0, 0, 0, 0, 0], body].concat();
    plain.extend(crc(&plain).to_le_bytes());
    let mut stuffed = Vec::new();
    for run in plain.split(|byte| *byte == 0) {
        let mut parts = run.chunks(254).peekable();
        if run.is_empty() {
            stuffed.push(1);
        }
        while let Some(part) = parts.next() {
            stuffed.push(part.len() as u8 + 1);
            stuffed.extend(part);
            if part.len() == 254 && parts.peek().is_none() {
                stuffed.push(1);
            }
        }
    }
    stuffed.push(DELIMITER);
    stuffed
}

#[test]
fn a_frame_of_every_length_arrives_as_it_was() {
    for len in 0..=BODY_BYTES_MAX {
        let header = Header { kind: len as u8, generation: 1, request: len as u16, sequence: 2 };
        let bodies = [vec![0; len], vec![0xFF; len], (0..len).map(|index| index as u8).collect()];
        for body in bodies {
            let wire = sealed(header, &body);
            assert!(wire.len() <= WIRE_BYTES_MAX);
            assert_eq!(wire.iter().position(|byte| *byte == DELIMITER), Some(wire.len() - 1));
            assert_eq!(found([&wire[..]]), [Found::Frame(header, body)], "{len} bytes");
        }
    }
}

#[test]
fn every_bit_of_a_frame_is_guarded() {
    let header = Header { kind: 0x82, generation: 0, request: 1, sequence: 3 };
    for body in [b"".to_vec(), b"\0\x01\x02\0\x80@ \x10".to_vec(), vec![7; 242], vec![7; 246], vec![0; 30]] {
        let wire = sealed(header, &body);
        for bit in 0..wire.len() * 8 {
            let mut flipped = wire.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            flipped.push(DELIMITER);
            assert_only(&Found::Frame(header, body.clone()), &found([&flipped[..]]));
        }
    }
}

/// A frame may survive where the flip only adds a delimiter behind it, but never with other content.
fn assert_only(sent: &Found, all: &[Found]) {
    let mut frames = all.iter().filter(|found| matches!(found, Found::Frame(..)));
    assert!(frames.all(|found| found == sent), "{sent:?} was taken as {all:?}");
}

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn frames_arrive_as_they_were_however_they_are_split(
        frames in vec((header(), body()), 1..4),
        points in points(),
    ) {
        let wire: Vec<u8> = frames.iter().flat_map(|(header, body)| sealed(*header, body)).collect();
        let sent: Vec<_> = frames.into_iter().map(|(header, body)| Found::Frame(header, body)).collect();
        prop_assert_eq!(found(cut(&wire, &points)), sent);
    }

    #[test]
    fn any_bytes_give_what_is_in_them_however_they_are_split(
        bytes in prop_oneof![vec(any::<u8>(), 0..3 * WIRE_BYTES_MAX), garbages()],
        points in points(),
    ) {
        let all = expected(&bytes);
        prop_assert_eq!(&found([&bytes[..]]), &all);
        prop_assert_eq!(&found(cut(&bytes, &points)), &all);
        prop_assert_eq!(&found(bytes.chunks(1)), &all);
        for found in all {
            let Found::Frame(_, body) = found else { continue };
            prop_assert!(body.len() <= BODY_BYTES_MAX);
        }
    }

    #[test]
    fn after_garbage_and_a_delimiter_the_next_good_frame_is_found(garbage in garbages(), points in points()) {
        let (frame, good) = good_frame();
        let wire = [&garbage, &[DELIMITER][..], &frame].concat();
        prop_assert_eq!(found(cut(&wire, &points)).pop(), Some(good));
    }

    #[test]
    fn garbage_that_is_forgotten_spoils_nothing(garbage in garbages()) {
        let (frame, good) = good_frame();
        let mut decoder = FrameDecoder::default();
        let mut rest = &garbage[..];
        while decoder.feed(&mut rest) != Fed::More {}
        decoder.reset();
        let Fed::Frame(header, body) = decoder.feed(&mut &frame[..]) else { panic!("no frame") };
        prop_assert_eq!(Found::Frame(header, body.to_vec()), good);
    }

    #[test]
    fn a_flipped_bit_never_makes_another_frame(header in header(), body in body(), bit in any::<u16>()) {
        let mut wire = sealed(header, &body);
        let bit = usize::from(bit) % (wire.len() * 8);
        wire[bit / 8] ^= 1 << (bit % 8);
        wire.push(DELIMITER);
        assert_only(&Found::Frame(header, body), &found([&wire[..]]));
    }

    #[test]
    fn too_many_bytes_are_reported_once(
        byte in 1_u8..,
        len in WIRE_BYTES_MAX + 1..5 * WIRE_BYTES_MAX,
        points in points(),
    ) {
        let (frame, good) = good_frame();
        let run = vec![byte; len];
        prop_assert_eq!(found(cut(&run, &points)), []); // not before its end
        let wire = [&run, &[DELIMITER][..], &frame].concat();
        prop_assert_eq!(found(cut(&wire, &points)), [Found::Damaged(Damage::TooLong), good]);
    }

    #[test]
    fn a_body_that_is_too_long_is_reported_once_though_its_check_sum_agrees(
        byte in any::<u8>(),
        over in 1..100_usize,
        points in points(),
    ) {
        let (frame, good) = good_frame();
        let fits = stuffed_by_hand(&vec![byte; BODY_BYTES_MAX]);
        prop_assert!(matches!(found([&fits[..]])[..], [Found::Frame(..)]));
        let wire = [stuffed_by_hand(&vec![byte; BODY_BYTES_MAX + over]), frame].concat();
        prop_assert_eq!(found(cut(&wire, &points)), [Found::Damaged(Damage::TooLong), good]);
    }
}
