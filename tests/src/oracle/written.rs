//! Expressions in Picolake's words, with no parenthesis too many, and in SQLite's, with every one.

use super::{
    calendar,
    expression::{CastTo, Expression},
    table::Table,
};
use shared::{sql::tree::Unit, time::Utc};

/// How tightly an expression holds together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    Equality,
    Comparison,
    Sum,
    Product,
    Sign,
    Whole,
}

impl Level {
    fn of_operator(operator: &str) -> Self {
        match operator {
            "OR" => Level::Or,
            "AND" => Level::And,
            "=" | "==" | "<>" | "!=" => Level::Equality,
            "<" | "<=" | ">" | ">=" => Level::Comparison,
            "+" | "-" => Level::Sum,
            _ => Level::Product,
        }
    }

    fn of(expression: &Expression) -> Self {
        match expression {
            Expression::Binary(operator, ..) => Level::of_operator(operator),
            Expression::Not(_) => Level::Not,
            Expression::IsNull(..) | Expression::Between(..) | Expression::In(..) | Expression::Like(..) => {
                Level::Equality
            }
            Expression::Later(..) => Level::Sum,
            Expression::Negative(_) => Level::Sign,
            Expression::Int(value) if *value < 0 => Level::Sign,
            Expression::Float(value) if value.is_sign_negative() => Level::Sign,
            _ => Level::Whole,
        }
    }

    fn tighter(self) -> Self {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not => Level::Equality,
            Level::Equality => Level::Comparison,
            Level::Comparison => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product => Level::Sign,
            Level::Sign | Level::Whole => Level::Whole,
        }
    }
}

/// In Picolake's words.
pub(super) fn picolake(expression: &Expression) -> String {
    at_least(expression, Level::Or)
}

fn at_least(expression: &Expression, level: Level) -> String {
    let text = plain(expression);
    if Level::of(expression) < level { format!("({text})") } else { text }
}

fn plain(expression: &Expression) -> String {
    let not = |is_negated: &bool| if *is_negated { "NOT " } else { "" };
    let list = |list: &[Expression]| list.iter().map(picolake).collect::<Vec<_>>().join(", ");
    match expression {
        Expression::Moment(us) => format!("TIMESTAMP '{}'", Utc(*us)),
        Expression::MomentText(us) => format!("'{}'", Utc(*us)),
        Expression::Now => "now()".to_string(),
        Expression::Column(name) => picolake_name(name),
        Expression::RowId => "_row_id".to_string(),
        Expression::Negative(x) => {
            let x = at_least(x, Level::Sign);
            format!("{}{x}", if x.starts_with('-') { "- " } else { "-" })
        }
        Expression::Not(x) => format!("NOT {}", at_least(x, Level::Not)),
        Expression::Binary(operator, x, y) => {
            let level = Level::of_operator(operator);
            format!("{} {operator} {}", at_least(x, level), at_least(y, level.tighter()))
        }
        Expression::IsNull(is_negated, x) => {
            format!("{} IS {}NULL", at_least(x, Level::Equality), not(is_negated))
        }
        Expression::Between(is_negated, all) => {
            let [x, low, high] = &**all;
            let (low, high) = (at_least(low, Level::Comparison), at_least(high, Level::Comparison));
            format!("{} {}BETWEEN {low} AND {high}", at_least(x, Level::Equality), not(is_negated))
        }
        Expression::In(is_negated, x, members) => {
            format!("{} {}IN ({})", at_least(x, Level::Equality), not(is_negated), list(members))
        }
        Expression::Like(is_negated, x, pattern) => {
            let pattern = at_least(pattern, Level::Comparison);
            format!("{} {}LIKE {pattern}", at_least(x, Level::Equality), not(is_negated))
        }
        Expression::Cast(to, x) => match to {
            CastTo::Int => format!("{}::int", at_least(x, Level::Whole)),
            CastTo::Float => format!("CAST({} AS float)", picolake(x)),
            CastTo::Decimals(decimals) => format!("{}::float({decimals})", at_least(x, Level::Whole)),
            CastTo::Text => format!("{}::text", at_least(x, Level::Whole)),
        },
        Expression::Call(name, arguments) => format!("{name}({})", list(arguments)),
        Expression::Later(x, count, unit) => {
            let (sign, count) = if *count < 0 { ("-", -count) } else { ("+", *count) };
            let interval = match count % 3 {
                0 => format!("{count} {}s", unit_name(*unit)),
                1 => format!("interval '{count} {}'", unit_name(*unit)),
                _ => format!("INTERVAL '{count}' {}", unit_name(*unit).to_uppercase()),
            };
            format!("{} {sign} {interval}", at_least(x, Level::Sum))
        }
        Expression::Increments(unit, count, x) => {
            format!("increments({}, {count}, {})", unit_name(*unit), picolake(x))
        }
        Expression::Period(unit, count, end, column) => {
            let (unit, end) = (unit_name(*unit), picolake(end));
            format!("period({unit}, {count}, {end}, {})", picolake_name(column))
        }
        Expression::Aggregate(name, is_distinct, x) => {
            let distinct = if *is_distinct { "DISTINCT " } else { "" };
            format!("{name}({distinct}{})", x.as_ref().map_or("*".to_string(), |x| picolake(x)))
        }
        same => literal(same),
    }
}

