//! Any rows in every format: JSON is JSON and says what the cells say; a table's lines are of one width.

use proptest::{collection::vec, prelude::*};
use shared::{
    command::{Extract, Format},
    format::{RowsFormat, Shape, Statistics},
    schema::Column,
    value::{ColumnType, Value},
};

const SHAPES: [Shape; 9] = [
    Shape::Databases,
    Shape::Tables,
    Shape::Columns,
    Shape::RowsCount,
    Shape::Blockchain(None),
    Shape::Blockchain(Some(Extract::Name)),
    Shape::Processes,
    Shape::Explain,
    Shape::Query { statistics: true },
];

/// A cell that owns its text.
#[derive(Clone, Debug)]
enum Cell {
    Value(Value<'static>),
    Text(String),
}

impl Cell {
    fn value(&self) -> Value<'_> {
        match self {
            Cell::Value(value) => *value,
            Cell::Text(text) => Value::Text(text),
        }
    }
}

fn cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        Just(Cell::Value(Value::Null)),
        any::<bool>().prop_map(|v| Cell::Value(Value::Bool(v))),
        any::<i64>().prop_map(|v| Cell::Value(Value::Int(v))),
        any::<u32>().prop_map(|bits| Cell::Value(Value::Float32(f32::from_bits(bits)))),
        any::<u64>().prop_map(|bits| Cell::Value(Value::Float64(f64::from_bits(bits)))),
        any::<i64>().prop_map(|v| Cell::Value(Value::Timestamp(v))),
        vec(any::<char>(), 0..8).prop_map(|text| Cell::Text(text.into_iter().collect())),
    ]
}

fn written(shape: Shape, format: Format, columns: &[Column<'_>], rows: &[Vec<Cell>]) -> Option<String> {
    let mut writer = RowsFormat::new(shape, format, columns);
    let mut text = String::new();
    let rows: Vec<Vec<Value<'_>>> = rows.iter().map(|row| row.iter().map(Cell::value).collect()).collect();
    rows.iter().for_each(|row| writer.measure(row));
    writer.begin(&mut text).unwrap();
    for row in &rows {
        writer.row(row, &mut text).ok()?; // `extract` takes no more than it can sort
    }
    writer.end(&Statistics::default(), &mut text).unwrap();
    Some(text)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_rows_are_json_or_a_table(
        names in vec("[a-z\"]{0,6}", 1..5),
        mut rows in vec(vec(cell(), 4), 0..6),
    ) {
        rows.iter_mut().for_each(|row| row.truncate(names.len()));
        let columns: Vec<_> =
            names.iter().map(|name| Column { name, kind: ColumnType::Text, unit: "" }).collect();
        for shape in SHAPES {
            for format in [Format::Mcp, Format::Json] {
                if let Some(text) = written(shape, format, &columns, &rows) {
                    let read = serde_json::from_str::<serde_json::Value>(&text);
                    prop_assert!(read.is_ok(), "{shape:?} {format:?}: {text} {read:?}");
                }
            }
            if let Some(text) = written(shape, Format::Table, &columns, &rows) {
                let widths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
                prop_assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
            }
        }
    }

    #[test]
    fn integers_and_texts_of_a_query_read_back(int in any::<i64>(), chars in vec(any::<char>(), 0..20)) {
        let text: String = chars.into_iter().collect();
        let columns = [("i", ColumnType::Int), ("t", ColumnType::Text)]
            .map(|(name, kind)| Column { name, kind, unit: "" });
        let rows = [vec![Cell::Value(Value::Int(int)), Cell::Text(text.clone())]];
        let mcp = written(Shape::Query { statistics: true }, Format::Mcp, &columns, &rows).unwrap();
        let read: serde_json::Value = serde_json::from_str(&mcp).unwrap();
        prop_assert_eq!(read[0]["i"].as_i64(), Some(int));
        prop_assert_eq!(read[0]["t"].as_str(), Some(text.as_str()));
    }
}
