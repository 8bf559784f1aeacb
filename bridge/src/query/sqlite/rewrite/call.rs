//! Calls of functions: the dialect's own become SQLite's or ours, all others tell what they give.

use super::{
    super::{
        functions::MOVED,
        kind::{BOOL, FLOAT, INT, Kind, MOMENT, Scope, TEXT},
        moment,
        table::quoted_name,
        words::syntax,
    },
    Rewriter,
    expression::{as_text, integer, text},
    unsupported, virtual_name,
};
use crate::fault::Fault;
use shared::{
    schema::TIME_COLUMN,
    sql::{self, tree::Unit},
};
use sqlparser::{
    ast::{
        BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
        FunctionArguments, Ident, ObjectName, OrderByExpr, Value, WindowFrameBound, WindowSpec, WindowType,
    },
    dialect::SQLiteDialect,
    parser::Parser,
};

impl Rewriter<'_> {
    pub(super) fn call(&mut self, expression: &mut Expr, scope: &Scope<'_>) -> Result<Kind, Fault> {
        let Expr::Function(function) = expression else { return Ok(Kind::Unknown) };
        let is_plain = !function.uses_odbc_syntax
            && matches!(function.parameters, FunctionArguments::None)
            && function.within_group.is_empty()
            && function.null_treatment.is_none();
        let name = match &function.name.0[..] {
            [name] if is_plain => name.to_string().to_lowercase(),
            _ => return Err(unsupported(&expression.to_string())),
        };
        match name.as_str() {
            "now" | "current_timestamp" => {
                *expression = integer(self.now_us);
                return Ok(MOMENT);
            }
            "increments" => return self.increments(function, scope),
            "period" => {
                *expression = self.period(function, scope)?;
                return Ok(BOOL);
            }
            "range" => {
                let of_argument = self.arguments(function, scope)?.first().copied().unwrap_or(Kind::Unknown);
                let side = |name: &str| {
                    let name = ObjectName::from(vec![Ident::new(name)]);
                    Box::new(Expr::Function(Function { name, ..function.clone() }))
                };
                let difference =
                    Expr::BinaryOp { left: side("max"), op: BinaryOperator::Minus, right: side("min") };
                *expression = Expr::Nested(Box::new(difference));
                return Ok(if of_argument == MOMENT { INT } else { of_argument.widened() });
            }
            "stddev_samp" => function.name = ObjectName::from(vec![Ident::new("stddev")]),
            "var_samp" => function.name = ObjectName::from(vec![Ident::new("variance")]),
            "first" | "last" | "first_at" | "last_at" => self.add_time(function, scope)?,
            _ => {}
        }
        let kinds = self.arguments(function, scope)?;
        if DATE_FUNCTIONS.contains(&name.as_str()) {
            for (argument, kind) in arguments_mut(function)?.into_iter().zip(&kinds) {
                as_text(argument, *kind);
            }
        }
        Ok(gives(&name, &kinds))
    }

    /// Everything in a call; what its arguments give.
    fn arguments(&mut self, function: &mut Function, scope: &Scope<'_>) -> Result<Vec<Kind>, Fault> {
        let mut kinds = Vec::new();
        match &mut function.args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(query) => {
                let message = query.to_string();
                return Err(unsupported(&message));
            }
            FunctionArguments::List(list) => {
                for argument in &mut list.args {
                    match argument {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => {
                            kinds.push(self.expression(argument, scope)?);
                        }
                        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {}
                        other => return Err(unsupported(&other.to_string())),
                    }
                }
                for clause in &mut list.clauses {
                    match clause {
                        FunctionArgumentClause::OrderBy(keys) => self.keys(keys, scope)?,
                        other => return Err(unsupported(&other.to_string())),
                    }
                }
            }
        }
        self.each(function.filter.as_deref_mut(), scope)?;
        if let Some(WindowType::WindowSpec(window)) = &mut function.over {
            self.window(window, scope)?;
        }
        Ok(kinds)
    }

    pub(super) fn window(&mut self, window: &mut WindowSpec, scope: &Scope<'_>) -> Result<(), Fault> {
        self.each(&mut window.partition_by, scope)?;
        self.keys(&mut window.order_by, scope)?;
        if let Some(frame) = &mut window.window_frame {
            for bound in std::iter::once(&mut frame.start_bound).chain(frame.end_bound.as_mut()) {
                if let WindowFrameBound::Preceding(Some(by)) | WindowFrameBound::Following(Some(by)) = bound {
                    if let Expr::Interval(interval) = &**by {
                        **by = integer(fixed_us(moment::interval(interval)?)?);
                    }
                    self.expression(by, scope)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn keys(&mut self, keys: &mut [OrderByExpr], scope: &Scope<'_>) -> Result<(), Fault> {
        if let Some(key) = keys.iter().find(|key| key.with_fill.is_some()) {
            return Err(unsupported(&key.to_string()));
        }
        self.each(keys.iter_mut().map(|key| &mut key.expr), scope)
    }

    /// `increments(minute, 5, x)` → `increments('minute', 5, x)`
    fn increments(&mut self, function: &mut Function, scope: &Scope<'_>) -> Result<Kind, Fault> {
        let mut arguments = arguments_mut(function)?;
        let [unit, count, moment] = &mut arguments[..] else {
            return Err(syntax("`increments` takes a unit, a number and a moment", INCREMENTS));
        };
        let (name, _) = units(unit, count)?;
        **unit = text(moment::unit_name(name));
        match self.expression(moment, scope)? {
            MOMENT | Kind::Null | Kind::Unknown => Ok(MOMENT),
            _ => Err(Fault::new("type", "increments() needs a timestamp", INCREMENTS)),
        }
    }

    /// `period(hour, 3, end, x)` → `(x > moved(latest, 'hour', -3) AND x <= latest)`, where `latest` is the last row of the
    /// whole table at or before the end.
    fn period(&mut self, function: &mut Function, scope: &Scope<'_>) -> Result<Expr, Fault> {
        const ACTION: &str = "write period(hour, 3, now(), timestamp)";
        let mut arguments = arguments_mut(function)?;
        let [unit, count, end, column] = &mut arguments[..] else {
            return Err(syntax("`period` takes a unit, a number, an end and a column", ACTION));
        };
        let (unit, count) = units(unit, count)?;
        let end_us = match moment::text(end) {
            Some(text) => Some(moment::parse(text)?),
            None => moment::fixed(end, self.now_us),
        };
        let Some(end_us) = end_us else {
            return Err(Fault::new("type", "period() ends at now() or at a moment", ACTION));
        };
        let (qualifier, name) = match &**column {
            Expr::Identifier(name) => (None, name.value.clone()),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [.., qualifier, name] => (Some(qualifier.value.as_str()), name.value.clone()),
                _ => return Err(unsupported(&column.to_string())),
            },
            _ => return Err(Fault::new("type", "period() needs a timestamp column", ACTION)),
        };
        let owners = scope.owners(qualifier, &name);
        let (Some(table), true) = (owners.first().and_then(|relation| relation.table), owners.len() == 1)
        else {
            let message = format!("period() needs a column of one table, and `{column}` is none");
            return Err(Fault::new("type", message, "name the table: t.timestamp"));
        };
        if self.expression(column, scope)? != MOMENT {
            return Err(Fault::new("type", "period() needs a timestamp column", ACTION));
        }
        let (table, name) = (quoted_name(&virtual_name(table)), quoted_name(&name));
        let latest = format!("(SELECT max({name}) FROM {table} WHERE {name} <= {end_us})");
        let unit = moment::unit_name(unit);
        let written = format!("({column} > {MOVED}({latest}, '{unit}', -{count}) AND {column} <= {latest})");
        let parsed =
            Parser::new(&SQLiteDialect {}).try_with_sql(&written).and_then(|mut parser| parser.parse_expr());
        parsed.map_err(|error| syntax(&error.to_string(), ACTION))
    }

    /// `first(x)` → `first(x, timestamp)`: first is what its row's time says.
    fn add_time(&mut self, function: &mut Function, scope: &Scope<'_>) -> Result<(), Fault> {
        let name = function.name.to_string();
        let FunctionArguments::List(list) = &mut function.args else {
            return Err(syntax(&format!("`{name}` takes one value"), "write first(x)"));
        };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = &list.args[..] else {
            return match list.args.len() {
                2 => Ok(()), // the moment is given
                _ => Err(syntax(&format!("`{name}` takes one value"), "write first(x), or first(x, moment)")),
            };
        };
        let (qualifier, column) = first_name(argument);
        let owners = match column {
            Some(column) => scope.owners(qualifier, column),
            None => scope.relations.iter().collect(),
        };
        let timed = owners
            .iter()
            .find(|relation| relation.column(TIME_COLUMN.name).is_some_and(|column| column.kind == MOMENT));
        let Some(relation) = timed else {
            let message = format!("`{name}` goes by the time of a row, and there is no timestamp here");
            return Err(Fault::new("type", message, "say which: first(x, moment)"));
        };
        let mut path = vec![Ident::with_quote('"', TIME_COLUMN.name)];
        if !relation.called.is_empty() {
            path.insert(0, Ident::with_quote('"', relation.called.replace('"', "\"\"")));
        }
        let time =
            if path.len() == 1 { Expr::Identifier(path.remove(0)) } else { Expr::CompoundIdentifier(path) };
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(time)));
        Ok(())
    }
}

