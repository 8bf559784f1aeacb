//! The memory of a query: records of one size, values already seen, and the order of the answer. A board's is fixed:
//!
//! ```text
//!   ┌──────────┬──────────┬─────┬┄┄┄┄┄┄┄┄┬─────────┬─────────┐
//!   │ record 0 │ record 1 │ …   │  free  │ value 1 │ value 0 │
//!   └──────────┴──────────┴─────┴┄┄┄┄┄┄┄┄┴─────────┴─────────┘
//! ```
//!
//! A gateway brings its own [`Memory`], which is large and finds a record by its hash.

use crate::limits::{DISTINCT_ROWS_MAX, DISTINCT_VALUES_MAX, GROUPS_MAX, SORT_ROWS_MAX};
use core::cmp::Ordering;

/// There is no room for another record or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Where a query keeps what it has gathered. Records and values have numbers from 0 on and stay where they are.
pub trait Memory {
    /// Groups at most.
    const GROUPS_MAX: usize;
    /// Rows that are sorted at most.
    const SORT_ROWS_MAX: usize;
    /// Different rows at most.
    const DISTINCT_ROWS_MAX: usize;
    /// Values already seen at most.
    const DISTINCT_VALUES_MAX: usize;
    /// Whether records are put in order all at once; otherwise one after the other, each in bounded time.
    const SORTS_AT_ONCE: bool;

    /// Empty, for records and values of these sizes.
    fn reset(&mut self, record_bytes: usize, value_bytes: usize);

    /// How many records there are.
    fn records(&self) -> usize;

    /// A new record of zeros that is found by this hash; returns its number.
    fn push(&mut self, hash: u32) -> Result<usize, Full>;

    /// The bytes of a record.
    fn record(&self, index: usize) -> &[u8];

    /// The same, to be changed.
    fn record_mut(&mut self, index: usize) -> &mut [u8];

    /// The record of this hash that is the one; others may be asked about, too.
    fn find(&self, hash: u32, is_it: impl Fn(&[u8]) -> bool) -> Option<usize>;

    /// How many values there are.
    fn values(&self) -> usize;

    /// The bytes of a value.
    fn value(&self, index: usize) -> &[u8];

    /// Whether there is a value of this hash that is the one; others may be asked about, too.
    fn has_value(&self, hash: u32, is_it: impl Fn(&[u8]) -> bool) -> bool;

    /// A new value's bytes, found by this hash.
    fn push_value(&mut self, hash: u32) -> Result<&mut [u8], Full>;

    /// Records in the order of the answer.
    fn ordered(&self) -> usize;

    /// The record at a place of the answer.
    fn at(&self, place: usize) -> usize;

    /// Puts a record at a place of the answer; those from there on move up.
    fn insert(&mut self, place: usize, record: usize);

    /// Takes the record at a place out of the answer.
    fn remove(&mut self, place: usize);

    /// Sorts the answer; records that compare equal stay as they are. Only where [`SORTS_AT_ONCE`](Self::SORTS_AT_ONCE).
    fn sort(&mut self, compare: impl FnMut(&Self, usize, usize) -> Ordering);
}

/// Records of a board's query at most.
const RECORDS_MAX: usize = max(GROUPS_MAX, max(SORT_ROWS_MAX, DISTINCT_ROWS_MAX));

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// The memory of one query on a board.
#[derive(Clone, Debug)]
pub struct Workspace<const BYTES: usize> {
    bytes: [u8; BYTES],
    record_bytes: usize,
    records: usize,
    value_bytes: usize,
    values: usize,
    /// Records in the order of the answer.
    order: heapless::Vec<u16, RECORDS_MAX>,
}

impl<const BYTES: usize> Workspace<BYTES> {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; BYTES],
            record_bytes: 0,
            records: 0,
            value_bytes: 0,
            values: 0,
            order: heapless::Vec::new(),
        }
    }

    fn free_bytes(&self) -> usize {
        BYTES.saturating_sub(self.records * self.record_bytes + self.values * self.value_bytes)
    }
}

impl<const BYTES: usize> Default for Workspace<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize> Memory for Workspace<BYTES> {
    const GROUPS_MAX: usize = GROUPS_MAX;
    const SORT_ROWS_MAX: usize = SORT_ROWS_MAX;
    const DISTINCT_ROWS_MAX: usize = DISTINCT_ROWS_MAX;
    const DISTINCT_VALUES_MAX: usize = DISTINCT_VALUES_MAX;
    const SORTS_AT_ONCE: bool = false;

    fn reset(&mut self, record_bytes: usize, value_bytes: usize) {
        (self.record_bytes, self.records) = (record_bytes, 0);
        (self.value_bytes, self.values) = (value_bytes, 0);
        self.order.clear();
    }

    fn records(&self) -> usize {
        self.records
    }

    fn push(&mut self, _: u32) -> Result<usize, Full> {
        if self.records == RECORDS_MAX || self.free_bytes() < self.record_bytes {
            return Err(Full);
        }
        self.records += 1;
        self.record_mut(self.records - 1).fill(0);
        Ok(self.records - 1)
    }

    fn record(&self, index: usize) -> &[u8] {
        let start = index * self.record_bytes;
        self.bytes.get(start..start + self.record_bytes).unwrap_or_default()
    }

    fn record_mut(&mut self, index: usize) -> &mut [u8] {
        let start = index * self.record_bytes;
        self.bytes.get_mut(start..start + self.record_bytes).unwrap_or_default()
    }

    fn find(&self, _: u32, is_it: impl Fn(&[u8]) -> bool) -> Option<usize> {
        (0..self.records).find(|index| is_it(self.record(*index)))
    }

    fn values(&self) -> usize {
        self.values
    }

    fn value(&self, index: usize) -> &[u8] {
        let start = BYTES.saturating_sub((index + 1) * self.value_bytes);
        self.bytes.get(start..start + self.value_bytes).unwrap_or_default()
    }

    fn has_value(&self, _: u32, is_it: impl Fn(&[u8]) -> bool) -> bool {
        (0..self.values).any(|index| is_it(self.value(index)))
    }

    fn push_value(&mut self, _: u32) -> Result<&mut [u8], Full> {
        if self.values == DISTINCT_VALUES_MAX || self.free_bytes() < self.value_bytes {
            return Err(Full);
        }
        self.values += 1;
        let start = BYTES.saturating_sub(self.values * self.value_bytes);
        Ok(self.bytes.get_mut(start..start + self.value_bytes).unwrap_or_default())
    }

    fn ordered(&self) -> usize {
        self.order.len()
    }

    fn at(&self, place: usize) -> usize {
        self.order.get(place).copied().map_or(0, usize::from)
    }

    fn insert(&mut self, place: usize, record: usize) {
        let _ = self.order.insert(place, record as u16); // there is room for every record
    }

    fn remove(&mut self, place: usize) {
        self.order.remove(place);
    }

    fn sort(&mut self, _: impl FnMut(&Self, usize, usize) -> Ordering) {}
}
