//! Any script against a [`Host`]: what it says and tells its caller stays within the protocol, and after any garbage
//! it still gets whole answers from a board that works.

use crate::{
    board::{Board, Work},
    device_end::frame_header,
    script::Script,
    stream::{Found, Listener, expected, noise, sealed},
};
use serde::Serialize;
use shared::{
    device::{Device, Transmit},
    frame::{DELIMITER, Header},
    host::{Ending, Event, Host},
    limits::{BODY_BYTES_MAX, CREDIT_BATCHES_MAX, WIRE_BYTES_MAX},
    link_test,
    message::{
        self, BoardHello, BridgeHello, Class, Cursor, Done, End, ErrorCode, LinkTest, Open, OpenRequests,
        Part, Progress, ProgressList, Request, RowsHead, Started, Version, WireError, kind,
    },
    rowcode::RowDecoder,
    schema,
    value::Value,
    version,
};
use std::collections::BTreeMap;

/// Virtual time in which a working board has answered, whatever came before; less than the host takes to give a
/// silent board up.
const ANSWER_US_MAX: u64 = 3_000_000;
const ROWS: LinkTest = LinkTest { rows: 200, seed: 3 };

/// Plays a script to a host, then gives it a board that works.
pub(crate) fn check(bytes: &[u8]) {
    let mut caller = Caller::new();
    let mut script = Script::new(bytes);
    while caller.act(&mut script).is_some() {}
    caller.assert_gets_answers();
}

/// A request of the caller, and what a board can know of it.
#[derive(Debug)]
struct Asked {
    request: Request<'static>,
    /// What the caller has been given and has not done with.
    held: u32,
    started: bool,
    rows: Vec<(u16, Vec<u8>)>,
    ended: bool,
    done: bool,
    /// OPEN frames, and refusals that let one be sent again.
    opens: u32,
    refusals: u32,
    generation: u8,
    sequence: u32,
}

struct Caller {
    host: Host,
    now_us: u64,
    listener: Listener,
    asked: BTreeMap<u16, Asked>,
    /// Of the last hello and of the last ping.
    nonce: u32,
    ping: u32,
    link: Link,
}

/// What the caller knows of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Greeting,
    Up,
    Down,
}

impl Caller {
    fn new() -> Self {
        let mut host = Host::new(1);
        host.connect(0);
        Self {
            host,
            now_us: 0,
            listener: Listener::default(),
            asked: BTreeMap::new(),
            nonce: 0,
            ping: 0,
            link: Link::Greeting,
        }
    }

    /// What the script says next; none at its end.
    fn act(&mut self, script: &mut Script<'_>) -> Option<()> {
        match script.below(16)? {
            0 => self.hear(&noise(script)?),
            1 => {
                let (header, body) = (script.header()?, script.body()?);
                self.hear(&sealed(header, &body));
            }
            2 => {
                let nonce = [self.nonce, self.nonce, 0, 1][usize::from(script.below(4)?)];
                self.say(frame_header(kind::BOARD_HELLO, 0, 0, 0), &hello(nonce, script)?);
            }
            3 => {
                self.listen();
                let nonce = self.nonce;
                self.say(frame_header(kind::BOARD_HELLO, 0, 0, 0), &hello(nonce, script)?);
            }
            4 | 5 => self.ask(script)?,
            6..10 => self.answer(script)?,
            10 => self.pong(script)?,
            11 => {
                let us = [1, 1_000, 100_000][usize::from(script.below(3)?)] * u64::from(script.byte()?);
                self.pass(us);
            }
            12 => {
                let (request, parts) = (self.pick(script)?, u32::from(script.below(20)?));
                if let Some(asked) = self.asked.get_mut(&request) {
                    asked.held = asked.held.saturating_sub(parts);
                }
                self.host.consumed(request, parts);
            }
            13 => self.other(script)?,
            _ => self.listen(),
        }
        Some(())
    }

    fn other(&mut self, script: &mut Script<'_>) -> Option<()> {
        match script.below(4)? {
            0 => {
                let request = self.pick(script)?;
                self.close(request);
            }
            1 => self.reconnect(),
            2 => self.host.ping(),
            _ => {
                let header = frame_header(kind::UNKNOWN, 0, self.pick(script)?, 2);
                self.hear(&sealed(header, &[]));
            }
        }
        Some(())
    }

