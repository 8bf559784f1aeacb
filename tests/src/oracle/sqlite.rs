//! SQLite with a generated table and with the dialect's functions, each written plainly for this purpose.

use super::{Answer, Cell, calendar, query::Query, table::Table};
use rusqlite::{
    Connection, Error,
    functions::{Aggregate, Context, FunctionFlags},
    types::{ToSqlOutput, Value, ValueRef},
};

/// A database in memory that holds one table.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    /// Holds the rows of this table.
    pub fn new(table: &Table) -> Result<Self, String> {
        Self::open(table).map_err(|error| error.to_string())
    }

    fn open(table: &Table) -> Result<Self, Error> {
        let connection = Connection::open_in_memory()?;
        add_functions(&connection)?;
        // No types: a column holds what is put in.
        let names: Vec<String> = table.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
        connection.execute(&format!("CREATE TABLE {} ({})", Table::NAME, names.join(", ")), [])?;
        let places = vec!["?"; names.len() + 1].join(", ");
        let names = names.join(", ");
        let insert = format!("INSERT INTO {} (rowid, {names}) VALUES ({places})", Table::NAME);
        let mut insert = connection.prepare(&insert)?;
        for (row_id, row) in table.rows.iter().enumerate() {
            let cells = row.iter().map(as_sqlite);
            insert.execute(rusqlite::params_from_iter(
                [Value::Integer(row_id as i64)].into_iter().chain(cells),
            ))?;
        }
        drop(insert);
        Ok(Self { connection })
    }

    /// What SQLite answers: integers, floats, text and NULL. An error is SQLite's message.
    pub fn run(&self, query: &Query) -> Result<Answer, String> {
        let rows = self.rows(&query.sqlite).map_err(|error| match error {
            Error::SqliteFailure(_, Some(message)) => message,
            error => error.to_string(),
        })?;
        Ok(Answer { columns: query.columns.iter().map(|column| column.name.clone()).collect(), rows })
    }

    fn rows(&self, sql: &str) -> Result<Vec<Vec<Cell>>, Error> {
        let mut statement = self.connection.prepare(sql)?;
        let width = statement.column_count();
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let cells = (0..width).map(|index| row.get_ref(index).map(as_cell));
            all.push(cells.collect::<Result<_, _>>()?);
        }
        Ok(all)
    }
}

fn as_sqlite(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => Value::Integer((*value).into()),
        Cell::Int(value) | Cell::Timestamp(value) => Value::Integer(*value),
        Cell::Float(value) => Value::Real(*value),
        Cell::Float32(value) => Value::Real((*value).into()),
        Cell::Text(text) => Value::Text(text.clone()),
    }
}

fn as_cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Real(value) => Cell::Float(value),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Cell::Text(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

fn add_functions(connection: &Connection) -> Result<(), Error> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("floor", 1, flags, |context| rounded(context, f64::floor))?;
    connection.create_scalar_function("ceil", 1, flags, |context| rounded(context, f64::ceil))?;
    connection.create_scalar_function("months_later", 2, flags, |context| {
        of_moment(context, calendar::months_later)
    })?;
    connection.create_scalar_function("months_bucket", 2, flags, |context| {
        of_moment(context, calendar::months_bucket)
    })?;
    connection.create_aggregate_function("first_known", 3, flags, Known { is_last: false })?;
    connection.create_aggregate_function("last_known", 3, flags, Known { is_last: true })?;
    connection.create_aggregate_function("variance", 1, flags, Spread { is_root: false })?;
    connection.create_aggregate_function("stddev", 1, flags, Spread { is_root: true })
}

/// An integer is whole already.
fn rounded(context: &Context<'_>, round: fn(f64) -> f64) -> Result<ToSqlOutput<'static>, Error> {
    Ok(ToSqlOutput::Owned(match context.get_raw(0) {
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(round(value)),
        _ => Value::Null,
    }))
}

fn of_moment(context: &Context<'_>, move_by: fn(i64, i64) -> i64) -> Result<Option<i64>, Error> {
    let (us, months): (Option<i64>, i64) = (context.get(0)?, context.get(1)?);
    Ok(us.map(|us| move_by(us, months)))
}

/// `first`, `last`: of the values that are known, that of the earliest or latest row; of one time, by row_id.
struct Known {
    is_last: bool,
}

/// The time of a row and its id.
type Place = (i64, i64);

impl Aggregate<Option<(Place, Value)>, Value> for Known {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<(Place, Value)>, Error> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, kept: &mut Option<(Place, Value)>) -> Result<(), Error> {
        let (place, value): (Place, Value) = ((context.get(0)?, context.get(1)?), context.get(2)?);
        let is_better = kept.as_ref().is_none_or(|(other, _)| (place > *other) == self.is_last);
        if value != Value::Null && is_better {
            *kept = Some((place, value));
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, kept: Option<Option<(Place, Value)>>) -> Result<Value, Error> {
        Ok(kept.flatten().map_or(Value::Null, |(_, value)| value))
    }
}

/// `variance`, `stddev` of a sample: all values are kept, their mean is taken, then their squares.
struct Spread {
    is_root: bool,
}

impl Aggregate<Vec<f64>, Option<f64>> for Spread {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<f64>, Error> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut Vec<f64>) -> Result<(), Error> {
        match context.get_raw(0) {
            ValueRef::Integer(value) => values.push(value as f64),
            ValueRef::Real(value) => values.push(value),
            _ => {}
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<Vec<f64>>) -> Result<Option<f64>, Error> {
        let values = values.unwrap_or_default();
        if values.len() < 2 {
            return Ok(None);
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let mean = mean + values.iter().map(|value| value - mean).sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Ok(Some(if self.is_root { variance.sqrt() } else { variance }))
    }
}
