//! Compares a frame with literal bytes, in both directions.

use serde::{Deserialize, Serialize};
use shared::{
    frame::{Fed, FrameBuffer, FrameDecoder, Header},
    limits::WIRE_BYTES_MAX,
    message,
};
use std::fmt::Debug;

pub(crate) fn header(kind: u8, generation: u8, request: u16, sequence: u32) -> Header {
    Header { kind, generation, request, sequence }
}

/// A frame on the wire, its delimiter included.
pub(crate) fn sealed(header: Header, body: &[u8]) -> Vec<u8> {
    let mut frame = FrameBuffer::default();
    let mut out = [0; WIRE_BYTES_MAX];
    frame.body()[..body.len()].copy_from_slice(body);
    let len = frame.seal(header, body.len(), &mut out);
    out[..len].to_vec()
}

/// The one frame in `wire`.
pub(crate) fn unsealed(wire: &[u8]) -> (Header, Vec<u8>) {
    let mut decoder = FrameDecoder::default();
    let mut rest = wire;
    let Fed::Frame(header, body) = decoder.feed(&mut rest) else { panic!("not a frame: {wire:02X?}") };
    let found = (header, body.to_vec());
    assert!(rest.is_empty(), "bytes behind the frame: {rest:02X?}");
    found
}

/// `message` is written as exactly `wire`; `wire` is read as `message`, also with bytes of a newer version behind it.
pub(crate) fn frame<T>(header: Header, message: &T, wire: &[u8])
where
    T: Serialize + Deserialize<'static> + PartialEq + Debug,
{
    let mut body = [0; shared::limits::BODY_BYTES_MAX];
    let len = message::write(message, &mut body).unwrap();
    let ours = sealed(header, &body[..len]);
    assert_eq!(ours, wire, "{message:?} is written as\n{ours:02X?}, not as\n{wire:02X?}");

    let (found, mut body) = unsealed(wire);
    assert_eq!(found, header);
    assert_eq!(message::read::<T>(body.clone().leak()).as_ref(), Some(message));
    body.extend([0x00, 0xFF, 0x2A]);
    assert_eq!(message::read::<T>(body.leak()).as_ref(), Some(message));
}

/// A frame without a body is exactly `wire`.
pub(crate) fn empty(header: Header, wire: &[u8]) {
    assert_eq!(sealed(header, &[]), wire);
    assert_eq!(unsealed(wire), (header, Vec::new()));
}
