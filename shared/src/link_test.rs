//! The made-up rows that a board streams to measure its link: both sides can tell every one of them.

use crate::{
    schema::Column,
    value::{ColumnType, Value},
};

/// What a test row has.
pub const COLUMNS: [Column<'static>; 3] = [
    Column { name: "row", kind: ColumnType::Int, unit: "" },
    Column { name: "noise", kind: ColumnType::Int, unit: "" },
    Column { name: "state", kind: ColumnType::Text, unit: "" },
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
    [Value::Int(index.cast_signed()), Value::Int(noise.cast_signed()), state]
}

/// Turns neighbouring numbers into ones that look random (splitmix64).
pub fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
