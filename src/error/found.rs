//! Rejected values, for error messages.

use alloc::boxed::Box;
use core::fmt::{self, Display, Formatter, Write};

use crate::error::quoting::Quoted;
use crate::error::wording::{FRACTION, NEGATIVE, TOO_LARGE};
use crate::number::MAX;

/// A rejected value, with as much detail as an error message shows.
///
/// Other numbers than integers of the range and short ones have a description, so that every language shows them alike.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// The field was left out.
    Missing,
    /// An integer of at most [`MAX`].
    Integer(u64),
    /// A number of at most nine digits before the point and three behind it, in thousandths.
    Thousandths(i64),
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
        } else if number > MAX as f64 {
            Self::Described(TOO_LARGE)
        } else if integer as f64 == number {
            Self::Integer(integer)
        } else {
            let described = Self::Described(if number < 0.0 { NEGATIVE } else { FRACTION });
            thousandths(number).map_or(described, Self::Thousandths)
        }
    }
}

/// Returns a number in thousandths; `None` if it has more than nine digits before the point or three behind it.
fn thousandths(number: f64) -> Option<i64> {
    let rounded = (number * 1_000.0 + if number < 0.0 { -0.5 } else { 0.5 }) as i64;
    (rounded as f64 / 1_000.0 == number && rounded.unsigned_abs() < 1_000_000_000_000).then_some(rounded)
}

/// Displays thousandths as a number with up to three decimals. Rust's own text of a float would add kilobytes of wasm.
fn fmt_thousandths(thousandths: i64, f: &mut Formatter<'_>) -> fmt::Result {
    if thousandths < 0 {
        f.write_char('-')?;
    }
    let (whole, mut rest) = (thousandths.unsigned_abs() / 1_000, thousandths.unsigned_abs() % 1_000);
    whole.fmt(f)?;
    if rest > 0 {
        f.write_char('.')?;
    }
    let mut place = 100;
    while rest > 0 {
        f.write_char(char::from(b'0' + (rest / place) as u8))?;
        rest %= place;
        place /= 10;
    }
    Ok(())
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
            Self::Thousandths(number) => fmt_thousandths(*number, f),
            Self::Text(text) => Quoted(text).fmt(f),
            Self::Described(text) => f.write_str(text),
            Self::Bytes(bytes) => write!(f, "a string of {bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_shown_and_others_described() {
        for (number, shown) in [
            (0.0, "0"),
            (-0.0, "0"),
            (7.0, "7"),
            (-1.0, "-1"),
            (-999_999_999.0, "-999999999"),
            (-1_000_000_000.0, NEGATIVE),
            (1.5, "1.5"),
            (0.1, "0.1"),
            (0.001, "0.001"),
            (-20.05, "-20.05"),
            (999_999_999.999, "999999999.999"),
            (1_000_000_000.5, FRACTION),
            (0.000_1, FRACTION),
            (1.0 / 3.0, FRACTION),
            (-1.0 / 3.0, NEGATIVE),
            (f64::NEG_INFINITY, NEGATIVE),
            (9_007_199_254_740_992.0, TOO_LARGE),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(Found::from(number).to_string(), shown, "{number}");
        }
    }
}
