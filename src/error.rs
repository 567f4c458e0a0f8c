//! Errors in a policy, key, cost, option or stored state. A denial is never an error.

pub(crate) mod expected;
pub(crate) mod found;
pub(crate) mod quoting;
pub(crate) mod wording;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

use self::quoting::{Listed, Quoted};
use self::wording::fill;

use crate::growth::OutOfMemory;
use crate::number::MAX;
use crate::{Expected, Found};

/// An error in a policy, key, cost, option, time or stored state. The operation that returned it changed no state.
///
/// Its message says what is wrong and what is accepted; [`code`](Error::code) is a stable name for programs.
///
/// ```
/// use tollgate::{Error, Policy};
///
/// let error = Policy::fix_window(0, "1m").unwrap_err();
/// assert!(matches!(error, Error::InvalidPolicy { field: "limit", .. }));
/// assert_eq!(error.code(), "invalid_policy");
/// assert_eq!(error.to_string(), "limit: 0 is not an integer from 1 to 9007199254740991");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A field of a policy has an invalid value.
    InvalidPolicy {
        /// The field's name, in camelCase.
        field: &'static str,
        /// The value.
        found: Found,
        /// What the field accepts.
        expected: Expected,
    },
    /// No algorithm has that name.
    UnknownAlgorithm {
        /// The value of `algorithm`.
        found: Found,
    },
    /// The policy's algorithm has no such field.
    UnknownField {
        /// The field's name, as it was written.
        field: Box<str>,
        /// The algorithm's name.
        algorithm: &'static str,
        /// The fields that the algorithm has.
        known: Vec<&'static str>,
    },
    /// A key that is empty or too long to be stored outside the process.
    InvalidKey {
        /// The key.
        found: Found,
    },
    /// A cost out of range.
    InvalidCost {
        /// The cost.
        found: Found,
    },
    /// A cost to add out of range, which may be negative.
    InvalidInc {
        /// The cost.
        found: Found,
    },
    /// A count out of range.
    InvalidCount {
        /// The count.
        found: Found,
        /// The highest count that is accepted.
        max: u64,
    },
    /// The clock returned an invalid time.
    InvalidTime {
        /// The value that the clock returned.
        found: Found,
    },
    /// An option of a limiter has an invalid value.
    InvalidOption {
        /// The option's name.
        option: Cow<'static, str>,
        /// The value.
        found: Found,
        /// What the option accepts.
        expected: Expected,
    },
    /// The policies of one call do not match the limiter's.
    PolicyMismatch(Mismatch),
    /// No policy of the limiter has that name, or a name is required and missing.
    UnknownPolicy {
        /// The name; `None` if it was left out.
        found: Option<Box<str>>,
        /// The names of the limiter's policies.
        known: Vec<Box<str>>,
    },
    /// The limiter has as many keys as `max_keys` allows, and its `on_full` denies new ones.
    Full {
        /// The option `max_keys`.
        max_keys: u32,
    },
    /// Half of the keys that the limiter holds have exceptions, which are never evicted.
    ManyExceptions {
        /// The option `max_keys`.
        max_keys: u32,
    },
    /// The key has as many rows as a key outside the process may have.
    ManyRows {
        /// [`MAX_ROWS`](crate::MAX_ROWS).
        max_rows: usize,
    },
    /// A stored state or snapshot that this library did not write.
    InvalidState {
        /// What is wrong with it.
        problem: Cow<'static, str>,
    },
    /// A stored state or snapshot of a version that this library does not read.
    UnsupportedVersion {
        /// Its version.
        found: u64,
        /// The version that this library reads.
        supported: u64,
    },
    /// A hit, an addition or a count for a policy that counts reservations alone.
    ReserveOnly {
        /// The policy's name.
        policy: Box<str>,
        /// The operation.
        operation: &'static str,
    },
    /// An addition or a count for a policy that is a ban.
    BanOnly {
        /// The policy's name.
        policy: Box<str>,
        /// The operation.
        operation: &'static str,
    },
    /// A ban or its end for a policy that is not a ban, or without a name where there are several.
    UnknownBan {
        /// The name; `None` if it was left out.
        found: Option<Box<str>>,
        /// The names of the limiter's bans.
        known: Vec<Box<str>>,
    },
    /// One number to settle a reservation of costs by policy.
    SettleByPolicy {
        /// The number.
        found: u64,
    },
    /// A text that is not the id of a reservation.
    InvalidReservation {
        /// The text.
        found: Found,
    },
    /// There is not enough memory for the operation.
    OutOfMemory,
}

