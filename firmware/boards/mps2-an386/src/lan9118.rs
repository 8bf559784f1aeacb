//! The LAN9118 Ethernet controller as a driver of embassy-net.
//!
//! Frames go through two data FIFOs a word at a time; there is no DMA. A frame begins at the
//! third byte of its buffer on both ways (the chip skips the first two), so that behind the
//! 14 bytes of Ethernet header the IP header and the payload lie on word boundaries:
//!
//! ```text
//!  byte  0   2                    16                  36                  56
//!        │pad│ Ethernet header 14 │ IP header 20      │ TCP header 20     │ payload …
//! ```
//!
//! The interrupt handler turns all of the chip's interrupts off and wakes the network task, which
//! drains the chip and turns them on again. So a burst of frames costs one interrupt, and
//! nothing but that task touches the chip's indirect registers.

use core::task::Context;

use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::signal::Signal;
use embassy_sync::waitqueue::AtomicWaker;
use static_cell::ConstStaticCell;

use crate::interrupts::Interrupt;
use crate::mmio::Register;

/// Ethernet header and 1500 bytes, without the CRC.
const FRAME_BYTES_MAX: usize = 1514;
const FRAME_BYTES_MIN: usize = 14;
const CRC_BYTES: usize = 4;
const PAD_BYTES: usize = 2;
const BUFFER_WORDS: usize = (PAD_BYTES + FRAME_BYTES_MAX + CRC_BYTES).div_ceil(4);

/// A frame with its two command words.
const TX_ROOM_BYTES: u32 = (BUFFER_WORDS as u32 + 2) * 4;

/// The RX FIFO of 10,560 bytes holds this many whole frames. A TCP window beyond that would only
/// make the peer send what the chip has to drop.
const RX_BURST_FRAMES: usize = 6;

/// A soft reset or an indirect access takes microseconds.
const POLLS_MAX: u32 = 100_000;

const BASE: usize = 0x4020_0000;
const RX_DATA: Register = register(0x00);
const TX_DATA: Register = register(0x20);
const RX_STATUS: Register = register(0x40);
const TX_STATUS: Register = register(0x48);
const IRQ_CFG: Register = register(0x54);
const INT_STS: Register = register(0x58);
const INT_EN: Register = register(0x5C);
const BYTE_TEST: Register = register(0x64);
const FIFO_INT: Register = register(0x68);
const RX_CFG: Register = register(0x6C);
const TX_CFG: Register = register(0x70);
const HW_CFG: Register = register(0x74);
const RX_FIFO_INF: Register = register(0x7C);
const TX_FIFO_INF: Register = register(0x80);
const MAC_CSR_CMD: Register = register(0xA4);
const MAC_CSR_DATA: Register = register(0xA8);

const BYTE_TEST_VALUE: u32 = 0x8765_4321;
const HW_CFG_SOFT_RESET: u32 = 1;
/// 5 KiB of the chip's memory for the TX FIFO, and a bit that must be one.
const HW_CFG_FIFO_SPLIT: u32 = 5 << 16 | 1 << 20;
/// Enabled, active high, push-pull.
const IRQ_CFG_LINE: u32 = 1 << 8 | 1 << 4 | 1;
const TX_CFG_ON: u32 = 1 << 1;
const TX_CFG_STATUS_MAY_OVERRUN: u32 = 1 << 2;
const TX_COMMAND_WHOLE_FRAME: u32 = 1 << 13 | 1 << 12;
const RX_STATUS_ERROR: u32 = 1 << 15;
const MAC_CSR_BUSY: u32 = 1 << 31;
const MAC_CSR_READ: u32 = 1 << 30;

/// Interrupts: more frames received than FIFO_INT's low byte (zero) says.
const INT_RX_FRAME: u32 = 1 << 3;
/// More room in the TX FIFO than FIFO_INT's high byte says.
const INT_TX_ROOM: u32 = 1 << 9;
/// The PHY has something to tell, and goes on until its PHY_SOURCE is read.
const INT_PHY: u32 = 1 << 18;
/// In blocks of 64 bytes.
const FIFO_INT_TX_ROOM: u32 = TX_ROOM_BYTES.div_ceil(64) << 24;

