//! A link that damages what it carries, the same way for the same seed.

use shared::link_test::mix;
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// What happens to the frames of one direction, in thousandths of all frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Frames that vanish.
    pub drop: u64,
    /// Frames with a flipped bit.
    pub flip: u64,
    /// Frames that come twice.
    pub duplicate: u64,
    /// Frames that lose their delimiter and so merge with the next.
    pub merge: u64,
    /// Frames with a delimiter in the middle.
    pub split: u64,
    /// Frames after which the link is cut at any byte, for good.
    pub cut: u64,
}

impl Faults {
    /// Faults from a seed: at most `per_thousand` damaged frames in all, of every kind but cuts.
    pub fn of(seed: u64, per_thousand: u64) -> Self {
        let mut faults = Self::default();
        for frame in 0..mix(seed) % (per_thousand + 1) {
            *match mix(seed ^ (frame << 32)) % 5 {
                0 => &mut faults.drop,
                1 => &mut faults.flip,
                2 => &mut faults.duplicate,
                3 => &mut faults.merge,
                _ => &mut faults.split,
            } += 1;
        }
        faults
    }
}

/// One end of a pipe whose written frames suffer `faults`; what is read is as the other end wrote it.
#[derive(Debug)]
pub struct FaultyLink {
    pipe: DuplexStream,
    faults: Faults,
    state: u64,
    /// The frame that is being written, up to its delimiter.
    frame: Vec<u8>,
    /// Bytes on their way into the pipe.
    out: Vec<u8>,
    cut: bool,
    /// Counts the frames that suffered.
    damaged: Arc<AtomicU64>,
}

impl FaultyLink {
    /// Damages what is written into `pipe`.
    pub fn new(pipe: DuplexStream, faults: Faults, seed: u64, damaged: Arc<AtomicU64>) -> Self {
        Self { pipe, faults, state: seed, frame: Vec::new(), out: Vec::new(), cut: false, damaged }
    }

    fn draw(&mut self) -> u64 {
        self.state = mix(self.state);
        self.state
    }

    /// Sends the frame that has just been completed through its fate.
    fn pass(&mut self) {
        let mut frame = std::mem::take(&mut self.frame);
        let (fate, place) = (self.draw() % 1000, self.draw() as usize % frame.len());
        let Faults { drop, flip, duplicate, merge, split, cut } = self.faults;
        let mut below = 0;
        let mut falls = |share: u64| {
            below += share;
            fate < below
        };
        self.damaged.fetch_add(1, Ordering::Relaxed);
        if falls(drop) {
            return;
        } else if falls(flip) {
            frame[place] ^= 1 << (fate % 8);
        } else if falls(duplicate) {
            frame.extend_from_within(..);
        } else if falls(merge) {
            frame.pop();
        } else if falls(split) {
            frame.insert(place, 0);
        } else if falls(cut) {
            frame.truncate(place);
            self.cut = true;
        } else {
            self.damaged.fetch_sub(1, Ordering::Relaxed);
        }
        self.out.extend_from_slice(&frame);
    }

    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while !self.out.is_empty() {
            match Pin::new(&mut self.pipe).poll_write(context, &self.out) {
                Poll::Ready(Ok(written)) => drop(self.out.drain(..written)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.cut {
            return Poll::Ready(Err(std::io::ErrorKind::BrokenPipe.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FaultyLink {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        match self.poll_drain(context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
        for byte in bytes {
            self.frame.push(*byte);
            if *byte == 0 {
                self.pass();
            }
        }
        let _ = self.poll_drain(context); // what does not fit yet goes with the next write or flush
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll_drain(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(context)
    }
}

impl AsyncRead for FaultyLink {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        // What was held back is written while the other side is waited for, or both would wait for ever.
        if let Poll::Ready(Err(error)) = self.poll_drain(context) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.pipe).poll_read(context, buffer)
    }
}
