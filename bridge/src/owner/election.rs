//! Who is the owner: whoever gets the lock. Everybody else finds the owner, or waits until there is one.

use super::{ELECTION_TIMEOUT, Guest, Lock, OwnerError, Place, Setup, guest::Approach, holder};
use std::time::Duration;
use tokio::time::Instant;

/// The pause between two looks, at first; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The pause, at last.
const PAUSE_MAX: Duration = Duration::from_millis(160);
/// A wait that is longer is told.
const PATIENCE: Duration = Duration::from_secs(2);

/// What this process is to a field.
#[derive(Debug)]
pub(crate) enum Elected {
    /// It has the lock: the links are its to open.
    Owner(Lock),
    /// Another has it; this is the way there.
    Guest(Guest),
}

/// Takes the lock or finds its owner. An owner that is between its lock and its socket, or about to end, is waited
/// for. `given` are options that the owner must have, too.
pub(crate) async fn elect(place: &Place, given: &Setup) -> Result<Elected, OwnerError> {
    let begun = Instant::now();
    let (mut pause, mut is_told) = (PAUSE_MIN, false);
    while begun.elapsed() < ELECTION_TIMEOUT {
        if let Some(lock) = Lock::try_take(place)? {
            return Ok(Elected::Owner(lock));
        }
        if let Approach::Greeted(guest) = Guest::approach(place, given).await? {
            return Ok(Elected::Guest(guest));
        }
        if begun.elapsed() > PATIENCE && !is_told {
            is_told = true;
            tracing::warn!(
                "{} has these boards and does not answer yet; waiting",
                super::process(holder(place))
            );
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    Err(OwnerError::Silent { pid: holder(place) })
}
