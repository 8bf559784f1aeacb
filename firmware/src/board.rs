//! Who the board is and what it holds: what its links share.

use crate::{
    clock::UtcClock,
    queries::{Queries, Surroundings},
    sample::Schedule,
    store::Store,
};
use core::fmt::Write as _;
use shared::{
    engine::Query,
    limits::{BOARD_ID_BYTES_MAX, QUERIES_MAX},
    page::PageBuffer,
};

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

/// The memory in which a board runs its queries. Large: it stands in static memory.
pub type QueryMemory = [Query; QUERIES_MAX];

/// Memory for queries, none of which runs.
pub const fn query_memory() -> QueryMemory {
    [const { Query::new() }; QUERIES_MAX]
}

/// The board as all its links see it. They run on one executor and share it in a `RefCell`.
#[derive(Debug)]
pub struct Board<'m> {
    pub(crate) facts: Facts,
    pub(crate) clock: UtcClock,
    pub(crate) store: Store<'m>,
    pub(crate) schedule: Schedule<'m>,
    pub(crate) queries: Queries<'m>,
    /// The id in hexadecimal, as rows tell it.
    id_text: heapless::String<{ 2 * BOARD_ID_BYTES_MAX }>,
}

impl<'m> Board<'m> {
    /// A board that has just started, with the tables of `store` and the samplers of `schedule`.
    pub fn new(facts: Facts, store: Store<'m>, schedule: Schedule<'m>, queries: &'m mut QueryMemory) -> Self {
        let mut id_text = heapless::String::new();
        for byte in &facts.id {
            let _ = write!(id_text, "{byte:02x}"); // there is room for every byte
        }
        Self { facts, clock: UtcClock::default(), store, schedule, queries: Queries::new(queries), id_text }
    }

    /// A board that has just started, without tables: they can be added where it stands, for a board is large.
    pub fn empty(facts: Facts, pages: &'m mut [PageBuffer], queries: &'m mut QueryMemory) -> Self {
        Self::new(facts, Store::empty(pages), Schedule::default(), queries)
    }

    /// Makes the rows that are due, and says when the next one is.
    pub fn sample(&mut self, uptime_us: u64) -> Option<u64> {
        self.schedule.run(&mut self.store, uptime_us);
        self.schedule.due_us()
    }

    /// The rows of all tables.
    pub fn store_mut(&mut self) -> &mut Store<'m> {
        &mut self.store
    }

    /// The queries, and the rest of the board as they see it.
    pub(crate) fn queries_and_rest(&mut self, uptime_us: u64) -> (&mut Queries<'m>, Surroundings<'_>) {
        let Self { facts, clock, store, queries, id_text, .. } = self;
        (queries, Surroundings { store, clock, board_id: id_text, epoch: facts.epoch, uptime_us })
    }
}
