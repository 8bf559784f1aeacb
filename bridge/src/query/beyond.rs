//! A SELECT beyond the boards' dialect, over many boards: what each is asked for, and SQLite over what they send. Computes
//! nothing by itself.
//!
//! ```text
//!   SELECT ── dialect? ──▶ Asked                            boards do most of it
//!     └─ no: Beyond ─┬─ each table: the columns in use, the conditions that boards can look at ──▶ Asked
//!        (and views) └─ SQLite is asked whether it takes the statement, before a row travels
//!   ask ── rows of each table, board behind board ──▶ packed ──▶ SQLite ──▶ batches
//! ```

use super::{
    Asked, Batch, Context, Lake, Leg, OwnedColumn, Progress, Question, Scan, Select, Step, cells,
    sqlite::{
        self, Answer, Beyond, PACKED_BYTES_MAX, PagePacker, STATEMENTS_MAX, SourceRows, TableRows, TableUse,
    },
};
use crate::fault::Fault;
use shared::{
    limits::COLUMNS_MAX,
    message::Class,
    schema::HIDDEN_COLUMNS,
    value::{ColumnType, Value},
};
use std::collections::HashMap;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Statements whose rows are in memory: what they fetch is bounded for each, so their number is, too.
static PLACES: Semaphore = Semaphore::const_new(STATEMENTS_MAX);

/// Whose rows they are that no board is asked for.
const ARCHIVE: &str = "(archive)";

/// What an error is about when the statement itself is not to blame.
const OUTER_CODES: [&str; 6] =
    ["board_offline", "timeout", "cancelled", "no_boards", "unknown_board", "schema_conflict"];

/// A SELECT that is ready to be asked.
#[derive(Debug)]
pub enum Planned {
    /// Boards do most of it.
    Dialect(Box<Asked>),
    /// It runs in SQLite, here.
    Beyond(Box<Statement>),
}

/// A statement for SQLite, and what boards are asked for it.
#[derive(Debug)]
pub struct Statement {
    /// The statement, with the views that it names.
    pub sql: String,
    /// The columns of its answer, each with its type where that is certain before there is a row.
    pub columns: Vec<(String, Option<ColumnType>)>,
    /// What boards are asked, a question for each table.
    pub tables: Vec<Asked>,
    /// The rows of its tables, where they are those of the archive.
    archived: Option<Vec<TableRows>>,
    beyond: Beyond,
}

/// The answer of a statement that runs. Dropping it stops the statement.
#[derive(Debug)]
pub struct StatementRows {
    answer: Answer,
    /// Boards whose rows are in it.
    pub boards: Vec<String>,
    /// Boards whose rows are not, and why.
    pub missing: Vec<(String, Fault)>,
    /// Rows that were overwritten before they could be read.
    pub rows_lost: u64,
    /// Whether all boards' timestamps are UTC.
    pub clock_set: bool,
    /// Until its last row has come.
    place: Option<SemaphorePermit<'static>>,
}

/// Reads a SELECT, of the dialect or beyond it. Where neither takes it, the dialect says why: it knows what was probably
/// meant; but not of a statement that is clearly beyond it.
pub fn check_select(sql: &str) -> Result<(), Fault> {
    let Err(refused) = Question::table_of(sql) else { return Ok(()) };
    match Beyond::parse(sql, 0) {
        Ok(_) => Ok(()),
        Err(fault) => Err(if sqlite::is_beyond(sql) { fault } else { refused }),
    }
}

/// Whether the dialect has nothing to say about a statement: its words are others', or it reads not just one table.
fn is_clearly_beyond(sql: &str) -> bool {
    sqlite::is_beyond(sql) || Beyond::parse(sql, 0).is_ok_and(|beyond| beyond.tables().len() != 1)
}

