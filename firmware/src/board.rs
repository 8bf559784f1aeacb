//! Who the board is: what its links share.

use crate::clock::UtcClock;
use shared::limits::BOARD_ID_BYTES_MAX;

pub use shared::message::ResetReason;

/// What the board package knows and the library does not.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The kind of board, such as `mps2-an386`.
    pub kind: &'static str,
    /// The chip's own id.
    pub id: heapless::Vec<u8, BOARD_ID_BYTES_MAX>,
    /// Random number of this boot; 0 where there is no source of randomness, then the first bridge gives one.
    pub epoch: u64,
    /// How often the board has started.
    pub boot_count: u32,
    /// How often the firmware has panicked.
    pub panic_count: u32,
    /// Why the board started last.
    pub reset_reason: ResetReason,
    /// Measures the stack.
    pub stack: fn() -> StackUse,
}

/// How much stack there is and was used at most; 0 where it is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackUse {
    /// The most that was ever used.
    pub bytes_used_max: u32,
    /// All there is.
    pub bytes: u32,
}

/// The board as all its links see it. They run on one executor and share it in a `RefCell`.
#[derive(Debug)]
pub struct Board {
    pub(crate) facts: Facts,
    pub(crate) clock: UtcClock,
}

impl Board {
    /// A board that has just started.
    pub fn new(facts: Facts) -> Self {
        Self { facts, clock: UtcClock::default() }
    }
}
