//! The leases of a holder, as JavaScript uses them: numbers and texts in both directions.

use alloc::format;
use alloc::string::{String, ToString};

use tollgate::Decision;
use tollgate::lease::holder::{Holder, Reply, Step};
use tollgate::lease::text::{Certainty, certain_for, from_decision, split_lease, to_decision};
use wasm_bindgen::prelude::*;

/// What a holder knows of its keys.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Leases(Holder);

#[wasm_bindgen]
impl Leases {
    /// Makes the leases of a holder that knows at most `capacity` keys. Each lasts `ttl` milliseconds.
    #[wasm_bindgen(constructor)]
    pub fn new(capacity: usize, ttl: f64, remembers_denials: bool) -> Leases {
        Self(Holder::new(capacity, ttl as u64, remembers_denials))
    }

    /// Returns the decision of a hit that is known to be denied.
    pub fn denied(&self, key: &str, cost: f64, now: f64) -> Option<String> {
        self.0.denied(key, cost as u64, now as u64).as_ref().map(written)
    }

    /// Decides a hit. Returns `?` if the issuer is to be asked, `+` and a report to be sent with the hit, `.` if a renewal
    /// under way will cover it, or else the decision, after which `+` and a report follow that are to be sent alone.
    pub fn hit(&mut self, key: &str, cost: f64, now: f64) -> String {
        match self.0.hit(key, cost as u64, now as u64) {
            Step::Ask => "?".to_string(),
            Step::Wait => ".".to_string(),
            Step::Renew(report) => format!("+{}", report.to_text()),
            Step::Decided { decision, renewal: None } => written(&decision),
            Step::Decided { decision, renewal: Some(report) } => {
                format!("{}+{}", written(&decision), report.to_text())
            }
        }
    }

    /// Spends a lease, and returns the decision; nothing if none covers the cost.
    pub fn spend(&mut self, key: &str, cost: f64, now: f64) -> Option<String> {
        self.0.spend(key, cost as u64, now as u64).as_ref().map(written)
    }

    /// Notes what the issuer replied to what was asked at `asked`: a decision, and perhaps a lease. Returns for how long
    /// that lease may be spent; 0 if there is none, and a number below 0 if the reply cannot be read.
    pub fn replied(&mut self, key: &str, cost: f64, reply: &str, renews: bool, asked: f64, now: f64) -> f64 {
        let parsed = split_lease(reply).and_then(|(decision, lease)| Some((to_decision(decision)?, lease)));
        let Some((decision, lease)) = parsed else { return -1.0 };
        let reply = Reply { cost: cost as u64, decision, certain: certain_for(reply), lease };
        self.0.replied(key, reply, renews, asked as u64, now as u64);
        lease.map_or(0.0, |lease| lease.life as f64)
    }

    /// Notes that a renewal was not answered.
    pub fn failed(&mut self, key: &str) {
        self.0.failed(key);
    }

    /// Returns the report that gives back a lease which was asked for at `asked` and not renewed since; nothing if nothing
    /// of it is left.
    #[wasm_bindgen(js_name = giveBack)]
    pub fn give_back(&mut self, key: &str, asked: f64, now: f64) -> Option<String> {
        self.0.give_back(key, asked as u64, now as u64).map(|report| report.to_text())
    }

    /// Returns how many keys are known.
    #[wasm_bindgen(getter)]
    pub fn size(&self) -> usize {
        self.0.len()
    }
}

fn written(decision: &Decision) -> String {
    from_decision(decision, Certainty::Certain)
}
