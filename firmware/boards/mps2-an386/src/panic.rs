//! What happens on a panic or a fault: it is counted, logged, and the board ends or restarts.

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m::peripheral::SCB;
use cortex_m_rt::{ExceptionFrame, exception};

use crate::retained;

/// A board in the field restarts; in tests QEMU ends with a status that no other end has.
const RESET_ON_PANIC: bool = cfg!(feature = "panic-reset");
const EXIT_STATUS: i32 = 101;

/// How often the handler was entered: it may itself panic, in the logger above all.
static ENTRIES: AtomicU32 = AtomicU32::new(0);

#[panic_handler]
fn on_panic(info: &PanicInfo) -> ! {
    cortex_m::interrupt::disable();
    let entries = ENTRIES.load(Ordering::Relaxed);
    ENTRIES.store(entries + 1, Ordering::Relaxed);
    if entries == 0 {
        let text = retained::record_panic(info);
        defmt::error!("panic at {=str}", text.as_str());
    }
    // The third entry means that there is no host to exit to.
    if RESET_ON_PANIC || entries >= 2 {
        SCB::sys_reset();
    }
    semihosting::process::exit(EXIT_STATUS)
}

#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    panic!("hard fault at {:#010x}", frame.pc())
}

#[exception]
unsafe fn DefaultHandler(interrupt: i16) {
    panic!("unexpected interrupt {interrupt}")
}
