//! A SELECT of the boards' dialect, planned over the columns that its table has on all boards together, and the SQL
//! that each board is asked for its part. Asks nobody.

use super::{LargeMemory, Leg, OwnedColumn, United, columns::fitted};
use crate::{fault::Fault, field::Having};
use shared::{
    engine::{Fragment, PeriodEnd, Query, Target},
    limits::{COMMAND_BYTES_MAX, TABLE_COLUMNS_MAX},
    message::Failure,
    schema::{Column, HIDDEN_COLUMNS},
    sql,
    value::{ColumnType, Value},
};
use std::ops::Range;

/// Cells of a row of a table with the hidden ones.
const CELLS_MAX: usize = TABLE_COLUMNS_MAX + HIDDEN_COLUMNS.len();

/// A question to the boards that have its table.
#[derive(Debug)]
pub struct Question {
    /// The database.
    pub database: String,
    /// The table.
    pub table: String,
    /// The columns of the table, as the boards have them together.
    pub columns: Vec<OwnedColumn>,
    /// The columns of the answer.
    pub answer: Vec<OwnedColumn>,
    /// LIMIT; none is no limit.
    pub limit: Option<u64>,
    /// OFFSET
    pub offset: u64,
    /// Boards are asked for the columns in use of every row, and nothing else: to compare with what they can do.
    pub without_pushdown: bool,
    pub(super) query: Box<Query<LargeMemory>>,
}

impl Question {
    /// The table that a SELECT is about.
    pub fn table_of(text: &str) -> Result<String, Fault> {
        Ok(sql::parse(text)?.from.of(text).to_string())
    }

    /// Plans a SELECT over the boards that have its table; each of them is a leg. It is now `now_us`.
    pub fn plan(database: &str, text: &str, now_us: i64, having: &Having) -> Result<(Self, Vec<Leg>), Fault> {
        let select = sql::parse(text)?;
        let table = select.from.of(text).to_string();
        let mut united = United::default();
        let mut tables = Vec::new();
        for (board, hello) in &having.boards {
            let catalogue = board.known_catalogue();
            let Some(info) = catalogue.as_ref().and_then(|known| known.table(database, &table)) else {
                continue; // it has restarted since it was asked
            };
            let columns: Vec<OwnedColumn> = info.columns.iter().map(OwnedColumn::from).collect();
            united.add(&board.name, &columns);
            tables.push((board, hello, columns));
        }
        let columns: Vec<Column<'_>> = united.columns.iter().map(OwnedColumn::borrowed).collect();
        let mut query = Box::<Query<LargeMemory>>::default();
        query.open(text, &columns, now_us, 0..0)?;
        if let Some(conflict) = query.columns_in_use().find_map(|index| united.conflict(index)) {
            return Err(conflict);
        }
        let answer = query.columns(&columns).map(|column| OwnedColumn::from(&column)).collect();
        let legs = tables.into_iter().map(|(board, hello, own)| {
            let kind = |column: &OwnedColumn| {
                own.iter().find(|other| other.name == column.name).map(|other| other.kind)
            };
            Leg {
                board: board.clone(),
                board_id: hello.board_id.clone(),
                epoch: hello.epoch,
                kinds: united.columns.iter().map(kind).collect(),
                is_same: own == united.columns,
                pin: None,
            }
        });
        let legs = legs.collect();
        let (limit, offset) = (select.limit, select.offset);
        let question = Self {
            database: database.into(),
            table,
            columns: united.columns,
            answer,
            limit,
            offset,
            without_pushdown: false,
            query,
        };
        Ok((question, legs))
    }

