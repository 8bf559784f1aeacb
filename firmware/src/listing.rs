//! What the board says of itself as rows: databases, tables, columns, counts, processes, plans. Keeps no rows: each
//! row is made when it is asked for by its number.

use crate::{board::Board, catalog::TableId, queries::QueryWork};
use core::fmt::Write as _;
use shared::{
    device::Step,
    limits::{QUERIES_MAX, TABLES_MAX, TEXT_BYTES_MAX},
    message::{self, BodyTooLong, Cursor, Done, ErrorCode, Failure, Part, RowsWriter, Started},
    rowcode::RowError,
    schema::Column,
    value::{ColumnType, Value},
};

/// Columns of a listing at most.
const CELLS_MAX: usize = 4;

const fn text(name: &'static str) -> Column<'static> {
    Column { name, kind: ColumnType::Text, unit: "" }
}

const DATABASES: [Column<'static>; 1] = [text("name")];
const TABLES: [Column<'static>; 2] = [text("dbms"), text("name")];
const COLUMNS: [Column<'static>; 4] = [text("name"), text("type"), text("unit"), text("description")];
const COUNTS: [Column<'static>; 3] =
    [text("dbms"), text("table"), Column { name: "rows", kind: ColumnType::Int, unit: "" }];
const PROCESSES: [Column<'static>; 3] = [text("process"), text("state"), text("detail")];
const STEPS: [Column<'static>; 2] = [text("step"), text("detail")];

/// What is listed.
#[derive(Debug)]
pub(crate) enum Listed {
    Databases(Tables),
    Tables(Tables),
    Columns(TableId),
    Counts(Tables),
    Processes,
    Plan(QueryWork),
}

/// Some of the board's tables: bit i for table i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tables(u16);

const _: () = assert!(TABLES_MAX <= u16::BITS as usize);

/// How far a listing is.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) listed: Listed,
    is_begun: bool,
    begin: u64,
    next: u64,
}

impl Tables {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn has(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }

    /// The `nth` of them.
    fn nth(self, nth: u64) -> Option<usize> {
        (0..TABLES_MAX).filter(|index| self.has(*index)).nth(usize::try_from(nth).ok()?)
    }
}

impl Listing {
    pub(crate) fn new(listed: Listed) -> Self {
        Self { listed, is_begun: false, begin: 0, next: 0 }
    }

    /// Goes back to `cursor`. What is listed may have grown since; what was listed has not changed.
    pub(crate) fn rewind(&mut self, cursor: Option<Cursor>) {
        self.begin = cursor.map_or(0, |cursor| cursor.next);
        (self.next, self.is_begun) = (self.begin, false);
    }

    fn columns(&self) -> &'static [Column<'static>] {
        match &self.listed {
            Listed::Databases(_) => &DATABASES,
            Listed::Tables(_) => &TABLES,
            Listed::Columns(_) => &COLUMNS,
            Listed::Counts(_) => &COUNTS,
            Listed::Processes => &PROCESSES,
            Listed::Plan(_) => &STEPS,
        }
    }
}

impl Board<'_> {
    /// The tables of a database, of a name, or all.
    pub(crate) fn tables(&self, dbms: Option<&str>, name: Option<&str>) -> Tables {
        let catalog = self.store.catalog();
        let chosen = catalog.tables().filter(|(_, table)| {
            dbms.is_none_or(|dbms| table.dbms() == dbms) && name.is_none_or(|name| table.name() == name)
        });
        Tables(chosen.fold(0, |tables, (id, _)| tables | 1 << id.index()))
    }

    /// One table of each database.
    pub(crate) fn databases(&self) -> Tables {
        let catalog = self.store.catalog();
        let is_first = |id: TableId, dbms: &str| {
            !catalog.tables().any(|(other, table)| other < id && table.dbms() == dbms)
        };
        let firsts = catalog.tables().filter(|(id, table)| is_first(*id, table.dbms()));
        Tables(firsts.fold(0, |tables, (id, _)| tables | 1 << id.index()))
    }

    /// The head, then a batch at a time, then the end.
    #[inline(never)]
    pub(crate) fn list(&mut self, listing: &mut Listing, body: &mut [u8], uptime_us: u64) -> Step {
        let end = self.listed_rows(listing, uptime_us);
        if !listing.is_begun {
            listing.is_begun = true;
            let cursor = Cursor { next: listing.begin, end: end.max(listing.begin), rows: listing.begin };
            let columns = listing.columns().iter().copied().collect();
            let clock_set = self.clock.is_set();
            let head = Started { columns, cursor, lost: 0, clock_set };
            return written(message::write(&Part::Started(head), body).map(Step::Part));
        }
        if listing.next >= end {
            return Step::Done(Done { rows: listing.next - listing.begin, lost: 0 });
        }
        let mut batch = RowsWriter::new(body, listing.columns().iter().map(|column| column.kind));
        while listing.next < end {
            let mut pushed = Ok(());
            self.listed_row(listing, uptime_us, &mut |cells| pushed = batch.push(cells));
            match pushed {
                Ok(()) => listing.next += 1,
                Err(RowError::Full) if batch.count() > 0 => break,
                Err(_) => return written(Err(BodyTooLong)),
            }
        }
        written(batch.finish(listing.next, 0).map(Step::Rows))
    }

    /// How many rows there are.
    #[inline(never)]
    fn listed_rows(&mut self, listing: &Listing, uptime_us: u64) -> u64 {
        match &listing.listed {
            Listed::Databases(tables) | Listed::Tables(tables) | Listed::Counts(tables) => {
                tables.0.count_ones().into()
            }
            Listed::Columns(table) => {
                self.store.catalog().table(*table).map_or(0, |table| table.width() as u64)
            }
            Listed::Processes => self.processes(),
            Listed::Plan(work) => {
                let mut steps = 0;
                let (queries, around) = self.queries_and_rest(uptime_us);
                queries.explain(work, around, |_, _| steps += 1);
                steps
            }
        }
    }

    #[inline(never)]
    fn listed_row(&mut self, listing: &Listing, uptime_us: u64, give: &mut dyn FnMut(&[Value<'_>])) {
        let nth = listing.next;
        let mut cells = [Value::Null; CELLS_MAX];
        let catalog = self.store.catalog();
        match &listing.listed {
            Listed::Plan(work) => {
                let (mut at, (queries, around)) = (0, self.queries_and_rest(uptime_us));
                queries.explain(work, around, |step, detail| {
                    if at == nth {
                        let line = line(detail);
                        give(&[Value::Text(step), Value::Text(&line)]);
                    }
                    at += 1;
                });
                return;
            }
            Listed::Processes => return self.process(nth, give),
            Listed::Columns(table) => {
                let Some(table) = catalog.table(*table) else { return };
                let index = nth as usize;
                let Some(column) = table.column(index) else { return };
                let kind = column.kind.name();
                cells = [column.name, kind, column.unit, table.description(index)].map(Value::Text);
            }
            Listed::Databases(tables) | Listed::Tables(tables) | Listed::Counts(tables) => {
                let found = tables.nth(nth).and_then(|index| catalog.tables().nth(index));
                let Some((id, table)) = found else { return };
                (cells[0], cells[1]) = (Value::Text(table.dbms()), Value::Text(table.name()));
                let rows = self.store.next_row_id(id) - self.store.first_row_id(id);
                cells[2] = Value::Int(rows.cast_signed());
            }
        }
        give(&cells[..listing.columns().len()]);
    }

    /// Samplers, then the queries.
    fn processes(&self) -> u64 {
        self.schedule.periods().count() as u64 + 1
    }

    #[inline(never)]
    fn process(&self, nth: u64, give: &mut dyn FnMut(&[Value<'_>])) {
        match self.schedule.periods().nth(nth as usize) {
            Some((table, period_us)) => {
                let Some(table) = self.store.catalog().table(table) else { return };
                let name = line(format_args!("sampler {}.{}", table.dbms(), table.name()));
                let detail = line(format_args!("a row each {period_us} us"));
                give(&[Value::Text(&name), Value::Text("running"), Value::Text(&detail)]);
            }
            None => {
                let running = self.queries.running();
                let state = if running == 0 { "idle" } else { "running" };
                let detail = line(format_args!("{running} of {QUERIES_MAX}"));
                give(&[Value::Text("queries"), Value::Text(state), Value::Text(&detail)]);
            }
        }
    }
}

/// A cell's text, cut where it does not fit.
#[inline(never)]
fn line(text: core::fmt::Arguments<'_>) -> heapless::String<TEXT_BYTES_MAX> {
    let mut line = heapless::String::new();
    // What does not fit is left out: these lines are for people, and short.
    let _ = line.write_fmt(text);
    line
}

fn written(step: Result<Step, BodyTooLong>) -> Step {
    step.unwrap_or_else(|BodyTooLong| {
        Step::Failed(Failure::new(ErrorCode::TooLong, 0, format_args!("a row outgrew its frame")))
    })
}
