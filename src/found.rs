//! Rejected values, for error messages.

use alloc::boxed::Box;
use core::fmt::{self, Display, Formatter};

use crate::number::MAX;
use crate::text::Quoted;
use crate::wording::{FRACTION, NEGATIVE, TOO_LARGE};

/// A rejected value, with as much detail as an error message shows.
///
/// Numbers other than integers in range have a description, so that every language shows them alike.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// The field was left out.
    Missing,
    /// An integer of at most [`MAX`].
    Integer(u64),
    /// A string.
    Text(Box<str>),
    /// A description of anything else.
    Described(&'static str),
    /// A key of that many bytes, which is too long to show.
    Bytes(usize),
}

impl From<u64> for Found {
    fn from(number: u64) -> Self {
        if number <= MAX { Self::Integer(number) } else { Self::Described(TOO_LARGE) }
    }
}

impl From<f64> for Found {
    fn from(number: f64) -> Self {
        let integer = number as u64;
        if number.is_nan() {
            Self::Described("NaN")
        } else if number < 0.0 {
            Self::Described(NEGATIVE)
        } else if number > MAX as f64 {
            Self::Described(TOO_LARGE)
        } else if integer as f64 == number {
            Self::Integer(integer)
        } else {
            Self::Described(FRACTION)
        }
    }
}

impl From<&str> for Found {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl Display for Found {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("nothing"),
            Self::Integer(number) => number.fmt(f),
            Self::Text(text) => Quoted(text).fmt(f),
            Self::Described(text) => f.write_str(text),
            Self::Bytes(bytes) => write!(f, "a string of {bytes} bytes"),
        }
    }
}
