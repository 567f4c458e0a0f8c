//! The response to a client: `RateLimit` fields, `Retry-After`, and a problem body. They are written only here.

use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::calendar::Calendar;
use crate::algorithm::window::{Kind, Window};
use crate::boundary::PolicyNumbers;
use crate::{Decision, Policies, Reason, Violated};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The `type` of the problem body of a denial.
pub const PROBLEM_TYPE: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// The `type` of the problem body of a denial by a ban.
pub const BANNED_PROBLEM_TYPE: &str = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";

const TITLE: &str = "Request cannot be satisfied as assigned quota has been exceeded";
const BANNED_TITLE: &str = "Request not satisfied due to detection of abnormal request pattern";

/// Returns the headers for a decision, by the draft of the IETF's HTTP API group
/// (draft-ietf-httpapi-ratelimit-headers-11).
///
/// `RateLimit-Policy` has each policy's quota, [unit](crate::Policy::unit) and window. `RateLimit` has the remaining
/// quota of the policy that binds most and, as `t`, the seconds until more than that remains. `Retry-After` is the
/// wait after a denial, if the cost can ever fit. The window of a calendar month is left out, since it has no constant
/// length.
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
    let quotas = policies.iter().zip(policies.names());
    let quotas = quotas.map(|(policy, name)| Quota::new(&policy.algorithm, name, policy.unit.as_deref()));
    let mut headers = Vec::with_capacity(3);
    fields(decision, quotas, &mut |name, value| headers.push((name, value)));
    headers
}

/// The numbers of one policy in `RateLimit-Policy`.
#[derive(Clone, Copy, Debug)]
pub struct Quota<'a> {
    name: &'a str,
    limit: u64,
    unit: &'a str,
    /// 0 if it is not constant.
    period: u64,
    is_bucket: bool,
    /// Whether the policy is a ban, which has no quota.
    is_ban: bool,
}

/// The unit of a quota that has no other, which is not written.
const DEFAULT_UNIT: &str = "requests";

impl<'a> Quota<'a> {
    fn new(algorithm: &AnyAlgorithm, name: &'a str, unit: Option<&'a str>) -> Self {
        let default = if algorithm.is_concurrency() { "concurrent-requests" } else { DEFAULT_UNIT };
        let (limit, is_ban) = (algorithm.limit(), algorithm.is_ban());
        let is_bucket = matches!(algorithm, AnyAlgorithm::Bucket(_));
        Self { name, limit, unit: unit.unwrap_or(default), period: period(algorithm), is_bucket, is_ban }
    }

    /// Returns the quota with the limit of a decision under the policy at this position: an exception may have another. The
    /// period of a bucket depends on its rate, which a decision does not have.
    fn in_force(self, decision: &Decision, position: usize) -> Self {
        if position != decision.policy || decision.limit == self.limit {
            return self;
        }
        Self { limit: decision.limit, period: if self.is_bucket { 0 } else { self.period }, ..self }
    }

    /// Returns the quota of a policy that is known by its numbers; `None` if they are out of range.
    pub fn of(policy: &PolicyNumbers, name: &'a str, unit: Option<&'a str>) -> Option<Self> {
        Some(Self::new(&policy.algorithm()?, name, unit))
    }
}

/// Returns the period of a policy; 0 for months, whose length varies, and for work in progress and bans, which have none.
fn period(algorithm: &AnyAlgorithm) -> u64 {
    match algorithm {
        AnyAlgorithm::Concurrency(_) | AnyAlgorithm::Ban(_) => 0,
        AnyAlgorithm::Window(Window { kind: Kind::Calendar(calendar), .. }) if calendar.unit() == Calendar::Month => 0,
        AnyAlgorithm::Window(_) | AnyAlgorithm::SlidingWindow(_) | AnyAlgorithm::Bucket(_) => algorithm.period(),
    }
}

/// Writes the headers for a decision, each name and value on a line of its own; with `legacy` the older ones too.
pub fn write_headers<'a>(
    text: &mut String,
    decision: &Decision,
    quotas: impl Iterator<Item = Quota<'a>>,
    legacy: bool,
) {
    let mut push = |name: &str, value: String| {
        for line in [name, &value] {
            text.push_str(line);
            text.push('\n');
        }
    };
    let has_quota = fields(decision, quotas, &mut push);
    if legacy && has_quota {
        for (name, value) in legacy_headers(decision) {
            push(name, value);
        }
    }
}

