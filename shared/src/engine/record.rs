//! Values in fixed places of a few bytes, so that groups and sorted rows need no heap.
//!
//! ```text
//!   ┌─────┬──────────────┐      ┌─────┬─────┬───────────────────────┐
//!   │ tag │ 8 bytes      │  or  │ tag │ len │ TEXT_BYTES_MAX bytes  │   for columns of text
//!   └─────┴──────────────┘      └─────┴─────┴───────────────────────┘
//! ```

use crate::{
    limits::TEXT_BYTES_MAX,
    value::{ColumnType, Value},
};

const NUMBER_BYTES: usize = 8;

/// Bytes of a place for values of a type.
pub(super) const fn place_bytes(kind: ColumnType) -> usize {
    match kind {
        ColumnType::Text => 2 + TEXT_BYTES_MAX,
        _ => 1 + NUMBER_BYTES,
    }
}

/// A text is longer than its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextTooLong;

/// Writes a value to the front of its place.
pub(super) fn store(value: Value<'_>, place: &mut [u8]) -> Result<(), TextTooLong> {
    let (tag, bytes) = match value {
        Value::Null => (0, 0),
        Value::Bool(v) => (1, u64::from(v)),
        Value::Int(v) => (2, v.cast_unsigned()),
        Value::Float32(v) => (3, u64::from(v.to_bits())),
        Value::Float64(v) => (4, v.to_bits()),
        Value::Timestamp(v) => (5, v.cast_unsigned()),
        Value::Text(text) => {
            let len = u8::try_from(text.len()).map_err(|_| TextTooLong)?;
            let room = place.get_mut(2..2 + text.len()).ok_or(TextTooLong)?;
            room.copy_from_slice(text.as_bytes());
            (place[0], place[1]) = (6, len);
            return Ok(());
        }
    };
    place[0] = tag;
    place[1..=NUMBER_BYTES].copy_from_slice(&bytes.to_le_bytes());
    Ok(())
}

/// The value at the front of a place.
pub(super) fn load(place: &[u8]) -> Value<'_> {
    let bits = || {
        let bytes = place.get(1..).and_then(|bytes| bytes.first_chunk::<NUMBER_BYTES>());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    match place.first() {
        Some(1) => Value::Bool(bits() != 0),
        Some(2) => Value::Int(bits().cast_signed()),
        Some(3) => Value::Float32(f32::from_bits(bits() as u32)),
        Some(4) => Value::Float64(f64::from_bits(bits())),
        Some(5) => Value::Timestamp(bits().cast_signed()),
        Some(6) => {
            let len = place.get(1).copied().map_or(0, usize::from);
            let text = place.get(2..2 + len).unwrap_or_default();
            Value::Text(core::str::from_utf8(text).unwrap_or_default())
        }
        _ => Value::Null,
    }
}

/// Mixes a value into a hash; equal values mix alike, whatever their types.
pub(super) fn mix(hash: u32, value: Value<'_>) -> u32 {
    const PRIME: u32 = 0x0100_0193;
    let word = |hash: u32, word: u32| (hash ^ word).wrapping_mul(PRIME).rotate_left(5);
    let int = |hash: u32, v: i64| word(word(hash, v as u32), (v >> 32) as u32);
    match value {
        Value::Null => word(hash, 1),
        Value::Bool(v) => int(hash, v.into()),
        Value::Int(v) | Value::Timestamp(v) => int(hash, v),
        Value::Float32(v) => mix(hash, Value::Float64(v.into())),
        Value::Float64(v) if v as i64 as f64 == v => int(hash, v as i64),
        Value::Float64(v) => int(hash, v.to_bits().cast_signed()),
        Value::Text(text) => text.bytes().fold(word(hash, 2), |hash, byte| word(hash, byte.into())),
    }
}
