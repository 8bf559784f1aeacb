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

/// Moments that come about once in a period: each as its difference from the one before and the period. Packed, so
/// that a column's model has room for its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub(super) struct Moments {
    before: i64,
    period: i64,
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
    pub(super) const NEW: Self = Self { before: 0, period: 0, pace: Pace::None };
    pub(super) const RICE: Rice = Rice::new(2 * JITTER_US);

    #[inline]
    pub(super) fn write(&mut self, moment: i64, rice: &mut Rice, out: &mut BitWriter) {
        let off = moment.wrapping_sub(self.before).wrapping_sub(self.period);
        let is_short = rice.write_any(zigzag(off), out);
        self.learn(off, !is_short);
    }

    /// The moment of a short code.
    #[inline(always)]
    pub(super) fn short(&mut self, number: u32) -> i64 {
        self.learn(unzigzag32(number).into(), false);
        self.before
    }

    /// The moment of an escape.
    pub(super) fn escaped(
        &mut self,
        tag: u32,
        rice: &mut Rice,
        bits: &mut BitReader,
    ) -> Result<i64, RowError> {
        if tag != TAG_LONG {
            return Err(RowError::Malformed);
        }
        self.learn(unzigzag(rice.read_long(bits)), true);
        Ok(self.before)
    }

    #[inline(always)]
    fn learn(&mut self, off: i64, is_far_off: bool) {
        let difference = self.period.wrapping_add(off);
        self.before = self.before.wrapping_add(difference);
        if self.pace == Pace::Steady && !is_far_off {
            self.period = self.period.wrapping_add(off.wrapping_add(4) >> 3);
            return;
        }
        self.learn_pace(difference, is_far_off);
    }

    #[cold]
    #[inline(never)]
    fn learn_pace(&mut self, difference: i64, is_far_off: bool) {
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
pub(super) struct Ints {
    before: i64,
}

impl Ints {
    pub(super) const BITS_MAX: usize = LONG_HEAD_BITS + 64;
    pub(super) const NEW: Self = Self { before: 0 };
    pub(super) const RICE: Rice = Rice::new(STEP);

    #[inline]
    pub(super) fn write(&mut self, number: i64, rice: &mut Rice, out: &mut BitWriter) {
        rice.write_any(zigzag(number.wrapping_sub(self.before)), out);
        self.before = number;
    }

    /// A float in place of a number: what integer arithmetic overflows to.
    #[cold]
    pub(super) fn write_float(&mut self, number: f64, out: &mut BitWriter) {
        write_escape(TAG_FLOAT, out);
        out.put_long(number.to_bits(), 64);
    }

    /// The number of a short code.
    #[inline(always)]
    pub(super) fn short(&mut self, number: u32) -> i64 {
        self.before = self.before.wrapping_add(unzigzag32(number).into());
        self.before
    }

    /// The value of an escape.
    pub(super) fn escaped(
        &mut self,
        tag: u32,
        rice: &mut Rice,
        bits: &mut BitReader,
    ) -> Result<Value<'static>, RowError> {
        match tag {
            TAG_LONG => {
                self.before = self.before.wrapping_add(unzigzag(rice.read_long(bits)));
                Ok(Value::Int(self.before))
            }
            TAG_FLOAT => Ok(Value::Float64(f64::from_bits(bits.take_long(64)))),
            _ => Err(RowError::Malformed),
        }
    }
}

/// Bools: whether each differs from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bools {
    before: bool,
}

impl Bools {
    /// The mean of zeros and ones is at most one, so that there are no low bits.
    pub(super) const BITS_MAX: usize = 2;
    pub(super) const NEW: Self = Self { before: false };
    pub(super) const RICE: Rice = Rice::new(0);

    #[inline]
    pub(super) fn write(&mut self, value: bool, rice: &mut Rice, out: &mut BitWriter) {
        rice.write(u32::from(value != self.before), out);
        self.before = value;
    }

    pub(super) fn read(&mut self, rice: &mut Rice, bits: &mut BitReader) -> Result<bool, RowError> {
        match rice.read(bits) {
            Code::Short(changed @ 0..=1) => self.before ^= changed == 1,
            _ => return Err(RowError::Malformed),
        }
        Ok(self.before)
    }
}
