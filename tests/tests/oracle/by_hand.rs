//! Queries that no dice is likely to make: what overflows, what was answered wrongly once, and what is refused by design.

use crate::engine::PagesEngine;
use picolake_tests::oracle::{Answer, Cell, Engine, Table, TableColumn};
use shared::{message::ErrorCode, value::ColumnType};

/// Three rows in two hours: `i` 2, the least integer, NULL; `s` "a", "B", "a"; `f` 1.5, NULL, -1.5.
fn table() -> Table {
    let column = |name, kind| TableColumn { name, kind, is_extreme: true };
    let text = |text: &str| Cell::Text(text.to_string());
    Table {
        seed: 0,
        columns: vec![
            column("timestamp", ColumnType::Timestamp),
            column("i", ColumnType::Int),
            column("s", ColumnType::Text),
            column("f", ColumnType::Float64),
        ],
        rows: vec![
            vec![Cell::Timestamp(HOUR_US), Cell::Int(2), text("a"), Cell::Float(1.5)],
            vec![Cell::Timestamp(HOUR_US + 1), Cell::Int(i64::MIN), text("B"), Cell::Null],
            vec![Cell::Timestamp(2 * HOUR_US), Cell::Null, text("a"), Cell::Float(-1.5)],
        ],
        now_us: 2 * HOUR_US,
    }
}

const HOUR_US: i64 = 3_600_000_000;

fn run(sql: &str) -> Result<Answer, (ErrorCode, String)> {
    PagesEngine::new(&table()).run(sql)
}

/// The rows of an answer, written.
fn rows(sql: &str) -> Vec<String> {
    let answer = run(sql).unwrap_or_else(|failure| panic!("{sql}: {failure:?}"));
    let written = |row: &Vec<Cell>| row.iter().map(Cell::to_string).collect::<Vec<_>>().join(" ");
    answer.rows.iter().map(written).collect()
}

fn code(sql: &str) -> ErrorCode {
    run(sql).expect_err(sql).0
}

#[test]
fn what_is_too_large_is_an_error_or_a_float() {
    assert_eq!(code("SELECT abs(i) FROM readings"), ErrorCode::Overflow);
    assert_eq!(code("SELECT sum(coalesce(i, -3)) FROM readings"), ErrorCode::Overflow);
    assert_eq!(rows("SELECT i / -1 FROM readings WHERE i < 0"), ["9.223372036854776e18"]);
    assert_eq!(rows("SELECT i % -1, -i FROM readings WHERE i < 0"), ["0 9.223372036854776e18"]);
    assert_eq!(rows("SELECT range(i) FROM readings"), ["9.223372036854776e18"]);
}

#[test]
fn different_groups_come_in_the_order_of_the_answer() {
    let sql = "SELECT DISTINCT s, count(*) > 0 FROM readings GROUP BY f, s";
    assert_eq!(rows(sql), ["\"B\" true", "\"a\" true"]);
    let sql = "SELECT DISTINCT s FROM readings GROUP BY f, s ORDER BY f DESC";
    assert_eq!(rows(sql), ["\"a\"", "\"B\""]);
}

#[test]
fn buckets_make_groups_unless_they_are_of_an_aggregate() {
    let sql = "SELECT increments(hour, 1, timestamp), count(*) FROM readings";
    assert_eq!(rows(sql), ["@3600000000 2", "@7200000000 1"]);
    assert_eq!(rows("SELECT increments(hour, 1, max(timestamp)), count(*) FROM readings"), ["@7200000000 3"]);
}

#[test]
fn differences_from_sqlite_are_refused_or_written_as_documented() {
    for sql in ["SELECT s + 1 FROM readings", "SELECT s < i FROM readings", "SELECT sum(s) FROM readings"] {
        assert_eq!(code(sql), ErrorCode::Type, "{sql}");
    }
    assert_eq!(code("SELECT s, count(*) FROM readings"), ErrorCode::Syntax);
    assert_eq!(code("SELECT DISTINCT s FROM readings ORDER BY f"), ErrorCode::Syntax);
    assert_eq!(rows("SELECT (i IS NULL)::text, f::text FROM readings LIMIT 1"), ["\"false\" \"1.5\""]);
}

#[test]
fn texts_beside_moments_are_moments() {
    assert_eq!(rows("SELECT s FROM readings WHERE timestamp > '1970-01-01 01:00:00'"), ["\"B\"", "\"a\""]);
    assert_eq!(rows("SELECT s FROM readings WHERE timestamp = '1970-01-01T02:00:00Z'"), ["\"a\""]);
    assert_eq!(code("SELECT s FROM readings WHERE timestamp > 'soon'"), ErrorCode::Value);
}
