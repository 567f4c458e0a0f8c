//! A policy's `scale` or `per` as one number, for stored states and the bindings.

use crate::algorithm::calendar::CalendarScale;
use crate::number::{MAX, in_range};
use crate::policy::schema::FIX_WINDOW;

/// A valid `scale` or `per`: milliseconds from 1 to [`MAX`], or, below 0, a unit of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale(i64);

impl Scale {
    /// Returns the scale of a length of time, which must be in range.
    pub(crate) fn of_time(milliseconds: u64) -> Self {
        Self(milliseconds.min(MAX) as i64)
    }

    /// Parses a number for the algorithm at a position of the schema; `None` if invalid.
    pub(crate) fn from_number(number: i64, algorithm: usize) -> Option<Self> {
        let is_time = number > 0 && in_range(number);
        let is_valid = is_time || (algorithm == FIX_WINDOW && CalendarScale::is_valid(number));
        is_valid.then_some(Self(number))
    }

    /// Returns the number.
    pub(crate) fn number(self) -> i64 {
        self.0
    }

    /// Returns the unit of the calendar; `None` for a length of time.
    pub(crate) fn calendar(self) -> Option<CalendarScale> {
        (self.0 < 0).then(|| CalendarScale::of_valid(self.0))
    }

    /// Returns the length in milliseconds; for a unit of the calendar, that of its longest window.
    pub(crate) fn length(self) -> u64 {
        self.calendar().map_or(self.0 as u64, CalendarScale::longest)
    }
}

impl From<CalendarScale> for Scale {
    fn from(scale: CalendarScale) -> Self {
        Self(scale.number().into())
    }
}
