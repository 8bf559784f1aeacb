//! What is known of UTC in one epoch of a board: turns time since boot into dates, on the board and in an archive.

use crate::limits::{CLOCK_SEGMENTS_MAX, CLOCK_STEP_US_MIN};
use serde::{Deserialize, Serialize};

/// What the board knows of UTC: from which time since boot on it differs by how much.
///
/// ```text
///   uptime  0 ─────────────── 20 s ───────────────────────▶       20 s: told that it is 5 s later than was thought
///   offset  │ the first told  │ the first + 5 s                   rows before 20 s keep the dates they had
/// ```
///
/// Dates never run back. A row that was read once reads with the same date until the clock has stepped more than
/// [`CLOCK_SEGMENTS_MAX`] times: then the oldest two steps become one, and the rows before the second of them move to
/// its dates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtcClock {
    /// In the order of their beginnings; the first holds from boot on, the offsets rise.
    segments: heapless::Vec<Segment, CLOCK_SEGMENTS_MAX>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Segment {
    begin_us: u64,
    offset_us: i64,
}

impl UtcClock {
    /// It is now `utc_us`. The first time dates everything of this boot, also what was before. Later a step forward
    /// holds from now on; a difference of less than [`CLOCK_STEP_US_MIN`] is near enough and changes nothing. False for
    /// a step back, which is not taken.
    pub fn set(&mut self, uptime_us: u64, utc_us: i64) -> bool {
        let offset_us = utc_us.saturating_sub_unsigned(uptime_us);
        let Some(last) = self.segments.last() else {
            // There is room for the first.
            let _ = self.segments.push(Segment { begin_us: 0, offset_us });
            return true;
        };
        let step_us = offset_us.saturating_sub(last.offset_us);
        if step_us <= -CLOCK_STEP_US_MIN || uptime_us < last.begin_us {
            return false;
        }
        if step_us < CLOCK_STEP_US_MIN {
            return true;
        }
        if self.segments.is_full() {
            // The oldest rows are the first to be overwritten: the oldest two become one.
            self.segments.remove(0);
            self.segments[0].begin_us = 0;
        }
        let _ = self.segments.push(Segment { begin_us: uptime_us, offset_us });
        true
    }

    /// Whether it is one that [`set`](Self::set) can have made: what is asked of a clock that came over a link.
    pub fn is_sound(&self) -> bool {
        let rises =
            |pair: &[Segment]| pair[0].begin_us <= pair[1].begin_us && pair[0].offset_us < pair[1].offset_us;
        self.segments.first().is_none_or(|first| first.begin_us == 0) && self.segments.windows(2).all(rises)
    }

    /// Whether anybody has told the time.
    pub fn is_set(&self) -> bool {
        !self.segments.is_empty()
    }

    /// The date of a row that was made at a time since boot. While nobody has told the time, boot is 1970-01-01.
    pub fn date_us(&self, uptime_us: u64) -> i64 {
        self.utc_us(uptime_us).unwrap_or(0_i64.saturating_add_unsigned(uptime_us))
    }

    /// UTC at a time since boot; none while nobody has told it.
    pub fn utc_us(&self, uptime_us: u64) -> Option<i64> {
        let segment = self.segments.iter().rev().find(|segment| segment.begin_us <= uptime_us)?;
        Some(segment.offset_us.saturating_add_unsigned(uptime_us))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    const S: i64 = 1_000_000;
    const STEP: u64 = CLOCK_STEP_US_MIN as u64;

    #[test]
    fn the_first_time_dates_what_was_before() {
        let mut clock = UtcClock::default();
        assert_eq!(clock.utc_us(5), None);
        assert!(clock.set(10, 1_000));
        assert_eq!(clock.utc_us(0), Some(990));
        assert_eq!(clock.utc_us(20), Some(1_010));
    }

    #[test]
    fn small_differences_and_steps_back_are_not_taken() {
        let mut clock = UtcClock::default();
        clock.set(0, 100 * S);
        let before = clock.clone();
        // Near enough on either side, and so nothing that anybody has to know of.
        assert!(clock.set(10, 100 * S + 10 + CLOCK_STEP_US_MIN - 1));
        assert!(clock.set(10, 100 * S + 10 - CLOCK_STEP_US_MIN + 1));
        assert_eq!(clock, before);
        assert!(!clock.set(10, 100 * S + 10 - CLOCK_STEP_US_MIN));
        assert!(!clock.set(20, 50 * S));
        assert!(!clock.set(u64::MAX, i64::MIN));
        assert_eq!(clock, before);
    }

    #[test]
    fn a_step_forward_holds_from_then_on() {
        let mut clock = UtcClock::default();
        clock.set(0, 100 * S);
        assert!(clock.set(20 * STEP, 130 * S));
        assert_eq!(clock.utc_us(20 * STEP - 1), Some(120 * S - 1));
        assert_eq!(clock.utc_us(20 * STEP), Some(130 * S));
        assert!(!clock.set(10 * STEP, 150 * S)); // before the last step: nobody's clock does that
        assert_eq!(clock.utc_us(15 * STEP), Some(115 * S));
        clock.set(30 * STEP, i64::MAX);
        assert_eq!(clock.utc_us(u64::MAX), Some(i64::MAX));
    }

    #[test]
    fn dates_never_run_back_however_often_it_steps() {
        let mut clock = UtcClock::default();
        for step in 0..3 * CLOCK_SEGMENTS_MAX as u64 {
            clock.set(10 * step * STEP, (1_000 + 13 * step as i64) * S);
            let dates: std::vec::Vec<_> = (0..=10 * step + 9).map(|at| clock.utc_us(at * STEP)).collect();
            assert!(dates.is_sorted(), "{dates:?}");
            assert_eq!(clock.utc_us(10 * step * STEP), Some((1_000 + 13 * step as i64) * S));
        }
        assert_eq!(clock.segments.len(), CLOCK_SEGMENTS_MAX);
        assert!(clock.is_sound() && UtcClock::default().is_sound());
    }

    #[test]
    fn a_clock_that_nobody_set_so_is_not_sound() {
        let of = |segments: &[(u64, i64)]| UtcClock {
            segments: segments.iter().map(|&(begin_us, offset_us)| Segment { begin_us, offset_us }).collect(),
        };
        assert!(of(&[(0, 5), (9, 6)]).is_sound());
        assert!(!of(&[(1, 5)]).is_sound());
        assert!(!of(&[(0, 5), (9, 5)]).is_sound());
        assert!(!of(&[(0, 5), (9, 6), (8, 7)]).is_sound());
    }
}
