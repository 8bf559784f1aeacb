//! What is remembered of one column from row to row: a model for each type.

use super::{
    RowError,
    bits::{BitReader, BitWriter},
    float::{Floats32, Floats64},
    rice::{Code, Rice},
    text::Texts,
    whole::{Bools, Ints, Moments},
};
use crate::{
    limits::TEXT_BYTES_MAX,
    value::{ColumnType, Value},
};

/// The model of a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    kind: Kind,
    rice: Rice,
    /// The next cell is a code that means the same whatever comes before it: all but texts, bools, floats of 64 bits,
    /// and what follows a value by XOR.
    is_plain: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
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
        let (kind, rice) = match kind {
            ColumnType::Bool => (Kind::Bools(Bools::NEW), Bools::RICE),
            ColumnType::Int => (Kind::Ints(Ints::NEW), Ints::RICE),
            ColumnType::Float32 => (Kind::Floats32(Floats32::NEW), Floats32::RICE),
            ColumnType::Float64 => (Kind::Floats64(Floats64::NEW), Floats64::RICE),
            ColumnType::Timestamp => (Kind::Moments(Moments::NEW), Moments::RICE),
            ColumnType::Text => (Kind::Texts(Texts::NEW), Texts::RICE),
        };
        Self { is_plain: kind.is_plain(), kind, rice }
    }

    pub(super) fn kind(&self) -> ColumnType {
        match self.kind {
            Kind::Bools(_) => ColumnType::Bool,
            Kind::Ints(_) => ColumnType::Int,
            Kind::Floats32(_) => ColumnType::Float32,
            Kind::Floats64(_) => ColumnType::Float64,
            Kind::Moments(_) => ColumnType::Timestamp,
            Kind::Texts(_) => ColumnType::Text,
        }
    }

    /// Whether this cell can stand in this column.
    #[inline]
    pub(super) fn check(&self, cell: &Value) -> Result<(), RowError> {
        match (&self.kind, cell) {
            (_, Value::Null)
            | (Kind::Bools(_), Value::Bool(_))
            | (Kind::Ints(_), Value::Int(_) | Value::Float64(_))
            | (Kind::Floats32(_), Value::Float32(_))
            | (Kind::Floats64(_), Value::Float64(_))
            | (Kind::Moments(_), Value::Timestamp(_)) => Ok(()),
            (Kind::Texts(_), Value::Text(text)) if text.len() <= TEXT_BYTES_MAX => Ok(()),
            (Kind::Texts(_), Value::Text(_)) => Err(RowError::TooLong),
            _ => Err(RowError::Type),
        }
    }

    /// Writes a cell that was [`check`](Self::check)ed. NULL is in the pattern of its row and has no bits here.
    #[inline]
    pub(super) fn write(&mut self, cell: &Value, out: &mut BitWriter) {
        let rice = &mut self.rice;
        match (&mut self.kind, *cell) {
            (Kind::Moments(model), Value::Timestamp(value)) => model.write(value, rice, out),
            (Kind::Floats32(model), Value::Float32(value)) => model.write(value, rice, out),
            (Kind::Ints(model), Value::Int(value)) => model.write(value, rice, out),
            (Kind::Ints(model), Value::Float64(value)) => model.write_float(value, out),
            (Kind::Bools(model), Value::Bool(value)) => model.write(value, rice, out),
            (Kind::Floats64(model), Value::Float64(value)) => model.write(value, rice, out),
            (Kind::Texts(model), Value::Text(value)) => model.write(value, rice, out),
            _ => {}
        }
    }

    /// Reads a cell; `last` is the last text of this column. The cell may be left as it is if it is not wanted, as
    /// long as none of its column is.
    #[inline(always)]
    pub(super) fn read<'a>(
        &mut self,
        bits: &mut BitReader<'a>,
        last: &mut &'a str,
        is_wanted: bool,
        cell: &mut Value<'a>,
    ) -> Result<(), RowError> {
        if !self.is_plain {
            return bits.apart(|bits| self.read_other(bits, last, cell));
        }
        match self.rice.read(bits) {
            Code::Short(number) if is_wanted => self.read_short(number, cell),
            Code::Short(_) => {}
            Code::Escape(tag) => return bits.apart(|bits| self.read_escaped(tag, bits, cell)),
        }
        Ok(())
    }

    #[inline(always)]
    fn read_short(&mut self, number: u32, cell: &mut Value<'_>) {
        match &mut self.kind {
            Kind::Moments(model) => *cell = Value::Timestamp(model.short(number)),
            Kind::Floats32(model) => *cell = Value::Float32(model.short(number)),
            Kind::Ints(model) => *cell = Value::Int(model.short(number)),
            Kind::Bools(_) | Kind::Floats64(_) | Kind::Texts(_) => {}
        }
    }

    #[cold]
    #[inline(never)]
    fn read_escaped(&mut self, tag: u32, bits: &mut BitReader, cell: &mut Value<'_>) -> Result<(), RowError> {
        let rice = &mut self.rice;
        *cell = match &mut self.kind {
            Kind::Moments(model) => Value::Timestamp(model.escaped(tag, rice, bits)?),
            Kind::Floats32(model) => Value::Float32(model.escaped(tag, rice, bits)?),
            Kind::Ints(model) => model.escaped(tag, rice, bits)?,
            Kind::Bools(_) | Kind::Floats64(_) | Kind::Texts(_) => return Err(RowError::Malformed),
        };
        self.is_plain = self.kind.is_plain();
        Ok(())
    }

    #[inline(never)]
    fn read_other<'a>(
        &mut self,
        bits: &mut BitReader<'a>,
        last: &mut &'a str,
        cell: &mut Value<'a>,
    ) -> Result<(), RowError> {
        let rice = &mut self.rice;
        *cell = match &mut self.kind {
            Kind::Bools(model) => Value::Bool(model.read(rice, bits)?),
            Kind::Texts(model) => Value::Text(model.read(rice, bits, last)?),
            Kind::Floats64(model) => Value::Float64(model.read(rice, bits)?),
            Kind::Floats32(model) => Value::Float32(model.after_xor(rice, bits)?),
            Kind::Ints(_) | Kind::Moments(_) => return Err(RowError::Malformed),
        };
        self.is_plain = self.kind.is_plain();
        Ok(())
    }
}

impl Kind {
    fn is_plain(&self) -> bool {
        match self {
            Kind::Moments(_) | Kind::Ints(_) => true,
            Kind::Floats32(model) => !model.by_xor,
            Kind::Bools(_) | Kind::Floats64(_) | Kind::Texts(_) => false,
        }
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
