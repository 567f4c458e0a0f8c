//! The headers that tell a client where it stands.

use alloc::string::String;

use super::convert::{BETWEEN, cost};
use super::desk::desk;
use super::{FAILED, or_status};
use crate::text::push;
use crate::{Decision, Violated, legacy_headers, problem_body, rate_limit_headers};

// The fields of a decision cross one by one, since only numbers do.
#[allow(clippy::too_many_arguments)]
/// The text is then the headers for a decision: names and values in turn; then the problem body, if it was denied.
#[unsafe(no_mangle)]
pub extern "C" fn headers(
    policies: usize,
    allowed: bool,
    limit: f64,
    remaining: f64,
    retry_after: f64,
    reset_after: f64,
    policy: usize,
    violated: u32,
    legacy: bool,
) -> i32 {
    desk(|desk| {
        let policies = or_status!(desk.policies.get(policies), FAILED);
        let number = |number: f64| cost(number).unwrap_or(0);
        let decision = Decision {
            allowed,
            limit: number(limit),
            remaining: number(remaining),
            retry_after: cost(retry_after),
            reset_after: number(reset_after),
            policy,
            violated: Violated(violated),
            ..Decision::NOTHING
        };
        let mut headers = rate_limit_headers(&decision, policies);
        if legacy {
            headers.extend(legacy_headers(&decision));
        }
        let mut written = String::new();
        for (name, value) in &headers {
            push(&mut written, &[name, BETWEEN, value, BETWEEN]);
        }
        if !allowed {
            written.push_str(&problem_body(&decision, policies));
        }
        desk.answer(written);
        0
    })
}
