//! The answering end of the protocol: bytes and time in, bytes out. Touches no link and no clock.
//!
//! [`Device`] keeps one slot for each request that is open on its link. Whenever the link has room it is asked for
//! one frame: control first, then interactive requests in turn, then background ones. A frame is made when it is
//! sent, so nothing is kept for resending: the [`Answerer`] goes back to a cursor, or to an answer it still holds.

mod seen;

use crate::{
    frame::{DELIMITER, Fed, FrameBuffer, FrameDecoder, Header, WireBuffer},
    limits::{BODY_BYTES_MAX, REQUESTS_MAX, SESSION_QUIET_US_MAX},
    message::{
        self, BoardHello, BridgeHello, Class, Cursor, Done, ErrorCode, Failure, LinkCounters, Open,
        OpenRequests, Progress, ProgressList, Request, kind,
    },
    version,
};
use seen::Seen;

/// What stands behind a board's links and answers requests. Every call takes bounded time.
pub trait Answerer {
    /// What is kept of a request between its steps.
    type Work;

    /// Who the board is. The device fills in `nonce`, versions and limits.
    fn identity(&self) -> Identity<'_>;

    /// The bridge offers an epoch; a board that has none takes it.
    fn offer_epoch(&mut self, epoch: u64);

    /// Begins a request, at `cursor` if it is a stream of rows that goes on.
    fn open(
        &mut self,
        request: Request<'_>,
        cursor: Option<Cursor>,
        now: Now<'_>,
    ) -> Result<Self::Work, Failure>;

    /// Goes back to `cursor`, or to the beginning of the answer. Never does the request's work twice.
    fn rewind(&mut self, work: &mut Self::Work, cursor: Option<Cursor>) -> Result<(), Failure>;

    /// Does a little, and writes the next piece of the answer to `body` if it has one.
    fn step(&mut self, work: &mut Self::Work, body: &mut [u8], now: Now<'_>) -> Step;

    /// Nobody will ask for this work again. Called exactly once for each that was opened: when the bridge closes the
    /// request, when it fails, and when the session or the device ends.
    fn close(&mut self, work: Self::Work);
}

/// Who a board is, for its hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The chip's own id.
    pub board_id: &'a [u8],
    /// Random number of this boot, 0 while it has none.
    pub epoch: u64,
    /// How often the board has started.
    pub boot_count: u32,
    /// Changes when a table or a column does.
    pub catalog_hash: u64,
    /// The firmware's name and version.
    pub build: &'a str,
    /// Bits of [`message::feature`].
    pub features: u32,
}

/// When and on what link an answerer is called.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// Microseconds since the board started.
    pub uptime_us: u64,
    /// What the link has seen.
    pub link: &'a LinkCounters,
}

/// What one step of a request gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing to send yet: more work is to be done.
    Working,
    /// A [`message::Part`] of this many bytes.
    Part(usize),
    /// A batch of this many bytes, made with [`message::RowsWriter`].
    Rows(usize),
    /// The answer is complete.
    Done(Done),
    /// The answer cannot be completed.
    Failed(Failure),
}

/// What [`Device::transmit`] has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// This many bytes.
    Frame(usize),
    /// Nothing yet, but there is work: call again soon, after others had their turn.
    Busy,
    /// Nothing until bytes come in.
    Idle,
}

/// One end of one link.
#[derive(Debug)]
pub struct Device<W> {
    decoder: FrameDecoder,
    frame: FrameBuffer,
    requests: Requests<W>,
}

/// All but the buffers, so that a frame can be looked at while the requests change.
#[derive(Debug)]
struct Requests<W> {
    session: Option<Session>,
    slots: [Option<Slot<W>>; REQUESTS_MAX],
    /// The slot whose turn is next.
    turn: usize,
    say_hello: bool,
    pong: Option<u32>,
    /// Answers to frames that have no slot: END with a code, or UNKNOWN.
    asides: heapless::Deque<Aside, REQUESTS_MAX>,
    counters: LinkCounters,
}

#[derive(Debug)]
struct Session {
    nonce: u32,
    heard_us: u64,
    /// A first OPEN that is not newer than all that were seen is a copy.
    seen: Seen,
}

#[derive(Debug)]
struct Slot<W> {
    request: u16,
    generation: u8,
    class: Class,
    /// The sequence of the next frame.
    sequence: u32,
    /// Frames below this sequence may be sent.
    credit: u32,
    work: Result<W, Failure>,
    /// END was sent; the work is kept until the bridge closes the request.
    ended: bool,
}

