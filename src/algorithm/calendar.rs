//! Windows of the calendar: days, weeks from Monday, and months, at a fixed offset from UTC.
//!
//! Days are counted from 1 March of the year 0 of the Gregorian calendar. So a leap day is the last of its year, and no
//! number is negative. An offset is fixed: there is no daylight saving time, and every day has 24 hours.

use core::fmt::{self, Display, Formatter};

use crate::policy::schema::{CALENDAR_SCALES, MAX_UTC_OFFSET};

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;
/// The number of the day on which time begins: 1 January 1970.
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
    /// All units, in the order of [`CALENDAR_SCALES`].
    pub(crate) const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// Returns the unit of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let position = CALENDAR_SCALES.iter().position(|(known, _)| *known == name)?;
        Self::ALL.get(position).copied()
    }

    /// Returns the unit's name, as a policy is written with it.
    pub(crate) fn name(self) -> &'static str {
        CALENDAR_SCALES[self as usize].0
    }

    /// Returns the most days that it has.
    fn most_days(self) -> u64 {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
        }
    }
}

/// A unit of the calendar where clocks are ahead of UTC by an offset in minutes, or behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CalendarScale {
    pub(crate) unit: Calendar,
    pub(crate) offset: i16,
}

impl CalendarScale {
    /// Returns the length of the longest window, in milliseconds.
    pub(crate) fn longest(self) -> u64 {
        self.unit.most_days() * DAY
    }

    /// Returns when the window around a time begins. The first one begins with time itself.
    pub(crate) fn start_of(self, time: u64) -> i64 {
        self.edge(time, 0)
    }

    /// Returns the length of the window that begins at a time.
    pub(crate) fn length(self, start: i64) -> u64 {
        let start = start.max(0);
        (self.edge(start as u64, 1) - start) as u64
    }

    /// Returns when the window around a time begins, or so many windows of that length later.
    #[cold]
    #[inline(never)]
    fn edge(self, time: u64, later: u64) -> i64 {
        // Local time is this much ahead of `time`.
        let ahead = (EPOCH * DAY).wrapping_add_signed(i64::from(self.offset) * MINUTE as i64);
        let day = (time + ahead) / DAY;
        let (first, days) = match self.unit {
            Calendar::Day => (day, 1),
            // The first day of all was a Wednesday.
            Calendar::Week => (day - (day + 2) % 7, 7),
            Calendar::Month => month_of(day),
        };
        ((first + later * days) * DAY).saturating_sub(ahead) as i64
    }
}

/// Returns the first day of a day's month, and how many days that month has.
fn month_of(day: u64) -> (u64, u64) {
    // 4,800 months have 146,097 days. By that average it is the right month, or one next to it.
    let mut month = day * 4_800 / 146_097;
    while first_day(month) > day {
        month -= 1;
    }
    while first_day(month + 1) <= day {
        month += 1;
    }
    (first_day(month), first_day(month + 1) - first_day(month))
}

/// Returns the first day of the month after so many.
fn first_day(months: u64) -> u64 {
    let (years, months) = (months / 12, months % 12);
    // From March on five months have 153 days, long and short in turn.
    365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5
}

/// Parses an offset from UTC as ISO 8601 writes it, in minutes: `"Z"`, `"+02:00"`. `None` if it is none, or too large.
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
        _ if i64::from(offset) > MAX_UTC_OFFSET => None,
        b'+' => Some(offset),
        b'-' => Some(-offset),
        _ => None,
    }
}

/// An offset in minutes as [`parse_offset`] takes it.
pub(crate) struct WrittenOffset(pub(crate) i16);

impl Display for WrittenOffset {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (sign, minutes) = (if self.0 < 0 { '-' } else { '+' }, self.0.unsigned_abs());
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}
