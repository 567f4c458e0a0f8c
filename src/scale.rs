//! The one number that a policy's `scale` or `per` is, wherever it is stored or only numbers cross.

use crate::algorithm::calendar::{Calendar, CalendarScale};
use crate::number::{MAX, in_range};
use crate::policy::schema::{CALENDAR_SCALES, FIX_WINDOW, MAX_UTC_OFFSET};

/// A `scale` or `per`: milliseconds from 1 to [`MAX`], or below 0 a unit of the calendar. That is the unit's number in
/// [`CALENDAR_SCALES`] less its offset from UTC in minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale(i64);

impl Scale {
    /// Returns the scale of a length of time, which is in range.
    pub(crate) fn of_time(milliseconds: u64) -> Self {
        Self(milliseconds.min(MAX) as i64)
    }

    /// Returns the scale that a number is to the algorithm at a position of the schema; `None` if it is none.
    pub(crate) fn from_number(number: i64, algorithm: usize) -> Option<Self> {
        let scale = Self(number);
        let is_valid = match number {
            ..0 => algorithm == FIX_WINDOW && scale.calendar().is_some(),
            0 => false,
            _ => in_range(number),
        };
        is_valid.then_some(scale)
    }

    /// Returns the number.
    pub(crate) fn number(self) -> i64 {
        self.0
    }

    /// Returns the unit of the calendar; `None` for a length of time.
    pub(crate) fn calendar(self) -> Option<CalendarScale> {
        for (&unit, &(_, number)) in Calendar::ALL.iter().zip(CALENDAR_SCALES) {
            let offset = number.wrapping_sub(self.0);
            if (-MAX_UTC_OFFSET..=MAX_UTC_OFFSET).contains(&offset) {
                return Some(CalendarScale { unit, offset: offset as i16 });
            }
        }
        None
    }

    /// Returns the length in milliseconds: of a unit of the calendar, the longest.
    pub(crate) fn length(self) -> u64 {
        self.calendar().map_or(self.0 as u64, CalendarScale::longest)
    }
}

impl From<CalendarScale> for Scale {
    fn from(CalendarScale { unit, offset }: CalendarScale) -> Self {
        Self(CALENDAR_SCALES[unit as usize].1 - i64::from(offset))
    }
}
