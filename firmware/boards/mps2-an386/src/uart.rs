//! The CMSDK UARTs with interrupts and byte rings in both directions.
//!
//! ```text
//!  DATA ──RX handler──▶ received ──UartRx::read──▶ task
//!  DATA ◀──TX handler── to_send  ◀─UartTx::write── task
//! ```
//! The hardware buffers one byte each way. There is no flow control on the line: while
//! `received` is full the handler leaves the next byte in DATA, and a real line then loses those
//! behind it. Frames carry a checksum for that.

use core::convert::Infallible;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::pipe::Pipe;
use embassy_sync::waitqueue::AtomicWaker;
use embedded_io_async::{ErrorType, Read, Write};

use crate::interrupts::Interrupt;
use crate::mmio::Register;

const LINK_RX_BYTES: usize = 2048;
const LINK_TX_BYTES: usize = 1024;
const CONSOLE_RX_BYTES: usize = 128;
const CONSOLE_TX_BYTES: usize = 512;

pub(crate) type LinkRx = UartRx<LINK_RX_BYTES, LINK_TX_BYTES>;
pub(crate) type LinkTx = UartTx<LINK_RX_BYTES, LINK_TX_BYTES>;
pub(crate) type ConsoleRx = UartRx<CONSOLE_RX_BYTES, CONSOLE_TX_BYTES>;
pub(crate) type ConsoleTx = UartTx<CONSOLE_RX_BYTES, CONSOLE_TX_BYTES>;

/// UART0, the framed link.
pub(crate) static LINK: Uart<LINK_RX_BYTES, LINK_TX_BYTES> = {
    static RINGS: Rings<LINK_RX_BYTES, LINK_TX_BYTES> = Rings::new();
    // SAFETY: UART0's base and lines.
    unsafe { Uart::at(0x4000_4000, Interrupt::Uart0Rx, Interrupt::Uart0Tx, &RINGS) }
};

/// UART1, the text console.
pub(crate) static CONSOLE: Uart<CONSOLE_RX_BYTES, CONSOLE_TX_BYTES> = {
    static RINGS: Rings<CONSOLE_RX_BYTES, CONSOLE_TX_BYTES> = Rings::new();
    // SAFETY: UART1's base and lines.
    unsafe { Uart::at(0x4000_5000, Interrupt::Uart1Rx, Interrupt::Uart1Tx, &RINGS) }
};

const CLOCK_HZ: u32 = 25_000_000;

const STATE_TX_FULL: u32 = 1 << 0;
const STATE_RX_FULL: u32 = 1 << 1;

const CTRL_ENABLE: u32 = 1 << 0 | 1 << 1;
const CTRL_TX_INTERRUPT: u32 = 1 << 2;
const CTRL_RX_INTERRUPT: u32 = 1 << 3;

const INTERRUPT_TX: u32 = 1 << 0;
const INTERRUPT_RX: u32 = 1 << 1;

/// One UART with its rings of `RX` and `TX` bytes.
pub(crate) struct Uart<const RX: usize, const TX: usize> {
    registers: Registers,
    rx_line: Interrupt,
    tx_line: Interrupt,
    rings: &'static Rings<RX, TX>,
    /// `received` was full, the RX interrupt is off and a byte waits in DATA.
    rx_stopped: AtomicBool,
    /// Woken when the last byte has left.
    drained: AtomicWaker,
    taken: AtomicBool,
}

/// Apart from [`Uart`] because they start as zeros: so they take RAM alone, and no flash.
struct Rings<const RX: usize, const TX: usize> {
    received: Pipe<CriticalSectionRawMutex, RX>,
    to_send: Pipe<CriticalSectionRawMutex, TX>,
}

struct Registers {
    data: Register,
    state: Register,
    ctrl: Register,
    /// Read: pending interrupts. Write: clear those whose bit is 1.
    interrupt: Register,
    /// Clock cycles per bit, 16 at least.
    bauddiv: Register,
}

