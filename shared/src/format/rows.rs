//! Rows as text, one at a time: the shape that each answer has in each format.

use super::{
    table::{rule, write_aligned, write_padded},
    value::{width, write_json_text, write_json_value},
};
use crate::{
    command::{Command, Extract, Format, parse},
    limits::{COLUMNS_MAX, EXTRACT_VALUES_MAX, NAME_BYTES_MAX},
    schema::Column,
    value::Value,
};
use core::fmt::{self, Write};

/// What the rows of an answer are. The columns are those in which a board sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `name`
    Databases,
    /// `dbms`, `name`
    Tables,
    /// `name`, `type`, `unit`, `description`
    Columns,
    /// `dbms`, `table`, `rows`
    RowsCount,
    /// `dbms`, `name`; or one of the two, unique and sorted
    Blockchain(Option<Extract>),
    /// `process`, `state`, `detail`
    Processes,
    /// `step`, `detail`
    Explain,
    /// Whatever was selected.
    Query {
        /// Whether `format = json` ends with statistics.
        statistics: bool,
    },
}

impl Shape {
    /// The shape of the rows that answer a command; what is not known is a query.
    pub fn of(command: &Command<'_>) -> Self {
        match command {
            Command::GetDatabases(_) => Shape::Databases,
            Command::GetTables { .. } => Shape::Tables,
            Command::GetColumns { .. } => Shape::Columns,
            Command::GetRowsCount { .. } => Shape::RowsCount,
            Command::BlockchainGetTable(get) => Shape::Blockchain(get.extract),
            Command::GetProcesses(_) => Shape::Processes,
            Command::ExplainSql(_) => Shape::Explain,
            Command::Sql(sql) => Shape::Query { statistics: sql.statistics },
            Command::RunClient(run) => match parse(run.command) {
                Ok(command) => Shape::of(&command), // which is no `run client`
                Err(_) => Shape::Query { statistics: true },
            },
            _ => Shape::Query { statistics: true },
        }
    }

    /// How rows are written as JSON.
    const fn style(self, format: Format) -> Style {
        match (self, format) {
            (Shape::Databases, Format::Mcp) => Style::Values(0),
            (Shape::Databases, _) => Style::WrappedValues("Databases", 0),
            (Shape::Tables, Format::Mcp) => Style::Values(1),
            (Shape::Tables | Shape::Blockchain(None), Format::Json) => Style::Tables,
            (Shape::Columns, Format::Json) => Style::Pairs,
            (Shape::Columns, _) => Style::Objects { leaves_empty_out: true },
            (Shape::Blockchain(Some(Extract::Dbms)), _) => Style::Unique(0),
            (Shape::Blockchain(Some(Extract::Name)), _) => Style::Unique(1),
            (Shape::Processes, Format::Json) => Style::Wrapped("Processes"),
            (Shape::Explain, Format::Json) => Style::Wrapped("Explain"),
            (Shape::Query { .. }, Format::Json) => Style::Wrapped("Query"),
            _ => Style::Objects { leaves_empty_out: false },
        }
    }
}

/// How rows are written as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `[{"a":1},…]`
    Objects { leaves_empty_out: bool },
    /// `{"Title":[{"a":1},…]}`
    Wrapped(&'static str),
    /// `["a",…]` of one column
    Values(usize),
    /// `{"Title":["a",…]}` of one column
    WrappedValues(&'static str, usize),
    /// `["a",…]` of one column, each once and in order
    Unique(usize),
    /// `[{"table":{"dbms":"d","name":"t"}},…]`
    Tables,
    /// `{"a":"b",…}` of the first two columns
    Pairs,
}

/// What is said of a query behind its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// How long it took.
    pub time_us: u64,
    /// How many boards answered.
    pub nodes: u32,
}

type ExtractValue = heapless::String<NAME_BYTES_MAX>;