    /// A question that was never planned.
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        Self {
            database: String::new(),
            table: String::new(),
            columns: Vec::new(),
            answer: Vec::new(),
            limit: None,
            offset: 0,
            without_pushdown: false,
            query: Box::default(),
        }
    }

    /// Whether boards send their rows as they read them, and nothing is kept.
    pub fn is_stream(&self) -> bool {
        self.query.is_stream()
    }

    /// Whether it selects just every column of its table, each as it is.
    pub fn selects_all(&self) -> bool {
        self.query.selects_all()
    }

    /// The largest part of it that boards can do by themselves.
    pub fn fragment(&self) -> Fragment {
        if self.without_pushdown { Fragment::All } else { self.query.fragment() }
    }

    /// The command that asks a board for its part, of at most `limit` rows.
    pub fn command(&self, fragment: Fragment, leg: &Leg, limit: Option<u64>) -> Result<String, Fault> {
        let rows = leg.pin.as_ref().map(|pin| &pin.rows);
        let sql = self.fragment_sql(fragment, leg, rows, limit)?;
        Ok(format!("sql {} \"{sql}\"", self.database))
    }

    /// The SQL in it.
    pub fn fragment_sql(
        &self,
        fragment: Fragment,
        leg: &Leg,
        rows: Option<&Range<u64>>,
        limit: Option<u64>,
    ) -> Result<String, Fault> {
        let columns: Vec<Column<'_>> = self.columns.iter().map(OwnedColumn::borrowed).collect();
        let Leg { kinds, is_same, .. } = leg;
        let target = Target { table: &self.table, columns: &columns, kinds, is_same: *is_same, rows, limit };
        let mut sql = String::new();
        self.query.write_fragment(fragment, &target, &mut sql).map_err(|_| {
            let message = "the part of the query that boards do cannot be written";
            Fault::new("unsupported", message, "report this query as a bug")
        })?;
        Ok(sql)
    }

    /// What is done here with what boards answer, a step a row.
    pub fn steps_here(&self) -> Vec<(&'static str, String)> {
        let mut steps = Vec::new();
        self.query.explain_join(|step, detail| steps.push((step, detail.to_string())));
        steps
    }

    /// What asks a board where a period ends: the last moment of a column that is not later.
    pub(super) fn period_command(&self, period: PeriodEnd, leg: &Leg) -> Option<String> {
        let column = &self.columns.get(period.column)?.name;
        leg.kinds.get(period.column).copied().flatten()?;
        let until = shared::time::Utc(period.until_us);
        let sql = format!(
            "SELECT max(\"{column}\") FROM \"{}\" WHERE \"{column}\" <= TIMESTAMP '{until}'",
            self.table
        );
        Some(format!("sql {} \"{sql}\"", self.database))
    }

    /// Whether a stream can still be asked for when the bounds of any rows are added: a long one outgrows a command.
    pub fn can_be_bounded(&self, legs: &[Leg]) -> bool {
        let widest = i64::MAX as u64..i64::MAX as u64;
        legs.iter().all(|leg| {
            let sql = self.fragment_sql(Fragment::Stream, leg, Some(&widest), Some(u64::MAX));
            sql.is_ok_and(|sql| {
                let command_bytes = "sql  \"\"".len() + self.database.len() + sql.len();
                command_bytes <= COMMAND_BYTES_MAX && sql::parse(&sql).is_ok()
            })
        })
    }

    /// How the rows that boards send become rows of the table.
    pub(super) fn shape(&self) -> TableShape {
        TableShape {
            in_use: self.query.columns_in_use().collect(),
            kinds: self.columns.iter().map(|column| column.kind).collect(),
        }
    }

    /// Gives the row that a stream makes of a row of the table.
    pub(super) fn stream_row(
        &self,
        cells: &[Value<'_>],
        mut give: impl FnMut(&[Value<'_>]),
    ) -> Result<(), Failure> {
        self.query.stream_row(cells, &mut give)
    }
}

/// Where the cells of a fragment of rows stand in a row of the table.
#[derive(Clone, Debug)]
pub(super) struct TableShape {
    in_use: Vec<usize>,
    kinds: Vec<ColumnType>,
}

impl TableShape {
    /// A row of the table, with the hidden columns behind, from the cells that were given: the last is the row's id.
    pub(super) fn row<'v>(&self, given: &[Value<'v>], leg: &'v Leg) -> [Value<'v>; CELLS_MAX] {
        let mut cells = [Value::Null; CELLS_MAX];
        for (index, value) in self.in_use.iter().zip(given) {
            cells[*index] = fitted(*value, self.kinds[*index]);
        }
        let row_id = given.last().copied().unwrap_or(Value::Null);
        let hidden = [Value::Text(&leg.board_id), Value::Int(leg.epoch.cast_signed()), row_id];
        let own = self.kinds.len();
        cells[own..own + hidden.len()].copy_from_slice(&hidden);
        cells
    }

    /// How many cells such a row has.
    pub(super) fn width(&self) -> usize {
        self.kinds.len() + HIDDEN_COLUMNS.len()
    }
}
