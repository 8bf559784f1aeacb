//! The fixed memory of a query: records of one size from the front, values already seen from the back.
//!
//! ```text
//!   ┌──────────┬──────────┬─────┬┄┄┄┄┄┄┄┄┬─────────┬─────────┐
//!   │ record 0 │ record 1 │ …   │  free  │ value 1 │ value 0 │
//!   └──────────┴──────────┴─────┴┄┄┄┄┄┄┄┄┴─────────┴─────────┘
//! ```

use crate::limits::{DISTINCT_ROWS_MAX, GROUPS_MAX, SORT_ROWS_MAX};

/// Records of a query at most.
pub(super) const RECORDS_MAX: usize = max(GROUPS_MAX, max(SORT_ROWS_MAX, DISTINCT_ROWS_MAX));

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// There is no room for another record or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// The memory of one query.
#[derive(Clone, Debug)]
pub(super) struct Workspace<const BYTES: usize> {
    bytes: [u8; BYTES],
    record_bytes: usize,
    records: usize,
    value_bytes: usize,
    values: usize,
    /// Records in the order of the answer.
    pub(super) order: heapless::Vec<u16, RECORDS_MAX>,
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

    /// Empty, for records and values of these sizes.
    pub(super) fn reset(&mut self, record_bytes: usize, value_bytes: usize) {
        (self.record_bytes, self.records) = (record_bytes, 0);
        (self.value_bytes, self.values) = (value_bytes, 0);
        self.order.clear();
    }

    pub(super) fn records(&self) -> usize {
        self.records
    }

    pub(super) fn values(&self) -> usize {
        self.values
    }

    fn free_bytes(&self) -> usize {
        BYTES.saturating_sub(self.records * self.record_bytes + self.values * self.value_bytes)
    }

    /// A new record of zeros; returns its number.
    pub(super) fn push(&mut self) -> Result<usize, Full> {
        if self.records == RECORDS_MAX || self.free_bytes() < self.record_bytes {
            return Err(Full);
        }
        self.records += 1;
        self.record_mut(self.records - 1).fill(0);
        Ok(self.records - 1)
    }

    pub(super) fn record(&self, index: usize) -> &[u8] {
        let start = index * self.record_bytes;
        self.bytes.get(start..start + self.record_bytes).unwrap_or_default()
    }

    pub(super) fn record_mut(&mut self, index: usize) -> &mut [u8] {
        let start = index * self.record_bytes;
        self.bytes.get_mut(start..start + self.record_bytes).unwrap_or_default()
    }

    pub(super) fn value(&self, index: usize) -> &[u8] {
        let start = BYTES.saturating_sub((index + 1) * self.value_bytes);
        self.bytes.get(start..start + self.value_bytes).unwrap_or_default()
    }

    /// A new value's bytes.
    pub(super) fn push_value(&mut self, values_max: usize) -> Result<&mut [u8], Full> {
        if self.values == values_max || self.free_bytes() < self.value_bytes {
            return Err(Full);
        }
        self.values += 1;
        let start = BYTES.saturating_sub(self.values * self.value_bytes);
        Ok(self.bytes.get_mut(start..start + self.value_bytes).unwrap_or_default())
    }
}