const INCREMENTS: &str = "write increments(minute, 5, timestamp)";

/// SQLite's functions of time: a moment reaches them as text.
const DATE_FUNCTIONS: [&str; 7] =
    ["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"];

/// `unit, n`
fn units(unit: &Expr, count: &Expr) -> Result<(Unit, u16), Fault> {
    let named = match unit {
        Expr::Identifier(name) => sql::unit(&name.value),
        other => moment::text(other).and_then(sql::unit),
    };
    let count = match count {
        Expr::Value(value) => match &value.value {
            Value::Number(number, false) => number.parse().ok().filter(|count| *count > 0),
            _ => None,
        },
        _ => None,
    };
    match (named, count) {
        (Some(unit), Some(count)) => Ok((unit, count)),
        (None, _) => Err(syntax("expected a unit of time such as `minute`", INCREMENTS)),
        (_, None) => Err(Fault::new("value", "expected a number of units, 1 to 65535", INCREMENTS)),
    }
}

/// A span of time that is always as long.
fn fixed_us((count, unit): (i64, Unit)) -> Result<i64, Fault> {
    let moved = shared::engine::calendar::moved(0, unit, count);
    match unit {
        Unit::Month | Unit::Year => None,
        _ => moved,
    }
    .ok_or_else(|| syntax("months and years are not all as long", "write days"))
}

