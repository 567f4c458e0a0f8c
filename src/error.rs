//! What can be wrong with what a caller gave: never a denial, always a mistake that can be named.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::text::{digits, listed, shown, text};

/// A mistake in a policy, key, cost, time or stored state. Nothing was changed when it is returned.
///
/// It says what was wrong and what would have been accepted; [`kind`](Error::kind) is for code to act on.
///
/// ```
/// use tollgate::{ErrorKind, Policy};
///
/// let error = Policy::fix_window(0, "1m").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidPolicy);
/// assert_eq!(error.to_string(), "limit: 0 is not accepted; give a whole number from 1 to 9007199254740991");
/// ```
#[derive(Clone, PartialEq, Eq)]
// Thin, since almost every function may return one.
// Out of memory has no box: none could be allocated.
pub struct Error(Option<Box<Told>>);

#[derive(Clone, PartialEq, Eq)]
struct Told {
    kind: ErrorKind,
    message: String,
}

/// The kinds of mistakes there are, and the code of each, which does not change between versions.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal,)*) => {
        /// What kind of mistake an [`Error`] is.
        ///
        /// ```
        /// use tollgate::{ErrorKind, check_key};
        /// assert_eq!(check_key("").unwrap_err().kind(), ErrorKind::InvalidKey);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
        }

        const CODES: &[&str] = &[$($code,)*];
    };
}

kinds! {
    /// A field of a policy holds what it cannot.
    InvalidPolicy = "invalid_policy",
    /// No algorithm has that name.
    UnknownAlgorithm = "unknown_algorithm",
    /// A field that the policy's algorithm does not know.
    UnknownField = "unknown_field",
    /// A key that may not leave the process.
    InvalidKey = "invalid_key",
    /// A cost out of range.
    InvalidCost = "invalid_cost",
    /// A count out of range.
    InvalidCount = "invalid_count",
    /// A clock that answered something that is no time.
    InvalidTime = "invalid_time",
    /// An option of the limiter holds what it cannot.
    InvalidOption = "invalid_option",
    /// The policy given with one call does not fit the limiter's.
    PolicyMismatch = "policy_mismatch",
    /// No policy of the limiter has that name, or a name is needed and none was given.
    UnknownPolicy = "unknown_policy",
    /// The limiter holds as many keys as it may and was told to refuse more.
    Full = "full",
    /// A stored state or snapshot that was not written by this library.
    InvalidState = "invalid_state",
    /// A stored state or snapshot of a version this library does not read.
    UnsupportedVersion = "unsupported_version",
    /// Memory ran out. Nothing was changed, and the limiter works on.
    OutOfMemory = "out_of_memory",
}

impl Error {
    /// What kind of mistake it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.as_ref().map_or(ErrorKind::OutOfMemory, |told| told.kind)
    }

    /// The same as a name that does not change between versions.
    ///
    /// ```
    /// use tollgate::check_key;
    /// assert_eq!(check_key("").unwrap_err().code(), "invalid_key");
    /// ```
    pub fn code(&self) -> &'static str {
        CODES[self.kind() as usize]
    }

    /// What was wrong, and what would have been accepted.
    pub(crate) fn message(&self) -> &str {
        self.0.as_ref().map_or("out of memory: nothing was changed", |told| &told.message)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn new(kind: ErrorKind, message: &[&str]) -> Self {
        Self(Some(Box::new(Told { kind, message: text(message) })))
    }

    /// A field that holds what it cannot.
    pub(crate) fn refused(kind: ErrorKind, field: &str, found: &str, accepts: &str) -> Self {
        Self::new(kind, &[field, ": ", found, " is not accepted; give ", accepts])
    }

    pub(crate) fn policy(field: &str, found: &str, accepts: &str) -> Self {
        Self::refused(ErrorKind::InvalidPolicy, field, found, accepts)
    }

    pub(crate) fn key(found: &str) -> Self {
        Self::refused(ErrorKind::InvalidKey, "key", found, crate::key::ACCEPTS)
    }

    pub(crate) fn cost(found: &str) -> Self {
        Self::refused(ErrorKind::InvalidCost, "cost", found, crate::number::AMOUNT)
    }

    pub(crate) fn count(found: &str, most: u64) -> Self {
        let accepts = text(&["a whole number from 0 to ", &digits(most)]);
        Self::refused(ErrorKind::InvalidCount, "count", found, &accepts)
    }

    pub(crate) fn time(found: &str) -> Self {
        let accepts = " is not a time; it must answer milliseconds since the epoch, from 0 to 9007199254740991";
        Self::new(ErrorKind::InvalidTime, &["clock: ", found, accepts])
    }

    pub(crate) fn option(option: &str, found: &str, accepts: &str) -> Self {
        Self::refused(ErrorKind::InvalidOption, option, found, accepts)
    }

    /// A policy given with one call that differs in `field` from what the limiter accepts.
    pub(crate) fn mismatch(field: &str, found: &str, accepts: &[&str]) -> Self {
        let pieces = ["the policy of this call has ", field, " ", found, ", but this limiter accepts ", &text(accepts)];
        Self::new(ErrorKind::PolicyMismatch, &pieces)
    }

    /// A name that no policy has, or none where one is needed.
    pub(crate) fn unknown_policy(field: &str, found: Option<&str>, known: &[impl AsRef<str>]) -> Self {
        let found = found.map_or("leaving it out, where there are several,".into(), shown);
        Self::refused(ErrorKind::UnknownPolicy, field, &found, &text(&["one of ", &listed(known)]))
    }

    pub(crate) fn full(max_keys: u32) -> Self {
        let keys = digits(max_keys.into());
        // In the words of whoever chose them.
        let (most, full) = if cfg!(feature = "js") { ("maxKeys", "onFull") } else { ("max_keys", "on_full") };
        Self::new(ErrorKind::Full, &["the limiter is full: ", most, " is ", &keys, ", and ", full, " is deny"])
    }

    pub(crate) fn state(problem: &str) -> Self {
        Self::new(ErrorKind::InvalidState, &["the stored state cannot be read: ", problem])
    }

    pub(crate) fn version(found: u64, supported: u64) -> Self {
        let (found, supported) = (digits(found), digits(supported));
        let pieces = ["the stored state is of version ", &found, ", and only version ", &supported, " can be read"];
        Self::new(ErrorKind::UnsupportedVersion, &pieces)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error").field("kind", &self.kind()).field("message", &self.message()).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for Error {}

impl From<crate::memory::OutOfMemory> for Error {
    fn from(_: crate::memory::OutOfMemory) -> Self {
        Self(None)
    }
}
