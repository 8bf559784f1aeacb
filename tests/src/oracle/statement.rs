//! Statements beyond the boards' dialect, made from seeds, over two tables `a` and `b`; and what plain tables of SQLite answer.

use super::{Cell, Dice, Table, TableColumn};
use picolake::query::sqlite::{Cell as Answered, Row};
use rusqlite::{Connection, types::Value as Plain};
use shared::value::ColumnType;

/// How near floats are: SQLite adds them in the order in which it reads.
const FLOAT_ERROR_MAX: f64 = 1e-9;

/// Tables `a` and `b` of SQLite's own. Where a row's id is no column of theirs, it is the row's place.
pub fn plain(tables: &[Table; 2]) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    for (name, table) in ["a", "b"].iter().zip(tables) {
        let declared = |column: &TableColumn| {
            let kind = match column.kind {
                ColumnType::Bool => "BOOLEAN",
                ColumnType::Int => "INTEGER",
                ColumnType::Float32 | ColumnType::Float64 => "REAL",
                ColumnType::Timestamp => "TIMESTAMP",
                ColumnType::Text => "TEXT",
            };
            format!("\"{}\" {kind}, ", column.name)
        };
        let list: String = table.columns.iter().map(declared).collect();
        connection.execute(&format!("CREATE TABLE {name} ({list} _row_id INTEGER)"), [])?;
        let places = vec!["?"; table.columns.len() + 1].join(", ");
        let mut insert = connection.prepare(&format!("INSERT INTO {name} VALUES ({places})"))?;
        for (row_id, row) in table.rows.iter().enumerate() {
            let cells = row.iter().map(|cell| match cell {
                Cell::Null => Plain::Null,
                Cell::Bool(value) => Plain::Integer((*value).into()),
                Cell::Int(value) | Cell::Timestamp(value) => Plain::Integer(*value),
                Cell::Float32(value) => Plain::Real((*value).into()),
                Cell::Float(value) => Plain::Real(*value),
                Cell::Text(text) => Plain::Text(text.clone()),
            });
            insert.execute(rusqlite::params_from_iter(cells.chain([Plain::Integer(row_id as i64)])))?;
        }
    }
    Ok(connection)
}

/// What SQLite answers.
pub fn plain_rows(connection: &Connection, sql: &str) -> Result<Vec<Vec<Plain>>, String> {
    let read = || -> rusqlite::Result<Vec<Vec<Plain>>> {
        let mut statement = connection.prepare(sql)?;
        let width = statement.column_count();
        let rows =
            statement.query_map([], |row| (0..width).map(|index| row.get::<_, Plain>(index)).collect())?;
        rows.collect()
    };
    read().map_err(|error| error.to_string())
}

/// What differs between two answers.
pub fn difference(expected: &[Vec<Plain>], actual: &[Row]) -> Option<String> {
    if expected.len() != actual.len() {
        return Some(format!("{} rows instead of {}", actual.len(), expected.len()));
    }
    let are_near = |a: f64, b: f64| a == b || (a - b).abs() <= FLOAT_ERROR_MAX * a.abs().max(b.abs());
    for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
        let is_same = |(expected, actual): (&Plain, &Answered)| match (expected, actual) {
            (Plain::Null, Answered::Null) => true,
            (Plain::Integer(a), Answered::Int(b) | Answered::Timestamp(b)) => a == b,
            (Plain::Integer(a), Answered::Bool(b)) => *a == i64::from(*b),
            (Plain::Real(a), Answered::Float64(b)) => are_near(*a, *b),
            (Plain::Real(a), Answered::Float32(b)) => *a == f64::from(*b),
            (Plain::Text(a), Answered::Text(b)) => **a == **b,
            _ => false,
        };
        if expected.len() != actual.len() || !expected.iter().zip(actual).all(is_same) {
            return Some(format!("row {index}: {actual:?} instead of {expected:?}"));
        }
    }
    None
}

/// A column of a table, as a statement names it.
fn name(qualifier: &str, column: &TableColumn) -> String {
    format!("{qualifier}.\"{}\"", column.name)
}

fn any(table: &Table, dice: &mut Dice) -> TableColumn {
    dice.pick(&table.columns)
}

/// A column of numbers whose sums do not overflow, or the row's id.
fn number(qualifier: &str, table: &Table, dice: &mut Dice) -> String {
    let is_number = |column: &&TableColumn| {
        !column.is_extreme && matches!(column.kind, ColumnType::Bool | ColumnType::Int | ColumnType::Float32)
    };
    let numbers: Vec<TableColumn> = table.columns.iter().filter(is_number).cloned().collect();
    if numbers.is_empty() { format!("{qualifier}._row_id") } else { name(qualifier, &dice.pick(&numbers)) }
}

