//! Sessions: how they begin, how they end, and what becomes of requests when they do.

use crate::world::{Ended, Fate, HELP, SLOW, STATUS, Way, World, stream};
use shared::{
    device::Device,
    frame::{FrameBuffer, Header},
    host::{Down, Event, Host},
    limits::{
        HELLO_ATTEMPTS_MAX, HELLO_RETRY_US, KEEPALIVE_US, LINK_SILENT_US_MAX, PING_ATTEMPTS_MAX,
        PROBE_US_MAX, SESSION_QUIET_US_MAX, WIRE_BYTES_MAX,
    },
    message::{self, BoardHello, BridgeHello, Class, Request, kind},
    version,
};

const DONE: Ended = Ended::Done { rows_lost: 0 };

/// A frame that neither end of this world made.
fn made<T: serde::Serialize>(kind: u8, message: &T) -> Vec<u8> {
    let mut frame = FrameBuffer::default();
    let mut out = [0; WIRE_BYTES_MAX];
    let len = message::write(message, frame.body()).unwrap();
    let len = frame.seal(Header { kind, generation: 0, request: 0, sequence: 0 }, len, &mut out);
    out[..len].to_vec()
}

fn board_hello(version_min: u8, version_max: u8, nonce: u32) -> BoardHello<'static> {
    BoardHello {
        version_min,
        version_max,
        nonce,
        features: 0,
        body_bytes_max: 1088,
        requests_max: 8,
        board_id: &[],
        epoch: 1,
        boot_count: 0,
        catalog_hash: 0,
        build: "",
    }
}

#[test]
fn hello_is_answered_with_hello() {
    let mut world = World::new();
    world.run_for_us(100_000);
    assert_eq!(world.ups, 1);
    assert_eq!(world.device.counters().sessions, 1);
    let request = world.ask(STATUS);
    assert_eq!(world.end_of(request), DONE);
}

#[test]
fn the_board_says_hello_first() {
    let mut world = World::new();
    world.host.disconnect(|_| {});
    world.run_for_us(1_000);
    assert_eq!(world.sent.len(), 1);
    assert_eq!((world.sent[0].way, world.sent[0].header.kind), (Way::ToHost, kind::BOARD_HELLO));
}

#[test]
fn a_board_that_starts_late_is_greeted_as_soon_as_it_says_hello() {
    let mut world = World::new();
    world.fate(|_, _| Fate::Lost);
    world.run_for_us(60_000);
    world.restart_board();
    world.fate(|_, _| Fate::Arrives);
    world.run_until(HELLO_RETRY_US, |world| world.ups == 1);
    assert_eq!(world.ups, 1);
    assert!(world.now_us < 70_000, "up at {}", world.now_us);
}

#[test]
fn versions_that_do_not_overlap_bring_the_link_down() {
    for (min, max) in [(version::CURRENT + 1, version::CURRENT + 3), (0, version::MIN - 1)] {
        let mut world = World::new();
        world.hear(&made(kind::BOARD_HELLO, &board_hello(min, max, 0)));
        assert_eq!(world.downs, [Down::Version { board_min: min, board_max: max }]);
    }
}

#[test]
fn a_board_tells_a_bridge_of_another_version_why_it_does_not_answer() {
    let mut world = World::new();
    world.host.disconnect(|_| {});
    world.run_for_us(1_000);
    let hello = BridgeHello {
        version_min: version::CURRENT + 1,
        version_max: version::CURRENT + 2,
        nonce: 9,
        features: 0,
        body_bytes_max: 1088,
        epoch_offer: 5,
    };
    world.put(Way::ToBoard, &made(kind::BRIDGE_HELLO, &hello));
    world.sent.clear();
    world.run_for_us(10_000);
    assert_eq!(world.count(kind::BOARD_HELLO), 1);
    assert_eq!(world.device.counters().sessions, 0);
}