    fn ask(&mut self, script: &mut Script<'_>) -> Option<()> {
        let request = match script.below(4)? {
            0 => Request::SetTime(5),
            1 => Request::Command("set time = 2026-11-18T05:00:00Z"),
            2 => Request::Command("get status"),
            _ => Request::LinkTest(ROWS),
        };
        let class = if script.below(2)? == 0 { Class::Interactive } else { Class::Background };
        self.open(request, class);
        Some(())
    }

    /// Frames of an answer, mostly the next ones of a request that is open; now and then more than it may have.
    fn answer(&mut self, script: &mut Script<'_>) -> Option<()> {
        let request = self.pick(script)?;
        let count = if script.below(4)? == 0 { script.below(20)? } else { 1 };
        let (what, how) = (script.below(8)?, script.below(8)?);
        for _ in 0..count {
            let (generation, sequence) =
                self.asked.get(&request).map_or((0, 0), |asked| (asked.generation, asked.sequence));
            let mut header = frame_header(0, generation, request, sequence);
            match how {
                0 => header.generation = script.byte()?,
                1 => header.sequence = script.number()?,
                _ => {}
            }
            if let Some(asked) = self.asked.get_mut(&request) {
                asked.sequence = header.sequence.wrapping_add(1);
            }
            self.answer_once(what, header, script)?;
        }
        Some(())
    }

    fn answer_once(&mut self, what: u8, header: Header, script: &mut Script<'_>) -> Option<()> {
        let frame = |kind| Header { kind, ..header };
        match what {
            0 | 1 => {
                let columns_max = if script.below(16)? == 0 { 1 } else { link_test::COLUMNS.len() };
                let columns = link_test::COLUMNS.into_iter().take(columns_max).collect();
                let rows = if script.below(8)? == 0 { 1 } else { 0 };
                let cursor = Cursor { next: u64::from(script.below(4)?), end: u64::from(ROWS.rows), rows };
                let lost = if script.below(8)? == 0 { u64::MAX } else { 0 };
                self.say(
                    frame(kind::PART),
                    &Part::Started(Started { columns, cursor, lost, clock_set: true }),
                );
            }
            2 => self.say(frame(kind::PART), &Part::Text("text")),
            3 => {
                let version = Version { build: "forged", board: "none", wire_min: 0, wire_max: 255 };
                self.say(frame(kind::PART), &Part::Version(version));
            }
            4 | 5 => {
                let head = RowsHead {
                    count: u16::from(script.below(4)?),
                    next: u64::from(script.number()?),
                    lost: 0,
                };
                self.say(frame(kind::ROWS), &(head, script.byte()?));
            }
            6 => self.say(frame(kind::END), &End::Ok(Done { rows: u64::from(script.number()?), lost: 0 })),
            _ => {
                let codes =
                    [ErrorCode::Busy, ErrorCode::NotExecuted, ErrorCode::Forgotten, ErrorCode::Syntax];
                let code = codes[usize::from(script.below(4)?)];
                if let Some(asked) = self.asked.get_mut(&header.request).filter(|_| code == ErrorCode::Busy) {
                    asked.refusals += 1;
                }
                self.say(frame(kind::END), &End::Err(WireError { code, position: 0, hint: "" }));
            }
        }
        Some(())
    }

    /// A pong to the last ping, mostly; with what was sent, or with anything.
    fn pong(&mut self, script: &mut Script<'_>) -> Option<()> {
        let nonce = if script.below(8)? == 0 { script.u32()? } else { self.ping };
        let mut progress = ProgressList::new();
        for _ in 0..script.below(9)? {
            let request = self.pick(script)?;
            let (generation, sequence) = match self.asked.get(&request) {
                Some(asked) if script.below(4)? > 0 => (asked.generation, asked.sequence),
                _ => (script.byte()?, script.number()?),
            };
            let _ = progress.push(Progress { request, generation, sequence }); // there is room for eight
        }
        self.say(frame_header(kind::PONG, 0, 0, nonce), &progress);
        Some(())
    }

    /// A request that was asked, or any.
    fn pick(&mut self, script: &mut Script<'_>) -> Option<u16> {
        let byte = script.byte()?;
        if byte >= 0xF0 {
            return script.u16();
        }
        let count = self.asked.len();
        // The newest are those that are open.
        Some(self.asked.keys().rev().nth(usize::from(byte) % count.clamp(1, 10)).copied().unwrap_or(0))
    }

