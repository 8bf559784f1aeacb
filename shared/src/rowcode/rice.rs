//! One number as bits: the adaptive Rice code. Knows nothing of columns.
//!
//! ```text
//!   u < 15 · 2^k     1 … 1 0  low k bits         u >> k ones, at most 14
//!   escape           1 × 15   tag, 2 bits  …     tag 0, long: 6 bits length − 1, then u in so many bits
//!   k = ⌊log2 mean⌋ ≤ 23, at least 0, where mean runs after u:   mean += (min(u, 32 · 2^k) − mean) / 16, below 2^24
//! ```

use super::{
    RowError,
    bits::{BitReader, BitWriter, WINDOW_BITS},
};

/// So many ones are the escape.
const QUOTIENT_MAX: u32 = 15;
/// Low bits of a short code at most.
const LOW_BITS_MAX: u32 = 23;
/// How slowly the mean runs after the numbers.
const MEAN_SHIFT: u32 = 4;
/// The mean stays below 2^24, so that there are never more low bits than [`LOW_BITS_MAX`].
const SUM_MAX: i32 = (1 << (LOW_BITS_MAX + 1 + MEAN_SHIFT)) - 1;

/// The escape for a number of up to 64 bits; a column's model gives the others their meaning.
pub(super) const TAG_LONG: u32 = 0;

/// Bits of an escape.
pub(super) const ESCAPE_BITS: usize = QUOTIENT_MAX as usize + 2;
/// Bits of a long number with its escape, beyond those of the number.
pub(super) const LONG_HEAD_BITS: usize = ESCAPE_BITS + 6;

const _: () = assert!(QUOTIENT_MAX + 2 <= WINDOW_BITS && LOW_BITS_MAX <= WINDOW_BITS);
const _: () = assert!((QUOTIENT_MAX + LOW_BITS_MAX) as usize <= LONG_HEAD_BITS + 27); // no short code is longer

/// What a code begins with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Code {
    Short(u32),
    /// With its tag.
    Escape(u32),
}

/// How large the numbers of one column have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rice {
    /// The mean, `<< MEAN_SHIFT`.
    sum: u32,
}

impl Rice {
    /// Expects numbers of about this size.
    pub(super) const fn new(mean: u32) -> Self {
        Self { sum: mean << MEAN_SHIFT }
    }

    /// Writes a number; says whether its code is short.
    #[inline(always)]
    pub(super) fn write(&mut self, number: u32, out: &mut BitWriter) -> bool {
        let k = self.low_bits();
        let quotient = number >> k;
        if quotient >= QUOTIENT_MAX {
            self.write_long(number.into(), out);
            return false;
        }
        let ones = (2 << quotient) - 2; // and the zero that ends them
        let low = number & !(u32::MAX << k);
        let count = quotient + 1 + k;
        if count <= 32 {
            out.put((ones << k) | low, count);
        } else {
            out.put_long(u64::from(ones) << k | u64::from(low), count);
        }
        self.learn(number);
        true
    }

    /// Writes a number of up to 64 bits; says whether its code is short.
    #[inline(always)]
    pub(super) fn write_any(&mut self, number: u64, out: &mut BitWriter) -> bool {
        match u32::try_from(number) {
            Ok(number) => self.write(number, out),
            Err(_) => {
                self.write_long(number, out);
                false
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn write_long(&mut self, number: u64, out: &mut BitWriter) {
        write_escape(TAG_LONG, out);
        let len = (64 - number.leading_zeros()).max(1);
        out.put(len - 1, 6);
        out.put_long(number, len);
        self.learn_long(number);
    }

    /// Reads the beginning of a code, all of it if it is short.
    #[inline(always)]
    pub(super) fn read(&mut self, bits: &mut BitReader) -> Code {
        let window = bits.window();
        let quotient = window.leading_ones();
        if quotient >= QUOTIENT_MAX {
            bits.skip(QUOTIENT_MAX + 2);
            return Code::Escape((window << QUOTIENT_MAX) >> 30);
        }
        let k = self.low_bits();
        let count = quotient + 1 + k;
        let low = if count <= WINDOW_BITS {
            bits.skip(count);
            ((window << (quotient + 1)) >> 1) >> (31 - k)
        } else {
            bits.skip(quotient + 1);
            bits.take(k)
        };
        let number = (quotient << k) | low;
        self.learn(number);
        Code::Short(number)
    }

    /// Passes over a short code; false if it is none.
    #[inline(always)]
    pub(super) fn skip(&mut self, bits: &mut BitReader) -> bool {
        let mut ahead = (*self, *bits);
        match ahead.0.read(&mut ahead.1) {
            Code::Short(_) => {
                (*self, *bits) = ahead;
                true
            }
            Code::Escape(_) => false,
        }
    }

    /// Reads what follows [`TAG_LONG`].
    #[cold]
    #[inline(never)]
    pub(super) fn read_long(&mut self, bits: &mut BitReader) -> u64 {
        let len = bits.take(6) + 1;
        let number = bits.take_long(len);
        self.learn_long(number);
        number
    }

    /// Reads a number that must fit in 32 bits and have no other escape.
    pub(super) fn read_number(&mut self, bits: &mut BitReader) -> Result<u32, RowError> {
        match self.read(bits) {
            Code::Short(number) => Ok(number),
            Code::Escape(TAG_LONG) => self.read_long(bits).try_into().map_err(|_| RowError::Malformed),
            Code::Escape(_) => Err(RowError::Malformed),
        }
    }

    #[inline(always)]
    fn low_bits(self) -> u32 {
        31 - (self.sum >> MEAN_SHIFT | 1).leading_zeros()
    }

    /// `number` ≤ 32 · 2^k, so that there is no overflow before the bound is applied.
    #[inline(always)]
    fn learn(&mut self, number: u32) {
        let sum = self.sum - (self.sum >> MEAN_SHIFT) + number;
        self.sum = sum.cast_signed().clamp(0, SUM_MAX).cast_unsigned(); // with signs it is one instruction
    }

    /// One number that is far off moves the mean up, but not to itself.
    fn learn_long(&mut self, number: u64) {
        self.learn(number.min(32 << self.low_bits()) as u32);
    }
}

/// Writes an escape; what its tag means follows.
#[inline]
pub(super) fn write_escape(tag: u32, out: &mut BitWriter) {
    out.put(((1 << QUOTIENT_MAX) - 1) << 2 | tag, QUOTIENT_MAX + 2);
}

/// Small numbers of either sign as small ones without: 0, −1, 1, −2, …
#[inline]
pub(super) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// The other way.
#[inline]
pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// See [`zigzag`].
#[inline]
pub(super) fn zigzag32(number: i32) -> u32 {
    ((number << 1) ^ (number >> 31)).cast_unsigned()
}

/// See [`unzigzag`].
#[inline]
pub(super) fn unzigzag32(number: u32) -> i32 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}
