//! The rows of a link test, checked one by one.

use shared::{link_test, rowcode::RowDecoder, schema, value::Value};

/// Reads test rows and knows which comes next.
#[derive(Debug)]
pub struct RowCheck {
    seed: u32,
    /// Rows that were right so far.
    pub rows: u64,
}

impl RowCheck {
    /// Expects the rows of this seed from the first.
    pub fn new(seed: u32) -> Self {
        Self { seed, rows: 0 }
    }

    /// Reads one batch; an error if any row is not the one that must come.
    pub fn batch(&mut self, count: u16, bytes: &[u8]) -> Result<(), String> {
        let mut reader = RowDecoder::new(schema::kinds(&link_test::COLUMNS), bytes, count);
        let mut cells = [Value::Null; link_test::COLUMNS.len()];
        for _ in 0..count {
            let row = self.rows;
            match reader.next_row(&mut cells) {
                Ok(true) if cells == link_test::row(self.seed, row) => self.rows += 1,
                Ok(true) => return Err(format!("row {row} is not what was sent: {cells:?}")),
                unread => return Err(format!("row {row} cannot be read: {unread:?}")),
            }
        }
        match reader.next_row(&mut cells) {
            Ok(false) => Ok(()),
            _ => Err(format!("a batch has more rows than the {count} it says")),
        }
    }
}
