//! Rows ↔ bits: the compact code of pages on the board and of batches on the wire. Says nothing of what stands around
//! the bits; see [`crate::page`] and [`crate::message`].
//!
//! Both sides know the columns, so a run of rows is only their cells: a string of bits, most significant first, whose
//! last byte is filled with zeros. Each column has a model that starts fresh with the run and learns from every cell.
//!
//! ```text
//!   row   ┌───┬──────────────────┬──────┬──────┬─────┐
//!         │ p │ NULL pattern     │ cell │ cell │ …   │   p = 0: the NULL pattern is that of the row before, at
//!         │   │ if p = 1: a bit  │      │      │     │          first no NULL; p = 1: it follows, 1 = NULL
//!         │   │ for each column  │      │      │     │   a column that is NULL has no cell
//!         └───┴──────────────────┴──────┴──────┴─────┘
//!   cell  an adaptive Rice code (rice.rs) of a number u ≥ 0 that is small where the model guessed well:
//!         timestamp   zigzag(value − (before + period)), the period running after the differences      whole.rs
//!         int         zigzag(value − before)                    escape 1: a 64-bit float in its place  whole.rs
//!         bool        value XOR before                                                                 whole.rs
//!         float       zigzag(m − m before), where value = m / 10^places exactly, else an escape        float.rs
//!         text        its place among the last eight different texts, or the text itself               text.rs
//! ```
//!
//! A believable row of a moment in microseconds and three 32-bit floats takes about three bytes.

mod bits;
mod column;
mod float;
mod rice;
mod text;
mod whole;

use crate::{
    limits::{COLUMNS_MAX, TABLE_COLUMNS_MAX},
    value::{ColumnType, Value},
};
use bits::{BitReader, BitWriter};
use column::{Model, cell_bits_max};

/// Why a row could not be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// The row does not fit into what is left of the buffer.
    Full,
    /// The row has another number of cells than there are columns, or more than fit in a row.
    Width,
    /// A cell is not of its column's type.
    Type,
    /// A text is longer than a cell can hold.
    TooLong,
    /// The row's time is before that of the row before.
    Order,
    /// The bytes are not rows of these columns.
    Malformed,
}

/// Writes rows of up to [`COLUMNS_MAX`] columns.
pub type RowEncoder = Encoder<COLUMNS_MAX>;
/// Writes rows of a table.
pub type TableEncoder = Encoder<TABLE_COLUMNS_MAX>;
/// Reads rows of up to [`COLUMNS_MAX`] columns.
pub type RowDecoder<'a> = Decoder<'a, COLUMNS_MAX>;

/// Reads rows of a table.
pub type TableDecoder<'a> = Decoder<'a, TABLE_COLUMNS_MAX>;

/// Bytes of a run of rows at most: texts are found again by an offset of 16 bits.
const RUN_BYTES_MAX: usize = u16::MAX as usize;

/// Writes a run of rows of up to `N` columns, one at a time.
#[derive(Clone, Debug)]
pub struct Encoder<const N: usize> {
    models: heapless::Vec<Model, N>,
    /// The NULL pattern of the row before: bit i for column i.
    nulls: u32,
    /// What a row takes at most.
    row_bits_max: usize,
    /// There are more columns than fit.
    is_too_wide: bool,
}

impl<const N: usize> Encoder<N> {
    /// Begins a run of rows of these columns. More than `N` of them cannot be written: every row is refused.
    pub fn new(kinds: impl IntoIterator<Item = ColumnType>) -> Self {
        let (models, is_too_wide) = new_models(kinds);
        let row_bits_max = row_bits_max(models.iter().map(Model::kind));
        Self { models, nulls: 0, row_bits_max, is_too_wide }
    }

    /// Begins another run of the same columns.
    pub fn reset(&mut self) {
        self.models.iter_mut().for_each(|model| *model = Model::new(model.kind()));
        self.nulls = 0;
    }

    /// Whether these columns can hold this row.
    pub fn check(&self, cells: &[Value]) -> Result<(), RowError> {
        self.nulls_of(cells).map(|_| ())
    }

    /// Appends one row to the run whose first `bits` bits stand in `out`, where it has been from the beginning; what
    /// stands behind them does not matter. On an error the run, `bits` and the encoder are as before.
    pub fn append(&mut self, cells: &[Value], out: &mut [u8], bits: &mut usize) -> Result<(), RowError> {
        let nulls = self.nulls_of(cells)?;
        let run_bytes = out.len().min(RUN_BYTES_MAX);
        let out = &mut out[..run_bytes];
        let has_room = out.len() * 8 >= *bits + self.row_bits_max;
        let end = if has_room {
            write_row(&mut self.models, &mut self.nulls, nulls, cells, out, *bits)
        } else {
            self.write_if_it_fits(nulls, cells, out, *bits)
        };
        *bits = end.ok_or(RowError::Full)?;
        Ok(())
    }

    /// The NULL pattern of a row that these columns can hold.
    fn nulls_of(&self, cells: &[Value]) -> Result<u32, RowError> {
        if cells.len() != self.models.len() || self.is_too_wide {
            return Err(RowError::Width);
        }
        check_row(&self.models, cells)
    }

    /// The end of a run is near: what was learnt from a row that does not fit is forgotten again.
    #[cold]
    #[inline(never)]
    fn write_if_it_fits(
        &mut self,
        nulls: u32,
        cells: &[Value],
        out: &mut [u8],
        bits: usize,
    ) -> Option<usize> {
        let before = (self.models.clone(), self.nulls);
        let end = write_row(&mut self.models, &mut self.nulls, nulls, cells, out, bits);
        if end.is_none() {
            (self.models, self.nulls) = before;
            if let Some(last) = out.get_mut(bits / 8) {
                *last &= !(u8::MAX >> (bits % 8));
            }
        }
        end
    }
}