/// What both sides write alike.
fn literal(expression: &Expression) -> String {
    match expression {
        Expression::Bool(value) => if *value { "TRUE" } else { "FALSE" }.to_string(),
        Expression::Int(value) => value.to_string(),
        Expression::Float(value) => format!("{value:?}"),
        Expression::Text(text) => format!("'{}'", text.replace('\'', "''")),
        _ => "NULL".to_string(),
    }
}

/// A name, in quotes if it has capitals, so that both ways of writing one occur.
pub(super) fn picolake_name(name: &str) -> String {
    if name.contains(char::is_uppercase) { format!("\"{name}\"") } else { name.to_string() }
}

fn unit_name(unit: Unit) -> &'static str {
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

/// In SQLite's words: moments are microseconds, and `now()` is the table's.
pub(super) fn sqlite(expression: &Expression, table: &Table) -> String {
    let sqlite = |expression: &Expression| sqlite(expression, table);
    let not = |is_negated: &bool| if *is_negated { "NOT " } else { "" };
    let list = |list: &[Expression]| list.iter().map(sqlite).collect::<Vec<_>>().join(", ");
    match expression {
        Expression::Moment(us) | Expression::MomentText(us) => format!("({us})"),
        Expression::Now => format!("({})", table.now_us),
        Expression::Column(name) => format!("\"{name}\""),
        Expression::RowId => "rowid".to_string(),
        Expression::Negative(x) => format!("(- {})", sqlite(x)),
        Expression::Not(x) => format!("(NOT {})", sqlite(x)),
        Expression::Binary(operator, x, y) => format!("({} {operator} {})", sqlite(x), sqlite(y)),
        Expression::IsNull(is_negated, x) => format!("({} IS {}NULL)", sqlite(x), not(is_negated)),
        Expression::Between(is_negated, all) => {
            let [x, low, high] = [0, 1, 2].map(|index| sqlite(&all[index]));
            format!("({x} {}BETWEEN {low} AND {high})", not(is_negated))
        }
        Expression::In(is_negated, x, members) => {
            format!("({} {}IN ({}))", sqlite(x), not(is_negated), list(members))
        }
        Expression::Like(is_negated, x, pattern) => {
            format!("({} {}LIKE {})", sqlite(x), not(is_negated), sqlite(pattern))
        }
        Expression::Cast(to, x) => match to {
            CastTo::Int => format!("CAST({} AS INTEGER)", sqlite(x)),
            CastTo::Float => format!("CAST({} AS REAL)", sqlite(x)),
            CastTo::Decimals(decimals) => format!("round(CAST({} AS REAL), {decimals})", sqlite(x)),
            CastTo::Text => format!("CAST({} AS TEXT)", sqlite(x)),
        },
        Expression::Call(name, arguments) => format!("{name}({})", list(arguments)),
        Expression::Later(x, count, unit) => later(&sqlite(x), i64::from(*count), *unit),
        Expression::Increments(unit, count, x) => bucket(&sqlite(x), i64::from(*count), *unit),
        Expression::Period(unit, count, end, column) => {
            let (table, end) = (Table::NAME, sqlite(end));
            let last = format!("(SELECT max(\"{column}\") FROM {table} WHERE \"{column}\" <= {end})");
            let first = later(&last, -i64::from(*count), *unit);
            format!("(\"{column}\" > {first} AND \"{column}\" <= {last})")
        }
        Expression::Aggregate(name, is_distinct, x) => {
            aggregate(name, *is_distinct, x.as_ref().map(|x| sqlite(x)))
        }
        same => format!("({})", literal(same)),
    }
}

fn later(moment: &str, count: i64, unit: Unit) -> String {
    match calendar::unit_us(unit) {
        Some(unit_us) => format!("({moment} + ({}))", count * unit_us),
        None => format!("months_later({moment}, {})", count * calendar::unit_months(unit)),
    }
}

/// Plain arithmetic for what is always as long; weeks begin on the Monday before 1970.
fn bucket(moment: &str, count: i64, unit: Unit) -> String {
    let Some(unit_us) = calendar::unit_us(unit) else {
        return format!("months_bucket({moment}, {})", count * calendar::unit_months(unit));
    };
    let width = count * unit_us;
    let since = if unit == Unit::Week { 3 * 86_400_000_000_i64 } else { 0 };
    format!("({moment} - ((({moment} + {since}) % {width}) + {width}) % {width})")
}

fn aggregate(name: &str, is_distinct: bool, x: Option<String>) -> String {
    let Some(x) = x else { return "count(*)".to_string() };
    match name {
        "range" => format!("(max({x}) - min({x}))"),
        "first" | "last" => format!("{name}_known(\"timestamp\", rowid, {x})"),
        "first_at" | "last_at" => {
            let name = name.trim_end_matches("_at");
            format!("{name}_known(\"timestamp\", rowid, CASE WHEN {x} IS NOT NULL THEN \"timestamp\" END)")
        }
        _ => format!("{name}({}{x})", if is_distinct { "DISTINCT " } else { "" }),
    }
}
