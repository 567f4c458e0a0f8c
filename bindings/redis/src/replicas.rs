//! The replicas of a limiter's keys, for JavaScript.

use alloc::string::{String, ToString};

use tollgate::redis_log::{self, ReplayError, Replayed, status};
use wasm_bindgen::prelude::*;

use crate::policies::{coded, hash, read};

/// The replicas of a limiter's keys.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Replicas(redis_log::Replicas);

#[wasm_bindgen]
impl Replicas {
    /// Returns the replicas of a limiter. `process` has 8 letters or digits.
    #[wasm_bindgen(constructor)]
    pub fn new(policies: &str, process: &str) -> Result<Replicas, JsValue> {
        let process = process.as_bytes().first_chunk().copied().unwrap_or([b'0'; 8]);
        let replicas = redis_log::Replicas::new(read(policies)?, process, hash).map_err(|error| coded(&error))?;
        Ok(Self(replicas))
    }

    /// Returns the text of the policies in entries.
    #[wasm_bindgen(js_name = policiesText)]
    pub fn policies_text(&self) -> String {
        self.0.policies_text().to_string()
    }

    /// Returns the fingerprint of the policies.
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint().iter().map(|&byte| char::from(byte)).collect()
    }

    /// Returns how long a state lasts at most after a hit, if there is no debt.
    pub fn longest(&self) -> f64 {
        self.0.max_lifetime() as f64
    }

    /// Returns how long a reservation without a `ttl` lasts.
    #[wasm_bindgen(js_name = defaultTtl)]
    pub fn default_ttl(&self) -> f64 {
        self.0.default_ttl() as f64
    }

    /// Returns the text of a call's own policies in entries; empty if they do not match the limiter's.
    #[wasm_bindgen(js_name = callText)]
    pub fn call_text(&self, policies: &str) -> Result<String, JsValue> {
        let text = self.0.call_text(read(policies)?).map_err(|error| coded(&error))?;
        Ok(text.unwrap_or_default())
    }

    /// Returns the highest count that the policy at a position may be set to.
    #[wasm_bindgen(js_name = maxCount)]
    pub fn max_count(&self, position: usize) -> Result<f64, JsValue> {
        self.0.max_count(position).map(|count| count as f64).map_err(|error| coded(&error))
    }

    /// Takes a slot; returns a negative status if there is not enough memory.
    pub fn take(&mut self) -> i32 {
        let slot = self.0.take().map_or(status::OUT_OF_MEMORY, |slot| slot as i32);
        grow_ahead();
        slot
    }

    /// Frees a slot.
    pub fn release(&mut self, slot: u32) {
        self.0.release(slot);
    }

    /// Drops the replica of a slot.
    pub fn forget(&mut self, slot: u32) {
        self.0.forget(slot);
    }

    /// Replaces the replica of a slot by that of a value. `number` is that of the caller's own entry; 0 if there is none.
    pub fn load(&mut self, slot: u32, value: &str, number: f64) -> i32 {
        let replayed = self.0.load(slot, value, number as u64);
        grow_ahead();
        status_of(replayed)
    }

    /// Replays further entries on the replica of a slot.
    pub fn replay(&mut self, slot: u32, entries: &str, number: f64) -> i32 {
        let replayed = self.0.replay(slot, entries, number as u64);
        grow_ahead();
        status_of(replayed)
    }

    /// Returns the states of a slot as the base of a value, without a mark.
    pub fn base(&self, slot: u32) -> String {
        self.0.base(slot)
    }

    /// Adds the result of an operation that only reads.
    pub fn read(&mut self, slot: u32, reading: u32, costs: &str, position: usize, call: &str, now: f64) -> i32 {
        let call = Some(call).filter(|call| !call.is_empty());
        let read = self.0.read(slot, reading, costs, position, call, now as u64);
        status_of(read.map(|()| Replayed::default()))
    }

    /// Returns the address of the decision of a hit that is denied at every time from `earliest` to `latest`; 0 if it may be
    /// allowed. While leases are open, it returns 0 unless `beside_leases` is set.
    pub fn deny(&mut self, slot: u32, cost: f64, earliest: f64, latest: f64, beside_leases: bool) -> usize {
        match self.0.deny(slot, cost as u64, earliest as u64, latest as u64, beside_leases) {
            true => self.results_address(),
            false => 0,
        }
    }

    /// Returns whether hits may be leased.
    #[wasm_bindgen(js_name = mayLease)]
    pub fn may_lease(&self) -> bool {
        self.0.may_lease()
    }

    /// Returns the decision and the lease of a result as text.
    pub fn lease(&self, index: usize) -> Option<String> {
        self.0.lease(index).map(ToString::to_string)
    }

    /// Returns the time at which the last state of a slot ends; 0 if all have ended by `now`.
    #[wasm_bindgen(js_name = endsAt)]
    pub fn ends_at(&self, slot: u32, now: f64) -> f64 {
        self.0.ends_at(slot, now as u64) as f64
    }

    /// Returns the address of the results' numbers.
    #[wasm_bindgen(js_name = resultsAddress)]
    pub fn results_address(&self) -> usize {
        self.0.results().as_ptr().addr()
    }
}

fn status_of(replayed: Result<Replayed, ReplayError>) -> i32 {
    match replayed {
        Ok(Replayed { own, foreign }) => i32::from(own) * status::OWN + i32::from(foreign) * status::FOREIGN,
        Err(ReplayError::Malformed) => status::MALFORMED,
        Err(ReplayError::UnsupportedVersion) => status::VERSION,
        Err(ReplayError::OutOfMemory) => status::OUT_OF_MEMORY,
    }
}

/// Grows the memory of wasm in large steps.
fn grow_ahead() {
    #[cfg(all(target_arch = "wasm32", not(test)))]
    crate::platform::grow_ahead();
}
