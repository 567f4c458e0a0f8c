//! The responses of the layer itself, and the headers that it adds to those of the service.

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::NoKey;
use crate::{Decision, Policies, problem_body, rate_limit_headers};

/// Adds the headers of a decision. Another limit's lines stay: the fields are lists.
pub(super) fn add_headers(headers: &mut HeaderMap, decision: &Decision, policies: &Policies) {
    for (name, value) in rate_limit_headers(decision, policies) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
}

/// Returns the response to a denied request.
pub(super) fn denial<B: From<String>>(decision: &Decision, policies: &Policies) -> Response<B> {
    let mut response = problem(StatusCode::TOO_MANY_REQUESTS, problem_body(decision, policies));
    add_headers(response.headers_mut(), decision, policies);
    response
}

/// Returns the response to a request without a key.
pub(super) fn without_key<B: From<String>>(NoKey { status, detail }: NoKey) -> Response<B> {
    problem(status, titled(status, &detail))
}

/// Returns the response to a request about which nobody could decide.
pub(super) fn undecided<B: From<String>>() -> Response<B> {
    problem(StatusCode::SERVICE_UNAVAILABLE, titled(StatusCode::SERVICE_UNAVAILABLE, "the rate limiter failed"))
}

fn titled(status: StatusCode, detail: &str) -> String {
    let title = status.canonical_reason().unwrap_or_default();
    serde_json::json!({ "title": title, "status": status.as_u16(), "detail": detail }).to_string()
}

fn problem<B: From<String>>(status: StatusCode, body: String) -> Response<B> {
    let mut response = Response::new(B::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
