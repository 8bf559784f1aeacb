//! Aggregates as states of a few bytes, zeros at first: take a value, merge two, and tell the result.
//!
//! ```text
//!   count               n u64
//!   sum sum_rest avg    flags u8 · n u64 · exact sum i64 · float sum f64 · its error f64     (Kahan, Babuška, Neumaier)
//!   min max             a value's place
//!   range               two of them
//!   first last          its row's time i64 · a value's place; first_at, last_at are that time
//!   stddev variance     n u64 · mean f64 · M2 f64                                            (Welford; merged by Chan)
//! ```
//!
//! Sums are SQLite's: exact while all are integers, compensated floats from the first that is not. `sum_rest` is what
//! rounding took from `sum`, so that sums of several boards add up as one.

use super::{
    eval::Fault,
    number::{Number, arithmetic, order},
    plan::AggregateUse,
    record::{TextTooLong, load, place_bytes, store},
};
use crate::{
    message::ErrorCode,
    sql::tree::{Aggregate, BinaryOp, NodeId},
    value::{ColumnType, Value},
};
use core::cmp::Ordering;

const SUM_BYTES: usize = 33;
const SPREAD_BYTES: usize = 24;
const TIME_BYTES: usize = 8;

/// The sum is no longer exact: it is in the float.
const FLAG_FLOAT: u8 = 1;
/// An integer sum overflowed.
const FLAG_OVERFLOW: u8 = 2;

/// Why an aggregate has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AggregateFault(ErrorCode, &'static str);

impl AggregateFault {
    pub(super) fn at(self, node: NodeId) -> Fault {
        Fault::new(self.0, node, self.1)
    }
}

const TOO_LONG: AggregateFault =
    AggregateFault(ErrorCode::TooLong, "TEXT_BYTES_MAX: the text is too long to keep");

impl From<TextTooLong> for AggregateFault {
    fn from(TextTooLong: TextTooLong) -> Self {
        TOO_LONG
    }
}

/// Bytes of an aggregate's state.
pub(super) fn state_bytes(aggregate: &AggregateUse) -> usize {
    match aggregate.aggregate {
        Aggregate::Count => 8,
        Aggregate::Sum | Aggregate::SumRest | Aggregate::Avg => SUM_BYTES,
        Aggregate::Min | Aggregate::Max => place_bytes(aggregate.kind),
        Aggregate::First | Aggregate::Last | Aggregate::FirstAt | Aggregate::LastAt => {
            TIME_BYTES + place_bytes(aggregate.kind)
        }
        Aggregate::Range => 2 * place_bytes(aggregate.kind),
        Aggregate::Stddev | Aggregate::Variance => SPREAD_BYTES,
    }
}

/// Whether sums of a type are exact.
pub(super) fn is_whole(kind: ColumnType) -> bool {
    matches!(kind, ColumnType::Bool | ColumnType::Int)
}

/// Whether the time of a row decides.
pub(super) fn is_by_time(aggregate: Aggregate) -> bool {
    matches!(aggregate, Aggregate::First | Aggregate::Last | Aggregate::FirstAt | Aggregate::LastAt)
}

/// Counts so many rows at once.
pub(super) fn count(state: &mut [u8], rows: u64) {
    put_u64(state, 0, get_u64(state, 0) + rows);
}

/// Takes one value where that is a few instructions; false if [`take`] has to.
#[inline(always)]
pub(super) fn take_at_once(aggregate: Aggregate, state: &mut [u8], value: &Value<'_>) -> bool {
    match (aggregate, value) {
        (Aggregate::Count, _) => {
            count(state, 1);
            true
        }
        (Aggregate::Sum | Aggregate::SumRest | Aggregate::Avg, Value::Int(v)) => {
            state.first_chunk_mut().is_some_and(|state| Sum::add_exactly(state, *v))
        }
        _ => false,
    }
}

