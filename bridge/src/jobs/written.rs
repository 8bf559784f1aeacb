//! The list of jobs as text, in each format. Knows no job's work.

use super::Jobs;
use serde_json::{Value, json};
use shared::{
    command::Format,
    format::{RowsFormat, Shape, Statistics},
    schema::Column,
    value::{ColumnType, Value as Cell},
};

/// What a table shows of a job.
const COLUMNS: [(&str, ColumnType); 7] = [
    ("job", ColumnType::Text),
    ("state", ColumnType::Text),
    ("file", ColumnType::Text),
    ("rows", ColumnType::Int),
    ("bytes", ColumnType::Int),
    ("boards_done", ColumnType::Int),
    ("boards", ColumnType::Int),
];

impl Jobs {
    /// Every job, the newest last.
    pub(crate) fn written(&self, format: Format) -> String {
        let list = self.list();
        match format {
            Format::Mcp => list.to_string(),
            Format::Json => json!({"Jobs": list}).to_string(),
            Format::Table => table(list.as_array().map_or(&[], Vec::as_slice)),
        }
    }
}

fn table(jobs: &[Value]) -> String {
    let columns = COLUMNS.map(|(name, kind)| Column { name, kind, unit: "" });
    let cells: Vec<[Cell<'_>; COLUMNS.len()]> = jobs
        .iter()
        .map(|job| {
            COLUMNS.map(|(name, _)| match &job[name] {
                Value::String(text) => Cell::Text(text),
                number => number.as_i64().map_or(Cell::Null, Cell::Int),
            })
        })
        .collect();
    let mut writer = RowsFormat::new(Shape::Query { statistics: false }, Format::Table, &columns);
    let mut text = String::new();
    cells.iter().for_each(|row| writer.measure(row));
    let mut written = writer.begin(&mut text);
    for row in &cells {
        written = written.and_then(|()| writer.row(row, &mut text));
    }
    let _ = written.and_then(|()| writer.end(&Statistics::default(), &mut text)); // a String takes everything
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_jobs_has_a_line_for_each() {
        let job = json!({"job": "0123", "state": "running", "file": "a.jsonl", "rows": 7, "bytes": 70,
            "boards_done": 1, "boards": 3});
        let text = table(&[job.clone(), job]);
        assert_eq!(text.matches("│ 0123 │ running │ a.jsonl │").count(), 2, "{text}");
        assert!(table(&[]).contains("boards_done"), "an empty list has its titles");
    }
}
