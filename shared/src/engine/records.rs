//! What is kept of rows until the last one is read: groups, the first rows in an order, or different rows.
//!
//! ```text
//!   group      hash · place of each key · state of each aggregate
//!   sort       place of each key of ORDER BY · place of each output
//!   distinct   hash · place of each output
//!   a value already seen by `count(DISTINCT x)`     hash · group u32 · aggregate u8 · place
//! ```

mod sorted;

pub(super) use sorted::Sorted;

use super::{
    aggregate,
    eval::{Bump, Fault, Scope},
    number::order,
    plan::{AggregateUse, Mode, Plan},
    query::fitted,
    record::{load, mix, place_bytes, store},
    workspace::Memory,
};
use crate::{
    limits::{COLUMNS_MAX, GROUP_KEYS_MAX, SORT_KEYS_MAX},
    message::ErrorCode,
    value::{ColumnType, Value},
};
use core::cmp::Ordering;

const HASH_BYTES: usize = 4;
const SEEN_BYTES: usize = HASH_BYTES + 5;
const HASH_START: u32 = 0x811C_9DC5;
/// Rows that are kept in order while others come; more are sorted in the end, where there is memory for all.
const PLACED_ROWS_MAX: u64 = 4096;

/// Bytes of a record and of a value already seen.
pub(super) fn sizes(plan: &Plan) -> (usize, usize) {
    let keys = |keys: &[super::plan::Key]| keys.iter().map(|key| place_bytes(key.kind)).sum::<usize>();
    let outputs = || plan.outputs.iter().map(|output| place_bytes(output.kind)).sum::<usize>();
    let states = || plan.aggregates.iter().map(aggregate::state_bytes).sum::<usize>();
    let record_bytes = match plan.mode {
        Mode::Stream => 0,
        Mode::Sort => keys(&plan.order) + outputs(),
        Mode::Distinct => HASH_BYTES + outputs(),
        Mode::Group => HASH_BYTES + keys(&plan.keys) + states(),
    };
    let distinct = plan.aggregates.iter().filter(|aggregate| aggregate.distinct);
    let value_bytes = distinct.map(|aggregate| SEEN_BYTES + place_bytes(aggregate.kind)).max();
    (record_bytes, value_bytes.unwrap_or(0))
}

fn full(node: u8, is_counted_out: bool, counted: &'static str) -> Fault {
    let hint =
        if is_counted_out { counted } else { "WORKSPACE_BYTES: the query needs more memory than it has" };
    Fault::new(ErrorCode::Capacity, node, hint)
}

fn too_long(node: u8) -> Fault {
    Fault::new(ErrorCode::TooLong, node, "TEXT_BYTES_MAX: the text is too long to keep")
}

/// Writes values into consecutive places.
fn store_all<'v>(
    values: impl Iterator<Item = (Value<'v>, ColumnType, u8)>,
    mut places: &mut [u8],
) -> Result<(), Fault> {
    for (value, kind, node) in values {
        let (place, rest) = places.split_at_mut(place_bytes(kind));
        store(value, place).map_err(|_| too_long(node))?;
        places = rest;
    }
    Ok(())
}

/// The values of consecutive places.
fn load_all(places: &[u8], kinds: impl Iterator<Item = ColumnType>) -> impl Iterator<Item = Value<'_>> {
    let mut at = 0;
    kinds.map(move |kind| {
        let value = load(places.get(at..).unwrap_or_default());
        at += place_bytes(kind);
        value
    })
}

