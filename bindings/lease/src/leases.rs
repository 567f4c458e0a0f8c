//! The leases of a holder for JavaScript: numbers and strings in both directions.

use alloc::format;
use alloc::string::{String, ToString};

use tollgate::Decision;
use tollgate::lease::holder::{Holder, Reply, Step};
use tollgate::lease::text::{Certainty, certain_for, from_decision, split_lease, to_decision};
use wasm_bindgen::prelude::*;

/// The leases and remembered denials of a holder.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Leases(Holder);

#[wasm_bindgen]
impl Leases {
    /// Returns the leases of a holder of at most `capacity` keys. Each is requested for `ttl` milliseconds.
    #[wasm_bindgen(constructor)]
    pub fn new(capacity: usize, ttl: f64, remembers_denials: bool) -> Leases {
        Self(Holder::new(capacity, ttl as u64, remembers_denials))
    }

    /// Returns the decision of a hit that a remembered denial covers.
    pub fn denied(&self, key: &str, cost: f64, now: f64) -> Option<String> {
        self.0.denied(key, cost as u64, now as u64).as_ref().map(written)
    }

    /// Decides a hit. Returns `?` if the caller must send the hit to the issuer; `+` and a report if it must send the hit
    /// with that report; `.` if it must wait for a pending renewal; otherwise the decision, which may be followed by `+`
    /// and a report to send without a hit.
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

    /// Spends a lease, and returns the decision; `undefined` if no lease covers the cost.
    pub fn spend(&mut self, key: &str, cost: f64, now: f64) -> Option<String> {
        self.0.spend(key, cost as u64, now as u64).as_ref().map(written)
    }

    /// Records the issuer's reply to a request that was sent at `sent_at`: a decision, which a lease may follow. Returns
    /// how long that lease may be spent in milliseconds; 0 if there is none, and -1 if the reply is invalid.
    pub fn replied(&mut self, key: &str, cost: f64, reply: &str, renews: bool, sent_at: f64, now: f64) -> f64 {
        let parsed = split_lease(reply).and_then(|(decision, lease)| Some((to_decision(decision)?, lease)));
        let Some((decision, lease)) = parsed else { return -1.0 };
        let reply = Reply { cost: cost as u64, decision, certain: certain_for(reply), lease };
        self.0.replied(key, reply, renews, sent_at as u64, now as u64);
        lease.map_or(0.0, |lease| lease.life as f64)
    }

    /// Records that a renewal failed.
    pub fn failed(&mut self, key: &str) {
        self.0.failed(key);
    }

    /// Returns the report that gives back a lease which was requested at `sent_at` and not renewed since; `undefined` if
    /// all of it is spent or it has ended.
    #[wasm_bindgen(js_name = giveBack)]
    pub fn give_back(&mut self, key: &str, sent_at: f64, now: f64) -> Option<String> {
        self.0.give_back(key, sent_at as u64, now as u64).map(|report| report.to_text())
    }

    /// Returns the number of keys.
    #[wasm_bindgen(getter)]
    pub fn size(&self) -> usize {
        self.0.len()
    }
}

fn written(decision: &Decision) -> String {
    from_decision(decision, Certainty::Certain)
}
