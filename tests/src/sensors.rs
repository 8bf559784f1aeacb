//! The made-up sensors of simulated boards and of boards in QEMU, so that tests know every row.

use crate::oracle::Cell;
use firmware::samplers::{environment, power, vibration};
use shared::value::Value;

/// A table of database `demo`, its columns but the time, and the cells of each row from a seed and its number.
#[derive(Clone, Copy, Debug)]
pub struct Sensor {
    /// The table.
    pub table: &'static str,
    /// As they are selected.
    pub columns: &'static str,
    /// The cells of a row.
    pub row: fn(u32, u64) -> Vec<Cell>,
}

/// All of them.
pub const SENSORS: [Sensor; 3] = [
    Sensor {
        table: "environment",
        columns: "temperature, humidity, pressure",
        row: |seed, index| cells(&environment::row(seed, index)),
    },
    Sensor {
        table: "power",
        columns: "voltage, current, state",
        row: |seed, index| cells(&power::row(seed, index)),
    },
    Sensor { table: "vibration", columns: "x, y, z", row: |seed, index| cells(&vibration::row(seed, index)) },
];

fn cells(values: &[Value<'_>]) -> Vec<Cell> {
    values.iter().map(Cell::from).collect()
}
