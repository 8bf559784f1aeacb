//! The models of floats: as a whole number of 10^-places where that is exact, else by XOR with the one before.
//!
//! ```text
//!   after a value by XOR, first one bit: 1 = the next one the same way, 0 = a code
//!   code              the difference of the scaled numbers, zigzag
//!   escape, tag 1     4 bits: more places from here on; the scaled number before is scaled up; then a code
//!   escape, tag 2     by XOR: 5 bits (6 for 64-bit floats) of leading zeros, then the bits behind them
//!   escape, tag 3     only 64-bit floats: a 32-bit float that was widened, by XOR with the one before it
//! ```
//!
//! `raw as f32 / 100.0` is exact here, `raw as f32 * 0.01` is another float: sensors should divide.

use super::{
    RowError,
    bits::{BitReader, BitWriter},
    rice::{
        Code, ESCAPE_BITS, LONG_HEAD_BITS, Rice, TAG_LONG, unzigzag, unzigzag32, write_escape, zigzag,
        zigzag32,
    },
};

const TAG_PLACES: u32 = 1;
const TAG_XOR: u32 = 2;
const TAG_WIDENED: u32 = 3;

const PLACES_BITS: u32 = 4;
/// What is expected of differences before there are any.
const STEP: u32 = 8;

const POWERS32: [f32; 7] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];
const POWERS64: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// Whole numbers up to here are floats exactly.
const SCALED32_MAX: i32 = 1 << 24;
const SCALED64_MAX: i64 = 1 << 53;

/// Floats of 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floats32 {
    scaled: i32,
    /// The value before, however it was written.
    raw: u32,
    pub(super) rice: Rice,
    /// 10^places
    power: f32,
    places: u8,
    pub(super) by_xor: bool,
}

impl Floats32 {
    /// More places and a long difference of up to 27 bits; by XOR it is less.
    pub(super) const BITS_MAX: usize = 1 + ESCAPE_BITS + PLACES_BITS as usize + LONG_HEAD_BITS + 27;
    pub(super) const NEW: Self =
        Self { scaled: 0, raw: 0, rice: Rice::new(STEP), power: 1.0, places: 0, by_xor: false };

    #[inline]
    pub(super) fn write(&mut self, value: f32, out: &mut BitWriter) {
        match scaled32(value, self.power) {
            Some(scaled) if !self.by_xor => {
                self.rice.write(zigzag32(scaled - self.scaled), out);
                self.scaled = scaled;
            }
            _ => self.write_otherwise(value, out),
        }
        self.raw = value.to_bits();
    }

    #[cold]
    fn write_otherwise(&mut self, value: f32, out: &mut BitWriter) {
        let Some((places, scaled)) = self.more_places(value) else {
            if self.by_xor {
                out.put(1, 1)
            } else {
                write_escape(TAG_XOR, out)
            }
            self.by_xor = true;
            return write_xor32(value.to_bits() ^ self.raw, out);
        };
        if self.by_xor {
            out.put(0, 1);
            self.by_xor = false;
        }
        if places > self.places {
            write_escape(TAG_PLACES, out);
            out.put(places.into(), PLACES_BITS);
            self.scale_up(places);
        }
        self.rice.write(zigzag32(scaled - self.scaled), out);
        self.scaled = scaled;
    }

    /// The fewest places, from those there are, at which this value and the one before are exact.
    fn more_places(&self, value: f32) -> Option<(u8, i32)> {
        (self.places..POWERS32.len() as u8).find_map(|places| {
            let by = 10_i32.pow(u32::from(places - self.places));
            let has_room = self.scaled.checked_mul(by).is_some_and(|before| before.abs() <= SCALED32_MAX);
            if has_room {
                scaled32(value, POWERS32[usize::from(places)]).map(|scaled| (places, scaled))
            } else {
                None
            }
        })
    }

    /// `places` is more than there are and no more than there is a power for.
    fn scale_up(&mut self, places: u8) {
        let by = 10_i32.wrapping_pow(u32::from(places - self.places));
        self.scaled = self.scaled.wrapping_mul(by);
        self.places = places;
        self.power = POWERS32[usize::from(places)];
    }

