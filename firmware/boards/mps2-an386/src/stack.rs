//! How deep the stack has been: it is painted at the start, and what is still painted was never
//! used.

use core::arch::asm;
use core::ptr::addr_of;

use firmware::board::StackUse;

const PAINT: u32 = 0xC0DE_FADE;

unsafe extern "C" {
    /// Highest address; the stack grows down from here.
    static _stack_start: u32;
    /// Lowest address, where the statics end.
    static _stack_end: u32;
}

/// Paints the free part of the stack. Call it first of all: what lies deeper than the caller's
/// frame is forgotten, and no interrupt may be enabled yet.
#[inline(always)]
pub(crate) fn paint() {
    // SAFETY: writes only the words from the stack's end up to the stack pointer, which no live
    // frame holds. One block, because a frame of a Rust loop could lie right there.
    unsafe {
        asm!(
            "1: cmp sp, {word}",
            "bls 2f",
            "str {paint}, [{word}], #4",
            "b 1b",
            "2:",
            word = inout(reg) addr_of!(_stack_end) => _,
            paint = in(reg) PAINT,
        );
    }
}

/// The high-water mark. Takes time in proportion to what was never used.
pub(crate) fn usage() -> StackUse {
    let end = addr_of!(_stack_end).addr();
    let start = addr_of!(_stack_start).addr();
    let deepest = (end..start).step_by(4).find(|&address| {
        // SAFETY: a word of RAM that belongs to the stack; volatile, as handlers write there.
        unsafe { core::ptr::with_exposed_provenance::<u32>(address).read_volatile() != PAINT }
    });
    let used = start - deepest.unwrap_or(start);
    StackUse { bytes_used_max: used as u32, bytes: (start - end) as u32 }
}
