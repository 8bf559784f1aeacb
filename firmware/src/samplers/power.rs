//! A made-up machine on a power meter: it idles, runs, and now and then has a fault.

use super::{DBMS, noise};
use crate::sample::{Cells, Sampler};
use shared::{
    link_test::mix,
    schema::{ColumnSpec, TIME_COLUMN, TableSpec},
    value::{ColumnType, Value},
};

/// `demo.power`
pub const TABLE: TableSpec = TableSpec {
    dbms: DBMS,
    name: "power",
    columns: &[
        TIME_COLUMN,
        ColumnSpec { name: "voltage", kind: ColumnType::Float32, unit: "V", description: "mains voltage" },
        ColumnSpec {
            name: "current",
            kind: ColumnType::Float32,
            unit: "A",
            description: "what the machine draws",
        },
        ColumnSpec { name: "state", kind: ColumnType::Text, unit: "", description: "idle, running or fault" },
    ],
};

/// Rows for which the machine stays as it is.
const SHIFT: u64 = 90;

/// Row `index` of the machine with this seed, the time not among its cells.
pub fn row(seed: u32, index: u64) -> [Value<'static>; 3] {
    let (state, draw) = match mix((u64::from(seed) << 32) ^ (index / SHIFT)) % 16 {
        0 => ("fault", 0),
        1..=6 => ("idle", 12),
        _ => ("running", 420),
    };
    let voltage = 2_300 - draw / 30 + noise(seed, index, 0, 12);
    let current = (draw + noise(seed, index, 1, 1 + draw / 30)).max(0);
    [Value::Float32(voltage as f32 / 10.0), Value::Float32(current as f32 / 100.0), Value::Text(state)]
}

/// Makes [`row`]s.
#[derive(Clone, Copy, Debug)]
pub struct Power {
    /// Makes one machine different from another.
    pub seed: u32,
}

impl Sampler for Power {
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