fn hash_of(record: &[u8]) -> u32 {
    record.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The record with these values behind its hash, if there is one.
fn find<M: Memory>(
    work: &M,
    hash: u32,
    values: &[Value<'_>],
    kinds: impl Iterator<Item = ColumnType> + Clone,
    first: usize,
) -> Option<usize> {
    let is_it = |record: &[u8]| {
        hash_of(record) == hash
            && load_all(record.get(HASH_BYTES..).unwrap_or_default(), kinds.clone())
                .zip(values)
                .all(|(there, value)| order(there, *value) == Ordering::Equal)
    };
    if first < work.records() && is_it(work.record(first)) {
        return Some(first);
    }
    work.find(hash, is_it)
}

// ---- Groups ----

/// Takes a row into its group. Rows of one group often come together: `last` is where the row before went.
#[inline(never)]
pub(super) fn take_row<'v, M: Memory>(
    plan: &Plan,
    work: &mut M,
    scope: &Scope<'_, 'v>,
    bump: &mut Bump<'v>,
    last: &mut usize,
) -> Result<(), Fault> {
    let mut at = HASH_BYTES;
    if !plan.keys.is_empty() {
        *last = group(plan, work, scope, bump, *last)?;
        at += plan.keys.iter().map(|key| place_bytes(key.kind)).sum::<usize>();
    }
    for (index, used) in plan.aggregates.iter().enumerate() {
        let bytes = aggregate::state_bytes(used);
        let evaluated;
        let value = match used.argument {
            None => &Value::Bool(true),
            Some(argument) => match scope.column(argument) {
                Some(cell) => cell,
                None => {
                    evaluated = scope.eval(argument, bump)?;
                    &evaluated
                }
            },
        };
        let is_taken = !matches!(value, Value::Null)
            && (!used.distinct || is_new(work, *last, index, *value, used.node)?);
        if is_taken
            && let Some(state) = work.record_mut(*last).get_mut(at..at + bytes)
            && !aggregate::take_at_once(used.aggregate, state, value)
        {
            let time_us = if let Some(Value::Timestamp(us)) = scope.cells.first() { *us } else { 0 };
            aggregate::take(used.aggregate, state, value, time_us).map_err(|fault| fault.at(used.node))?;
        }
        at += bytes;
    }
    Ok(())
}

/// The number of a row's group; a new one if it is its first row.
#[inline(never)]
fn group<'v, M: Memory>(
    plan: &Plan,
    work: &mut M,
    scope: &Scope<'_, 'v>,
    bump: &mut Bump<'v>,
    last: usize,
) -> Result<usize, Fault> {
    let mut values = [Value::Null; GROUP_KEYS_MAX];
    let mut hash = HASH_START;
    for (value, key) in values.iter_mut().zip(&plan.keys) {
        *value = fitted(scope.value(key.node, bump)?, key.kind);
        hash = mix(hash, *value);
    }
    group_of(plan, work, hash, &values[..plan.keys.len()], last)
}

