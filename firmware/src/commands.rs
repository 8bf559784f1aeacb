//! Answers to requests: what each command does, and the parts its answer is made of.

use crate::{BUILD, Board, test_rows::TestRows};
use shared::{
    command::{self, Command, TOPICS, Topic},
    device::{Answerer, Identity, Now, Step},
    message::{self, Cursor, Done, ErrorCode, Failure, Part, Request, Status, Version, feature},
    time::{UTC_US_MAX, UTC_US_MIN},
    version,
};

/// What is kept of a request between its steps.
#[derive(Clone, Copy, Debug)]
pub struct Work(Task);

#[derive(Clone, Copy, Debug)]
enum Task {
    /// An answer of a few parts: what it is, and how many parts of it were sent.
    Parts(Answer, usize),
    TestRows(TestRows),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Status,
    Version,
    Help(&'static [Topic]),
    /// What was asked is done; there is only the end to tell.
    Nothing,
}

impl Answerer for Board {
    type Work = Work;

    fn identity(&self) -> Identity<'_> {
        Identity {
            board_id: &self.facts.id,
            epoch: self.facts.epoch,
            boot_count: self.facts.boot_count,
            catalog_hash: 0, // no tables
            build: BUILD,
            features: feature::LINK_TEST,
        }
    }

    fn offer_epoch(&mut self, epoch: u64) {
        if self.facts.epoch == 0 {
            self.facts.epoch = epoch;
        }
    }

    fn open(&mut self, request: Request<'_>, cursor: Option<Cursor>, now: Now<'_>) -> Result<Work, Failure> {
        let answer = match request {
            Request::Command(text) => match command::parse(text)? {
                Command::GetStatus(_) => Answer::Status,
                Command::GetVersion(_) => Answer::Version,
                Command::Help(topic) => Answer::Help(topic.map_or(TOPICS, core::slice::from_ref)),
                Command::SetTime(utc_us) => self.set_time(now.uptime_us, utc_us),
            },
            Request::SetTime(utc_us) if !(UTC_US_MIN..=UTC_US_MAX).contains(&utc_us) => {
                return Err(Failure::new(ErrorCode::Value, 0, format_args!("the years are 1 to 9999")));
            }
            Request::SetTime(utc_us) => self.set_time(now.uptime_us, utc_us),
            Request::LinkTest(test) => {
                return TestRows::open(test, cursor).map(|rows| Work(Task::TestRows(rows)));
            }
        };
        Ok(Work(Task::Parts(answer, 0)))
    }

    fn rewind(&mut self, work: &mut Work, cursor: Option<Cursor>) -> Result<(), Failure> {
        match &mut work.0 {
            Task::Parts(_, sent) => *sent = 0,
            Task::TestRows(rows) => rows.rewind(cursor)?,
        }
        Ok(())
    }

    fn step(&mut self, work: &mut Work, body: &mut [u8], now: Now<'_>) -> Step {
        match &mut work.0 {
            Task::TestRows(rows) => rows.step(body),
            Task::Parts(answer, sent) => {
                *sent += 1;
                self.part(*answer, *sent - 1, body, now)
            }
        }
    }
}

impl Board {
    fn set_time(&mut self, uptime_us: u64, utc_us: i64) -> Answer {
        self.clock.set(uptime_us, utc_us);
        Answer::Nothing
    }

    /// The part with this number, or the end.
    fn part(&self, answer: Answer, index: usize, body: &mut [u8], now: Now<'_>) -> Step {
        let mut line = heapless::String::<HELP_LINE_BYTES_MAX>::new();
        let part = match (answer, index) {
            (Answer::Status, 0) => Part::Status(self.status(now)),
            (Answer::Version, 0) => Part::Version(self.version()),
            (Answer::Help(topics), _) if index < topics.len() => {
                let Topic { usage, about, .. } = &topics[index];
                // Every topic's line fits; a test asks for them all.
                let _ = core::fmt::write(&mut line, format_args!("{usage:<44} {about}"));
                Part::Text(&line)
            }
            _ => return Step::Done(Done { rows: 0 }),
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
        }
    }

    fn version(&self) -> Version<'static> {
        Version { build: BUILD, board: self.facts.kind, wire_min: version::MIN, wire_max: version::CURRENT }
    }
}

/// Bytes of a line of help.
const HELP_LINE_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Facts, board::StackUse};
    use shared::message::{LinkCounters, ResetReason};

    #[test]
    fn a_time_that_has_no_text_is_refused() {
        let mut board = Board::new(Facts {
            kind: "test",
            id: heapless::Vec::new(),
            epoch: 1,
            boot_count: 1,
            panic_count: 0,
            reset_reason: ResetReason::PowerOn,
            stack: StackUse::default,
        });
        let link = LinkCounters::default();
        let now = Now { uptime_us: 5, link: &link };
        for utc_us in [i64::MIN, UTC_US_MIN - 1, UTC_US_MAX + 1, i64::MAX] {
            let refused = board.open(Request::SetTime(utc_us), None, now).map(drop);
            assert_eq!(refused.map_err(|failure| failure.code), Err(ErrorCode::Value), "{utc_us}");
            assert_eq!(board.clock.utc_us(5), None);
        }
        for utc_us in [UTC_US_MIN, UTC_US_MAX] {
            assert!(board.open(Request::SetTime(utc_us), None, now).is_ok());
            assert_eq!(board.clock.utc_us(5), Some(utc_us));
        }
    }
}
