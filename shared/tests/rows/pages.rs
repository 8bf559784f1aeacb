//! Pages: their literal bytes, what fits, and any bytes in their place.

use crate::config;
use proptest::{collection::vec, prelude::*};
use shared::{
    limits::{PAGE_BYTES, PAGE_HEADER_BYTES, PAGE_ROWS_MAX},
    page::{Page, PageError, PageWriter},
    rowcode::RowError,
    schema,
    value::{ColumnType, Value},
};

const COLUMNS: [(&str, ColumnType); 3] =
    [("timestamp", ColumnType::Timestamp), ("celsius", ColumnType::Float32), ("state", ColumnType::Text)];

fn kinds() -> impl Iterator<Item = ColumnType> {
    COLUMNS.into_iter().map(|(_, kind)| kind)
}

/// A page of these rows, and how many of them fitted.
fn page(rows: &[[Value<'_>; 3]]) -> ([u8; PAGE_BYTES], usize) {
    let mut page = [0xA5; PAGE_BYTES];
    let mut writer = PageWriter::new(kinds());
    writer.begin(&mut page, schema::hash(COLUMNS), 41);
    let fitting = rows.iter().take_while(|row| writer.append(&mut page, &row[..]).is_ok()).count();
    assert_eq!(usize::from(writer.row_count()), fitting);
    (page, fitting)
}

#[test]
fn a_page_is_written_and_read_as_it_is_drawn() {
    let rows = [
        [Value::Timestamp(3_600_000_000), Value::Float32(21.53), Value::Text("idle")],
        [Value::Timestamp(3_601_000_120), Value::Float32(21.54), Value::Text("idle")],
        [Value::Timestamp(3_602_000_000), Value::Null, Value::Text("running")],
    ];
    let bytes: &[u8] = &[
        0x5F, 0x6F, 0x0E, 0xBA, 0x03, 0x00, 0x28, 0x01, 0x29, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0xA4, 0x93, 0xD6, 0x00, 0x00, 0x00, 0x00, 0x80, 0x28, 0xB2, 0xD6, 0x00, 0x00, 0x00, 0x00, 0x7F, 0xFF,
        0x20, 0xD6, 0x93, 0xA4, 0x00, 0x7F, 0xFF, 0x4B, 0xFF, 0xF8, 0x64, 0x34, 0x80, 0x04, 0x69, 0x64, 0x6C,
        0x65, 0x7F, 0xFF, 0x14, 0xF4, 0x2B, 0x80, 0x94, 0x3B, 0xF0, 0x07, 0x72, 0x75, 0x6E, 0x6E, 0x69, 0x6E,
        0x67,
    ];
    let (written, fitting) = page(&rows);
    assert_eq!(fitting, 3);
    let read = Page::read(&written).unwrap();
    assert_eq!(read.bytes(), bytes);
    let read = Page::read(bytes).unwrap();
    assert_eq!((read.schema_hash(), read.row_count()), (0xBA0E_6F5F, 3));
    assert_eq!((read.first_row_id(), read.next_row_id()), (41, 44));
    assert_eq!((read.time_min_us(), read.time_max_us()), (3_600_000_000, 3_602_000_000));
    assert_eq!(read.check(kinds()), Ok(()));
    let (mut decoder, mut cells) = (read.rows(kinds()), [Value::Null; 3]);
    for row in &rows {
        assert_eq!(decoder.next_row(&mut cells), Ok(true));
        assert_eq!(cells, *row);
    }
    assert_eq!(decoder.next_row(&mut cells), Ok(false));
}

#[test]
fn a_page_without_rows_is_one() {
    let (bytes, _) = page(&[]);
    let read = Page::read(&bytes).unwrap();
    assert_eq!((read.row_count(), read.first_row_id(), read.next_row_id()), (0, 41, 41));
    assert_eq!(read.bytes().len(), PAGE_HEADER_BYTES);
    assert_eq!(read.check(kinds()), Ok(()));
}

#[test]
fn a_page_takes_no_more_rows_than_one_step_of_a_scan_reads() {
    let row = [Value::Timestamp(0), Value::Null, Value::Null];
    let (bytes, fitting) = page(&vec![row; 2_000]);
    assert_eq!(fitting, usize::from(PAGE_ROWS_MAX));
    assert_eq!(Page::read(&bytes).unwrap().row_count(), PAGE_ROWS_MAX);
}

#[test]
fn a_row_begins_with_a_time_that_does_not_run_back() {
    let (mut page, mut writer) = ([0; PAGE_BYTES], PageWriter::new(kinds()));
    writer.begin(&mut page, 0, 0);
    let row = |time_us| [Value::Timestamp(time_us), Value::Null, Value::Null];
    assert_eq!(writer.append(&mut page, &row(-1)), Err(RowError::Order));
    assert_eq!(writer.append(&mut page, &row(7)), Ok(()));
    let before = page;
    assert_eq!(writer.append(&mut page, &row(6)), Err(RowError::Order));
    assert_eq!(writer.append(&mut page, &[Value::Null; 3]), Err(RowError::Type));
    assert_eq!(writer.append(&mut page, &[]), Err(RowError::Type));
    assert_eq!(writer.append(&mut page, &[Value::Timestamp(8)]), Err(RowError::Width));
    assert_eq!(page, before);
    assert_eq!(writer.append(&mut page, &row(7)), Ok(()));
}

#[test]
fn bytes_that_contradict_themselves_are_not_a_page() {
    let row = [Value::Timestamp(5), Value::Float32(1.5), Value::Text("on")];
    let (good, _) = page(&[row; 4]);
    let good = Page::read(&good).unwrap().bytes().to_vec();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Page::read(&bytes).map(|page| page.check(kinds()))
    };
    assert_eq!(Page::read(&good[..31]).map(|_| ()), Err(PageError::Length));
    assert_eq!(Page::read(&good[..good.len() - 1]).map(|_| ()), Err(PageError::Length));
    assert_eq!(with(5, 2), Err(PageError::Header)); // more rows than a page has
    assert_eq!(with(4, 0), Err(PageError::Header)); // bits without rows
    assert_eq!(with(7, 0xFF), Err(PageError::Header)); // more bits than a page has
    assert_eq!(with(23, 1), Err(PageError::Header)); // the first row after the last
    assert_eq!(with(31, 0x80), Err(PageError::Header)); // later than a time can be
    assert_eq!(with(4, 3), Ok(Err(PageError::Rows))); // fewer rows than bits
    assert_eq!(with(24, 6), Ok(Err(PageError::Rows))); // another time than the last row's
    assert_eq!(with(16, 4), Ok(Err(PageError::Rows))); // another time than the first row's
    assert_eq!(with(0, 1), Ok(Ok(())));
}

proptest! {
    #![proptest_config(config())]

    /// Rows fill a page until one does not fit; the page has exactly those before it.
    #[test]
    fn a_page_returns_what_was_put_into_it(steps in vec((0_i64..5_000_000, -3_000_i32..3_000, 0_u8..12), 0..700)) {
        let texts: Vec<String> = (0..12).map(|text| format!("{text}").repeat(text)).collect();
        let mut time_us = 0;
        let rows: Vec<_> = steps
            .iter()
            .map(|(step_us, scaled, text)| {
                time_us += step_us;
                let text = Value::Text(&texts[usize::from(*text)]);
                [Value::Timestamp(time_us), Value::Float32(*scaled as f32 / 100.0), text]
            })
            .collect();
        let (bytes, fitting) = page(&rows);
        let read = Page::read(&bytes).unwrap();
        prop_assert_eq!(usize::from(read.row_count()), fitting);
        prop_assert!(fitting == rows.len() || read.bytes().len() > PAGE_BYTES - 40);
        prop_assert_eq!(read.check(kinds()), Ok(()));
        let (mut decoder, mut cells) = (read.rows(kinds()), [Value::Null; 3]);
        for row in &rows[..fitting] {
            prop_assert_eq!(decoder.next_row(&mut cells), Ok(true));
            prop_assert_eq!(cells, *row);
        }
    }

    #[test]
    fn any_bytes_are_a_page_or_not(
        head in vec(prop_oneof![any::<u8>(), Just(0), 0_u8..4], PAGE_HEADER_BYTES),
        rows in vec(any::<u8>(), 0..PAGE_BYTES),
        kinds in vec(prop::sample::select(vec![ColumnType::Timestamp, ColumnType::Text, ColumnType::Float64]), 0..9),
    ) {
        let bytes = [head, rows].concat();
        if let Ok(page) = Page::read(&bytes) {
            prop_assert!(bytes.starts_with(page.bytes()));
            prop_assert!(page.time_min_us() <= page.time_max_us());
            prop_assert!(page.row_count() <= PAGE_ROWS_MAX);
            let _ = page.check(kinds);
        }
    }
}
