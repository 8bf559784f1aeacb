//! One page of an answer: rows as text under the caps of a call, and what is to be said of them.

use crate::{
    fault::Fault,
    query::{OwnedColumn, Question},
};
use serde_json::{Map, Value, json};
use shared::{
    command::Format,
    format::{RowsFormat, Shape, Statistics},
    schema::{Column, TIME_COLUMN},
    time::Utc,
    value::Value as Cell,
};

/// Rows of an answer where nobody says how many.
pub const ROWS_DEFAULT: u64 = 100;
/// Rows of an answer at most, whatever anybody says.
pub const ROWS_MAX: u64 = 1_000;
/// Characters of an answer at most, all items together.
pub const CHARACTERS_MAX: usize = 40_000;
/// Characters of it that are kept for what is said of the rows.
const NOTES_CHARACTERS_MAX: usize = 4_000;
/// Characters of the rows.
const DATA_CHARACTERS_MAX: usize = CHARACTERS_MAX - NOTES_CHARACTERS_MAX;
/// Boards that are named in what is said of an answer.
const BOARDS_NAMED_MAX: usize = 16;
/// Characters of what is said of a board that failed.
const REASON_CHARACTERS_MAX: usize = 120;

/// Digits of a count, in what stands behind the rows.
const COUNT_DIGITS_MAX: usize = 20;

/// Characters of a moment, at the least: `"1970-01-01T00:00:00Z"`.
const MOMENT_CHARACTERS_MIN: usize = 22;

/// Rows at most that a page has room for when every column of a table is selected. Boards need not read more.
pub(super) fn rows_that_fit(format: Format, question: &Question) -> u64 {
    if question.selects_all() { table_rows_that_fit(format, &question.answer) } else { ROWS_MAX }
}

fn table_rows_that_fit(format: Format, columns: &[OwnedColumn]) -> u64 {
    if format == Format::Table || columns.is_empty() {
        return ROWS_MAX;
    }
    // `{"timestamp":"…","x":0},` with the shortest values there are.
    let cell = |column: &OwnedColumn| {
        let is_time = column.name == TIME_COLUMN.name; // the only one that is never NULL
        let value = if is_time { MOMENT_CHARACTERS_MIN } else { 1 };
        "\"\":,".len() + column.name.chars().count() + value
    };
    let row_characters = "{}".len() + columns.iter().map(cell).sum::<usize>();
    (DATA_CHARACTERS_MAX / row_characters) as u64
}

/// Writes rows until there are too many of them or they are too long.
#[derive(Debug)]
pub(super) struct PageWriter<'c> {
    rows: RowsFormat<'c>,
    text: String,
    characters: usize,
    /// Characters that are kept for what stands behind the last row.
    end_characters: usize,
    has_begun: bool,
    pub(super) given: u64,
    rows_max: u64,
}

impl<'c> PageWriter<'c> {
    pub(super) fn new(shape: Shape, format: Format, columns: &'c [Column<'c>], rows_max: u64) -> Self {
        let rows = RowsFormat::new(shape, format, columns);
        let text = String::new();
        Self { rows, text, characters: 0, end_characters: 0, has_begun: false, given: 0, rows_max }
    }

    /// Whether the next batch gives a table its widths.
    pub(super) fn is_measured(&self) -> bool {
        !self.has_begun && self.rows.is_measured()
    }

    /// Makes a table wide enough for a row of the first batch.
    pub(super) fn measure(&mut self, cells: &[Cell<'_>]) {
        if self.is_measured() {
            self.rows.measure(cells);
        }
    }

    /// What stands before the first row. Rows that come after it are not measured.
    pub(super) fn begin(&mut self) {
        if !self.has_begun {
            self.has_begun = true;
            let _ = self.rows.begin(&mut self.text); // a String takes everything
            self.characters = self.text.chars().count();
            self.end_characters = longest_end(&self.rows);
        }
    }

    /// Writes a row if it fits; whether it did.
    pub(super) fn push(&mut self, cells: &[Cell<'_>]) -> bool {
        self.begin();
        if self.given >= self.rows_max {
            return false;
        }
        let room = DATA_CHARACTERS_MAX.saturating_sub(self.characters + self.end_characters);
        let len = self.text.len();
        if self.rows.row(cells, &mut self.text).is_err() {
            self.text.truncate(len); // more different values than `extract` can sort: none was added
            return false;
        }
        let characters = self.text[len..].chars().count();
        if characters > room {
            self.text.truncate(len);
            self.rows.take_back();
            return false;
        }
        self.characters += characters;
        self.given += 1;
        true
    }

    /// Where it is.
    pub(super) fn mark(&self) -> Mark<'c> {
        Mark {
            rows: self.rows.clone(),
            bytes: self.text.len(),
            characters: self.characters,
            has_begun: self.has_begun,
            given: self.given,
        }
    }

    /// As if nothing had been written since the mark.
    pub(super) fn back_to(&mut self, mark: Mark<'c>) {
        self.text.truncate(mark.bytes);
        (self.rows, self.characters) = (mark.rows, mark.characters);
        (self.has_begun, self.given) = (mark.has_begun, mark.given);
    }

    pub(super) fn end(mut self, statistics: &Statistics) -> String {
        self.begin();
        let _ = self.rows.end(statistics, &mut self.text); // a String takes everything
        self.text
    }
}

