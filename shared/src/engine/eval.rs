//! The value of an expression for one row, or for one group. Types were checked when the query was planned.

use super::{
    calendar,
    number::{self, Number, order},
    text,
};
use crate::{
    message::ErrorCode,
    sql::tree::{BinaryOp, CastTo, Function, List, Node, NodeId, Tree, UnaryOp},
    value::Value,
};
use core::cmp::Ordering;

/// Why an expression has no value. Small, because every step of every row may return one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// What went wrong.
    pub code: ErrorCode,
    /// In which node.
    pub node: NodeId,
    /// What to say of it.
    pub hint: &'static str,
}

impl Fault {
    pub(super) fn new(code: ErrorCode, node: NodeId, hint: &'static str) -> Self {
        Self { code, node, hint }
    }
}

/// What the names of an expression stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'s, 'v> {
    /// The nodes.
    pub tree: &'s Tree,
    /// The text that the nodes refer to.
    pub text: &'v str,
    /// The columns of the row.
    pub cells: &'s [Value<'v>],
    /// The keys and aggregates of the group.
    pub slots: &'s [Value<'v>],
}

/// Room for the texts that the expressions of one row make; each takes from the front.
pub(super) type Bump<'v> = &'v mut [u8];

impl<'v> Scope<'_, 'v> {
    /// The value of a node.
    pub(super) fn eval(&self, id: NodeId, bump: &mut Bump<'v>) -> Result<Value<'v>, Fault> {
        Ok(match self.tree.node(id) {
            Node::Column(index) => *known(self.cells, index),
            Node::Slot(index) => *known(self.slots, index),
            Node::Int(v) => Value::Int(v),
            Node::Float(v) => Value::Float64(v),
            Node::Bool(v) => Value::Bool(v),
            Node::Text(span) => Value::Text(span.of(self.text)),
            Node::Timestamp(v) => Value::Timestamp(v),
            Node::Binary(op, a, b) => return self.binary(id, op, a, b, bump),
            Node::Unary(UnaryOp::Not, x) => logical(truth(self.eval(x, bump)?).map(|truth| !truth)),
            Node::Unary(UnaryOp::Minus, x) => {
                Number::of(self.eval(x, bump)?).map_or(Value::Null, number::negate)
            }
            Node::IsNull(negated, x) => Value::Bool((self.eval(x, bump)? == Value::Null) != negated),
            Node::Between(negated, x, low, high) => {
                let x = self.eval(x, bump)?;
                let above = compared(x, self.eval(low, bump)?).map(Ordering::is_ge);
                let below = compared(x, self.eval(high, bump)?).map(Ordering::is_le);
                logical(and(above, below).map(|inside| inside != negated))
            }
            Node::In(negated, x, list) => {
                let x = self.eval(x, bump)?;
                logical(self.is_in(x, list, bump)?.map(|found| found != negated))
            }
            Node::Like(negated, x, pattern) => match (self.eval(x, bump)?, self.eval(pattern, bump)?) {
                (Value::Text(x), Value::Text(pattern)) => Value::Bool(text::is_like(x, pattern) != negated),
                _ => Value::Null,
            },
            Node::Cast(to, x) => {
                let value = self.eval(x, bump)?;
                return cast(id, to, value, bump);
            }
            Node::Function(function, list) => return self.function(id, function, list, bump),
            Node::Increments(unit, count, x) => match self.eval(x, bump)? {
                Value::Timestamp(us) => {
                    let start = calendar::bucket_start(us, unit, count);
                    Value::Timestamp(start.ok_or(outside_calendar(id))?)
                }
                _ => Value::Null,
            },
            // The planner has replaced these.
            Node::Null | Node::Name(_) | Node::Now | Node::Interval(..) => Value::Null,
            Node::Aggregate(..) | Node::Period(..) => Value::Null,
        })
    }

    /// The value of a node that is most often a column.
    #[inline]
    pub(super) fn value(&self, id: NodeId, bump: &mut Bump<'v>) -> Result<Value<'v>, Fault> {
        match self.tree.nodes.get(usize::from(id)) {
            Some(Node::Column(index)) => Ok(*known(self.cells, *index)),
            _ => self.eval(id, bump),
        }
    }

    /// The cell that a node is, if it is one.
    #[inline]
    pub(super) fn column(&self, id: NodeId) -> Option<&Value<'v>> {
        match self.tree.nodes.get(usize::from(id)) {
            Some(Node::Column(index)) => Some(known(self.cells, *index)),
            _ => None,
        }
    }

    /// Whether a condition holds: neither false nor unknown.
    #[inline]
    pub(super) fn holds(&self, id: NodeId, bump: &mut Bump<'v>) -> Result<bool, Fault> {
        Ok(truth(self.eval(id, bump)?) == Some(true))
    }

    fn binary(
        &self,
        id: NodeId,
        op: BinaryOp,
        a: NodeId,
        b: NodeId,
        bump: &mut Bump<'v>,
    ) -> Result<Value<'v>, Fault> {
        let left = self.eval(a, bump)?;
        match op {
            BinaryOp::And => {
                let left = truth(left);
                if left == Some(false) {
                    return Ok(Value::Bool(false));
                }
                return Ok(logical(and(left, truth(self.eval(b, bump)?))));
            }
            BinaryOp::Or => {
                let left = truth(left);
                if left == Some(true) {
                    return Ok(Value::Bool(true));
                }
                let neither = and(left.map(|v| !v), truth(self.eval(b, bump)?).map(|v| !v));
                return Ok(logical(neither.map(|v| !v)));
            }
            _ => {}
        }
        if let Value::Timestamp(us) = left
            && matches!(op, BinaryOp::Add | BinaryOp::Subtract)
        {
            return self.move_time(id, op, us, b, bump);
        }
        let right = self.eval(b, bump)?;
        let is = |holds: fn(Ordering) -> bool| logical(compared(left, right).map(holds));
        Ok(match op {
            BinaryOp::Equal => is(Ordering::is_eq),
            BinaryOp::NotEqual => is(Ordering::is_ne),
            BinaryOp::Less => is(Ordering::is_lt),
            BinaryOp::LessOrEqual => is(Ordering::is_le),
            BinaryOp::Greater => is(Ordering::is_gt),
            BinaryOp::GreaterOrEqual => is(Ordering::is_ge),
            _ => match (Number::of(left), Number::of(right)) {
                (Some(a), Some(b)) => number::arithmetic(op, a, b),
                _ => Value::Null,
            },
        })
    }

    /// A moment plus or minus an interval, microseconds, or another moment.
    fn move_time(
        &self,
        id: NodeId,
        op: BinaryOp,
        us: i64,
        by: NodeId,
        bump: &mut Bump<'v>,
    ) -> Result<Value<'v>, Fault> {
        let is_minus = op == BinaryOp::Subtract;
        let moved = match (self.tree.node(by), is_minus) {
            (Node::Interval(count, unit), _) => {
                let count = if is_minus { i64::from(count).wrapping_neg() } else { count.into() };
                calendar::moved(us, unit, count)
            }
            _ => match (self.eval(by, bump)?, is_minus) {
                (Value::Timestamp(other), _) => {
                    return Ok(number::arithmetic(op, Number::Int(us), Number::Int(other)));
                }
                (Value::Int(by), true) => us.checked_sub(by),
                (Value::Int(by), false) => us.checked_add(by),
                _ => return Ok(Value::Null),
            },
        };
        moved.map(Value::Timestamp).ok_or(outside_calendar(id))
    }

    fn is_in(&self, x: Value<'v>, list: List, bump: &mut Bump<'v>) -> Result<Option<bool>, Fault> {
        let mut unknown = false;
        for member in self.tree.list(list) {
            match compared(x, self.eval(*member, bump)?) {
                Some(Ordering::Equal) => return Ok(Some(true)),
                Some(_) => {}
                None => unknown = true,
            }
        }
        Ok(if unknown { None } else { Some(false) })
    }

    fn function(
        &self,
        id: NodeId,
        function: Function,
        list: List,
        bump: &mut Bump<'v>,
    ) -> Result<Value<'v>, Fault> {
        let arguments = self.tree.list(list);
        if function == Function::Coalesce {
            for argument in arguments {
                let value = self.eval(*argument, bump)?;
                if value != Value::Null {
                    return Ok(value);
                }
            }
            return Ok(Value::Null);
        }
        let Some(first) = arguments.first() else { return Ok(Value::Null) };
        let value = self.eval(*first, bump)?;
        if let Value::Text(of) = value {
            return match function {
                Function::Lower => text::cased(id, of, u8::to_ascii_lowercase, bump),
                Function::Upper => text::cased(id, of, u8::to_ascii_uppercase, bump),
                _ => Ok(Value::Int(of.chars().count() as i64)),
            };
        }
        let Some(number) = Number::of(value) else { return Ok(Value::Null) };
        Ok(match (function, number) {
            (Function::Abs, Number::Int(v)) => match v.checked_abs() {
                Some(v) => Value::Int(v),
                None => return Err(Fault::new(ErrorCode::Overflow, id, "integer overflow in abs()")),
            },
            (Function::Abs, Number::Float(v)) => Value::Float64(v.abs()),
            (Function::Floor | Function::Ceil, Number::Int(v)) => Value::Int(v),
            (Function::Floor, Number::Float(v)) => Value::Float64(number::floor(v)),
            (Function::Ceil, Number::Float(v)) => Value::Float64(number::ceil(v)),
            (Function::Round, number) => {
                let decimals = match arguments.get(1) {
                    Some(argument) => match Number::of(self.eval(*argument, bump)?) {
                        Some(decimals) => decimals.to_i64(),
                        None => return Ok(Value::Null),
                    },
                    None => 0,
                };
                Value::Float64(number::round(number.to_f64(), decimals.clamp(0, 30) as u8))
            }
            _ => Value::Null,
        })
    }
}

