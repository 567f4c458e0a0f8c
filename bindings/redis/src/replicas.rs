//! The replicas of a limiter's keys, for JavaScript.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tollgate::redis_log::{self, Replayed, status};
use wasm_bindgen::prelude::*;

use crate::policies::{coded, read};

/// The replicas of a limiter's keys.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Replicas {
    replicas: redis_log::Replicas,
    /// A text that JavaScript wrote.
    input: Vec<u8>,
}

#[wasm_bindgen]
impl Replicas {
    /// Returns the replicas of a limiter.
    #[wasm_bindgen(constructor)]
    pub fn new(policies: &str) -> Result<Replicas, JsValue> {
        let replicas = redis_log::Replicas::new(read(policies)?).map_err(|error| coded(&error))?;
        Ok(Self { replicas, input: Vec::new() })
    }

    /// Returns the text of the policies in entries.
    #[wasm_bindgen(js_name = policiesText)]
    pub fn policies_text(&self) -> String {
        self.replicas.policies_text().to_string()
    }

    /// Returns how long a state lasts at most after a hit, if there is no debt.
    pub fn longest(&self) -> f64 {
        self.replicas.max_lifetime() as f64
    }

    /// Returns how long a reservation without a `ttl` lasts.
    #[wasm_bindgen(js_name = defaultTtl)]
    pub fn default_ttl(&self) -> f64 {
        self.replicas.default_ttl() as f64
    }

    /// Returns the text of a call's own policies in entries; empty if they do not match the limiter's.
    #[wasm_bindgen(js_name = callText)]
    pub fn call_text(&self, policies: &str) -> Result<String, JsValue> {
        let text = self.replicas.call_text(read(policies)?).map_err(|error| coded(&error))?;
        Ok(text.unwrap_or_default())
    }

    /// Checks that the policies can take the fields of an exception, a text as in entries.
    #[wasm_bindgen(js_name = checkException)]
    pub fn check_exception(&self, fields: &str) -> Result<(), JsValue> {
        self.replicas.check_exception(fields).map_err(|error| coded(&error))
    }

    /// Returns the highest count that the policy at a position may be set to.
    #[wasm_bindgen(js_name = maxCount)]
    pub fn max_count(&self, position: usize) -> Result<f64, JsValue> {
        self.replicas.max_count(position).map(|count| count as f64).map_err(|error| coded(&error))
    }

    /// Takes a slot; returns a negative status if there is not enough memory.
    pub fn take(&mut self) -> i32 {
        let slot = self.replicas.take().map_or(status::OUT_OF_MEMORY, |slot| slot as i32);
        grow_ahead();
        slot
    }

    /// Frees a slot.
    pub fn release(&mut self, slot: u32) {
        self.replicas.release(slot);
    }

    /// Drops the replica of a slot.
    pub fn forget(&mut self, slot: u32) {
        self.replicas.forget(slot);
    }

    /// Returns the address for a text of at most so many bytes; 0 if there is not enough memory.
    pub fn input(&mut self, bytes: usize) -> usize {
        let missing = bytes.saturating_sub(self.input.len());
        if self.input.try_reserve_exact(missing).is_err() {
            return 0;
        }
        self.input.resize(self.input.len() + missing, 0);
        grow_ahead();
        self.input.as_ptr().addr()
    }

    /// Replays the replies to one call: the first `length` bytes of the input. Returns the address of the outcomes; 0 if there
    /// is not enough memory.
    #[wasm_bindgen(js_name = replayAll)]
    pub fn replay_all(&mut self, length: usize, now: f64) -> usize {
        let text = self.input.get(..length).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or_default();
        let outcomes = self.replicas.replay_all(text, now as u64);
        let address = outcomes.map_or(0, |outcomes| outcomes.as_ptr().addr());
        grow_ahead();
        address
    }

    /// Loads a value of another line than the slot's. Returns [`status::KEPT`] if the slot's states know more and were kept.
    pub fn meet(&mut self, slot: u32, value: &str, now: f64) -> i32 {
        let met = self.replicas.meet(slot, value, now as u64);
        grow_ahead();
        match met {
            Ok(kept) => i32::from(kept) * status::KEPT,
            Err(error) => status::of(Err(error)),
        }
    }

    /// Returns the states of a slot as the base of a value, without a tag.
    pub fn base(&self, slot: u32) -> String {
        self.replicas.base(slot)
    }

    /// Returns the same of a value that begins anew; empty if there is no need, or not enough memory.
    #[wasm_bindgen(js_name = newBeginning)]
    pub fn new_beginning(&self, slot: u32) -> String {
        self.replicas.new_beginning(slot).unwrap_or_default()
    }

    /// Returns the same of a value that is restored; empty if there is not enough memory.
    #[wasm_bindgen(js_name = restoringBase)]
    pub fn restoring_base(&self, slot: u32) -> String {
        self.replicas.restoring_base(slot).unwrap_or_default()
    }

    /// Adds the result of an operation that only reads.
    pub fn read(&mut self, slot: u32, reading: u32, costs: &str, position: usize, call: &str, now: f64) -> i32 {
        let call = Some(call).filter(|call| !call.is_empty());
        let read = self.replicas.read(slot, reading, costs, position, call, now as u64);
        status::of(read.map(|()| Replayed::default()))
    }

    /// Returns the address of the decision of a hit that is denied at every time from `earliest` to `latest`; 0 if it may be
    /// allowed. While leases are open, it returns 0 unless `beside_leases` is set.
    pub fn deny(&mut self, slot: u32, cost: f64, earliest: f64, latest: f64, beside_leases: bool) -> usize {
        match self.replicas.deny(slot, cost as u64, earliest as u64, latest as u64, beside_leases) {
            true => self.results_address(),
            false => 0,
        }
    }

    /// Returns whether hits may be leased.
    #[wasm_bindgen(js_name = mayLease)]
    pub fn may_lease(&self) -> bool {
        self.replicas.may_lease()
    }

    /// Returns the decision and the lease of a result as text, or an exception.
    pub fn text(&self, index: usize) -> Option<String> {
        self.replicas.text(index).map(ToString::to_string)
    }

    /// Returns the time at which the last state of a slot ends; 0 if all have ended by `now`.
    #[wasm_bindgen(js_name = endsAt)]
    pub fn ends_at(&self, slot: u32, now: f64) -> f64 {
        self.replicas.ends_at(slot, now as u64) as f64
    }

    /// Returns how many results there are.
    #[wasm_bindgen(js_name = resultsCount)]
    pub fn results_count(&self) -> usize {
        self.replicas.results().len() / redis_log::NUMBERS_PER_RESULT
    }

    /// Returns the address of the results' numbers.
    #[wasm_bindgen(js_name = resultsAddress)]
    pub fn results_address(&self) -> usize {
        self.replicas.results().as_ptr().addr()
    }
}

/// Grows the memory of wasm in large steps.
fn grow_ahead() {
    #[cfg(all(target_arch = "wasm32", not(test)))]
    crate::platform::grow_ahead();
}
