//! A decision as a client reads it: `RateLimit` fields, `Retry-After`, and a problem body. The one place that writes them.

use crate::text::{digits, quoted, text};
use crate::{Decision, Policies};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// The type of the problem that a denial is.
pub const PROBLEM_TYPE: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// The headers for a decision, by the draft of the IETF's HTTP API group (draft-ietf-httpapi-ratelimit-headers-11).
///
/// `RateLimit-Policy` tells each policy's quota and window, `RateLimit` what is left of the one that
/// binds most, and on a denial that ends, `Retry-After` says when.
///
/// ```
/// use tollgate::{Limiter, ManualClock, Policy, rate_limit_headers};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let policy = Policy::fix_window(1, "1m")?.named("burst")?;
/// let mut limiter = Limiter::<String, _>::new(policy, ManualClock::new(40_000))?;
/// limiter.hit("login:42", 1)?;
/// let denied = limiter.hit("login:42", 1)?;
/// assert_eq!(rate_limit_headers(&denied, limiter.policies()), [
///     ("RateLimit-Policy", r#""burst";q=1;w=60"#.to_owned()),
///     ("RateLimit", r#""burst";r=0;t=20"#.to_owned()),
///     ("Retry-After", "20".to_owned()),
/// ]);
/// # Ok(())
/// # }
/// ```
pub fn rate_limit_headers(decision: &Decision, policies: &Policies) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("RateLimit-Policy", policy_field(policies)),
        ("RateLimit", limit_field(decision, policies.name(decision.policy))),
    ];
    headers.extend(retry_after(decision).map(|seconds| ("Retry-After", digits(seconds))));
    headers
}

/// The older headers that some clients still read: `X-RateLimit-Limit`, `-Remaining` and `-Reset` (seconds from now).
///
/// ```
/// # use tollgate::{Limiter, ManualClock, Policy, legacy_headers};
/// # fn main() -> Result<(), tollgate::Error> {
/// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(5, "1m")?, ManualClock::new(0))?;
/// assert_eq!(legacy_headers(&limiter.hit("login:42", 1)?), [
///     ("X-RateLimit-Limit", "5".to_owned()),
///     ("X-RateLimit-Remaining", "4".to_owned()),
///     ("X-RateLimit-Reset", "60".to_owned()),
/// ]);
/// # Ok(())
/// # }
/// ```
pub fn legacy_headers(decision: &Decision) -> [(&'static str, String); 3] {
    [
        ("X-RateLimit-Limit", digits(decision.limit)),
        ("X-RateLimit-Remaining", digits(decision.remaining)),
        ("X-RateLimit-Reset", digits(seconds(decision.reset_after))),
    ]
}

/// What `Retry-After` says: whole seconds, rounded up, at least 1. Nothing when allowed, or when it would be never.
///
/// ```
/// # use tollgate::{Limiter, ManualClock, Policy, retry_after};
/// # fn main() -> Result<(), tollgate::Error> {
/// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(1, "1m")?, ManualClock::new(59_999))?;
/// assert_eq!(retry_after(&limiter.hit("login:42", 1)?), None);
/// assert_eq!(retry_after(&limiter.hit("login:42", 1)?), Some(1));
/// # Ok(())
/// # }
/// ```
pub fn retry_after(decision: &Decision) -> Option<u64> {
    match decision.retry_after {
        Some(milliseconds) if !decision.allowed => Some(seconds(milliseconds).max(1)),
        _ => None,
    }
}

/// The body of a 429, as `application/problem+json`.
///
/// ```
/// # use tollgate::{Limiter, ManualClock, Policy, problem_body};
/// # fn main() -> Result<(), tollgate::Error> {
/// let policy = Policy::fix_window(1, "1m")?.named("burst")?;
/// let mut limiter = Limiter::<String, _>::new(policy, ManualClock::new(0))?;
/// limiter.hit("login:42", 1)?;
/// assert_eq!(
///     problem_body(&limiter.hit("login:42", 1)?, limiter.policies()),
///     concat!(
///         r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
///         r#""title":"Request cannot be satisfied as assigned quota has been exceeded","#,
///         r#""status":429,"violated-policies":["burst"]}"#,
///     ),
/// );
/// # Ok(())
/// # }
/// ```
pub fn problem_body(decision: &Decision, policies: &Policies) -> String {
    let mut violated = String::new();
    for position in decision.violated.iter() {
        if !violated.is_empty() {
            violated.push(',');
        }
        violated.push_str(&quoted(policies.name(position)));
    }
    text(&[
        "{\"type\":\"",
        PROBLEM_TYPE,
        "\",\"title\":\"Request cannot be satisfied as assigned quota has been exceeded\",\"status\":429,\"violated-policies\":[",
        &violated,
        "]}",
    ])
}

fn policy_field(policies: &Policies) -> String {
    let mut field = String::new();
    for (policy, name) in policies.iter().zip(policies.names()) {
        if !field.is_empty() {
            field.push_str(", ");
        }
        field.push_str(&text(&[&quoted(name), ";q=", &integer(policy.limit())]));
        if policy.period() >= 1_000 {
            field.push_str(&text(&[";w=", &integer(seconds(policy.period()))]));
        }
    }
    field
}

fn limit_field(decision: &Decision, name: &str) -> String {
    let (remaining, reset) = (integer(decision.remaining), integer(seconds(decision.reset_after)));
    text(&[&quoted(name), ";r=", &remaining, ";t=", &reset])
}

/// An integer of structured fields, which has 15 digits at the most.
fn integer(number: u64) -> String {
    digits(number.min(999_999_999_999_999))
}

fn seconds(milliseconds: u64) -> u64 {
    milliseconds.div_ceil(1_000)
}
