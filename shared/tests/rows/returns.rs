//! What is written is read as it was, bit for bit; a row that is refused leaves no trace; any bytes do no harm.

use crate::{are_same, assert_decodes, config, encoded};
use proptest::{collection::vec, prelude::*};
use shared::{
    limits::{COLUMNS_MAX, TEXT_BYTES_MAX},
    rowcode::{RowDecoder, RowEncoder, RowError, row_bits_max},
    value::{ColumnType, Value},
};

const KINDS: [ColumnType; 6] = [
    ColumnType::Bool,
    ColumnType::Int,
    ColumnType::Float32,
    ColumnType::Float64,
    ColumnType::Timestamp,
    ColumnType::Text,
];

/// A cell that owns its text.
#[derive(Clone, Debug)]
enum Cell {
    Plain(Value<'static>),
    Text(String),
}

impl Cell {
    fn value(&self) -> Value<'_> {
        match self {
            Cell::Plain(value) => *value,
            Cell::Text(text) => Value::Text(text),
        }
    }
}

fn whole() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -40_i64..40,
        4 => 1_000_000_i64..1_002_000,
        1 => any::<i64>(),
        1 => any::<i32>().prop_map(i64::from),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, 0, -1, 1 << 53, 1 << 24]),
    ]
}

fn float32() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => (-3_000_i32..3_000, 0_usize..7).prop_map(|(m, k)| m as f32 / 10_f32.powi(k as i32)),
        4 => (2_000_i32..2_100).prop_map(|m| m as f32 / 100.0),
        1 => any::<u32>().prop_map(f32::from_bits),
        1 => -1e7_f32..1e7,
    ]
}

fn float64() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-300_000_i64..300_000, 0_usize..11).prop_map(|(m, k)| m as f64 / 10_f64.powi(k as i32)),
        2 => float32().prop_map(f64::from),
        1 => any::<u64>().prop_map(f64::from_bits),
        1 => -1e16_f64..1e16,
    ]
}

fn cell(kind: ColumnType) -> BoxedStrategy<Cell> {
    let plain = match kind {
        ColumnType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        ColumnType::Int => {
            prop_oneof![15 => whole().prop_map(Value::Int), 1 => float64().prop_map(Value::Float64)].boxed()
        }
        ColumnType::Float32 => float32().prop_map(Value::Float32).boxed(),
        ColumnType::Float64 => float64().prop_map(Value::Float64).boxed(),
        ColumnType::Timestamp => whole().prop_map(Value::Timestamp).boxed(),
        ColumnType::Text => {
            let few = "[a-k]".prop_map(Cell::Text);
            return prop_oneof![6 => few, 1 => "\\PC{0,16}".prop_map(Cell::Text), 1 => Just(Cell::Plain(Value::Null))]
                .boxed();
        }
    };
    prop_oneof![7 => plain.prop_map(Cell::Plain), 1 => Just(Cell::Plain(Value::Null))].boxed()
}

/// Columns, and rows that they can hold.
fn table() -> impl Strategy<Value = (Vec<ColumnType>, Vec<Vec<Cell>>)> {
    vec(prop::sample::select(&KINDS[..]), 1..=COLUMNS_MAX).prop_flat_map(|kinds| {
        let row = kinds.iter().map(|kind| cell(*kind)).collect::<Vec<_>>();
        (Just(kinds), vec(row, 0..40))
    })
}

/// One column, and many cells of it.
fn column() -> impl Strategy<Value = (ColumnType, Vec<Cell>)> {
    prop::sample::select(&KINDS[..]).prop_flat_map(|kind| (Just(kind), vec(cell(kind), 0..300)))
}

