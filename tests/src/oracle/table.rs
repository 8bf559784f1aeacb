//! Tables made from seeds: columns of every type, NULLs, equal values, extremes, text of many scripts, no rows at all.

use super::{Cell, Dice};
use shared::{time::Utc, value::ColumnType};
use std::fmt;

/// A table and its rows. Row `n` has the row_id `n`.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it was made from.
    pub seed: u64,
    /// Its columns; the first is `timestamp`, which never falls and is never NULL.
    pub columns: Vec<TableColumn>,
    /// Its rows.
    pub rows: Vec<Vec<Cell>>,
    /// What `now()` is for every query about it.
    pub now_us: i64,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its name.
    pub name: &'static str,
    /// What its cells hold.
    pub kind: ColumnType,
    /// Whether it has integers so large that sums of them overflow.
    pub is_extreme: bool,
}

impl Table {
    /// What every generated table is called.
    pub const NAME: &'static str = "readings";

    /// The table of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut makers = vec![ColumnMaker::time(&mut dice)];
        let mut names: Vec<(ColumnType, Vec<&'static str>)> =
            NAMES.map(|(kind, all)| (kind, all.to_vec())).into();
        for _ in 0..dice.between(1, 8) {
            let (kind, free) = &mut names[dice.below(6) as usize];
            if let Some(name) = free.pop() {
                makers.push(ColumnMaker::of(name, *kind, &mut dice));
            }
        }
        let count = match dice.below(20) {
            0 => 0,
            1..6 => dice.between(1, 20),
            6..16 => dice.between(20, 120),
            _ => dice.between(120, 400),
        };
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        for _ in 0..count {
            let before = rows.last();
            let cell = |(index, maker): (usize, &ColumnMaker)| {
                maker.cell(before.map_or(&Cell::Null, |row: &Vec<Cell>| &row[index]), &mut dice)
            };
            let row = makers.iter().enumerate().map(cell).collect();
            rows.push(row);
        }
        let last_us = match rows.last().map(|row| &row[0]) {
            Some(Cell::Timestamp(us)) => *us,
            _ => BASE_US,
        };
        let now_us = last_us + dice.pick(&[0, 1, -1, 1_500_000, 3_600_000_000, 40 * DAY_US, -2 * DAY_US]);
        Self { seed, columns: makers.into_iter().map(|maker| maker.column).collect(), rows, now_us }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table {} of seed {}, now() = {}", Self::NAME, self.seed, Utc(self.now_us))?;
        let columns: Vec<String> =
            self.columns.iter().map(|column| format!("{} {:?}", column.name, column.kind)).collect();
        writeln!(f, "  row_id | {}", columns.join(" | "))?;
        for (row_id, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(Cell::to_string).collect();
            writeln!(f, "  {row_id:6} | {}", cells.join(" | "))?;
        }
        Ok(())
    }
}

/// Names for columns of each type. Some are words that mean something elsewhere in a query.
const NAMES: [(ColumnType, [&str; 3]); 6] = [
    (ColumnType::Bool, ["is_ok", "day", "on"]),
    (ColumnType::Int, ["i", "value", "second"]),
    (ColumnType::Float32, ["g", "first", "Humidity"]),
    (ColumnType::Float64, ["f", "temp", "count"]),
    (ColumnType::Timestamp, ["t", "seen", "interval"]),
    (ColumnType::Text, ["s", "state", "key"]),
];

#[rustfmt::skip]
const TEXTS: [&str; 18] = [
    "idle", "running", "Running", "überhitzt", "ÜBERHITZT", "", " ", "12abc", " 7", "-3.5e1x", "1e3", "it's", "100%", "a_b", "日本",
    "🌡 hot", "+5", "9223372036854775808",
];

const DAY_US: i64 = 86_400_000_000;
/// 2026-11-18T05:00:00Z
const BASE_US: i64 = 1_795_000_000_000_000 - 22_000_000_000;

/// How the cells of a column are made.
struct ColumnMaker {
    column: TableColumn,
    nulls_percent: u64,
    style: u64,
}