/// Writes the rows of one answer: `measure` those of the first batch for a table's widths, then `begin`, each `row`,
/// `end`. No line's end follows the last character.
#[derive(Clone, Debug)]
pub struct RowsFormat<'c> {
    shape: Shape,
    format: Format,
    columns: &'c [Column<'c>],
    /// Characters of each column, in a table.
    widths: [u16; COLUMNS_MAX],
    rows: u64,
    /// What `extract` has found, sorted.
    extracted: heapless::Vec<ExtractValue, EXTRACT_VALUES_MAX>,
}

impl<'c> RowsFormat<'c> {
    /// An answer of this shape with these columns; columns beyond [`COLUMNS_MAX`] are not written.
    pub fn new(shape: Shape, format: Format, columns: &'c [Column<'c>]) -> Self {
        let columns = &columns[..columns.len().min(COLUMNS_MAX)];
        let mut widths = [0; COLUMNS_MAX];
        for (width, column) in widths.iter_mut().zip(columns) {
            *width = bounded(name_width(column.name));
        }
        Self { shape, format, columns, widths, rows: 0, extracted: heapless::Vec::new() }
    }

    /// Whether [`measure`](Self::measure) does anything: only a table has widths.
    pub fn is_measured(&self) -> bool {
        self.format == Format::Table
    }

    /// Makes the columns of a table wide enough for this row.
    pub fn measure(&mut self, cells: &[Value<'_>]) {
        if self.is_measured() {
            for (widest, cell) in self.widths.iter_mut().zip(cells) {
                *widest = (*widest).max(bounded(width(cell)));
            }
        }
    }

    /// What stands before the first row.
    pub fn begin(&mut self, out: &mut impl Write) -> fmt::Result {
        if self.extract().is_some() {
            return Ok(()); // nothing is known before the last row
        }
        if self.format == Format::Table {
            return self.begin_table(out);
        }
        match self.shape.style(self.format) {
            Style::Wrapped(title) | Style::WrappedValues(title, _) => write!(out, "{{\"{title}\":["),
            Style::Pairs => out.write_char('{'),
            _ => out.write_char('['),
        }
    }

    /// One row. Fails where the answer to `extract` has more values than fit.
    pub fn row(&mut self, cells: &[Value<'_>], out: &mut impl Write) -> fmt::Result {
        if let Some(column) = self.extract() {
            return self.keep(cells.get(column));
        }
        if self.format == Format::Table {
            return self.row_of_table(cells, out);
        }
        if self.rows > 0 {
            out.write_char(',')?;
        }
        self.rows += 1;
        let cell = |index: usize| cells.get(index).unwrap_or(&Value::Null);
        match self.shape.style(self.format) {
            Style::Values(column) | Style::WrappedValues(_, column) | Style::Unique(column) => {
                write_json_value(cell(column), out)
            }
            Style::Pairs => {
                write_key(cell(0), out)?;
                out.write_char(':')?;
                write_json_value(cell(1), out)
            }
            Style::Tables => {
                out.write_str("{\"table\":")?;
                self.write_object(cells, false, out)?;
                out.write_char('}')
            }
            Style::Wrapped(_) => self.write_object(cells, false, out),
            Style::Objects { leaves_empty_out } => self.write_object(cells, leaves_empty_out, out),
        }
    }

    /// The last row does not count: whoever keeps the text has cut it off there.
    pub fn take_back(&mut self) {
        self.rows = self.rows.saturating_sub(1);
    }

    /// What stands behind the last row.
    pub fn end(&mut self, statistics: &Statistics, out: &mut impl Write) -> fmt::Result {
        if let Some(column) = self.extract() {
            return self.write_extracted(column, out);
        }
        if self.format == Format::Table {
            return rule(out, ['└', '┴', '┘'], self.widths());
        }
        match self.shape.style(self.format) {
            Style::Wrapped("Query") => {
                out.write_char(']')?;
                if self.shape == (Shape::Query { statistics: true }) {
                    self.write_statistics(statistics, out)?;
                }
                out.write_char('}')
            }
            Style::Wrapped(_) | Style::WrappedValues(..) => out.write_str("]}"),
            Style::Pairs => out.write_char('}'),
            _ => out.write_char(']'),
        }
    }

    /// `,"Statistics":[{"Count":10,"Time":"00:00:00.042","Nodes":1}]`
    fn write_statistics(&self, statistics: &Statistics, out: &mut impl Write) -> fmt::Result {
        let Statistics { time_us, nodes } = *statistics;
        let (seconds, ms) = (time_us / 1_000_000, time_us / 1_000 % 1_000);
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            out,
            ",\"Statistics\":[{{\"Count\":{},\"Time\":\"{hours:02}:{minutes:02}:{seconds:02}",
            self.rows
        )?;
        if ms != 0 {
            write!(out, ".{ms:03}")?;
        }
        write!(out, "\",\"Nodes\":{nodes}}}]")
    }

    fn write_object(&self, cells: &[Value<'_>], leaves_empty_out: bool, out: &mut impl Write) -> fmt::Result {
        out.write_char('{')?;
        let mut comma = "";
        for (column, cell) in self.columns.iter().zip(cells) {
            if leaves_empty_out && matches!(cell, Value::Text("") | Value::Null) {
                continue;
            }
            out.write_str(comma)?;
            comma = ",";
            write_json_text(column.name, out)?;
            out.write_char(':')?;
            write_json_value(cell, out)?;
        }
        out.write_char('}')
    }

    fn widths(&self) -> impl Iterator<Item = usize> + use<> {
        self.widths.into_iter().map(usize::from).take(self.columns.len())
    }

    fn begin_table(&self, out: &mut impl Write) -> fmt::Result {
        rule(out, ['┌', '┬', '┐'], self.widths())?;
        out.write_char('\n')?;
        for (column, width) in self.columns.iter().zip(self.widths()) {
            out.write_str("│ ")?;
            write_padded(&Value::Text(column.name), width, out)?;
            out.write_char(' ')?;
        }
        out.write_str("│\n")?;
        rule(out, ['├', '┼', '┤'], self.widths())?;
        out.write_char('\n')
    }

    fn row_of_table(&mut self, cells: &[Value<'_>], out: &mut impl Write) -> fmt::Result {
        self.rows += 1;
        for (index, width) in self.widths().enumerate() {
            out.write_str("│ ")?;
            write_aligned(cells.get(index).unwrap_or(&Value::Null), width, out)?;
            out.write_char(' ')?;
        }
        out.write_str("│\n")
    }

    /// The column whose values are wanted, each once.
    fn extract(&self) -> Option<usize> {
        match self.shape {
            Shape::Blockchain(Some(Extract::Dbms)) => Some(0),
            Shape::Blockchain(Some(Extract::Name)) => Some(1),
            _ => None,
        }
    }

    /// Puts a value in its place, if it is new.
    fn keep(&mut self, cell: Option<&Value<'_>>) -> fmt::Result {
        let Some(Value::Text(text)) = cell else { return Ok(()) };
        let Err(place) = self.extracted.binary_search_by(|kept| kept.as_str().cmp(text)) else {
            return Ok(());
        };
        let value = ExtractValue::try_from(*text).map_err(|_| fmt::Error)?;
        self.extracted.insert(place, value).map_err(|_| fmt::Error)
    }

    fn write_extracted(&mut self, column: usize, out: &mut impl Write) -> fmt::Result {
        let values = self.extracted.iter().map(|value| value.as_str());
        if self.format != Format::Table {
            out.write_char('[')?;
            for (index, value) in values.enumerate() {
                out.write_str(if index == 0 { "" } else { "," })?;
                write_json_text(value, out)?;
            }
            return out.write_char(']');
        }
        let name = self.columns.get(column).map_or("", |column| column.name);
        let widest = values.clone().map(|value| width(&Value::Text(value))).max().unwrap_or(0);
        let widest = widest.max(name_width(name));
        rule(out, ['┌', '┬', '┐'], [widest])?;
        out.write_str("\n│ ")?;
        write_padded(&Value::Text(name), widest, out)?;
        out.write_str(" │\n")?;
        rule(out, ['├', '┼', '┤'], [widest])?;
        for value in values {
            out.write_str("\n│ ")?;
            write_aligned(&Value::Text(value), widest, out)?;
            out.write_str(" │")?;
        }
        out.write_char('\n')?;
        rule(out, ['└', '┴', '┘'], [widest])
    }
}

/// A key of an object is text, whatever the cell is.
fn write_key(cell: &Value<'_>, out: &mut impl Write) -> fmt::Result {
    write_json_text(if let Value::Text(name) = cell { name } else { "" }, out)
}

/// A name is a device's text, as a cell is: it is written with its control characters escaped.
fn name_width(name: &str) -> usize {
    width(&Value::Text(name))
}

fn bounded(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::value::ColumnType;
    use std::{string::String, vec::Vec};

    fn columns(names: &'static [&'static str]) -> Vec<Column<'static>> {
        names.iter().map(|name| Column { name, kind: ColumnType::Text, unit: "" }).collect()
    }

    fn written(
        shape: Shape,
        format: Format,
        names: &'static [&'static str],
        rows: &[&[Value<'_>]],
    ) -> String {
        let columns = columns(names);
        let mut writer = RowsFormat::new(shape, format, &columns);
        let mut text = String::new();
        rows.iter().for_each(|row| writer.measure(row));
        writer.begin(&mut text).unwrap();
        rows.iter().for_each(|row| writer.row(row, &mut text).unwrap());
        writer.end(&Statistics { time_us: 3_661_042_999, nodes: 1 }, &mut text).unwrap();
        text
    }

    const T: fn(&'static str) -> Value<'static> = Value::Text;

    #[test]
    fn metadata_has_its_shapes() {
        let databases: &[&[Value<'_>]] = &[&[T("demo")], &[T("test")]];
        let text = |format| written(Shape::Databases, format, &["name"], databases);
        assert_eq!(text(Format::Mcp), r#"["demo","test"]"#);
        assert_eq!(text(Format::Json), r#"{"Databases":["demo","test"]}"#);

        let tables: &[&[Value<'_>]] = &[&[T("demo"), T("b")], &[T("test"), T("a")], &[T("demo"), T("a")]];
        let text = |shape, format| written(shape, format, &["dbms", "name"], tables);
        assert_eq!(text(Shape::Tables, Format::Mcp), r#"["b","a","a"]"#);
        let json = r#"[{"table":{"dbms":"demo","name":"b"}},{"table":{"dbms":"test","name":"a"}},{"table":{"dbms":"demo","name":"a"}}]"#;
        assert_eq!(text(Shape::Tables, Format::Json), json);
        assert_eq!(text(Shape::Blockchain(None), Format::Json), json);
        let clean = r#"[{"dbms":"demo","name":"b"},{"dbms":"test","name":"a"},{"dbms":"demo","name":"a"}]"#;
        assert_eq!(text(Shape::Blockchain(None), Format::Mcp), clean);

        let columns: &[&[Value<'_>]] =
            &[&[T("temp"), T("float"), T("°C"), T("air")], &[T("n"), T("int"), T(""), T("")]];
        let text =
            |format| written(Shape::Columns, format, &["name", "type", "unit", "description"], columns);
        let clean =
            r#"[{"name":"temp","type":"float","unit":"°C","description":"air"},{"name":"n","type":"int"}]"#;
        assert_eq!(text(Format::Mcp), clean);
        assert_eq!(text(Format::Json), r#"{"temp":"float","n":"int"}"#);

        let counts: &[&[Value<'_>]] = &[&[T("demo"), T("a"), Value::Int(7)]];
        let text = |format| written(Shape::RowsCount, format, &["dbms", "table", "rows"], counts);
        assert_eq!(text(Format::Mcp), r#"[{"dbms":"demo","table":"a","rows":7}]"#);
        assert_eq!(text(Format::Json), text(Format::Mcp));

        assert_eq!(written(Shape::Explain, Format::Json, &["step", "detail"], &[]), r#"{"Explain":[]}"#);
        assert_eq!(written(Shape::Processes, Format::Mcp, &["process"], &[]), "[]");
    }

    #[test]
    fn what_is_extracted_is_unique_and_sorted() {
        let tables: &[&[Value<'_>]] = &[&[T("test"), T("b")], &[T("demo"), T("a")], &[T("demo"), T("b")]];
        let text =
            |extract, format| written(Shape::Blockchain(Some(extract)), format, &["dbms", "name"], tables);
        assert_eq!(text(Extract::Dbms, Format::Mcp), r#"["demo","test"]"#);
        assert_eq!(text(Extract::Name, Format::Json), r#"["a","b"]"#);
        let table = "┌──────┐\n│ name │\n├──────┤\n│ a    │\n│ b    │\n└──────┘";
        assert_eq!(text(Extract::Name, Format::Table), table);
    }

    #[test]
    fn a_query_has_its_shapes() {
        let rows: &[&[Value<'_>]] = &[&[Value::Float32(20.5), T("x")], &[Value::Null, T("überhitzt")]];
        let query =
            |statistics, format| written(Shape::Query { statistics }, format, &["temp", "state"], rows);
        let list = r#"[{"temp":20.5,"state":"x"},{"temp":null,"state":"überhitzt"}]"#;
        assert_eq!(query(true, Format::Mcp), list);
        let json = std::format!("{{\"Query\":{list}");
        assert_eq!(query(false, Format::Json), std::format!("{json}}}"));
        let statistics = r#","Statistics":[{"Count":2,"Time":"01:01:01.042","Nodes":1}]}"#;
        assert_eq!(query(true, Format::Json), json + statistics);
        assert_eq!(
            query(true, Format::Table),
            "┌──────┬───────────┐\n\
             │ temp │ state     │\n\
             ├──────┼───────────┤\n\
             │ 20.5 │ x         │\n\
             │ null │ überhitzt │\n\
             └──────┴───────────┘"
        );
        assert_eq!(written(Shape::Query { statistics: true }, Format::Mcp, &["a"], &[]), "[]");
    }

    #[test]
    fn a_forged_name_reaches_no_terminal_as_it_is() {
        let names: &[&str] = &["\u{1b}[2J", "a\nb"];
        let rows: &[&[Value<'_>]] = &[&[T("x"), T("y")]];
        let query = Shape::Query { statistics: true };
        assert_eq!(
            written(query, Format::Table, names, rows),
            "┌───────────┬──────┐\n\
             │ \\u{1b}[2J │ a\\nb │\n\
             ├───────────┼──────┤\n\
             │ x         │ y    │\n\
             └───────────┴──────┘"
        );
        assert_eq!(written(query, Format::Mcp, names, rows), r#"[{"\u001b[2J":"x","a\nb":"y"}]"#);
        let shapes = [query, Shape::Columns, Shape::Tables, Shape::Blockchain(Some(Extract::Name))];
        for (shape, format) in shapes
            .into_iter()
            .flat_map(|shape| [Format::Json, Format::Mcp, Format::Table].map(|format| (shape, format)))
        {
            let text = written(shape, format, names, &[&[T("\u{1b}c"), T("\u{9b}J")]]);
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{shape:?} {format:?}: {text:?}");
        }
    }

    #[test]
    fn a_later_cell_overflows_its_column() {
        let columns = columns(&["a", "b"]);
        let mut writer = RowsFormat::new(Shape::Query { statistics: true }, Format::Table, &columns);
        let mut text = String::new();
        writer.measure(&[Value::Int(1), Value::Int(2)]);
        writer.begin(&mut text).unwrap();
        writer.row(&[Value::Int(1000), T("x")], &mut text).unwrap();
        assert!(text.ends_with("│ 1000 │ x │\n"), "{text}");
    }

    #[test]
    fn more_values_than_can_be_sorted_are_refused() {
        let columns = columns(&["dbms", "name"]);
        let mut writer = RowsFormat::new(Shape::Blockchain(Some(Extract::Name)), Format::Mcp, &columns);
        let mut put = |n: usize| {
            let name = std::format!("t{n}");
            writer.row(&[T("demo"), Value::Text(&name)], &mut String::new())
        };
        assert!((0..EXTRACT_VALUES_MAX).all(|n| put(n).is_ok()));
        assert!(put(0).is_ok() && put(EXTRACT_VALUES_MAX).is_err());
    }
}
