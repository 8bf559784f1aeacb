//! One link, served: bytes from its reading half to the [`Device`], frames from the device to its writing half.

use crate::{Board, clock::Clock, commands::Work};
use core::{cell::RefCell, pin::pin};
use embassy_futures::{
    select::{Either, select},
    yield_now,
};
use embassy_sync::{blocking_mutex::raw::NoopRawMutex, signal::Signal};
use embedded_io_async::{Read, Write};
use shared::{
    device::{Device, Transmit},
    limits::{LINK_MUTE_US_MAX, WIRE_BYTES_MAX},
};

/// Bytes taken from a link at once.
const READ_BYTES: usize = 256;

/// Why [`serve`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Closed {
    /// The link ended or failed.
    Link,
    /// Nothing was heard of a session for too long.
    Quiet,
    /// Nobody began a session in time.
    Mute,
}

/// Serves one link until it closes. Several run at once on one board; each has a session of its own. On a line that
/// never closes, call it again and again.
///
/// Cancelling it (dropping it) ends the session and gives its queries back; rows and clock are the board's and stay.
pub async fn serve(board: &RefCell<Board<'_>>, clock: &impl Clock, rx: impl Read, tx: impl Write) -> Closed {
    let link = Link::new(board, clock);
    match select(link.receive(rx), link.send(tx)).await {
        Either::First(closed) | Either::Second(closed) => closed,
    }
}

/// What the two halves of a link share. Gives back all work when it is dropped, however the link ended.
struct Link<'a, 'm, C> {
    board: &'a RefCell<Board<'m>>,
    clock: &'a C,
    device: RefCell<Device<Work>>,
    heard: Signal<NoopRawMutex, ()>,
    opened_us: u64,
}

impl<C> Drop for Link<'_, '_, C> {
    fn drop(&mut self) {
        // Nobody holds the board while a link waits, and a link is dropped while it waits. Only a panic on a host
        // could be within the board now; it must not become a second one.
        if let Ok(mut board) = self.board.try_borrow_mut() {
            self.device.get_mut().end(&mut *board);
        }
    }
}

impl<'a, 'm, C: Clock> Link<'a, 'm, C> {
    /// Not inlined: it passes over the stack, which need not be as deep ever after.
    #[inline(never)]
    fn new(board: &'a RefCell<Board<'m>>, clock: &'a C) -> Self {
        let device = RefCell::new(Device::new());
        Self { board, clock, device, heard: Signal::new(), opened_us: clock.uptime_us() }
    }

    async fn receive(&self, mut rx: impl Read) -> Closed {
        let mut bytes = [0; READ_BYTES];
        loop {
            match rx.read(&mut bytes).await {
                Ok(0) | Err(_) => return Closed::Link,
                Ok(len) => {
                    let (mut device, mut board) = (self.device.borrow_mut(), self.board.borrow_mut());
                    device.feed(self.clock.uptime_us(), &mut *board, &bytes[..len]);
                    self.heard.signal(());
                }
            }
        }
    }

    async fn send(&self, mut tx: impl Write) -> Closed {
        let mut out = [0; WIRE_BYTES_MAX];
        loop {
            if let Some(closed) = self.expired() {
                return closed;
            }
            let next = self.device.borrow_mut().transmit(
                self.clock.uptime_us(),
                &mut *self.board.borrow_mut(),
                &mut out,
            );
            match next {
                Transmit::Frame(len) => match self.in_time(tx.write_all(&out[..len])).await {
                    // A link that takes everything at once must not keep the others, or its own reader, waiting.
                    Ok(Ok(())) => yield_now().await,
                    Ok(Err(_)) => return Closed::Link,
                    Err(closed) => return closed,
                },
                Transmit::Busy => yield_now().await,
                Transmit::Idle => {
                    if let Err(closed) = self.in_time(self.heard.wait()).await {
                        return closed;
                    }
                }
            }
        }
    }

    /// Waits for `event`, but not past the link's deadline, which moves on as long as the session is heard of.
    async fn in_time<T>(&self, event: impl Future<Output = T>) -> Result<T, Closed> {
        let mut event = pin!(event);
        loop {
            let deadline_us = self.deadline_us();
            match select(&mut event, self.clock.sleep_until_us(deadline_us)).await {
                Either::First(value) => return Ok(value),
                Either::Second(()) => self.expired().map_or(Ok(()), Err)?,
            }
        }
    }

    fn deadline_us(&self) -> u64 {
        let session_us = self.device.borrow().deadline_us();
        session_us.unwrap_or(self.opened_us.saturating_add(LINK_MUTE_US_MAX))
    }

    /// Why the link is to be closed, if its deadline is past.
    fn expired(&self) -> Option<Closed> {
        let now_us = self.clock.uptime_us();
        if now_us < self.deadline_us() {
            return None;
        }
        Some(if self.device.borrow_mut().expire(now_us, &mut *self.board.borrow_mut()) {
            Closed::Quiet
        } else {
            Closed::Mute
        })
    }
}
