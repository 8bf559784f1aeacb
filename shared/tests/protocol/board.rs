//! What stands behind the device here: answers that are as slow, as long and as lossy as a test wants them.
//!
//! Only for the scheduling and the healing of the protocol; end-to-end tests run the firmware library.

use shared::{
    command::{self, Command},
    device::{Answerer, Identity, Now, Step},
    link_test,
    message::{self, Cursor, Done, ErrorCode, Failure, LinkTest, Part, Request, RowsWriter, Started},
    schema,
};
use std::collections::BTreeMap;

/// A board that answers `get status` with one part, `help` with [`HELP_PARTS`], `get version` after some work,
/// and link tests with rows.
#[derive(Debug)]
pub(crate) struct Board {
    /// Random number of this boot.
    pub(crate) epoch: u64,
    /// How often each time was set.
    pub(crate) executed: BTreeMap<i64, u32>,
    /// Steps that `get version` takes before it has its answer.
    pub(crate) work_steps: u32,
    /// Rows in one batch at most.
    pub(crate) batch_rows: u16,
    /// Rows before this one are overwritten.
    pub(crate) row_first: u64,
    /// Works that were opened and not closed.
    pub(crate) works_open: i64,
    /// Where streams were resumed.
    pub(crate) resumed: Vec<Cursor>,
}

/// Parts of the answer to `help`.
pub(crate) const HELP_PARTS: u32 = 4;

/// What is kept of a request between its steps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// `parts` texts, after `work_left` steps.
    Texts { parts: u32, sent: u32, work_left: u32 },
    /// Test rows.
    Rows { test: LinkTest, started: bool, lost: u64, begin: u64, next: u64, rows: u64 },
}

impl Board {
    /// A board that has just started.
    pub(crate) fn new(epoch: u64) -> Self {
        Self {
            epoch,
            executed: BTreeMap::new(),
            work_steps: 3,
            batch_rows: 8,
            row_first: 0,
            works_open: 0,
            resumed: Vec::new(),
        }
    }

    fn rows_from(&mut self, test: LinkTest, cursor: Option<Cursor>) -> Result<Work, Failure> {
        let end = u64::from(test.rows);
        self.resumed.extend(cursor);
        let cursor = cursor.unwrap_or(Cursor { next: 0, end, rows: 0 });
        if cursor.end != end || cursor.next > end {
            return Err(Failure::new(ErrorCode::Cursor, 0, format_args!("this stream ends at row {end}")));
        }
        let begin = cursor.next.max(self.row_first.min(end));
        let (lost, rows) = (begin - cursor.next, cursor.rows);
        Ok(Work::Rows { test, started: false, lost, begin, next: begin, rows })
    }

    fn begin(&mut self, request: Request<'_>, cursor: Option<Cursor>) -> Result<Work, Failure> {
        let texts = |parts, work_left| Ok(Work::Texts { parts, sent: 0, work_left });
        match request {
            Request::LinkTest(test) => self.rows_from(test, cursor),
            Request::Pages(_) => Err(Failure::new(ErrorCode::Unsupported, 0, format_args!("no pages here"))),
            Request::SetTime(utc_us) => {
                *self.executed.entry(utc_us).or_default() += 1;
                texts(0, 0)
            }
            Request::Command(text) => match command::parse(text)? {
                Command::GetStatus(_) => texts(1, 0),
                Command::GetVersion(_) => texts(1, self.work_steps),
                Command::Help(_) => texts(HELP_PARTS, 0),
                Command::SetTime(utc_us) => {
                    *self.executed.entry(utc_us).or_default() += 1;
                    texts(1, 0)
                }
                _ => Err(Failure::new(ErrorCode::Unsupported, 0, format_args!("not here"))),
            },
        }
    }
}

impl Answerer for Board {
    type Work = Work;

    fn identity(&self) -> Identity<'_> {
        let Self { epoch, .. } = *self;
        Identity { board_id: &[7], epoch, boot_count: 1, catalog_hash: 0, build: "sim", features: 0 }
    }

    fn offer_epoch(&mut self, epoch: u64) {
        if self.epoch == 0 {
            self.epoch = epoch;
        }
    }

    fn open(&mut self, request: Request<'_>, cursor: Option<Cursor>, _: Now<'_>) -> Result<Work, Failure> {
        let opened = self.begin(request, cursor);
        self.works_open += i64::from(opened.is_ok());
        opened
    }

    fn close(&mut self, _: Work) {
        self.works_open -= 1;
        assert!(self.works_open >= 0, "a work was closed twice");
    }

    fn rewind(&mut self, work: &mut Work, cursor: Option<Cursor>) -> Result<(), Failure> {
        match work {
            Work::Texts { sent, .. } => *sent = 0,
            Work::Rows { test, .. } => *work = self.rows_from(*test, cursor)?,
        }
        Ok(())
    }

    fn step(&mut self, work: &mut Work, body: &mut [u8], _: Now<'_>) -> Step {
        match work {
            Work::Texts { work_left: left @ 1.., .. } => {
                *left -= 1;
                Step::Working
            }
            Work::Texts { parts, sent, .. } if *sent < *parts => {
                *sent += 1;
                let text = format!("part {sent} of {parts}");
                Step::Part(message::write(&Part::Text(&text), body).unwrap())
            }
            Work::Texts { .. } => Step::Done(Done { rows: 0, lost: 0 }),
            Work::Rows { test, started: started @ false, lost, begin, rows, .. } => {
                *started = true;
                let columns = link_test::COLUMNS.into_iter().collect();
                let cursor = Cursor { next: *begin, end: u64::from(test.rows), rows: *rows };
                let part = Part::Started(Started { columns, cursor, lost: *lost, clock_set: true });
                Step::Part(message::write(&part, body).unwrap())
            }
            Work::Rows { test, begin, next, .. } => {
                let end = u64::from(test.rows);
                if *next == end {
                    return Step::Done(Done { rows: end - *begin, lost: 0 });
                }
                let mut rows = RowsWriter::new(body, schema::kinds(&link_test::COLUMNS));
                while *next < end && rows.count() < self.batch_rows {
                    let cells = link_test::row(test.seed, *next);
                    if rows.push(&cells).is_err() {
                        break;
                    }
                    *next += 1;
                }
                Step::Rows(rows.finish(*next, 0).unwrap())
            }
        }
    }
}
