//! Host and device at the two ends of a link in memory, in virtual time.

use crate::board::{Board, Work};
use shared::{
    device::{Device, Transmit},
    frame::{Fed, FrameDecoder, Header},
    host::{Down, Ending, Event, Host},
    limits::WIRE_BYTES_MAX,
    link_test,
    message::{Class, ErrorCode, LinkTest, Part, Request},
    rowcode::RowDecoder,
    schema,
    value::Value,
};
use std::collections::{BTreeMap, VecDeque};

/// How long a byte is under way.
pub(crate) const LATENCY_US: u64 = 500;
/// How long a step takes that gives nothing to send.
pub(crate) const WORK_US: u64 = 1_000;

/// Frames in one test at most.
const FRAMES_MAX: usize = 100_000;

pub(crate) const STATUS: Request<'static> = Request::Command("get status");
pub(crate) const HELP: Request<'static> = Request::Command("help");
/// Answered only after [`Board::work_steps`].
pub(crate) const SLOW: Request<'static> = Request::Command("get version");

/// A stream of rows. Its seed is made from their number, so that a row tells where it belongs.
pub(crate) fn stream(rows: u32) -> Request<'static> {
    Request::LinkTest(LinkTest { rows, seed: rows })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToBoard,
    ToHost,
}

/// What becomes of a frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    Damaged,
    Twice,
}

/// A frame as it was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) way: Way,
    pub(crate) at_us: u64,
    pub(crate) header: Header,
    pub(crate) fate: Fate,
}

/// How a request ended, without what it borrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done { rows_lost: u64 },
    Failed(ErrorCode),
    OutcomeUnknown,
    NotExecuted,
    BoardRestarted,
    LinkDamaged,
    Protocol(&'static str),
}

/// What came in answer to a request.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) started: u32,
    pub(crate) texts: Vec<String>,
    /// The numbers of the rows, in the order in which they came; each was as it should be.
    pub(crate) rows: Vec<u64>,
    /// Parts and batches that came.
    pub(crate) parts: u32,
    pub(crate) ended: Option<Ended>,
    pub(crate) ended_us: u64,
    rows_test: u32,
}

type FateOf = Box<dyn FnMut(Way, &Header) -> Fate>;
type Mangle = Box<dyn FnMut(Way, &[u8]) -> Vec<u8>>;

/// Bytes under way in one direction, in their order.
#[derive(Default)]
struct Pipe {
    under_way: VecDeque<(u64, Vec<u8>)>,
    free_us: u64,
}

pub(crate) struct World {
    pub(crate) now_us: u64,
    pub(crate) host: Host,
    pub(crate) device: Device<Work>,
    pub(crate) board: Board,
    pub(crate) answers: BTreeMap<u16, Answer>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) ups: u32,
    pub(crate) downs: Vec<Down>,
    /// Whether what is given to the caller is done with at once.
    pub(crate) consumes: bool,
    /// Microseconds a byte takes.
    pub(crate) byte_us: u64,
    /// Microseconds a byte is under way.
    pub(crate) latency_us: u64,
    fate: FateOf,
    /// What else happens to the bytes of frames.
    pub(crate) mangle: Option<Mangle>,
    to_board: Pipe,
    to_host: Pipe,
    board_wakes_us: Option<u64>,
}

impl World {
    /// Both ends have just come up; nothing is said yet.
    pub(crate) fn new() -> Self {
        let mut host = Host::new(1);
        host.connect(0);
        Self {
            now_us: 0,
            host,
            device: Device::new(),
            board: Board::new(0xB0A2D),
            answers: BTreeMap::new(),
            sent: Vec::new(),
            ups: 0,
            downs: Vec::new(),
            consumes: true,
            byte_us: 1,
            latency_us: LATENCY_US,
            fate: Box::new(|_, _| Fate::Arrives),
            mangle: None,
            to_board: Pipe::default(),
            to_host: Pipe::default(),
            board_wakes_us: None,
        }
    }

    /// Both ends know each other.
    pub(crate) fn up() -> Self {
        let mut world = Self::new();
        world.run_for_us(100_000);
        assert_eq!(world.ups, 1);
        world.sent.clear();
        world
    }

    /// From now on, what becomes of each frame.
    pub(crate) fn fate(&mut self, fate: impl FnMut(Way, &Header) -> Fate + 'static) {
        self.fate = Box::new(fate);
    }

    /// The next frame of this kind meets `fate`, all others arrive.
    pub(crate) fn next_frame(&mut self, kind: u8, fate: Fate) {
        let mut left = 1;
        self.fate(move |_, header| {
            if header.kind == kind && left > 0 {
                left -= 1;
                return fate;
            }
            Fate::Arrives
        });
    }