impl Lake {
    /// Plans a SELECT, of the dialect or beyond it.
    pub async fn planned(&self, select: &Select<'_>, context: &Context) -> Result<Planned, Fault> {
        if select.is_local {
            return Ok(Planned::Beyond(Box::new(self.local_statement(select, context).await?)));
        }
        let refused = match Question::table_of(select.sql) {
            Ok(table) if !self.views.has(select.database, &table) => {
                return Ok(Planned::Dialect(Box::new(self.plan(select, context).await?)));
            }
            Ok(_) => None,
            Err(refused) => Some(refused),
        };
        match (self.statement(select, context).await, refused) {
            (Ok(statement), _) => Ok(Planned::Beyond(Box::new(statement))),
            (Err(fault), Some(refused))
                if !is_clearly_beyond(select.sql) && !OUTER_CODES.contains(&fault.code) =>
            {
                Err(refused)
            }
            (Err(fault), _) => Err(fault),
        }
    }

    async fn statement(&self, select: &Select<'_>, context: &Context) -> Result<Statement, Fault> {
        let mut sql = select.sql.to_string();
        let mut beyond = Beyond::parse(&sql, select.now_us)?;
        if let Some(with_views) = self.views.added(select.database, &beyond, &sql) {
            beyond = Beyond::parse(&with_views, select.now_us)?;
            sql = with_views;
        }
        let mut tables = Vec::with_capacity(beyond.tables().len());
        for used in beyond.tables() {
            let database = used.database.as_deref().unwrap_or(select.database);
            // Whoever has it also has a name for it that can be put between quotes.
            self.field.boards_with(database, &used.name, select.boards).await?;
            let bare = format!("SELECT 1 FROM \"{}\"", used.name);
            let known = self.plan(&Select { database, sql: &bare, ..*select }, context).await?;
            let asked = table_sql(used, &known.question.columns);
            tables.push(self.plan(&Select { database, sql: &asked, ..*select }, context).await?);
        }
        let columns: Vec<_> = tables.iter().map(|asked| asked.question.columns.clone()).collect();
        let columns = sqlite::check(&beyond, &columns, context)?;
        let width = columns.len();
        if width > COLUMNS_MAX {
            let message =
                format!("COLUMNS_MAX: the answer has {width} columns, at most {COLUMNS_MAX} are given");
            return Err(Fault::new("capacity", message, "select fewer columns"));
        }
        Ok(Statement { sql, columns, tables, archived: None, beyond })
    }
}

/// The places of the columns that a statement uses of a table.
fn places(used: &TableUse, columns: &[OwnedColumn]) -> Vec<usize> {
    (0..columns.len()).filter(|place| used.columns.has(&columns[*place].name)).collect()
}

/// What a board is asked for a table: the columns in use, and as few rows as its own conditions leave.
fn table_sql(used: &TableUse, columns: &[OwnedColumn]) -> String {
    let names: Vec<String> =
        places(used, columns).into_iter().map(|place| format!("\"{}\"", columns[place].name)).collect();
    let items = if names.is_empty() { "1".to_string() } else { names.join(", ") };
    let kinds: Vec<(&str, ColumnType)> =
        columns.iter().map(|column| (column.name.as_str(), column.kind)).collect();
    let mut sql = format!("SELECT {items} FROM \"{}\"", used.name);
    if let Some(filter) = used.filter(&kinds) {
        sql = format!("{sql} WHERE {filter}");
    }
    sql
}

impl Statement {
    /// A statement over rows that are here.
    pub(super) fn of_archive(
        sql: &str,
        columns: Vec<(String, Option<ColumnType>)>,
        beyond: Beyond,
        rows: Vec<TableRows>,
    ) -> Self {
        Self { sql: sql.into(), columns, tables: Vec::new(), archived: Some(rows), beyond }
    }

