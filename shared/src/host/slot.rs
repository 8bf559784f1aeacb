//! One request of a [`Host`](super::Host): how far its answer has come, and what each frame of it does.

use super::{Ending, Event};
use crate::{
    frame::Header,
    limits::{
        BUSY_ATTEMPTS_MAX, BUSY_RETRY_US_MAX, BUSY_RETRY_US_MIN, CREDIT_BATCHES_MAX, GENERATION_FRAMES_MAX,
        REQUEST_BYTES_MAX,
    },
    message::{self, Class, Cursor, End, ErrorCode, Open, Part, Request, Started, WireError, kind},
    schema,
};

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) request: u16,
    pub(super) generation: u8,
    class: Class,
    pub(super) repeatable: bool,
    body: heapless::Vec<u8, REQUEST_BYTES_MAX>,
    pub(super) send: Send,
    /// Whether any frame of it was ever sent.
    pub(super) was_sent: bool,
    /// The order of the frame that opened this generation.
    pub(super) opened_order: u64,
    /// The sequence of the next frame.
    pub(super) expected: u32,
    /// The credit the board was given last.
    pub(super) credit: u32,
    /// Parts the caller has not said it is done with.
    buffered: u32,
    /// When something was last heard of it.
    pub(super) heard_us: u64,
    /// Resumes since the last good frame.
    pub(super) resumes: u32,
    /// Times the board was busy, and until when it is not asked again.
    busy: u32,
    pub(super) retry_us: Option<u64>,
    pub(super) cursor: Option<Cursor>,
    started: Option<StartedMark>,
    rows_generation: u64,
    /// Parts other than the head of a stream: in this generation, and given to the caller in all.
    parts_generation: u32,
    parts_delivered: u32,
    pub(super) rows_lost: u64,
    /// Those of them that neither the head nor a batch has told the caller of.
    pub(super) rows_lost_untold: u64,
    /// Whether any part of the answer reached the caller.
    pub(super) delivered: bool,
}

/// What is to be sent for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Send {
    Nothing,
    Open,
    Recall,
    Credit,
}

/// What is remembered of a stream's columns, to see that a resumed stream has the same.
#[derive(Debug, PartialEq, Eq)]
struct StartedMark {
    columns: u32,
}

/// What became of a frame of an answer.
#[derive(Debug)]
pub(super) enum Heard<'b> {
    /// It was the next one.
    Taken,
    /// A copy, or of another generation.
    Stale,
    /// Frames before it were lost.
    Gap,
    /// The board has no room for the request; it will be sent again.
    Busy,
    /// Nothing follows.
    Ended(Ending<'b>),
}

impl Slot {
    pub(super) fn new(
        request: u16,
        class: Class,
        repeatable: bool,
        body: heapless::Vec<u8, REQUEST_BYTES_MAX>,
    ) -> Self {
        Self {
            request,
            generation: 0,
            class,
            repeatable,
            body,
            send: Send::Open,
            was_sent: false,
            opened_order: 0,
            expected: 0,
            credit: 0,
            buffered: 0,
            heard_us: 0,
            resumes: 0,
            busy: 0,
            retry_us: None,
            cursor: None,
            started: None,
            rows_generation: 0,
            parts_generation: 0,
            parts_delivered: 0,
            rows_lost: 0,
            rows_lost_untold: 0,
            delivered: false,
        }
    }

    /// The credit that keeps what the caller buffers within its bound.
    fn window(&self) -> u32 {
        self.expected + CREDIT_BATCHES_MAX.saturating_sub(self.buffered)
    }

    /// Forgets this generation and begins the next.
    pub(super) fn resume(&mut self) {
        if self.was_sent {
            self.generation = self.generation.wrapping_add(1).max(1); // 0 begins a request
        }
        self.send = if self.repeatable || !self.was_sent { Send::Open } else { Send::Recall };
        self.expected = 0;
        self.rows_generation = 0;
        self.parts_generation = 0;
        self.credit = 0;
    }

    /// The board may have something to say about this generation.
    pub(super) fn is_under_way(&self) -> bool {
        self.was_sent && !matches!(self.send, Send::Open | Send::Recall)
    }

    /// The caller has done with so many parts; tells the board when there is room for many more.
    pub(super) fn consumed(&mut self, parts: u32) {
        self.buffered = self.buffered.saturating_sub(parts);
        let grown = self.window().saturating_sub(self.credit);
        if self.send == Send::Nothing && self.was_sent && grown >= CREDIT_BATCHES_MAX / 2 {
            self.send = Send::Credit;
        }
    }

    /// The header and the length of the body of what is to be sent.
    pub(super) fn next_frame(&mut self, now_us: u64, order: u64, body: &mut [u8]) -> Option<(Header, usize)> {
        let send = core::mem::replace(&mut self.send, Send::Nothing);
        self.credit = self.window();
        let (kind, len) = match send {
            Send::Nothing => return None,
            Send::Credit => (kind::CREDIT, 0),
            Send::Recall => (kind::RECALL, 0),
            Send::Open => {
                let request = message::read::<Request>(&self.body)?;
                let open = Open { class: self.class, cursor: self.cursor, request };
                (kind::OPEN, message::write(&open, body).ok()?)
            }
        };
        if kind != kind::CREDIT {
            self.was_sent = true;
            self.opened_order = order;
            self.heard_us = now_us;
        }
        let Self { generation, request, credit, .. } = *self;
        Some((Header { kind, generation, request, sequence: credit }, len))
    }