const MAC_CR: u32 = 1;
const MAC_CR_TX_ON: u32 = 1 << 3;
const MAC_CR_RX_ON: u32 = 1 << 2;
const MAC_CR_FULL_DUPLEX: u32 = 1 << 20;
const MAC_ADDRESS_HIGH: u32 = 2;
const MAC_ADDRESS_LOW: u32 = 3;
const MAC_MII_ACCESS: u32 = 6;
const MAC_MII_DATA: u32 = 7;

const MII_BUSY: u32 = 1;
const MII_WRITE: u32 = 1 << 1;
const MII_PHY_INTERNAL: u32 = 1 << 11;
const PHY_CONTROL: u32 = 0;
const PHY_CONTROL_AUTONEGOTIATE: u32 = 1 << 12 | 1 << 9;
const PHY_STATUS: u32 = 1;
const PHY_STATUS_LINK: u32 = 1 << 2;
const PHY_SOURCE: u32 = 29;
const PHY_MASK: u32 = 30;
const PHY_LINK_DOWN: u32 = 1 << 4;
const PHY_NEGOTIATED: u32 = 1 << 6;

/// The task that runs the network stack.
static NETWORK_TASK: AtomicWaker = AtomicWaker::new();

static FRAME_SENT: Signal<CriticalSectionRawMutex, ()> = Signal::new();

/// The chip does not answer as a LAN9118 does.
#[derive(Debug, defmt::Format)]
pub(crate) struct NotResponding;

/// The controller and its two frame buffers.
pub(crate) struct Lan9118 {
    rx_frame: &'static mut FrameBuffer,
    tx_frame: &'static mut FrameBuffer,
    mac_address: [u8; 6],
    link: LinkState,
    /// A frame waits for room in the TX FIFO.
    tx_waits: bool,
}

/// Words as the FIFOs want them, bytes as the network stack does.
struct FrameBuffer([u32; BUFFER_WORDS]);

/// A received frame.
pub(crate) struct RxFrame<'a>(&'a mut [u8]);

/// Room for a frame to send.
pub(crate) struct TxFrame<'a>(&'a mut FrameBuffer);

impl Lan9118 {
    /// Resets and starts the chip. It keeps the MAC address that its EEPROM holds.
    ///
    /// # Panics
    ///
    /// On the second call: there is one chip.
    pub(crate) fn new() -> Result<Self, NotResponding> {
        // Static, not fields: the driver is moved about before it runs, on the stack.
        static RX_FRAME: ConstStaticCell<FrameBuffer> = ConstStaticCell::new(FrameBuffer::EMPTY);
        static TX_FRAME: ConstStaticCell<FrameBuffer> = ConstStaticCell::new(FrameBuffer::EMPTY);

        if BYTE_TEST.read() != BYTE_TEST_VALUE {
            return Err(NotResponding);
        }
        HW_CFG.write(HW_CFG_SOFT_RESET);
        wait_until(|| HW_CFG.read() & HW_CFG_SOFT_RESET == 0)?;
        HW_CFG.write(HW_CFG_FIFO_SPLIT);

        let mut chip = Self {
            rx_frame: RX_FRAME.take(),
            tx_frame: TX_FRAME.take(),
            mac_address: read_mac_address()?,
            link: LinkState::Down,
            tx_waits: false,
        };
        RX_CFG.write((PAD_BYTES as u32) << 8);
        FIFO_INT.write(FIFO_INT_TX_ROOM);
        write_phy(PHY_CONTROL, PHY_CONTROL_AUTONEGOTIATE)?;
        write_phy(PHY_MASK, PHY_LINK_DOWN | PHY_NEGOTIATED)?;
        chip.update_link()?;
        TX_CFG.write(TX_CFG_ON | TX_CFG_STATUS_MAY_OVERRUN);
        write_mac(MAC_CR, MAC_CR_TX_ON | MAC_CR_RX_ON | MAC_CR_FULL_DUPLEX)?;

        IRQ_CFG.write(IRQ_CFG_LINE);
        chip.enable_interrupts();
        Interrupt::Ethernet.enable();
        Ok(chip)
    }

