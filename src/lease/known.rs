//! The keys that a holder knows something of: a bounded number, of which the least used are dropped.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap};

use super::traffic::Traffic;
use crate::memory::OutOfMemory;
use crate::{Decision, ReservationId};

/// How many times of last hits are kept, by the hash of their keys: a power of two.
const TIMES: usize = 4_096;

/// How many keys that were used since are passed over in search of one to drop.
const PASSED_OVER: usize = 8;

/// What is known of some keys.
#[derive(Debug)]
pub(super) struct KnownKeys {
    capacity: usize,
    keys: HashMap<Rc<str>, Known>,
    /// The keys in the order in which they came.
    order: VecDeque<Rc<str>>,
    /// When a key of each hash was last hit. Keys may share a time, and then only seem to be in use.
    times: Vec<u64>,
}

/// What is known of one key.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Set by each use; the search for a key to drop passes over it once.
    is_used: bool,
    pub(super) denial: Option<Denial>,
    pub(super) held: Option<Held>,
    pub(super) traffic: Traffic,
    /// The size of the last lease.
    pub(super) size: u64,
    pub(super) renewing: Option<Renewing>,
}

/// A renewal that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewing {
    pub(super) since: u64,
    /// How much of it no waiting hit has claimed.
    pub(super) unclaimed: u64,
}

/// A denial of hits of a cost or more.
#[derive(Debug)]
pub(super) struct Denial {
    pub(super) cost: u64,
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) decision: Decision,
}

/// A lease, as its holder knows it. Times are the holder's.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) id: ReservationId,
    pub(super) amount: u64,
    pub(super) left: u64,
    /// What was spent since the last report.
    pub(super) spent: u64,
    /// What was spent since the decision.
    pub(super) shown: u64,
    pub(super) asked: u64,
    /// The last time that was seen.
    pub(super) latest: u64,
    pub(super) until: u64,
    pub(super) decision: Decision,
    pub(super) counts_down: bool,
}

impl KnownKeys {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, keys: HashMap::new(), order: VecDeque::new(), times: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Known> {
        self.keys.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Known> {
        let known = self.keys.get_mut(key)?;
        known.is_used = true;
        Some(known)
    }

    /// Returns what is known of a key that was hit within the last `period`; `None` if it was not, or there is no memory.
    pub(super) fn warm(&mut self, key: &str, now: u64, period: u64) -> Option<&mut Known> {
        if !self.keys.contains_key(key) {
            let is_warm = self.touch(key, now, period).ok()?;
            if !is_warm || self.add(key).is_err() {
                return None;
            }
        }
        self.get_mut(key)
    }

    /// Remembers a denial.
    pub(super) fn deny(
        &mut self,
        key: &str,
        cost: u64,
        decision: Decision,
        since: u64,
        lasts: u64,
    ) -> Result<(), OutOfMemory> {
        if !self.keys.contains_key(key) {
            self.add(key)?;
        }
        if let Some(known) = self.get_mut(key) {
            known.denial = Some(Denial { cost, since, until: since + lasts, decision });
        }
        Ok(())
    }

    /// Notes a hit of a key, and returns whether one came shortly before.
    fn touch(&mut self, key: &str, now: u64, period: u64) -> Result<bool, OutOfMemory> {
        if self.times.is_empty() {
            self.times.try_reserve_exact(TIMES)?;
            self.times.resize(TIMES, 0);
        }
        let place = DefaultHashBuilder::hash_one(self.keys.hasher(), key) as usize % TIMES;
        let Some(time) = self.times.get_mut(place) else { return Ok(false) };
        let last = core::mem::replace(time, now);
        Ok(last > 0 && now.abs_diff(last) < period)
    }

    /// Adds a key, for which room is made.
    fn add(&mut self, key: &str) -> Result<(), OutOfMemory> {
        if self.capacity == 0 {
            return Ok(());
        }
        while self.keys.len() >= self.capacity {
            self.drop_one();
        }
        self.keys.try_reserve(1)?;
        self.order.try_reserve(1)?;
        let key: Rc<str> = key.into();
        self.order.push_back(Rc::clone(&key));
        self.keys.insert(key, Known::default());
        Ok(())
    }

    /// Drops a key that was not used since the last search, or else the oldest. A lease of it is charged by its end.
    fn drop_one(&mut self) {
        for passed in 0..=PASSED_OVER {
            let Some(key) = self.order.pop_front() else { return };
            match self.keys.get_mut(&key) {
                Some(known) if known.is_used && passed < PASSED_OVER => {
                    known.is_used = false;
                    self.order.push_back(key);
                }
                _ => {
                    self.keys.remove(&key);
                    return;
                }
            }
        }
    }
}
