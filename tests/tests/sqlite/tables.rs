//! Tables for statements: rows in pages or packed, cut into boards and epochs; and a whole answer.

use picolake::{
    fault::Fault,
    query::{
        Context, OwnedColumn,
        sqlite::{
            Beyond, Cell, PACKED_BYTES_MAX, PageBytes, PagePacker, Row, Source, SourceRows, TableRows, run,
        },
    },
};
use shared::{
    clock::UtcClock,
    engine::PageColumn,
    limits::PAGE_BYTES,
    page::{Page, PageWriter},
    rowcode::RowError,
    schema,
    value::{ColumnType, Value},
};

/// What `now()` is.
pub(crate) const NOW_US: i64 = 1_795_000_000_000_000;

/// One row: its time in UTC first.
pub(crate) type Cells<'v> = Vec<Value<'v>>;

pub(crate) fn columns(list: &[(&str, ColumnType)]) -> Vec<OwnedColumn> {
    let column = |(name, kind): &(&str, ColumnType)| OwnedColumn {
        name: (*name).into(),
        kind: *kind,
        unit: String::new(),
    };
    list.iter().map(column).collect()
}

/// Rows as a board's pages have them. The board was started at its first row.
pub(crate) fn pages(
    board: &str,
    epoch: u64,
    first: u64,
    columns: &[OwnedColumn],
    rows: &[Cells<'_>],
) -> Source {
    let boot_us = match rows.first().map(|row| row[0]) {
        Some(Value::Timestamp(us)) => us,
        _ => 0,
    };
    let mut clock = UtcClock::default();
    clock.set(0, boot_us);
    let hash = schema::hash(columns.iter().map(|column| (column.name.as_str(), column.kind)));
    let mut writer = PageWriter::new(columns.iter().map(|column| column.kind));
    let mut made: Vec<PageBytes> = Vec::new();
    let mut page = [0; PAGE_BYTES];
    let keep = |page: &[u8]| PageBytes::from(Page::read(page).expect("a page that was written").bytes());
    for (row_id, row) in (first..).zip(rows) {
        let mut cells = row.clone();
        if let Value::Timestamp(us) = &mut cells[0] {
            *us -= boot_us;
        }
        if row_id == first {
            writer.begin(&mut page, hash, row_id);
        }
        match writer.append(&mut page, &cells) {
            Ok(()) => {}
            Err(RowError::Full) => {
                made.push(keep(&page));
                writer.begin(&mut page, hash, row_id);
                writer.append(&mut page, &cells).expect("a row fits an empty page");
            }
            Err(error) => panic!("{row:?}: {error:?}"),
        }
    }
    if !rows.is_empty() {
        made.push(keep(&page));
    }
    let place = |(index, column): (usize, &OwnedColumn)| PageColumn {
        kind: column.kind,
        column: index as u8,
        to: column.kind,
    };
    let layout = columns.iter().enumerate().map(place).collect();
    let rows = first..first + rows.len() as u64;
    let rows = SourceRows::Pages { reader: Box::new(made), clock, layout, rows };
    Source { board: board.into(), epoch, rows }
}

/// The same rows as if they had been fetched.
pub(crate) fn packed(
    board: &str,
    epoch: u64,
    first: u64,
    columns: &[OwnedColumn],
    rows: &[Cells<'_>],
) -> Source {
    let kinds: Vec<(u8, ColumnType)> =
        columns.iter().enumerate().map(|(index, column)| (index as u8, column.kind)).collect();
    let mut packer = PagePacker::new(&kinds, PACKED_BYTES_MAX).expect("so many columns");
    for (row_id, row) in (first..).zip(rows) {
        packer.push(row_id, row).expect("a row of these columns");
    }
    let rows = SourceRows::Packed(packer.finish().expect("not too many rows"));
    Source { board: board.into(), epoch, rows }
}

/// The whole answer.
pub(crate) async fn ask(
    sql: &str,
    tables: impl Fn(&str) -> Option<TableRows>,
    context: &Context,
) -> Result<(Vec<OwnedColumn>, Vec<Row>), Fault> {
    let beyond = Beyond::parse(sql, NOW_US)?;
    let read: Vec<TableRows> = beyond.tables().iter().map_while(|table| tables(&table.name)).collect();
    let mut answer = run(beyond, read, context).await?;
    let mut rows = Vec::new();
    while let Some(batch) = answer.next().await? {
        assert!(!batch.is_empty() && batch.len() <= 100);
        rows.extend(batch);
    }
    Ok((answer.columns().to_vec(), rows))
}

/// A row as JSON, as the formatter writes it.
pub(crate) fn json(row: &[Cell]) -> String {
    let mut text = String::from("[");
    for (index, cell) in row.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "," });
        shared::format::write_json_value(&cell.value(), &mut text).expect("a text takes all");
    }
    text + "]"
}
