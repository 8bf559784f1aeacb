//! The made-up rows that a board streams to measure its link: both sides can tell every one of them. Most of a row is
//! text that no row is likely to repeat soon, which costs little to write: so the link is measured, not the row code.

use crate::{
    limits::TEXT_BYTES_MAX,
    schema::Column,
    value::{ColumnType, Value},
};

const fn column(name: &'static str, kind: ColumnType) -> Column<'static> {
    Column { name, kind, unit: "" }
}

/// What a test row has.
pub const COLUMNS: [Column<'static>; 4] = [
    column("row", ColumnType::Int),
    column("noise", ColumnType::Int),
    column("state", ColumnType::Text),
    column("letters", ColumnType::Text),
];

/// Letters in no order; a row has some of them.
static LETTERS: [u8; LETTERS_BYTES] = letters();
const LETTERS_BYTES: usize = 1024;

const fn letters() -> [u8; LETTERS_BYTES] {
    let mut letters = [0; LETTERS_BYTES];
    let mut at = 0;
    while at < LETTERS_BYTES {
        letters[at] = b'a' + (mix(at as u64) % 26) as u8;
        at += 1;
    }
    letters
}

/// Row `index` of the stream with this seed.
pub fn row(seed: u32, index: u64) -> [Value<'static>; COLUMNS.len()] {
    let noise = mix(u64::from(seed) << 32 | index);
    let state = match noise % 4 {
        0 => Value::Null,
        1 => Value::Text("idle"),
        2 => Value::Text("running"),
        _ => Value::Text("überhitzt"),
    };
    let first = (noise >> 32) as usize % (LETTERS_BYTES - TEXT_BYTES_MAX);
    let letters = str::from_utf8(&LETTERS[first..first + TEXT_BYTES_MAX]).unwrap_or_default();
    [Value::Int(index.cast_signed()), Value::Int(noise.cast_signed()), state, Value::Text(letters)]
}

/// Turns neighbouring numbers into ones that look random (splitmix64).
pub const fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