    #[inline]
    pub(super) fn read(&mut self, bits: &mut BitReader) -> Result<f32, RowError> {
        if self.by_xor {
            self.by_xor = bits.take(1) == 1;
            if self.by_xor {
                return Ok(bits.apart(|bits| self.read_xor(bits)));
            }
        }
        let number = match self.rice.read(bits) {
            Code::Short(number) => number,
            Code::Escape(TAG_XOR) => return Ok(bits.apart(|bits| self.read_xor(bits))),
            Code::Escape(tag) => bits.apart(|bits| self.read_escaped(tag, bits))?,
        };
        self.scaled = self.scaled.wrapping_add(unzigzag32(number));
        let value = self.scaled as f32 / self.power;
        self.raw = value.to_bits();
        Ok(value)
    }

    #[inline(never)]
    fn read_xor(&mut self, bits: &mut BitReader) -> f32 {
        self.by_xor = true;
        self.raw ^= read_xor32(bits);
        f32::from_bits(self.raw)
    }

    #[cold]
    #[inline(never)]
    fn read_escaped(&mut self, tag: u32, bits: &mut BitReader) -> Result<u32, RowError> {
        match tag {
            TAG_LONG => u32::try_from(self.rice.read_long(bits)).map_err(|_| RowError::Malformed),
            TAG_PLACES => {
                self.scale_up(read_places(bits, self.places, POWERS32.len())?);
                self.rice.read_number(bits)
            }
            _ => Err(RowError::Malformed),
        }
    }
}

/// How a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Scaled,
    Xor,
    Widened,
}

impl Way {
    fn tag(self) -> u32 {
        if self == Way::Widened { TAG_WIDENED } else { TAG_XOR }
    }
}

/// Floats of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub(super) struct Floats64 {
    /// Whole numbers up to 2^53.
    scaled: i64,
    /// The value before, however it was written.
    raw: u64,
    /// The last 32-bit float that was widened.
    narrow: u32,
    rice: Rice,
    places: u8,
    way: Way,
}

impl Floats64 {
    /// More places and a long difference; by XOR it is less.
    pub(super) const BITS_MAX: usize = 1 + ESCAPE_BITS + PLACES_BITS as usize + LONG_HEAD_BITS + 64;
    pub(super) const NEW: Self =
        Self { scaled: 0, raw: 0, narrow: 0, rice: Rice::new(STEP), places: 0, way: Way::Scaled };

    pub(super) fn write(&mut self, value: f64, out: &mut BitWriter) {
        match self.more_places(value) {
            Some((places, scaled)) => self.write_scaled(places, scaled, out),
            None => self.write_xor(value, out),
        }
        self.raw = value.to_bits();
    }

    fn write_scaled(&mut self, places: u8, scaled: i64, out: &mut BitWriter) {
        if self.way != Way::Scaled {
            out.put(0, 1);
            self.way = Way::Scaled;
        }
        if places > self.places {
            write_escape(TAG_PLACES, out);
            out.put(places.into(), PLACES_BITS);
            self.scale_up(places);
        }
        self.rice.write_any(zigzag(scaled.wrapping_sub(self.scaled)), out);
        self.scaled = scaled;
    }

    fn write_xor(&mut self, value: f64, out: &mut BitWriter) {
        let narrow = value as f32;
        // A NaN may change its bits on the way between widths.
        let is_widened = !value.is_nan() && f64::from(narrow).to_bits() == value.to_bits();
        let way = if is_widened { Way::Widened } else { Way::Xor };
        if self.way == way {
            out.put(1, 1);
        } else {
            if self.way != Way::Scaled {
                out.put(0, 1);
            }
            write_escape(way.tag(), out);
            self.way = way;
        }
        if is_widened {
            write_xor32(narrow.to_bits() ^ self.narrow, out);
            self.narrow = narrow.to_bits();
        } else {
            let xor = value.to_bits() ^ self.raw;
            let zeros = xor.leading_zeros().min(63);
            out.put(zeros, 6);
            out.put_long(xor, 64 - zeros);
        }
    }