/// Passes each header to `push`: `RateLimit-Policy`, `RateLimit`, and `Retry-After` after a denial that ends. Returns
/// whether there is a quota, as there is none under bans alone.
fn fields<'a>(
    decision: &Decision,
    quotas: impl Iterator<Item = Quota<'a>>,
    push: &mut dyn FnMut(&'static str, String),
) -> bool {
    let (mut policies, mut remainder) = (String::new(), String::new());
    let is_banned = decision.ends_lease();
    for (position, quota) in quotas.enumerate().filter(|(_, quota)| !quota.is_ban) {
        policies.push_str(if policies.is_empty() { "" } else { ", " });
        push_quoted(&mut policies, quota.name);
        let Quota { limit, period, .. } = quota.in_force(decision, position);
        push_parameter(&mut policies, ";q=", limit);
        if quota.unit != DEFAULT_UNIT {
            policies.push_str(";qu=");
            push_quoted(&mut policies, quota.unit);
        }
        if period >= 1_000 {
            push_parameter(&mut policies, ";w=", seconds(period));
        }
        // Under a ban, nothing remains of any quota.
        if position == decision.policy || is_banned {
            remainder.push_str(if remainder.is_empty() { "" } else { ", " });
            push_quoted(&mut remainder, quota.name);
            push_parameter(&mut remainder, ";r=", decision.remaining);
            match window(decision) {
                0 => {}
                seconds => push_parameter(&mut remainder, ";t=", seconds),
            }
        }
    }
    let has_quota = !remainder.is_empty();
    if has_quota {
        push("RateLimit-Policy", policies);
        push("RateLimit", remainder);
    }
    if let Some(seconds) = retry_after(decision) {
        push("Retry-After", seconds.to_string());
    }
    has_quota
}

/// Adds a parameter that is an integer of structured fields, which has at most 15 digits.
fn push_parameter(field: &mut String, name: &str, number: u64) {
    field.push_str(name);
    field.push_str(&number.min(999_999_999_999_999).to_string());
}

/// Adds printable ASCII in quotes, as JSON and structured fields write it.
fn push_quoted(text: &mut String, name: &str) {
    text.push('"');
    for character in name.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
}

/// Returns the older headers that some clients still read: `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the seconds
/// until more than that remains; 0 if all of it does.
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
        ("X-RateLimit-Limit", decision.limit.to_string()),
        ("X-RateLimit-Remaining", decision.remaining.to_string()),
        ("X-RateLimit-Reset", window(decision).to_string()),
    ]
}

/// Returns the value of `Retry-After`: whole seconds, rounded up, at least 1; `None` if the hit was allowed or can
/// never be. It is 1 if open reservations alone are in the way, since any settlement may free the hit.
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
        Some(_) if decision.reason == Some(Reason::Reserved) => Some(1),
        Some(milliseconds) if !decision.allowed => Some(seconds(milliseconds).max(1)),
        _ => None,
    }
}

/// Returns the body of a 429, as `application/problem+json`.
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
    write_problem(&mut body, decision.violated, decision.reason, |position| policies.name(position));
    body
}

/// Writes the body of a denial by the policies at these positions.
pub fn write_problem<'a>(
    body: &mut String,
    violated: Violated,
    reason: Option<Reason>,
    name: impl Fn(usize) -> &'a str,
) {
    let (kind, title) = match reason {
        Some(Reason::Banned | Reason::Denied) => (BANNED_PROBLEM_TYPE, BANNED_TITLE),
        Some(Reason::Full | Reason::Error | Reason::Reserved) | None => (PROBLEM_TYPE, TITLE),
    };
    body.push_str("{\"type\":\"");
    body.push_str(kind);
    body.push_str("\",\"title\":\"");
    body.push_str(title);
    body.push_str("\",\"status\":429,\"violated-policies\":[");
    for (at, position) in violated.iter().enumerate() {
        body.push_str(if at == 0 { "" } else { "," });
        push_quoted(body, name(position));
    }
    body.push_str("]}");
}

/// Returns the effective window, in which a client may use no more than what remains: whole seconds, rounded up; 0 if
/// all of the limit remains. The draft wants `Retry-After` to be no earlier than its end.
fn window(decision: &Decision) -> u64 {
    let more_after = seconds(decision.more_after);
    retry_after(decision).map_or(more_after, |wait| more_after.min(wait))
}

fn seconds(milliseconds: u64) -> u64 {
    milliseconds.div_ceil(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exception, Limiter, ManualClock, Policy};

    #[test]
    fn the_quota_of_the_binding_policy_is_that_of_the_exception_in_force() {
        let window = Policy::fix_window(5, "1m").unwrap().named("burst").unwrap();
        let bucket = Policy::token_bucket(10, 1, "1s").unwrap().named("flow").unwrap();
        for (policy, field, expected) in [
            (window, "limit", "\"burst\";q=1000;w=60"),
            // Its period is that of a rate that the decision does not have.
            (bucket, "capacity", "\"flow\";q=1000"),
        ] {
            let mut limiter = Limiter::<String, _>::new(policy, ManualClock::new(0)).unwrap();
            let exception: Exception = serde_json::from_str(&format!("{{\"{field}\":1000}}")).unwrap();
            limiter.except("vip", &exception, 60_000).unwrap();
            let decision = limiter.hit("vip", 1).unwrap();
            assert_eq!(rate_limit_headers(&decision, limiter.policies())[0].1, expected);
        }
    }
}