/// Takes one value that is not NULL, or one row of `count(*)`. The row is of this time.
#[inline(never)]
pub(super) fn take(
    aggregate: Aggregate,
    state: &mut [u8],
    value: &Value<'_>,
    time_us: i64,
) -> Result<(), AggregateFault> {
    match aggregate {
        Aggregate::Count => count(state, 1),
        Aggregate::Sum | Aggregate::SumRest | Aggregate::Avg => take_into_sum(state, value),
        Aggregate::Min => keep_if(state, *value, Ordering::Less)?,
        Aggregate::Max => keep_if(state, *value, Ordering::Greater)?,
        Aggregate::Range => {
            let (low, high) = state.split_at_mut(state.len() / 2);
            keep_if(low, *value, Ordering::Less)?;
            keep_if(high, *value, Ordering::Greater)?;
        }
        Aggregate::First | Aggregate::FirstAt | Aggregate::Last | Aggregate::LastAt => {
            // Of rows of the same time, the first is the one that was taken first, the last the one taken last.
            let kept_us = get_u64(state, 0).cast_signed();
            let is_first = matches!(aggregate, Aggregate::First | Aggregate::FirstAt);
            let is_better = if is_first { time_us < kept_us } else { time_us >= kept_us };
            let place = state.get_mut(TIME_BYTES..).unwrap_or_default();
            if is_better || load(place) == Value::Null {
                store(*value, place)?;
                put_u64(state, 0, time_us.cast_unsigned());
            }
        }
        Aggregate::Stddev | Aggregate::Variance => {
            let mut spread = Spread::load(state);
            spread.take(Number::of(*value).map_or(0.0, Number::to_f64));
            spread.store(state);
        }
    }
    Ok(())
}

/// Takes all that `from` has taken; its rows come after those of `state`.
pub(super) fn merge(aggregate: Aggregate, state: &mut [u8], from: &[u8]) -> Result<(), AggregateFault> {
    match aggregate {
        Aggregate::Count => count(state, get_u64(from, 0)),
        Aggregate::Sum | Aggregate::SumRest | Aggregate::Avg => {
            let mut sum = Sum::load(state);
            sum.merge(Sum::load(from));
            sum.store(state);
        }
        Aggregate::Stddev | Aggregate::Variance => {
            let mut spread = Spread::load(state);
            spread.merge(&Spread::load(from));
            spread.store(state);
        }
        Aggregate::Range => {
            let (low, high) = state.split_at_mut(state.len() / 2);
            let (from_low, from_high) = from.split_at(from.len() / 2);
            merge(Aggregate::Min, low, from_low)?;
            merge(Aggregate::Max, high, from_high)?;
        }
        Aggregate::Min | Aggregate::Max => take_if_known(aggregate, state, load(from), 0)?,
        Aggregate::First | Aggregate::Last | Aggregate::FirstAt | Aggregate::LastAt => {
            let place = from.get(TIME_BYTES..).unwrap_or_default();
            take_if_known(aggregate, state, load(place), get_u64(from, 0).cast_signed())?;
        }
    }
    Ok(())
}

/// Takes what another has computed of other rows in place of an aggregate; see [`super::fragment::partials`].
pub(super) fn absorb<'v>(
    used: &AggregateUse,
    state: &mut [u8],
    partials: &mut impl Iterator<Item = Value<'v>>,
) -> Result<(), AggregateFault> {
    let aggregate = used.aggregate;
    let is_whole = is_whole(used.kind);
    let mut next = || partials.next().unwrap_or(Value::Null);
    let rows = |value: Value<'_>| if let Value::Int(rows) = value { rows.max(0).cast_unsigned() } else { 0 };
    let number = |value: Value<'_>| Number::of(value).map_or(0.0, Number::to_f64);
    match aggregate {
        Aggregate::Count => count(state, rows(next())),
        Aggregate::Sum | Aggregate::SumRest | Aggregate::Avg => {
            let value = next();
            let rest = if is_whole { 0.0 } else { number(next()) };
            let known = if used.aggregate == Aggregate::Avg { rows(next()) } else { 1 };
            if value != Value::Null {
                take_into_sum(state, &value);
                let mut sum = Sum::load(state);
                if rest != 0.0 {
                    sum.take_float(rest);
                }
                sum.count = (sum.count - 1).saturating_add(known);
                sum.store(state);
            }
        }
        Aggregate::Min | Aggregate::Max => take_if_known(aggregate, state, next(), 0)?,
        Aggregate::Range => {
            let (low, high) = state.split_at_mut(state.len() / 2);
            take_if_known(Aggregate::Min, low, next(), 0)?;
            take_if_known(Aggregate::Max, high, next(), 0)?;
        }
        Aggregate::First | Aggregate::Last | Aggregate::FirstAt | Aggregate::LastAt => {
            let value = next();
            if let Value::Timestamp(time_us) = next() {
                take_if_known(aggregate, state, value, time_us)?;
            }
        }
        Aggregate::Stddev | Aggregate::Variance => {
            let (known, mean, variance) = (rows(next()), number(next()), number(next()));
            let mut spread = Spread::load(state);
            let squares = variance * known.saturating_sub(1) as f64;
            spread.merge(&Spread { count: known, mean, squares });
            spread.store(state);
        }
    }
    Ok(())
}

