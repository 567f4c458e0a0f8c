//! Windows of the calendar: days, weeks from Monday, and months, at a fixed offset from UTC.
//!
//! Days are counted from 1 March of the year 0 of the Gregorian calendar. So a leap day is the last of its year, and no
//! number is negative. An offset is fixed: there is no daylight saving time, and every day has 24 hours.

use core::fmt::{self, Display, Formatter};

use crate::policy::schema::{CALENDAR_SCALES, MAX_UTC_OFFSET};

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;
/// The number of 1 January 1970, day 0 of Unix time.
const EPOCH: u64 = 719_468;

/// A unit of the calendar, for [`Policy::calendar`](crate::Policy::calendar).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Calendar {
    /// From midnight to midnight.
    Day,
    /// From Monday to Sunday.
    Week,
    /// From the first day of a month to its last.
    Month,
}

impl Calendar {
    const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// Returns the unit of that name; `None` if there is none.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// Returns the unit's name in a policy.
    pub(crate) fn name(self) -> &'static str {
        CALENDAR_SCALES[self as usize].0
    }
}

/// A unit of the calendar at an offset from UTC, as one number: the unit's in [`CALENDAR_SCALES`] minus the offset in
/// minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CalendarScale(i32);

/// The difference between the numbers of two units. Half of it is more than any offset.
const APART: i32 = 10_000;

impl CalendarScale {
    pub(crate) fn new(unit: Calendar, offset: i16) -> Self {
        Self(-APART * (unit as i32 + 1) - i32::from(offset))
    }

    /// Returns whether a number is that of a unit at some offset.
    pub(crate) fn is_valid(number: i64) -> bool {
        CALENDAR_SCALES.iter().any(|(_, unit)| unit.wrapping_sub(number).unsigned_abs() <= MAX_UTC_OFFSET)
    }

    /// Returns the scale of a valid number.
    pub(crate) fn of_valid(number: i64) -> Self {
        Self(number as i32)
    }

    pub(crate) fn number(self) -> i32 {
        self.0
    }

    pub(crate) fn unit(self) -> Calendar {
        match self.position() {
            1 => Calendar::Day,
            2 => Calendar::Week,
            _ => Calendar::Month,
        }
    }

    /// Returns how many minutes local time is ahead of UTC.
    pub(crate) fn offset(self) -> i16 {
        (-self.0 - APART * self.position()) as i16
    }

    /// Returns the position of the unit in [`CALENDAR_SCALES`], counted from 1.
    fn position(self) -> i32 {
        (APART / 2 - self.0) / APART
    }

    /// Returns the length of the longest window, in milliseconds.
    pub(crate) fn longest(self) -> u64 {
        let days = match self.unit() {
            Calendar::Day => 1,
            Calendar::Week => 7,
            Calendar::Month => 31,
        };
        days * DAY
    }

    /// Returns the start of the window that contains `time`. The first window starts at 0.
    pub(crate) fn start_of(self, time: u64) -> i64 {
        self.edge(time, 0)
    }

    /// Returns the length of the window that starts at `start`.
    pub(crate) fn length(self, start: i64) -> u64 {
        let start = start.max(0);
        (self.edge(start as u64, 1) - start) as u64
    }

    /// Returns the start of the window that contains `time`, plus `later` times the length of that window.
    #[cold]
    #[inline(never)]
    fn edge(self, time: u64, later: u64) -> i64 {
        // Local time is this much ahead of `time`.
        let ahead = (EPOCH * DAY).wrapping_add_signed(i64::from(self.offset()) * MINUTE as i64);
        let day = (time + ahead) / DAY;
        let (first, days) = match self.unit() {
            Calendar::Day => (day, 1),
            // Day 0 is a Wednesday.
            Calendar::Week => (day - (day + 2) % 7, 7),
            Calendar::Month => month_of(day),
        };
        ((first + later * days) * DAY).saturating_sub(ahead) as i64
    }
}

/// Returns the first day of a day's month, and how many days that month has.
fn month_of(day: u64) -> (u64, u64) {
    // 4,800 months have 146,097 days. The average gives the right month or one next to it.
    let mut month = day * 4_800 / 146_097;
    while first_day(month) > day {
        month -= 1;
    }
    while first_day(month + 1) <= day {
        month += 1;
    }
    (first_day(month), first_day(month + 1) - first_day(month))
}

/// Returns the first day of a month, counted from March of the year 0.
fn first_day(months: u64) -> u64 {
    let (years, months) = (months / 12, months % 12);
    // From March on, every five months have 153 days: 31, 30, 31, 30, 31.
    365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5
}

/// Parses an offset from UTC in the format of ISO 8601 (`"Z"`, `"+02:00"`) into minutes; `None` if invalid or too
/// large.
pub(crate) fn parse_offset(text: &str) -> Option<i16> {
    if text == "Z" {
        return Some(0);
    }
    let &[sign, tens, ones, b':', ten_minutes @ b'0'..=b'5', minutes] = text.as_bytes() else { return None };
    let mut offset = 0;
    for (digit, weight) in [(tens, 600), (ones, 60), (ten_minutes, 10), (minutes, 1)] {
        if !digit.is_ascii_digit() {
            return None;
        }
        offset += i16::from(digit - b'0') * weight;
    }
    match sign {
        _ if offset as u64 > MAX_UTC_OFFSET => None,
        b'+' => Some(offset),
        b'-' => Some(-offset),
        _ => None,
    }
}

/// Displays an offset in minutes in the format that [`parse_offset`] reads.
pub(crate) struct WrittenOffset(pub(crate) i16);

impl Display for WrittenOffset {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (sign, minutes) = (if self.0 < 0 { '-' } else { '+' }, self.0.unsigned_abs());
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_schema() {
        for (unit, (name, number)) in Calendar::ALL.into_iter().zip(CALENDAR_SCALES) {
            assert_eq!((unit.name(), i64::from(CalendarScale::new(unit, 0).number())), (*name, *number));
        }
    }

    /// Miri is a thousand times slower, and looks at how values are computed, not at which.
    const STEP: usize = if cfg!(miri) { 97 } else { 1 };

    #[test]
    fn a_number_is_a_unit_at_an_offset_or_nothing() {
        let mut known = 0;
        for number in (-70_000..=70_000).step_by(STEP) {
            if CalendarScale::is_valid(number) {
                let scale = CalendarScale::of_valid(number);
                assert_eq!(CalendarScale::new(scale.unit(), scale.offset()), scale);
                known += 1;
            }
        }
        if STEP == 1 {
            assert_eq!(known, 3 * (2 * 840 + 1));
        }
        assert!(!CalendarScale::is_valid(i64::MIN) && !CalendarScale::is_valid(i64::MAX));
    }

    #[test]
    fn offsets_are_read_as_they_are_written() {
        for offset in (-840..=840).step_by(STEP) {
            assert_eq!(parse_offset(&WrittenOffset(offset).to_string()), Some(offset));
        }
        for text in ["", "+14:01", "+00:60", "+2:00", "+02:0a", "\u{2212}02:00", "+02:00 ", "z"] {
            assert_eq!(parse_offset(text), None, "{text}");
        }
    }
}