fn arguments_mut(function: &mut Function) -> Result<Vec<&mut Expr>, Fault> {
    let FunctionArguments::List(list) = &mut function.args else { return Ok(Vec::new()) };
    list.args
        .iter_mut()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Ok(argument),
            other => Err(unsupported(&other.to_string())),
        })
        .collect()
}

/// The first column that an expression names.
fn first_name(expression: &Expr) -> (Option<&str>, Option<&str>) {
    match expression {
        Expr::Identifier(name) => (None, Some(&name.value)),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [.., qualifier, name] => (Some(&qualifier.value), Some(&name.value)),
            _ => (None, None),
        },
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } | Expr::Cast { expr: inner, .. } => {
            first_name(inner)
        }
        Expr::BinaryOp { left, right, .. } => match first_name(left) {
            (_, None) => first_name(right),
            found => found,
        },
        _ => (None, None),
    }
}

/// What a function gives for such arguments.
fn gives(name: &str, arguments: &[Kind]) -> Kind {
    let first = arguments.first().copied().unwrap_or(Kind::Unknown);
    let either = |of: &[Kind]| of.iter().copied().reduce(Kind::or).unwrap_or(Kind::Unknown);
    match name {
        "min" | "max" | "coalesce" | "ifnull" => either(arguments),
        "first" | "last" | "first_value" | "last_value" | "nth_value" | "nullif" => first,
        "lag" | "lead" => first.or(arguments.get(2).copied().unwrap_or(Kind::Null)),
        "iif" | "if" => either(arguments.get(1..).unwrap_or_default()).or(Kind::Null),
        "first_at" | "last_at" => MOMENT,
        "count" | "row_number" | "rank" | "dense_rank" | "ntile" | "length" | "octet_length" | "instr"
        | "unicode" | "unixepoch" | "json_array_length" => INT,
        "avg" | "total" | "stddev" | "stddev_samp" | "variance" | "var_samp" | "percent_rank"
        | "cume_dist" | "round" | "sqrt" | "exp" | "ln" | "log10" | "pow" | "power" | "julianday" => FLOAT,
        "sum" | "abs" => first.widened(),
        "lower" | "upper" | "substr" | "substring" | "replace" | "ltrim" | "rtrim" | "trim"
        | "group_concat" | "string_agg" | "concat" | "concat_ws" | "printf" | "format" | "hex" | "quote"
        | "char" | "typeof" | "date" | "time" | "datetime" | "strftime" | "timediff" | "json"
        | "json_array" | "json_object" | "json_quote" | "json_type" => TEXT,
        _ => Kind::Unknown,
    }
}
