//! The memory of a query on the gateway: large, bounded, and records are found by their hash.

use hashbrown::HashTable;
use shared::engine::{Full, Memory};
use std::cmp::Ordering;

/// Bytes that one query keeps at most: groups, rows to sort, values that must differ.
pub const QUERY_BYTES_MAX: usize = 64 << 20;
/// What a record or a value takes beside its bytes: its place among the hashes and in the answer.
const ENTRY_BYTES: usize = 24;

/// The memory of one query on the gateway. Grows up to [`QUERY_BYTES_MAX`].
#[derive(Debug, Default)]
pub struct LargeMemory {
    records: Rows,
    values: Rows,
    /// Records in the order of the answer.
    order: Vec<u32>,
}

/// Rows of one size that are found by a hash.
#[derive(Debug, Default)]
struct Rows {
    bytes: Vec<u8>,
    row_bytes: usize,
    count: usize,
    /// The hash and the number of each row.
    by_hash: HashTable<(u32, u32)>,
}

impl Rows {
    fn reset(&mut self, row_bytes: usize) {
        (self.row_bytes, self.count) = (row_bytes, 0);
        self.bytes.clear();
        self.by_hash.clear();
    }

    fn bytes_used(&self) -> usize {
        self.bytes.len() + self.count * ENTRY_BYTES
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = index * self.row_bytes;
        self.bytes.get(start..start + self.row_bytes).unwrap_or_default()
    }

    fn get_mut(&mut self, index: usize) -> &mut [u8] {
        let start = index * self.row_bytes;
        self.bytes.get_mut(start..start + self.row_bytes).unwrap_or_default()
    }

    fn push(&mut self, hash: u32) -> Result<usize, Full> {
        let index = self.count;
        let number = u32::try_from(index).map_err(|_| Full)?;
        self.bytes.resize(self.bytes.len() + self.row_bytes, 0);
        self.by_hash.insert_unique(spread(hash), (hash, number), |(hash, _)| spread(*hash));
        self.count += 1;
        Ok(index)
    }

    fn find(&self, hash: u32, is_it: impl Fn(&[u8]) -> bool) -> Option<usize> {
        let is_wanted = |(there, index): &(u32, u32)| *there == hash && is_it(self.get(*index as usize));
        self.by_hash.find(spread(hash), is_wanted).map(|(_, index)| *index as usize)
    }
}

/// The table looks at the highest and the lowest bits; a record's hash has its entropy anywhere.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl LargeMemory {
    fn has_room(&self, bytes: usize) -> bool {
        self.records.bytes_used() + self.values.bytes_used() + bytes + ENTRY_BYTES <= QUERY_BYTES_MAX
    }
}

impl Memory for LargeMemory {
    // The bytes are what bounds it.
    const GROUPS_MAX: usize = u32::MAX as usize;
    const SORT_ROWS_MAX: usize = u32::MAX as usize;
    const DISTINCT_ROWS_MAX: usize = u32::MAX as usize;
    const DISTINCT_VALUES_MAX: usize = u32::MAX as usize;
    const SORTS_AT_ONCE: bool = true;

    fn reset(&mut self, record_bytes: usize, value_bytes: usize) {
        self.records.reset(record_bytes);
        self.values.reset(value_bytes);
        self.order.clear();
    }

    fn records(&self) -> usize {
        self.records.count
    }

    fn push(&mut self, hash: u32) -> Result<usize, Full> {
        if self.has_room(self.records.row_bytes) { self.records.push(hash) } else { Err(Full) }
    }

    fn record(&self, index: usize) -> &[u8] {
        self.records.get(index)
    }

    fn record_mut(&mut self, index: usize) -> &mut [u8] {
        self.records.get_mut(index)
    }

    fn find(&self, hash: u32, is_it: impl Fn(&[u8]) -> bool) -> Option<usize> {
        self.records.find(hash, is_it)
    }

    fn values(&self) -> usize {
        self.values.count
    }

    fn value(&self, index: usize) -> &[u8] {
        self.values.get(index)
    }

    fn has_value(&self, hash: u32, is_it: impl Fn(&[u8]) -> bool) -> bool {
        self.values.find(hash, is_it).is_some()
    }

    fn push_value(&mut self, hash: u32) -> Result<&mut [u8], Full> {
        if !self.has_room(self.values.row_bytes) {
            return Err(Full);
        }
        let index = self.values.push(hash)?;
        Ok(self.values.get_mut(index))
    }

    fn ordered(&self) -> usize {
        self.order.len()
    }

    fn at(&self, place: usize) -> usize {
        self.order.get(place).map_or(0, |record| *record as usize)
    }

    fn insert(&mut self, place: usize, record: usize) {
        self.order.insert(place.min(self.order.len()), record as u32); // as `push` counted it
    }

    fn remove(&mut self, place: usize) {
        self.order.remove(place);
    }

    fn sort(&mut self, mut compare: impl FnMut(&Self, usize, usize) -> Ordering) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_by(|a, b| compare(self, *a as usize, *b as usize));
        self.order = order;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_hash_and_their_bytes() {
        let mut memory = LargeMemory::default();
        memory.reset(4, 0);
        for value in 0..10_000_u32 {
            let index = memory.push(value % 100).unwrap();
            memory.record_mut(index).copy_from_slice(&value.to_le_bytes());
        }
        for value in (0..10_000_u32).step_by(77) {
            let found = memory.find(value % 100, |record| record == value.to_le_bytes());
            assert_eq!(found, Some(value as usize));
        }
        assert_eq!(memory.find(5, |record| record == 6_u32.to_le_bytes()), None);
    }

    #[test]
    fn it_is_full_at_its_bound() {
        let mut memory = LargeMemory::default();
        memory.reset(1 << 20, 1 << 20);
        let mut pushed = 0;
        while memory.push(pushed).is_ok() {
            pushed += 1;
        }
        assert_eq!(pushed as usize, QUERY_BYTES_MAX / (1 << 20) - 1);
        assert_eq!(memory.push_value(0), Err(Full));
    }
}