/// The first difference between the policies of one call and those of a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The numbers of policies differ.
    Policies {
        /// How many the call has.
        found: usize,
        /// How many the limiter has.
        expected: usize,
    },
    /// The algorithms differ.
    Algorithm {
        /// The algorithm of the call's policy.
        found: &'static str,
        /// The algorithm of the limiter's policy.
        expected: &'static str,
    },
    /// The `scale` or `per` differ.
    Scale {
        /// The field's name.
        field: &'static str,
        /// The call's, in milliseconds.
        found: u64,
        /// The limiter's, in milliseconds.
        expected: u64,
    },
    /// One of them has windows of the calendar, and the `scale` or `utcOffset` differ.
    Calendar,
}

impl Error {
    /// Returns a name for the kind of error that does not change between versions.
    ///
    /// ```
    /// assert_eq!(tollgate::check_key("").unwrap_err().code(), "invalid_key");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidPolicy { .. } => "invalid_policy",
            Self::UnknownAlgorithm { .. } => "unknown_algorithm",
            Self::UnknownField { .. } => "unknown_field",
            Self::InvalidKey { .. } => "invalid_key",
            Self::InvalidCost { .. } => "invalid_cost",
            Self::InvalidInc { .. } => "invalid_cost",
            Self::InvalidCount { .. } => "invalid_count",
            Self::InvalidTime { .. } => "invalid_time",
            Self::InvalidOption { .. } => "invalid_option",
            Self::PolicyMismatch(_) => "policy_mismatch",
            Self::UnknownPolicy { .. } => "unknown_policy",
            Self::Full { .. } | Self::ManyExceptions { .. } | Self::ManyRows { .. } => "full",
            Self::InvalidState { .. } => "invalid_state",
            Self::UnsupportedVersion { .. } => "unsupported_version",
            Self::ReserveOnly { .. } => "reserve_only",
            Self::BanOnly { .. } => "ban_only",
            Self::UnknownBan { .. } => "unknown_policy",
            Self::SettleByPolicy { .. } => "invalid_cost",
            Self::InvalidReservation { .. } => "invalid_reservation",
            Self::OutOfMemory => "out_of_memory",
        }
    }

    /// Returns the name of the field that has the error; `None` if it is not about one field.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(0, "1m").unwrap_err().field(), Some("limit"));
    /// ```
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::InvalidPolicy { field, .. } => Some(field),
            Self::UnknownField { field, .. } => Some(field),
            Self::InvalidOption { option, .. } => Some(option),
            Self::UnknownAlgorithm { .. } => Some("algorithm"),
            Self::InvalidKey { .. } => Some("key"),
            Self::InvalidCost { .. } | Self::InvalidInc { .. } => Some("cost"),
            Self::InvalidCount { .. } => Some("count"),
            Self::UnknownPolicy { .. } | Self::UnknownBan { .. } => Some("policy"),
            Self::SettleByPolicy { .. } => Some("used"),
            Self::InvalidReservation { .. } => Some("id"),
            _ => None,
        }
    }

    /// Returns the message without the name of the field, for callers that name the field by a longer path.
    ///
    /// ```
    /// let error = tollgate::Policy::fix_window(0, "1m").unwrap_err();
    /// assert_eq!(error.problem().to_string(), "0 is not an integer from 1 to 9007199254740991");
    /// ```
    pub fn problem(&self) -> impl Display + '_ {
        Problem(self)
    }

    pub(crate) fn policy(field: &'static str, found: impl Into<Found>, expected: Expected) -> Self {
        Self::InvalidPolicy { field, found: found.into(), expected }
    }

    pub(crate) fn state(problem: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidState { problem: problem.into() }
    }

    /// Returns the rejected value and what is accepted; `None` for errors that are not about a value.
    fn rejection(&self) -> Option<(&Found, Expected)> {
        let amount = |max| Expected::Integer { min: 0, max };
        Some(match self {
            Self::InvalidPolicy { found, expected, .. } | Self::InvalidOption { found, expected, .. } => {
                (found, expected.clone())
            }
            Self::UnknownAlgorithm { found } => (found, Expected::Algorithm),
            Self::InvalidKey { found } => (found, Expected::Key),
            Self::InvalidCost { found } => (found, amount(MAX)),
            Self::InvalidInc { found } => (found, Expected::SignedInteger),
            Self::InvalidReservation { found } => (found, Expected::Reservation),
            Self::InvalidCount { found, max } => (found, amount(*max)),
            _ => return None,
        })
    }

    /// Returns the template of the message, with names in braces in the place of values.
    fn text(&self) -> &'static str {
        match self {
            Self::UnknownField { .. } => wording::UNKNOWN_FIELD,
            Self::UnknownPolicy { found: Some(_), .. } => wording::UNKNOWN_POLICY,
            Self::UnknownPolicy { found: None, .. } => wording::POLICY_REQUIRED,
            Self::InvalidTime { .. } => wording::INVALID_TIME,
            Self::PolicyMismatch(mismatch) => mismatch.text(),
            Self::Full { .. } => wording::FULL,
            Self::ManyExceptions { .. } => wording::MANY_EXCEPTIONS,
            Self::ManyRows { .. } => wording::MANY_ROWS,
            Self::InvalidState { .. } => wording::INVALID_STATE,
            Self::UnsupportedVersion { .. } => wording::UNSUPPORTED_VERSION,
            Self::ReserveOnly { .. } => wording::RESERVE_ONLY,
            Self::BanOnly { .. } => wording::BAN_ONLY,
            Self::UnknownBan { known, .. } if known.is_empty() => wording::NO_BAN,
            Self::UnknownBan { found: Some(_), .. } => wording::UNKNOWN_BAN,
            Self::UnknownBan { found: None, .. } => wording::POLICY_REQUIRED,
            Self::SettleByPolicy { .. } => wording::SETTLE_BY_POLICY,
            Self::OutOfMemory => wording::OUT_OF_MEMORY,
            Self::InvalidPolicy { expected: Expected::UniqueName, .. } => wording::NAMED_TWICE,
            _ if matches!(self.rejection(), Some((Found::Missing, _))) => wording::REQUIRED,
            _ => wording::REJECTED,
        }
    }

    /// Writes a template with the values of this error.
    fn fill(&self, f: &mut Formatter<'_>, text: &str) -> fmt::Result {
        if let Some((found, expected)) = self.rejection() {
            let (forms, field) = (expected.forms(), self.field().unwrap_or_default());
            let expected: &dyn Display = if *found == Found::Missing { &forms } else { &expected };
            return fill(f, text, &["field", "found", "expected"], &[&field, found, expected]);
        }
        match self {
            Self::UnknownField { field, algorithm, known } => {
                fill(f, text, &["found", "algorithm", "known"], &[&Quoted(field), algorithm, &Listed(known)])
            }
            Self::UnknownPolicy { found, known } | Self::UnknownBan { found, known } => {
                let found = Quoted(found.as_deref().unwrap_or_default());
                fill(f, text, &["found", "known"], &[&found, &Listed(known)])
            }
            Self::InvalidTime { found } => fill(f, text, &["found", "max"], &[found, &MAX]),
            Self::PolicyMismatch(mismatch) => mismatch.fmt(f),
            Self::Full { max_keys } | Self::ManyExceptions { max_keys } => fill(f, text, &["found"], &[max_keys]),
            Self::ManyRows { max_rows } => fill(f, text, &["found"], &[max_rows]),
            Self::InvalidState { problem } => fill(f, text, &["problem"], &[problem]),
            Self::UnsupportedVersion { found, supported } => fill(f, text, &["found", "expected"], &[found, supported]),
            Self::ReserveOnly { policy, operation } | Self::BanOnly { policy, operation } => {
                fill(f, text, &["policy", "operation"], &[&Quoted(policy), operation])
            }
            Self::SettleByPolicy { found } => fill(f, text, &["found"], &[found]),
            _ => f.write_str(text),
        }
    }
}

/// The message of an error without the name of its field.
struct Problem<'a>(&'a Error);

impl Display for Problem<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = self.0.text();
        let problem = text.strip_prefix("{field}").or_else(|| text.strip_prefix("policy")).unwrap_or(text);
        self.0.fill(f, problem.trim_start_matches([':', ' ']))
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fill(f, self.text())
    }
}

impl Mismatch {
    fn text(&self) -> &'static str {
        match self {
            Self::Policies { .. } => wording::OTHER_POLICIES,
            Self::Algorithm { .. } => wording::OTHER_ALGORITHM,
            Self::Scale { .. } => wording::OTHER_SCALE,
            Self::Calendar => wording::OTHER_CALENDAR,
        }
    }
}

impl Display for Mismatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (field, found, expected): (&str, &dyn Display, &dyn Display) = match self {
            Self::Policies { found, expected } => ("", found, expected),
            Self::Algorithm { found, expected } => ("", found, expected),
            Self::Scale { field, found, expected } => (field, found, expected),
            Self::Calendar => ("", &"", &""),
        };
        fill(f, self.text(), &["field", "found", "expected"], &[&field, found, expected])
    }
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl core::error::Error for Error {}
