//! The requests of a [`Host`](super::Host): what each waits for, and what is sent next.

use super::{
    Down, Ending, Event, HostCounters, OpenError,
    slot::{Heard, Send, Slot},
};
use crate::{
    frame::Header,
    limits::{
        BODY_BYTES_MAX, HELLO_ATTEMPTS_MAX, HELLO_PROMPTED_US, HELLO_RETRY_US, KEEPALIVE_US,
        LINK_SILENT_US_MAX, PING_ATTEMPTS_MAX, PROBE_US_MAX, PROBE_US_MIN, REQUEST_BYTES_MAX, REQUESTS_MAX,
        RESUMES_MAX,
    },
    message::{self, BoardHello, BridgeHello, Class, OpenRequests, ProgressList, Request, kind},
    version,
};

/// All but the buffers, so that a frame can be looked at while the requests change.
#[derive(Debug)]
pub(super) struct Requests {
    link: Link,
    slots: [Option<Slot>; REQUESTS_MAX],
    request_last: u16,
    /// Requests to tell the board to close.
    closing: heapless::Deque<u16, REQUESTS_MAX>,
    /// Gives nonces and epochs; its start is random.
    seed: u64,
    /// The epoch and the boot count of the board as it was last seen.
    boot: Option<(u64, u32)>,
    rtt: RoundTrip,
    /// Counts frames sent, to tell what was sent before what.
    order: u64,
    counters: HostCounters,
}

#[derive(Debug)]
enum Link {
    Down,
    /// Says hello at `next_us` and again after that, until `give_up_us`.
    Greeting {
        nonce: u32,
        epoch_offer: u64,
        sent_us: u64,
        next_us: u64,
        /// `next_us` is past, and the link has not taken the hello yet.
        is_due: bool,
        give_up_us: u64,
        bytes_before: u64,
    },
    Up {
        nonce: u32,
        requests_max: usize,
        heard_us: u64,
        ping: Ping,
    },
}

#[derive(Debug)]
enum Ping {
    None,
    /// To be sent as soon as the link takes it: for the first time, or again.
    Due(Option<Asked>),
    Sent(Asked),
}

/// A ping that was sent, however often: a pong to any of its copies answers it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    nonce: u32,
    /// The order and the time of the first copy.
    order: u64,
    first_us: u64,
    /// The time of the last copy.
    last_us: u64,
    /// Copies in all, and those since something was heard from the board.
    copies: u32,
    unheard: u32,
}

/// Smoothed round-trip time, as TCP does it.
#[derive(Debug, Default)]
struct RoundTrip {
    last_us: Option<u64>,
    smoothed_us: u64,
}

impl RoundTrip {
    fn sample(&mut self, us: u64) {
        self.smoothed_us = if self.last_us.is_none() { us } else { (self.smoothed_us * 7 + us) / 8 };
        self.last_us = Some(us);
    }

    /// How long quiet is no sign of loss; doubled for each attempt without an answer.
    fn probe_us(&self, attempts: u32) -> u64 {
        let once = (self.smoothed_us * 2).max(PROBE_US_MIN);
        once.saturating_mul(1 << attempts.min(8)).min(PROBE_US_MAX)
    }
}

