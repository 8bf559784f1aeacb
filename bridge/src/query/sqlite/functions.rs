//! The dialect's functions for SQLite, computed by the code that boards run, and which of SQLite's own may be called.

use rusqlite::{
    Connection, Error, Result,
    functions::{Aggregate, Context, FunctionFlags},
    types::{ToSqlOutput, Value, ValueRef},
};
use shared::{
    engine::{Spread, calendar},
    sql::{self, tree::Unit},
    time::{UTC_US_MAX, UTC_US_MIN, Utc},
};

/// `moved(moment, unit, n)`: so many units later. What `moment + interval '3 hours'` is written as.
pub(super) const MOVED: &str = "picolake_moved";
/// A moment as RFC 3339. What a moment is written as where a text is needed.
pub(super) const MOMENT_TEXT: &str = "picolake_moment_text";
/// `true`, `false`. What a bool is written as where a text is needed.
pub(super) const TRUTH_TEXT: &str = "picolake_truth_text";

/// SQLite's own functions that may be called: none that reads a file, a setting or the schema. `json_group_array` and
/// `json_group_object` are not among them: they heed no bound of length until they are complete.
#[rustfmt::skip]
const ALLOWED: &[&str] = &[
    "abs", "avg", "ceil", "ceiling", "char", "coalesce", "concat", "concat_ws", "count", "cume_dist", "current_date", "current_time",
    "date", "datetime", "dense_rank", "exp", "first", "first_at", "first_value", "floor", "format", "glob", "group_concat", "hex",
    "if", "ifnull", "iif", "increments", "instr", "json", "json_array", "json_array_length", "json_extract",
    "json_object", "json_quote", "json_type", "json_valid", "->", "->>", "julianday", "lag", "last", "last_at",
    "last_value", "lead", "length", "like", "likelihood", "likely", "ln", "log10", "lower", "ltrim", "max", "median", "min", "mod",
    "nth_value", "ntile", "nullif", "octet_length", "percent_rank", "pow", "power", "printf", "quote", "random", "rank", "replace",
    "round", "row_number", "rtrim", "sign", "sqrt", "stddev", "strftime", "string_agg", "substr", "substring", "sum", "time", "timediff",
    "total", "trim", "typeof", "unicode", "unixepoch", "unlikely", "upper", "variance", MOVED, MOMENT_TEXT, TRUTH_TEXT,
];

/// A function of one float.
type OfFloat = fn(f64) -> f64;

/// Whether a statement may call it.
pub(super) fn is_allowed(name: &str) -> bool {
    ALLOWED.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// Gives the connection the dialect's functions.
pub(super) fn add(connection: &Connection) -> Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("increments", 3, flags, |context| {
        let count: u16 = context.get(1)?;
        moment(context.get(2)?, unit(context, 0)?, |us, unit| calendar::bucket_start(us, unit, count))
    })?;
    connection.create_scalar_function(MOVED, 3, flags, |context| {
        let count: i64 = context.get(2)?;
        moment(context.get(0)?, unit(context, 1)?, |us, unit| calendar::moved(us, unit, count))
    })?;
    connection.create_scalar_function(MOMENT_TEXT, 1, flags, |context| {
        let us: Option<i64> = context.get(0)?;
        let is_dated = |us: &i64| (UTC_US_MIN..=UTC_US_MAX).contains(us);
        Ok(us.filter(is_dated).map(|us| Utc(us).to_string()))
    })?;
    connection.create_scalar_function(TRUTH_TEXT, 1, flags, |context| {
        let truth: Option<bool> = context.get(0)?;
        Ok(truth.map(|truth| if truth { "true" } else { "false" }))
    })?;
    for name in ["floor", "ceil", "ceiling"] {
        let round = if name == "floor" { f64::floor } else { f64::ceil };
        connection.create_scalar_function(name, 1, flags, move |context| Ok(rounded(context, round)))?;
    }
    let of_floats: [(&str, OfFloat); 4] =
        [("sqrt", f64::sqrt), ("exp", f64::exp), ("ln", f64::ln), ("log10", f64::log10)];
    for (name, of) in of_floats {
        connection.create_scalar_function(name, 1, flags, move |context| Ok(float(context, 0).map(of)))?;
    }
    for name in ["pow", "power"] {
        connection.create_scalar_function(name, 2, flags, |context| {
            Ok(float(context, 0).zip(float(context, 1)).map(|(base, exponent)| base.powf(exponent)))
        })?;
    }
    connection.create_aggregate_function("variance", 1, flags, SpreadOf { is_root: false })?;
    connection.create_aggregate_function("stddev", 1, flags, SpreadOf { is_root: true })?;
    for (name, is_last, is_time) in
        [("first", false, false), ("last", true, false), ("first_at", false, true), ("last_at", true, true)]
    {
        connection.create_aggregate_function(name, 2, flags, ByTime { is_last, is_time })?;
    }
    Ok(())
}

fn unit(context: &Context<'_>, index: usize) -> Result<Unit> {
    let name: String = context.get(index)?;
    sql::unit(&name).ok_or_else(|| Error::UserFunctionError("expected a unit of time such as minute".into()))
}

fn moment(us: Option<i64>, unit: Unit, find: impl Fn(i64, Unit) -> Option<i64>) -> Result<Option<i64>> {
    let outside = || Error::UserFunctionError("the moment is outside the calendar".into());
    us.map(|us| find(us, unit).ok_or_else(outside)).transpose()
}

/// An integer is whole already.
fn rounded(context: &Context<'_>, round: OfFloat) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(match context.get_raw(0) {
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(round(value)),
        _ => Value::Null,
    })
}

fn float(context: &Context<'_>, index: usize) -> Option<f64> {
    match context.get_raw(index) {
        ValueRef::Integer(value) => Some(value as f64),
        ValueRef::Real(value) => Some(value),
        _ => None,
    }
}

/// `variance`, `stddev` of a sample.
struct SpreadOf {
    is_root: bool,
}

impl Aggregate<Spread, Option<f64>> for SpreadOf {
    fn init(&self, _: &mut Context<'_>) -> Result<Spread> {
        Ok(Spread::default())
    }

    fn step(&self, context: &mut Context<'_>, spread: &mut Spread) -> Result<()> {
        if let Some(value) = float(context, 0) {
            spread.take(value);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, spread: Option<Spread>) -> Result<Option<f64>> {
        let variance = spread.and_then(|spread| spread.variance());
        Ok(variance.map(|variance| if self.is_root { variance.sqrt() } else { variance }))
    }
}

/// `first(x, moment)`, `last(x, moment)`: of the values that are known, that of the least or greatest moment;
/// `first_at`, `last_at`: that moment. Of the same moment, the first is the one taken first, the last the one taken last.
struct ByTime {
    is_last: bool,
    is_time: bool,
}

impl Aggregate<Option<(i64, Value)>, Value> for ByTime {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<(i64, Value)>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, kept: &mut Option<(i64, Value)>) -> Result<()> {
        let ValueRef::Integer(us) = context.get_raw(1) else { return Ok(()) };
        let is_better = kept
            .as_ref()
            .is_none_or(|(kept_us, _)| if self.is_last { us >= *kept_us } else { us < *kept_us });
        if is_better && context.get_raw(0) != ValueRef::Null {
            *kept = Some((us, context.get(0)?));
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, kept: Option<Option<(i64, Value)>>) -> Result<Value> {
        Ok(match kept.flatten() {
            Some((us, _)) if self.is_time => Value::Integer(us),
            Some((_, value)) => value,
            None => Value::Null,
        })
    }
}
