//! From records to the answer: their order, and the rows they make.

use super::{HASH_BYTES, compare, load_all};
use crate::{
    engine::{
        aggregate,
        eval::{Fault, Scope},
        number::order,
        plan::{Key, Mode, Plan},
        query::fitted,
        record::place_bytes,
        workspace::Memory,
    },
    limits::{AGGREGATES_MAX, COLUMNS_MAX, EXPRESSION_TEXT_BYTES_MAX, GROUP_KEYS_MAX, SORT_KEYS_MAX},
    sql::tree::Select,
    value::Value,
};
use core::cmp::Ordering;

/// Values that the expressions of a group or of a different row may use.
const SLOTS_MAX: usize =
    if COLUMNS_MAX > GROUP_KEYS_MAX + AGGREGATES_MAX { COLUMNS_MAX } else { GROUP_KEYS_MAX + AGGREGATES_MAX };

/// Keys that a record begins with.
const STORED_KEYS_MAX: usize = if SORT_KEYS_MAX > GROUP_KEYS_MAX { SORT_KEYS_MAX } else { GROUP_KEYS_MAX };

/// Where a record stands in the answer, and the place of the one that gives the same row later and goes.
pub(in crate::engine) struct Placed {
    pub(in crate::engine) at: usize,
    pub(in crate::engine) instead_of: Option<usize>,
}

/// Puts records in order and makes rows of them.
pub(in crate::engine) struct Sorted<'s> {
    pub(in crate::engine) select: &'s Select,
    pub(in crate::engine) plan: &'s Plan,
    pub(in crate::engine) text: &'s str,
}

