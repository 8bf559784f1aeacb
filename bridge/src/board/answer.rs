//! An answer on its way from a session to whoever asked, with at most a credit's worth of it in memory.

use super::OwnedRequest;
use shared::{
    format::Printable,
    host::Ending,
    limits::CREDIT_BATCHES_MAX,
    message::{self, Class, ErrorCode, Part},
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::{Notify, mpsc};

/// Pieces that are under way: what the board has credit for, and the end.
const PIECES_MAX: usize = CREDIT_BATCHES_MAX as usize + 1;

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A [`Part`], as it travelled.
    Part(PartBytes),
    /// A batch of rows.
    Rows {
        /// How many.
        count: u16,
        /// Their bytes, in the row code.
        bytes: Vec<u8>,
        /// Rows before these that the board overwrote before it could send them, since the batch or the head before.
        lost: u64,
    },
}

/// A [`Part`] that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartBytes(Vec<u8>);

impl PartBytes {
    pub(super) fn of(part: &Part<'_>) -> Self {
        let mut bytes = vec![0; shared::limits::BODY_BYTES_MAX];
        let len = message::write(part, &mut bytes).unwrap_or(0); // it came out of one frame, so it fits
        bytes.truncate(len);
        Self(bytes)
    }

    /// The part; none if a board sent one that this bridge does not know.
    pub fn part(&self) -> Option<Part<'_>> {
        message::read(&self.0)
    }
}

/// Why an answer did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The board refused.
    #[error("{}: {}{}", code.name(), Printable(hint), at(*position))]
    Refused {
        /// What went wrong.
        code: ErrorCode,
        /// The byte of the command where it went wrong.
        position: u16,
        /// What to do, as the board sent it.
        hint: String,
    },
    /// It was sent, and its answer was lost.
    #[error(
        "outcome_unknown: the link broke after this was sent; look whether it was done before you ask again"
    )]
    OutcomeUnknown,
    /// It was never run.
    #[error("not_executed: the request was lost on the way and was not run; ask again")]
    NotExecuted,
    /// The rest of the answer is gone.
    #[error("board_restarted: the board restarted while it was answering; ask again")]
    BoardRestarted,
    /// Too many frames in a row were damaged.
    #[error(
        "link_damaged: frames were damaged again and again; check the cable, the ground and the baud rate"
    )]
    LinkDamaged,
    /// The board does not keep to the protocol.
    #[error("protocol: {0}; update the firmware or the bridge")]
    Protocol(&'static str),
    /// The session ended with the program.
    #[error("session_ended: the session with the board ended before the answer was complete")]
    SessionEnded,
}

fn at(position: u16) -> String {
    if position == 0 { String::new() } else { format!(" (at byte {position})") }
}

/// How an answer ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complete {
    /// Rows that the board overwrote before it could send them.
    pub rows_lost: u64,
}

impl AnswerError {
    pub(super) fn of(ending: Ending<'_>) -> Result<Complete, Self> {
        Err(match ending {
            Ending::Done { rows_lost } => return Ok(Complete { rows_lost }),
            Ending::Failed(error) => {
                Self::Refused { code: error.code, position: error.position, hint: error.hint.into() }
            }
            Ending::OutcomeUnknown => Self::OutcomeUnknown,
            Ending::NotExecuted => Self::NotExecuted,
            Ending::BoardRestarted => Self::BoardRestarted,
            Ending::LinkDamaged => Self::LinkDamaged,
            Ending::Protocol(what) => Self::Protocol(what),
        })
    }
}

/// What travels to the asker.
#[derive(Debug)]
enum Sent {
    Piece(Piece),
    End(Result<Complete, AnswerError>),
}

/// A request on its way to a session.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) request: OwnedRequest,
    pub(super) class: Class,
    pub(super) to: AnswerSender,
}

/// The session's end of an answer.
#[derive(Debug)]
pub(super) struct AnswerSender {
    pieces: mpsc::Sender<Sent>,
    consumed: Arc<AtomicU32>,
}

/// More pieces came than the board had credit for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overrun;

