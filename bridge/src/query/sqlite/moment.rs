//! Moments and spans of time as a statement writes them.

use super::words::syntax;
use crate::fault::{Fault, quoted};
use shared::{
    engine::calendar,
    sql::{self, tree::Unit},
    time,
};
use sqlparser::ast::{BinaryOperator, DataType, Expr, Interval, TypedString, Value};

/// The text between quotes, as it was written.
pub(super) fn text(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The moment that a text names.
pub(super) fn parse(text: &str) -> Result<i64, Fault> {
    time::parse_timestamp(text).map_err(|_| {
        let message = format!("`{}` is no moment", quoted(text));
        Fault::new("value", message, "write a time such as '2026-11-18T05:00:00Z', or a day")
    })
}

/// `TIMESTAMP '…'`
pub(super) fn typed(typed: &TypedString) -> Result<i64, Fault> {
    match (&typed.data_type, &typed.value.value) {
        (
            DataType::Timestamp(..) | DataType::Date | DataType::Datetime(_),
            Value::SingleQuotedString(text),
        ) => parse(text),
        _ => Err(syntax("only TIMESTAMP stands before a text", "write TIMESTAMP '2026-11-18T05:00:00Z'")),
    }
}

/// `interval '3 hours'`, `interval '3' hour`
pub(super) fn interval(interval: &Interval) -> Result<(i64, Unit), Fault> {
    let fault = || {
        let action = "write interval '3 hours'";
        Fault::new("value", "an interval is a whole number of 32 bits and a unit", action)
    };
    let mut words = text(&interval.value).ok_or_else(fault)?.split_ascii_whitespace();
    let count = words.next().and_then(|count| count.parse::<i32>().ok()).ok_or_else(fault)?;
    let unit = match (words.next(), &interval.leading_field) {
        (Some(word), None) => sql::unit(word),
        (None, Some(field)) => sql::unit(&field.to_string()),
        _ => None,
    };
    let is_whole = words.next().is_none()
        && interval.last_field.is_none()
        && interval.leading_precision.is_none()
        && interval.fractional_seconds_precision.is_none();
    unit.filter(|_| is_whole).map(|unit| (count.into(), unit)).ok_or_else(fault)
}

/// A moment that is known before any row is read: `now()`, `TIMESTAMP '…'`, and these moved by intervals.
pub(super) fn fixed(expression: &Expr, now_us: i64) -> Option<i64> {
    match expression {
        Expr::TypedString(moment) => typed(moment).ok(),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("now") => Some(now_us),
        Expr::Nested(inner) => fixed(inner, now_us),
        Expr::BinaryOp { left, op, right } => {
            let Expr::Interval(by) = &**right else { return None };
            let (count, unit) = interval(by).ok()?;
            let count = match op {
                BinaryOperator::Plus => count,
                BinaryOperator::Minus => -count,
                _ => return None,
            };
            calendar::moved(fixed(left, now_us)?, unit, count)
        }
        _ => None,
    }
}

/// The name of a unit.
pub(super) fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Microsecond => "microsecond",
        Unit::Millisecond => "millisecond",
        Unit::Second => "second",
        Unit::Minute => "minute",
        Unit::Hour => "hour",
        Unit::Day => "day",
        Unit::Week => "week",
        Unit::Month => "month",
        Unit::Year => "year",
    }
}
