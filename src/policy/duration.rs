//! Durations as people write them: `60000`, `"250ms"`, `"1m"`.

use core::time::Duration;

use crate::Found;
use crate::number::MAX;
use crate::policy::schema::DURATION_UNITS;

/// A length of time in whole milliseconds, made from a number, a text or a [`Duration`].
///
/// It is checked where it is used, so that the error can name the field.
///
/// ```
/// use tollgate::Span;
///
/// assert_eq!(Span::from("5m"), Span::from(300_000));
/// assert_eq!(Span::from("5m"), Span::from(std::time::Duration::from_secs(300)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span(Result<u64, Found>);

impl Span {
    /// Returns the milliseconds; `None` if they are not from 1 to [`MAX`].
    ///
    /// ```
    /// assert_eq!(tollgate::Span::from("5m").milliseconds(), Some(300_000));
    /// assert_eq!(tollgate::Span::from("soon").milliseconds(), None);
    /// ```
    pub fn milliseconds(self) -> Option<u64> {
        self.checked().ok()
    }

    /// Returns the milliseconds if they are from 1 to [`MAX`]; else the value for an error message.
    pub(crate) fn checked(self) -> Result<u64, Found> {
        match self.0 {
            Ok(milliseconds) if (1..=MAX).contains(&milliseconds) => Ok(milliseconds),
            Ok(milliseconds) => Err(milliseconds.into()),
            Err(found) => Err(found),
        }
    }
}

impl From<u64> for Span {
    fn from(milliseconds: u64) -> Self {
        Self(Ok(milliseconds))
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).map_err(|_| Found::Described("a longer time")))
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self(parse(text).ok_or_else(|| text.into()))
    }
}

/// Parses digits and a unit, without sign, fraction or space; `None` if invalid.
fn parse(text: &str) -> Option<u64> {
    let unit_at = text.bytes().position(|byte| !byte.is_ascii_digit())?;
    let (digits, unit) = text.split_at_checked(unit_at)?;
    let (_, milliseconds) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit() {
        for (text, milliseconds) in [
            ("250ms", 250),
            ("1s", 1_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
            ("2w", 1_209_600_000),
            ("007s", 7_000),
        ] {
            assert_eq!(parse(text), Some(milliseconds), "{text}");
        }
    }

    #[test]
    fn rejects_everything_else() {
        for text in [
            "",
            "1",
            "s",
            "1.5h",
            "-1s",
            "+1s",
            " 1s",
            "1 s",
            "1S",
            "1sec",
            "1m30s",
            "99999999999999999999s",
            "213503982334602d",
            "30500568905w",
            "١s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
