//! A made-up accelerometer on a motor: gravity on one axis, a hum on all.

use super::{DBMS, noise, wave};
use crate::sample::{Cells, Sampler};
use shared::{
    schema::{ColumnSpec, TIME_COLUMN, TableSpec},
    value::{ColumnType, Value},
};

/// `demo.vibration`
pub const TABLE: TableSpec = TableSpec {
    dbms: DBMS,
    name: "vibration",
    columns: &[
        TIME_COLUMN,
        ColumnSpec {
            name: "x",
            kind: ColumnType::Int,
            unit: "mg",
            description: "acceleration along the shaft",
        },
        ColumnSpec {
            name: "y",
            kind: ColumnType::Int,
            unit: "mg",
            description: "acceleration across the shaft",
        },
        ColumnSpec { name: "z", kind: ColumnType::Int, unit: "mg", description: "acceleration upwards" },
    ],
};

/// Rows of one turn of the motor.
const TURN: u64 = 14;

/// Row `index` of the motor with this seed, the time not among its cells.
pub fn row(seed: u32, index: u64) -> [Value<'static>; 3] {
    let hum = wave(index, TURN);
    let x = hum / 25 + noise(seed, index, 0, 30);
    let y = hum / 8 + noise(seed, index, 1, 60);
    let z = 1_000 + hum / 6 + noise(seed, index, 2, 60);
    [Value::Int(x.into()), Value::Int(y.into()), Value::Int(z.into())]
}

/// Makes [`row`]s.
#[derive(Clone, Copy, Debug)]
pub struct Vibration {
    /// Makes one motor different from another.
    pub seed: u32,
}

impl Sampler for Vibration {
    fn table(&self) -> &'static TableSpec {
        &TABLE
    }

    fn period_us(&self) -> u64 {
        10_000
    }

    fn sample(&mut self, index: u64, cells: &mut Cells<'_>) {
        cells.extend(row(self.seed, index));
    }
}
