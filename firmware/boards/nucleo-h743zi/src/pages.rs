//! The memory of the rows: AXI SRAM that nothing else needs. It takes no flash.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

use firmware::PageBuffer;

/// Pages that the board keeps rows in.
pub(crate) const PAGES: usize = 256;

struct Memory(UnsafeCell<MaybeUninit<[PageBuffer; PAGES]>>);

// SAFETY: given away once, under `TAKEN`.
unsafe impl Sync for Memory {}

#[unsafe(link_section = ".uninit.pages")]
static MEMORY: Memory = Memory(UnsafeCell::new(MaybeUninit::uninit()));
static TAKEN: AtomicBool = AtomicBool::new(false);

/// All pages, empty. Call it once.
pub(crate) fn take() -> &'static mut [PageBuffer; PAGES] {
    assert!(!TAKEN.swap(true, Ordering::Relaxed), "the pages are taken");
    let memory = MEMORY.0.get();
    // SAFETY: nobody else has it, and zeros are pages; written in place, for the stack is far smaller.
    unsafe {
        memory.write_bytes(0, 1);
        (*memory).assume_init_mut()
    }
}