#[test]
fn a_newer_neighbour_is_spoken_to() {
    let mut world = World::new();
    world.run_for_us(100);
    let hello = BridgeHello {
        version_min: version::CURRENT,
        version_max: version::CURRENT + 1,
        nonce: 9,
        features: u32::MAX,
        body_bytes_max: u16::MAX,
        epoch_offer: 5,
    };
    world.put(Way::ToBoard, &made(kind::BRIDGE_HELLO, &hello));
    world.run_for_us(10_000);
    assert!(world.device.counters().sessions >= 1);
}

#[test]
fn a_board_without_an_epoch_takes_the_one_it_is_offered() {
    let mut world = World::new();
    world.board.epoch = 0;
    world.run_for_us(100_000);
    let epoch = world.board.epoch;
    assert_ne!(epoch, 0);
    world.cut();
    world.plug();
    world.run_for_us(100_000);
    assert_eq!((world.ups, world.board.epoch), (2, epoch));
}

#[test]
fn a_copy_of_a_hello_does_not_reset_open_requests() {
    let mut world = World::new();
    world.fate(|_, header| match header.kind {
        kind::BRIDGE_HELLO | kind::BOARD_HELLO => Fate::Twice,
        _ => Fate::Arrives,
    });
    let request = world.ask(stream(2_000));
    assert_eq!(world.end_of(request), DONE);
    assert_eq!((world.ups, world.device.counters().sessions), (1, 1));
    assert_eq!(world.host.counters().resumes, 0);
}

#[test]
fn nobody_there_is_noticed_in_bounded_time() {
    let mut world = World::new();
    world.fate(|_, _| Fate::Lost);
    world.run_until(60_000_000, |world| !world.downs.is_empty());
    assert_eq!(world.downs, [Down::NoHello { bytes_in: 0 }]);
    assert_eq!(world.now_us, u64::from(HELLO_ATTEMPTS_MAX) * HELLO_RETRY_US);
}

#[test]
fn something_else_on_the_line_is_counted_and_not_taken_for_a_board() {
    let mut world = World::new();
    world.fate(|_, _| Fate::Lost);
    world.hear(b"\r\nlogin: ");
    world.run_until(60_000_000, |world| !world.downs.is_empty());
    assert_eq!(world.downs, [Down::NoHello { bytes_in: 9 }]);
}

#[test]
fn silence_is_noticed_in_bounded_time() {
    let mut world = World::up();
    let (stream, slow) = (world.ask(stream(100_000)), world.ask(SLOW));
    let once = world.ask(Request::SetTime(1));
    world.run_for_us(5_000);
    world.fate(|_, _| Fate::Lost);
    let from_us = world.now_us;
    world.run_until(60_000_000, |world| !world.downs.is_empty());
    assert_eq!(world.downs, [Down::Silent]);
    assert!(world.now_us - from_us <= LINK_SILENT_US_MAX, "{} us", world.now_us - from_us);
    assert_eq!(world.count(kind::PING) as u32, PING_ATTEMPTS_MAX);
    // What can be asked again waits for the next link; what had its answer has it.
    assert_eq!((world.ended(stream), world.ended(slow), world.ended(once)), (None, Some(DONE), Some(DONE)));
}

#[test]
fn a_board_far_away_is_not_taken_for_a_silent_one() {
    for round_trip_us in [PROBE_US_MAX + 500_000, 6_000_000] {
        let mut world = World::up();
        world.latency_us = round_trip_us / 2;
        world.run_for_us(120_000_000);
        assert_eq!(world.downs, [], "idle, {round_trip_us} us away");
        let request = world.ask(stream(2_000));
        assert_eq!(world.end_of(request), DONE, "{round_trip_us} us away");
        assert_eq!(world.answer(request).rows, Vec::from_iter(0..2_000));
        assert_eq!((world.downs.len(), world.host.counters().resumes, world.ups), (0, 0, 1));
    }
}