impl<W> Slot<W> {
    /// There is nothing to go on with; only the failure is kept.
    fn fail<A: Answerer<Work = W>>(&mut self, answerer: &mut A, failure: Failure) {
        if let Ok(work) = core::mem::replace(&mut self.work, Err(failure)) {
            answerer.close(work);
        }
    }
}

#[derive(Debug)]
enum Aside {
    End { request: u16, generation: u8, code: ErrorCode },
    Unknown { request: u16, kind: u8 },
}

impl<W> Default for Device<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W> Device<W> {
    /// A link that has just come up. The board says hello first.
    pub fn new() -> Self {
        Self {
            decoder: FrameDecoder::default(),
            frame: FrameBuffer::default(),
            requests: Requests {
                session: None,
                slots: [const { None }; REQUESTS_MAX],
                turn: 0,
                say_hello: true,
                pong: None,
                asides: heapless::Deque::new(),
                counters: LinkCounters::default(),
            },
        }
    }

    /// Takes bytes from the link, as many as there are.
    pub fn feed<A: Answerer<Work = W>>(&mut self, uptime_us: u64, answerer: &mut A, mut bytes: &[u8]) {
        loop {
            match self.decoder.feed(&mut bytes) {
                Fed::More => return,
                Fed::Damaged(_) => self.requests.counters.frames_damaged += 1,
                Fed::Frame(header, body) => self.requests.receive(uptime_us, answerer, header, body),
            }
        }
    }

    /// Makes the next frame, if there is anything to say.
    pub fn transmit<A: Answerer<Work = W>>(
        &mut self,
        uptime_us: u64,
        answerer: &mut A,
        out: &mut WireBuffer,
    ) -> Transmit {
        let (requests, frame) = (&mut self.requests, &mut self.frame);
        if requests.say_hello {
            requests.say_hello = false;
            let (header, len) = requests.hello(answerer, frame.body());
            let sent = frame.seal(header, len, out);
            // What the other side has heard so far may be noise: end it, so that it does not spoil the hello.
            out.copy_within(..sent, 1);
            out[0] = DELIMITER;
            return requests.sent(sent + 1);
        }
        if let Some((header, len)) = requests.control(frame.body()) {
            return requests.sent(frame.seal(header, len, out));
        }
        match requests.step(uptime_us, answerer, frame.body()) {
            Next::Frame(header, len) => requests.sent(frame.seal(header, len, out)),
            Next::Busy => Transmit::Busy,
            Next::Idle => Transmit::Idle,
        }
    }

    /// When the session ends if nothing is heard until then.
    pub fn deadline_us(&self) -> Option<u64> {
        let session = self.requests.session.as_ref()?;
        Some(session.heard_us.saturating_add(SESSION_QUIET_US_MAX))
    }

    /// Ends the session if its deadline is past. On a link that can be closed, close it when this is true.
    pub fn expire<A: Answerer<Work = W>>(&mut self, uptime_us: u64, answerer: &mut A) -> bool {
        let expired = self.deadline_us().is_some_and(|deadline_us| uptime_us >= deadline_us);
        if expired {
            self.requests.reset(answerer);
        }
        expired
    }

    /// Ends the session and gives back all work. Call it before the device is dropped.
    pub fn end<A: Answerer<Work = W>>(&mut self, answerer: &mut A) {
        self.requests.reset(answerer);
    }

    /// What the link has seen.
    pub fn counters(&self) -> &LinkCounters {
        &self.requests.counters
    }
}

/// What the requests have to send.
enum Next {
    Frame(Header, usize),
    Busy,
    Idle,
}

impl<W> Requests<W> {
    fn reset<A: Answerer<Work = W>>(&mut self, answerer: &mut A) {
        self.close(answerer, |_| true);
        self.session = None;
        self.pong = None;
        self.asides.clear();
    }

    fn sent(&mut self, bytes: usize) -> Transmit {
        self.counters.frames_out += 1;
        Transmit::Frame(bytes)
    }

