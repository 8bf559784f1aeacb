//! The models of whole numbers: moments, ints and bools.

use super::{
    RowError,
    bits::{BitReader, BitWriter},
    rice::{Code, LONG_HEAD_BITS, Rice, TAG_LONG, unzigzag, unzigzag32, write_escape, zigzag},
};
use crate::value::Value;

/// In a column of ints: a float of 64 bits follows.
const TAG_FLOAT: u32 = 1;

/// What is expected of moments before there are any, in microseconds.
const JITTER_US: u32 = 256;
const STEP: u32 = 16;

/// Moments that come about once in a period: each as its difference from the one before and the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub(super) struct Moments {
    before: i64,
    period: i64,
    pub(super) rice: Rice,
    pace: Pace,
}

/// What is known of the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Nothing: there was no moment yet.
    None,
    /// The last difference was far off, so that the next one counts alone.
    Lost,
    /// It runs after the differences.
    Steady,
}

impl Moments {
    pub(super) const BITS_MAX: usize = LONG_HEAD_BITS + 64;
    pub(super) const NEW: Self =
        Self { before: 0, period: 0, rice: Rice::new(2 * JITTER_US), pace: Pace::None };

    #[inline]
    pub(super) fn write(&mut self, moment: i64, out: &mut BitWriter) {
        let off = moment.wrapping_sub(self.before).wrapping_sub(self.period);
        let is_short = self.rice.write_any(zigzag(off), out);
        self.learn(off, !is_short);
    }

    #[inline]
    pub(super) fn read(&mut self, bits: &mut BitReader) -> Result<i64, RowError> {
        let (off, is_far_off) = match self.rice.read(bits) {
            Code::Short(number) => (unzigzag32(number).into(), false),
            Code::Escape(TAG_LONG) => (unzigzag(bits.apart(|bits| self.rice.read_long(bits))), true),
            Code::Escape(_) => return Err(RowError::Malformed),
        };
        self.learn(off, is_far_off);
        Ok(self.before)
    }

    #[inline]
    fn learn(&mut self, off: i64, is_far_off: bool) {
        let difference = self.period.wrapping_add(off);
        self.before = self.before.wrapping_add(difference);
        if self.pace == Pace::Steady && !is_far_off {
            self.period = self.period.wrapping_add(off.wrapping_add(4) >> 3);
            return;
        }
        self.pace = match self.pace {
            Pace::None => Pace::Lost,
            Pace::Lost => {
                self.period = difference;
                if is_far_off { Pace::Lost } else { Pace::Steady }
            }
            Pace::Steady => Pace::Lost,
        };
    }
}

/// Whole numbers, each as its difference from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub(super) struct Ints {
    before: i64,
    pub(super) rice: Rice,
}

impl Ints {
    pub(super) const BITS_MAX: usize = LONG_HEAD_BITS + 64;
    pub(super) const NEW: Self = Self { before: 0, rice: Rice::new(STEP) };

    #[inline]
    pub(super) fn write(&mut self, number: i64, out: &mut BitWriter) {
        self.rice.write_any(zigzag(number.wrapping_sub(self.before)), out);
        self.before = number;
    }

    /// A float in place of a number: what integer arithmetic overflows to.
    #[cold]
    pub(super) fn write_float(&mut self, number: f64, out: &mut BitWriter) {
        write_escape(TAG_FLOAT, out);
        out.put_long(number.to_bits(), 64);
    }

    #[inline]
    pub(super) fn read(&mut self, bits: &mut BitReader) -> Result<Value<'static>, RowError> {
        let difference = match self.rice.read(bits) {
            Code::Short(number) => unzigzag32(number).into(),
            Code::Escape(TAG_LONG) => unzigzag(bits.apart(|bits| self.rice.read_long(bits))),
            Code::Escape(TAG_FLOAT) => {
                return Ok(Value::Float64(f64::from_bits(bits.apart(|bits| bits.take_long(64)))));
            }
            Code::Escape(_) => return Err(RowError::Malformed),
        };
        self.before = self.before.wrapping_add(difference);
        Ok(Value::Int(self.before))
    }
}

/// Bools: whether each differs from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bools {
    before: bool,
    rice: Rice,
}

impl Bools {
    /// The mean of zeros and ones is at most one, so that there are no low bits.
    pub(super) const BITS_MAX: usize = 2;
    pub(super) const NEW: Self = Self { before: false, rice: Rice::new(0) };

    #[inline]
    pub(super) fn write(&mut self, value: bool, out: &mut BitWriter) {
        self.rice.write(u32::from(value != self.before), out);
        self.before = value;
    }

    #[inline]
    pub(super) fn read(&mut self, bits: &mut BitReader) -> Result<bool, RowError> {
        match self.rice.read(bits) {
            Code::Short(changed @ 0..=1) => self.before ^= changed == 1,
            _ => return Err(RowError::Malformed),
        }
        Ok(self.before)
    }
}
