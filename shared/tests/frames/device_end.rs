//! Any script against a [`Device`]: what it says stays within the protocol, and after any garbage it still answers.

use crate::{
    board::{Board, Work},
    script::Script,
    stream::{Found, Listener, expected, noise, sealed},
};
use serde::Serialize;
use shared::{
    device::{Device, Transmit},
    frame::{DELIMITER, Header},
    limits::{BODY_BYTES_MAX, SESSION_QUIET_US_MAX, WIRE_BYTES_MAX},
    message::{
        self, BoardHello, BridgeHello, Class, Cursor, End, LinkTest, Open, OpenRequests, Part, ProgressList,
        Request, kind,
    },
    version,
};
use std::collections::BTreeMap;

/// Names a session that no script begins.
const NONCE_FRESH: u32 = 0xF4E5_4000;

const COMMANDS: [&str; 5] =
    ["get status", "help", "get version", "set time = 2026-11-18T05:00:00Z", "get nothing"];

/// Plays a script to a device, then asks it something.
pub(crate) fn check(bytes: &[u8]) {
    let mut bridge = Bridge::new();
    let mut script = Script::new(bytes);
    while bridge.act(&mut script).is_some() {}
    bridge.assert_answers();
}

/// What the device hears and says.
struct Bridge {
    device: Device<Work>,
    board: Board,
    now_us: u64,
    listener: Listener,
    /// A frame came without a session: the device has to say so.
    owes_hello: bool,
    /// The last whole frame, to be sent again.
    last: Vec<u8>,
    /// The most credit each generation of a request was ever given.
    credits: BTreeMap<(u16, u8), u32>,
    /// The sequence of the last frame of each generation of a request.
    sequences: BTreeMap<(u16, u8), u32>,
}

impl Bridge {
    fn new() -> Self {
        Self {
            device: Device::new(),
            board: Board::new(0),
            now_us: 0,
            listener: Listener::default(),
            owes_hello: false,
            last: Vec::new(),
            credits: BTreeMap::new(),
            sequences: BTreeMap::new(),
        }
    }

    /// What the script says next; none at its end.
    fn act(&mut self, script: &mut Script<'_>) -> Option<()> {
        match script.below(12)? {
            0 => self.hear(&noise(script)?),
            1 => {
                let (header, body) = (script.header()?, script.body()?);
                self.hear_frame(header, &body);
            }
            2 => {
                let hello = hello(u32::from(script.below(4)?), script.below(4)?);
                self.say(frame_header(kind::BRIDGE_HELLO, 0, 0, 0), &hello);
            }
            3..6 => self.open(script)?,
            6 => {
                let kind = [kind::CREDIT, kind::CLOSE, kind::RECALL][usize::from(script.below(3)?)];
                let header = frame_header(kind, script.below(3)?, request(script)?, script.number()?);
                self.hear_frame(header, &[]);
            }
            7 => {
                let count = script.below(9)?;
                let open: Option<OpenRequests> = (0..count).map(|_| request(script)).collect();
                self.say(frame_header(kind::PING, 0, 0, script.number()?), &open?);
            }
            8 => self.hear(&self.last.clone()),
            9 => {
                self.now_us += u64::from(script.u16()?) * 1_000;
                let is_due = self.device.deadline_us().is_some_and(|deadline_us| self.now_us >= deadline_us);
                assert_eq!(self.device.expire(self.now_us, &mut self.board), is_due);
                assert!(!is_due || self.device.deadline_us().is_none());
            }
            _ => {
                for _ in 0..script.below(32)? {
                    self.listen();
                }
            }
        }
        Some(())
    }

    fn open(&mut self, script: &mut Script<'_>) -> Option<()> {
        let header = frame_header(kind::OPEN, script.below(3)?, request(script)?, script.number()?);
        let class = if script.below(2)? == 0 { Class::Interactive } else { Class::Background };
        let cursor = match script.below(4)? {
            0 => Some(Cursor { next: script.byte()?.into(), end: script.byte()?.into(), rows: 0 }),
            1 => Some(Cursor { next: script.u64()?, end: script.u64()?, rows: script.u64()? }),
            _ => None,
        };
        let request = match script.below(8)? {
            0 => Request::SetTime(i64::from(script.byte()?)),
            1 | 2 => Request::LinkTest(LinkTest { rows: u32::from(script.byte()?), seed: 1 }),
            3 => Request::LinkTest(LinkTest { rows: script.u32()?, seed: 1 }),
            4 => Request::Command(str::from_utf8(script.bytes()?).unwrap_or("get")),
            _ => Request::Command(COMMANDS[usize::from(script.below(COMMANDS.len() as u8)?)]),
        };
        self.say(header, &Open { class, cursor, request });
        Some(())
    }

    fn say<T: Serialize>(&mut self, header: Header, message: &T) {
        let mut body = [0; BODY_BYTES_MAX];
        let len = message::write(message, &mut body).expect("a message of a bridge fits a body");
        self.hear_frame(header, &body[..len]);
    }

    fn hear_frame(&mut self, header: Header, body: &[u8]) {
        self.last = sealed(header, body);
        self.hear(&self.last.clone());
    }