/// The result.
pub(super) fn finish(aggregate: Aggregate, state: &[u8]) -> Result<Value<'_>, AggregateFault> {
    Ok(match aggregate {
        Aggregate::Count => Value::Int(get_u64(state, 0).cast_signed()),
        Aggregate::Sum => return Sum::load(state).total(),
        Aggregate::SumRest => Sum::load(state).rest(),
        Aggregate::Avg => Sum::load(state).mean(),
        Aggregate::Min | Aggregate::Max => load(state),
        Aggregate::First | Aggregate::Last => load(state.get(TIME_BYTES..).unwrap_or_default()),
        Aggregate::FirstAt | Aggregate::LastAt => match load(state.get(TIME_BYTES..).unwrap_or_default()) {
            Value::Null => Value::Null,
            _ => Value::Timestamp(get_u64(state, 0).cast_signed()),
        },
        Aggregate::Range => {
            let (low, high) = state.split_at(state.len() / 2);
            match (Number::of(load(low)), Number::of(load(high))) {
                (Some(low), Some(high)) => arithmetic(BinaryOp::Subtract, high, low),
                _ => Value::Null,
            }
        }
        Aggregate::Variance => {
            Spread::load(state).variance().map_or(Value::Null, |v| Number::Float(v).value())
        }
        Aggregate::Stddev => {
            let variance = Spread::load(state).variance();
            variance.map_or(Value::Null, |v| Number::Float(libm::sqrt(v)).value())
        }
    })
}

fn take_if_known(
    aggregate: Aggregate,
    state: &mut [u8],
    value: Value<'_>,
    time_us: i64,
) -> Result<(), AggregateFault> {
    if value == Value::Null { Ok(()) } else { take(aggregate, state, &value, time_us) }
}

fn take_into_sum(state: &mut [u8], value: &Value<'_>) {
    let mut sum = Sum::load(state);
    sum.count += 1;
    match Number::of(*value) {
        Some(Number::Int(v)) => sum.take_int(v),
        Some(Number::Float(v)) => sum.take_float(v),
        None => {}
    }
    sum.store(state);
}

fn keep_if(place: &mut [u8], value: Value<'_>, wanted: Ordering) -> Result<(), AggregateFault> {
    let before = load(place);
    if before == Value::Null || order(value, before) == wanted {
        store(value, place)?;
    }
    Ok(())
}

/// A sum and how many were added.
struct Sum {
    flags: u8,
    count: u64,
    exact: i64,
    float: f64,
    error: f64,
}

impl Sum {
    fn load(state: &[u8]) -> Self {
        Self {
            flags: state.first().copied().unwrap_or(0),
            count: get_u64(state, 1),
            exact: get_u64(state, 9).cast_signed(),
            float: f64::from_bits(get_u64(state, 17)),
            error: f64::from_bits(get_u64(state, 25)),
        }
    }

    /// Adds an integer to a sum of integers in place; false if the sum is none, or overflows.
    #[inline]
    fn add_exactly(state: &mut [u8; SUM_BYTES], v: i64) -> bool {
        let exact = get_u64(state, 9).cast_signed().checked_add(v);
        match exact {
            Some(exact) if state[0] == 0 => {
                let count = get_u64(state, 1) + 1;
                put_u64(state, 1, count);
                put_u64(state, 9, exact.cast_unsigned());
                true
            }
            _ => false,
        }
    }

    fn store(&self, state: &mut [u8]) {
        state[0] = self.flags;
        put_u64(state, 1, self.count);
        put_u64(state, 9, self.exact.cast_unsigned());
        put_u64(state, 17, self.float.to_bits());
        put_u64(state, 25, self.error.to_bits());
    }

