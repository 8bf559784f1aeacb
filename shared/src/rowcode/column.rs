//! What is remembered of one column from row to row: a model for each type.

use super::{
    RowError,
    bits::{BitReader, BitWriter},
    float::{Floats32, Floats64},
    text::Texts,
    whole::{Bools, Ints, Moments},
};
use crate::{
    limits::TEXT_BYTES_MAX,
    value::{ColumnType, Value},
};

/// The model of a column. Its tag stands apart and the models are packed, so that it is told from others at once and
/// takes no more room.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Model {
    Bools(Bools),
    Ints(Ints),
    Floats32(Floats32),
    Floats64(Floats64),
    Moments(Moments),
    Texts(Texts),
}

const _: () = assert!(size_of::<Model>() <= 32);

impl Model {
    /// Knows nothing yet.
    pub(super) fn new(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Bool => Model::Bools(Bools::NEW),
            ColumnType::Int => Model::Ints(Ints::NEW),
            ColumnType::Float32 => Model::Floats32(Floats32::NEW),
            ColumnType::Float64 => Model::Floats64(Floats64::NEW),
            ColumnType::Timestamp => Model::Moments(Moments::NEW),
            ColumnType::Text => Model::Texts(Texts::NEW),
        }
    }

    pub(super) fn kind(&self) -> ColumnType {
        match self {
            Model::Bools(_) => ColumnType::Bool,
            Model::Ints(_) => ColumnType::Int,
            Model::Floats32(_) => ColumnType::Float32,
            Model::Floats64(_) => ColumnType::Float64,
            Model::Moments(_) => ColumnType::Timestamp,
            Model::Texts(_) => ColumnType::Text,
        }
    }

    /// Whether this cell can stand in this column.
    #[inline]
    pub(super) fn check(&self, cell: &Value) -> Result<(), RowError> {
        match (self, cell) {
            (_, Value::Null)
            | (Model::Bools(_), Value::Bool(_))
            | (Model::Ints(_), Value::Int(_) | Value::Float64(_))
            | (Model::Floats32(_), Value::Float32(_))
            | (Model::Floats64(_), Value::Float64(_))
            | (Model::Moments(_), Value::Timestamp(_)) => Ok(()),
            (Model::Texts(_), Value::Text(text)) if text.len() <= TEXT_BYTES_MAX => Ok(()),
            (Model::Texts(_), Value::Text(_)) => Err(RowError::TooLong),
            _ => Err(RowError::Type),
        }
    }

    /// Writes a cell that was [`check`](Self::check)ed. NULL is in the pattern of its row and has no bits here.
    #[inline]
    pub(super) fn write(&mut self, cell: &Value, out: &mut BitWriter) {
        match (self, *cell) {
            (Model::Moments(model), Value::Timestamp(value)) => model.write(value, out),
            (Model::Floats32(model), Value::Float32(value)) => model.write(value, out),
            (Model::Ints(model), Value::Int(value)) => model.write(value, out),
            (Model::Ints(model), Value::Float64(value)) => model.write_float(value, out),
            (Model::Bools(model), Value::Bool(value)) => model.write(value, out),
            (Model::Floats64(model), Value::Float64(value)) => model.write(value, out),
            (Model::Texts(model), Value::Text(value)) => model.write(value, out),
            _ => {}
        }
    }

    /// Passes over a cell that nobody wants, as long as all of its column are passed over; false if it must be read.
    #[inline(always)]
    pub(super) fn skip(&mut self, bits: &mut BitReader) -> bool {
        match self {
            Model::Moments(model) => model.rice.skip(bits),
            Model::Ints(model) => model.rice.skip(bits),
            Model::Floats32(model) => !model.by_xor && model.rice.skip(bits),
            Model::Bools(_) | Model::Floats64(_) | Model::Texts(_) => false,
        }
    }

    /// Reads a cell; `last` is the last text of this column.
    #[inline]
    pub(super) fn read<'a>(
        &mut self,
        bits: &mut BitReader<'a>,
        last: &mut &'a str,
    ) -> Result<Value<'a>, RowError> {
        Ok(match self {
            Model::Moments(model) => Value::Timestamp(model.read(bits)?),
            Model::Floats32(model) => Value::Float32(model.read(bits)?),
            Model::Ints(model) => model.read(bits)?,
            Model::Bools(model) => Value::Bool(model.read(bits)?),
            Model::Floats64(model) => Value::Float64(bits.apart(|bits| model.read(bits))?),
            Model::Texts(model) => Value::Text(bits.apart(|bits| model.read(bits, last))?),
        })
    }
}

/// The most bits that a cell of this type takes.
pub(super) const fn cell_bits_max(kind: ColumnType) -> usize {
    match kind {
        ColumnType::Bool => Bools::BITS_MAX,
        ColumnType::Int => Ints::BITS_MAX,
        ColumnType::Float32 => Floats32::BITS_MAX,
        ColumnType::Float64 => Floats64::BITS_MAX,
        ColumnType::Timestamp => Moments::BITS_MAX,
        ColumnType::Text => Texts::BITS_MAX,
    }
}
