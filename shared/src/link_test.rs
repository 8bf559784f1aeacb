//! The made-up rows that a board streams to measure its link: both sides can tell every one of them. Most of a row is
//! noise that no code makes smaller, so that the link is measured and not the row code.

use crate::{
    schema::Column,
    value::{ColumnType, Value},
};

const fn column(name: &'static str, kind: ColumnType) -> Column<'static> {
    Column { name, kind, unit: "" }
}

/// What a test row has.
pub const COLUMNS: [Column<'static>; 6] = [
    column("row", ColumnType::Int),
    column("noise_1", ColumnType::Int),
    column("noise_2", ColumnType::Int),
    column("noise_3", ColumnType::Int),
    column("noise_4", ColumnType::Int),
    column("state", ColumnType::Text),
];

/// Row `index` of the stream with this seed.
pub fn row(seed: u32, index: u64) -> [Value<'static>; COLUMNS.len()] {
    let noise = mix(u64::from(seed) << 32 | index);
    let state = match noise % 4 {
        0 => Value::Null,
        1 => Value::Text("idle"),
        2 => Value::Text("running"),
        _ => Value::Text("überhitzt"),
    };
    let turned = |bits: u32| Value::Int((noise.rotate_left(bits) ^ index).cast_signed());
    [
        Value::Int(index.cast_signed()),
        Value::Int(noise.cast_signed()),
        turned(17),
        turned(31),
        turned(47),
        state,
    ]
}

/// Turns neighbouring numbers into ones that look random (splitmix64).
pub fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
