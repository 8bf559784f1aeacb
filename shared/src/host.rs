//! The asking end of the protocol: bytes, requests and time in, bytes and events out. Touches no link and no clock.
//!
//! [`Host`] keeps one slot for each request until its answer has ended. What is lost on the way is found in two
//! ways: a gap in the sequence of a request's frames, or a pong that says the board has sent more than arrived
//! (a link keeps its order, so what was sent before the pong and is not here is lost). Then the request is resumed
//! in a new generation from its cursor, or its answer is recalled if it must not be run twice.

mod requests;
mod slot;

use crate::{
    frame::{DELIMITER, Fed, FrameBuffer, FrameDecoder, WireBuffer},
    message::{BoardHello, Class, Part, Request, WireError, kind},
};
use requests::Requests;

/// What happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The board has answered the hello; requests go out from now on.
    Up(&'a BoardHello<'a>),
    /// A piece of the answer to a request. A [`Part::Started`] comes once, however often the stream is resumed.
    Part(u16, &'a Part<'a>),
    /// A batch: how many rows, their bytes, and how many rows before them were overwritten before they could be sent.
    Rows(u16, u16, &'a [u8], u64),
    /// The answer to a request is complete, or will never be. Its slot is free.
    Ended(u16, Ending<'a>),
    /// The link is of no use any more; the caller closes it and may connect again.
    Down(Down),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending<'a> {
    /// Complete: every row arrived once and in order, except those that the board overwrote before it sent them.
    Done {
        /// How many were overwritten.
        rows_lost: u64,
    },
    /// The board refused it or could not complete it.
    Failed(WireError<'a>),
    /// It must not be run twice, and it was sent, but its answer did not come.
    OutcomeUnknown,
    /// It must not be run twice, and it never reached the board.
    NotExecuted,
    /// Some of the answer came, then the board restarted.
    BoardRestarted,
    /// Frames were damaged again and again.
    LinkDamaged,
    /// The board broke the protocol; how.
    Protocol(&'static str),
}

/// Why a link is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// No board answered the hello.
    NoHello {
        /// Bytes that arrived meanwhile and were no frame.
        bytes_in: u64,
    },
    /// The board speaks no version that this bridge speaks.
    Version {
        /// The oldest version the board speaks.
        board_min: u8,
        /// The newest version the board speaks.
        board_max: u8,
    },
    /// The board stopped answering.
    Silent,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// As many are open as can be. Try again when one has ended.
    Full,
    /// It is longer than a frame.
    TooLong,
}

/// What the link has seen from this end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Bytes that came in.
    pub bytes_in: u64,
    /// Bytes that went out.
    pub bytes_out: u64,
    /// Whole frames that came in.
    pub frames_in: u64,
    /// Frames that came in damaged.
    pub frames_damaged: u64,
    /// Whole frames that came in and were of no use: copies, stale generations.
    pub frames_stale: u64,
    /// Times a request was resumed.
    pub resumes: u64,
}

/// One end of one link.
#[derive(Debug)]
pub struct Host {
    decoder: FrameDecoder,
    frame: FrameBuffer,
    requests: Requests,
}

impl Host {
    /// A host without a link. `seed` is random: sessions and epochs are drawn from it.
    pub fn new(seed: u64) -> Self {
        Self {
            decoder: FrameDecoder::default(),
            frame: FrameBuffer::default(),
            requests: Requests::new(seed),
        }
    }

    /// The link has come up: says hello as soon as it can.
    pub fn connect(&mut self, now_us: u64) {
        self.decoder.reset();
        self.requests.greet(now_us);
    }

    /// The link is gone. What can be asked again waits for the next; what cannot ends here.
    pub fn disconnect(&mut self, mut events: impl FnMut(Event<'_>)) {
        self.requests.disconnect(&mut events);
    }

    /// Asks something; it is sent when the link is up. Returns the request's number.
    pub fn open(&mut self, request: &Request<'_>, class: Class) -> Result<u16, OpenError> {
        self.requests.open(request, class)
    }

    /// The caller has done with `parts` of the parts and batches it was given.
    pub fn consumed(&mut self, request: u16, parts: u32) {
        self.requests.consumed(request, parts);
    }

    /// The caller does not want the rest. No event follows.
    pub fn close(&mut self, request: u16) {
        self.requests.close(request);
    }

    /// Takes bytes from the link, as many as there are.
    pub fn feed(&mut self, now_us: u64, mut bytes: &[u8], mut events: impl FnMut(Event<'_>)) {
        self.requests.count_in(bytes.len());
        loop {
            match self.decoder.feed(&mut bytes) {
                Fed::More => return,
                Fed::Damaged(_) => self.requests.damaged(),
                Fed::Frame(header, body) => self.requests.receive(now_us, header, body, &mut events),
            }
        }
    }

    /// Makes the next frame, if there is anything to say; returns its length.
    pub fn transmit(&mut self, now_us: u64, out: &mut WireBuffer) -> Option<usize> {
        let (header, len) = self.requests.next_frame(now_us, self.frame.body())?;
        let mut sent = self.frame.seal(header, len, out);
        if header.kind == kind::BRIDGE_HELLO {
            out.copy_within(..sent, 1);
            out[0] = DELIMITER;
            sent += 1;
        }
        self.requests.sent(sent);
        Some(sent)
    }

    /// When [`tick`](Self::tick) is to be called at the latest.
    pub fn deadline_us(&self) -> Option<u64> {
        self.requests.deadline_us()
    }

    /// Time has passed.
    pub fn tick(&mut self, now_us: u64, mut events: impl FnMut(Event<'_>)) {
        self.requests.tick(now_us, &mut events);
    }

    /// Whether the board has answered the hello, and has not gone since.
    pub fn is_up(&self) -> bool {
        self.requests.is_up()
    }

    /// How long the last ping took, if one was answered.
    pub fn round_trip_us(&self) -> Option<u64> {
        self.requests.round_trip_us()
    }

    /// Asks for a fresh [`round_trip_us`](Self::round_trip_us).
    pub fn ping(&mut self) {
        self.requests.ping_soon();
    }

    /// What the link has seen.
    pub fn counters(&self) -> &HostCounters {
        self.requests.counters()
    }
}
