//! One link, served: bytes from its reading half to the [`Device`], frames from the device to its writing half.

use crate::{Board, clock::Clock, commands::Work};
use core::cell::RefCell;
use embassy_futures::{
    select::{Either, select},
    yield_now,
};
use embassy_sync::{blocking_mutex::raw::NoopRawMutex, signal::Signal};
use embedded_io_async::{Read, Write};
use shared::{
    device::{Device, Transmit},
    limits::WIRE_BYTES_MAX,
};

/// Bytes taken from a link at once.
const READ_BYTES: usize = 256;

/// Why [`serve`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Closed {
    /// The link ended or failed.
    Link,
    /// Nothing was heard for too long.
    Quiet,
}

/// Serves one link until it closes. Several run at once on one board; each has a session of its own.
///
/// Cancelling it (dropping it) ends the session and gives its queries back; rows and clock are the board's and stay.
pub async fn serve(board: &RefCell<Board<'_>>, clock: &impl Clock, rx: impl Read, tx: impl Write) -> Closed {
    let end = Served { board, device: RefCell::new(Device::new()) };
    let heard = Signal::<NoopRawMutex, ()>::new();
    let receive = receive(board, clock, &end.device, &heard, rx);
    let send = send(board, clock, &end.device, &heard, tx);
    match select(receive, send).await {
        Either::First(closed) | Either::Second(closed) => closed,
    }
}

type Heard = Signal<NoopRawMutex, ()>;
type LinkDevice = RefCell<Device<Work>>;

/// A device that gives back all work when it is dropped, however its link ended.
struct Served<'b, 'm> {
    board: &'b RefCell<Board<'m>>,
    device: LinkDevice,
}

impl Drop for Served<'_, '_> {
    fn drop(&mut self) {
        // Nobody holds the board while a link waits, and a link is dropped while it waits. Only a panic on a host
        // could be within the board now; it must not become a second one.
        if let Ok(mut board) = self.board.try_borrow_mut() {
            self.device.get_mut().end(&mut *board);
        }
    }
}

async fn receive(
    board: &RefCell<Board<'_>>,
    clock: &impl Clock,
    device: &LinkDevice,
    heard: &Heard,
    mut rx: impl Read,
) -> Closed {
    let mut bytes = [0; READ_BYTES];
    loop {
        match rx.read(&mut bytes).await {
            Ok(0) | Err(_) => return Closed::Link,
            Ok(len) => {
                device.borrow_mut().feed(clock.uptime_us(), &mut *board.borrow_mut(), &bytes[..len]);
                heard.signal(());
            }
        }
    }
}

async fn send(
    board: &RefCell<Board<'_>>,
    clock: &impl Clock,
    device: &LinkDevice,
    heard: &Heard,
    mut tx: impl Write,
) -> Closed {
    let mut out = [0; WIRE_BYTES_MAX];
    loop {
        let next = device.borrow_mut().transmit(clock.uptime_us(), &mut *board.borrow_mut(), &mut out);
        match next {
            Transmit::Frame(len) => {
                if tx.write_all(&out[..len]).await.is_err() {
                    return Closed::Link;
                }
                // A link that takes everything at once must not keep the others, or its own reader, waiting.
                yield_now().await;
            }
            Transmit::Busy => yield_now().await,
            Transmit::Idle => {
                let deadline_us = device.borrow().deadline_us();
                match deadline_us {
                    None => heard.wait().await,
                    Some(deadline_us) => {
                        select(heard.wait(), clock.sleep_until_us(deadline_us)).await;
                    }
                }
                if device.borrow_mut().expire(clock.uptime_us(), &mut *board.borrow_mut()) {
                    return Closed::Quiet;
                }
            }
        }
    }
}
