//! Time since boot. What the board knows of UTC is in `shared`: an archive dates the same rows.

use core::future::Future;

pub use shared::clock::UtcClock;

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
