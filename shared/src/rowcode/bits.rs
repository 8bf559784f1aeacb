//! A string of bits, most significant first: written from 32 bits at hand, read through a window of at least 25.
//! Knows nothing of rows.

/// Writes bits behind those that are there. What does not fit is dropped, and [`finish`](Self::finish) says so.
#[derive(Debug)]
pub(super) struct BitWriter<'o> {
    out: &'o mut [u8],
    /// Where the bits at hand will go.
    at: usize,
    /// Bits that are not in `out` yet, at the top; zeros below.
    hand: u32,
    /// How many those are, below 32.
    held: u32,
    full: bool,
}

impl<'o> BitWriter<'o> {
    /// Writes into `out` after its first `bits` bits.
    #[inline]
    pub(super) fn new(out: &'o mut [u8], bits: usize) -> Self {
        let (at, held) = (bits / 8, (bits % 8) as u32);
        let kept = out.get(at).copied().unwrap_or(0);
        let hand = (u32::from(kept) << 24) & !(u32::MAX >> held);
        let full = bits > out.len() * 8;
        Self { out, at, hand, held, full }
    }

    /// Appends the low `count` bits of `bits`, whose others are zero; 1 ≤ count ≤ 32.
    #[inline(always)]
    pub(super) fn put(&mut self, bits: u32, count: u32) {
        let room = 32 - self.held;
        if count < room {
            self.hand |= (bits << 1) << (room - count - 1);
            self.held += count;
            return;
        }
        let over = count - room;
        self.hand |= bits >> over;
        match self.out.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut()) {
            Some(place) => *place = self.hand.to_be_bytes(),
            None => self.full = true,
        }
        self.at += 4;
        self.hand = (bits << 1) << (31 - over);
        self.held = over;
    }

    /// Appends the low `count` bits of `bits`, whose others are zero; 1 ≤ count ≤ 64.
    #[cold]
    #[inline(never)]
    pub(super) fn put_long(&mut self, bits: u64, count: u32) {
        if count > 32 {
            self.put((bits >> 32) as u32, count - 32);
        }
        self.put(bits as u32, count.min(32));
    }

    /// Pads to a byte and appends these; returns where they begin.
    pub(super) fn put_bytes(&mut self, head: u8, bytes: &[u8]) -> usize {
        self.flush();
        self.at += self.held.div_ceil(8) as usize;
        (self.hand, self.held) = (0, 0);
        let begin = self.at;
        match self.out.get_mut(begin..begin + 1 + bytes.len()) {
            Some(place) => {
                place[0] = head;
                place[1..].copy_from_slice(bytes);
            }
            None => self.full = true,
        }
        self.at += 1 + bytes.len();
        begin
    }

    /// What was written with [`put_bytes`](Self::put_bytes) at `begin`.
    pub(super) fn bytes(&self, begin: usize) -> Option<&[u8]> {
        bytes_at(self.out, begin)
    }

    /// How many bits there are now; nothing if they did not fit.
    #[inline]
    pub(super) fn finish(mut self) -> Option<usize> {
        self.flush();
        (!self.full).then_some(self.at * 8 + self.held as usize)
    }

    /// Puts the bits at hand into `out`; where there is room for more than those, zeros follow.
    #[inline]
    fn flush(&mut self) {
        match self.out.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut()) {
            Some(place) => *place = self.hand.to_be_bytes(),
            None => self.flush_last(),
        }
    }

    #[cold]
    #[inline(never)]
    fn flush_last(&mut self) {
        let bytes = self.held.div_ceil(8) as usize;
        match self.out.get_mut(self.at..self.at + bytes) {
            Some(place) => place.copy_from_slice(&self.hand.to_be_bytes()[..bytes]),
            None => self.full = true,
        }
    }
}

/// Bits that are seen at once: of four bytes, the first may have but one left.
pub(super) const WINDOW_BITS: u32 = 25;

/// Reads bits from the front. Behind the end there are zeros, and [`is_over`](Self::is_over) says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// The next bit. Every code is short, so that it never gets far behind the end.
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Lets what is rarely done read from a copy, so that the reader itself can stay in registers.
    #[inline(always)]
    pub(super) fn apart<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let mut copy = *self;
        let value = read(&mut copy);
        *self = copy;
        value
    }

    /// The next bits, at least [`WINDOW_BITS`] of them; zeros below.
    #[inline(always)]
    pub(super) fn window(&self) -> u32 {
        let byte = self.at / 8;
        let bits = match self.bytes.get(byte..byte + 4) {
            Some(&[b0, b1, b2, b3]) => u32::from_be_bytes([b0, b1, b2, b3]),
            _ => last_bytes(self.bytes, byte),
        };
        bits << (self.at % 8)
    }

    /// Goes on by so many bits.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        self.at += count as usize;
    }

    /// The next `count` bits; 1 ≤ count ≤ [`WINDOW_BITS`].
    #[inline(always)]
    pub(super) fn take(&mut self, count: u32) -> u32 {
        let bits = self.window() >> (32 - count);
        self.skip(count);
        bits
    }

    /// The next `count` bits; 1 ≤ count ≤ 64.
    #[cold]
    #[inline(never)]
    pub(super) fn take_long(&mut self, mut count: u32) -> u64 {
        let mut bits = 0;
        while count > 16 {
            bits = bits << 16 | u64::from(self.take(16));
            count -= 16;
        }
        bits << count | u64::from(self.take(count))
    }

    /// Goes on to the next byte, takes a length and so many bytes behind it; returns where that began.
    pub(super) fn take_bytes(&mut self) -> Option<(usize, &'a [u8])> {
        let begin = self.at.div_ceil(8);
        let bytes = bytes_at(self.bytes, begin)?;
        self.at = (begin + 1 + bytes.len()) * 8;
        Some((begin, bytes))
    }

    /// What [`take_bytes`](Self::take_bytes) took at `begin`.
    pub(super) fn bytes(&self, begin: usize) -> Option<&'a [u8]> {
        bytes_at(self.bytes, begin)
    }

    /// More was read than there is.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.at > self.bytes.len() * 8
    }

    /// All was read but for what fills the last byte.
    pub(super) fn is_at_end(&self) -> bool {
        self.at.div_ceil(8) == self.bytes.len()
    }
}

/// A length and so many bytes behind it.
fn bytes_at(all: &[u8], begin: usize) -> Option<&[u8]> {
    let (&len, rest) = all.get(begin..)?.split_first()?;
    rest.get(..usize::from(len))
}

/// Four bytes, of which some are behind the end.
#[cold]
#[inline(never)]
fn last_bytes(all: &[u8], begin: usize) -> u32 {
    let byte = |index| all.get(begin + index).copied().unwrap_or(0);
    u32::from_be_bytes([byte(0), byte(1), byte(2), byte(3)])
}