    pub(crate) fn ask(&mut self, request: Request<'_>) -> u16 {
        self.ask_as(Class::Interactive, request)
    }

    pub(crate) fn ask_as(&mut self, class: Class, request: Request<'_>) -> u16 {
        let number = self.host.open(&request, class).expect("there is room for a request");
        let rows_test = if let Request::LinkTest(test) = request { test.rows } else { 0 };
        self.answers.insert(number, Answer { rows_test, ..Answer::default() });
        number
    }

    /// The caller does not want the rest.
    pub(crate) fn cancel(&mut self, request: u16) {
        self.host.close(request);
    }

    /// How many frames of a kind were sent since `sent` was cleared.
    pub(crate) fn count(&self, kind: u8) -> usize {
        self.sent.iter().filter(|sent| sent.header.kind == kind).count()
    }

    pub(crate) fn answer(&self, request: u16) -> &Answer {
        &self.answers[&request]
    }

    pub(crate) fn ended(&self, request: u16) -> Option<Ended> {
        self.answers[&request].ended
    }

    /// Runs until a request has ended, for a virtual hour at most.
    pub(crate) fn end_of(&mut self, request: u16) -> Ended {
        self.run_until(3_600_000_000, |world| world.ended(request).is_some());
        self.ended(request).unwrap_or_else(|| panic!("request {request} never ended: {:?}", self.host))
    }

    /// The cable is pulled: what is under way is gone. Both ends see it.
    pub(crate) fn cut(&mut self) {
        self.to_board = Pipe::default();
        self.to_host = Pipe::default();
        self.end_device();
        let (answers, now_us) = (&mut self.answers, self.now_us);
        self.host.disconnect(|event| {
            if let Event::Ended(request, ending) = event {
                note_ending(answers, now_us, request, &ending);
            }
        });
    }

    /// From now on the link takes no more bytes from the host.
    pub(crate) fn block(&mut self) {
        self.to_board.free_us = u64::MAX;
    }

    pub(crate) fn plug(&mut self) {
        self.host.connect(self.now_us);
    }

    /// The board's end is gone with all it held, and a new one is there.
    pub(crate) fn end_device(&mut self) {
        self.device.end(&mut self.board);
        self.device = Device::new();
    }

    /// The board starts anew on the same link.
    pub(crate) fn restart_board(&mut self) {
        self.to_host.under_way.clear();
        self.to_board.under_way.clear();
        self.end_device();
        self.board.epoch += 1;
    }

    pub(crate) fn run_for_us(&mut self, us: u64) {
        let until_us = self.now_us + us;
        self.run_until(us, |_| false);
        self.now_us = until_us;
    }

    /// Goes on until `done`, or until there is nothing more to happen within `us_max`.
    pub(crate) fn run_until(&mut self, us_max: u64, mut done: impl FnMut(&Self) -> bool) {
        let until_us = self.now_us + us_max;
        while !done(self) {
            self.turn();
            match self.next_us() {
                _ if done(self) => return,
                Some(next_us) if next_us <= until_us => self.now_us = next_us,
                _ => return,
            }
        }
    }

    /// When something happens next.
    fn next_us(&self) -> Option<u64> {
        let arrival = |pipe: &Pipe| pipe.under_way.front().map(|(at_us, _)| *at_us);
        [
            arrival(&self.to_board),
            arrival(&self.to_host),
            Some(self.to_board.free_us),
            Some(self.to_host.free_us),
            self.board_wakes_us,
            self.host.deadline_us(),
            self.device.deadline_us(),
        ]
        .into_iter()
        .flatten()
        .filter(|at_us| *at_us > self.now_us) // what was due now has had its turn, or waits for the link
        .min()
    }

    /// All that happens at this moment.
    fn turn(&mut self) {
        self.device.expire(self.now_us, &mut self.board);
        while let Some(bytes) = self.to_board.take(self.now_us) {
            self.device.feed(self.now_us, &mut self.board, &bytes);
        }
        while let Some(bytes) = self.to_host.take(self.now_us) {
            self.hear(&bytes);
        }
        self.tick();
        let mut out = [0; WIRE_BYTES_MAX];
        while self.to_board.free_us <= self.now_us {
            let Some(len) = self.host.transmit(self.now_us, &mut out) else { break };
            self.put(Way::ToBoard, &out[..len]);
        }
        self.board_wakes_us = None;
        if self.to_host.free_us <= self.now_us {
            match self.device.transmit(self.now_us, &mut self.board, &mut out) {
                Transmit::Frame(len) => self.put(Way::ToHost, &out[..len]),
                Transmit::Busy => self.board_wakes_us = Some(self.now_us + WORK_US),
                Transmit::Idle => {}
            }
        }
    }