/// A column's value; what is no number is NULL.
#[inline]
pub(super) fn known<'c, 'v>(values: &'c [Value<'v>], index: u8) -> &'c Value<'v> {
    match values.get(usize::from(index)) {
        Some(Value::Float32(v)) if v.is_nan() => &Value::Null,
        Some(Value::Float64(v)) if v.is_nan() => &Value::Null,
        Some(value) => value,
        None => &Value::Null,
    }
}

fn outside_calendar(id: NodeId) -> Fault {
    Fault::new(ErrorCode::Overflow, id, "the moment is outside the calendar")
}

/// How two values compare; unknown if one is NULL.
#[inline]
pub(super) fn compared(a: Value<'_>, b: Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => None,
        _ => Some(order(a, b)),
    }
}

/// What a value means as a condition; unknown if it is NULL.
#[inline]
pub(super) fn truth(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(v) => Some(v),
        Value::Int(v) | Value::Timestamp(v) => Some(v != 0),
        Value::Float32(v) => Some(v != 0.0),
        Value::Float64(v) => Some(v != 0.0),
        Value::Null | Value::Text(_) => None,
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn logical(truth: Option<bool>) -> Value<'static> {
    truth.map_or(Value::Null, Value::Bool)
}

fn cast<'v>(id: NodeId, to: CastTo, value: Value<'v>, bump: &mut Bump<'v>) -> Result<Value<'v>, Fault> {
    Ok(match (to, value) {
        (_, Value::Null) => Value::Null,
        (CastTo::Text, Value::Text(_)) => value,
        (CastTo::Text, _) => return text::written(id, value, bump),
        (CastTo::Int, Value::Text(of)) => Value::Int(text::int_prefix(of)),
        (CastTo::Float(decimals), _) => {
            let float = match value {
                Value::Text(of) => text::float_prefix(of),
                _ => Number::of(value).map_or(0.0, Number::to_f64),
            };
            Number::Float(decimals.map_or(float, |decimals| number::round(float, decimals))).value()
        }
        (CastTo::Int, _) => Number::of(value).map_or(Value::Null, |number| Value::Int(number.to_i64())),
    })
}