    #[inline]
    fn take_int(&mut self, v: i64) {
        if self.flags & FLAG_FLOAT != 0 {
            return self.step_int(v);
        }
        match self.exact.checked_add(v) {
            Some(exact) => self.exact = exact,
            None => {
                self.flags |= FLAG_OVERFLOW;
                self.leave_exact();
                self.step_int(v);
            }
        }
    }

    #[inline]
    fn take_float(&mut self, v: f64) {
        if self.flags & FLAG_FLOAT == 0 {
            self.leave_exact();
        }
        self.step(v);
    }

    fn leave_exact(&mut self) {
        self.flags |= FLAG_FLOAT;
        let exact = core::mem::take(&mut self.exact);
        (self.float, self.error) = (0.0, 0.0);
        self.step_int(exact);
    }

    /// In two parts where a float would round it.
    fn step_int(&mut self, v: i64) {
        const EXACT_MAX: i64 = 1 << 52;
        if (-EXACT_MAX..=EXACT_MAX).contains(&v) {
            return self.step(v as f64);
        }
        let small = v % 16_384;
        self.step((v - small) as f64);
        self.step(small as f64);
    }

    #[inline]
    fn step(&mut self, v: f64) {
        let sum = self.float + v;
        if self.float.abs() > v.abs() {
            self.error += (self.float - sum) + v;
        } else {
            self.error += (v - sum) + self.float;
        }
        self.float = sum;
    }

    fn merge(&mut self, from: Self) {
        self.count += from.count;
        self.flags |= from.flags & FLAG_OVERFLOW;
        if from.flags & FLAG_FLOAT == 0 {
            return self.take_int(from.exact);
        }
        self.take_float(from.float);
        self.step(from.error);
    }

    fn float_total(&self) -> f64 {
        if self.error.is_finite() { self.float + self.error } else { self.float }
    }

    /// What is missing from the total because it is one float.
    fn rest(&self) -> Value<'static> {
        let total = self.float_total();
        let rest = (self.float - total) + self.error;
        match self.count {
            0 => Value::Null,
            _ => Value::Float64(if self.flags & FLAG_FLOAT != 0 && rest.is_finite() { rest } else { 0.0 }),
        }
    }

    fn total(&self) -> Result<Value<'static>, AggregateFault> {
        if self.count == 0 {
            return Ok(Value::Null);
        }
        if self.flags & FLAG_OVERFLOW != 0 {
            return Err(AggregateFault(
                ErrorCode::Overflow,
                "integer overflow in sum(); sum floats: sum(x::float)",
            ));
        }
        Ok(if self.flags & FLAG_FLOAT == 0 {
            Value::Int(self.exact)
        } else {
            Number::Float(self.float_total()).value()
        })
    }

    fn mean(&self) -> Value<'static> {
        if self.count == 0 {
            return Value::Null;
        }
        let total = if self.flags & FLAG_FLOAT == 0 { self.exact as f64 } else { self.float_total() };
        Number::Float(total / self.count as f64).value()
    }
}

/// How far values lie from their mean (Welford).
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn load(state: &[u8]) -> Self {
        Self {
            count: get_u64(state, 0),
            mean: f64::from_bits(get_u64(state, 8)),
            squares: f64::from_bits(get_u64(state, 16)),
        }
    }

    fn store(&self, state: &mut [u8]) {
        put_u64(state, 0, self.count);
        put_u64(state, 8, self.mean.to_bits());
        put_u64(state, 16, self.squares.to_bits());
    }

    /// Takes one value.
    pub fn take(&mut self, v: f64) {
        self.count += 1;
        let before = v - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (v - self.mean);
    }

    fn merge(&mut self, from: &Self) {
        if from.count == 0 {
            return;
        }
        let count = self.count + from.count;
        let apart = from.mean - self.mean;
        let share = from.count as f64 / count as f64;
        self.mean += apart * share;
        self.squares += from.squares + apart * apart * self.count as f64 * share;
        self.count = count;
    }

    /// Of a sample; none of fewer than two values.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).max(0.0))
    }
}

#[inline]
fn get_u64(state: &[u8], at: usize) -> u64 {
    let bytes = state.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline]
fn put_u64(state: &mut [u8], at: usize, value: u64) {
    if let Some(bytes) = state.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut()) {
        *bytes = value.to_le_bytes();
    }
}