fn values(row: &[Cell]) -> Vec<Value<'_>> {
    row.iter().map(Cell::value).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn rows_return_bit_for_bit((kinds, rows) in table()) {
        let rows: Vec<_> = rows.iter().map(|row| values(row)).collect();
        let (_, bytes) = encoded(&kinds, &rows);
        assert_decodes(&kinds, &bytes, &rows);
    }

    #[test]
    fn a_long_column_returns_bit_for_bit((kind, cells) in column()) {
        let rows: Vec<_> = cells.iter().map(|cell| vec![cell.value()]).collect();
        let (_, bytes) = encoded(&[kind], &rows);
        assert_decodes(&[kind], &bytes, &rows);
    }

    /// Into a buffer of any size, with rows among them that are not of these columns: each that is taken returns, and
    /// an encoder that refused some writes what one writes that never saw them.
    #[test]
    fn a_row_that_is_refused_leaves_no_trace(
        (kinds, rows) in table(),
        out_bytes in 0_usize..300,
        spoilt in vec(any::<(bool, usize)>(), 40),
    ) {
        let mut encoder = RowEncoder::new(kinds.iter().copied());
        let (mut out, mut bits) = (vec![0xFF; out_bytes], 0_usize);
        let mut taken = Vec::new();
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        for (row, (is_spoilt, place)) in rows.iter().zip(spoilt) {
            let mut cells = values(row);
            if is_spoilt {
                let place = place % cells.len();
                cells[place] = match kinds[place] {
                    ColumnType::Text => Value::Text(&long),
                    ColumnType::Timestamp => Value::Int(1),
                    _ => Value::Timestamp(1),
                };
            }
            let before = (bits, out[..bits.div_ceil(8)].to_vec());
            match encoder.append(&cells, &mut out, &mut bits) {
                Ok(()) => {
                    prop_assert!(!is_spoilt);
                    prop_assert!(bits - before.0 <= row_bits_max(kinds.iter().copied()));
                    taken.push(cells);
                }
                Err(error) => {
                    prop_assert_eq!(is_spoilt, matches!(error, RowError::Type | RowError::TooLong));
                    prop_assert!(is_spoilt || error == RowError::Full);
                    prop_assert_eq!((bits, out[..bits.div_ceil(8)].to_vec()), before);
                }
            }
        }
        prop_assert!(bits <= out.len() * 8);
        out.truncate(bits.div_ceil(8));
        prop_assert_eq!((bits, out.clone()), encoded(&kinds, &taken));
        assert_decodes(&kinds, &out, &taken);
    }

    #[test]
    fn any_bytes_do_no_harm(
        kinds in vec(prop::sample::select(&KINDS[..]), 0..COLUMNS_MAX + 3),
        bytes in vec(prop_oneof![any::<u8>(), Just(0xFF_u8), Just(0)], 0..400),
        rows in any::<u16>(),
    ) {
        read_all(&kinds, &bytes, rows);
    }

    #[test]
    fn rows_with_a_bit_turned_do_no_harm((kinds, rows) in table(), bit in any::<usize>()) {
        let rows: Vec<_> = rows.iter().map(|row| values(row)).collect();
        let (_, mut bytes) = encoded(&kinds, &rows);
        if !bytes.is_empty() {
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        read_all(&kinds, &bytes, rows.len() as u16);
    }
}

/// Reads until there is no more or a fault, which stays.
fn read_all(kinds: &[ColumnType], bytes: &[u8], rows: u16) {
    let mut decoder = RowDecoder::new(kinds.iter().copied(), bytes, rows);
    let mut cells = vec![Value::Null; kinds.len()];
    let mut count = 0;
    loop {
        match decoder.next_row(&mut cells) {
            Ok(true) => count += 1,
            Ok(false) => break,
            Err(error) => return assert_eq!(decoder.next_row(&mut cells), Err(error)),
        }
    }
    assert_eq!(count, rows);
}

