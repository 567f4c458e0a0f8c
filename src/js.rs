//! The wasm exports behind the npm package: they convert and delegate, and decide nothing.
//!
//! Only numbers and texts cross, so that the wasm holds no machinery for anything else. JavaScript
//! maps keys to slots; what an operation answers lies in a fixed area of the memory, which
//! JavaScript reads (`js/core/area.ts`).

// What is exported to JavaScript must be `pub`, though no Rust crate can reach it.
#![allow(unreachable_pub)]

mod account;
mod area;
mod convert;
mod policies;
#[cfg(all(test, target_arch = "wasm32"))]
mod tests;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use wasm_bindgen::prelude::*;

use crate::lanes::{EntryMut, Lanes};
use crate::store::slots::Slots;
use area::Area;
use convert::{complain, options_from, states_from, states_to};
use policies::PolicySet;

/// Why an operation did nothing, as a negative status; `js/core/area.ts` knows the same.
const BAD_COST: i32 = -1;
const BAD_TIME: i32 = -2;
/// Something else: `complaint` tells.
const FAILED: i32 = -3;

/// Gives up with a status that says why.
macro_rules! number_or {
    ($number:expr, $status:expr) => {
        match $number {
            Some(number) => number,
            None => return $status,
        }
    };
}
use number_or;

/// A slab of states, and the area its answers lie in.
#[wasm_bindgen]
pub struct Core {
    slots: Slots,
    area: Box<Area>,
}

#[wasm_bindgen]
impl Core {
    /// A slab for these policies. The options are a text of fields; each may be left out.
    pub fn make(policies: &PolicySet, options: &str, reports: bool) -> Option<Core> {
        let mut slots = Slots::new(policies.0.clone(), complain(options_from(options))?);
        slots.reports = reports;
        Some(Self { slots, area: Box::default() })
    }

    /// Where the area lies in the memory.
    pub fn area(&self) -> u32 {
        self.area.address()
    }

    /// Asks, and takes if it fits. A negative slot is a key that has none.
    pub fn hit(&mut self, slot: i32, cost: f64, now: f64) -> i32 {
        let cost = number_or!(convert::cost(cost), BAD_COST);
        let now = number_or!(convert::time(now), BAD_TIME);
        let (decision, taken) = self.slots.hit(u32::try_from(slot).ok(), None, cost, now);
        self.area.decide(&decision) | self.area.place(taken) | self.freed()
    }

    /// The same with other numbers, for this call only.
    pub fn hit_with(&mut self, slot: i32, cost: f64, now: f64, call: &PolicySet) -> i32 {
        let cost = number_or!(convert::cost(cost), BAD_COST);
        let now = number_or!(convert::time(now), BAD_TIME);
        let rules = number_or!(complain(self.slots.adjusted(&call.0)), FAILED);
        let (decision, taken) = self.slots.hit(u32::try_from(slot).ok(), Some(&rules), cost, now);
        self.area.decide(&decision) | self.area.place(taken) | self.freed()
    }

    /// What a hit would answer, under other numbers if they are given.
    pub fn peek(&mut self, slot: i32, cost: f64, now: f64) -> i32 {
        let cost = number_or!(convert::cost(cost), BAD_COST);
        let now = number_or!(convert::time(now), BAD_TIME);
        self.area.decide(&self.slots.peek(u32::try_from(slot).ok(), None, cost, now))
    }

    /// The same with other numbers, for this call only.
    pub fn peek_with(&mut self, slot: i32, cost: f64, now: f64, call: &PolicySet) -> i32 {
        let cost = number_or!(convert::cost(cost), BAD_COST);
        let now = number_or!(convert::time(now), BAD_TIME);
        let rules = number_or!(complain(self.slots.adjusted(&call.0)), FAILED);
        self.area.decide(&self.slots.peek(u32::try_from(slot).ok(), Some(&rules), cost, now))
    }

    /// Adds to one policy without asking.
    pub fn inc(&mut self, slot: i32, cost: f64, now: f64, position: usize) -> i32 {
        let cost = number_or!(convert::cost(cost), BAD_COST);
        if cost == 0 {
            return self.get(slot, now, position);
        }
        self.change(slot, now, |lanes, entry, now| lanes.inc(position, entry, cost, now))
    }

