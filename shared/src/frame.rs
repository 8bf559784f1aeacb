//! Frames: a header, a body and a check sum, stuffed with COBS so that a zero byte always ends one.
//!
//! ```text
//!    0      1            2         4                8              8+n        12+n
//!   ┌──────┬────────────┬─────────┬────────────────┬──────────────┬──────────┐
//!   │ kind │ generation │ request │ sequence       │ body, n B    │ CRC-32   │   all little-endian
//!   │ u8   │ u8         │ u16     │ u32            │ n ≤ BODY_MAX │ u32      │   CRC over header and body
//!   └──────┴────────────┴─────────┴────────────────┴──────────────┴──────────┘
//!   on the wire: COBS(all of it) 00        12 + n bytes become at most 14 + n + n/254
//! ```
//!
//! The header never changes in any version, so that a kind that is not known can be told apart from a damaged
//! frame. Empty frames (`00 00`) are skipped; a `00` before the first frame ends whatever noise came before.

use crate::limits::{BODY_BYTES_MAX, CRC_BYTES, FRAME_BYTES_MAX, HEADER_BYTES, WIRE_BYTES_MAX};

/// CRC-32/ISO-HDLC, as in Ethernet and zip.
const CRC: crc::Crc<u32, crc::Table<1>> = crc::Crc::<u32, crc::Table<1>>::new(&crc::CRC_32_ISO_HDLC);

/// Ends a frame and stands nowhere else.
pub const DELIMITER: u8 = 0;

/// Room for one frame on the wire.
pub type WireBuffer = [u8; WIRE_BYTES_MAX];

/// The fixed part in front of every body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the body is; see [`crate::message::kind`].
    pub kind: u8,
    /// How often the request was resumed; frames of another generation are stale.
    pub generation: u8,
    /// Which request this belongs to, 0 for none.
    pub request: u16,
    /// The place among the frames of its request and generation, or what `kind` makes of it.
    pub sequence: u32,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [r0, r1] = self.request.to_le_bytes();
        let [s0, s1, s2, s3] = self.sequence.to_le_bytes();
        [self.kind, self.generation, r0, r1, s0, s1, s2, s3]
    }

    fn from_bytes([kind, generation, r0, r1, s0, s1, s2, s3]: [u8; HEADER_BYTES]) -> Self {
        Self {
            kind,
            generation,
            request: u16::from_le_bytes([r0, r1]),
            sequence: u32::from_le_bytes([s0, s1, s2, s3]),
        }
    }
}

/// A frame is put together in place: the body is written where it will travel from, then [`seal`](Self::seal)ed.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: [u8; FRAME_BYTES_MAX],
}

impl Default for FrameBuffer {
    fn default() -> Self {
        Self { bytes: [0; FRAME_BYTES_MAX] }
    }
}

impl FrameBuffer {
    /// Where the body goes.
    pub fn body(&mut self) -> &mut [u8] {
        &mut self.bytes[HEADER_BYTES..HEADER_BYTES + BODY_BYTES_MAX]
    }

    /// Puts header, the first `body_bytes` of [`body`](Self::body) and check sum on the wire; returns how many
    /// bytes of `out` are to be sent, the delimiter included.
    pub fn seal(&mut self, header: Header, body_bytes: usize, out: &mut WireBuffer) -> usize {
        let checked = HEADER_BYTES + body_bytes.min(BODY_BYTES_MAX);
        self.bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        let crc = CRC.checksum(&self.bytes[..checked]).to_le_bytes();
        self.bytes[checked..checked + CRC_BYTES].copy_from_slice(&crc);
        let stuffed = cobs::encode(&self.bytes[..checked + CRC_BYTES], out);
        out[stuffed] = DELIMITER;
        stuffed + 1
    }
}

/// Why bytes up to a delimiter were not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// More bytes than any frame has.
    TooLong,
    /// The stuffing is broken, or there is no room for a header and a check sum.
    Malformed,
    /// The check sum does not agree.
    Crc,
}

/// What [`FrameDecoder::feed`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Fed<'d> {
    /// All bytes are taken; the frame is not complete yet.
    More,
    /// A whole frame.
    Frame(Header, &'d [u8]),
    /// Bytes that are lost; the next frame begins after them.
    Damaged(Damage),
}

/// Finds frames in a stream of bytes, whatever else is in it.
#[derive(Debug)]
pub struct FrameDecoder {
    bytes: [u8; WIRE_BYTES_MAX],
    /// Bytes of the frame so far; more than fit only while `too_long`.
    len: usize,
    too_long: bool,
}

impl Default for FrameDecoder {
    fn default() -> Self {
        Self { bytes: [0; WIRE_BYTES_MAX], len: 0, too_long: false }
    }
}

impl FrameDecoder {
    /// Takes bytes from the front of `input` up to the end of one frame at most. Call it again with what is left
    /// in `input` until it says [`Fed::More`].
    pub fn feed(&mut self, input: &mut &[u8]) -> Fed<'_> {
        while let Some(end) = input.iter().position(|byte| *byte == DELIMITER) {
            let (part, rest) = input.split_at(end);
            *input = &rest[1..];
            self.append(part);
            let len = core::mem::take(&mut self.len);
            if core::mem::take(&mut self.too_long) {
                return Fed::Damaged(Damage::TooLong);
            }
            if len > 0 {
                return open_frame(&mut self.bytes[..len]);
            }
        }
        self.append(input);
        *input = &[];
        Fed::More
    }

    /// Forgets a frame that was begun.
    pub fn reset(&mut self) {
        self.len = 0;
        self.too_long = false;
    }

    fn append(&mut self, part: &[u8]) {
        match self.bytes.get_mut(self.len..self.len + part.len()) {
            Some(room) => {
                room.copy_from_slice(part);
                self.len += part.len();
            }
            None => self.too_long = true,
        }
    }
}

fn open_frame(stuffed: &mut [u8]) -> Fed<'_> {
    let Ok(len) = cobs::decode_in_place(stuffed) else {
        return Fed::Damaged(Damage::Malformed);
    };
    let Some((checked, crc)) = stuffed[..len].split_last_chunk::<CRC_BYTES>() else {
        return Fed::Damaged(Damage::Malformed);
    };
    let Some((header, body)) = checked.split_first_chunk::<HEADER_BYTES>() else {
        return Fed::Damaged(Damage::Malformed);
    };
    if body.len() > BODY_BYTES_MAX {
        return Fed::Damaged(Damage::TooLong);
    }
    if CRC.checksum(checked) != u32::from_le_bytes(*crc) {
        return Fed::Damaged(Damage::Crc);
    }
    Fed::Frame(Header::from_bytes(*header), body)
}