    fn say<T: Serialize>(&mut self, header: Header, message: &T) {
        let mut body = [0; BODY_BYTES_MAX];
        let len = message::write(message, &mut body).expect("a message of a board fits a body");
        self.hear(&sealed(header, &body[..len]));
    }

    fn open(&mut self, request: Request<'static>, class: Class) -> Option<u16> {
        let number = self.host.open(&request, class).ok()?;
        let asked = Asked {
            request,
            held: 0,
            started: false,
            rows: Vec::new(),
            ended: false,
            done: false,
            opens: 0,
            refusals: 0,
            generation: 0,
            sequence: 0,
        };
        let before = self.asked.insert(number, asked);
        assert!(before.is_none_or(|before| before.ended), "two requests with one number");
        Some(number)
    }

    fn close(&mut self, request: u16) {
        self.host.close(request);
        if let Some(asked) = self.asked.get_mut(&request) {
            asked.ended = true;
        }
    }

    fn reconnect(&mut self) {
        let Self { host, asked, link, .. } = self;
        host.disconnect(|event| note(asked, link, &event));
        self.host.connect(self.now_us);
        self.listener.reset();
        self.link = Link::Greeting;
    }

    fn pass(&mut self, us: u64) {
        self.now_us += us;
        let Self { host, asked, link, .. } = self;
        host.tick(self.now_us, |event| note(asked, link, &event));
    }

    /// The host counts what there is, and nothing else.
    fn hear(&mut self, bytes: &[u8]) {
        let Self { host, asked, link, .. } = self;
        host.feed(self.now_us, bytes, |event| note(asked, link, &event));
        self.listener.hear(bytes);
        let counters = self.host.counters();
        assert_eq!(
            (counters.frames_in, counters.frames_damaged),
            (self.listener.frames, self.listener.damaged)
        );
    }

    /// Everything the host has to say now.
    fn listen(&mut self) {
        let mut frames = 0;
        while self.next_frame().is_some() {
            frames += 1;
            assert!(frames < 100, "the host talks without end");
        }
        let mut open = self.asked.values().filter(|asked| !asked.ended).peekable();
        let has_asked = open.peek().is_none() || open.any(|asked| asked.opens > 0);
        assert!(has_asked || self.link != Link::Up, "nothing is asked of a board that is there");
    }

