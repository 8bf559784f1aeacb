//! The pages of one table as they are, one a frame, for an archive.

use crate::{
    catalog::TableId,
    queries::{Surroundings, columns},
};
use shared::{
    device::Step,
    message::{self, BodyTooLong, Cursor, Done, ErrorCode, Failure, Part, RowsHead, Started},
    page::Page,
};

/// How far one such stream is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageStream {
    table: TableId,
    /// Where it begins.
    first: Cursor,
    /// Where it goes on, and how many rows came before.
    cursor: Cursor,
    sent: Sent,
    /// Rows sent in this generation.
    rows: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Nothing,
    Head,
    Clock,
}

impl PageStream {
    /// The stream from row `from` on, or from `cursor`.
    pub(crate) fn open(
        table: TableId,
        from: u64,
        cursor: Option<Cursor>,
        next_row_id: u64,
    ) -> Result<Self, Failure> {
        let first = Cursor { next: from.min(next_row_id), end: next_row_id, rows: 0 };
        let mut stream = Self { table, first, cursor: first, sent: Sent::Nothing, rows: 0 };
        stream.rewind(cursor)?;
        Ok(stream)
    }

    /// Goes back to `cursor`, or to the beginning.
    pub(crate) fn rewind(&mut self, cursor: Option<Cursor>) -> Result<(), Failure> {
        let cursor = cursor.unwrap_or(self.first);
        if cursor.end > self.first.end || cursor.next > cursor.end {
            let hint = format_args!("this stream ends at row {}", self.first.end);
            return Err(Failure::new(ErrorCode::Cursor, 0, hint));
        }
        (self.cursor, self.sent, self.rows) = (cursor, Sent::Nothing, 0);
        Ok(())
    }

    /// The head, the clock, then a page at a time, then the end.
    #[inline(never)]
    pub(crate) fn step(&mut self, body: &mut [u8], around: Surroundings<'_>) -> Step {
        let bytes = around.store.page_with(self.table, self.cursor.next);
        let page = match bytes.filter(|_| self.cursor.next < self.cursor.end).map(Page::read).transpose() {
            Ok(page) => page,
            Err(_) => return failed(ErrorCode::Damaged, "a page of the table cannot be read"),
        };
        // Rows that are gone were overwritten; of the last page, what came later is not this stream's.
        let first = page.map_or(self.cursor.next, |page| page.first_row_id()).min(self.cursor.end);
        let lost = first.saturating_sub(self.cursor.next);
        let written = match (self.sent, page) {
            (Sent::Nothing, _) => {
                self.cursor.next += lost;
                self.sent = Sent::Head;
                let head = Started {
                    columns: columns(around.store.catalog(), self.table),
                    cursor: self.cursor,
                    lost,
                    clock_set: around.clock.is_set(),
                };
                message::write(&Part::Started(head), body).map(Step::Part)
            }
            (Sent::Head, _) => {
                self.sent = Sent::Clock;
                message::write(&Part::Clock(around.clock.clone()), body).map(Step::Part)
            }
            (Sent::Clock, Some(page)) if first < self.cursor.end => {
                let next = page.next_row_id().min(self.cursor.end);
                // No more than a page has rows.
                let count = (next - first.max(self.cursor.next)) as u16;
                self.cursor.next = next;
                self.cursor.rows += u64::from(count);
                self.rows += u64::from(count);
                message::write_page(&RowsHead { count, next, lost }, page.bytes(), body).map(Step::Rows)
            }
            (Sent::Clock, _) => Ok(Step::Done(Done { rows: self.rows, lost })),
        };
        written.unwrap_or_else(|BodyTooLong| failed(ErrorCode::TooLong, "a page outgrew its frame"))
    }
}

fn failed(code: ErrorCode, hint: &str) -> Step {
    Step::Failed(Failure::new(code, 0, format_args!("{hint}")))
}