    /// Makes it as if `count` had just been used, or leaves `count` tokens.
    pub fn set(&mut self, slot: i32, count: f64, now: f64, position: usize) -> i32 {
        // What is no count at all is past every range, and is told as such.
        let count = convert::cost(count).unwrap_or(u64::MAX);
        number_or!(complain(self.slots.lanes().check_count(position, count)), FAILED);
        self.change(slot, now, |lanes, entry, now| lanes.set(position, entry, count, now))
    }

    /// The count.
    pub fn get(&mut self, slot: i32, now: f64, position: usize) -> i32 {
        let now = number_or!(convert::time(now), BAD_TIME);
        self.area.number(self.slots.get(u32::try_from(slot).ok(), position, now))
    }

    /// When the state ends; 0 when there is none.
    pub fn expires_at(&mut self, slot: i32, now: f64, position: usize) -> i32 {
        let now = number_or!(convert::time(now), BAD_TIME);
        self.area.number(self.slots.expires_at(u32::try_from(slot).ok(), position, now))
    }

    /// Frees the slot of a key that JavaScript has forgotten.
    pub fn release(&mut self, slot: u32) {
        self.slots.release(slot);
    }

    /// Frees every slot whose states have ended. How many is in the area.
    pub fn clean(&mut self, now: f64) -> i32 {
        let now = number_or!(convert::time(now), BAD_TIME);
        let removed = self.slots.clean(now);
        self.area.number(removed.into()) | self.freed()
    }

    /// The slots that have been freed; JavaScript forgets their keys before anything else.
    pub fn take_freed(&mut self) -> Vec<u32> {
        core::mem::take(&mut self.slots.freed)
    }

    /// What the expired ones among them held: slot, policy, value and time, one after the other.
    pub fn take_expired(&mut self) -> Vec<f64> {
        let mut numbers = Vec::new();
        for state in self.slots.expired.drain(..) {
            numbers.push(f64::from(state.slot));
            numbers.push(state.policy as f64);
            numbers.push(state.value as f64);
            numbers.push(state.expired_at as f64);
        }
        numbers
    }

    /// How many live keys were pushed out.
    pub fn evicted(&self) -> f64 {
        self.slots.evicted() as f64
    }

    /// The states of a slot as plain numbers; none if they have ended.
    pub fn export(&self, slot: u32, now: f64) -> Vec<f64> {
        match convert::time(now) {
            Some(now) if !self.slots.has_ended(slot, now) => states_to(&self.slots.export(slot)),
            _ => Vec::new(),
        }
    }

    /// Whether states could be put into a slot. Answers the names of the policies that would start afresh.
    pub fn check(&self, made_by: &PolicySet, states: &[f64], now: f64) -> Option<String> {
        let now = complain(convert::checked_time(now))?;
        let states = complain(states_from(states))?;
        Some(complain(self.slots.read(&made_by.made_by(), &states, now))?.afresh.join(convert::BETWEEN))
    }

    /// Puts states into a key's slot, unless they have ended.
    pub fn import(&mut self, slot: i32, made_by: &PolicySet, states: &[f64], now: f64) -> i32 {
        let now = number_or!(convert::time(now), BAD_TIME);
        let states = number_or!(complain(states_from(states)), FAILED);
        let states = number_or!(complain(self.slots.read(&made_by.made_by(), &states, now)), FAILED);
        if states.ended {
            return 0;
        }
        let taken = number_or!(complain(self.slots.import(u32::try_from(slot).ok(), states, now)), FAILED);
        self.area.place(taken) | self.freed()
    }

    fn change(&mut self, slot: i32, now: f64, with: impl FnOnce(&Lanes, &mut EntryMut<'_>, u64) -> u64) -> i32 {
        let now = number_or!(convert::time(now), BAD_TIME);
        let changed = self.slots.change(u32::try_from(slot).ok(), now, |lanes, entry| with(lanes, entry, now));
        let (count, taken) = number_or!(complain(changed), FAILED);
        self.area.number(count) | self.area.place(taken) | self.freed()
    }

    #[inline]
    fn freed(&self) -> i32 {
        if self.slots.freed.is_empty() { 0 } else { area::FREED }
    }
}

/// What was wrong when an operation failed: the code, a line's end, the message.
#[wasm_bindgen]
pub fn complaint() -> String {
    convert::complaint()
}