    /// The device counts what there is, and nothing else.
    fn hear(&mut self, bytes: &[u8]) {
        self.device.feed(self.now_us, &mut self.board, bytes);
        for found in self.listener.hear(bytes) {
            if let Found::Frame(header, _) = found {
                self.owes_hello = header.kind != kind::BRIDGE_HELLO && self.device.deadline_us().is_none();
            }
            if let Found::Frame(header, _) = found
                && let kind::OPEN | kind::RECALL | kind::CREDIT = header.kind
            {
                let credit = self.credits.entry((header.request, header.generation)).or_default();
                *credit = header.sequence.max(*credit);
            }
        }
        let counters = self.device.counters();
        assert_eq!(
            (counters.frames_in, counters.frames_damaged),
            (self.listener.frames, self.listener.damaged)
        );
        let deadline_us = self.device.deadline_us();
        assert!(deadline_us.is_none_or(|deadline_us| deadline_us <= self.now_us + SESSION_QUIET_US_MAX));
    }

    /// The device's next frame, if it has one: whole, readable, in its order and within its credit.
    fn listen(&mut self) -> Option<(Header, Vec<u8>)> {
        let mut out = [0; WIRE_BYTES_MAX];
        let owes_hello = std::mem::take(&mut self.owes_hello);
        let Transmit::Frame(len) = self.device.transmit(self.now_us, &mut self.board, &mut out) else {
            assert!(!owes_hello, "a bridge without a session was not told");
            return None;
        };
        let mut all = expected(&out[..len]);
        let (Some(Found::Frame(header, body)), []) = (all.pop(), &all[..]) else {
            panic!("the device said what is not one frame: {:02X?}", &out[..len]);
        };
        let is_readable = match header.kind {
            kind::BOARD_HELLO => message::read::<BoardHello>(&body).is_some(),
            kind::PART => message::read::<Part>(&body).is_some(),
            kind::ROWS => message::read_rows(&body).is_some(),
            kind::END => message::read::<End>(&body).is_some(),
            kind::PONG => message::read::<ProgressList>(&body).is_some(),
            kind::UNKNOWN => body.is_empty(),
            _ => false,
        };
        assert!(is_readable, "{header:?} with {body:02X?}");
        assert!(!owes_hello || header.kind == kind::BOARD_HELLO, "{header:?} without a session");
        if let kind::PART | kind::ROWS | kind::END = header.kind {
            self.assert_in_turn(header);
        }
        Some((header, body))
    }

    fn assert_in_turn(&mut self, header: Header) {
        let key = (header.request, header.generation);
        let credit = self.credits.get(&key).copied().unwrap_or(0);
        if header.kind == kind::END && header.sequence == 0 {
            return; // perhaps a refusal: it needs no credit, and what was open under its number goes on
        }
        assert!(header.sequence < credit, "{header:?} with a credit of {credit}");
        // A request may be closed and opened again with its number.
        let before = self.sequences.insert(key, header.sequence);
        let is_next = before.is_some_and(|before| header.sequence == before + 1);
        assert!(header.sequence == 0 || is_next, "{header:?} after {before:?}");
    }

    /// A new session is begun and a request answered at once, whatever came before.
    fn assert_answers(mut self) {
        self.hear(&[DELIMITER]);
        self.say(frame_header(kind::BRIDGE_HELLO, 0, 0, 0), &hello(NONCE_FRESH, version::CURRENT));
        let (header, body) = self.listen().expect("a hello is answered");
        assert_eq!(header.kind, kind::BOARD_HELLO);
        assert_eq!(message::read::<BoardHello>(&body).map(|hello| hello.nonce), Some(NONCE_FRESH));

        let request = Request::Command("get status");
        self.say(
            frame_header(kind::OPEN, 0, 1, 16),
            &Open { class: Class::Interactive, cursor: None, request },
        );
        let (header, body) = self.listen().expect("a part");
        assert_eq!(header, frame_header(kind::PART, 0, 1, 0));
        assert_eq!(message::read(&body), Some(Part::Text("part 1 of 1")));
        let (header, body) = self.listen().expect("an end");
        assert_eq!(header, frame_header(kind::END, 0, 1, 1));
        assert!(message::read::<End>(&body).is_some_and(|end| end.is_ok()));
        let mut out = [0; WIRE_BYTES_MAX];
        assert_eq!(self.device.transmit(self.now_us, &mut self.board, &mut out), Transmit::Idle);
        assert_eq!(self.board.works_open, 1, "only the last request is open");
        self.device.end(&mut self.board);
        assert_eq!(self.board.works_open, 0);
    }
}

pub(crate) fn frame_header(kind: u8, generation: u8, request: u16, sequence: u32) -> Header {
    Header { kind, generation, request, sequence }
}

fn hello(nonce: u32, version_max: u8) -> BridgeHello {
    BridgeHello {
        version_min: version::MIN,
        version_max,
        nonce,
        features: 0,
        body_bytes_max: BODY_BYTES_MAX as u16,
        epoch_offer: 1,
    }
}

/// Mostly one of a few requests, so that a script comes back to them.
fn request(script: &mut Script<'_>) -> Option<u16> {
    Some(script.number()? as u16)
}