/// The receiving half.
pub(crate) struct UartRx<const RX: usize, const TX: usize>(&'static Uart<RX, TX>);

/// The sending half.
pub(crate) struct UartTx<const RX: usize, const TX: usize>(&'static Uart<RX, TX>);

impl<const RX: usize, const TX: usize> Uart<RX, TX> {
    /// # Safety
    ///
    /// `base` is the address of the CMSDK UART that has these two interrupt lines.
    const unsafe fn at(
        base: usize,
        rx_line: Interrupt,
        tx_line: Interrupt,
        rings: &'static Rings<RX, TX>,
    ) -> Self {
        // SAFETY: the offsets of the registers; the UART has no DMA.
        let registers = unsafe {
            Registers {
                data: Register::at(base),
                state: Register::at(base + 0x4),
                ctrl: Register::at(base + 0x8),
                interrupt: Register::at(base + 0xC),
                bauddiv: Register::at(base + 0x10),
            }
        };
        Self {
            registers,
            rx_line,
            tx_line,
            rings,
            rx_stopped: AtomicBool::new(false),
            drained: AtomicWaker::new(),
            taken: AtomicBool::new(false),
        }
    }

    /// Starts the UART and gives out its halves.
    ///
    /// # Panics
    ///
    /// On the second call: a ring has room for one waiting task.
    pub(crate) fn start(&'static self, baud: u32) -> (UartRx<RX, TX>, UartTx<RX, TX>) {
        assert!(!self.taken.swap(true, Ordering::Relaxed), "UART started twice");
        self.registers.bauddiv.write((CLOCK_HZ / baud).max(16));
        self.registers.ctrl.write(CTRL_ENABLE | CTRL_TX_INTERRUPT | CTRL_RX_INTERRUPT);
        self.rx_line.enable();
        self.tx_line.enable();
        (UartRx(self), UartTx(self))
    }

    fn on_rx_interrupt(&self) {
        // Cleared first: a byte that comes later than the last look raises it again.
        self.registers.interrupt.write(INTERRUPT_RX);
        while self.registers.state.read() & STATE_RX_FULL != 0 {
            if self.rings.received.is_full() {
                self.rx_stopped.store(true, Ordering::Relaxed);
                self.registers.ctrl.write(CTRL_ENABLE | CTRL_TX_INTERRUPT);
                return;
            }
            let byte = self.registers.data.read() as u8;
            // Not full as of above, and only this handler writes: there is room.
            let _ = self.rings.received.try_write(&[byte]);
        }
    }

    /// Called by the reader after it has made room.
    fn resume_rx(&self) {
        if self.rx_stopped.swap(false, Ordering::Relaxed) {
            self.registers.ctrl.write(CTRL_ENABLE | CTRL_TX_INTERRUPT | CTRL_RX_INTERRUPT);
            // The byte in DATA came while the interrupt was off, so it raises none.
            self.rx_line.pend();
        }
    }

    /// Also run by `UartTx::write`, since an idle UART raises nothing: the interrupt comes only
    /// when a byte leaves DATA.
    fn on_tx_interrupt(&self) {
        self.registers.interrupt.write(INTERRUPT_TX);
        while self.registers.state.read() & STATE_TX_FULL == 0 {
            let mut byte = [0];
            if self.rings.to_send.try_read(&mut byte).is_err() {
                self.drained.wake();
                return;
            }
            self.registers.data.write(u32::from(byte[0]));
        }
    }

    fn is_drained(&self) -> bool {
        self.rings.to_send.is_empty() && self.registers.state.read() & STATE_TX_FULL == 0
    }
}

impl<const RX: usize, const TX: usize> Rings<RX, TX> {
    const fn new() -> Self {
        Self { received: Pipe::new(), to_send: Pipe::new() }
    }
}

impl<const RX: usize, const TX: usize> ErrorType for UartRx<RX, TX> {
    type Error = Infallible;
}

impl<const RX: usize, const TX: usize> Read for UartRx<RX, TX> {
    /// Cancelling it loses no byte.
    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, Infallible> {
        let count = self.0.rings.received.read(buf).await;
        self.0.resume_rx();
        Ok(count)
    }
}

impl<const RX: usize, const TX: usize> ErrorType for UartTx<RX, TX> {
    type Error = Infallible;
}

impl<const RX: usize, const TX: usize> Write for UartTx<RX, TX> {
    /// Takes as many bytes as the ring has room for in one piece. Cancelling it takes none.
    async fn write(&mut self, buf: &[u8]) -> Result<usize, Infallible> {
        let count = self.0.rings.to_send.write(buf).await;
        self.0.tx_line.pend();
        Ok(count)
    }

    /// Waits until the last byte has left the UART. Cancelling it does no harm.
    async fn flush(&mut self) -> Result<(), Infallible> {
        poll_fn(|cx| {
            self.0.drained.register(cx.waker());
            if self.0.is_drained() { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }
}

pub(crate) extern "C" fn uart0_rx() {
    LINK.on_rx_interrupt();
}

pub(crate) extern "C" fn uart0_tx() {
    LINK.on_tx_interrupt();
}

pub(crate) extern "C" fn uart1_rx() {
    CONSOLE.on_rx_interrupt();
}

pub(crate) extern "C" fn uart1_tx() {
    CONSOLE.on_tx_interrupt();
}