impl AnswerSender {
    /// Hands a piece on and never waits: the board has no credit for more than fits. If more comes all the same,
    /// the answer ends here.
    pub(super) fn piece(&self, piece: Piece) -> Result<(), Overrun> {
        if self.pieces.capacity() <= 1 {
            self.end(Err(AnswerError::Protocol("the board sent more than its credit")));
            return Err(Overrun);
        }
        let _ = self.pieces.try_send(Sent::Piece(piece)); // fails only if nobody wants it any more
        Ok(())
    }

    /// The end of the answer. Pieces leave room for it.
    pub(super) fn end(&self, end: Result<Complete, AnswerError>) {
        let _ = self.pieces.try_send(Sent::End(end)); // fails only if nobody wants it any more
    }

    /// Pieces the asker has taken since this was last asked.
    pub(super) fn take_consumed(&self) -> u32 {
        self.consumed.swap(0, Ordering::Relaxed)
    }

    /// The asker does not want the rest.
    pub(super) fn is_dropped(&self) -> bool {
        self.pieces.is_closed()
    }
}

/// The asker's end of an answer.
#[derive(Debug)]
pub struct Answer {
    pieces: Option<mpsc::Receiver<Sent>>,
    consumed: Arc<AtomicU32>,
    wake: Arc<Notify>,
    end: Option<Result<Complete, AnswerError>>,
}

impl Answer {
    /// The next piece, or the end. After the end it stays the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Piece>, AnswerError> {
        if self.end.is_none() {
            let sent = match &mut self.pieces {
                Some(pieces) => pieces.recv().await,
                None => None,
            };
            match sent {
                Some(Sent::Piece(piece)) => {
                    self.consumed.fetch_add(1, Ordering::Relaxed);
                    self.wake.notify_one();
                    return Ok(Some(piece));
                }
                Some(Sent::End(end)) => self.end = Some(end),
                None => self.end = Some(Err(AnswerError::SessionEnded)),
            }
        }
        match &self.end {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(None),
        }
    }

    /// How it ended; none while it has not, or if it failed.
    pub fn complete(&self) -> Option<Complete> {
        self.end.as_ref()?.as_ref().ok().copied()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.pieces = None; // first, so that the session sees it when it wakes
        self.wake.notify_one();
    }
}

pub(super) fn pair(request: OwnedRequest, class: Class, wake: Arc<Notify>) -> (Ask, Answer) {
    let (pieces_in, pieces) = mpsc::channel(PIECES_MAX);
    let consumed = Arc::new(AtomicU32::new(0));
    let to = AnswerSender { pieces: pieces_in, consumed: Arc::clone(&consumed) };
    (Ask { request, class, to }, Answer { pieces: Some(pieces), consumed, wake, end: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_hint_does_not_reach_the_terminal_as_it_is() {
        let hint = "\x1b]0;owned\x07\x1b[2J\r\nroot# \u{9b}31m";
        let error = AnswerError::Refused { code: ErrorCode::Syntax, position: 0, hint: hint.into() };
        assert_eq!(error.to_string(), r"syntax: \u{1b}]0;owned\u{7}\u{1b}[2J\r\nroot# \u{9b}31m");
    }

    #[tokio::test]
    async fn an_answer_with_more_pieces_than_credit_ends_with_an_error_and_not_with_a_gap() {
        let (ask, mut answer) =
            pair(OwnedRequest::Command("help".into()), Class::Interactive, Arc::new(Notify::new()));
        let piece = |count| Piece::Rows { count, bytes: Vec::new(), lost: 0 };
        for count in 0..CREDIT_BATCHES_MAX as u16 {
            assert_eq!(ask.to.piece(piece(count)), Ok(()));
        }
        assert_eq!(ask.to.piece(piece(99)), Err(Overrun));
        for count in 0..CREDIT_BATCHES_MAX as u16 {
            assert_eq!(answer.next().await, Ok(Some(piece(count))));
        }
        assert!(matches!(answer.next().await, Err(AnswerError::Protocol(_))));
        assert_eq!(answer.complete(), None);
    }
}
