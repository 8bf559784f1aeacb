//! Expressions in SQLite's words.

use super::{
    super::{
        functions::{MOMENT_TEXT, MOVED, TRUTH_TEXT},
        kind::{BOOL, FLOAT, INT, Kind, MOMENT, Scope, TEXT},
        moment,
        words::syntax,
    },
    Rewriter, unsupported,
};
use crate::fault::Fault;
use shared::value::ColumnType;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, ExactNumberInfo, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName, UnaryOperator,
    Value,
};

/// More decimals than these a float does not have.
const DECIMALS_MAX: u64 = 15;

impl Rewriter<'_> {
    /// Rewrites an expression; tells what it gives.
    pub(super) fn expression(&mut self, expression: &mut Expr, scope: &Scope<'_>) -> Result<Kind, Fault> {
        match expression {
            Expr::Identifier(name) => Ok(scope.kind(None, &name.value)),
            Expr::CompoundIdentifier(parts) => {
                if parts.len() == 3 {
                    parts.remove(0); // the database: relations are called by their tables
                }
                match &parts[..] {
                    [relation, name] => Ok(scope.kind(Some(&relation.value), &name.value)),
                    _ => Err(unsupported(&expression.to_string())),
                }
            }
            Expr::Value(value) => literal(&value.value),
            Expr::TypedString(typed) => {
                let us = moment::typed(typed)?;
                *expression = integer(us);
                Ok(MOMENT)
            }
            Expr::Interval(_) => {
                Err(syntax("an interval only moves a moment", "write now() - interval '3 hours'"))
            }
            Expr::Nested(inner) => self.expression(inner, scope),
            Expr::BinaryOp { .. } => self.binary(expression, scope),
            Expr::UnaryOp { op, expr } => {
                let kind = self.expression(expr, scope)?;
                match op {
                    UnaryOperator::Not => Ok(BOOL),
                    UnaryOperator::Minus | UnaryOperator::Plus => Ok(kind.widened()),
                    UnaryOperator::BitwiseNot => Ok(INT),
                    _ => Err(unsupported(&expression.to_string())),
                }
            }
            Expr::Cast { .. } => self.cast(expression, scope),
            Expr::Function(_) => self.call(expression, scope),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref_mut(), conditions, else_result.as_deref_mut(), scope)
            }
            Expr::Subquery(query) => {
                let columns = self.query(query, Some(scope))?;
                Ok(columns.first().map_or(Kind::Unknown, |column| column.kind))
            }
            Expr::Tuple(members) => {
                self.each(members, scope)?;
                Ok(Kind::Unknown)
            }
            Expr::Collate { expr, .. } => self.expression(expr, scope),
            Expr::Ceil { expr, field } | Expr::Floor { expr, field } => match field {
                CeilFloorKind::DateTimeField(field) if field.to_string().is_empty() => {
                    Ok(self.expression(expr, scope)?.widened())
                }
                _ => Err(unsupported(&expression.to_string())),
            },
            Expr::Substring { expr, substring_from, substring_for, special, shorthand } => {
                (*special, *shorthand) = (true, false);
                let operands = [Some(expr), substring_from.as_mut(), substring_for.as_mut()];
                self.each(operands.into_iter().flatten().map(|operand| &mut **operand), scope)?;
                Ok(TEXT)
            }
            Expr::Trim { trim_where: None, trim_what: None, expr, trim_characters } => {
                self.each(std::iter::once(&mut **expr).chain(trim_characters.iter_mut().flatten()), scope)?;
                Ok(TEXT)
            }
            _ => self.condition(expression, scope),
        }
    }

    /// What is true or false.
    fn condition(&mut self, expression: &mut Expr, scope: &Scope<'_>) -> Result<Kind, Fault> {
        match expression {
            Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner) => {
                self.expression(inner, scope)?;
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.compared(left, [&mut **right], scope)?;
            }
            Expr::Between { expr, low, high, .. } => {
                self.compared(expr, [&mut **low, &mut **high], scope)?;
            }
            Expr::InList { expr, list, .. } => self.compared(expr, list, scope)?,
            Expr::InSubquery { expr, subquery, .. } => {
                self.expression(expr, scope)?;
                self.query(subquery, Some(scope))?;
            }
            Expr::Exists { subquery, .. } => {
                self.query(subquery, Some(scope))?;
            }
            Expr::Like { any: false, expr, pattern, escape_char, .. } => {
                let kind = self.expression(expr, scope)?;
                as_text(expr, kind);
                self.expression(pattern, scope)?;
                self.each(escape_char.as_deref_mut(), scope)?;
            }
            Expr::ILike { .. } => {
                return Err(Fault::new(
                    "unsupported",
                    "ILIKE is not known here",
                    "use LIKE: it takes a and A for the same",
                ));
            }
            other => return Err(unsupported(&other.to_string())),
        }
        Ok(BOOL)
    }

    fn binary(&mut self, expression: &mut Expr, scope: &Scope<'_>) -> Result<Kind, Fault> {
        let Expr::BinaryOp { left, op, right } = expression else { return Ok(Kind::Unknown) };
        if matches!(op, BinaryOperator::Plus | BinaryOperator::Minus)
            && (matches!(**right, Expr::Interval(_)) || matches!(**left, Expr::Interval(_)))
        {
            return self.moved(expression, scope);
        }
        match op {
            BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq => {
                self.compared(left, [&mut **right], scope)?;
                Ok(BOOL)
            }
            BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Glob => {
                self.each([&mut **left, &mut **right], scope)?;
                Ok(BOOL)
            }
            BinaryOperator::StringConcat => {
                for side in [left, right] {
                    let kind = self.expression(side, scope)?;
                    as_text(side, kind);
                }
                Ok(TEXT)
            }
            BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo => {
                let is_sum = matches!(op, BinaryOperator::Plus | BinaryOperator::Minus);
                let is_minus = *op == BinaryOperator::Minus;
                let (of_left, of_right) = (self.expression(left, scope)?, self.expression(right, scope)?);
                Ok(match (of_left, of_right) {
                    (MOMENT, MOMENT) if is_minus => INT,
                    (MOMENT, INT) if is_sum => MOMENT,
                    _ => of_left.computed(of_right),
                })
            }
            BinaryOperator::BitwiseAnd
            | BinaryOperator::BitwiseOr
            | BinaryOperator::PGBitwiseShiftLeft
            | BinaryOperator::PGBitwiseShiftRight => {
                self.each([&mut **left, &mut **right], scope)?;
                Ok(INT)
            }
            BinaryOperator::Arrow | BinaryOperator::LongArrow => {
                self.each([&mut **left, &mut **right], scope)?;
                Ok(Kind::Unknown)
            }
            _ => Err(unsupported(&expression.to_string())),
        }
    }

    /// `moment ± interval` → `moved(moment, unit, ±n)`
    fn moved(&mut self, expression: &mut Expr, scope: &Scope<'_>) -> Result<Kind, Fault> {
        let Expr::BinaryOp { left, op, right } = expression else { return Ok(Kind::Unknown) };
        let is_minus = *op == BinaryOperator::Minus;
        let (base, by) = match (&mut **left, &mut **right) {
            (base, Expr::Interval(by)) => (base, by),
            (Expr::Interval(by), base) if !is_minus => (base, by),
            _ => return Err(syntax("an interval only moves a moment", "write moment - interval '3 hours'")),
        };
        let (count, unit) = moment::interval(by)?;
        let count = if is_minus { -count } else { count };
        if let Some(text) = moment::text(base) {
            *base = integer(moment::parse(text)?);
        } else {
            self.expression(base, scope)?;
        }
        let moved = called(MOVED, vec![base.clone(), text(moment::unit_name(unit)), integer(count)]);
        *expression = moved;
        Ok(MOMENT)
    }

    /// Operands of a comparison: a text beside a moment is read as one.
    fn compared<'e>(
        &mut self,
        left: &mut Expr,
        others: impl IntoIterator<Item = &'e mut Expr>,
        scope: &Scope<'_>,
    ) -> Result<(), Fault> {
        let of_left = self.expression(left, scope)?;
        for other in others {
            let of_other = self.expression(other, scope)?;
            as_moment(other, of_left)?;
            as_moment(left, of_other)?;
        }
        Ok(())
    }

    fn case(
        &mut self,
        operand: Option<&mut Expr>,
        conditions: &mut [CaseWhen],
        otherwise: Option<&mut Expr>,
        scope: &Scope<'_>,
    ) -> Result<Kind, Fault> {
        let of_operand = match operand {
            Some(operand) => self.expression(operand, scope)?,
            None => Kind::Unknown,
        };
        let mut kind = Kind::Null;
        for CaseWhen { condition, result } in conditions {
            self.expression(condition, scope)?;
            as_moment(condition, of_operand)?;
            kind = kind.or(self.expression(result, scope)?);
        }
        match otherwise {
            Some(otherwise) => Ok(kind.or(self.expression(otherwise, scope)?)),
            None => Ok(kind),
        }
    }

    fn cast(&mut self, expression: &mut Expr, scope: &Scope<'_>) -> Result<Kind, Fault> {
        let Expr::Cast { kind, expr, data_type, format: None } = expression else {
            return Err(unsupported(&expression.to_string()));
        };
        if !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
            return Err(unsupported(&expression.to_string()));
        }
        *kind = CastKind::Cast;
        let of_inner = self.expression(expr, scope)?;
        let decimals = match data_type {
            DataType::Float(ExactNumberInfo::Precision(decimals)) if *decimals <= DECIMALS_MAX => {
                Some(*decimals)
            }
            _ => None,
        };
        let (to, gives) = match data_type {
            DataType::Int(None) | DataType::Integer(None) | DataType::BigInt(None) => {
                (DataType::Integer(None), INT)
            }
            DataType::Float(ExactNumberInfo::None)
            | DataType::Double(_)
            | DataType::Real
            | DataType::DoublePrecision => (DataType::Real, FLOAT),
            DataType::Float(_) if decimals.is_some() => (DataType::Real, FLOAT),
            DataType::Text | DataType::Varchar(None) => (DataType::Text, TEXT),
            DataType::Timestamp(..) if moment::text(expr).is_some() => {
                let us = moment::parse(moment::text(expr).unwrap_or_default())?;
                *expression = integer(us);
                return Ok(MOMENT);
            }
            other => {
                let message = format!("a cast to `{other}` is not known here");
                return Err(Fault::new("unsupported", message, "cast to int, float, float(2) or text"));
            }
        };
        if gives == TEXT {
            as_text(expr, of_inner);
        }
        *data_type = to;
        if let Some(decimals) = decimals {
            let rounded = called("round", vec![expression.clone(), integer(decimals.cast_signed())]);
            *expression = rounded;
        }
        Ok(gives)
    }
}

