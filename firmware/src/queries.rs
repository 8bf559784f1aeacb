//! The queries that a board runs at once: a few, each in fixed memory of its own. What a query does is the engine's.

use crate::{
    catalog::{Catalog, TableId},
    clock::UtcClock,
    store::Store,
};
use shared::{
    command::{Sql, nearest},
    device::Step,
    engine::{Pages, Progress, Query, RowSink},
    limits::{QUERIES_MAX, TABLES_MAX},
    message::{self, BodyTooLong, Cursor, Done, ErrorCode, Failure, Part, RowsWriter, Started},
    rowcode::RowError,
    schema::Columns,
    value::Value,
};

/// The memory of all queries and which of it is in use.
#[derive(Debug)]
pub(crate) struct Queries<'m> {
    queries: &'m mut [Query; QUERIES_MAX],
    is_used: [bool; QUERIES_MAX],
}

/// One query that runs: which memory it has, and how far its answer has been sent.
#[derive(Debug)]
pub(crate) struct QueryWork {
    index: usize,
    table: TableId,
    /// Where the SQL begins in its command.
    offset: usize,
    /// The head has been sent.
    is_begun: bool,
    /// Rows sent in this generation.
    rows_sent: u64,
}

/// The rest of the board, as a query sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'b> {
    pub(crate) store: &'b Store<'b>,
    pub(crate) clock: &'b UtcClock,
    pub(crate) board_id: &'b str,
    pub(crate) epoch: u64,
    pub(crate) uptime_us: u64,
}

impl<'m> Queries<'m> {
    pub(crate) fn new(queries: &'m mut [Query; QUERIES_MAX]) -> Self {
        Self { queries, is_used: [false; QUERIES_MAX] }
    }

    /// How many run.
    pub(crate) fn running(&self) -> usize {
        self.is_used.iter().filter(|is_used| **is_used).count()
    }

    /// Begins a query, at `cursor` if its answer goes on. `dbms_position` is where its database's name stands in the
    /// command.
    pub(crate) fn open(
        &mut self,
        sql: &Sql<'_>,
        dbms_position: usize,
        cursor: Option<Cursor>,
        around: Surroundings<'_>,
    ) -> Result<QueryWork, Failure> {
        let Some(index) = self.is_used.iter().position(|is_used| !is_used) else {
            let hint = format_args!("QUERIES_MAX: {QUERIES_MAX} queries run already");
            return Err(Failure::new(ErrorCode::Busy, 0, hint));
        };
        let query = &mut self.queries[index];
        let table = plan(query, sql, dbms_position, around).map_err(|failure| match failure.code {
            ErrorCode::UnknownDatabase => failure, // its name stands before the SQL
            _ => failure.shifted(sql.offset),
        })?;
        if let Some(Cursor { next, end, rows }) = cursor {
            // What was computed is gone with the session, and `now()` was another.
            let can_go_on = query.is_stream() && !query.depends_on_now();
            if !can_go_on || !query.resume(next, end, rows) {
                return Err(gone());
            }
        }
        self.is_used[index] = true;
        Ok(QueryWork { index, table, offset: sql.offset, is_begun: false, rows_sent: 0 })
    }

    /// Goes back to `cursor`, or to the beginning of the answer.
    pub(crate) fn rewind(&mut self, work: &mut QueryWork, cursor: Option<Cursor>) -> Result<(), Failure> {
        (work.is_begun, work.rows_sent) = (false, 0);
        let query = &mut self.queries[work.index];
        match cursor {
            None => query.rewind(),
            Some(Cursor { next, end, rows }) if query.resume(next, end, rows) => {}
            Some(_) => return Err(gone()),
        }
        Ok(())
    }

    pub(crate) fn close(&mut self, work: &QueryWork) {
        self.is_used[work.index] = false;
    }

    /// Does a little of a query.
    pub(crate) fn step(&mut self, work: &mut QueryWork, body: &mut [u8], around: Surroundings<'_>) -> Step {
        let query = &mut self.queries[work.index];
        let pages = TablePages { around, table: work.table };
        let stepped = if work.is_begun {
            give_rows(query, work, body, &pages)
        } else if query.is_ready() {
            work.is_begun = true;
            give_head(query, work, body, &pages).map(Step::Part)
        } else {
            query.step(&pages, &mut NoRows).map(|_| Step::Working)
        };
        stepped.unwrap_or_else(|failure| Step::Failed(failure.shifted(work.offset)))
    }

    /// Says how a query would be run, a line at a time.
    pub(crate) fn explain(
        &mut self,
        work: &QueryWork,
        around: Surroundings<'_>,
        say: impl FnMut(&'static str, core::fmt::Arguments<'_>),
    ) {
        let pages = TablePages { around, table: work.table };
        self.queries[work.index].explain(&pages, say);
    }
}

fn gone() -> Failure {
    Failure::new(ErrorCode::Cursor, 0, format_args!("the rest of the answer is gone; ask again"))
}