    /// A frame of the answer.
    pub(super) fn answer<'b>(
        &mut self,
        now_us: u64,
        header: Header,
        body: &'b [u8],
        events: &mut impl FnMut(Event<'_>),
    ) -> Heard<'b> {
        if !self.is_under_way() || self.generation != header.generation || header.sequence < self.expected {
            return Heard::Stale;
        }
        if header.sequence >= self.credit && header.kind != kind::END {
            return Heard::Ended(Ending::Protocol("the board sent more than its credit"));
        }
        if header.sequence > self.expected || self.expected >= GENERATION_FRAMES_MAX {
            return Heard::Gap; // the frames between were lost, or it is time to count anew
        }
        self.expected += 1;
        self.heard_us = now_us;
        match header.kind {
            kind::ROWS => self.rows(body, events),
            kind::PART => self.part(body, events),
            _ => self.end(now_us, body),
        }
    }

    fn rows<'b>(&mut self, body: &[u8], events: &mut impl FnMut(Event<'_>)) -> Heard<'b> {
        let (Some((head, bytes)), Some(cursor)) = (message::read_rows(body), &mut self.cursor) else {
            return Heard::Ended(Ending::Protocol("a batch came that cannot be read"));
        };
        if head.next < cursor.next || head.next > cursor.end {
            return Heard::Ended(Ending::Protocol("a batch came from outside its stream"));
        }
        cursor.next = head.next;
        cursor.rows = cursor.rows.saturating_add(head.count.into());
        self.rows_lost = self.rows_lost.saturating_add(head.lost);
        self.rows_lost_untold = self.rows_lost_untold.saturating_add(head.lost);
        self.rows_generation += u64::from(head.count);
        self.delivered = true;
        self.resumes = 0;
        self.buffered += 1;
        let lost = core::mem::take(&mut self.rows_lost_untold);
        events(Event::Rows(self.request, head.count, bytes, lost));
        Heard::Taken
    }

    fn part<'b>(&mut self, body: &[u8], events: &mut impl FnMut(Event<'_>)) -> Heard<'b> {
        let Some(part) = message::read::<Part>(body) else {
            return Heard::Ended(Ending::Protocol("a part came that cannot be read"));
        };
        let is_new = match &part {
            Part::Started(started) => match self.start(started) {
                Ok(is_new) => is_new,
                Err(ending) => return Heard::Ended(ending),
            },
            _ => self.count_part(),
        };
        if is_new {
            self.buffered += 1;
            events(Event::Part(self.request, &part));
        } else {
            self.consumed(0); // nobody else will see that there is room for more
        }
        Heard::Taken
    }

    /// The head of a stream, the first time or after a resume. Says which.
    fn start(&mut self, started: &Started<'_>) -> Result<bool, Ending<'static>> {
        let mark = StartedMark::of(started);
        let Cursor { next, end, rows } = started.cursor;
        let is_from = |cursor: Cursor| cursor.end == end && cursor.next <= next && cursor.rows == rows;
        let goes_on = self.started.as_ref().is_none_or(|before| *before == mark)
            && self.cursor.map_or(rows == 0, is_from);
        if !goes_on {
            return Err(Ending::Protocol("a resumed stream is another one"));
        }
        self.rows_lost = self.rows_lost.saturating_add(started.lost);
        self.cursor = Some(started.cursor); // past what was lost, so that it is counted once
        let is_first = self.started.replace(mark).is_none();
        if !is_first {
            self.rows_lost_untold = self.rows_lost_untold.saturating_add(started.lost);
        }
        Ok(is_first)
    }

    /// Another part; false if it came already, before the answer was sent again.
    fn count_part(&mut self) -> bool {
        self.parts_generation += 1;
        let is_new = self.parts_generation > self.parts_delivered;
        if is_new {
            self.parts_delivered = self.parts_generation;
            self.delivered = true;
            self.resumes = 0;
        }
        is_new
    }

    fn end<'b>(&mut self, now_us: u64, body: &'b [u8]) -> Heard<'b> {
        Heard::Ended(match message::read::<End>(body) {
            None => Ending::Protocol("an end came that cannot be read"),
            Some(Ok(done)) if done.rows != self.rows_generation => {
                Ending::Protocol("the board counts other rows than arrived")
            }
            Some(Ok(done)) => Ending::Done { rows_lost: self.rows_lost.saturating_add(done.lost) },
            Some(Err(WireError { code: ErrorCode::Busy, .. })) if self.busy < BUSY_ATTEMPTS_MAX => {
                self.retry_us =
                    Some(now_us + (BUSY_RETRY_US_MIN << self.busy.min(16)).min(BUSY_RETRY_US_MAX));
                self.busy += 1;
                self.resume();
                self.send = Send::Open; // it was not begun, so this does not begin it twice
                return Heard::Busy;
            }
            Some(Err(WireError { code: ErrorCode::Cursor, .. }))
                if self.cursor.is_some() && !self.delivered =>
            {
                // The rest of the answer is gone, but none of it has come yet: it begins anew.
                self.cursor = None;
                self.rows_lost = 0;
                self.resume();
                return Heard::Taken;
            }
            Some(Err(WireError { code: ErrorCode::NotExecuted, .. })) => Ending::NotExecuted,
            Some(Err(WireError { code: ErrorCode::Forgotten, .. })) => Ending::OutcomeUnknown,
            Some(Err(error)) => Ending::Failed(error),
        })
    }
}

impl StartedMark {
    fn of(started: &Started<'_>) -> Self {
        Self { columns: schema::hash(started.columns.iter().map(|column| (column.name, column.kind))) }
    }
}
