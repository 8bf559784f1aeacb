//! Numbers and order as SQLite has them: arithmetic that overflows into floats, comparison of any two values.

use crate::{sql::tree::BinaryOp, value::Value};
use core::cmp::Ordering;

/// A value that counts as a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// A whole one.
    Int(i64),
    /// Any other.
    Float(f64),
}

/// 2^63, the first float above every integer.
const INT_END: f64 = 9_223_372_036_854_775_808.0;
/// Above this every float is whole.
const WHOLE_MIN: f64 = 4_503_599_627_370_496.0;

impl Number {
    /// The number that a value counts as; none for NULL and text.
    #[inline]
    pub(super) fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Int(v) | Value::Timestamp(v) => Some(Number::Int(v)),
            Value::Float32(v) => Some(Number::Float(v.into())),
            Value::Float64(v) => Some(Number::Float(v)),
            Value::Bool(v) => Some(Number::Int(v.into())),
            Value::Null | Value::Text(_) => None,
        }
    }

    /// As a float, the nearest one.
    #[inline]
    pub(super) fn to_f64(self) -> f64 {
        match self {
            Number::Int(v) => v as f64,
            Number::Float(v) => v,
        }
    }

    /// As a whole number: cut towards zero, and at both ends.
    #[inline]
    pub(super) fn to_i64(self) -> i64 {
        match self {
            Number::Int(v) => v,
            Number::Float(v) => v as i64,
        }
    }

    /// As a value; what is no number is NULL.
    #[inline]
    pub(super) fn value(self) -> Value<'static> {
        match self {
            Number::Int(v) => Value::Int(v),
            Number::Float(v) if v.is_nan() => Value::Null,
            Number::Float(v) => Value::Float64(v),
        }
    }
}

/// `a op b` for the arithmetic operators.
pub(super) fn arithmetic(op: BinaryOp, a: Number, b: Number) -> Value<'static> {
    if op == BinaryOp::Remainder {
        return remainder(a, b);
    }
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let exact = match op {
            BinaryOp::Add => a.checked_add(b),
            BinaryOp::Subtract => a.checked_sub(b),
            BinaryOp::Multiply => a.checked_mul(b),
            _ if b == 0 => return Value::Null,
            _ => a.checked_div(b),
        };
        if let Some(exact) = exact {
            return Value::Int(exact);
        }
    }
    let (a, b) = (a.to_f64(), b.to_f64());
    Number::Float(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        _ if b == 0.0 => return Value::Null,
        _ => a / b,
    })
    .value()
}

/// Of whole numbers; a float when one of them was.
fn remainder(a: Number, b: Number) -> Value<'static> {
    let whole = match (a.to_i64(), b.to_i64()) {
        (_, 0) => return Value::Null,
        (a, b) => a.wrapping_rem(b),
    };
    match (a, b) {
        (Number::Int(_), Number::Int(_)) => Value::Int(whole),
        _ => Value::Float64(whole as f64),
    }
}

/// `-x`
pub(super) fn negate(number: Number) -> Value<'static> {
    match number {
        Number::Int(v) => v.checked_neg().map_or(Value::Float64(INT_END), Value::Int),
        Number::Float(v) => Number::Float(-v).value(),
    }
}

/// The order of all values: NULL, numbers, text. NULLs are equal to each other here.
#[inline]
pub(super) fn order(a: Value<'_>, b: Value<'_>) -> Ordering {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        return a.cmp(&b);
    }
    match (Number::of(a), Number::of(b)) {
        (Some(a), Some(b)) => order_numbers(a, b),
        (None, None) => match (a, b) {
            (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Less,
            _ => Ordering::Greater,
        },
        (Some(_), None) if b == Value::Null => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) if a == Value::Null => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
    }
}

fn order_numbers(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a.cmp(&b),
        (Number::Float(a), Number::Float(b)) => order_floats(a, b),
        (Number::Int(a), Number::Float(b)) => order_mixed(a, b),
        (Number::Float(a), Number::Int(b)) => order_mixed(b, a).reverse(),
    }
}

/// NaN does not occur: it is NULL.
fn order_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Exact, also where the integer has no float of its own.
fn order_mixed(a: i64, b: f64) -> Ordering {
    if b >= INT_END {
        return Ordering::Less;
    }
    if b < -INT_END {
        return Ordering::Greater;
    }
    let whole = b as i64;
    a.cmp(&whole).then_with(|| order_floats(whole as f64, b))
}

