//! Answers to requests: what each command does, and the parts its answer is made of.

use crate::{
    BUILD, Board,
    catalog::{TableError, TableId},
    listing::{Listed, Listing},
    page_stream::PageStream,
    queries::{QueryWork, columns, find},
    sample::PeriodError,
    test_rows::TestRows,
};
use core::fmt::Write as _;
use shared::{
    command::{self, Command, CreateTable, Insert, Topic, nearest, position_of, position_of_last_value},
    device::{Answerer, Identity, Now, Step},
    limits::{HELP_BYTES_MAX, TABLE_COLUMNS_MAX},
    message::{self, Cursor, Done, ErrorCode, Failure, Pages, Part, Request, Status, Version, feature},
    rowcode::RowError,
    time::{UTC_US_MAX, UTC_US_MIN},
    value::Value,
    version,
};

/// What is kept of a request between its steps.
#[derive(Debug)]
pub struct Work(Task);

#[derive(Debug)]
enum Task {
    /// An answer of a few parts: what it is, and how many parts of it were sent.
    Parts(Answer, usize),
    TestRows(TestRows),
    Listing(Listing),
    Query(QueryWork),
    Pages(PageStream),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Status,
    Version,
    Help(&'static [Topic]),
    /// What was asked is done; there is only the end to tell.
    Nothing,
}

impl Answerer for Board<'_> {
    type Work = Work;

    fn identity(&self) -> Identity<'_> {
        Identity {
            board_id: &self.facts.id,
            epoch: self.facts.epoch,
            boot_count: self.facts.boot_count,
            catalog_hash: self.store.catalog().hash(),
            build: BUILD,
            features: feature::LINK_TEST | feature::PAGES,
        }
    }

    fn offer_epoch(&mut self, epoch: u64) {
        if self.facts.epoch == 0 {
            self.facts.epoch = epoch;
        }
    }

    fn open(&mut self, request: Request<'_>, cursor: Option<Cursor>, now: Now<'_>) -> Result<Work, Failure> {
        let task = match request {
            Request::Command(text) => self.command(text, cursor, now)?,
            Request::SetTime(utc_us) if !(UTC_US_MIN..=UTC_US_MAX).contains(&utc_us) => {
                return Err(Failure::new(ErrorCode::Value, 0, format_args!("the years are 1 to 9999")));
            }
            Request::SetTime(utc_us) => {
                // A bridge tells what its clock says; that a board's runs ahead of it is no fault of the bridge.
                self.clock.set(now.uptime_us, utc_us);
                Task::Parts(Answer::Nothing, 0)
            }
            Request::LinkTest(test) => Task::TestRows(TestRows::open(test, cursor)?),
            Request::Pages(pages) => Task::Pages(self.pages(&pages, cursor)?),
        };
        Ok(Work(task))
    }

    fn rewind(&mut self, work: &mut Work, cursor: Option<Cursor>) -> Result<(), Failure> {
        match &mut work.0 {
            Task::Parts(_, sent) => *sent = 0,
            Task::TestRows(rows) => rows.rewind(cursor)?,
            Task::Listing(listing) => listing.rewind(cursor),
            Task::Query(query) => self.queries.rewind(query, cursor)?,
            Task::Pages(pages) => pages.rewind(cursor)?,
        }
        Ok(())
    }

    fn step(&mut self, work: &mut Work, body: &mut [u8], now: Now<'_>) -> Step {
        match &mut work.0 {
            Task::TestRows(rows) => rows.step(body),
            Task::Listing(listing) => self.list(listing, body, now.uptime_us),
            Task::Query(query) => {
                let (queries, around) = self.queries_and_rest(now.uptime_us);
                queries.step(query, body, around)
            }
            Task::Pages(pages) => pages.step(body, self.queries_and_rest(now.uptime_us).1),
            Task::Parts(answer, sent) => {
                *sent += 1;
                self.part(*answer, *sent - 1, body, now)
            }
        }
    }

    fn close(&mut self, work: Work) {
        match &work.0 {
            Task::Query(query) | Task::Listing(Listing { listed: Listed::Plan(query), .. }) => {
                self.queries.close(query);
            }
            Task::Parts(..) | Task::TestRows(_) | Task::Listing(_) | Task::Pages(_) => {}
        }
    }
}