impl Requests {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            link: Link::Down,
            slots: [const { None }; REQUESTS_MAX],
            request_last: 0,
            closing: heapless::Deque::new(),
            seed,
            boot: None,
            rtt: RoundTrip::default(),
            order: 0,
            counters: HostCounters::default(),
        }
    }

    pub(super) fn disconnect(&mut self, events: &mut impl FnMut(Event<'_>)) {
        self.lose_session(events);
        self.link = Link::Down;
    }

    pub(super) fn consumed(&mut self, request: u16, parts: u32) {
        if let Some(slot) = self.slot(request) {
            slot.consumed(parts);
        }
    }

    /// A frame of this many bytes was made.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.order += 1;
        self.counters.bytes_out += bytes as u64;
    }

    pub(super) fn count_in(&mut self, bytes: usize) {
        self.counters.bytes_in += bytes as u64;
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.link, Link::Up { .. })
    }

    pub(super) fn round_trip_us(&self) -> Option<u64> {
        self.rtt.last_us
    }

    pub(super) fn counters(&self) -> &HostCounters {
        &self.counters
    }

    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(1);
        crate::link_test::mix(self.seed)
    }

    pub(super) fn greet(&mut self, now_us: u64) {
        let nonce = (self.draw() as u32).max(1);
        let epoch_offer = self.draw().max(1);
        self.closing.clear();
        self.link = Link::Greeting {
            nonce,
            epoch_offer,
            sent_us: 0,
            next_us: now_us,
            is_due: false,
            give_up_us: now_us + HELLO_RETRY_US * u64::from(HELLO_ATTEMPTS_MAX),
            bytes_before: self.counters.bytes_in,
        };
    }

    /// What was asked in this session is not known to the board any more.
    fn lose_session(&mut self, events: &mut impl FnMut(Event<'_>)) {
        for entry in &mut self.slots {
            let Some(slot) = entry else { continue };
            if slot.was_sent && !slot.repeatable {
                events(Event::Ended(slot.request, Ending::OutcomeUnknown));
                *entry = None;
            } else {
                slot.resume();
            }
        }
    }

    pub(super) fn open(&mut self, request: &Request<'_>, class: Class) -> Result<u16, OpenError> {
        let mut number = self.request_last;
        loop {
            number = number.wrapping_add(1).max(1); // 0 is "no request"
            if self.slot(number).is_none() && !self.closing.iter().any(|closing| *closing == number) {
                break; // there are far more numbers than slots
            }
        }
        let free = self.slots.iter_mut().find(|slot| slot.is_none()).ok_or(OpenError::Full)?;
        let mut body = heapless::Vec::new();
        body.resize_default(REQUEST_BYTES_MAX).map_err(|_| OpenError::TooLong)?;
        let len = message::write(request, &mut body).map_err(|_| OpenError::TooLong)?;
        body.truncate(len);
        self.request_last = number;
        *free = Some(Slot::new(number, class, request.is_repeatable(), body));
        Ok(number)
    }

    pub(super) fn close(&mut self, request: u16) {
        if let Some(entry) = self.entry(request)
            && let Some(slot) = entry.take()
            && slot.was_sent
        {
            self.tell_closed(request);
        }
    }

    /// The list of open requests in the next ping makes up for a close that has no room here or gets lost.
    fn tell_closed(&mut self, request: u16) {
        if !self.closing.iter().any(|closing| *closing == request) && self.closing.push_back(request).is_err()
        {
            self.ping_soon();
        }
    }

    fn entry(&mut self, request: u16) -> Option<&mut Option<Slot>> {
        self.slots.iter_mut().find(|slot| slot.as_ref().is_some_and(|slot| slot.request == request))
    }

    fn slot(&mut self, request: u16) -> Option<&mut Slot> {
        self.slots.iter_mut().flatten().find(|slot| slot.request == request)
    }

    pub(super) fn ping_soon(&mut self) {
        if let Link::Up { ping, .. } = &mut self.link
            && matches!(ping, Ping::None)
        {
            *ping = Ping::Due(None);
        }
    }

    /// Also if one is under way: it was sent before what it is to tell, so its answer does not count.
    fn ping_now(&mut self) {
        if let Link::Up { ping, .. } = &mut self.link {
            *ping = Ping::Due(None);
        }
    }

    /// A frame was lost; whose, a pong will tell.
    pub(super) fn damaged(&mut self) {
        self.counters.frames_damaged += 1;
        if self.slots.iter().flatten().any(|slot| slot.was_sent) {
            self.ping_soon();
        }
    }

    pub(super) fn receive(
        &mut self,
        now_us: u64,
        header: Header,
        body: &[u8],
        events: &mut impl FnMut(Event<'_>),
    ) {
        self.counters.frames_in += 1;
        if header.kind == kind::BOARD_HELLO {
            if let Some(hello) = message::read(body) {
                self.greeted(now_us, &hello, events);
            }
            return;
        }
        let Link::Up { heard_us, ping, .. } = &mut self.link else {
            self.counters.frames_stale += 1; // of a session before this one
            return;
        };
        *heard_us = now_us;
        if let Ping::Due(Some(asked)) | Ping::Sent(asked) = ping {
            asked.unheard = 0; // the board is there, however long its pong takes
        }
        match header.kind {
            kind::PONG => self.pong(now_us, header.sequence, body, events),
            kind::PART | kind::ROWS | kind::END => self.answer(now_us, header, body, events),
            kind::UNKNOWN => {
                self.end(header.request, Ending::Protocol("the board does not know a kind of frame"), events)
            }
            _ => self.counters.frames_stale += 1, // newer than this bridge; nothing asked for it
        }
    }

    fn greeted(&mut self, now_us: u64, hello: &BoardHello<'_>, events: &mut impl FnMut(Event<'_>)) {
        match &mut self.link {
            Link::Down => {}
            Link::Up { nonce, .. } => {
                let is_restarted =
                    hello.nonce == *nonce && self.boot != Some((hello.epoch, hello.boot_count));
                if hello.nonce == 0 || is_restarted {
                    // The board has restarted, or gave the session up.
                    self.lose_session(events);
                    self.greet(now_us);
                }
            }
            Link::Greeting { nonce, sent_us, next_us, .. } => {
                if hello.version_max < version::MIN || hello.version_min > version::CURRENT {
                    let (board_min, board_max) = (hello.version_min, hello.version_max);
                    events(Event::Down(Down::Version { board_min, board_max }));
                    self.link = Link::Down;
                } else if hello.nonce == *nonce {
                    let nonce = *nonce;
                    self.begin_session(now_us, nonce, hello, events);
                } else if hello.nonce == 0 {
                    // It is there and listens now; but a flood of these is not answered one by one.
                    *next_us = (*sent_us + HELLO_PROMPTED_US).max(now_us).min(*next_us);
                }
            }
        }
    }

    fn begin_session(
        &mut self,
        now_us: u64,
        nonce: u32,
        hello: &BoardHello<'_>,
        events: &mut impl FnMut(Event<'_>),
    ) {
        let boot = Some((hello.epoch, hello.boot_count));
        let restarted = self.boot.is_some() && self.boot != boot;
        self.boot = boot;
        let requests_max = usize::from(hello.requests_max).clamp(1, REQUESTS_MAX);
        self.link = Link::Up { nonce, requests_max, heard_us: now_us, ping: Ping::Due(None) };
        for entry in &mut self.slots {
            let Some(slot) = entry else { continue };
            slot.heard_us = now_us;
            slot.resumes = 0;
            if restarted && slot.delivered {
                events(Event::Ended(slot.request, Ending::BoardRestarted));
                *entry = None;
            } else if restarted {
                slot.cursor = None;
                (slot.rows_lost, slot.rows_lost_untold) = (0, 0);
            }
        }
        events(Event::Up(hello));
    }

    fn pong(&mut self, now_us: u64, nonce: u32, body: &[u8], events: &mut impl FnMut(Event<'_>)) {
        let Link::Up { ping, .. } = &mut self.link else { return };
        let (Ping::Due(Some(asked)) | Ping::Sent(asked)) = *ping else { return };
        let Some(progress) = message::read::<ProgressList>(body).filter(|_| nonce == asked.nonce) else {
            return;
        };
        *ping = Ping::None;
        // Which copy it answers cannot be told; from the first on it is too long at worst, never too short.
        self.rtt.sample(now_us.saturating_sub(asked.first_us));
        for index in 0..REQUESTS_MAX {
            let Some(slot) = &mut self.slots[index] else { continue };
            if !slot.is_under_way() || slot.opened_order >= asked.order {
                continue; // the board did not know of this generation yet
            }
            slot.heard_us = now_us;
            let here = progress.iter().find(|p| p.request == slot.request && p.generation == slot.generation);
            match here {
                Some(p) if p.sequence == slot.expected => slot.send = Send::Credit, // working, or a credit was lost
                _ => self.resume(index, events),
            }
        }
    }

    fn resume(&mut self, index: usize, events: &mut impl FnMut(Event<'_>)) {
        let Some(slot) = &mut self.slots[index] else { return };
        slot.resumes += 1;
        self.counters.resumes += 1;
        if slot.resumes > RESUMES_MAX {
            let (request, repeatable) = (slot.request, slot.repeatable);
            let ending = if repeatable { Ending::LinkDamaged } else { Ending::OutcomeUnknown };
            return self.end(request, ending, events);
        }
        slot.resume();
    }

    /// A frame of the answer to a request.
    fn answer(&mut self, now_us: u64, header: Header, body: &[u8], events: &mut impl FnMut(Event<'_>)) {
        let request = header.request;
        let Some(index) = self.slots.iter().position(|s| s.as_ref().is_some_and(|s| s.request == request))
        else {
            self.counters.frames_stale += 1;
            return self.tell_closed(request); // the close was lost
        };
        let Some(slot) = &mut self.slots[index] else { return };
        match slot.answer(now_us, header, body, events) {
            Heard::Taken => {}
            Heard::Stale => self.counters.frames_stale += 1,
            Heard::Gap => self.resume(index, events),
            Heard::Busy => self.ping_now(), // tells the board what is really open; then there may be room
            Heard::Ended(ending) => self.end(request, ending, events),
        }
    }

    fn end(&mut self, request: u16, ending: Ending<'_>, events: &mut impl FnMut(Event<'_>)) {
        if self.slot(request).is_some() {
            self.close(request);
            events(Event::Ended(request, ending));
        }
    }

    /// The header and the length of the body of the next frame.
    pub(super) fn next_frame(&mut self, now_us: u64, body: &mut [u8]) -> Option<(Header, usize)> {
        let control = |kind, request, generation, sequence| Header { kind, generation, request, sequence };
        match &mut self.link {
            Link::Down => return None,
            Link::Greeting { nonce, epoch_offer, sent_us, next_us, is_due, give_up_us, .. } => {
                if now_us < *next_us || now_us >= *give_up_us {
                    return None;
                }
                *sent_us = now_us;
                *next_us = now_us + HELLO_RETRY_US;
                *is_due = false;
                let hello = BridgeHello {
                    version_min: version::MIN,
                    version_max: version::CURRENT,
                    nonce: *nonce,
                    features: message::feature::LINK_TEST,
                    body_bytes_max: BODY_BYTES_MAX as u16,
                    epoch_offer: *epoch_offer,
                };
                return Some((control(kind::BRIDGE_HELLO, 0, 0, 0), message::write(&hello, body).ok()?));
            }
            Link::Up { .. } => {}
        }
        if let Some(request) = self.closing.pop_front() {
            return Some((control(kind::CLOSE, request, 0, 0), 0));
        }
        if let Some(frame) = self.next_ping(now_us, body) {
            return Some(frame);
        }
        self.next_request(now_us, body)
    }

    fn next_ping(&mut self, now_us: u64, body: &mut [u8]) -> Option<(Header, usize)> {
        let Link::Up { ping: Ping::Due(before), .. } = self.link else { return None };
        let mut asked = before.unwrap_or_else(|| {
            let (nonce, order) = (self.draw() as u32, self.order);
            Asked { nonce, order, first_us: now_us, last_us: now_us, copies: 0, unheard: 0 }
        });
        asked.last_us = now_us;
        asked.copies = asked.copies.saturating_add(1);
        asked.unheard += 1;
        let open: OpenRequests =
            self.slots.iter().flatten().filter(|s| s.was_sent).map(|s| s.request).collect();
        if let Link::Up { ping, .. } = &mut self.link {
            *ping = Ping::Sent(asked);
        }
        let header = Header { kind: kind::PING, generation: 0, request: 0, sequence: asked.nonce };
        Some((header, message::write(&open, body).ok()?))
    }

    /// The oldest request that has something to send; a first OPEN must not overtake an older one.
    fn next_request(&mut self, now_us: u64, body: &mut [u8]) -> Option<(Header, usize)> {
        let Link::Up { requests_max, .. } = self.link else { return None };
        let on_board = self.slots.iter().flatten().filter(|s| s.was_sent).count();
        let last = self.request_last;
        let slot = self
            .slots
            .iter_mut()
            .flatten()
            .filter(|s| s.send != Send::Nothing && s.retry_us.is_none())
            .filter(|s| s.was_sent || on_board < requests_max)
            .max_by_key(|s| last.wrapping_sub(s.request))?;
        slot.next_frame(now_us, self.order, body)
    }

    pub(super) fn deadline_us(&self) -> Option<u64> {
        let silence_us = self.silence_us()?;
        let retry_us = self.slots.iter().flatten().filter_map(|slot| slot.retry_us).min();
        Some(retry_us.map_or(silence_us, |retry_us| retry_us.min(silence_us)))
    }

    /// When quiet on the link means something.
    fn silence_us(&self) -> Option<u64> {
        match &self.link {
            Link::Down => None,
            // What is due waits for `transmit`; a link that takes no bytes must not make time alone spin.
            Link::Greeting { is_due: true, give_up_us, .. } => Some(*give_up_us),
            Link::Greeting { next_us, give_up_us, .. } => Some(*next_us.min(give_up_us)),
            Link::Up { ping: Ping::Due(_), heard_us, .. } => Some(heard_us + LINK_SILENT_US_MAX),
            Link::Up { ping: Ping::Sent(asked), .. } => {
                Some(asked.last_us + self.rtt.probe_us(asked.copies - 1))
            }
            Link::Up { ping: Ping::None, heard_us, .. } => {
                let probe_us = self.rtt.probe_us(0);
                let waiting = self.slots.iter().flatten().filter(|s| s.was_sent && s.expected < s.credit);
                let earliest = waiting.map(|slot| slot.heard_us + probe_us).min();
                Some(earliest.unwrap_or(u64::MAX).min(heard_us + KEEPALIVE_US))
            }
        }
    }

    pub(super) fn tick(&mut self, now_us: u64, events: &mut impl FnMut(Event<'_>)) {
        for slot in self.slots.iter_mut().flatten() {
            slot.retry_us.take_if(|retry_us| now_us >= *retry_us);
        }
        if self.silence_us().is_none_or(|deadline_us| now_us < deadline_us) {
            return;
        }
        match &mut self.link {
            Link::Down => {}
            Link::Greeting { is_due, give_up_us, bytes_before, .. } => {
                *is_due = true;
                if now_us >= *give_up_us {
                    let bytes_in = self.counters.bytes_in - *bytes_before;
                    self.link = Link::Down;
                    events(Event::Down(Down::NoHello { bytes_in }));
                }
            }
            Link::Up { ping, .. } => {
                let (is_silent, asked) = match *ping {
                    Ping::None => (false, None),
                    Ping::Sent(asked) => (asked.unheard >= PING_ATTEMPTS_MAX, Some(asked)),
                    Ping::Due(asked) => (true, asked), // the link takes no bytes
                };
                *ping = Ping::Due(asked);
                if is_silent {
                    self.lose_session(events);
                    self.link = Link::Down;
                    events(Event::Down(Down::Silent));
                }
            }
        }
    }
}
