//! The wasm behind the headers of the npm package. It is separate from the limiter's, so that a page without headers
//! does not load it.

// wasm-bindgen's exports must be `pub`, though no crate uses them.
#![allow(unreachable_pub)]
#![cfg_attr(all(target_arch = "wasm32", not(test)), no_std)]

extern crate alloc;

#[cfg(all(target_arch = "wasm32", not(test)))]
mod platform {
    tollgate_platform::platform!();
}

use alloc::string::String;

use tollgate::boundary::{PolicyNumbers, Quota, write_headers, write_problem};
use tollgate::{Decision, Reason, Violated};
use wasm_bindgen::prelude::*;

/// Returns the headers for a decision, each name and value on a line of its own; empty if a number is missing.
/// `decision` has its numbers: allowed, limit, remaining, retry after, more after, position of the policy, and the number
/// of its reason. `numbers` has the numbers of each policy, `names` their names and `units` their units, one on each line;
/// a line without a unit is empty.
#[wasm_bindgen]
pub fn headers(decision: &[f64], numbers: &[f64], names: &str, units: &str, legacy: bool) -> String {
    let mut text = String::new();
    let &[allowed, limit, remaining, retry_after, more_after, policy, reason] = decision else { return text };
    let decision = Decision {
        allowed: allowed != 0.0,
        count: 0,
        limit: limit as u64,
        remaining: remaining as u64,
        retry_after: retry_after.is_finite().then_some(retry_after as u64),
        reset_after: 0,
        more_after: more_after as u64,
        policy: policy as usize,
        violated: Violated::default(),
        reason: reason_of(reason),
    };
    let units = units.split('\n').map(|unit| Some(unit).filter(|unit| !unit.is_empty()));
    let texts = names.split('\n').zip(units);
    let quotas = policies(numbers).zip(texts).filter_map(|(policy, (name, unit))| Quota::of(&policy, name, unit));
    write_headers(&mut text, &decision, quotas, legacy);
    text
}

/// Returns the position of the first policy whose bucket takes too long to fill or empty; -1 if there is none.
#[wasm_bindgen]
pub fn unfillable(numbers: &[f64]) -> i32 {
    policies(numbers).position(|policy| !policy.is_fillable()).map_or(-1, |position| position as i32)
}

/// Reads the numbers of each policy.
fn policies(numbers: &[f64]) -> impl Iterator<Item = PolicyNumbers> {
    numbers.as_chunks().0.iter().map(|&[algorithm, limit, rate, scale, length, most]| {
        // JavaScript has checked that no rate is 0. A division by 0 would trap.
        let (algorithm, rate) = (algorithm as usize, (rate as u64).max(1));
        let [limit, length, most] = [limit, length, most].map(|number| number as u64);
        PolicyNumbers { algorithm, limit, rate, scale: scale as i64, length, most }
    })
}

/// Returns the reason of a number; `None` for those that change nothing of a response.
fn reason_of(number: f64) -> Option<Reason> {
    match number as u32 {
        1 => Some(Reason::Banned),
        2 => Some(Reason::Reserved),
        _ => None,
    }
}

/// Returns the body of a denial by the policies whose bits are set. `reason` is the number of its reason.
#[wasm_bindgen]
pub fn problem_body(violated: u32, reason: f64, names: &str) -> String {
    let mut text = String::new();
    let name = |position| names.split('\n').nth(position).unwrap_or_default();
    write_problem(&mut text, Violated::from_bits(violated), reason_of(reason), name);
    text
}