/// The number of the group with these keys; a new one if there is none.
fn group_of<M: Memory>(
    plan: &Plan,
    work: &mut M,
    hash: u32,
    values: &[Value<'_>],
    last: usize,
) -> Result<usize, Fault> {
    if plan.keys.is_empty() && work.records() > 0 {
        return Ok(0);
    }
    let kinds = plan.keys.iter().map(|key| key.kind);
    if let Some(index) = find(work, hash, values, kinds, last) {
        return Ok(index);
    }
    let node = plan.keys.first().map_or(0, |key| key.node);
    let is_counted_out = work.records() >= M::GROUPS_MAX;
    let refused = full(node, is_counted_out, "GROUPS_MAX: more groups than can be kept");
    if is_counted_out {
        return Err(refused);
    }
    let index = work.push(hash).map_err(|_| refused)?;
    let record = work.record_mut(index);
    record[..HASH_BYTES].copy_from_slice(&hash.to_le_bytes());
    let keys = values.iter().zip(&plan.keys).map(|(value, key)| (*value, key.kind, key.node));
    store_all(keys, &mut record[HASH_BYTES..])?;
    Ok(index)
}

/// Which aggregate of which group has seen a value.
fn seen_of(group: usize, index: usize) -> [u8; SEEN_BYTES - HASH_BYTES] {
    let [a, b, c, d] = (group as u32).to_le_bytes();
    [a, b, c, d, index as u8]
}

/// Whether an aggregate of different values sees this one for the first time in its group.
#[inline(never)]
fn is_new<M: Memory>(
    work: &mut M,
    group: usize,
    index: usize,
    value: Value<'_>,
    node: u8,
) -> Result<bool, Fault> {
    let mut head = [0; SEEN_BYTES];
    let hash = mix(mix(HASH_START, value), Value::Int(group as i64));
    head[..HASH_BYTES].copy_from_slice(&hash.to_le_bytes());
    head[HASH_BYTES..].copy_from_slice(&seen_of(group, index));
    let is_seen = work.has_value(hash, |seen| {
        let (there, place) = seen.split_at(SEEN_BYTES);
        there == head && order(load(place), value) == Ordering::Equal
    });
    if is_seen {
        return Ok(false);
    }
    let is_counted_out = work.values() >= M::DISTINCT_VALUES_MAX;
    let refused = full(node, is_counted_out, "DISTINCT_VALUES_MAX: more different values than can be kept");
    let room = work.push_value(hash).map_err(|_| refused)?;
    let (there, place) = room.split_at_mut(SEEN_BYTES);
    there.copy_from_slice(&head);
    store(value, place).map_err(|_| too_long(node))?;
    Ok(true)
}

/// Takes all groups of `from`, a workspace of the same plan, into those of `work`.
pub(super) fn merge<M: Memory, F: Memory>(plan: &Plan, work: &mut M, from: &F) -> Result<(), Fault> {
    let keys_bytes = plan.keys.iter().map(|key| place_bytes(key.kind)).sum::<usize>();
    for index in 0..from.records() {
        let record = from.record(index);
        let keys = record.get(HASH_BYTES..HASH_BYTES + keys_bytes).unwrap_or_default();
        let mut values = [Value::Null; GROUP_KEYS_MAX];
        let kinds = plan.keys.iter().map(|key| key.kind);
        values.iter_mut().zip(load_all(keys, kinds)).for_each(|(value, key)| *value = key);
        let group = group_of(plan, work, hash_of(record), &values[..plan.keys.len()], index)?;
        let mut at = HASH_BYTES + keys_bytes;
        for (nth, used) in plan.aggregates.iter().enumerate() {
            let bytes = aggregate::state_bytes(used);
            if used.distinct {
                merge_seen(work, from, [index, group, nth], at..at + bytes, used)?;
            } else if let Some(state) = work.record_mut(group).get_mut(at..at + bytes) {
                let taken = record.get(at..at + bytes).unwrap_or_default();
                aggregate::merge(used.aggregate, state, taken).map_err(|fault| fault.at(used.node))?;
            }
            at += bytes;
        }
    }
    Ok(())
}

/// Takes a group that another has gathered: its keys, the values that must differ, and partial aggregates.
pub(super) fn absorb<M: Memory>(plan: &Plan, work: &mut M, cells: &[Value<'_>]) -> Result<(), Fault> {
    let mut values = [Value::Null; GROUP_KEYS_MAX];
    let mut hash = HASH_START;
    let mut cells = cells.iter().copied();
    for ((value, key), cell) in values.iter_mut().zip(&plan.keys).zip(cells.by_ref()) {
        *value = fitted(cell, key.kind);
        hash = mix(hash, *value);
    }
    let group = group_of(plan, work, hash, &values[..plan.keys.len()], work.records().saturating_sub(1))?;
    let mut seen = cells.clone();
    let distinct = plan.aggregates.iter().filter(|used| used.distinct).count();
    let mut partials = cells.skip(distinct);
    let mut at = HASH_BYTES + plan.keys.iter().map(|key| place_bytes(key.kind)).sum::<usize>();
    for (nth, used) in plan.aggregates.iter().enumerate() {
        let bytes = aggregate::state_bytes(used);
        if used.distinct {
            let value = seen.next().unwrap_or(Value::Null);
            let is_taken = value != Value::Null && is_new(work, group, nth, value, used.node)?;
            if is_taken && let Some(state) = work.record_mut(group).get_mut(at..at + bytes) {
                aggregate::take(used.aggregate, state, &value, 0).map_err(|fault| fault.at(used.node))?;
            }
        } else if let Some(state) = work.record_mut(group).get_mut(at..at + bytes) {
            aggregate::absorb(used, state, &mut partials).map_err(|fault| fault.at(used.node))?;
        }
        at += bytes;
    }
    Ok(())
}

/// Takes the values that an aggregate of different values has seen in a group of `from`.
fn merge_seen<M: Memory, F: Memory>(
    work: &mut M,
    from: &F,
    [group_from, group, nth]: [usize; 3],
    state: core::ops::Range<usize>,
    used: &AggregateUse,
) -> Result<(), Fault> {
    for seen in 0..from.values() {
        let (head, place) = from.value(seen).split_at(SEEN_BYTES);
        if head[HASH_BYTES..] != seen_of(group_from, nth) {
            continue;
        }
        let value = load(place);
        if is_new(work, group, nth, value, used.node)?
            && let Some(state) = work.record_mut(group).get_mut(state.clone())
        {
            aggregate::take(used.aggregate, state, &value, 0).map_err(|fault| fault.at(used.node))?;
        }
    }
    Ok(())
}

/// Counts rows of the only group without looking at them: all its aggregates are `count(*)`.
pub(super) fn count_rows<M: Memory>(plan: &Plan, work: &mut M, rows: u64) {
    let states = work.record_mut(0).get_mut(HASH_BYTES..).unwrap_or_default();
    for state in states.chunks_exact_mut(8).take(plan.aggregates.len()) {
        aggregate::count(state, rows);
    }
}

// ---- Sorted and different rows ----

/// Keeps a row if it is among the first `keep` in the order so far.
#[inline(never)]
pub(super) fn sort_row<'v, M: Memory>(
    plan: &Plan,
    work: &mut M,
    scope: &Scope<'_, 'v>,
    bump: &mut Bump<'v>,
    keep: Option<u64>,
) -> Result<(), Fault> {
    let mut keys = [Value::Null; SORT_KEYS_MAX];
    for (value, key) in keys.iter_mut().zip(&plan.order) {
        *value = fitted(scope.value(key.node, bump)?, key.kind);
    }
    let keys = &keys[..plan.order.len()];
    let kinds = plan.order.iter().map(|key| key.kind);
    // What is sorted at once in the end needs no place yet, unless only the first few rows are kept.
    let is_placed = !M::SORTS_AT_ONCE || keep.is_some_and(|keep| keep <= PLACED_ROWS_MAX);
    let (mut place, mut high) = (if is_placed { 0 } else { work.ordered() }, work.ordered());
    while place < high {
        let middle = place.midpoint(high);
        let there = load_all(work.record(work.at(middle)), kinds.clone());
        if compare(plan, there, keys.iter().copied()) == Ordering::Greater {
            high = middle;
        } else {
            place = middle + 1;
        }
    }
    let is_enough = is_placed && keep.is_some_and(|keep| work.ordered() as u64 >= keep);
    if is_enough && place == work.ordered() {
        return Ok(());
    }
    let node = plan.order.first().map_or(0, |key| key.node);
    let record = match work.ordered().checked_sub(1).filter(|_| is_enough) {
        Some(last) => {
            let record = work.at(last);
            work.remove(last);
            record
        }
        None => {
            let is_counted_out = work.records() >= M::SORT_ROWS_MAX;
            let refused =
                full(node, is_counted_out, "SORT_ROWS_MAX: more rows to sort than can be kept; add LIMIT");
            if is_counted_out {
                return Err(refused);
            }
            work.push(0).map_err(|_| refused)?
        }
    };
    let keys_stored = keys.iter().zip(&plan.order).map(|(value, key)| (*value, key.kind, key.node));
    store_all(keys_stored, work.record_mut(record))?;
    let outputs_at = kinds.map(place_bytes).sum::<usize>();
    let mut places = work.record_mut(record).get_mut(outputs_at..).unwrap_or_default();
    for output in &plan.outputs {
        let value = fitted(scope.value(output.node, bump)?, output.kind);
        let (place, rest) = places.split_at_mut(place_bytes(output.kind));
        store(value, place).map_err(|_| too_long(output.node))?;
        places = rest;
    }
    work.insert(place, record);
    Ok(())
}

/// Keeps a row if none is equal to it.
#[inline(never)]
pub(super) fn distinct_row<'v, M: Memory>(
    plan: &Plan,
    work: &mut M,
    scope: &Scope<'_, 'v>,
    bump: &mut Bump<'v>,
) -> Result<(), Fault> {
    let mut values = [Value::Null; COLUMNS_MAX];
    let mut hash = HASH_START;
    for (value, output) in values.iter_mut().zip(&plan.outputs) {
        *value = fitted(scope.value(output.node, bump)?, output.kind);
        hash = mix(hash, *value);
    }
    keep(plan, work, hash, &values[..plan.outputs.len()])
}

