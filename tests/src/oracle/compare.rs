//! Whether two answers are the same: order, integers, text and NULLs exactly, floats nearly.

use super::{
    Answer, Cell,
    expression::Kind,
    query::{AnswerColumn, Query},
};
use shared::{limits::NAME_BYTES_MAX, message::ErrorCode};

/// How near floats are.
const FLOAT_ERROR_MAX: f64 = 1e-12;
/// How near floats are whose way of being computed is not SQLite's.
const NEAR_ERROR_MAX: f64 = 1e-9;

/// What came of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Both answered the same.
    Same,
    /// Both refused: a number is too large.
    Overflow,
    /// Picolake needed more than a bound allows; the gateway would take over.
    Capacity,
}

/// Compares what SQLite says with what Picolake says; on a difference, what it is.
pub fn compare(
    query: &Query,
    expected: &Result<Answer, String>,
    actual: &Result<Answer, (ErrorCode, String)>,
) -> Result<Outcome, String> {
    match (expected, actual) {
        (_, Err((ErrorCode::Capacity, _))) => Ok(Outcome::Capacity),
        (Err(message), Err((ErrorCode::Overflow, _))) if message == "integer overflow" => {
            Ok(Outcome::Overflow)
        }
        (Ok(expected), Ok(actual)) => compare_answers(query, expected, actual).map(|()| Outcome::Same),
        (Err(message), Ok(_)) => Err(format!("SQLite refuses, Picolake answers: {message}")),
        (Ok(_), Err((code, hint))) => {
            Err(format!("SQLite answers, Picolake refuses: {}: {hint}", code.name()))
        }
        (Err(message), Err((code, hint))) => {
            Err(format!("both refuse, but not for one reason: {message} / {}: {hint}", code.name()))
        }
    }
}

fn compare_answers(query: &Query, expected: &Answer, actual: &Answer) -> Result<(), String> {
    if actual.columns.len() != query.columns.len() {
        return Err(format!("columns {:?} instead of {:?}", actual.columns, expected.columns));
    }
    for (name, column) in actual.columns.iter().zip(&query.columns) {
        if column.name.len() <= NAME_BYTES_MAX && *name != column.name {
            return Err(format!("column {name:?} instead of {:?}", column.name));
        }
    }
    for (index, (expected, actual)) in expected.rows.iter().zip(&actual.rows).enumerate() {
        for ((expected, actual), column) in expected.iter().zip(actual).zip(&query.columns) {
            if let Some(why) = difference(column, expected, actual) {
                let name = &column.name;
                return Err(format!("row {index}, column {name:?}: {actual} instead of {expected}: {why}"));
            }
        }
    }
    if expected.rows.len() != actual.rows.len() {
        return Err(format!("{} rows instead of {}", actual.rows.len(), expected.rows.len()));
    }
    Ok(())
}

/// What is different between a cell of SQLite's and one of Picolake's.
fn difference(column: &AnswerColumn, expected: &Cell, actual: &Cell) -> Option<&'static str> {
    let tolerance = if column.is_near { NEAR_ERROR_MAX } else { FLOAT_ERROR_MAX };
    let is_same = match (expected, actual) {
        (Cell::Null, Cell::Null) => return None,
        (Cell::Int(expected), Cell::Bool(actual)) => *expected == i64::from(*actual),
        (Cell::Int(expected), Cell::Int(actual) | Cell::Timestamp(actual)) => expected == actual,
        (Cell::Float(expected), Cell::Float(actual)) => are_near(*expected, *actual, tolerance),
        (Cell::Float(expected), Cell::Float32(actual)) => are_near(*expected, f64::from(*actual), tolerance),
        (Cell::Text(expected), Cell::Text(actual)) => expected == actual,
        // Where integers and floats meet in one column, it is one of floats.
        (Cell::Int(expected), Cell::Float(actual)) if column.kind == Kind::Float => {
            are_near(*expected as f64, *actual, tolerance)
        }
        _ => return Some("another type"),
    };
    if !is_same {
        return Some("another value");
    }
    let is_of_kind = match column.kind {
        Kind::Bool => matches!(actual, Cell::Bool(_)),
        Kind::Int => matches!(actual, Cell::Int(_) | Cell::Float(_)), // an integer may overflow into a float
        Kind::Float => matches!(actual, Cell::Float(_) | Cell::Float32(_)),
        Kind::Text => matches!(actual, Cell::Text(_)),
        Kind::Moment => matches!(actual, Cell::Timestamp(_)),
    };
    if is_of_kind { None } else { Some("not of the column's type") }
}

fn are_near(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

/// Whether the rows of `whole` are those of `parts` together, in any order; if not, a row that shows it.
pub fn multiset_difference<'a>(
    whole: &'a Answer,
    parts: impl IntoIterator<Item = &'a Answer>,
) -> Option<String> {
    let text = |row: &Vec<Cell>| row.iter().map(Cell::to_string).collect::<Vec<_>>().join(" | ");
    let mut whole: Vec<String> = whole.rows.iter().map(text).collect();
    let mut parts: Vec<String> = parts.into_iter().flat_map(|part| &part.rows).map(text).collect();
    whole.sort_unstable();
    parts.sort_unstable();
    let differing = whole.iter().zip(&parts).find(|(whole, part)| whole != part);
    match differing {
        Some((whole, part)) => Some(format!("{whole} against {part}")),
        None if whole.len() != parts.len() => Some(format!("{} rows against {}", whole.len(), parts.len())),
        None => None,
    }
}