    fn tick(&mut self) {
        let now_us = self.now_us;
        let Self { host, answers, downs, .. } = self;
        host.tick(now_us, |event| match event {
            Event::Ended(request, ending) => note_ending(answers, now_us, request, &ending),
            Event::Down(down) => downs.push(down),
            other => panic!("time alone brought {other:?}"),
        });
    }

    /// Bytes for the host, whoever sent them.
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        let now_us = self.now_us;
        let mut given = Vec::new();
        let Self { host, answers, ups, downs, .. } = self;
        host.feed(now_us, bytes, |event| match event {
            Event::Up(_) => *ups += 1,
            Event::Down(down) => downs.push(down),
            Event::Ended(request, ending) => note_ending(answers, now_us, request, &ending),
            Event::Part(request, part) => {
                given.push(request);
                let answer = open_answer(answers, request);
                answer.parts += 1;
                match part {
                    Part::Started(_) => answer.started += 1,
                    Part::Text(text) => answer.texts.push((*text).to_string()),
                    other => panic!("the board has no {other:?}"),
                }
            }
            Event::Rows(request, count, bytes, _) => {
                given.push(request);
                let answer = open_answer(answers, request);
                answer.parts += 1;
                let mut reader = RowDecoder::new(schema::kinds(&link_test::COLUMNS), bytes, count);
                let mut cells = [Value::Null; link_test::COLUMNS.len()];
                for _ in 0..count {
                    assert_eq!(reader.next_row(&mut cells), Ok(true));
                    let Value::Int(row) = cells[0] else { panic!("no row number: {cells:?}") };
                    assert_eq!(cells, link_test::row(answer.rows_test, row.cast_unsigned()));
                    answer.rows.push(row.cast_unsigned());
                }
                assert_eq!(reader.next_row(&mut cells), Ok(false));
            }
        });
        for request in given.into_iter().filter(|_| self.consumes) {
            self.host.consumed(request, 1);
        }
    }

    /// Puts the bytes of one frame on their way.
    pub(crate) fn put(&mut self, way: Way, bytes: &[u8]) {
        assert!(self.sent.len() < FRAMES_MAX, "the two ends talk without end");
        let header = header_of(bytes);
        let fate = (self.fate)(way, &header);
        let free_us = self.now_us + bytes.len() as u64 * self.byte_us;
        self.sent.push(Sent { way, at_us: self.now_us, header, fate });
        let mut bytes = match fate {
            Fate::Arrives => bytes.to_vec(),
            Fate::Twice => bytes.repeat(2),
            Fate::Lost => Vec::new(),
            Fate::Damaged => {
                let mut bytes = bytes.to_vec();
                bytes[2] ^= 0x10;
                bytes
            }
        };
        if let Some(mangle) = &mut self.mangle {
            bytes = mangle(way, &bytes);
        }
        let pipe = if way == Way::ToBoard { &mut self.to_board } else { &mut self.to_host };
        pipe.free_us = free_us;
        if !bytes.is_empty() {
            pipe.under_way.push_back((free_us + self.latency_us, bytes));
        }
    }
}

/// However a test went, all works that were opened have come back.
impl Drop for World {
    fn drop(&mut self) {
        self.device.end(&mut self.board);
        assert!(std::thread::panicking() || self.board.works_open == 0, "a work was not given back");
    }
}

impl Pipe {
    fn take(&mut self, now_us: u64) -> Option<Vec<u8>> {
        let arrived = self.under_way.front().is_some_and(|(at_us, _)| *at_us <= now_us);
        if arrived { self.under_way.pop_front().map(|(_, bytes)| bytes) } else { None }
    }
}

fn open_answer(answers: &mut BTreeMap<u16, Answer>, request: u16) -> &mut Answer {
    let answer = answers.get_mut(&request).expect("a part of a request that was never asked");
    assert_eq!(answer.ended, None, "request {request} went on after its end");
    answer
}

fn note_ending(answers: &mut BTreeMap<u16, Answer>, now_us: u64, request: u16, ending: &Ending<'_>) {
    let answer = open_answer(answers, request);
    answer.ended_us = now_us;
    answer.ended = Some(match *ending {
        Ending::Done { rows_lost } => Ended::Done { rows_lost },
        Ending::Failed(error) => Ended::Failed(error.code),
        Ending::OutcomeUnknown => Ended::OutcomeUnknown,
        Ending::NotExecuted => Ended::NotExecuted,
        Ending::BoardRestarted => Ended::BoardRestarted,
        Ending::LinkDamaged => Ended::LinkDamaged,
        Ending::Protocol(how) => Ended::Protocol(how),
    });
}

fn header_of(bytes: &[u8]) -> Header {
    let mut decoder = FrameDecoder::default();
    match decoder.feed(&mut &bytes[..]) {
        Fed::Frame(header, _) => header,
        other => panic!("one end sent what is no frame: {other:?}"),
    }
}
