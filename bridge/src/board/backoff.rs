//! How long to wait before a link is tried again: twice as long each time, never all boards at once.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const LAST: Duration = Duration::from_secs(15);

/// Waits that grow, with jitter from a seed.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    seed: u64,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self { next: FIRST, seed }
    }

    /// The next wait: between three and five quarters of what is due.
    pub(super) fn wait(&mut self) -> Duration {
        self.seed = shared::link_test::mix(self.seed);
        let quarter = self.next / 4;
        let jitter = quarter.mul_f64((self.seed >> 11) as f64 / (1_u64 << 53) as f64 * 2.0);
        let wait = self.next - quarter + jitter;
        self.next = (self.next * 2).min(LAST);
        wait
    }

    /// It worked: begin anew.
    pub(super) fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_with_a_quarter_of_jitter() {
        let mut backoff = Backoff::new(7);
        let mut due = FIRST;
        for _ in 0..20 {
            let wait = backoff.wait();
            assert!(wait >= due * 3 / 4 && wait <= due * 5 / 4, "{wait:?} for {due:?}");
            due = (due * 2).min(LAST);
        }
        backoff.reset();
        assert!(backoff.wait() <= FIRST * 5 / 4);
    }
}
