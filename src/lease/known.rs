//! The keys of a holder: a bounded number, of which the least recently used are dropped.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap};

use super::traffic::Traffic;
use crate::growth::OutOfMemory;
use crate::{Decision, ReservationId};

/// The most slots for the times of last hits, by the hash of the key. A holder of few keys has fewer.
const TIMES: usize = 4_096;

/// Half of the first pause after a refused lease, in milliseconds. It is short, since a window may end at any time.
const FIRST_BACK_OFF: u64 = 50;

/// The number of refusals after which pauses no longer grow.
const MAX_REFUSALS: u32 = 5;

/// The most recently used keys that the search for a key to drop skips.
const MAX_SKIPPED: usize = 8;

/// The keys of a holder.
#[derive(Clone)]
pub(super) struct KnownKeys {
    capacity: usize,
    keys: HashMap<Arc<str>, Known>,
    /// The keys in the order of the search for one to drop.
    order: VecDeque<Arc<str>>,
    /// When a key of each hash was last hit. Keys may share a slot; a key may then look recently hit without being so.
    times: Vec<u64>,
}

impl fmt::Debug for KnownKeys {
    /// Without the times of last hits, which are many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.keys).finish()
    }
}

/// The data of one key.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Set by each use; the search for a key to drop skips the key once and clears it.
    is_used: bool,
    pub(super) denial: Option<Denial>,
    pub(super) lease: Option<LocalLease>,
    /// The traffic of the last ttl.
    pub(super) traffic: Traffic,
    /// The traffic of the longest turn.
    pub(super) slow_traffic: Traffic,
    /// The size of the last lease.
    pub(super) size: u64,
    pub(super) pending: Option<PendingRenewal>,
    pub(super) refusals: Refusals,
}

/// The refusals of a lease in a row. After each one the holder requests none for twice as long as before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refusals {
    count: u32,
    since: u64,
}

impl Refusals {
    pub(super) fn add(&mut self, now: u64) {
        (self.count, self.since) = ((self.count + 1).min(MAX_REFUSALS), now);
    }

    pub(super) fn is_backing_off(&self, now: u64) -> bool {
        self.count > 0 && now.abs_diff(self.since) < FIRST_BACK_OFF << self.count
    }
}

/// A renewal that was sent and has no reply yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRenewal {
    pub(super) since: u64,
    /// The part of the requested amount that no waiting hit has claimed.
    pub(super) unclaimed: u64,
}

/// A denial of all hits of at least `cost`.
#[derive(Clone, Debug)]
pub(super) struct Denial {
    pub(super) cost: u64,
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) decision: Decision,
}

/// A lease as the holder spends it. Times are those of the holder's clock.
#[derive(Clone, Debug)]
pub(super) struct LocalLease {
    pub(super) id: ReservationId,
    pub(super) amount: u64,
    pub(super) left: u64,
    /// The amount spent since the last report.
    pub(super) spent: u64,
    /// The amount spent since `decision`.
    pub(super) spent_since_decision: u64,
    /// When the request for it was sent.
    pub(super) sent_at: u64,
    /// The time of the last operation on it.
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

    /// Returns the data of a key that is known or was hit within the last `period`; `None` otherwise, or without memory.
    pub(super) fn get_recent(&mut self, key: &str, now: u64, period: u64) -> Option<&mut Known> {
        if !self.keys.contains_key(key) {
            let is_recent = self.touch(key, now, period).ok()?;
            if !is_recent || self.add(key).is_err() {
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

    /// Records a hit of a key. Returns whether the last one was less than `period` ago.
    fn touch(&mut self, key: &str, now: u64, period: u64) -> Result<bool, OutOfMemory> {
        if self.times.is_empty() {
            let slots = self.capacity.clamp(1, TIMES);
            self.times.try_reserve_exact(slots)?;
            self.times.resize(slots, 0);
        }
        let place = DefaultHashBuilder::hash_one(self.keys.hasher(), key) as usize % self.times.len();
        let Some(time) = self.times.get_mut(place) else { return Ok(false) };
        let last = core::mem::replace(time, now);
        Ok(last > 0 && now.abs_diff(last) < period)
    }

    /// Adds a key, and drops others if the capacity is reached.
    fn add(&mut self, key: &str) -> Result<(), OutOfMemory> {
        if self.capacity == 0 {
            return Ok(());
        }
        while self.keys.len() >= self.capacity {
            self.drop_one();
        }
        self.keys.try_reserve(1)?;
        self.order.try_reserve(1)?;
        let key: Arc<str> = key.into();
        self.order.push_back(Arc::clone(&key));
        self.keys.insert(key, Known::default());
        Ok(())
    }

    /// Drops a key that was not used since the last search, or else the next in order. Its lease is charged at its end.
    fn drop_one(&mut self) {
        for skipped in 0..=MAX_SKIPPED {
            let Some(key) = self.order.pop_front() else { return };
            match self.keys.get_mut(&key) {
                Some(known) if known.is_used && skipped < MAX_SKIPPED => {
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
