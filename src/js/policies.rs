//! Policies that were read once, for JavaScript to hold on to.

use alloc::string::String;
use alloc::vec::Vec;
use wasm_bindgen::prelude::*;

use super::convert::{BETWEEN, complain, cost, policies_from};
use crate::record::MadeBy;
use crate::text::{digits, text};
use crate::{Decision, Policies, Violated, legacy_headers, problem_body, rate_limit_headers};

/// One policy or several, checked.
#[wasm_bindgen]
pub struct PolicySet(pub(super) Policies);

#[wasm_bindgen]
impl PolicySet {
    /// Reads policies from a text.
    pub fn make(written: &str) -> Option<PolicySet> {
        complain(policies_from(written)).map(Self)
    }

    /// What states are made by: for each policy its name, its algorithm and its scale, in turn.
    pub fn origins(&self) -> String {
        let mut written = String::new();
        for made_by in self.made_by() {
            written.push_str(&text(&[
                &made_by.name,
                BETWEEN,
                &made_by.algorithm,
                BETWEEN,
                &digits(made_by.scale),
                BETWEEN,
            ]));
        }
        written
    }

    /// The position of the policy of that name; -1 with a complaint if there is none.
    pub fn position(&self, name: Option<String>) -> i32 {
        complain(self.0.position(name.as_deref())).map_or(-1, |position| position as i32)
    }

    // The fields of a decision cross one by one, since only numbers and texts do.
    #[allow(clippy::too_many_arguments)]
    /// The headers for a decision: names and values in turn; then the problem body, if it was denied.
    pub fn headers(
        &self,
        allowed: bool,
        limit: f64,
        remaining: f64,
        retry_after: f64,
        reset_after: f64,
        policy: usize,
        violated: u32,
        legacy: bool,
    ) -> String {
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
        let mut headers = rate_limit_headers(&decision, &self.0);
        if legacy {
            headers.extend(legacy_headers(&decision));
        }
        let mut written = String::new();
        for (name, value) in &headers {
            written.push_str(&text(&[name, BETWEEN, value, BETWEEN]));
        }
        if !allowed {
            written.push_str(&problem_body(&decision, &self.0));
        }
        written
    }

    pub(super) fn made_by(&self) -> Vec<MadeBy> {
        MadeBy::all(&self.0)
    }
}
