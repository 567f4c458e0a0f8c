//! A decision as a client reads it: `RateLimit` fields, `Retry-After`, and a problem body. The one place that writes them.

#[cfg(all(feature = "headers", target_arch = "wasm32"))]
mod js;

use crate::text::{Text, digits, push_digits, push_quoted};
use crate::{Decision, Policies, Violated};
use alloc::string::String;
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
    let mut headers = Vec::with_capacity(3);
    let quotas = policies.iter().map(|policy| (policy.limit(), policy.period()));
    write_headers(&mut headers, decision, quotas, |position| policies.name(position).chars());
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
    legacy(decision).map(|(name, number)| (name, digits(number)))
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
    let mut body = String::new();
    write_problem(&mut body, decision.violated, |position| policies.name(position).chars());
    body
}

/// What headers are written into, one after the other.
trait Headers: Text {
    /// Begins a header: what is written from here on is its value.
    fn header(&mut self, name: &'static str);
}

impl Headers for Vec<(&'static str, String)> {
    fn header(&mut self, name: &'static str) {
        self.push((name, String::new()));
    }
}

impl Text for Vec<(&'static str, String)> {
    fn push(&mut self, character: char) {
        if let Some((_, value)) = self.last_mut() {
            value.push(character);
        }
    }

    fn push_str(&mut self, piece: &str) {
        if let Some((_, value)) = self.last_mut() {
            value.push_str(piece);
        }
    }
}

/// Writes the headers for a decision under policies of these limits and periods, whose names are told by position.
fn write_headers<Name: Iterator<Item = char>>(
    headers: &mut impl Headers,
    decision: &Decision,
    quotas: impl Iterator<Item = (u64, u64)>,
    name: impl Fn(usize) -> Name,
) {
    headers.header("RateLimit-Policy");
    let mut between = "";
    for (position, (limit, period)) in quotas.enumerate() {
        headers.push_str(between);
        between = ", ";
        push_quoted(headers, name(position));
        push_parameter(headers, ";q=", limit);
        if period >= 1_000 {
            push_parameter(headers, ";w=", seconds(period));
        }
    }
    headers.header("RateLimit");
    push_quoted(headers, name(decision.policy));
    push_parameter(headers, ";r=", decision.remaining);
    push_parameter(headers, ";t=", seconds(decision.reset_after));
    if let Some(seconds) = retry_after(decision) {
        headers.header("Retry-After");
        push_digits(headers, seconds);
    }
}

/// The older headers, which are but numbers.
fn legacy(decision: &Decision) -> [(&'static str, u64); 3] {
    [
        ("X-RateLimit-Limit", decision.limit),
        ("X-RateLimit-Remaining", decision.remaining),
        ("X-RateLimit-Reset", seconds(decision.reset_after)),
    ]
}

/// Writes the body of a denial by policies whose names are told by position.
fn write_problem<Name: Iterator<Item = char>>(body: &mut impl Text, violated: Violated, name: impl Fn(usize) -> Name) {
    body.push_str("{\"type\":\"");
    body.push_str(PROBLEM_TYPE);
    body.push_str("\",\"title\":\"Request cannot be satisfied as assigned quota has been exceeded\",");
    body.push_str("\"status\":429,\"violated-policies\":[");
    let mut between = "";
    for position in violated.iter() {
        body.push_str(between);
        between = ",";
        push_quoted(body, name(position));
    }
    body.push_str("]}");
}

/// A parameter that is an integer of structured fields, which has 15 digits at the most.
fn push_parameter(field: &mut impl Text, name: &str, number: u64) {
    field.push_str(name);
    push_digits(field, number.min(999_999_999_999_999));
}

fn seconds(milliseconds: u64) -> u64 {
    milliseconds.div_ceil(1_000)
}
