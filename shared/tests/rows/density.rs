//! How many bytes a believable row takes, in pages of the size that boards have.

use crate::{assert_decodes, encoded};
use shared::{
    limits::PAGE_BYTES,
    link_test::mix,
    rowcode::RowEncoder,
    value::{ColumnType, Value},
};

/// Bytes in front of a page's rows.
const HEAD_BYTES: usize = 32;

/// Numbers that look random, the same each time.
struct Dice(u64);

impl Dice {
    /// 0 ≤ number < 1
    fn unit(&mut self) -> f64 {
        self.0 += 1;
        (mix(self.0) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal, around 0, with this standard deviation.
    fn normal(&mut self, deviation: f64) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>().mul_add(deviation, -6.0 * deviation)
    }
}

/// Bytes a row takes in pages with their heads.
fn bytes_a_row(kinds: &[ColumnType], rows: &[Vec<Value<'_>>]) -> f64 {
    let (mut pages, mut page_rows, mut bits) = (1, 0, 0);
    let mut out = [0; PAGE_BYTES - HEAD_BYTES];
    let mut encoder = RowEncoder::new(kinds.iter().copied());
    let mut rows_sealed = 0;
    for row in rows {
        if encoder.append(row, &mut out, &mut bits).is_err() {
            rows_sealed += page_rows;
            (pages, page_rows, bits) = (pages + 1, 0, 0);
            encoder.reset();
            encoder.append(row, &mut out, &mut bits).expect("a page has room for a row");
        }
        page_rows += 1;
    }
    let (_, bytes) = encoded(kinds, rows);
    assert_decodes(kinds, &bytes, rows);
    ((pages - 1) * PAGE_BYTES) as f64 / f64::from(rows_sealed)
}

/// The moment of each row, in microseconds since boot.
fn moments(period_us: f64, jitter_us: f64) -> impl FnMut(usize) -> Value<'static> {
    let mut dice = Dice(1 << 40);
    move |row| Value::Timestamp((3_600e6 + row as f64 * period_us + dice.normal(jitter_us)) as i64)
}

#[test]
fn a_row_of_an_environment_takes_three_bytes_and_a_half() {
    let mut dice = Dice(1);
    let mut moment = moments(1e6, 400.0);
    let (mut celsius, mut humidity, mut pressure) = (2153.0, 4512.0, 10132.0);
    let rows: Vec<_> = (0..4_000)
        .map(|row| {
            celsius += dice.normal(1.5);
            humidity += dice.normal(2.0);
            pressure += dice.normal(0.7);
            let scaled = |raw: f64, power: f32| Value::Float32(raw as i32 as f32 / power);
            vec![moment(row), scaled(celsius, 100.0), scaled(humidity, 100.0), scaled(pressure, 10.0)]
        })
        .collect();
    use ColumnType::{Float32, Timestamp};
    let bytes = bytes_a_row(&[Timestamp, Float32, Float32, Float32], &rows);
    eprintln!("environment: {bytes:.2} B a row");
    assert!(bytes <= 3.5, "{bytes}");
}

#[test]
fn a_row_of_power_takes_four_bytes() {
    let mut dice = Dice(2);
    let mut moment = moments(1e6, 400.0);
    let mut state = "idle";
    let rows: Vec<_> = (0..4_000)
        .map(|row| {
            if dice.unit() < 0.02 {
                state = ["idle", "running", "fault"][(dice.unit() * 3.0) as usize];
            }
            let load = if state == "running" { 420.0 } else { 3.0 };
            let volts = (2301.0 + dice.normal(4.0)) as i32 as f32 / 10.0;
            let amperes = (load + dice.normal(3.0)) as i32 as f32 / 100.0;
            vec![moment(row), Value::Float32(volts), Value::Float32(amperes), Value::Text(state)]
        })
        .collect();
    use ColumnType::{Float32, Text, Timestamp};
    let bytes = bytes_a_row(&[Timestamp, Float32, Float32, Text], &rows);
    eprintln!("power: {bytes:.2} B a row");
    assert!(bytes <= 4.0, "{bytes}");
}

#[test]
fn a_row_of_vibration_takes_six_bytes() {
    let mut dice = Dice(3);
    let mut moment = moments(1e4, 20.0);
    let rows: Vec<_> = (0..4_000)
        .map(|row| {
            let wave = (row as f64 * 0.9).sin() * 250.0;
            let mut axis =
                |rest: f64, share: f64| Value::Int((rest + wave * share + dice.normal(40.0)) as i64);
            vec![moment(row), axis(0.0, 1.0), axis(0.0, 0.5), axis(1000.0, 0.2)]
        })
        .collect();
    use ColumnType::{Int, Timestamp};
    let bytes = bytes_a_row(&[Timestamp, Int, Int, Int], &rows);
    eprintln!("vibration: {bytes:.2} B a row");
    assert!(bytes <= 6.0, "{bytes}");
}

#[test]
fn floats_that_are_not_decimals_take_little_more_than_their_width() {
    let mut dice = Dice(4);
    let narrow: Vec<_> = (0..4_000).map(|_| vec![Value::Float32(dice.unit() as f32 * 7.0)]).collect();
    let bytes = bytes_a_row(&[ColumnType::Float32], &narrow);
    eprintln!("32-bit floats: {bytes:.2} B a row");
    assert!(bytes <= 4.8, "{bytes}");
    let wide: Vec<_> = (0..4_000).map(|_| vec![Value::Float64(dice.unit() * 7.0)]).collect();
    let bytes = bytes_a_row(&[ColumnType::Float64], &wide);
    eprintln!("64-bit floats: {bytes:.2} B a row");
    assert!(bytes <= 9.0, "{bytes}");
    let widened: Vec<_> =
        (0..4_000).map(|_| vec![Value::Float64(f64::from(dice.unit() as f32 * 7.0))]).collect();
    let bytes = bytes_a_row(&[ColumnType::Float64], &widened);
    eprintln!("32-bit floats, widened: {bytes:.2} B a row");
    assert!(bytes <= 4.8, "{bytes}");
}