/// Reads a run of rows of up to `N` columns. Safe on any bytes.
#[derive(Clone, Debug)]
pub struct Decoder<'a, const N: usize> {
    models: heapless::Vec<Model, N>,
    /// The last text of each column.
    texts: [&'a str; N],
    nulls: u32,
    /// Bit i for column i: whether its cells are wanted.
    wanted: u32,
    bits: BitReader<'a>,
    rows_left: u16,
    fault: Option<RowError>,
}

impl<'a, const N: usize> Decoder<'a, N> {
    /// Reads `rows` rows of these columns from `bytes`, which have nothing behind them.
    pub fn new(kinds: impl IntoIterator<Item = ColumnType>, bytes: &'a [u8], rows: u16) -> Self {
        let (models, is_too_wide) = new_models(kinds);
        let fault = is_too_wide.then_some(RowError::Width);
        Self {
            models,
            texts: [""; N],
            nulls: 0,
            wanted: u32::MAX,
            bits: BitReader::new(bytes),
            rows_left: rows,
            fault,
        }
    }

    /// From the first row on, reads only the columns with a bit in `wanted`: bit i for column i. The cells of others
    /// may be left as they are.
    pub fn want(&mut self, wanted: u32) {
        self.wanted = wanted;
    }

    /// Reads the next row into the first of `cells`, one for each column. `Ok(false)`: there is no more. A fault in
    /// the bytes does not go away.
    #[inline(always)]
    pub fn next_row(&mut self, cells: &mut [Value<'a>]) -> Result<bool, RowError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let cells = cells.get_mut(..self.models.len()).ok_or(RowError::Width)?;
        if self.rows_left == 0 {
            return if self.bits.is_at_end() { Ok(false) } else { Err(RowError::Malformed) };
        }
        let Self { models, texts, nulls, bits, .. } = self;
        let read = read_row(models, texts, nulls, self.wanted, bits, cells);
        match read {
            Ok(()) if !self.bits.is_over() => {
                self.rows_left -= 1;
                Ok(true)
            }
            _ => {
                self.fault = Some(RowError::Malformed);
                Err(RowError::Malformed)
            }
        }
    }

    /// How many rows are still to come, if nothing is wrong with them.
    pub fn rows_left(&self) -> u16 {
        self.rows_left
    }
}

/// The most bits that one row of these columns takes.
pub fn row_bits_max(kinds: impl IntoIterator<Item = ColumnType>) -> usize {
    1 + kinds.into_iter().map(|kind| 1 + cell_bits_max(kind)).sum::<usize>()
}

/// A fresh model for each column, and whether there are too many.
fn new_models<const N: usize>(
    kinds: impl IntoIterator<Item = ColumnType>,
) -> (heapless::Vec<Model, N>, bool) {
    const { assert!(N <= 32) }; // a NULL pattern has 32 bits
    let mut models = heapless::Vec::new();
    let is_too_wide = kinds.into_iter().any(|kind| models.push(Model::new(kind)).is_err());
    (models, is_too_wide)
}

// What is done for every row is not generic, so that it is compiled once and here, for speed, wherever it is used.

/// The NULL pattern of a row that these columns can hold.
#[inline(never)]
fn check_row(models: &[Model], cells: &[Value]) -> Result<u32, RowError> {
    let mut nulls = 0;
    for (index, (model, cell)) in models.iter().zip(cells).enumerate() {
        model.check(cell)?;
        nulls |= u32::from(matches!(cell, Value::Null)) << index;
    }
    Ok(nulls)
}

/// Writes a row that was checked; returns where it ends, if it fits.
#[inline(never)]
fn write_row(
    models: &mut [Model],
    nulls_before: &mut u32,
    nulls: u32,
    cells: &[Value],
    out: &mut [u8],
    bits: usize,
) -> Option<usize> {
    let mut out = BitWriter::new(out, bits);
    if nulls == *nulls_before {
        out.put(0, 1);
    } else {
        out.put(1, 1);
        out.put(nulls.reverse_bits() >> (32 - cells.len() as u32), cells.len() as u32);
        *nulls_before = nulls;
    }
    for (model, cell) in models.iter_mut().zip(cells) {
        model.write(cell, &mut out);
    }
    out.finish()
}

/// Reads a row of as many cells as there are columns.
#[inline(never)]
fn read_row<'a>(
    models: &mut [Model],
    texts: &mut [&'a str],
    nulls: &mut u32,
    mut wanted: u32,
    bits: &mut BitReader<'a>,
    cells: &mut [Value<'a>],
) -> Result<(), RowError> {
    let mut at_hand = *bits;
    let width = cells.len() as u32;
    if at_hand.take(1) == 1 && width > 0 {
        *nulls = ((at_hand.apart(|bits| bits.take_long(width)) as u32) << (32 - width)).reverse_bits();
    }
    let mut nulls = *nulls;
    for ((model, last), cell) in models.iter_mut().zip(texts).zip(cells) {
        if nulls & 1 != 0 {
            *cell = Value::Null;
        } else if wanted & 1 != 0 || !model.skip(&mut at_hand) {
            *cell = model.read(&mut at_hand, last)?;
        }
        (nulls, wanted) = (nulls >> 1, wanted >> 1);
    }
    *bits = at_hand;
    Ok(())
}
