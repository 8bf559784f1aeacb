//! Facts that survive a reset: how often the board has started and panicked. They lie in RAM that the start-up
//! code leaves alone, under a check word that RAM after a power-on does not have.
//!
//! ```text
//!  word  0       1       2        3          4
//!        │ magic │ boots │ panics │ panicked │ check
//! ```
//!
//! That RAM is the DTCM, written a word at a time. AXI SRAM would not do: its words have 64 bits, and it holds a
//! write of less back until the next one, which a reset never lets come.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use critical_section::CriticalSection;

const MAGIC: u32 = 0x5049_434F;
const WORDS: usize = 5;

/// What is known about the starts since the power came on.
#[derive(Clone, Copy)]
pub(crate) struct BootFacts {
    /// This start included.
    pub(crate) boots: u32,
    pub(crate) panics: u32,
    /// The run before this one ended in a panic.
    pub(crate) panicked: bool,
}

struct Retained(UnsafeCell<MaybeUninit<[u32; WORDS]>>);

// SAFETY: accessed in critical sections only.
unsafe impl Sync for Retained {}

#[unsafe(link_section = ".retained")]
static RETAINED: Retained = Retained(UnsafeCell::new(MaybeUninit::uninit()));

/// Counts this start and tells what is known of the earlier ones. Call it once, early.
pub(crate) fn start() -> BootFacts {
    critical_section::with(|cs| {
        let mut facts = load(cs);
        facts.boots = facts.boots.saturating_add(1);
        store(cs, BootFacts { panicked: false, ..facts });
        facts
    })
}

/// Counts a panic.
pub(crate) fn record_panic() {
    critical_section::with(|cs| {
        let facts = load(cs);
        store(cs, BootFacts { panics: facts.panics.saturating_add(1), panicked: true, ..facts });
    });
}

/// What the last [`store`] left, or zeros after a power-on.
fn load(_: CriticalSection) -> BootFacts {
    let first = RETAINED.0.get().cast::<u32>();
    // SAFETY: within the array, and in a critical section. The RAM holds what the last run or the power-on left
    // there; volatile, so that the compiler does not take it for uninitialised.
    let words: [u32; WORDS] = core::array::from_fn(|i| unsafe { first.add(i).read_volatile() });
    let [magic, boots, panics, panicked, check] = words;
    if magic == MAGIC && check == check_of([magic, boots, panics, panicked]) {
        BootFacts { boots, panics, panicked: panicked != 0 }
    } else {
        BootFacts { boots: 0, panics: 0, panicked: false }
    }
}

fn store(_: CriticalSection, facts: BootFacts) {
    let first = RETAINED.0.get().cast::<u32>();
    let [magic, boots, panics, panicked] = [MAGIC, facts.boots, facts.panics, u32::from(facts.panicked)];
    let words = [magic, boots, panics, panicked, check_of([magic, boots, panics, panicked])];
    for (i, word) in words.into_iter().enumerate() {
        // SAFETY: within the array, and in a critical section; volatile, since only the next run reads it.
        unsafe { first.add(i).write_volatile(word) };
    }
}

/// FNV-1a.
fn check_of(words: [u32; WORDS - 1]) -> u32 {
    let bytes = words.into_iter().flat_map(u32::to_le_bytes);
    bytes.fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