impl Sorted<'_> {
    /// Whether the order of records does not depend on which other rows there are.
    pub(in crate::engine) fn can_arrange(plan: &Plan, select: &Select) -> bool {
        plan.mode != Mode::Group || !select.distinct
    }

    /// Puts all records in their order.
    pub(in crate::engine) fn arrange<M: Memory>(&self, work: &mut M) -> Result<(), Fault> {
        if self.plan.mode != Mode::Sort {
            for record in 0..work.records() {
                if self.select.having.is_none() || self.has(work, record)? {
                    work.insert(work.ordered(), record);
                }
            }
        }
        let mut fault = None;
        if self.plan.mode != Mode::Distinct || !self.plan.order.is_empty() {
            work.sort(|work, a, b| {
                self.compare_records(work, a, b).unwrap_or_else(|found| {
                    fault = Some(found);
                    Ordering::Equal
                })
            });
        }
        fault.map_or(Ok(()), Err)
    }

    /// Whether HAVING lets a record through.
    fn has<M: Memory>(&self, work: &M, record: usize) -> Result<bool, Fault> {
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        let slots = self.slots(work, record)?;
        self.select.having.map_or(Ok(true), |having| self.scope(&slots).holds(having, &mut &mut scratch[..]))
    }

    fn compare_records<M: Memory>(&self, work: &M, a: usize, b: usize) -> Result<Ordering, Fault> {
        let Plan { mode, order: keys, keys: grouped_by, .. } = self.plan;
        let stored = |record, at, keys: &[Key]| {
            let places = work.record(record).get(at..).unwrap_or_default();
            let kinds = keys.iter().map(|key| key.kind).collect::<heapless::Vec<_, STORED_KEYS_MAX>>();
            load_all(places, kinds.into_iter())
        };
        if *mode == Mode::Sort {
            return Ok(compare(self.plan, stored(a, 0, keys), stored(b, 0, keys)));
        }
        let mut ordering = Ordering::Equal;
        if !keys.is_empty() {
            let (slots_a, slots_b) = (self.slots(work, a)?, self.slots(work, b)?);
            let (mut scratch_a, mut scratch_b) =
                ([0; EXPRESSION_TEXT_BYTES_MAX], [0; EXPRESSION_TEXT_BYTES_MAX]);
            let (mut bump_a, mut bump_b) = (&mut scratch_a[..], &mut scratch_b[..]);
            let mut values = [[Value::Null; SORT_KEYS_MAX]; 2];
            for (place, key) in keys.iter().enumerate() {
                values[0][place] = self.scope(&slots_a).eval(key.node, &mut bump_a)?;
                values[1][place] = self.scope(&slots_b).eval(key.node, &mut bump_b)?;
            }
            let [a, b] = values;
            ordering = compare(self.plan, a.into_iter(), b.into_iter());
        }
        Ok(ordering.then_with(|| {
            let (a, b) = (stored(a, HASH_BYTES, grouped_by), stored(b, HASH_BYTES, grouped_by));
            a.zip(b).map(|(a, b)| order(a, b)).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
        }))
    }

    /// Where a record stands among those that are in order already; none if it is left out.
    pub(in crate::engine) fn place<M: Memory>(
        &self,
        work: &M,
        record: usize,
    ) -> Result<Option<Placed>, Fault> {
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        let mut bump = &mut scratch[..];
        let slots = self.slots(work, record)?;
        let scope = self.scope(&slots);
        if let Some(having) = self.select.having
            && !scope.holds(having, &mut bump)?
        {
            return Ok(None);
        }
        if self.plan.mode == Mode::Distinct && self.plan.order.is_empty() {
            return Ok(Some(Placed { at: work.ordered(), instead_of: None })); // in the order in which they came
        }
        let mut keys = [Value::Null; SORT_KEYS_MAX];
        for (value, key) in keys.iter_mut().zip(&self.plan.order) {
            *value = scope.eval(key.node, &mut bump)?;
        }
        let (mut low, mut high) = (0, work.ordered());
        while low < high {
            let middle = (low + high) / 2;
            let there = work.at(middle);
            if self.is_after(work, there, &keys, &slots)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        if self.plan.mode == Mode::Group
            && self.select.distinct
            && let Some(same) = self.repeated(work, record)?
        {
            return Ok((low <= same).then_some(Placed { at: low, instead_of: Some(same) }));
        }
        Ok(Some(Placed { at: low, instead_of: None }))
    }

    /// Whether a record comes after one with these keys; groups that tie are ordered by what they are grouped by.
    fn is_after<M: Memory>(
        &self,
        work: &M,
        there: usize,
        keys: &[Value<'_>],
        slots: &[Value<'_>],
    ) -> Result<bool, Fault> {
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        let mut bump = &mut scratch[..];
        let slots_there = self.slots(work, there)?;
        let scope = self.scope(&slots_there);
        let mut keys_there = [Value::Null; SORT_KEYS_MAX];
        for (value, key) in keys_there.iter_mut().zip(&self.plan.order) {
            *value = scope.eval(key.node, &mut bump)?;
        }
        let by_order = compare(self.plan, keys_there.iter().copied(), keys.iter().copied());
        let grouped_by = slots_there.iter().zip(slots).take(self.plan.keys.len());
        let by_keys = grouped_by.map(|(a, b)| order(*a, *b)).find(|ordering| ordering.is_ne());
        Ok(by_order.then(by_keys.unwrap_or(Ordering::Equal)) == Ordering::Greater)
    }

    /// The place of a group that was kept and gives the same row.
    fn repeated<M: Memory>(&self, work: &M, record: usize) -> Result<Option<usize>, Fault> {
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        let slots = self.slots(work, record)?;
        let mut bump = &mut scratch[..];
        let mut row = [Value::Null; COLUMNS_MAX];
        for (cell, output) in row.iter_mut().zip(&self.plan.outputs) {
            *cell = fitted(self.scope(&slots).eval(output.node, &mut bump)?, output.kind);
        }
        for place in 0..work.ordered() {
            let mut is_same = true;
            self.row(work, work.at(place), &mut |cells| {
                is_same = cells.iter().zip(&row).all(|(a, b)| order(*a, *b) == Ordering::Equal);
            })?;
            if is_same {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Makes the row of a record and gives it away.
    pub(in crate::engine) fn row<M: Memory>(
        &self,
        work: &M,
        record: usize,
        give: &mut dyn FnMut(&[Value<'_>]),
    ) -> Result<(), Fault> {
        let mut row = [Value::Null; COLUMNS_MAX];
        let outputs = &self.plan.outputs;
        if self.plan.mode == Mode::Group {
            let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
            let mut bump = &mut scratch[..];
            let slots = self.slots(work, record)?;
            for (cell, output) in row.iter_mut().zip(outputs) {
                *cell = fitted(self.scope(&slots).eval(output.node, &mut bump)?, output.kind);
            }
            give(&row[..outputs.len()]);
            return Ok(());
        }
        let at = match self.plan.mode {
            Mode::Sort => self.plan.order.iter().map(|key| place_bytes(key.kind)).sum(),
            _ => HASH_BYTES,
        };
        let places = work.record(record).get(at..).unwrap_or_default();
        let values = load_all(places, outputs.iter().map(|output| output.kind));
        row.iter_mut().zip(values).for_each(|(cell, value)| *cell = value);
        give(&row[..outputs.len()]);
        Ok(())
    }

    fn scope<'v>(&'v self, slots: &'v [Value<'v>]) -> Scope<'v, 'v> {
        Scope { tree: &self.select.tree, text: self.text, cells: &[], slots }
    }

    /// The keys and aggregates of a group, or the columns of a different row.
    fn slots<'w, M: Memory>(&self, work: &'w M, record: usize) -> Result<[Value<'w>; SLOTS_MAX], Fault> {
        let mut slots = [Value::Null; SLOTS_MAX];
        let places = work.record(record).get(HASH_BYTES..).unwrap_or_default();
        if self.plan.mode != Mode::Group {
            let values = load_all(places, self.plan.outputs.iter().map(|output| output.kind));
            slots.iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
            return Ok(slots);
        }
        let keys = load_all(places, self.plan.keys.iter().map(|key| key.kind));
        slots.iter_mut().zip(keys).for_each(|(slot, value)| *slot = value);
        let mut at = self.plan.keys.iter().map(|key| place_bytes(key.kind)).sum::<usize>();
        for (slot, used) in slots.iter_mut().skip(self.plan.keys.len()).zip(&self.plan.aggregates) {
            let bytes = aggregate::state_bytes(used);
            let state = places.get(at..at + bytes).unwrap_or_default();
            *slot = aggregate::finish(used.aggregate, state).map_err(|fault| fault.at(used.node))?;
            at += bytes;
        }
        Ok(slots)
    }
}