    pub(crate) fn mac_address(&self) -> [u8; 6] {
        self.mac_address
    }

    /// Call it with the waker registered, and look at the FIFOs once more afterwards.
    fn enable_interrupts(&mut self) {
        let pending = INT_STS.read();
        // Should the PHY not answer, the link stays what it was.
        if pending & INT_PHY != 0 && self.update_link().is_err() {
            defmt::warn!("the PHY does not answer");
        }
        INT_STS.write(pending);
        let tx_room = if self.tx_waits { INT_TX_ROOM } else { 0 };
        INT_EN.write(INT_RX_FRAME | INT_PHY | tx_room);
    }

    fn update_link(&mut self) -> Result<(), NotResponding> {
        read_phy(PHY_SOURCE)?;
        // A loss of the link stays in the register until it is read: the second reading is now.
        read_phy(PHY_STATUS)?;
        let is_up = read_phy(PHY_STATUS)? & PHY_STATUS_LINK != 0;
        self.link = if is_up { LinkState::Up } else { LinkState::Down };
        Ok(())
    }

    /// Moves the next good frame from the chip to `rx_frame` and returns its length.
    fn take_frame(&mut self) -> Option<usize> {
        while RX_FIFO_INF.read() & 0x00FF_0000 != 0 {
            let status = RX_STATUS.read();
            let fifo_bytes = (status >> 16 & 0x3FFF) as usize;
            let fifo_words = (PAD_BYTES + fifo_bytes).div_ceil(4);
            let frame_bytes = fifo_bytes.saturating_sub(CRC_BYTES);

            let is_good =
                status & RX_STATUS_ERROR == 0 && (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&frame_bytes);
            if is_good {
                self.rx_frame.fill_from_fifo(fifo_words);
                return Some(frame_bytes);
            }
            for _ in 0..fifo_words {
                RX_DATA.read();
            }
        }
        None
    }

    /// Whether a frame may be written. Also takes the results of earlier ones off the chip:
    /// whatever is lost on the wire, TCP sends again.
    fn has_tx_room(&mut self) -> bool {
        let info = TX_FIFO_INF.read();
        for _ in 0..(info >> 16 & 0xFF) {
            TX_STATUS.read();
        }
        self.tx_waits = info & 0xFFFF < TX_ROOM_BYTES;
        !self.tx_waits
    }
}

impl Driver for Lan9118 {
    type RxToken<'a> = RxFrame<'a>;
    type TxToken<'a> = TxFrame<'a>;

    fn receive(&mut self, cx: &mut Context) -> Option<(RxFrame<'_>, TxFrame<'_>)> {
        // The stack may answer at once, so a frame is taken only when there is room for another.
        let mut frame_bytes = if self.has_tx_room() { self.take_frame() } else { None };
        if frame_bytes.is_none() {
            NETWORK_TASK.register(cx.waker());
            self.enable_interrupts();
            frame_bytes = if self.has_tx_room() { self.take_frame() } else { None };
        }
        Some((RxFrame(self.rx_frame.bytes(frame_bytes?)), TxFrame(self.tx_frame)))
    }

    fn transmit(&mut self, cx: &mut Context) -> Option<TxFrame<'_>> {
        if !self.has_tx_room() {
            NETWORK_TASK.register(cx.waker());
            self.enable_interrupts();
            if !self.has_tx_room() {
                return None;
            }
        }
        Some(TxFrame(self.tx_frame))
    }

    fn link_state(&mut self, _cx: &mut Context) -> LinkState {
        self.link
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = FRAME_BYTES_MAX;
        capabilities.max_burst_size = Some(RX_BURST_FRAMES);
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.mac_address)
    }
}

