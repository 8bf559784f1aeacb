//! Units of time: where a bucket begins, and what lies so many units away.

use crate::{
    sql::tree::Unit,
    time::{UTC_US_MAX, UTC_US_MIN, civil_from_days, days_from_civil, days_in_month},
};

const DAY_US: i64 = 86_400_000_000;
/// 1969-12-29, a Monday.
const MONDAY_US: i64 = -3 * DAY_US;
const MONTHS_PER_YEAR: i64 = 12;

/// How long a unit is: always the same time, or so many months.
enum Length {
    Us(i64),
    Months(i64),
}

fn length(unit: Unit) -> Length {
    match unit {
        Unit::Microsecond => Length::Us(1),
        Unit::Millisecond => Length::Us(1_000),
        Unit::Second => Length::Us(1_000_000),
        Unit::Minute => Length::Us(60_000_000),
        Unit::Hour => Length::Us(3_600_000_000),
        Unit::Day => Length::Us(DAY_US),
        Unit::Week => Length::Us(7 * DAY_US),
        Unit::Month => Length::Months(1),
        Unit::Year => Length::Months(MONTHS_PER_YEAR),
    }
}

/// The beginning of the bucket of `count` units that holds `us`. Buckets are counted from 1970-01-01, weeks from
/// the Monday before it. None outside the calendar.
pub fn bucket_start(us: i64, unit: Unit, count: u16) -> Option<i64> {
    let count = i64::from(count.max(1));
    match length(unit) {
        Length::Us(unit_us) => {
            let origin = if unit == Unit::Week { MONDAY_US } else { 0 };
            let since = us.checked_sub(origin)?;
            since.div_euclid(unit_us * count).checked_mul(unit_us * count)?.checked_add(origin)
        }
        Length::Months(months) if (UTC_US_MIN..=UTC_US_MAX).contains(&us) => {
            let (year, month, _) = civil_from_days(us.div_euclid(DAY_US));
            let since = (year - 1970) * MONTHS_PER_YEAR + month - 1;
            Some(month_start(since.div_euclid(months * count) * (months * count)))
        }
        Length::Months(_) => None,
    }
}

/// So many units later, or earlier if `count` is negative; none outside the calendar. A day that the month does
/// not have becomes its last.
pub fn moved(us: i64, unit: Unit, count: i64) -> Option<i64> {
    let moved = match length(unit) {
        Length::Us(unit_us) => us.checked_add(unit_us.checked_mul(count)?)?,
        Length::Months(months) => {
            let (year, month, day) = civil_from_days(us.div_euclid(DAY_US));
            let since = (year * MONTHS_PER_YEAR + month - 1).checked_add(months.checked_mul(count)?)?;
            let (year, month) = (since.div_euclid(MONTHS_PER_YEAR), since.rem_euclid(MONTHS_PER_YEAR) + 1);
            if !(1..=9999).contains(&year) {
                return None;
            }
            let day = day.min(days_in_month(year, month));
            days_from_civil(year, month, day) * DAY_US + us.rem_euclid(DAY_US)
        }
    };
    (UTC_US_MIN..=UTC_US_MAX).contains(&moved).then_some(moved)
}

/// The first moment of the month that is so many months after 1970-01.
fn month_start(since: i64) -> i64 {
    let (year, month) = (1970 + since.div_euclid(MONTHS_PER_YEAR), since.rem_euclid(MONTHS_PER_YEAR) + 1);
    days_from_civil(year, month, 1) * DAY_US
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::time::{Utc, parse_rfc3339};
    use std::string::{String, ToString};

    fn start(text: &str, unit: Unit, count: u16) -> String {
        Utc(bucket_start(parse_rfc3339(text).unwrap(), unit, count).unwrap()).to_string()
    }

    fn later(text: &str, unit: Unit, count: i64) -> String {
        Utc(moved(parse_rfc3339(text).unwrap(), unit, count).unwrap()).to_string()
    }

    #[test]
    fn buckets_begin_where_the_calendar_says() {
        let moment = "2026-11-18T05:17:31.25Z"; // a Wednesday
        assert_eq!(start(moment, Unit::Second, 10), "2026-11-18T05:17:30Z");
        assert_eq!(start(moment, Unit::Minute, 5), "2026-11-18T05:15:00Z");
        assert_eq!(start(moment, Unit::Hour, 1), "2026-11-18T05:00:00Z");
        assert_eq!(start(moment, Unit::Week, 1), "2026-11-16T00:00:00Z");
        assert_eq!(start(moment, Unit::Month, 3), "2026-10-01T00:00:00Z");
        assert_eq!(start(moment, Unit::Year, 10), "2020-01-01T00:00:00Z");
        assert_eq!(start("1969-12-31T23:59:59.999999Z", Unit::Minute, 1), "1969-12-31T23:59:00Z");
        assert_eq!(start("2026-11-16T00:00:00Z", Unit::Week, 1), "2026-11-16T00:00:00Z");
    }

    #[test]
    fn a_month_away_is_the_same_day_or_the_last() {
        assert_eq!(later("2024-03-31T12:00:00Z", Unit::Month, -1), "2024-02-29T12:00:00Z");
        assert_eq!(later("2024-02-29T12:00:00Z", Unit::Year, 1), "2025-02-28T12:00:00Z");
        assert_eq!(later("2026-11-18T05:00:00Z", Unit::Week, -2), "2026-11-04T05:00:00Z");
        assert_eq!(moved(0, Unit::Year, 10_000), None);
        assert_eq!(moved(0, Unit::Week, i64::MAX), None);
    }
}
