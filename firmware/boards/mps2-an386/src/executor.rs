//! An executor that sleeps with `wfi`. embassy's own uses `wfe`, on which QEMU does not sleep.

use core::sync::atomic::{AtomicBool, Ordering};

use embassy_executor::{Spawner, raw};
use static_cell::StaticCell;

/// Set by every wake, taken before every sleep.
static WORK_PENDING: AtomicBool = AtomicBool::new(false);

static EXECUTOR: StaticCell<raw::Executor> = StaticCell::new();

/// Lets `init` spawn the first tasks, then runs tasks for ever. Call it once.
pub(crate) fn run(init: impl FnOnce(Spawner)) -> ! {
    let executor = EXECUTOR.init(raw::Executor::new(core::ptr::null_mut()));
    init(executor.spawner());
    loop {
        // SAFETY: this is the only call, and it is not reached again before it returns.
        unsafe { executor.poll() };

        // With interrupts masked none can set the flag between the look and the sleep. `wfi`
        // still ends when one becomes pending; it is taken at the end of the section.
        critical_section::with(|_| {
            if !WORK_PENDING.swap(false, Ordering::Acquire) {
                cortex_m::asm::dsb();
                cortex_m::asm::wfi();
            }
        });
    }
}

/// Called by embassy-executor, from tasks and interrupts, when a task becomes ready.
#[unsafe(export_name = "__pender")]
fn pender(_context: *mut ()) {
    WORK_PENDING.store(true, Ordering::Release);
}
