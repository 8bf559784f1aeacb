//! The model of texts: the place of each among the last different ones, or the text itself.
//!
//! ```text
//!   u < texts known    the u-th last text, which becomes the last
//!   u = texts known    zeros up to a byte, length u8, UTF-8 bytes: a text that becomes the last
//! ```

use super::{
    RowError,
    bits::{BitReader, BitWriter},
    rice::Rice,
};
use crate::limits::{RECENT_TEXTS_MAX, TEXT_BYTES_MAX};

/// The last different texts of a column: where each stands in the run of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Texts {
    rice: Rice,
    starts: [u16; RECENT_TEXTS_MAX],
    count: u8,
}

impl Texts {
    /// The number is one of at most nine, and their mean has three low bits at most.
    pub(super) const BITS_MAX: usize = 1 + RECENT_TEXTS_MAX + 3 + 7 + 8 * (1 + TEXT_BYTES_MAX);
    pub(super) const NEW: Self = Self { rice: Rice::new(0), starts: [0; RECENT_TEXTS_MAX], count: 0 };

    #[inline]
    pub(super) fn write(&mut self, text: &str, out: &mut BitWriter) {
        let known = self.starts.iter().take(self.count.into());
        let is_same = |start: &u16| out.bytes(usize::from(*start)) == Some(text.as_bytes());
        let place = known.copied().position(|start| is_same(&start));
        self.rice.write(place.map_or(u32::from(self.count), |place| place as u32), out);
        match place {
            Some(place) => self.move_to_front(place),
            None => {
                // Checked before: a text is no longer than a length byte can say, a run no longer than an offset.
                let start = out.put_bytes(text.len() as u8, text.as_bytes());
                self.push_front(start as u16);
            }
        }
    }

    /// Reads a text; `last` is the last one of this column.
    #[inline(never)]
    pub(super) fn read<'a>(
        &mut self,
        bits: &mut BitReader<'a>,
        last: &mut &'a str,
    ) -> Result<&'a str, RowError> {
        let place = self.rice.read_number(bits)?;
        if place == 0 && self.count > 0 {
            return Ok(last);
        }
        let bytes = if place < self.count.into() {
            self.move_to_front(place as usize);
            bits.bytes(self.starts[0].into()).ok_or(RowError::Malformed)?
        } else if place == self.count.into() {
            let (start, bytes) = bits.take_bytes().ok_or(RowError::Malformed)?;
            self.push_front(u16::try_from(start).map_err(|_| RowError::Malformed)?);
            bytes
        } else {
            return Err(RowError::Malformed);
        };
        if bytes.len() > TEXT_BYTES_MAX {
            return Err(RowError::Malformed);
        }
        *last = core::str::from_utf8(bytes).map_err(|_| RowError::Malformed)?;
        Ok(last)
    }

    #[inline]
    fn move_to_front(&mut self, place: usize) {
        if let Some(known) = self.starts.get_mut(..=place) {
            known.rotate_right(1);
        }
    }

    fn push_front(&mut self, start: u16) {
        self.starts.rotate_right(1);
        self.starts[0] = start;
        self.count = (self.count + 1).min(RECENT_TEXTS_MAX as u8);
    }
}