/// Reads and plans a query; returns its table.
#[inline(never)]
fn plan(
    query: &mut Query,
    sql: &Sql<'_>,
    dbms_position: usize,
    around: Surroundings<'_>,
) -> Result<TableId, Failure> {
    let (name, position) = query.table_of(sql.text)?;
    let catalog = around.store.catalog();
    let table = find(catalog, (sql.dbms, dbms_position), (name, position))?;
    let columns = columns(catalog, table);
    let rows = around.store.first_row_id(table)..around.store.next_row_id(table);
    query.open(sql.text, &columns, around.now_us(), rows)?;
    Ok(table)
}

/// The table of this name, or what is near it. Each name comes with the place where it stands.
#[inline(never)]
pub(crate) fn find(
    catalog: &Catalog,
    (dbms, dbms_position): (&str, usize),
    (name, name_position): (&str, usize),
) -> Result<TableId, Failure> {
    if let Some(table) = catalog.find(dbms, name) {
        return Ok(table);
    }
    let has_dbms = catalog.tables().any(|(_, table)| table.dbms() == dbms);
    let mut names = heapless::Vec::<&str, TABLES_MAX>::new();
    for (_, table) in catalog.tables() {
        let candidate = if has_dbms { table.name() } else { table.dbms() };
        if !has_dbms || table.dbms() == dbms {
            let _ = names.push(candidate); // as many as there are tables
        }
    }
    let (code, what, wanted, position) = if has_dbms {
        (ErrorCode::UnknownTable, "table", name, name_position)
    } else {
        (ErrorCode::UnknownDatabase, "database", dbms, dbms_position)
    };
    Err(match (nearest(wanted, &names), names.first()) {
        (Some(near), _) => Failure::new(code, position, format_args!("did you mean `{near}`?")),
        (None, Some(one)) => {
            Failure::new(code, position, format_args!("no {what} of this name; there is `{one}`"))
        }
        (None, None) => Failure::new(code, position, format_args!("the board has no {what} yet")),
    })
}

/// The columns of a table.
pub(crate) fn columns(catalog: &Catalog, table: TableId) -> Columns<'_> {
    catalog.table(table).into_iter().flat_map(|table| table.columns()).collect()
}

#[inline(never)]
fn give_head(
    query: &mut Query,
    work: &QueryWork,
    body: &mut [u8],
    pages: &TablePages<'_>,
) -> Result<usize, Failure> {
    query.skip_lost(pages);
    let lost = if query.is_stream() { query.take_lost() } else { query.lost() };
    let remaining = query.remaining();
    let table_columns = columns(pages.around.store.catalog(), work.table);
    let head = Started {
        columns: query.columns(&table_columns).collect(),
        cursor: Cursor { next: remaining.start, end: remaining.end, rows: query.given() },
        lost,
        clock_set: pages.around.clock.is_set(),
    };
    message::write(&Part::Started(head), body).map_err(|BodyTooLong| {
        Failure::new(ErrorCode::TooLong, 0, format_args!("the columns' names outgrew a frame; select fewer"))
    })
}

#[inline(never)]
fn give_rows(
    query: &mut Query,
    work: &mut QueryWork,
    body: &mut [u8],
    pages: &TablePages<'_>,
) -> Result<Step, Failure> {
    let mut batch = RowsWriter::new(body, query.kinds());
    let progress = query.step(pages, &mut batch)?;
    // The loss of a computed answer was told with its head.
    let lost = |query: &mut Query| if query.is_stream() { query.take_lost() } else { 0 };
    match progress {
        Progress::Working => Ok(Step::Working),
        Progress::Done => Ok(Step::Done(Done { rows: work.rows_sent, lost: lost(query) })),
        Progress::Rows(next) => {
            work.rows_sent += u64::from(batch.count());
            let written = batch.finish(next, lost(query)).map_err(|BodyTooLong| {
                Failure::new(ErrorCode::TooLong, 0, format_args!("a batch outgrew its frame"))
            });
            written.map(Step::Rows)
        }
    }
}

/// A computed answer is not given before it is ready.
struct NoRows;

impl RowSink for NoRows {
    fn push(&mut self, _: &[Value<'_>]) -> Result<(), RowError> {
        Err(RowError::Full)
    }
}

/// The pages of one table.
struct TablePages<'b> {
    around: Surroundings<'b>,
    table: TableId,
}

impl Surroundings<'_> {
    /// Now, as rows are dated: since 1970, or since boot while nobody has set the clock.
    fn now_us(&self) -> i64 {
        self.clock.date_us(self.uptime_us)
    }
}

impl Pages for TablePages<'_> {
    fn page(&self, row_id: u64) -> Option<&[u8]> {
        self.around.store.page_with(self.table, row_id)
    }

    fn utc_us(&self, time_us: u64) -> i64 {
        self.around.clock.date_us(time_us)
    }

    fn board(&self) -> &str {
        self.around.board_id
    }

    fn epoch(&self) -> u64 {
        self.around.epoch
    }
}
