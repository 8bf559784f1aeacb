//! The board's interrupt lines and its vector table. All lines have the same priority, so one
//! handler never interrupts another.

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::NVIC;

use crate::{lan9118, time_driver, uart};

/// The lines that have a handler; the number is the position in the vector table.
#[derive(Clone, Copy)]
#[repr(u16)]
pub(crate) enum Interrupt {
    Uart0Rx = 0,
    Uart0Tx = 1,
    Uart1Rx = 2,
    Uart1Tx = 3,
    Timer0 = 8,
    Timer1 = 9,
    Ethernet = 13,
}

// SAFETY: the numbers are distinct and those of the board's NVIC lines.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

impl Interrupt {
    /// Lets the line interrupt from now on.
    pub(crate) fn enable(self) {
        // SAFETY: critical sections on this board mask all interrupts (PRIMASK), not single
        // lines, so unmasking a line cannot break one.
        unsafe { NVIC::unmask(self) }
    }

    /// Runs the line's handler as if the device had raised it.
    pub(crate) fn pend(self) {
        NVIC::pend(self);
    }
}

type Handler = unsafe extern "C" fn();

const LINES: usize = 32;

unsafe extern "C" {
    fn DefaultHandler();
}

/// Placed behind the exceptions by cortex-m-rt's linker script.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [Handler; LINES] = {
    let mut table: [Handler; LINES] = [DefaultHandler; LINES];
    table[Interrupt::Uart0Rx as usize] = uart::uart0_rx;
    table[Interrupt::Uart0Tx as usize] = uart::uart0_tx;
    table[Interrupt::Uart1Rx as usize] = uart::uart1_rx;
    table[Interrupt::Uart1Tx as usize] = uart::uart1_tx;
    table[Interrupt::Timer0 as usize] = time_driver::timer0;
    table[Interrupt::Timer1 as usize] = time_driver::timer1;
    table[Interrupt::Ethernet as usize] = lan9118::ethernet;
    table
};