    /// The host's next frame, if it has one: whole, readable, and about what was asked.
    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let mut out = [0; WIRE_BYTES_MAX];
        let len = self.host.transmit(self.now_us, &mut out)?;
        assert!(self.link != Link::Down, "it talks on a link that is of no use");
        let mut all = expected(&out[..len]);
        let (Some(Found::Frame(header, body)), []) = (all.pop(), &all[..]) else {
            panic!("the host said what is not one frame: {:02X?}", &out[..len]);
        };
        let is_open = |request: &u16| self.asked.get(request).is_some_and(|asked| !asked.ended);
        match header.kind {
            kind::BRIDGE_HELLO => {
                let hello: BridgeHello = message::read(&body).expect("a hello");
                assert!(hello.nonce != 0 && hello.epoch_offer != 0);
                self.nonce = hello.nonce;
                self.link = Link::Greeting;
            }
            kind::PING => {
                let open: OpenRequests = message::read(&body).expect("a list of requests");
                assert!(open.iter().all(is_open), "{open:?}");
                self.ping = header.sequence;
            }
            kind::CLOSE => assert!(!is_open(&header.request), "{header:?}"),
            kind::OPEN | kind::RECALL | kind::CREDIT => self.assert_asked(header, &body),
            _ => panic!("{header:?} is not a bridge's"),
        }
        Some(out[..len].to_vec())
    }

    /// What must not be run twice is opened once, and again only after a refusal.
    fn assert_asked(&mut self, header: Header, body: &[u8]) {
        let asked = self.asked.get_mut(&header.request).expect("a request that was asked");
        assert!(!asked.ended, "{header:?} of {asked:?}");
        if header.kind == kind::CREDIT {
            assert_eq!(header.generation, asked.generation);
            return;
        }
        assert!(header.sequence + asked.held <= CREDIT_BATCHES_MAX, "{header:?} of {asked:?}");
        (asked.generation, asked.sequence) = (header.generation, 0);
        if header.kind == kind::OPEN {
            let open: Open = message::read(body).expect("a request");
            assert_eq!(open.request, asked.request);
            asked.opens += 1;
            let is_within = asked.request.is_repeatable() || asked.opens <= 1 + asked.refusals;
            assert!(is_within, "{asked:?}");
        }
    }

    /// A working board is plugged in at the other end of the same link.
    fn assert_gets_answers(mut self) {
        for request in self.asked.keys().copied().collect::<Vec<_>>() {
            self.close(request);
        }
        if self.link == Link::Down {
            self.reconnect();
        }
        self.hear(&[DELIMITER]);
        let (mut device, mut board) = (Device::new(), Board::new(0xB0A2D));
        let status = self.open(Request::Command("get status"), Class::Interactive).expect("nothing is open");
        let stream = self.open(Request::LinkTest(ROWS), Class::Background).expect("one is open");
        let until_us = self.now_us + ANSWER_US_MAX;
        while !(self.asked[&status].ended && self.asked[&stream].ended) {
            assert!(self.now_us < until_us, "no answer: {:?} {:?}", self.asked[&status], self.asked[&stream]);
            self.talk_with(&mut device, &mut board);
            self.pass(1_000);
            if self.link == Link::Down {
                self.reconnect();
            }
        }
        assert!(self.asked[&status].done && self.asked[&stream].done);
        let mut rows = 0..u64::from(ROWS.rows);
        for (count, bytes) in &self.asked[&stream].rows {
            let mut batch = RowDecoder::new(schema::kinds(&link_test::COLUMNS), bytes, *count);
            let mut cells = [Value::Null; link_test::COLUMNS.len()];
            while batch.next_row(&mut cells).expect("a row") {
                assert_eq!(
                    cells,
                    link_test::row(ROWS.seed, rows.next().expect("no more than were asked for"))
                );
            }
        }
        assert_eq!(rows.next(), None);
    }

    /// All that the two have to say to each other now.
    fn talk_with(&mut self, device: &mut Device<Work>, board: &mut Board) {
        device.expire(self.now_us, board);
        while let Some(frame) = self.next_frame() {
            device.feed(self.now_us, board, &frame);
        }
        let mut out = [0; WIRE_BYTES_MAX];
        while let Transmit::Frame(len) = device.transmit(self.now_us, board, &mut out) {
            self.hear(&out[..len]);
        }
        for (request, asked) in &mut self.asked {
            self.host.consumed(*request, std::mem::take(&mut asked.held));
        }
    }
}

/// An answer is only of what is open, starts once, never holds more than the credit allows, and ends once.
fn note(all: &mut BTreeMap<u16, Asked>, link: &mut Link, event: &Event<'_>) {
    let (Event::Part(request, _) | Event::Rows(request, ..) | Event::Ended(request, _)) = event else {
        *link = if let Event::Up(_) = event { Link::Up } else { Link::Down };
        return;
    };
    let asked = all.get_mut(request).expect("an event of a request that was asked");
    assert!(!asked.ended, "{event:?} of {asked:?}");
    match event {
        Event::Ended(_, ending) => {
            asked.ended = true;
            asked.done = matches!(ending, Ending::Done { rows_lost: 0 });
            return;
        }
        Event::Part(_, Part::Started(_)) => {
            assert!(!asked.started, "a stream starts twice");
            asked.started = true;
        }
        Event::Rows(_, count, bytes, _) => {
            assert!(asked.started, "rows before their columns");
            asked.rows.push((*count, bytes.to_vec()));
        }
        _ => {}
    }
    asked.held += 1;
    assert!(asked.held <= CREDIT_BATCHES_MAX, "{asked:?}");
}

fn hello(nonce: u32, script: &mut Script<'_>) -> Option<BoardHello<'static>> {
    let version_max = if script.below(16)? == 0 { script.byte()? } else { version::CURRENT };
    Some(BoardHello {
        version_min: version::MIN,
        version_max,
        nonce,
        features: 0,
        body_bytes_max: BODY_BYTES_MAX as u16,
        requests_max: script.byte()?,
        board_id: &[1],
        epoch: u64::from(script.below(3)?),
        boot_count: 1,
        catalog_hash: 0,
        build: "forged",
    })
}