/// A value that a column has, as SQL.
fn literal(table: &Table, column: &str, dice: &mut Dice) -> String {
    let at = table.columns.iter().position(|known| known.name == column);
    let cell = at.filter(|_| !table.rows.is_empty()).map(|at| {
        let row = dice.below(table.rows.len() as u64) as usize;
        table.rows[row][at].clone()
    });
    match cell {
        None | Some(Cell::Null) => dice.between(-3, 30).to_string(),
        Some(Cell::Bool(value)) => if value { "TRUE" } else { "FALSE" }.into(),
        Some(Cell::Int(value)) if value > i64::MIN => value.to_string(),
        Some(Cell::Int(_)) => "-9223372036854775807".into(),
        Some(Cell::Timestamp(value)) => value.to_string(),
        Some(Cell::Float(value)) => format!("{value:?}"),
        Some(Cell::Float32(value)) => format!("{:?}", f64::from(value)),
        Some(Cell::Text(text)) => format!("'{}'", text.replace('\'', "''")),
    }
}

fn condition(qualifier: &str, table: &Table, dice: &mut Dice) -> String {
    let (left, right) = (|dice: &mut Dice| one_condition(qualifier, table, dice), dice.below(4));
    match right {
        0 => format!("({} AND {})", left(dice), left(dice)),
        1 => format!("({} OR {})", left(dice), left(dice)),
        2 => format!("NOT {}", left(dice)),
        _ => left(dice),
    }
}

fn one_condition(qualifier: &str, table: &Table, dice: &mut Dice) -> String {
    let column = if dice.percent(40) { table.columns[0].clone() } else { any(table, dice) };
    let x = name(qualifier, &column);
    let mut value = || literal(table, column.name, dice);
    let (one, other) = (value(), value());
    let row_id = dice.below(table.rows.len() as u64 + 1);
    match dice.below(8) {
        0 => format!("{x} BETWEEN {one} AND {other}"),
        1 => format!("{x} IN ({one}, {other})"),
        2 => format!("{x} IS NOT NULL"),
        3 => format!("{qualifier}._row_id {} {row_id}", dice.pick(&["<", "<=", "=", ">", ">="])),
        4 => format!("{qualifier}._row_id IN ({row_id}, 3, 5)"),
        _ => format!("{x} {} {one}", dice.pick(&["<", "<=", "=", "<>", ">", ">="])),
    }
}

/// A statement. `_row_id` stands in it for what makes a row different from all others of its table.
pub fn statement(tables: &[Table; 2], dice: &mut Dice) -> String {
    let [a, b] = tables;
    let (of_a, of_b) = (condition("a", a, dice), condition("b", b, dice));
    let (x, y) = (name("a", &any(a, dice)), name("b", &any(b, dice)));
    let n = number("a", a, dice);
    let limit = dice.between(1, 200);
    let on = match dice.below(4) {
        0 => format!("{x} = {y}"),
        1 => "a.\"timestamp\" = b.\"timestamp\"".into(),
        2 => "a._row_id = b._row_id".into(),
        _ => "b._row_id BETWEEN a._row_id - 1 AND a._row_id + 1".to_string(),
    };
    let key = name("a", &any(a, dice));
    match dice.below(10) {
        0 => format!(
            "SELECT {x}, {y}, a._row_id, b._row_id FROM a JOIN b ON {on} WHERE {of_a} ORDER BY 3, 4 LIMIT {limit}"
        ),
        1 => format!(
            "SELECT a._row_id, b._row_id, {y} FROM a LEFT JOIN b ON {on} AND {of_b} WHERE {of_a} ORDER BY 1, 2 LIMIT {limit}"
        ),
        2 => format!(
            "SELECT a._row_id FROM a LEFT JOIN b ON {on} WHERE b._row_id IS NULL AND {of_a} ORDER BY 1"
        ),
        3 => format!(
            "SELECT a._row_id, row_number() OVER (PARTITION BY {key} ORDER BY {x}, a._row_id), \
             lag({x}) OVER (ORDER BY a._row_id), sum({n}) OVER (ORDER BY a._row_id ROWS 3 PRECEDING) FROM a WHERE {of_a} ORDER BY 1"
        ),
        4 => format!(
            "WITH g AS (SELECT {key} AS k, count(*) AS c, min({x}) AS low, max({n}) AS top FROM a WHERE {of_a} GROUP BY 1) \
             SELECT g.k, c, low, top, (SELECT count(*) FROM b WHERE {of_b}) FROM g ORDER BY 1, 2, 3, 4"
        ),
        5 => format!(
            "SELECT a._row_id, {x} FROM a WHERE {x} IN (SELECT {y} FROM b WHERE {of_b}) OR {of_a} ORDER BY 1"
        ),
        6 => format!(
            "SELECT a._row_id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE {on} AND {of_b}) AND {of_a} ORDER BY 1"
        ),
        7 => {
            let operator = dice.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
            format!(
                "SELECT {x} AS v FROM a WHERE {of_a} {operator} SELECT {y} FROM b WHERE {of_b} ORDER BY 1"
            )
        }
        8 => format!(
            "SELECT CASE WHEN {of_a} THEN 'in' ELSE 'out' END AS w, count(DISTINCT {x}), sum({n}), total({n}) FROM a GROUP BY w ORDER BY w"
        ),
        _ => format!(
            "SELECT a._row_id, (SELECT max({y}) FROM b WHERE b.\"timestamp\" <= a.\"timestamp\") FROM a WHERE {of_a} \
             ORDER BY a.\"timestamp\", 1 LIMIT {limit}"
        ),
    }
}
