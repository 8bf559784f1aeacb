//! One table cut into parts, each on a board of its own: the joined answer is that of the whole table.

use super::engine::{PagesEngine, as_cell, as_value};
use picolake::query::LargeMemory;
use picolake_tests::oracle::{Answer, Cell, Dice, Engine, Table};
use shared::{
    engine::{Fragment, Pages as _, Progress, Query, RowSink, Target},
    message::{ErrorCode, Failure},
    rowcode::RowError,
    schema::HIDDEN_COLUMNS,
    value::{ColumnType, Value},
};

/// How the part of a board is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Its pages are read here, as an archive's are.
    Pages,
    /// It computes what it can.
    Pushed,
    /// It sends its rows.
    Rows,
}

/// The boards, and how the next query reaches each of them.
pub(crate) struct SplitEngine {
    parts: Vec<PagesEngine>,
    dice: Dice,
    query: Box<Query<LargeMemory>>,
    /// Parts that were computed by their board, and that a board could not compute.
    pub(crate) pushed: u64,
    pub(crate) refused: u64,
}

impl SplitEngine {
    /// Cuts the rows at random places; some parts may be empty.
    pub(crate) fn new(table: &Table, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let boards = 1 + dice.below(6);
        let mut cuts: Vec<usize> =
            (1..boards).map(|_| dice.below(table.rows.len() as u64 + 1) as usize).collect();
        cuts.extend([0, table.rows.len()]);
        cuts.sort_unstable();
        let part = |cut: &[usize]| {
            PagesEngine::beginning_at(
                &Table { rows: table.rows[cut[0]..cut[1]].to_vec(), ..table.clone() },
                cut[0] as u64,
            )
        };
        let parts = cuts.windows(2).map(part).collect();
        Self { parts, dice, query: Box::default(), pushed: 0, refused: 0 }
    }

    /// The same boards, whose answers come the other way round.
    pub(crate) fn reverse(&mut self) {
        self.parts.reverse();
    }

    fn answer(&mut self, sql: &str) -> Result<Answer, Failure> {
        let Self { parts, dice, query, pushed, refused } = self;
        let columns = parts[0].columns.clone();
        query.open(sql, &columns, parts[0].now_us, 0..0)?;
        while let Some(period) = query.period() {
            let column = columns[period.column].name;
            let end = shared::time::Utc(period.until_us);
            let asked = format!(
                "SELECT max(\"{column}\") FROM {} WHERE \"{column}\" <= TIMESTAMP '{end}'",
                Table::NAME
            );
            let mut latest = None;
            for part in parts.iter_mut() {
                if let Cell::Timestamp(us) = part.answer(&asked)?.rows[0][0] {
                    latest = latest.max(Some(us));
                }
            }
            query.set_period(latest)?;
        }
        let names: Vec<String> = query.columns(&columns).map(|column| column.name.to_string()).collect();
        let mut sink = Sink::default();
        let best = query.fragment();
        if best == Fragment::Stream {
            let way = dice.pick(&[Way::Pages, Way::Pushed]);
            for part in parts.iter_mut() {
                if way == Way::Pages {
                    read_pages(query, part, &mut sink)?;
                } else {
                    let rows = ask(query, best, part, &columns, None)?.rows;
                    *pushed += 1;
                    sink.rows.extend(rows.into_iter().map(|mut row| {
                        row.pop(); // the row's id
                        row
                    }));
                }
            }
            if way == Way::Pushed {
                let select = shared::sql::parse(sql)?;
                let (offset, limit) =
                    (select.offset as usize, select.limit.map_or(usize::MAX, |n| n as usize));
                sink.rows = sink.rows.into_iter().skip(offset).take(limit).collect();
            }
            return Ok(Answer { columns: names, rows: sink.rows });
        }
        for part in parts.iter_mut() {
            if query.is_enough() {
                break;
            }
            match dice.pick(&[Way::Pages, Way::Pushed, Way::Pushed, Way::Rows]) {
                Way::Pages => read_pages(query, part, &mut sink)?,
                Way::Rows => feed(query, Fragment::Rows, part, &columns)?,
                Way::Pushed => match best {
                    Fragment::Rows | Fragment::Top => match feed(query, best, part, &columns) {
                        Err(failure) if best == Fragment::Top && failure.code == ErrorCode::Capacity => {
                            *refused += 1;
                            feed(query, Fragment::Rows, part, &columns)?;
                        }
                        fed => {
                            *pushed += 1;
                            fed?;
                        }
                    },
                    _ => match ask(query, best, part, &columns, None) {
                        Ok(answer) => {
                            *pushed += 1;
                            for row in &answer.rows {
                                query.absorb(&row.iter().map(as_value).collect::<Vec<_>>())?;
                            }
                        }
                        Err(_) => {
                            *refused += 1;
                            feed(query, Fragment::Rows, part, &columns)?;
                        }
                    },
                },
            }
        }
        query.end_reading()?;
        while query.step(&parts[0].pages, &mut sink)? != Progress::Done {}
        Ok(Answer { columns: names, rows: sink.rows })
    }
}

impl Engine for SplitEngine {
    fn run(&mut self, sql: &str) -> Result<Answer, (ErrorCode, String)> {
        self.answer(sql).map_err(|failure| (failure.code, failure.hint.to_string()))
    }
}

/// Reads the pages of a part with the joined query itself.
fn read_pages(query: &mut Query<LargeMemory>, part: &PagesEngine, sink: &mut Sink) -> Result<(), Failure> {
    query.turn_to(part.rows.clone());
    while !query.is_gathered() {
        if query.step(&part.pages, sink)? == Progress::Done {
            break;
        }
    }
    Ok(())
}

/// What a board answers to its fragment.
fn ask(
    query: &Query<LargeMemory>,
    fragment: Fragment,
    part: &mut PagesEngine,
    columns: &[shared::schema::Column<'static>],
    limit: Option<u64>,
) -> Result<Answer, Failure> {
    let kinds: Vec<Option<ColumnType>> = columns.iter().map(|column| Some(column.kind)).collect();
    let target = Target { table: Table::NAME, columns, kinds: &kinds, is_same: true, rows: None, limit };
    let mut sql = String::new();
    query.write_fragment(fragment, &target, &mut sql).expect("a fragment can be written");
    part.answer(&sql)
}

/// Takes the rows of a board.
fn feed(
    query: &mut Query<LargeMemory>,
    fragment: Fragment,
    part: &mut PagesEngine,
    columns: &[shared::schema::Column<'static>],
) -> Result<(), Failure> {
    let answer = ask(query, fragment, part, columns, None)?;
    let in_use: Vec<usize> = query.columns_in_use().collect();
    for row in &answer.rows {
        let mut cells = vec![Value::Null; columns.len() + HIDDEN_COLUMNS.len()];
        for (index, cell) in in_use.iter().zip(row) {
            cells[*index] = as_value(cell);
        }
        let (board, row_id) = (part.pages.board(), row.last().map_or(Value::Null, as_value));
        cells[columns.len()..].copy_from_slice(&[Value::Text(board), Value::Int(1), row_id]);
        query.feed(&cells)?;
    }
    Ok(())
}

#[derive(Default)]
struct Sink {
    rows: Vec<Vec<Cell>>,
}

impl RowSink for Sink {
    fn push(&mut self, cells: &[Value<'_>]) -> Result<(), RowError> {
        self.rows.push(cells.iter().map(as_cell).collect());
        Ok(())
    }
}
