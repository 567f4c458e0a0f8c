//! The replicas of a limiter's keys, as JavaScript uses them.

use alloc::string::{String, ToString};

use tollgate::replay::{self, Replayed, Unreadable, status};
use wasm_bindgen::prelude::*;

use crate::policies::{coded, hash, read};

/// The replicas of a limiter's keys.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Replicas(replay::Replicas);

#[wasm_bindgen]
impl Replicas {
    /// Makes a limiter's replicas. `process` has 8 letters or digits.
    #[wasm_bindgen(constructor)]
    pub fn new(policies: &str, process: &str) -> Result<Replicas, JsValue> {
        let process = process.as_bytes().first_chunk().copied().unwrap_or([b'0'; 8]);
        let replicas = replay::Replicas::new(read(policies)?, process, hash).map_err(|error| coded(&error))?;
        Ok(Self(replicas))
    }

    /// Returns the policies as entries name them.
    #[wasm_bindgen(js_name = policiesText)]
    pub fn policies_text(&self) -> String {
        self.0.policies_text().to_string()
    }

    /// Returns the fingerprint of the policies.
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint().iter().map(|&byte| char::from(byte)).collect()
    }

    /// Returns a name for the shape of the policies.
    pub fn shape(&self) -> String {
        self.0.shape()
    }

    /// Returns the longest that a state lasts after a hit without debt.
    pub fn longest(&self) -> f64 {
        self.0.longest() as f64
    }

    /// Returns how long a reservation lasts that does not say.
    #[wasm_bindgen(js_name = defaultTtl)]
    pub fn default_ttl(&self) -> f64 {
        self.0.default_ttl() as f64
    }

    /// Returns the policies of a call as entries name them; empty if they do not fit.
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

    /// Takes a slot; a status below 0 if there is no memory.
    pub fn take(&mut self) -> i32 {
        let slot = self.0.take().map_or(status::OUT_OF_MEMORY, |slot| slot as i32);
        grow_ahead();
        slot
    }

    /// Frees a slot.
    pub fn release(&mut self, slot: u32) {
        self.0.release(slot);
    }

    /// Forgets what a slot holds.
    pub fn forget(&mut self, slot: u32) {
        self.0.forget(slot);
    }

    /// Reads a whole value into a slot. `number` is that of the own entry; 0 if there is none.
    pub fn load(&mut self, slot: u32, value: &str, number: f64) -> i32 {
        let replayed = self.0.load(slot, value, number as u64);
        grow_ahead();
        status_of(replayed)
    }

    /// Replays the entries that follow what a slot holds.
    pub fn replay(&mut self, slot: u32, entries: &str, number: f64) -> i32 {
        let replayed = self.0.replay(slot, entries, number as u64);
        grow_ahead();
        status_of(replayed)
    }

    /// Returns the base of a slot's value, without its mark.
    pub fn base(&self, slot: u32) -> String {
        self.0.base(slot)
    }

    /// Adds the result of an operation that only reads to the results.
    pub fn read(&mut self, slot: u32, reading: u32, costs: &str, position: usize, call: &str, now: f64) -> i32 {
        let call = Some(call).filter(|call| !call.is_empty());
        let read = self.0.read(slot, reading, costs, position, call, now as u64);
        status_of(read.map(|()| Replayed { own: false, foreign: false }))
    }

    /// Returns where the decision of a hit is in the memory that is denied at every moment from `earliest` to `latest`; 0 if
    /// it may be allowed. Where leases are open, it is told only `beside_leases`.
    pub fn deny(&mut self, slot: u32, cost: f64, earliest: f64, latest: f64, beside_leases: bool) -> usize {
        match self.0.deny(slot, cost as u64, earliest as u64, latest as u64, beside_leases) {
            true => self.results_address(),
            false => 0,
        }
    }

    /// Whether hits may be leased.
    #[wasm_bindgen(js_name = mayLease)]
    pub fn may_lease(&self) -> bool {
        self.0.may_lease()
    }

    /// Returns the decision and the lease that the result at a place is.
    pub fn lease(&self, place: usize) -> Option<String> {
        self.0.lease(place).map(ToString::to_string)
    }

    /// Returns when the last of a slot's states ends; 0 if they have ended at `now`.
    #[wasm_bindgen(js_name = endsAt)]
    pub fn ends_at(&self, slot: u32, now: f64) -> f64 {
        self.0.ends_at(slot, now as u64) as f64
    }

    /// Returns where the numbers of the results are in the memory.
    #[wasm_bindgen(js_name = resultsAddress)]
    pub fn results_address(&self) -> usize {
        self.0.results().as_ptr().addr()
    }
}

fn status_of(replayed: Result<Replayed, Unreadable>) -> i32 {
    match replayed {
        Ok(Replayed { own, foreign }) => i32::from(own) * status::OWN + i32::from(foreign) * status::FOREIGN,
        Err(Unreadable::Malformed) => status::MALFORMED,
        Err(Unreadable::Version) => status::VERSION,
        Err(Unreadable::OutOfMemory) => status::OUT_OF_MEMORY,
    }
}

/// Grows the memory in large steps, where it is one that grows.
fn grow_ahead() {
    #[cfg(all(target_arch = "wasm32", not(test)))]
    crate::platform::grow_ahead();
}