    /// The fewest places, from those there are, at which this value and the one before are exact.
    fn more_places(&self, value: f64) -> Option<(u8, i64)> {
        (self.places..POWERS64.len() as u8).find_map(|places| {
            let by = 10_i64.pow(u32::from(places - self.places));
            let has_room = self.scaled.checked_mul(by).is_some_and(|before| before.abs() <= SCALED64_MAX);
            if has_room { scaled64(value, places).map(|scaled| (places, scaled)) } else { None }
        })
    }

    fn scale_up(&mut self, places: u8) {
        let by = 10_i64.wrapping_pow(u32::from(places - self.places));
        self.scaled = self.scaled.wrapping_mul(by);
        self.places = places;
    }

    #[inline(never)]
    pub(super) fn read(&mut self, bits: &mut BitReader) -> Result<f64, RowError> {
        let again = self.way != Way::Scaled && bits.take(1) == 1;
        let code = if again { Code::Escape(self.way.tag()) } else { self.rice.read(bits) };
        let number = match code {
            Code::Short(number) => number.into(),
            Code::Escape(TAG_LONG) => self.rice.read_long(bits),
            Code::Escape(TAG_PLACES) => {
                self.scale_up(read_places(bits, self.places, POWERS64.len())?);
                match self.rice.read(bits) {
                    Code::Short(number) => number.into(),
                    Code::Escape(TAG_LONG) => self.rice.read_long(bits),
                    Code::Escape(_) => return Err(RowError::Malformed),
                }
            }
            Code::Escape(TAG_XOR) => {
                self.way = Way::Xor;
                let zeros = bits.take(6);
                self.raw ^= bits.take_long(64 - zeros);
                return Ok(f64::from_bits(self.raw));
            }
            Code::Escape(_) => {
                self.way = Way::Widened;
                self.narrow ^= read_xor32(bits);
                let value = f64::from(f32::from_bits(self.narrow));
                self.raw = value.to_bits();
                return Ok(value);
            }
        };
        self.way = Way::Scaled;
        self.scaled = self.scaled.wrapping_add(unzigzag(number));
        // The places were checked when they were read.
        let value = self.scaled as f64 / POWERS64.get(usize::from(self.places)).copied().unwrap_or(1.0);
        self.raw = value.to_bits();
        Ok(value)
    }
}

/// The whole number of parts, `power` to one, that this value is, if it is one bit for bit.
#[inline]
fn scaled32(value: f32, power: f32) -> Option<i32> {
    let scaled = (value * power + 0.5_f32.copysign(value)) as i32;
    let is_exact = (scaled as f32 / power).to_bits() == value.to_bits();
    (is_exact && (-SCALED32_MAX..=SCALED32_MAX).contains(&scaled)).then_some(scaled)
}

/// See [`scaled32`].
fn scaled64(value: f64, places: u8) -> Option<i64> {
    let power = *POWERS64.get(usize::from(places))?;
    let scaled = (value * power + 0.5_f64.copysign(value)) as i64;
    let is_exact = (scaled as f64 / power).to_bits() == value.to_bits();
    (is_exact && (-SCALED64_MAX..=SCALED64_MAX).contains(&scaled)).then_some(scaled)
}

fn read_places(bits: &mut BitReader, before: u8, end: usize) -> Result<u8, RowError> {
    let places = bits.take(PLACES_BITS) as u8;
    if places > before && usize::from(places) < end { Ok(places) } else { Err(RowError::Malformed) }
}

fn write_xor32(xor: u32, out: &mut BitWriter) {
    let zeros = xor.leading_zeros().min(31);
    out.put(zeros, 5);
    out.put(xor, 32 - zeros);
}

fn read_xor32(bits: &mut BitReader) -> u32 {
    let zeros = bits.take(5);
    bits.take_long(32 - zeros) as u32
}