impl ColumnMaker {
    fn time(dice: &mut Dice) -> Self {
        let column = TableColumn { name: "timestamp", kind: ColumnType::Timestamp, is_extreme: false };
        Self { column, nulls_percent: 0, style: dice.below(5) }
    }

    fn of(name: &'static str, kind: ColumnType, dice: &mut Dice) -> Self {
        let style = dice.below(12);
        let is_extreme = kind == ColumnType::Int && style < 2;
        let nulls_percent = dice.pick(&[0, 0, 10, 10, 50, 100]);
        Self { column: TableColumn { name, kind, is_extreme }, nulls_percent, style }
    }

    fn cell(&self, before: &Cell, dice: &mut Dice) -> Cell {
        if self.column.name == "timestamp" {
            return Cell::Timestamp(self.next_moment(before, dice));
        }
        if dice.percent(self.nulls_percent) {
            return Cell::Null;
        }
        match self.column.kind {
            ColumnType::Bool => Cell::Bool(dice.percent(50)),
            ColumnType::Int => Cell::Int(self.int(dice)),
            ColumnType::Float32 => Cell::Float32(self.float(dice) as f32),
            ColumnType::Float64 => Cell::Float(self.float(dice)),
            ColumnType::Timestamp => Cell::Timestamp(self.moment(dice)),
            ColumnType::Text => Cell::Text(self.text(dice)),
        }
    }

    /// The time of the next row: often the same, never an earlier one.
    fn next_moment(&self, before: &Cell, dice: &mut Dice) -> i64 {
        let Cell::Timestamp(before) = before else { return BASE_US + dice.between(-400, 400) * DAY_US };
        before
            + match self.style {
                0 => dice.between(0, 3),
                1 => dice.pick(&[0, 500_000, 1_000_000]),
                2 => dice.between(0, 90) * 1_000_000 + dice.between(0, 1),
                3 => dice.between(0, 5) * 3_600_000_000,
                _ => dice.between(0, 20) * DAY_US + dice.between(0, 1) * 12_345,
            }
    }

    fn moment(&self, dice: &mut Dice) -> i64 {
        match self.style {
            0..4 => BASE_US + dice.between(-5, 5) * DAY_US,
            4..8 => BASE_US + dice.between(-1_000_000, 1_000_000),
            8..11 => dice.between(-3_000_000_000, 3_000_000_000) * 1_000_000 + dice.between(0, 999_999),
            _ => dice.pick(&[0, -1, 951_782_400_000_000, 951_868_799_999_999]), // 1970, 2000-02-29
        }
    }

    /// Extremes are of one sign in a column: a sum of them overflows in any order, or in none.
    fn int(&self, dice: &mut Dice) -> i64 {
        match self.style {
            0 => dice.pick(&[0, 1, 7, 1000, i64::MAX / 300, i64::MAX - 1, i64::MAX]),
            1 => dice.pick(&[0, -1, -7, -1000, i64::MIN / 300, i64::MIN + 1, i64::MIN]),
            2..8 => dice.between(-4, 4),
            8 => dice.between(0, 1),
            9 => dice.between(-1_000_000, 1_000_000),
            _ => dice.between(-100, 100),
        }
    }

    fn float(&self, dice: &mut Dice) -> f64 {
        match self.style {
            0..5 => dice.between(-40, 40) as f64 / 8.0,
            5..7 => dice.between(-8000, 8000) as f64 / 8.0,
            7 => dice.between(1900, 2400) as f64 / 100.0,
            8 | 9 => dice.pick(&[0.0, -0.0, 0.1, -1.3, 1e15, -1e15, 1e16, -1e16]), // sums lose what is small
            _ => {
                let mantissa = dice.number().cast_signed() as f64 / 9.3e18;
                mantissa * 10_f64.powi(dice.between(-6, 9) as i32)
            }
        }
    }

    fn text(&self, dice: &mut Dice) -> String {
        match self.style {
            0..4 => dice.pick(&TEXTS[..4]).to_string(),
            4..10 => dice.pick(&TEXTS).to_string(),
            _ => (0..dice.below(12)).map(|_| dice.pick(&['a', 'B', 'é', '%', '_', ' ', '7'])).collect(),
        }
    }
}
