//! What can be wrong with what a caller gave: never a denial, always a mistake that can be named.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::text::{digits, listed, text};

/// A mistake in a policy, key, cost, time or stored state. Nothing was changed when it is returned.
///
/// ```
/// use tollgate::Policy;
///
/// let error = Policy::fix_window(0, "1m").unwrap_err();
/// assert_eq!(error.code(), "invalid_policy");
/// assert_eq!(error.to_string(), "limit: 0 is not accepted; give a whole number from 1 to 9007199254740991");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A field of a policy holds what it cannot.
    InvalidPolicy {
        /// The field, as it was spelled.
        field: Cow<'static, str>,
        /// What was there.
        found: String,
        /// What would have been accepted.
        accepts: Cow<'static, str>,
    },
    /// No algorithm has that name.
    UnknownAlgorithm {
        /// What was there.
        found: String,
    },
    /// A field that the policy's algorithm does not know.
    UnknownField {
        /// The field, as it was spelled.
        field: String,
        /// The fields it does know.
        known: &'static [&'static str],
    },
    /// A key that may not leave the process.
    InvalidKey {
        /// What was there, in words.
        found: String,
    },
    /// A cost out of range.
    InvalidCost {
        /// What was there.
        found: String,
    },
    /// A count out of range.
    InvalidCount {
        /// What was there.
        found: String,
        /// The largest count that would have been accepted.
        most: u64,
    },
    /// A clock that answered something that is no time.
    InvalidTime {
        /// What was there.
        found: String,
    },
    /// An option of the limiter holds what it cannot.
    InvalidOption {
        /// The option.
        option: &'static str,
        /// What was there.
        found: String,
        /// What would have been accepted.
        accepts: &'static str,
    },
    /// The policy given with one call does not fit the limiter's.
    PolicyMismatch {
        /// The field that differs.
        field: &'static str,
        /// What the call's policy has.
        found: String,
        /// What the limiter accepts there.
        accepts: String,
    },
    /// No policy of the limiter has that name, or a name is needed and none was given.
    UnknownPolicy {
        /// The name, if one was given.
        found: Option<String>,
        /// The names there are.
        known: Vec<String>,
    },
    /// The limiter holds `max_keys` keys and was told to refuse more.
    Full {
        /// How many keys it holds.
        max_keys: u32,
    },
    /// A stored state or snapshot that was not written by this library.
    InvalidState {
        /// What is wrong with it.
        problem: Cow<'static, str>,
    },
    /// A stored state or snapshot of a version this library does not read.
    UnsupportedVersion {
        /// The version that was found.
        found: u64,
        /// The version that is read.
        supported: u64,
    },
}

impl Error {
    /// A name for the kind of mistake that does not change between versions.
    ///
    /// ```
    /// use tollgate::check_key;
    /// assert_eq!(check_key("").unwrap_err().code(), "invalid_key");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidPolicy { .. } => "invalid_policy",
            Self::UnknownAlgorithm { .. } => "unknown_algorithm",
            Self::UnknownField { .. } => "unknown_field",
            Self::InvalidKey { .. } => "invalid_key",
            Self::InvalidCost { .. } => "invalid_cost",
            Self::InvalidCount { .. } => "invalid_count",
            Self::InvalidTime { .. } => "invalid_time",
            Self::InvalidOption { .. } => "invalid_option",
            Self::PolicyMismatch { .. } => "policy_mismatch",
            Self::UnknownPolicy { .. } => "unknown_policy",
            Self::Full { .. } => "full",
            Self::InvalidState { .. } => "invalid_state",
            Self::UnsupportedVersion { .. } => "unsupported_version",
        }
    }

    pub(crate) fn state(problem: impl Into<Cow<'static, str>>) -> Self {
        Self::InvalidState { problem: problem.into() }
    }
}

impl Error {
    /// What was wrong, and what would have been accepted.
    pub(crate) fn message(&self) -> String {
        let refused =
            |field: &str, found: &str, accepts: &str| text(&[field, ": ", found, " is not accepted; give ", accepts]);
        match self {
            Self::InvalidPolicy { field, found, accepts } => refused(field, found, accepts),
            Self::UnknownAlgorithm { found } => {
                text(&["algorithm: ", found, " is not known; give one of ", &listed(crate::policy::ALGORITHMS)])
            }
            Self::UnknownField { field, known } => text(&[field, ": no such field; known here are ", &listed(known)]),
            Self::InvalidKey { found } => refused("key", found, "a string of 1 to 1024 UTF-8 bytes"),
            Self::InvalidCost { found } => refused("cost", found, "a whole number from 0 to 9007199254740991"),
            Self::InvalidCount { found, most } => {
                refused("count", found, &text(&["a whole number from 0 to ", &digits(*most)]))
            }
            Self::InvalidTime { found } => {
                let accepts = " is not a time; it must answer milliseconds since the epoch, from 0 to 9007199254740991";
                text(&["clock: ", found, accepts])
            }
            Self::InvalidOption { option, found, accepts } => refused(option, found, accepts),
            Self::PolicyMismatch { field, found, accepts } => {
                text(&["the policy of this call has ", field, " ", found, ", but this limiter accepts ", accepts])
            }
            Self::UnknownPolicy { found: Some(found), known } => {
                text(&["policy: ", found, " is not one of this limiter's, which are ", &listed(known)])
            }
            Self::UnknownPolicy { found: None, known } => {
                text(&["policy: this limiter has several, so give the name of one of ", &listed(known)])
            }
            Self::Full { max_keys } => {
                let keys = digits((*max_keys).into());
                text(&["the limiter is full: it holds max_keys = ", &keys, " keys and on_full is deny"])
            }
            Self::InvalidState { problem } => text(&["the stored state cannot be read: ", problem]),
            Self::UnsupportedVersion { found, supported } => {
                let (found, supported) = (digits(*found), digits(*supported));
                text(&["the stored state is of version ", &found, ", and only version ", &supported, " can be read"])
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl core::error::Error for Error {}
