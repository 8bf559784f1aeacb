//! How deep the stack has been: cortex-m-rt paints it before `main`, and what is still painted was never used.

use core::ptr::addr_of;

use cortex_m_rt::STACK_PAINT_VALUE;
use firmware::board::StackUse;

unsafe extern "C" {
    /// Highest address; the stack grows down from here.
    static _stack_start: u32;
    /// Lowest address.
    static _stack_end: u32;
}

/// The high-water mark. Takes time in proportion to what was never used.
pub(crate) fn usage() -> StackUse {
    let end = addr_of!(_stack_end).addr();
    let start = addr_of!(_stack_start).addr();
    let deepest = (end..start).step_by(size_of::<u32>()).find(|&address| {
        let word = core::ptr::with_exposed_provenance::<u32>(address);
        // SAFETY: a word of RAM that belongs to the stack; volatile, as handlers write there.
        unsafe { word.read_volatile() != STACK_PAINT_VALUE }
    });
    let used = start - deepest.unwrap_or(start);
    StackUse { bytes_used_max: used as u32, bytes: (start - end) as u32 }
}
