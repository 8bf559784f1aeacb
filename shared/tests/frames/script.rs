//! Reads bytes that a fuzzer or a dice made as what is to happen: choices, numbers, bodies of frames.

use shared::{frame::Header, limits::BODY_BYTES_MAX, link_test::mix};

/// What is left of a script. At its end there is nothing more to read.
pub(crate) struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u8) -> Option<u8> {
        self.byte().map(|byte| byte % bound)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte()?, self.byte()?]))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from(self.u16()?) | u32::from(self.u16()?) << 16)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from(self.u32()?) | u64::from(self.u32()?) << 32)
    }

    /// Mostly a small number, now and then any.
    pub(crate) fn number(&mut self) -> Option<u32> {
        match self.byte()? {
            small @ ..0xF0 => Some(u32::from(small % 24)),
            _ => self.u32(),
        }
    }

    /// A point in something that has `len` places, its end included.
    pub(crate) fn point(&mut self, len: usize) -> Option<usize> {
        Some(usize::from(self.u16()?) % (len + 1))
    }

    /// Some of the bytes that are left.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::from(self.byte()?).min(self.rest.len());
        let (bytes, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(bytes)
    }

    pub(crate) fn header(&mut self) -> Option<Header> {
        Some(Header {
            kind: self.byte()?,
            generation: self.byte()?,
            request: self.u16()?,
            sequence: self.u32()?,
        })
    }

    /// A body of any length a frame can have: bytes of the script, or made-up ones.
    pub(crate) fn body(&mut self) -> Option<Vec<u8>> {
        let zeros_in_16 = self.below(32)?;
        if zeros_in_16 >= 16 {
            return self.bytes().map(<[u8]>::to_vec);
        }
        let (seed, len) = (u64::from(self.byte()?) << 32, self.point(BODY_BYTES_MAX)?);
        let made_up = |index: usize| {
            let [byte, chance, ..] = mix(seed + index as u64).to_le_bytes();
            if chance % 16 < zeros_in_16 { 0 } else { byte.max(1) }
        };
        Some((0..len).map(made_up).collect())
    }
}
