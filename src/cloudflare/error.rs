//! The errors of a Worker's requests to an object.

use std::fmt;

use js_sys::Reflect;

/// An error of [`Limits`](super::Limits). A denial is not an error.
///
/// It converts into a [`worker::Error`], so `?` works in a handler of a Worker.
#[derive(Debug)]
#[non_exhaustive]
pub enum LimitsError {
    /// A policy, key or cost is invalid.
    Invalid(crate::Error),
    /// The object rejected the operation, or could not read its stored state.
    Rejected {
        /// A name that does not change between versions.
        code: String,
        /// What is wrong, and what is accepted.
        message: String,
    },
    /// The object did not respond: the platform failed, or the binding is missing.
    Platform(worker::Error),
}

impl LimitsError {
    /// Returns a name for the kind of error that does not change between versions.
    pub fn code(&self) -> &str {
        match self {
            Self::Invalid(error) => error.code(),
            Self::Rejected { code, .. } => code,
            Self::Platform(_) => "unanswered",
        }
    }

    /// Returns whether the object had more requests than it can handle. A retry makes it worse.
    pub fn is_overloaded(&self) -> bool {
        self.has("overloaded")
    }

    /// Returns whether the platform expects a retry to succeed. It may charge a hit again whose reply was lost.
    pub fn is_retryable(&self) -> bool {
        self.has("retryable")
    }

    /// Returns whether a property of the platform's error is true.
    fn has(&self, property: &str) -> bool {
        let Self::Platform(worker::Error::UnknownJsError { original, .. }) = self else { return false };
        Reflect::get(original, &property.into()).is_ok_and(|value| value.is_truthy())
    }
}

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::Rejected { message, .. } => f.write_str(message),
            Self::Platform(error) => write!(f, "the object did not respond: {error}"),
        }
    }
}

impl std::error::Error for LimitsError {}

impl From<crate::Error> for LimitsError {
    fn from(error: crate::Error) -> Self {
        Self::Invalid(error)
    }
}

impl From<worker::Error> for LimitsError {
    fn from(error: worker::Error) -> Self {
        Self::Platform(error)
    }
}

impl From<LimitsError> for worker::Error {
    fn from(error: LimitsError) -> Self {
        match error {
            LimitsError::Platform(error) => error,
            other => Self::RustError(other.to_string()),
        }
    }
}

impl From<crate::Error> for worker::Error {
    fn from(error: crate::Error) -> Self {
        Self::RustError(error.to_string())
    }
}