    /// Fetches the rows and runs the statement over them. Strictly, a board that fails is an error; so is it if a table
    /// has none left. A board that fails is left out of all tables.
    pub async fn ask(self, is_strict: bool, class: Class, context: &Context) -> Result<StatementRows, Fault> {
        let place = context.whole(PLACES.acquire()).await?;
        let place = place
            .map_err(|_| Fault::new("internal", "queries are not run any more", "start the bridge again"))?;
        let Self { beyond, tables, archived, .. } = self;
        if let Some(rows) = archived {
            let answer = sqlite::run(beyond, rows, context).await?;
            let (boards, missing) = (vec![ARCHIVE.into()], Vec::new());
            return Ok(StatementRows {
                answer,
                boards,
                missing,
                rows_lost: 0,
                clock_set: true,
                place: Some(place),
            });
        }
        let mut fetching = Fetching::new(&tables, is_strict, class, context);
        let mut fetched = Vec::with_capacity(tables.len());
        for (asked, used) in tables.into_iter().zip(beyond.tables()) {
            fetched.push(fetching.table(asked, used).await?);
        }
        let Fetching { missing, rows_lost, clock_set, mut boards, .. } = fetching;
        let mut rows = Vec::with_capacity(fetched.len());
        for FetchedTable { columns, mut parts } in fetched {
            let had_some = !parts.is_empty();
            parts.retain(|(board, _)| missing.iter().all(|(gone, _)| gone != board));
            if let (true, true, Some((_, fault))) = (had_some, parts.is_empty(), missing.last()) {
                return Err(fault.clone());
            }
            rows.push(TableRows { columns, sources: parts.into_iter().map(|(_, source)| source).collect() });
        }
        boards.retain(|board| missing.iter().all(|(gone, _)| gone != board));
        let answer = sqlite::run(beyond, rows, context).await?;
        Ok(StatementRows { answer, boards, missing, rows_lost, clock_set, place: Some(place) })
    }
}

/// A table as it was fetched: the rows of each board.
struct FetchedTable {
    columns: Vec<OwnedColumn>,
    parts: Vec<(String, sqlite::Source)>,
}

/// How far the rows of a statement's tables have come.
struct Fetching<'c> {
    context: &'c Context,
    is_strict: bool,
    class: Class,
    /// Of packed rows.
    bytes: usize,
    missing: Vec<(String, Fault)>,
    boards: Vec<String>,
    rows_lost: u64,
    clock_set: bool,
    progress: Progress,
    /// Tables that each board has yet to send.
    tables_left: HashMap<String, usize>,
}

impl<'c> Fetching<'c> {
    fn new(tables: &[Asked], is_strict: bool, class: Class, context: &'c Context) -> Self {
        let mut tables_left = HashMap::new();
        for leg in tables.iter().flat_map(|asked| &asked.legs) {
            *tables_left.entry(leg.board.name.clone()).or_insert(0) += 1;
        }
        let boards = u32::try_from(tables_left.len()).unwrap_or(u32::MAX);
        Self {
            context,
            is_strict,
            class,
            bytes: 0,
            missing: Vec::new(),
            boards: Vec::new(),
            rows_lost: 0,
            clock_set: true,
            progress: Progress { boards, ..Progress::default() },
            tables_left,
        }
    }