impl Board<'_> {
    #[inline(never)]
    fn command(&mut self, text: &str, cursor: Option<Cursor>, now: Now<'_>) -> Result<Task, Failure> {
        let known = |table: Option<&str>, board: &Self, dbms: &str| match table {
            Some(table) => board.find(text, dbms, table).map(|_| ()),
            None if board.tables(Some(dbms), None).is_empty() => board.find(text, dbms, "").map(|_| ()),
            None => Ok(()),
        };
        let listed = match command::parse(text)? {
            Command::GetStatus(_) => return Ok(Task::Parts(Answer::Status, 0)),
            Command::GetVersion(_) => return Ok(Task::Parts(Answer::Version, 0)),
            Command::Help(topics) => return Ok(Task::Parts(Answer::Help(topics), 0)),
            Command::SetTime(utc_us) => return self.set_time(text, now.uptime_us, utc_us),
            Command::Sql(sql) => {
                let (queries, around) = self.queries_and_rest(now.uptime_us);
                return queries.open(&sql, position_of(text, sql.dbms), cursor, around).map(Task::Query);
            }
            Command::ExplainSql(sql) => {
                let (queries, around) = self.queries_and_rest(now.uptime_us);
                Listed::Plan(queries.open(&sql, position_of(text, sql.dbms), None, around)?)
            }
            Command::Insert(insert) => return self.insert(text, &insert, now.uptime_us),
            Command::CreateTable(create) => return self.create_table(text, &create),
            Command::SetSample { dbms, table, interval_us } => {
                return self.set_sample(text, (dbms, table), interval_us, now.uptime_us);
            }
            Command::GetDatabases(_) => Listed::Databases(self.databases()),
            Command::GetTables { dbms, .. } => {
                known(None, self, dbms)?;
                Listed::Tables(self.tables(Some(dbms), None))
            }
            Command::GetColumns { dbms, table, .. } => Listed::Columns(self.find(text, dbms, table)?),
            Command::GetRowsCount { dbms, table, .. } => {
                if let Some(dbms) = dbms {
                    known(table, self, dbms)?;
                }
                Listed::Counts(self.tables(dbms, table))
            }
            Command::BlockchainGetTable(get) => Listed::Tables(self.tables(get.dbms, get.name)),
            Command::GetProcesses(_) => Listed::Processes,
            Command::RunClient(_) | Command::GetJobs(_) => {
                let hint = format_args!("bridge only: ask the bridge, not a board");
                return Err(Failure::new(ErrorCode::Unsupported, 0, hint));
            }
        };
        let mut listing = Listing::new(listed);
        listing.rewind(cursor);
        Ok(Task::Listing(listing))
    }

    /// The pages of a table for an archive, which may say what it has.
    fn pages(&mut self, wanted: &Pages<'_>, cursor: Option<Cursor>) -> Result<PageStream, Failure> {
        if wanted.epoch != self.facts.epoch {
            let hint = format_args!("the board has restarted; these rows are gone");
            return Err(Failure::new(ErrorCode::Cursor, 0, hint));
        }
        let table = find(self.store.catalog(), (wanted.dbms, 0), (wanted.table, 0))?;
        if wanted.acknowledges {
            self.store.acknowledge(table, wanted.from);
        }
        PageStream::open(table, wanted.from, cursor, self.store.next_row_id(table))
    }

    /// The table that a command names; a fault stands where the name does.
    fn find(&self, text: &str, dbms: &str, table: &str) -> Result<TableId, Failure> {
        let placed = |name| (name, position_of(text, name));
        find(self.store.catalog(), placed(dbms), placed(table))
    }

    fn set_time(&mut self, text: &str, uptime_us: u64, utc_us: i64) -> Result<Task, Failure> {
        if !self.clock.set(uptime_us, utc_us) {
            let hint = format_args!("the clock does not run back; restart the board");
            return Err(Failure::new(ErrorCode::Value, position_of_last_value(text), hint));
        }
        Ok(Task::Parts(Answer::Nothing, 0))
    }

    /// A column that is not given is NULL.
    #[inline(never)]
    fn insert(&mut self, text: &str, insert: &Insert<'_>, uptime_us: u64) -> Result<Task, Failure> {
        let table = self.find(text, insert.dbms, insert.table)?;
        let columns = columns(self.store.catalog(), table);
        let width = columns.len();
        let mut texts = [const { None }; TABLE_COLUMNS_MAX];
        let mut members = insert.members();
        while let Some(member) = members.next_member()? {
            let Some(index) = columns.iter().position(|column| column.name == member.name) else {
                return Err(unknown_column(member.name, member.position, columns.iter().map(|c| c.name)));
            };
            member.value_of(&columns[index])?; // refused where it stands, before anything is kept
            texts[index] = Some(member);
        }
        let mut cells = [Value::Null; TABLE_COLUMNS_MAX];
        for ((cell, member), column) in cells.iter_mut().zip(&texts).zip(&columns) {
            if let Some(member) = member {
                *cell = member.value_of(column)?;
            }
        }
        drop(columns); // they are the store's, which changes now
        let stored = self.store.insert(table, uptime_us, &cells[1..width]);
        stored.map_err(|error| {
            let (code, hint) = match error {
                RowError::TooLong => (ErrorCode::TooLong, "a text is too long for a cell"),
                RowError::Full => (ErrorCode::Capacity, "PAGE_BYTES: the row does not fit a page"),
                _ => (ErrorCode::Type, "a value is not of its column's type"),
            };
            Failure::new(code, insert.offset, format_args!("{hint}"))
        })?;
        Ok(Task::Parts(Answer::Nothing, 0))
    }

    #[inline(never)]
    fn create_table(&mut self, text: &str, create: &CreateTable<'_>) -> Result<Task, Failure> {
        let table_position = position_of(text, create.table);
        let made = self.store.create(create.dbms, create.table, &create.columns, create.rows);
        made.map_err(|error| match error {
            TableError::Exists => Failure::new(
                ErrorCode::Exists,
                table_position,
                format_args!("there is a table {}.{} already", create.dbms, create.table),
            ),
            TableError::Capacity(bound, max) => {
                Failure::new(ErrorCode::Capacity, table_position, format_args!("{bound}: at most {max}"))
            }
            TableError::Name => {
                Failure::new(ErrorCode::Value, table_position, format_args!("a name is not one"))
            }
            TableError::Columns => {
                Failure::new(ErrorCode::Value, table_position, format_args!("two columns have one name"))
            }
        })?;
        Ok(Task::Parts(Answer::Nothing, 0))
    }

    #[inline(never)]
    fn set_sample(
        &mut self,
        text: &str,
        (dbms, name): (&str, &str),
        interval_us: u64,
        uptime_us: u64,
    ) -> Result<Task, Failure> {
        let table = self.find(text, dbms, name)?;
        self.schedule.set_period_us(table, interval_us, uptime_us).map_err(|error| match error {
            PeriodError::NoSampler => Failure::new(
                ErrorCode::Unsupported,
                position_of(text, name),
                format_args!("no sampler fills this table; insert rows"),
            ),
            PeriodError::OutOfBounds => Failure::new(
                ErrorCode::Value,
                position_of_last_value(text),
                format_args!("a row comes each 1 ms at most, each day at least"),
            ),
        })?;
        Ok(Task::Parts(Answer::Nothing, 0))
    }

    /// The part with this number, or the end.
    #[inline(never)]
    fn part(&self, answer: Answer, index: usize, body: &mut [u8], now: Now<'_>) -> Step {
        let mut text = heapless::String::<HELP_BYTES_MAX>::new();
        let part = match (answer, index) {
            (Answer::Status, 0) => Part::Status(self.status(now)),
            (Answer::Version, 0) => Part::Version(self.version()),
            (Answer::Help(topics), _) if index < topics.len() => {
                let topic = &topics[index];
                // Every topic fits: its bound says so.
                let _ = match topics {
                    [only] => write!(text, "{only:#}"),
                    _ => write!(text, "{topic}"),
                };
                Part::Text(&text)
            }
            _ => return Step::Done(Done { rows: 0, lost: 0 }),
        };
        match message::write(&part, body) {
            Ok(len) => Step::Part(len),
            Err(_) => Step::Failed(Failure::new(
                ErrorCode::TooLong,
                0,
                format_args!("the answer outgrew its frame"),
            )),
        }
    }

    fn status(&self, now: Now<'_>) -> Status<'static> {
        let stack = (self.facts.stack)();
        let counts = self.store.catalog().tables().filter_map(|(id, _)| self.store.counts(id));
        let (rows, rows_overwritten_unread) = counts.fold((0, 0), |(rows, overwritten), counts| {
            (rows + counts.next_row_id - counts.first_row_id, overwritten + counts.rows_overwritten_unread)
        });
        Status {
            board: self.facts.kind,
            uptime_us: now.uptime_us,
            utc_us: self.clock.utc_us(now.uptime_us),
            boot_count: self.facts.boot_count,
            panic_count: self.facts.panic_count,
            reset_reason: self.facts.reset_reason,
            stack_bytes_used_max: stack.bytes_used_max,
            stack_bytes: stack.bytes,
            link: *now.link,
            tables: self.store.catalog().tables().count() as u16,
            rows,
            rows_overwritten_unread,
            queries: self.queries.running() as u8,
            rows_missed: self.schedule.rows_left_out() + self.schedule.rows_refused(),
        }
    }

    fn version(&self) -> Version<'static> {
        Version { build: BUILD, board: self.facts.kind, wire_min: version::MIN, wire_max: version::CURRENT }
    }
}

#[inline(never)]
fn unknown_column<'n>(name: &str, position: usize, names: impl Iterator<Item = &'n str>) -> Failure {
    let names: heapless::Vec<&str, TABLE_COLUMNS_MAX> = names.take(TABLE_COLUMNS_MAX).collect();
    match nearest(name, &names) {
        Some(near) => {
            Failure::new(ErrorCode::UnknownColumn, position, format_args!("did you mean `{near}`?"))
        }
        None => Failure::new(
            ErrorCode::UnknownColumn,
            position,
            format_args!("no column `{name}`; see: get columns"),
        ),
    }
}