/// The greatest whole number that is not above `x`.
pub(super) fn floor(x: f64) -> f64 {
    let cut = trunc(x);
    if cut > x { cut - 1.0 } else { cut }
}

/// The least whole number that is not below `x`.
pub(super) fn ceil(x: f64) -> f64 {
    let cut = trunc(x);
    if cut < x { cut + 1.0 } else { cut }
}

fn trunc(x: f64) -> f64 {
    if x.abs() < WHOLE_MIN { x as i64 as f64 } else { x }
}

/// The nearest number with so many decimals; what lies in the middle goes away from zero.
pub(super) fn round(x: f64, decimals: u8) -> f64 {
    if x.abs() >= WHOLE_MIN || x.is_nan() {
        return x;
    }
    if decimals == 0 {
        return trunc(x + if x < 0.0 { -0.5 } else { 0.5 });
    }
    let power = power_of_ten(decimals.min(22));
    let scaled = x.abs() * power;
    if scaled >= WHOLE_MIN {
        return x; // it has no digit behind so many decimals
    }
    let below = trunc(scaled);
    // `scaled` is rounded; what it lacks decides where it looks like the middle.
    let past_middle = (scaled - below - 0.5) + product_error(x.abs(), power, scaled);
    let nearest = if past_middle >= 0.0 { below + 1.0 } else { below };
    let rounded = nearest / power;
    if x < 0.0 { -rounded } else { rounded }
}

fn power_of_ten(exponent: u8) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * 10.0) // exact up to 10^22
}

/// `a * b - product`, exactly (Dekker).
fn product_error(a: f64, b: f64, product: f64) -> f64 {
    const SPLIT: f64 = 134_217_729.0; // 2^27 + 1
    let halves = |x: f64| {
        let big = x * SPLIT;
        let high = big - (big - x);
        (high, x - high)
    };
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_overflow_into_floats_and_division_by_zero_is_null() {
        let int = Number::Int;
        assert_eq!(arithmetic(BinaryOp::Add, int(i64::MAX), int(1)), Value::Float64(INT_END));
        assert_eq!(arithmetic(BinaryOp::Divide, int(i64::MIN), int(-1)), Value::Float64(INT_END));
        assert_eq!(arithmetic(BinaryOp::Divide, int(-7), int(2)), Value::Int(-3));
        assert_eq!(arithmetic(BinaryOp::Divide, int(1), int(0)), Value::Null);
        assert_eq!(arithmetic(BinaryOp::Divide, Number::Float(1.0), int(0)), Value::Null);
        assert_eq!(arithmetic(BinaryOp::Remainder, int(i64::MIN), int(-1)), Value::Int(0));
        assert_eq!(arithmetic(BinaryOp::Remainder, Number::Float(5.5), int(2)), Value::Float64(1.0));
        assert_eq!(arithmetic(BinaryOp::Remainder, int(5), Number::Float(0.5)), Value::Null);
        assert_eq!(negate(int(i64::MIN)), Value::Float64(INT_END));
        let infinite = Number::Float(f64::INFINITY);
        assert_eq!(arithmetic(BinaryOp::Subtract, infinite, infinite), Value::Null);
    }

    #[test]
    fn integers_and_floats_compare_exactly() {
        let int = Value::Int;
        let float = Value::Float64;
        assert_eq!(order(int(i64::MAX), float(INT_END)), Ordering::Less);
        assert_eq!(order(int(9_007_199_254_740_993), float(9_007_199_254_740_992.0)), Ordering::Greater);
        assert_eq!(order(int(-3), float(-3.5)), Ordering::Greater);
        assert_eq!(order(float(-0.0), int(0)), Ordering::Equal);
        assert_eq!(order(Value::Null, int(i64::MIN)), Ordering::Less);
        assert_eq!(order(Value::Text(""), float(f64::INFINITY)), Ordering::Greater);
        assert_eq!(order(Value::Bool(true), int(1)), Ordering::Equal);
    }

    #[test]
    fn the_middle_is_rounded_away_from_zero_and_what_only_looks_like_it_is_not() {
        assert_eq!(round(2.5, 0), 3.0);
        assert_eq!(round(-2.5, 0), -3.0);
        assert_eq!(round(0.125, 2), 0.13);
        assert_eq!(round(2.675, 2), 2.67); // a little less than it looks
        assert_eq!(round(1.005, 2), 1.0);
        assert_eq!(round(1e300, 2), 1e300);
        assert_eq!(round(0.1, 9), 0.1);
        assert_eq!((floor(-0.5), ceil(-0.5), floor(1e300)), (-1.0, 0.0, 1e300));
    }
}
