//! Choices that are the same for the same seed.

use shared::link_test::mix;

/// A row of choices.
#[derive(Clone, Debug)]
pub struct Dice {
    number: u64,
}

impl Dice {
    /// The choices of a seed.
    pub fn new(seed: u64) -> Self {
        Self { number: mix(seed) }
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.number = self.number.wrapping_add(1);
        mix(self.number)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// A number from `low` to `high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low) as u64 + 1) as i64
    }

    /// True in so many of a hundred.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}