    /// Fetches the rows of a table, one board behind the other.
    async fn table(&mut self, asked: Asked, used: &TableUse) -> Result<FetchedTable, Fault> {
        let Asked { question, mut legs, missing } = asked;
        for (board, fault) in missing {
            self.leave_out(&board, fault);
        }
        legs.retain(|leg| self.missing.iter().all(|(gone, _)| *gone != leg.board.name));
        let places = places(used, &question.columns);
        let mut parts = Vec::with_capacity(legs.len());
        if legs.is_empty() {
            let gone = self.missing.last().map(|(_, fault)| fault.clone());
            return Err(gone.unwrap_or_else(|| Fault::protocol("no board has a table that was there before")));
        }
        // Rows of all tables together are told, not those of each.
        let context = Context { progress: None, ..self.context.clone() };
        let mut scan = Scan::open(&question, question.fragment(), legs, None, &context, self.class).await?;
        self.clock_set &= scan.clock_set;
        let mut packer = None;
        let mut last_fault = None;
        loop {
            match scan.next().await {
                Step::End => break,
                Step::Rows(batch) => {
                    let packer = match &mut packer {
                        Some(packer) => packer,
                        empty => empty.insert(self.packer(&places, &question, &scan.legs[batch.leg])?),
                    };
                    let mut packed = Ok(());
                    scan.rows(&question, &batch, |row_id, cells| {
                        if packed.is_ok() {
                            packed = packer.push(row_id, &cells[..places.len().min(cells.len())]);
                        }
                    })?;
                    packed?;
                    self.progress.rows += u64::from(batch.count);
                    self.context.report(self.progress);
                }
                Step::Complete(at, lost) => {
                    let leg = &scan.legs[at];
                    self.rows_lost += lost;
                    if let Some(packer) = packer.take() {
                        let packed = packer.finish()?;
                        self.bytes += packed.bytes();
                        let (board, epoch, rows) =
                            (leg.board_id.clone(), leg.epoch, SourceRows::Packed(packed));
                        parts.push((leg.board.name.clone(), sqlite::Source { board, epoch, rows }));
                    }
                    self.end_leg(&leg.board.name);
                }
                Step::Failed(at, fault) => {
                    if self.is_strict || scan.legs.len() == 1 || context.cancelled.is_cancelled() {
                        return Err(fault);
                    }
                    packer = None;
                    last_fault = Some(fault.clone());
                    self.leave_out(&scan.legs[at].board.name, fault);
                }
            }
        }
        let is_gone = |leg: &Leg| self.missing.iter().any(|(gone, _)| *gone == leg.board.name);
        match last_fault {
            Some(fault) if scan.legs.iter().all(is_gone) => Err(fault),
            _ => Ok(FetchedTable { columns: question.columns, parts }),
        }
    }

    /// Takes a board's rows, of what is left of the memory of a statement. A float of 32 bits stays one.
    fn packer(&self, places: &[usize], question: &Question, leg: &Leg) -> Result<PagePacker, Fault> {
        let column = |place: &usize| {
            let narrow = leg.kinds.get(*place).copied().flatten().filter(|kind| *kind == ColumnType::Float32);
            let kind = narrow.unwrap_or(question.columns[*place].kind);
            (u8::try_from(*place).unwrap_or(u8::MAX), kind)
        };
        let columns: Vec<(u8, ColumnType)> = places.iter().map(column).collect();
        PagePacker::new(&columns, PACKED_BYTES_MAX.saturating_sub(self.bytes))
    }

    fn end_leg(&mut self, board: &str) {
        if !self.boards.iter().any(|known| known == board) {
            self.boards.push(board.into());
        }
        if let Some(left) = self.tables_left.get_mut(board) {
            *left = left.saturating_sub(1);
            self.progress.boards_done += u32::from(*left == 0);
        }
        self.context.report(self.progress);
    }

    fn leave_out(&mut self, board: &str, fault: Fault) {
        if self.missing.iter().all(|(gone, _)| gone != board) {
            self.missing.push((board.into(), fault));
        }
    }
}

impl StatementRows {
    /// The columns of every row.
    pub fn columns(&self) -> &[OwnedColumn] {
        self.answer.columns()
    }

    /// The next rows, or the end.
    pub async fn next_batch(&mut self) -> Result<Option<Batch>, Fault> {
        let Some(rows) = self.answer.next().await? else {
            self.place = None;
            return Ok(None);
        };
        let mut bytes = Vec::new();
        rows.iter().for_each(|row| cells::write(row, &mut bytes));
        Ok(Some(Batch { leg: 0, count: u16::try_from(rows.len()).unwrap_or(u16::MAX), bytes, lost: 0 }))
    }

    /// Gives each row of a batch to `each`.
    pub fn rows(&self, batch: &Batch, each: impl FnMut(&[Value<'_>])) -> Result<(), Fault> {
        cells::read(self.columns().len(), batch.count, &batch.bytes, each)
            .ok_or_else(|| Fault::protocol("a batch cannot be read"))
    }
}

const _: () = assert!(sqlite::BATCH_ROWS_MAX <= u16::MAX as usize);
const _: () = assert!(shared::limits::TABLE_COLUMNS_MAX + HIDDEN_COLUMNS.len() <= u8::MAX as usize);
