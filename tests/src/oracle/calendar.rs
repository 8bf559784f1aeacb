//! The calendar by counting months one after the other: slow, plain, and not the engine's.

use shared::sql::tree::Unit;

const DAY_US: i64 = 86_400_000_000;

/// How long a unit is that is always as long.
pub(super) fn unit_us(unit: Unit) -> Option<i64> {
    Some(match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1_000,
        Unit::Second => 1_000_000,
        Unit::Minute => 60 * 1_000_000,
        Unit::Hour => 3_600 * 1_000_000,
        Unit::Day => DAY_US,
        Unit::Week => 7 * DAY_US,
        Unit::Month | Unit::Year => return None,
    })
}

/// How many months a unit has.
pub(super) fn unit_months(unit: Unit) -> i64 {
    if unit == Unit::Year { 12 } else { 1 }
}

/// A moment as the month since 1970-01 that it is in, and how long after the month's beginning it is.
fn month_of(us: i64) -> (i64, i64) {
    let (mut month, mut start) = (0, 0);
    while us >= start + days_of(month) * DAY_US {
        start += days_of(month) * DAY_US;
        month += 1;
    }
    while us < start {
        month -= 1;
        start -= days_of(month) * DAY_US;
    }
    (month, us - start)
}

/// When a month since 1970-01 begins.
fn start_of(month: i64) -> i64 {
    let days: i64 =
        if month >= 0 { (0..month).map(days_of).sum() } else { -(month..0).map(days_of).sum::<i64>() };
    days * DAY_US
}

fn days_of(month: i64) -> i64 {
    let year = 1970 + month.div_euclid(12);
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month.rem_euclid(12) as usize]
}

/// So many months later; a day that the month does not have becomes its last.
pub(super) fn months_later(us: i64, months: i64) -> i64 {
    let (month, since) = month_of(us);
    let (day, of_day) = (since / DAY_US, since % DAY_US);
    let day = day.min(days_of(month + months) - 1);
    start_of(month + months) + day * DAY_US + of_day
}

/// The beginning of the bucket of so many months, counted from 1970-01.
pub(super) fn months_bucket(us: i64, months: i64) -> i64 {
    let (month, _) = month_of(us);
    start_of(month - month.rem_euclid(months))
}

/// So many units later.
pub(super) fn later(us: i64, count: i64, unit: Unit) -> i64 {
    match unit_us(unit) {
        Some(unit_us) => us + count * unit_us,
        None => months_later(us, count * unit_months(unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::time::parse_timestamp;

    #[test]
    fn months_are_as_long_as_they_are() {
        let at = |text| parse_timestamp(text).expect("a moment");
        assert_eq!(months_later(at("2024-03-31 12:00:00"), -1), at("2024-02-29 12:00:00"));
        assert_eq!(months_later(at("2024-02-29"), 12), at("2025-02-28"));
        assert_eq!(months_later(at("1969-12-31 23:59:59"), 2), at("1970-02-28 23:59:59"));
        assert_eq!(months_bucket(at("2026-11-18"), 3), at("2026-10-01"));
        assert_eq!(months_bucket(at("1969-11-18"), 12), at("1969-01-01"));
    }
}
