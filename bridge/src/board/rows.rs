//! The bytes of a batch → its rows.

use shared::{
    limits::COLUMNS_MAX,
    rowcode::{RowDecoder, RowError},
    schema::{self, Column},
    value::Value,
};

/// Gives each row of a batch to `each`. An error if the bytes are not `count` rows of these columns.
pub fn decode_rows(
    columns: &[Column<'_>],
    count: u16,
    bytes: &[u8],
    mut each: impl FnMut(&[Value<'_>]),
) -> Result<(), RowError> {
    let mut rows = RowDecoder::new(schema::kinds(columns), bytes, count);
    let mut cells = [Value::Null; COLUMNS_MAX];
    while rows.next_row(&mut cells)? {
        each(&cells[..columns.len()]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::{link_test, rowcode::RowEncoder};

    #[test]
    fn a_batch_has_as_many_rows_as_it_says() {
        let mut bytes = [0; 256];
        let mut bits = 0;
        let mut encoder = RowEncoder::new(schema::kinds(&link_test::COLUMNS));
        for row in 0..3 {
            encoder.append(&link_test::row(1, row), &mut bytes, &mut bits).unwrap();
        }
        let used = bits.div_ceil(8);
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
