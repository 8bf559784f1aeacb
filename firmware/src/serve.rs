//! One link, served: bytes from its reading half to the [`Device`], frames from the device to its writing half.

use crate::{Board, clock::Clock, commands::Work};
use core::{
    cell::RefCell,
    future::poll_fn,
    pin::pin,
    task::{Poll, Waker},
};
use embassy_futures::{
    select::{Either3, select3},
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
    let device = RefCell::new(Device::new());
    let link = Link { board, clock, device, heard: Signal::new(), opened_us: clock.uptime_us() };
    match select3(link.receive(rx), link.send(tx), link.expire()).await {
        Either3::First(closed) | Either3::Second(closed) | Either3::Third(closed) => closed,
    }
}

/// What the halves of a link share. Gives back all work when it is dropped, however the link ended.
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

impl<C: Clock> Link<'_, '_, C> {
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
            let next = self.device.borrow_mut().transmit(
                self.clock.uptime_us(),
                &mut *self.board.borrow_mut(),
                &mut out,
            );
            match next {
                Transmit::Frame(len) => {
                    if tx.write_all(&out[..len]).await.is_err() {
                        return Closed::Link;
                    }
                    // A link that takes everything at once must not keep the others, or its own reader, waiting.
                    yield_now().await;
                }
                Transmit::Busy => yield_now().await,
                Transmit::Idle => self.heard.wait().await,
            }
        }
    }

    /// Waits until the link's deadline is past. It moves on as long as the session is heard of.
    async fn expire(&self) -> Closed {
        loop {
            let deadline_us = self.deadline_us();
            self.sleep_until_us(deadline_us).await;
            let now_us = self.clock.uptime_us();
            if now_us >= self.deadline_us() {
                let had_session = self.device.borrow_mut().expire(now_us, &mut *self.board.borrow_mut());
                return if had_session { Closed::Quiet } else { Closed::Mute };
            }
        }
    }

    /// While a stream runs it is looked at many times for each frame. An alarm that is set stays set: to set it anew
    /// each time would cost more than the frame.
    async fn sleep_until_us(&self, uptime_us: u64) {
        let mut sleep = pin!(self.clock.sleep_until_us(uptime_us));
        let mut waked: Option<Waker> = None;
        poll_fn(|context| {
            let is_set = waked.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
            if is_set && self.clock.uptime_us() < uptime_us {
                return Poll::Pending;
            }
            waked = Some(context.waker().clone());
            sleep.as_mut().poll(context)
        })
        .await;
    }

    fn deadline_us(&self) -> u64 {
        let session_us = self.device.borrow().deadline_us();
        session_us.unwrap_or(self.opened_us.saturating_add(LINK_MUTE_US_MAX))
    }
}
