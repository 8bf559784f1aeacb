//! The bytes of a batch → its rows.

use shared::{
    rowcode::{RowError, RowReader},
    schema::Column,
    value::Value,
};

/// Gives each row of a batch to `each`. An error if the bytes are not `count` rows of these columns.
pub fn decode_rows(
    columns: &[Column<'_>],
    count: u16,
    bytes: &[u8],
    mut each: impl FnMut(&[Value<'_>]),
) -> Result<(), RowError> {
    let mut reader = RowReader::new(columns, bytes);
    let mut cells = heapless::Vec::new();
    for _ in 0..count {
        if !reader.next_row(&mut cells)? {
            return Err(RowError::Malformed);
        }
        each(&cells);
    }
    if reader.next_row(&mut cells)? { Err(RowError::Malformed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::{link_test, rowcode::write_row};

    #[test]
    fn a_batch_has_as_many_rows_as_it_says() {
        let mut bytes = [0; 256];
        let mut used = 0;
        for row in 0..3 {
            used += write_row(&link_test::COLUMNS, &link_test::row(1, row), &mut bytes[used..]).unwrap();
        }
        let decode = |count| {
            let mut rows = 0;
            decode_rows(&link_test::COLUMNS, count, &bytes[..used], |cells| {
                assert_eq!(cells, link_test::row(1, rows));
                rows += 1;
            })
        };
        assert_eq!(decode(3), Ok(()));
        assert_eq!(decode(2), Err(RowError::Malformed));
        assert_eq!(decode(4), Err(RowError::Malformed));
    }
}
