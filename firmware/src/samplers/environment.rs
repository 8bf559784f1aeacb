//! A made-up weather station: warm by day, damp by night.

use super::{DBMS, noise, wave};
use crate::sample::{Cells, Sampler};
use shared::{
    schema::{ColumnSpec, TIME_COLUMN, TableSpec},
    value::{ColumnType, Value},
};

/// `demo.environment`
pub const TABLE: TableSpec = TableSpec {
    dbms: DBMS,
    name: "environment",
    columns: &[
        TIME_COLUMN,
        ColumnSpec {
            name: "temperature",
            kind: ColumnType::Float32,
            unit: "°C",
            description: "temperature of the air",
        },
        ColumnSpec {
            name: "humidity",
            kind: ColumnType::Float32,
            unit: "%",
            description: "relative humidity",
        },
        ColumnSpec { name: "pressure", kind: ColumnType::Float32, unit: "hPa", description: "air pressure" },
    ],
};

/// Rows of a day at one a second.
const DAY: u64 = 86_400;

/// Row `index` of the station with this seed, the time not among its cells.
pub fn row(seed: u32, index: u64) -> [Value<'static>; 3] {
    let (day, week) = (wave(index, DAY), wave(index, 7 * DAY));
    let temperature = 2_050 + day * 6 / 10 + noise(seed, index, 0, 4);
    let humidity = 552 - day * 12 / 100 + noise(seed, index, 1, 3);
    let pressure = 10_132 + week * 9 / 100 + noise(seed, index, 2, 2);
    [
        Value::Float32(temperature as f32 / 100.0),
        Value::Float32(humidity as f32 / 10.0),
        Value::Float32(pressure as f32 / 10.0),
    ]
}

/// Makes [`row`]s.
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    /// Makes one station different from another.
    pub seed: u32,
}

impl Sampler for Environment {
    fn table(&self) -> &'static TableSpec {
        &TABLE
    }

    fn period_us(&self) -> u64 {
        1_000_000
    }

    fn sample(&mut self, index: u64, cells: &mut Cells<'_>) {
        cells.extend(row(self.seed, index));
    }
}
