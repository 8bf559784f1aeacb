//! SQL beyond the boards' dialect, asked of many boards: what the bridge answers is what SQLite answers over the rows of all
//! of them; who is missing is named; and no statement does more than read.

#[path = "beyond/answers.rs"]
mod answers;
#[path = "beyond/hostile.rs"]
mod hostile;
#[path = "beyond/oracle.rs"]
mod oracle;

use picolake_tests::field;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A program runs a few statements at once. A test that waited for another's, in virtual time, would see its own time limit
/// pass at once: so one goes after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_virtual_time<T>(test: impl Future<Output = T>) -> T {
    let _alone = alone();
    field::in_virtual_time(test)
}