#[test]
fn a_board_whose_rows_come_is_there_though_it_answers_no_ping() {
    let mut world = World::up();
    world.latency_us = 3_000_000;
    world.fate(|_, header| if header.kind == kind::PONG { Fate::Lost } else { Fate::Arrives });
    let request = world.ask(stream(2_000));
    assert_eq!(world.end_of(request), DONE);
    assert_eq!((world.answer(request).rows.len(), world.downs.len()), (2_000, 0));
}

#[test]
fn a_link_that_takes_no_bytes_is_noticed_in_bounded_time() {
    let mut world = World::up();
    let request = world.ask(stream(100_000));
    world.run_for_us(5_000);
    world.block();
    let from_us = world.now_us;
    world.run_until(60_000_000, |world| !world.downs.is_empty());
    assert_eq!((&world.downs[..], world.ended(request)), (&[Down::Silent][..], None));
    assert!(world.now_us - from_us <= LINK_SILENT_US_MAX + 100_000, "{} us", world.now_us - from_us);
}

#[test]
fn a_link_that_never_took_a_byte_is_given_up_in_a_few_looks_at_the_clock() {
    let mut host = Host::new(1);
    host.connect(0);
    let (mut now_us, mut looks, mut downs) = (0, 0, 0);
    while downs == 0 {
        host.tick(now_us, |event| downs += u32::from(matches!(event, Event::Down(Down::NoHello { .. }))));
        looks += 1;
        assert!(looks < 5, "the clock is looked at without end");
        now_us = host.deadline_us().unwrap_or(now_us);
    }
    assert_eq!(now_us, u64::from(HELLO_ATTEMPTS_MAX) * HELLO_RETRY_US);
}

#[test]
fn an_idle_link_is_pinged_now_and_then() {
    let mut world = World::up();
    world.run_for_us(10 * KEEPALIVE_US);
    let pings: Vec<_> = world.sent.iter().filter(|s| s.header.kind == kind::PING).map(|s| s.at_us).collect();
    assert!((9..=10).contains(&pings.len()), "{pings:?}");
    for pair in pings.windows(2) {
        assert!((KEEPALIVE_US..KEEPALIVE_US + 10_000).contains(&(pair[1] - pair[0])), "{pings:?}");
    }
    assert_eq!(world.count(kind::PONG), pings.len());
    assert_eq!(world.sent.len(), 2 * pings.len());
}

#[test]
fn a_session_expires_when_the_bridge_is_quiet() {
    let mut world = World::up();
    let request = world.ask(stream(100_000));
    world.consumes = false;
    world.run_for_us(50_000);
    let deadline_us = world.device.deadline_us().unwrap();
    assert!(deadline_us <= world.now_us + SESSION_QUIET_US_MAX);
    assert!(!world.device.expire(deadline_us - 1, &mut world.board));
    assert!(world.device.expire(deadline_us, &mut world.board));
    assert_eq!(world.device.deadline_us(), None);
    // The bridge comes back and both begin anew, from where the rows ended.
    world.consumes = true;
    world.host.consumed(request, world.answer(request).parts);
    assert_eq!(world.end_of(request), DONE);
    assert_eq!(world.answer(request).rows, Vec::from_iter(0..100_000));
    assert_eq!(world.ups, 2);
}

#[test]
fn a_board_that_restarts_before_a_row_came_is_asked_again() {
    let mut world = World::up();
    world.board.row_first = 5; // rows that only the first boot had lost
    let request = world.ask(stream(500));
    world.run_until(1_000_000, |world| world.answer(request).started == 1);
    assert_eq!(world.answer(request).rows, []);
    world.restart_board();
    world.board.row_first = 0;
    assert_eq!(world.end_of(request), DONE);
    assert_eq!(world.answer(request).rows, Vec::from_iter(0..500));
    assert_eq!((world.answer(request).started, world.ups), (1, 2));
}