/// A text beside a moment is one.
fn as_moment(expression: &mut Expr, beside: Kind) -> Result<(), Fault> {
    if beside == MOMENT
        && let Some(text) = moment::text(expression)
    {
        *expression = integer(moment::parse(text)?);
    }
    Ok(())
}

/// A moment or a truth where a text is needed.
pub(super) fn as_text(expression: &mut Expr, kind: Kind) {
    let function = match kind {
        MOMENT => MOMENT_TEXT,
        Kind::Of(ColumnType::Bool) => TRUTH_TEXT,
        _ => return,
    };
    *expression = called(function, vec![expression.clone()]);
}

fn literal(value: &Value) -> Result<Kind, Fault> {
    match value {
        Value::Number(number, false) => Ok(if number.parse::<i64>().is_ok() { INT } else { FLOAT }),
        Value::SingleQuotedString(_) => Ok(TEXT),
        Value::Boolean(_) => Ok(BOOL),
        Value::Null => Ok(Kind::Null),
        Value::Placeholder(_) => {
            Err(syntax("there is no value for a placeholder", "write the value in its place"))
        }
        other => Err(unsupported(&other.to_string())),
    }
}

pub(super) fn integer(value: i64) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).into())
}

pub(super) fn text(value: &'static str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.into()).into())
}

/// A call of a function of SQLite's or ours.
pub(super) fn called(name: &str, arguments: Vec<Expr>) -> Expr {
    let argument = |expression| FunctionArg::Unnamed(FunctionArgExpr::Expr(expression));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(argument).collect(),
            clauses: Vec::new(),
        }),
        within_group: Vec::new(),
        filter: None,
        null_treatment: None,
        over: None,
    })
}
