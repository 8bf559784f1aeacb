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

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    fn query(kind: Kind) -> Query {
        let column = AnswerColumn { name: "x".to_string(), kind, is_near: false };
        Query { picolake: String::new(), sqlite: String::new(), columns: vec![column] }
    }

    fn answer(cells: &[Cell]) -> Answer {
        Answer { columns: vec!["x".to_string()], rows: cells.iter().map(|cell| vec![cell.clone()]).collect() }
    }

    fn outcome(kind: Kind, expected: &[Cell], actual: &[Cell]) -> Result<Outcome, String> {
        compare(&query(kind), &Ok(answer(expected)), &Ok(answer(actual)))
    }

    #[test]
    fn floats_are_near_and_all_else_is_the_same() {
        let same = Ok(Outcome::Same);
        assert_eq!(outcome(Kind::Int, &[Cell::Int(3), Cell::Null], &[Cell::Int(3), Cell::Null]), same);
        assert_eq!(outcome(Kind::Bool, &[Cell::Int(1)], &[Cell::Bool(true)]), same);
        assert_eq!(outcome(Kind::Moment, &[Cell::Int(7)], &[Cell::Timestamp(7)]), same);
        assert_eq!(outcome(Kind::Float, &[Cell::Float(0.1 + 0.2)], &[Cell::Float(0.3)]), same);
        assert_eq!(outcome(Kind::Float, &[Cell::Float(0.5)], &[Cell::Float32(0.5)]), same);
        assert_eq!(outcome(Kind::Float, &[Cell::Int(2)], &[Cell::Float(2.0)]), same);
        assert_eq!(outcome(Kind::Int, &[Cell::Float(1e19)], &[Cell::Float(1e19)]), same);
    }

    #[test]
    fn a_difference_is_found() {
        let text = |text: &str| Cell::Text(text.to_string());
        for (kind, expected, actual) in [
            (Kind::Int, Cell::Int(3), Cell::Int(4)),
            (Kind::Int, Cell::Int(3), Cell::Float(3.0)),
            (Kind::Int, Cell::Float(3.0), Cell::Int(3)),
            (Kind::Int, Cell::Int(1), Cell::Bool(true)),
            (Kind::Bool, Cell::Int(1), Cell::Int(1)),
            (Kind::Float, Cell::Float(1.0), Cell::Float(1.0 + 1e-9)),
            (Kind::Text, text("a"), text("A")),
            (Kind::Text, text(""), Cell::Null),
            (Kind::Int, Cell::Null, Cell::Int(0)),
        ] {
            let found = outcome(kind, from_ref(&expected), from_ref(&actual));
            assert!(found.is_err(), "{expected} {actual}");
        }
        let (one, two) = (Cell::Int(1), Cell::Int(2));
        assert!(outcome(Kind::Int, &[one.clone(), two.clone()], &[two.clone(), one.clone()]).is_err());
        assert!(outcome(Kind::Int, from_ref(&one), &[one.clone(), two]).is_err());
        let overflow = Err((ErrorCode::Overflow, String::new()));
        let refused = Err("integer overflow".to_string());
        assert_eq!(compare(&query(Kind::Int), &refused, &overflow), Ok(Outcome::Overflow));
        assert!(compare(&query(Kind::Int), &refused, &Ok(answer(&[]))).is_err());
        assert!(compare(&query(Kind::Int), &Ok(answer(&[one])), &overflow).is_err());
    }

    #[test]
    fn rows_are_counted_whatever_their_order() {
        let (one, two) = (Cell::Int(1), Cell::Int(2));
        let whole = answer(&[one.clone(), two.clone(), one.clone()]);
        let (ones, twos) = (answer(&[one.clone(), one]), answer(&[two]));
        assert_eq!(multiset_difference(&whole, [&ones, &twos]), None);
        assert!(multiset_difference(&whole, [&ones]).is_some());
        assert!(multiset_difference(&whole, [&twos, &twos, &twos]).is_some());
    }
}
