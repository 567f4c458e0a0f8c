//! Errors of requests to the HTTP API and by RPC.

use tollgate::Error;
use tollgate::cloudflare::ThrownError;

use crate::text::shown;

/// The error of a request, or of one of its items.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestError {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl RequestError {
    /// Returns the error of a request with an invalid field.
    pub(crate) fn invalid_request(message: String) -> Self {
        Self { code: "invalid_request", message }
    }

    /// Returns the error of a field with the name of an unknown policy, or with no name where one is required.
    pub(crate) fn unknown_policy(field: &str, found: Option<&str>, known: &str) -> Self {
        let message = match found {
            Some(name) => format!("{field}: {} is not one of {known}", shown(name)),
            None => format!("{field}: is required with several policies (one of {known})"),
        };
        Self { code: "unknown_policy", message }
    }
}

impl From<Error> for RequestError {
    fn from(error: Error) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl From<RequestError> for ThrownError {
    fn from(RequestError { code, message }: RequestError) -> Self {
        Self::Coded { code, message }
    }
}