#[test]
fn a_board_that_restarts_in_mid_stream_ends_the_stream() {
    let mut world = World::up();
    let request = world.ask(stream(10_000));
    world.run_until(1_000_000, |world| world.answer(request).rows.len() > 100);
    world.restart_board();
    assert_eq!(world.end_of(request), Ended::BoardRestarted);
    let other = world.ask(STATUS);
    assert_eq!(world.end_of(other), DONE);
}

#[test]
fn a_restart_is_noticed_though_the_boards_hello_is_lost() {
    let mut world = World::up();
    let request = world.ask(stream(10_000));
    world.run_until(1_000_000, |world| world.answer(request).rows.len() > 100);
    world.restart_board();
    world.next_frame(kind::BOARD_HELLO, Fate::Lost);
    assert_eq!(world.end_of(request), Ended::BoardRestarted);
}

#[test]
fn a_restart_is_noticed_though_an_old_hello_of_the_bridge_arrives_after_it() {
    let mut world = World::new();
    let request = world.ask(stream(10_000));
    let mut out = [0; WIRE_BYTES_MAX];
    let len = world.host.transmit(0, &mut out).unwrap();
    world.put(Way::ToBoard, &out[..len]);
    world.run_until(1_000_000, |world| world.answer(request).rows.len() > 100);
    world.restart_board();
    world.device.feed(world.now_us, &mut world.board, &out[..len]); // a relay had kept it
    assert_eq!(world.end_of(request), Ended::BoardRestarted);
}

#[test]
fn a_link_that_comes_back_goes_on_where_it_was() {
    let mut world = World::up();
    let (rows, help) = (world.ask(stream(10_000)), world.ask(HELP));
    for part in 1..5 {
        world.run_until(10_000_000, |world| world.answer(rows).rows.len() > part * 2_000);
        world.cut();
        world.run_for_us(50_000);
        world.plug();
    }
    assert_eq!((world.end_of(rows), world.end_of(help)), (DONE, DONE));
    assert_eq!(world.answer(rows).rows, Vec::from_iter(0..10_000));
    assert_eq!((world.answer(rows).started, world.ups), (1, 5));
}

#[test]
fn a_request_from_before_the_link_waits_for_it() {
    let mut world = World::new();
    world.cut();
    let requests = [world.ask(STATUS), world.ask(Request::SetTime(7)), world.ask(stream(100))];
    world.run_for_us(1_000_000);
    assert!(requests.iter().all(|request| world.ended(*request).is_none()));
    world.plug();
    assert!(requests.iter().all(|request| world.end_of(*request) == DONE));
    assert_eq!(world.board.executed[&7], 1);
}

#[test]
fn a_flood_of_hellos_without_a_session_does_not_use_up_the_patience_of_the_bridge() {
    let mut world = World::new();
    world.fate(|way, _| if way == Way::ToBoard { Fate::Lost } else { Fate::Arrives });
    for _ in 0..2 * HELLO_ATTEMPTS_MAX {
        world.hear(&made(kind::BOARD_HELLO, &board_hello(1, 1, 0)));
        world.run_for_us(50);
    }
    world.fate(|_, _| Fate::Arrives);
    world.run_for_us(1_000_000);
    assert_eq!((world.ups, world.downs.len()), (1, 0));
}

#[test]
fn a_second_link_to_the_same_device_begins_anew() {
    let mut world = World::up();
    let background = world.ask_as(Class::Background, stream(50_000));
    world.run_for_us(20_000);
    // The serial port was opened again: the device knows nothing of it.
    let device = std::mem::replace(&mut world.device, Device::new());
    world.cut();
    world.device = device;
    world.plug();
    assert_eq!(world.end_of(background), DONE);
    assert_eq!(world.answer(background).rows, Vec::from_iter(0..50_000));
    assert_eq!(world.device.counters().sessions, 2);
}
