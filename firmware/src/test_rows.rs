//! The stream of made-up rows that a link is measured with.

use shared::{
    device::Step,
    link_test,
    message::{self, BodyTooLong, Cursor, Done, ErrorCode, Failure, LinkTest, Part, RowsWriter, Started},
    schema,
};

/// How far one such stream is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestRows {
    test: LinkTest,
    /// The head has been sent.
    started: bool,
    /// The row at which this generation began.
    begin: u64,
    /// The next row.
    next: u64,
    /// Rows that came before this generation.
    rows: u64,
}

impl TestRows {
    /// The stream from `cursor` on, or from its beginning.
    pub(crate) fn open(test: LinkTest, cursor: Option<Cursor>) -> Result<Self, Failure> {
        let end = u64::from(test.rows);
        let Cursor { next, end: wanted, rows } = cursor.unwrap_or(Cursor { next: 0, end, rows: 0 });
        if wanted != end || next > end {
            return Err(Failure::new(ErrorCode::Cursor, 0, format_args!("this stream ends at row {end}")));
        }
        Ok(Self { test, started: false, begin: next, next, rows })
    }

    /// Goes back to `cursor`.
    pub(crate) fn rewind(&mut self, cursor: Option<Cursor>) -> Result<(), Failure> {
        *self = Self::open(self.test, cursor)?;
        Ok(())
    }

    /// The head, then a batch at a time, then the end.
    #[inline(never)]
    pub(crate) fn step(&mut self, body: &mut [u8]) -> Step {
        let end = u64::from(self.test.rows);
        let written = if !self.started {
            self.started = true;
            self.write_head(body).map(Step::Part)
        } else if self.next < end {
            self.write_batch(body).map(Step::Rows)
        } else {
            Ok(Step::Done(Done { rows: end - self.begin, lost: 0 }))
        };
        written.unwrap_or_else(|BodyTooLong| {
            Step::Failed(Failure::new(ErrorCode::TooLong, 0, format_args!("a test row outgrew its frame")))
        })
    }

    fn write_head(&self, body: &mut [u8]) -> Result<usize, BodyTooLong> {
        let cursor = Cursor { next: self.begin, end: u64::from(self.test.rows), rows: self.rows };
        let columns = link_test::COLUMNS.into_iter().collect();
        message::write(&Part::Started(Started { columns, cursor, lost: 0, clock_set: false }), body)
    }

    /// As many rows as fit.
    fn write_batch(&mut self, body: &mut [u8]) -> Result<usize, BodyTooLong> {
        let mut rows = RowsWriter::new(body, schema::kinds(&link_test::COLUMNS));
        while self.next < u64::from(self.test.rows) {
            let cells = link_test::row(self.test.seed, self.next);
            if rows.push(&cells).is_err() {
                break;
            }
            self.next += 1;
        }
        if rows.count() == 0 {
            return Err(BodyTooLong);
        }
        rows.finish(self.next, 0)
    }
}
