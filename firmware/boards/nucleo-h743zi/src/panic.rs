//! What happens on a panic or a fault: it is counted and logged, and the board restarts.

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use cortex_m::peripheral::SCB;
use cortex_m_rt::{ExceptionFrame, exception};

use crate::retained;

/// The handler was entered before: it may itself panic, in the logger above all.
static ENTERED: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn on_panic(info: &PanicInfo) -> ! {
    cortex_m::interrupt::disable();
    if !ENTERED.swap(true, Ordering::Relaxed) {
        retained::record_panic();
        defmt::error!("{}", defmt::Display2Format(info));
        // The reset empties the log: a probe that reads it gets the time to. Should it have gone, the watchdog
        // ends the wait.
        defmt::flush();
    }
    SCB::sys_reset()
}

#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    panic!("hard fault at {:#010x}", frame.pc())
}

#[exception]
unsafe fn DefaultHandler(interrupt: i16) {
    panic!("unexpected interrupt {interrupt}")
}
