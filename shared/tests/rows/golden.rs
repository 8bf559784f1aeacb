//! Runs of rows, literally. When one of these fails, the code is wrong, not the test.
//!
//! The bytes were made by another program, from the drawings in `rowcode`.

use crate::{assert_decodes, encoded};
use shared::value::{ColumnType, Value};

fn assert_golden(kinds: &[ColumnType], rows: &[Vec<Value<'_>>], bits: usize, bytes: &[u8]) {
    let (ours_bits, ours) = encoded(kinds, rows);
    assert_eq!(ours, bytes, "{rows:?} is written as\n{ours:02X?}, not as\n{bytes:02X?}");
    assert_eq!(ours_bits, bits);
    assert_decodes(kinds, bytes, rows);
}

#[test]
fn bools_take_a_bit_or_two() {
    assert_golden(
        &[ColumnType::Bool],
        &[
            vec![Value::Bool(true)],
            vec![Value::Bool(true)],
            vec![Value::Bool(false)],
            vec![Value::Null],
            vec![Value::Bool(false)],
        ],
        13,
        &[0x42, 0xE0],
    );
}

#[test]
fn ints_are_differences_and_may_overflow_to_a_float() {
    assert_golden(
        &[ColumnType::Int],
        &[
            vec![Value::Int(3)],
            vec![Value::Int(-4)],
            vec![Value::Int(i64::MAX)],
            vec![Value::Int(i64::MIN)],
            vec![Value::Float64(1e300)],
            vec![Value::Int(-9_223_372_036_854_775_800)],
        ],
        195,
        &[
            0x19, 0x57, 0xFF, 0xF3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x90, 0x9F, 0xFF, 0xD7,
            0xE3, 0x7E, 0x43, 0xC8, 0x80, 0x07, 0x59, 0xC4, 0x00,
        ],
    );
}

#[test]
fn moments_are_what_their_period_is_off_by() {
    assert_golden(
        &[ColumnType::Timestamp],
        &[
            vec![Value::Timestamp(5_000_000)],
            vec![Value::Timestamp(6_000_000)],
            vec![Value::Timestamp(7_000_113)],
            vec![Value::Timestamp(8_000_020)],
            vec![Value::Timestamp(20_000_000)],
            vec![Value::Timestamp(21_000_001)],
        ],
        182,
        &[
            0x7F, 0xFF, 0x17, 0x98, 0x96, 0x80, 0x7F, 0xFF, 0x14, 0xF4, 0x24, 0x00, 0x38, 0x83, 0x36, 0xFF,
            0xFE, 0x31, 0x4F, 0xB0, 0xAA, 0x02, 0xAC,
        ],
    );
}

#[test]
fn floats_are_scaled_or_by_xor() {
    assert_golden(
        &[ColumnType::Float32],
        &[
            vec![Value::Float32(21.53)],
            vec![Value::Float32(21.54)],
            vec![Value::Float32(21.5)],
            vec![Value::Float32(-0.0)],
            vec![Value::Float32(f32::INFINITY)],
            vec![Value::Float32(21.55)],
            vec![Value::Float32(0.001)],
            vec![Value::Float32(1.1754944e-38)],
        ],
        285,
        &[
            0x7F, 0xFF, 0x4B, 0xFF, 0xF8, 0x64, 0x34, 0x82, 0x1D, 0xFF, 0xFE, 0x06, 0x0D, 0x60, 0x00, 0x02,
            0x0F, 0xF8, 0x00, 0x00, 0x01, 0x4F, 0xFF, 0xE9, 0xFF, 0xFF, 0x0F, 0xA8, 0x59, 0x7F, 0xFF, 0x85,
            0xD0, 0x18, 0x93, 0x78,
        ],
    );
}

#[test]
fn long_floats_are_scaled_or_narrow_or_by_xor() {
    assert_golden(
        &[ColumnType::Float64],
        &[
            vec![Value::Float64(21.53)],
            vec![Value::Float64(21.54)],
            vec![Value::Float64(f64::from(0.1_f32))],
            vec![Value::Float64(f64::from(0.3_f32))],
            vec![Value::Float64(1.0 / 3.0)],
            vec![Value::Float64(2.0 / 3.0)],
            vec![Value::Float64(0.0001)],
        ],
        353,
        &[
            0x7F, 0xFF, 0x4B, 0xFF, 0xF8, 0x64, 0x34, 0x82, 0x7F, 0xFF, 0xC5, 0xEE, 0x66, 0x66, 0x6A, 0x6D,
            0x55, 0x55, 0x5C, 0xFF, 0xFF, 0x1B, 0x99, 0x99, 0x85, 0x55, 0x55, 0x55, 0x52, 0xB0, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x3F, 0xFF, 0xA9, 0xFF, 0xFC, 0x4B, 0x49, 0x66, 0x80,
        ],
    );
}

#[test]
fn texts_are_places_among_the_last() {
    assert_golden(
        &[ColumnType::Text],
        &[
            vec![Value::Text("idle")],
            vec![Value::Text("run")],
            vec![Value::Text("idle")],
            vec![Value::Null],
            vec![Value::Text("ü")],
            vec![Value::Text("")],
            vec![Value::Text("run")],
        ],
        149,
        &[
            0x00, 0x04, 0x69, 0x64, 0x6C, 0x65, 0x40, 0x03, 0x72, 0x75, 0x6E, 0x5D, 0x80, 0x02, 0xC3, 0xBC,
            0x70, 0x00, 0x70,
        ],
    );
}

#[test]
fn a_row_of_several_columns() {
    assert_golden(
        &[ColumnType::Timestamp, ColumnType::Float32, ColumnType::Text],
        &[
            vec![Value::Timestamp(1_000), Value::Null, Value::Text("on")],
            vec![Value::Timestamp(2_000), Value::Float32(0.5), Value::Text("on")],
            vec![Value::Timestamp(3_000), Value::Float32(0.25), Value::Null],
        ],
        137,
        &[
            0xAE, 0xE8, 0x00, 0x02, 0x6F, 0x6E, 0x8E, 0xE8, 0x7F, 0xFF, 0x46, 0x49, 0x00, 0x3F, 0xFF, 0xA5,
            0xF8, 0x80,
        ],
    );
}