    fn receive<A: Answerer<Work = W>>(
        &mut self,
        uptime_us: u64,
        answerer: &mut A,
        header: Header,
        body: &[u8],
    ) {
        self.counters.frames_in += 1;
        if header.kind == kind::BRIDGE_HELLO {
            if let Some(hello) = message::read(body) {
                self.greet(uptime_us, answerer, &hello);
            }
            return;
        }
        let Some(session) = &mut self.session else {
            self.say_hello = true;
            return;
        };
        session.heard_us = uptime_us;
        match header.kind {
            kind::OPEN => self.open(uptime_us, answerer, header, body),
            kind::RECALL => self.recall(answerer, header),
            kind::CREDIT => {
                if let Some(slot) = self.slot(header.request).filter(|s| s.generation == header.generation) {
                    slot.credit = slot.credit.max(header.sequence);
                }
            }
            kind::CLOSE => self.close(answerer, |request| request == header.request),
            kind::PING => {
                if let Some(open) = message::read::<OpenRequests>(body) {
                    self.close(answerer, |request| !open.contains(&request));
                    self.pong = Some(header.sequence);
                }
            }
            unknown => self.aside(Aside::Unknown { request: header.request, kind: unknown }),
        }
    }

    fn greet<A: Answerer<Work = W>>(&mut self, uptime_us: u64, answerer: &mut A, hello: &BridgeHello) {
        if hello.nonce == 0 {
            return; // not a bridge's: it would read as "no session"
        }
        self.say_hello = true;
        if self.session.as_ref().is_some_and(|session| session.nonce == hello.nonce) {
            return; // a copy; what was opened since stays open
        }
        self.reset(answerer);
        if hello.version_max < version::MIN || hello.version_min > version::CURRENT {
            return; // our hello tells the bridge why
        }
        answerer.offer_epoch(hello.epoch_offer);
        self.counters.sessions += 1;
        self.session = Some(Session { nonce: hello.nonce, heard_us: uptime_us, seen: Seen::default() });
    }

    fn open<A: Answerer<Work = W>>(&mut self, uptime_us: u64, answerer: &mut A, header: Header, body: &[u8]) {
        let known = self.slot(header.request).is_some();
        let Some(Session { seen, .. }) = &mut self.session else { return };
        if header.generation == 0 && (!seen.note(header.request) || known) {
            return; // a copy
        }
        let may_have_begun = seen.may_have_begun(header.request);
        let Some(open) = message::read::<Open>(body) else {
            return self.refuse(header, ErrorCode::Unsupported);
        };
        if known {
            return self.resume(answerer, header, open.cursor);
        }
        if may_have_begun && !open.request.is_repeatable() {
            return; // a copy of an OPEN that was sent again because the board was busy
        }
        let now = Now { uptime_us, link: &self.counters };
        let Some(free) = self.slots.iter_mut().find(|slot| slot.is_none()) else {
            return self.refuse(header, ErrorCode::Busy);
        };
        let work = answerer.open(open.request, open.cursor, now);
        if let Err(Failure { code: code @ (ErrorCode::Busy | ErrorCode::Cursor), .. }) = work {
            return self.refuse(header, code); // not begun: the bridge may come again
        }
        if let Some(session) = &mut self.session {
            session.seen.begin(header.request);
        }
        *free = Some(Slot {
            request: header.request,
            generation: header.generation,
            class: open.class,
            sequence: 0,
            credit: header.sequence,
            work,
            ended: false,
        });
    }

    fn recall<A: Answerer<Work = W>>(&mut self, answerer: &mut A, header: Header) {
        if self.slot(header.request).is_some() {
            return self.resume(answerer, header, None);
        }
        let Some(Session { seen, .. }) = &mut self.session else { return };
        seen.note(header.request); // an OPEN of it that is still under way is late
        let may_have_begun = seen.may_have_begun(header.request);
        let code = if may_have_begun { ErrorCode::Forgotten } else { ErrorCode::NotExecuted };
        self.refuse(header, code);
    }

    fn resume<A: Answerer<Work = W>>(&mut self, answerer: &mut A, header: Header, cursor: Option<Cursor>) {
        let Some(slot) = self.slot(header.request) else { return };
        if header.generation.wrapping_sub(slot.generation).cast_signed() <= 0 {
            return; // a copy
        }
        slot.generation = header.generation;
        slot.sequence = 0;
        slot.credit = header.sequence;
        slot.ended = false;
        if let Ok(work) = &mut slot.work
            && let Err(failure) = answerer.rewind(work, cursor)
        {
            slot.fail(answerer, failure);
        }
        self.counters.resumes += 1;
    }

    fn refuse(&mut self, header: Header, code: ErrorCode) {
        self.aside(Aside::End { request: header.request, generation: header.generation, code });
    }

    /// Where there is no room it is dropped: the bridge will ask again.
    fn aside(&mut self, aside: Aside) {
        let _ = self.asides.push_back(aside);
    }