impl RxToken for RxFrame<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

impl TxToken for TxFrame<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let result = f(self.0.bytes(len));
        TX_DATA.write(TX_COMMAND_WHOLE_FRAME | (PAD_BYTES as u32) << 16 | len as u32);
        TX_DATA.write(len as u32);
        self.0.drain_to_fifo((PAD_BYTES + len).div_ceil(4));
        FRAME_SENT.signal(());
        result
    }
}

impl FrameBuffer {
    const EMPTY: Self = Self([0; BUFFER_WORDS]);

    /// The first `len` bytes of the frame.
    fn bytes(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: the words are `BUFFER_WORDS * 4` initialised bytes, borrowed mutably for as
        // long as the slice lives, and every bit pattern is a valid word.
        let bytes: &mut [u8; BUFFER_WORDS * 4] = unsafe { &mut *(&raw mut self.0).cast() };
        &mut bytes[PAD_BYTES..PAD_BYTES + len]
    }

    fn fill_from_fifo(&mut self, words: usize) {
        for word in &mut self.0[..words] {
            *word = RX_DATA.read();
        }
    }

    fn drain_to_fifo(&self, words: usize) {
        for &word in &self.0[..words] {
            TX_DATA.write(word);
        }
    }
}

/// Waits until a frame has been sent since the last call. For one task only.
pub(crate) async fn frame_sent() {
    FRAME_SENT.wait().await;
}

/// Silences the chip and leaves the work to the network task.
pub(crate) extern "C" fn ethernet() {
    INT_EN.write(0);
    NETWORK_TASK.wake();
}

const fn register(offset: usize) -> Register {
    // SAFETY: called with the offsets above only, which are those of the chip's registers.
    unsafe { Register::at(BASE + offset) }
}

fn read_mac_address() -> Result<[u8; 6], NotResponding> {
    let low = read_mac(MAC_ADDRESS_LOW)?.to_le_bytes();
    let high = read_mac(MAC_ADDRESS_HIGH)?.to_le_bytes();
    Ok([low[0], low[1], low[2], low[3], high[0], high[1]])
}

fn read_mac(index: u32) -> Result<u32, NotResponding> {
    MAC_CSR_CMD.write(MAC_CSR_BUSY | MAC_CSR_READ | index);
    wait_until(|| MAC_CSR_CMD.read() & MAC_CSR_BUSY == 0)?;
    Ok(MAC_CSR_DATA.read())
}

fn write_mac(index: u32, value: u32) -> Result<(), NotResponding> {
    MAC_CSR_DATA.write(value);
    MAC_CSR_CMD.write(MAC_CSR_BUSY | index);
    wait_until(|| MAC_CSR_CMD.read() & MAC_CSR_BUSY == 0)
}

fn read_phy(index: u32) -> Result<u32, NotResponding> {
    write_mac(MAC_MII_ACCESS, MII_PHY_INTERNAL | index << 6 | MII_BUSY)?;
    wait_until(|| read_mac(MAC_MII_ACCESS).is_ok_and(|access| access & MII_BUSY == 0))?;
    read_mac(MAC_MII_DATA)
}

fn write_phy(index: u32, value: u32) -> Result<(), NotResponding> {
    write_mac(MAC_MII_DATA, value)?;
    write_mac(MAC_MII_ACCESS, MII_PHY_INTERNAL | index << 6 | MII_WRITE | MII_BUSY)?;
    wait_until(|| read_mac(MAC_MII_ACCESS).is_ok_and(|access| access & MII_BUSY == 0))
}

fn wait_until(condition: impl Fn() -> bool) -> Result<(), NotResponding> {
    if (0..POLLS_MAX).any(|_| condition()) { Ok(()) } else { Err(NotResponding) }
}
