//! Time since boot, and the UTC that the bridge tells the board.

use core::future::Future;

/// Time since boot. Boards take [`EmbassyClock`]; the host's simulated boards take tokio's.
pub trait Clock {
    /// Microseconds since the board started; never runs back.
    fn uptime_us(&self) -> u64;

    /// Waits until that moment. Dropping it early is harmless.
    fn sleep_until_us(&self, uptime_us: u64) -> impl Future<Output = ()>;
}

/// The clock of `embassy-time`'s driver.
#[cfg(feature = "embassy-time")]
#[derive(Clone, Copy, Debug)]
pub struct EmbassyClock;

#[cfg(feature = "embassy-time")]
impl Clock for EmbassyClock {
    fn uptime_us(&self) -> u64 {
        embassy_time::Instant::now().as_micros()
    }

    async fn sleep_until_us(&self, uptime_us: u64) {
        embassy_time::Timer::at(embassy_time::Instant::from_micros(uptime_us)).await;
    }
}

/// What the board knows of UTC: the difference to its time since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtcClock {
    offset_us: Option<i64>,
}

impl UtcClock {
    /// It is now `utc_us`. Within a boot UTC never runs back: a time before the one already told is not taken,
    /// and the clock stands as it did.
    pub fn set(&mut self, uptime_us: u64, utc_us: i64) {
        let offset_us = utc_us.saturating_sub_unsigned(uptime_us);
        self.offset_us = Some(self.offset_us.map_or(offset_us, |before| before.max(offset_us)));
    }

    /// UTC at a time since boot; none while nobody has told it.
    pub fn utc_us(&self, uptime_us: u64) -> Option<i64> {
        self.offset_us.map(|offset_us| offset_us.saturating_add_unsigned(uptime_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_never_runs_back() {
        let mut clock = UtcClock::default();
        assert_eq!(clock.utc_us(5), None);
        clock.set(10, 1_000);
        assert_eq!(clock.utc_us(0), Some(990)); // dates what was before, too
        clock.set(20, 500);
        assert_eq!(clock.utc_us(20), Some(1_010));
        clock.set(30, 5_000);
        assert_eq!(clock.utc_us(40), Some(5_010));
        clock.set(u64::MAX, i64::MIN);
        assert_eq!(clock.utc_us(40), Some(5_010));
    }
}
