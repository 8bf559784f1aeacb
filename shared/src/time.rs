//! The calendar: microseconds since 1970-01-01 UTC ↔ RFC 3339 text. No clock is read here.

use core::fmt;

/// Microseconds in a second.
pub const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;
/// 0001-01-01T00:00:00Z, the first moment that has a text.
pub const UTC_US_MIN: i64 = -62_135_596_800 * SECOND_US;
/// 9999-12-31T23:59:59.999999Z, the last moment that has a text.
pub const UTC_US_MAX: i64 = 253_402_300_800 * SECOND_US - 1;

/// A moment that prints as RFC 3339 in UTC, with a fraction only where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc(pub i64);

impl Utc {
    /// Writes it in one piece: every row has a moment, and the general way to write six numbers stood out in the profile
    /// of a page. Once in the image, whatever it writes to.
    pub(crate) fn write(self, out: &mut dyn fmt::Write) -> fmt::Result {
        let (days, of_day) = (self.0.div_euclid(DAY_US), self.0.rem_euclid(DAY_US));
        let (year, month, day) = civil_from_days(days);
        let (seconds, mut fraction) = ((of_day / SECOND_US) as u32, (of_day % SECOND_US) as u32);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let mut put = |last: usize, width: usize, number: u32| {
            let mut rest = number;
            for at in (last + 1 - width..=last).rev() {
                text[at] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        };
        put(6, 2, month as u32);
        put(9, 2, day as u32);
        put(12, 2, seconds / 3600);
        put(15, 2, seconds / 60 % 60);
        put(18, 2, seconds % 60);
        let mut end = 19; // where the Z stands without a fraction
        if fraction != 0 {
            let mut width = 6;
            while fraction.is_multiple_of(10) {
                (fraction, width) = (fraction / 10, width - 1);
            }
            put(19 + width, width, fraction);
            end = 20 + width;
        }
        let begin = match u32::try_from(year) {
            Ok(year @ 0..=9999) => {
                put(3, 4, year);
                0
            }
            _ => {
                write!(out, "{year:04}")?; // beyond what RFC 3339 has a text for
                4
            }
        };
        text[end] = b'Z';
        out.write_str(core::str::from_utf8(&text[begin..=end]).unwrap_or_default())
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

/// Reads an RFC 3339 moment: `2026-11-18T05:00:00Z`, with a fraction (digits past the sixth are cut), a space
/// or lower case for `T`, and an offset for `Z`. On an error: the position of the first byte that does not fit.
pub fn parse_rfc3339(text: &str) -> Result<i64, usize> {
    parse(text, false)
}

/// Reads what a person may write for a moment: [RFC 3339](parse_rfc3339), the same without an offset (UTC), or a
/// day alone (its first moment in UTC). On an error: the position of the first byte that does not fit.
pub fn parse_timestamp(text: &str) -> Result<i64, usize> {
    parse(text, true)
}

/// `is_lenient`: the offset, or all after the day, may be missing.
fn parse(text: &str, is_lenient: bool) -> Result<i64, usize> {
    let bytes = text.as_bytes();
    let at = |index: usize, wanted: &[u8]| {
        let found = bytes.get(index).is_some_and(|byte| wanted.contains(byte));
        if found { Ok(()) } else { Err(index) }
    };
    let year = digits(bytes, 0, 4, 1, 9999)?;
    at(4, b"-")?;
    let month = digits(bytes, 5, 2, 1, 12)?;
    at(7, b"-")?;
    let day = digits(bytes, 8, 2, 1, days_in_month(year, month))?;
    if is_lenient && bytes.len() == 10 {
        return Ok(days_from_civil(year, month, day) * DAY_US);
    }
    at(10, b"Tt ")?;
    let hour = digits(bytes, 11, 2, 0, 23)?;
    at(13, b":")?;
    let minute = digits(bytes, 14, 2, 0, 59)?;
    at(16, b":")?;
    let second = digits(bytes, 17, 2, 0, 59)?;

    let mut index = 19;
    let mut fraction = 0;
    if bytes.get(index) == Some(&b'.') {
        index += 1;
        let mut unit = SECOND_US / 10;
        digits(bytes, index, 1, 0, 9)?;
        while let Some(digit @ b'0'..=b'9') = bytes.get(index) {
            fraction += i64::from(digit - b'0') * unit;
            unit /= 10;
            index += 1;
        }
    }
    let mut offset_minutes = 0;
    match bytes.get(index) {
        Some(b'Z' | b'z') => index += 1,
        Some(sign @ (b'+' | b'-')) => {
            let hours = digits(bytes, index + 1, 2, 0, 23)?;
            at(index + 3, b":")?;
            let minutes = digits(bytes, index + 4, 2, 0, 59)?;
            offset_minutes = (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 };
            index += 6;
        }
        None if is_lenient => {}
        _ => return Err(index),
    }
    if index != bytes.len() {
        return Err(index);
    }
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let utc_us = (seconds - offset_minutes * 60) * SECOND_US + fraction;
    if (UTC_US_MIN..=UTC_US_MAX).contains(&utc_us) { Ok(utc_us) } else { Err(0) }
}

/// `count` digits at `start` whose number lies in `low..=high`; on an error, where.
fn digits(bytes: &[u8], start: usize, count: usize, low: i64, high: i64) -> Result<i64, usize> {
    let mut number = 0;
    for index in start..start + count {
        match bytes.get(index) {
            Some(digit @ b'0'..=b'9') => number = number * 10 + i64::from(digit - b'0'),
            _ => return Err(index),
        }
    }
    if (low..=high).contains(&number) { Ok(number) } else { Err(start) }
}

/// Days since 1970-01-01 of a day in the proleptic Gregorian calendar (years begin in March inside).
pub const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
pub const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// Days of a month.
pub const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_moment_has_a_text() {
        for (us, text) in [
            (-1, "1969-12-31T23:59:59.999999Z"),
            (10, "1970-01-01T00:00:00.00001Z"),
            (100_000, "1970-01-01T00:00:00.1Z"),
            (UTC_US_MIN, "0001-01-01T00:00:00Z"),
            (UTC_US_MAX, "9999-12-31T23:59:59.999999Z"),
            (i64::MAX, "294247-01-10T04:00:54.775807Z"),
            (i64::MIN, "-290308-12-21T19:59:05.224192Z"),
        ] {
            assert_eq!(Utc(us).to_string(), text);
        }
    }

    #[test]
    fn moments_read_back_as_they_print() {
        for text in [
            "2026-11-18T05:00:00Z",
            "1970-01-01T00:00:00.000001Z",
            "2024-02-29T23:59:59.25Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999Z",
        ] {
            assert_eq!(Utc(parse_rfc3339(text).unwrap()).to_string(), text);
        }
        assert_eq!(parse_rfc3339("1970-01-01 01:00:00.1234567+01:00"), Ok(123_456));
        assert_eq!(parse_rfc3339("1969-12-31t23:30:00-00:30"), Ok(0));
    }

    #[test]
    fn a_fault_is_found_where_it_is() {
        assert_eq!(parse_rfc3339("2026-13-01T00:00:00Z"), Err(5));
        assert_eq!(parse_rfc3339("2023-02-29T00:00:00Z"), Err(8));
        assert_eq!(parse_rfc3339("2026-11-18T05:00:00"), Err(19));
        assert_eq!(parse_rfc3339("2026-11-18T05:00:00Zulu"), Err(20));
        assert_eq!(parse_rfc3339("2026-11-18T05:00:00.Z"), Err(20));
        assert_eq!(parse_rfc3339("ünfug"), Err(0));
    }

    #[test]
    fn a_person_may_leave_out_the_offset_or_the_time_of_day() {
        assert_eq!(parse_timestamp("1970-01-02"), Ok(DAY_US));
        assert_eq!(parse_timestamp("1970-01-01 00:00:01"), Ok(SECOND_US));
        assert_eq!(parse_timestamp("1970-01-01T00:00:01.5"), Ok(SECOND_US * 3 / 2));
        assert_eq!(parse_timestamp("1970-01-01T01:00:00+01:00"), Ok(0));
        assert_eq!(parse_timestamp("2023-02-29"), Err(8));
        assert_eq!(parse_timestamp("2023-02-2"), Err(9));
        assert_eq!(parse_timestamp("2023-02-20 "), Err(11));
        assert_eq!(parse_timestamp("2023-02-20Z"), Err(10));
        assert_eq!(parse_timestamp("2023-02-20 05:00"), Err(16));
    }

    #[test]
    fn every_day_of_800_years_is_its_own_inverse() {
        for days in -146_097..=146_097 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }
}