/// Characters at most of what stands behind the last row: a table's rule, or statistics.
fn longest_end(rows: &RowsFormat<'_>) -> usize {
    let mut end = String::new();
    let _ = rows.clone().end(&Statistics { time_us: u64::MAX, nodes: u32::MAX }, &mut end);
    let count_digits = if end.contains("Count") { COUNT_DIGITS_MAX } else { 0 };
    end.chars().count() + count_digits
}

/// A place in a page to which it can go back.
#[derive(Debug)]
pub(super) struct Mark<'c> {
    rows: RowsFormat<'c>,
    bytes: usize,
    characters: usize,
    has_begun: bool,
    given: u64,
}

/// What is said of an answer besides its rows.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) row_count: u64,
    pub(super) is_truncated: bool,
    pub(super) next_cursor: Option<String>,
    pub(super) rows_lost: u64,
    pub(super) boards: Vec<String>,
    /// By name, with the reason.
    pub(super) missing: Map<String, Value>,
    pub(super) as_of_us: i64,
    pub(super) clock_unset: bool,
    pub(super) is_continued: bool,
    pub(super) hint: Option<String>,
}

impl Notes {
    /// As an item; none where there is nothing to say.
    pub(super) fn item(&self) -> Option<String> {
        let has_news = self.is_truncated || self.is_continued || self.rows_lost > 0 || self.clock_unset;
        if !has_news && self.missing.is_empty() && self.hint.is_none() {
            return None;
        }
        let missing = self.missing.iter().map(|(name, why)| json!({"name": name, "missing": why}));
        let there = self.boards.iter().map(|name| json!({"name": name}));
        let boards: Vec<Value> = missing.chain(there).take(BOARDS_NAMED_MAX).collect();
        let mut hints = Vec::new();
        hints.extend(self.hint.clone());
        if self.next_cursor.is_some() {
            hints.push("call again with next_cursor as cursor for the rows behind these".into());
        }
        if !self.missing.is_empty() {
            hints.push(format!("{} boards are missing from this answer", self.missing.len()));
        }
        if self.rows_lost > 0 {
            hints.push("rows_lost rows were overwritten on a board before they could be sent".into());
        }
        if self.clock_unset {
            hints.push("a board's clock is not set: its timestamps count from its start".into());
        }
        let mut item = json!({
            "row_count": self.row_count,
            "truncated": self.is_truncated,
            "next_cursor": self.next_cursor,
            "rows_lost": self.rows_lost,
            "boards": boards,
            "as_of": Utc(self.as_of_us).to_string(),
        });
        if !hints.is_empty() {
            item["hint"] = hints.join("; ").into();
        }
        Some(item.to_string())
    }
}

/// Why a board's part is missing.
pub(super) fn reason(fault: &Fault) -> Value {
    fault.to_string().chars().take(REASON_CHARACTERS_MAX).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::value::ColumnType;

    /// How many of these rows a page takes.
    fn taken(format: Format, columns: &[Column<'_>], cells: &[Cell<'_>]) -> u64 {
        let mut page = PageWriter::new(Shape::Query { statistics: false }, format, columns, u64::MAX);
        while page.push(cells) {}
        assert!(page.text.chars().count() <= DATA_CHARACTERS_MAX);
        page.given
    }

    #[test]
    fn a_page_takes_no_more_rows_than_are_said_to_fit() {
        let column = |name, kind| Column { name, kind, unit: "" };
        let columns = [column("timestamp", ColumnType::Timestamp), column("°", ColumnType::Int)];
        let info = columns.map(|column| OwnedColumn {
            name: column.name.into(),
            kind: column.kind,
            unit: String::new(),
        });
        let shortest = [Cell::Timestamp(0), Cell::Int(0)];
        let longer = [Cell::Timestamp(1), Cell::Null];
        let fit = table_rows_that_fit(Format::Mcp, &info);
        assert_eq!(taken(Format::Mcp, &columns, &shortest), fit, "not one row fewer");
        assert!(taken(Format::Mcp, &columns, &longer) < fit);
        assert!(taken(Format::Json, &columns, &shortest) <= table_rows_that_fit(Format::Json, &info));
        assert_eq!(table_rows_that_fit(Format::Table, &info), ROWS_MAX);
    }

    #[test]
    fn a_full_page_has_room_for_its_end() {
        let names: Vec<String> = (0..20).map(|n| format!("column_{n}")).collect();
        let columns: Vec<Column<'_>> =
            names.iter().map(|name| Column { name, kind: ColumnType::Text, unit: "" }).collect();
        for format in [Format::Mcp, Format::Json, Format::Table] {
            for length in 1..40 {
                let text = "°".repeat(length);
                let cells = vec![Cell::Text(&text); columns.len()];
                let shape = Shape::Query { statistics: true };
                let mut page = PageWriter::new(shape, format, &columns, u64::MAX);
                page.measure(&cells);
                while page.push(&cells) {}
                let row_characters = page.text.chars().count() / usize::try_from(page.given).unwrap();
                let whole = page.end(&Statistics { time_us: 86_399_999_999, nodes: 1_000 });
                let characters = whole.chars().count();
                assert!(characters <= DATA_CHARACTERS_MAX, "{format:?}: {characters} characters");
                assert!(characters + 2 * row_characters > DATA_CHARACTERS_MAX, "{format:?}: {characters}");
            }
        }
    }
}