    fn close<A: Answerer<Work = W>>(&mut self, answerer: &mut A, is_closed: impl Fn(u16) -> bool) {
        for slot in &mut self.slots {
            if let Some(Slot { work: Ok(work), .. }) = slot.take_if(|open| is_closed(open.request)) {
                answerer.close(work);
            }
        }
    }

    fn slot(&mut self, request: u16) -> Option<&mut Slot<W>> {
        self.slots.iter_mut().flatten().find(|slot| slot.request == request)
    }

    fn hello<A: Answerer<Work = W>>(&self, answerer: &A, body: &mut [u8]) -> (Header, usize) {
        let Identity { board_id, epoch, boot_count, catalog_hash, build, features } = answerer.identity();
        let hello = BoardHello {
            version_min: version::MIN,
            version_max: version::CURRENT,
            nonce: self.session.as_ref().map_or(0, |session| session.nonce),
            features,
            body_bytes_max: BODY_BYTES_MAX as u16,
            requests_max: REQUESTS_MAX as u8,
            board_id,
            epoch,
            boot_count,
            catalog_hash,
            build,
        };
        let header = Header { kind: kind::BOARD_HELLO, generation: 0, request: 0, sequence: 0 };
        (header, written(message::write(&hello, body)))
    }

    /// A frame that is not an answer's, if one is due.
    fn control(&mut self, body: &mut [u8]) -> Option<(Header, usize)> {
        if let Some(aside) = self.asides.pop_front() {
            return Some(match aside {
                Aside::Unknown { request, kind: unknown } => {
                    let sequence = u32::from(unknown);
                    (Header { kind: kind::UNKNOWN, generation: 0, request, sequence }, 0)
                }
                Aside::End { request, generation, code } => {
                    let hint = match code {
                        ErrorCode::Busy => "the board is busy; ask again later",
                        ErrorCode::Cursor => "the rest of the answer is gone; ask again",
                        _ => "",
                    };
                    let end = Failure::new(code, 0, format_args!("{hint}"));
                    let len = message::write(&message::End::Err(end.as_wire()), body);
                    (Header { kind: kind::END, generation, request, sequence: 0 }, written(len))
                }
            });
        }
        let nonce = self.pong.take()?;
        let progress = self.slots.iter().flatten().map(|slot| Progress {
            request: slot.request,
            generation: slot.generation,
            sequence: slot.sequence,
        });
        let len = message::write(&progress.collect::<ProgressList>(), body);
        let header = Header { kind: kind::PONG, generation: 0, request: 0, sequence: nonce };
        Some((header, written(len)))
    }

    /// Lets the request whose turn it is take a step.
    fn step<A: Answerer<Work = W>>(&mut self, uptime_us: u64, answerer: &mut A, body: &mut [u8]) -> Next {
        let Some(index) = self.ready(Class::Interactive).or_else(|| self.ready(Class::Background)) else {
            return Next::Idle;
        };
        self.turn = (index + 1) % REQUESTS_MAX;
        let Some(slot) = &mut self.slots[index] else { return Next::Idle };
        let step = match &mut slot.work {
            Ok(work) => answerer.step(work, body, Now { uptime_us, link: &self.counters }),
            Err(failure) => Step::Failed(failure.clone()),
        };
        let (kind, len) = match step {
            Step::Working => return Next::Busy,
            Step::Part(len) => (kind::PART, len),
            Step::Rows(len) => (kind::ROWS, len),
            Step::Done(done) => {
                slot.ended = true;
                (kind::END, written(message::write(&message::End::Ok(done), body)))
            }
            Step::Failed(failure) => {
                slot.ended = true;
                let len = written(message::write(&message::End::Err(failure.as_wire()), body));
                slot.fail(answerer, failure);
                (kind::END, len)
            }
        };
        let (generation, request, sequence) = (slot.generation, slot.request, slot.sequence);
        slot.sequence += 1;
        Next::Frame(Header { kind, generation, request, sequence }, len)
    }

    /// The next slot of a class, in turn, that has something to do and credit to say it.
    fn ready(&self, class: Class) -> Option<usize> {
        let in_turn = (self.turn..REQUESTS_MAX).chain(0..self.turn);
        in_turn.into_iter().find(|index| {
            let slot = self.slots[*index].as_ref();
            slot.is_some_and(|s| s.class == class && !s.ended && s.sequence < s.credit)
        })
    }
}

/// Control messages and ends are bounded far below a body; the tests write the largest of each.
fn written(len: Result<usize, message::BodyTooLong>) -> usize {
    debug_assert!(len.is_ok(), "a control message outgrew its frame");
    len.unwrap_or(0)
}
