//! USART3 as a link: interrupts move bytes between the line and two rings.
//!
//! Received bytes that find their ring full are lost, and so are those with a framing error; frames carry a
//! check sum for that.

use embassy_stm32::interrupt::typelevel::Binding;
use embassy_stm32::peripherals::{PD8, PD9, USART3};
use embassy_stm32::usart::{
    BufferedInterruptHandler, BufferedUart, BufferedUartRx, BufferedUartTx, Config, Error,
};
use embassy_stm32::{Peri, interrupt};
use embedded_io_async::{ErrorType, Write};
use shared::limits::WIRE_BYTES_MAX;
use static_cell::ConstStaticCell;

/// The reader is woken when half of it is full, or when the line falls idle.
const RX_BYTES: usize = 2048;
/// A whole frame, so that sending one takes one turn.
const TX_BYTES: usize = 2048;
const _: () = assert!(WIRE_BYTES_MAX <= TX_BYTES);

/// The sending half.
pub(crate) struct SerialTx(BufferedUartTx<'static>);

/// Starts the USART and gives out its halves.
///
/// # Panics
///
/// If the USART's clock does not divide into `baud`.
pub(crate) fn start(
    usart: Peri<'static, USART3>,
    rx: Peri<'static, PD9>,
    tx: Peri<'static, PD8>,
    irqs: impl Binding<interrupt::typelevel::USART3, BufferedInterruptHandler<USART3>> + 'static,
    baud: u32,
) -> (BufferedUartRx<'static>, SerialTx) {
    static RX_RING: ConstStaticCell<[u8; RX_BYTES]> = ConstStaticCell::new([0; RX_BYTES]);
    static TX_RING: ConstStaticCell<[u8; TX_BYTES]> = ConstStaticCell::new([0; TX_BYTES]);

    let mut config = Config::default();
    config.baudrate = baud;
    let uart = BufferedUart::new(usart, rx, tx, TX_RING.take(), RX_RING.take(), irqs, config).unwrap();
    let (tx, rx) = uart.split();
    (rx, SerialTx(tx))
}

impl ErrorType for SerialTx {
    type Error = Error;
}

impl Write for SerialTx {
    /// Waits until the ring is empty, then fills it. Cancelling it takes no byte.
    ///
    /// embassy-stm32 0.6 refuses more bytes than the ring has, and while the ring has no room for all of them
    /// it waits without asking to be woken. An empty ring spares us both, and costs the line a pause of some
    /// microseconds between frames.
    async fn write(&mut self, buf: &[u8]) -> Result<usize, Error> {
        self.0.flush().await?;
        self.0.write(&buf[..buf.len().min(TX_BYTES)]).await
    }

    async fn flush(&mut self) -> Result<(), Error> {
        self.0.flush().await
    }
}