/// Keeps a row of values that others made, if none is equal to it.
pub(super) fn keep_distinct<M: Memory>(plan: &Plan, work: &mut M, cells: &[Value<'_>]) -> Result<(), Fault> {
    let mut values = [Value::Null; COLUMNS_MAX];
    let mut hash = HASH_START;
    for ((value, output), cell) in values.iter_mut().zip(&plan.outputs).zip(cells) {
        *value = fitted(*cell, output.kind);
        hash = mix(hash, *value);
    }
    keep(plan, work, hash, &values[..plan.outputs.len()])
}

fn keep<M: Memory>(plan: &Plan, work: &mut M, hash: u32, values: &[Value<'_>]) -> Result<(), Fault> {
    let kinds = plan.outputs.iter().map(|output| output.kind);
    if find(work, hash, values, kinds, work.records().saturating_sub(1)).is_some() {
        return Ok(());
    }
    let is_counted_out = work.records() >= M::DISTINCT_ROWS_MAX;
    let refused = full(0, is_counted_out, "DISTINCT_ROWS_MAX: more different rows than can be kept");
    if is_counted_out {
        return Err(refused);
    }
    let record = work.push(hash).map_err(|_| refused)?;
    let record = work.record_mut(record);
    record[..HASH_BYTES].copy_from_slice(&hash.to_le_bytes());
    let outputs = values.iter().zip(&plan.outputs).map(|(value, output)| (*value, output.kind, output.node));
    store_all(outputs, &mut record[HASH_BYTES..])
}

/// The order of two rows by the keys of ORDER BY.
fn compare<'a, 'b>(
    plan: &Plan,
    a: impl Iterator<Item = Value<'a>>,
    b: impl Iterator<Item = Value<'b>>,
) -> Ordering {
    for ((a, b), key) in a.zip(b).zip(&plan.order) {
        let ordering = order(a, b);
        let ordering = if key.descending { ordering.reverse() } else { ordering };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}