#[test]
fn extremes_return_bit_for_bit() {
    let wholes = [0, 1, -1, i64::MIN, i64::MAX, i64::MIN + 1, 1 << 31, -(1 << 31), 1 << 53, i64::MAX, 0];
    let floats32 = [
        0.0,
        -0.0,
        f32::NAN,
        f32::from_bits(0xFFC0_1234),
        f32::from_bits(0x7F80_0001),
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::MAX,
        f32::MIN,
        16_777_216.0,
        16_777_218.0,
        -16_777_216.0,
        0.1,
        1e-6,
        1e-7,
        21.53,
        21.53_f32 * 100.0,
        2153.0_f32 * 0.01,
    ];
    let floats64 = [
        9_007_199_254_740_992.0,
        9_007_199_254_740_994.0,
        -9_007_199_254_740_992.0,
        f64::from_bits(0x7FF0_0000_0000_0001),
        f64::from_bits(0xFFF8_0000_DEAD_BEEF),
        f64::from_bits(1),
        f64::MAX,
        f64::MIN_POSITIVE,
        1e-9,
        1e-10,
        0.1 + 0.2,
        -0.0,
    ];
    let texts = [
        "",
        "a",
        "überhitzt",
        "温度",
        "🌡️",
        "",
        &"é".repeat(TEXT_BYTES_MAX / 2),
        &"x".repeat(TEXT_BYTES_MAX),
    ];
    let one = |cells: Vec<Value<'_>>, kind: ColumnType| {
        let rows: Vec<_> = cells.into_iter().map(|cell| vec![cell]).collect();
        let rows =
            [&rows[..], &[vec![Value::Null]], &rows[..], &[vec![Value::Null], vec![Value::Null]]].concat();
        let (_, bytes) = encoded(&[kind], &rows);
        assert_decodes(&[kind], &bytes, &rows);
    };
    one(wholes.map(Value::Int).to_vec(), ColumnType::Int);
    one(wholes.map(Value::Timestamp).to_vec(), ColumnType::Timestamp);
    one(floats32.map(Value::Float32).to_vec(), ColumnType::Float32);
    one(floats32.map(|float| Value::Float64(f64::from(float))).to_vec(), ColumnType::Float64);
    one(floats64.map(Value::Float64).to_vec(), ColumnType::Float64);
    one(floats64.map(Value::Float64).to_vec(), ColumnType::Int);
    one(texts.map(Value::Text).to_vec(), ColumnType::Text);
    one([true, true, false, true].map(Value::Bool).to_vec(), ColumnType::Bool);
}

#[test]
fn rows_of_nothing_but_null_take_a_bit() {
    let rows = vec![vec![Value::Null; COLUMNS_MAX]; 100];
    let (bits, bytes) = encoded(&[ColumnType::Text; COLUMNS_MAX], &rows);
    assert_eq!(bits, COLUMNS_MAX + 100);
    assert_decodes(&[ColumnType::Text; COLUMNS_MAX], &bytes, &rows);
}

#[test]
fn more_than_eight_texts_return() {
    let texts: Vec<String> = (0..12).map(|text| format!("state {text}")).collect();
    let rows: Vec<_> = (0..200).map(|row| vec![Value::Text(&texts[row * row % 12])]).collect();
    let (_, bytes) = encoded(&[ColumnType::Text], &rows);
    assert_decodes(&[ColumnType::Text], &bytes, &rows);
}

#[test]
fn a_row_has_a_cell_for_each_column() {
    let kinds = [ColumnType::Int, ColumnType::Bool];
    let (mut out, mut bits) = ([0; 64], 0);
    let mut encoder = RowEncoder::new(kinds);
    assert_eq!(encoder.append(&[Value::Int(1)], &mut out, &mut bits), Err(RowError::Width));
    let mut cells = [Value::Null; 1];
    assert_eq!(RowDecoder::new(kinds, &[0], 1).next_row(&mut cells), Err(RowError::Width));
    let kinds = [ColumnType::Int; COLUMNS_MAX + 1];
    let cells = [Value::Null; COLUMNS_MAX + 1];
    assert_eq!(RowEncoder::new(kinds).append(&cells, &mut out, &mut bits), Err(RowError::Width));
    assert_eq!(RowEncoder::new(kinds).append(&cells[1..], &mut out, &mut bits), Err(RowError::Width));
    assert_eq!(bits, 0);
}

#[test]
fn an_encoder_that_is_reset_is_as_new() {
    let rows = [vec![Value::Int(5), Value::Text("a")], vec![Value::Null, Value::Text("a")]];
    let kinds = [ColumnType::Int, ColumnType::Text];
    let mut encoder = RowEncoder::new(kinds);
    let mut runs = Vec::new();
    for _ in 0..2 {
        let (mut out, mut bits) = ([0; 64], 0);
        rows.iter().for_each(|row| encoder.append(row, &mut out, &mut bits).unwrap());
        runs.push((out, bits));
        encoder.reset();
    }
    assert_eq!(runs[0], runs[1]);
    let mut cells = [Value::Null; 2];
    assert_eq!(RowDecoder::new(kinds, &runs[0].0[..1], 2).next_row(&mut cells), Err(RowError::Malformed));
    assert!(!are_same(&rows[0], &rows[1]));
}
