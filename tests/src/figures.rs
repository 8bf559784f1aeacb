//! The figures of a bench: a table for people, and a file for `cargo xtask bench`.
#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use std::{error::Error, path::Path};

/// Names the folder for results; `cargo xtask bench` sets it.
const RESULTS_VARIABLE: &str = "PICOLAKE_BENCH_DIR";

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// How much it is.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// What it should be.
    pub aim: Option<Aim>,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Aim {
    fn is_reached(self, value: f64) -> bool {
        match self {
            Aim::AtLeast(aim) => value >= aim,
            Aim::AtMost(aim) => value <= aim,
        }
    }

    fn number(self) -> f64 {
        match self {
            Aim::AtLeast(aim) | Aim::AtMost(aim) => aim,
        }
    }

    fn text(self) -> String {
        match self {
            Aim::AtLeast(aim) => format!("≥ {aim}"),
            Aim::AtMost(aim) => format!("≤ {aim}"),
        }
    }
}

impl Figure {
    /// A figure without an aim.
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, aim: None }
    }

    /// The same with an aim.
    pub fn aim(self, aim: Aim) -> Self {
        Self { aim: Some(aim), ..self }
    }
}

/// Prints the table and writes it where `cargo xtask bench` looks for it.
pub fn report(bench: &str, figures: &[Figure]) -> Result<(), Box<dyn Error>> {
    let mut lines = Vec::new();
    for Figure { name, value, unit, aim } in figures {
        let ok = aim.map(|aim| aim.is_reached(*value));
        let aim_text = match (aim, ok) {
            (Some(aim), Some(ok)) => format!("aim {} {}", aim.text(), if ok { "reached" } else { "MISSED" }),
            _ => String::new(),
        };
        let aim = aim.map(Aim::number);
        println!("{name:<58} {value:>10.3} {unit:<6} {aim_text}");
        lines.push(serde_json::json!({"name": name, "value": value, "unit": unit, "aim": aim, "ok": ok}));
    }
    if let Some(folder) = std::env::var_os(RESULTS_VARIABLE) {
        let path = Path::new(&folder).join(format!("{bench}.json"));
        std::fs::write(path, serde_json::to_string_pretty(&lines)?)?;
    }
    Ok(())
}
