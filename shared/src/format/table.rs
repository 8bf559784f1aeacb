//! The frame of box characters around a table.

use super::value::{width, write_cell};
use crate::value::Value;
use core::fmt::{self, Write};

/// A horizontal line between cells of these widths: its left end, its crossings, its right end.
pub(super) fn rule(
    out: &mut impl Write,
    [left, crossing, right]: [char; 3],
    widths: impl IntoIterator<Item = usize>,
) -> fmt::Result {
    for (index, width) in widths.into_iter().enumerate() {
        out.write_char(if index == 0 { left } else { crossing })?;
        (0..width + 2).try_for_each(|_| out.write_char('─'))?;
    }
    out.write_char(right)
}

/// A cell and the space that fills it up: behind text, before numbers.
pub(super) fn write_aligned(value: &Value<'_>, cell_width: usize, out: &mut impl Write) -> fmt::Result {
    if let Value::Int(_) | Value::Float32(_) | Value::Float64(_) = value {
        write!(out, "{:1$}", "", cell_width.saturating_sub(width(value)))?;
        return write_cell(value, out);
    }
    write_padded(value, cell_width, out)
}

/// A cell and the space behind it; one that is wider than its column overflows it.
pub(super) fn write_padded(value: &Value<'_>, cell_width: usize, out: &mut impl Write) -> fmt::Result {
    write_cell(value, out)?;
    write!(out, "{:1$}", "", cell_width.saturating_sub(width(value)))
}
