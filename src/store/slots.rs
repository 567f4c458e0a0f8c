//! A bounded slab of entries, swept as it is used. It knows slots by number; whoever owns the keys maps them.

mod entries;
#[cfg(all(feature = "js", target_arch = "wasm32"))]
mod plain;
mod room;
mod states;
mod sweep;

use crate::algorithm::Act;
use crate::algorithm::log::Log;
use crate::algorithm::rule::Rule;
use crate::number::NEVER;
use crate::policy_states::{Entry, PolicyStates};
use crate::{Decision, Denied, Error, MAX_POLICIES, Options};
use alloc::vec;
use alloc::vec::Vec;
#[cfg(test)]
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use entries::Entries;
use room::refuse;

use sweep::Cleaning;
pub(crate) use sweep::Expired;

/// The end of the list of free slots.
const NO_SLOT: u32 = u32::MAX;

/// The most words that the states of one key take.
const MOST_WORDS: usize = 3 * MAX_POLICIES;

/// There is no room for another key.
#[derive(Debug)]
pub(crate) struct Full;

/// The slab. After each operation its owner must forget the keys of the slots in `freed`,
/// and only then give the key of the operation the slot in `taken`, if there is one.
#[derive(Debug)]
pub(crate) struct Slots {
    policy_states: PolicyStates,
    options: Options,
    entries: Entries,
    /// States that were read, before they take the place of others.
    staged: (Vec<u64>, Vec<Log>),
    /// One bit a slot: whether it holds an entry.
    occupied: Vec<u64>,
    /// How many slots were ever made; those beyond hold nothing.
    made: u32,
    len: u32,
    /// The first free slot; each names the next in its first word.
    free: u32,
    /// The slot that the last operation took for a key that had none, until the owner looks.
    pub(crate) taken: Option<u32>,
    /// Slots freed by sweeping or eviction since the owner last looked.
    pub(crate) freed: Vec<u32>,
    /// What the expired ones among them held, if anyone asks.
    pub(crate) expired: Vec<Expired>,
    /// Whether anyone asks.
    pub(crate) reports: bool,
    evicted: u64,
    cleaning: Cleaning,
    probe: u32,
    /// How many slots were looked at, ever, for a test that each operation looks at few.
    #[cfg(test)]
    looked_at: AtomicU64,
}

impl Slots {
    pub(crate) fn new(rules: Vec<Rule>, denied: Denied, options: Options) -> Self {
        let policy_states = PolicyStates::new(rules, denied);
        // The last word says when the entry was touched, if that matters. A free slot needs a word as well.
        let width = (policy_states.size().word + usize::from(options.key_older_than.is_some())).max(1);
        Self {
            entries: Entries::new(width, policy_states.size().log),
            staged: (vec![0; policy_states.size().word], Log::many(policy_states.size().log)),
            policy_states,
            options,
            occupied: Vec::new(),
            made: 0,
            len: 0,
            free: NO_SLOT,
            taken: None,
            freed: Vec::new(),
            expired: Vec::new(),
            reports: false,
            evicted: 0,
            cleaning: Cleaning::default(),
            probe: 0,
            #[cfg(test)]
            looked_at: AtomicU64::new(0),
        }
    }

    pub(crate) fn policy_states(&self) -> &PolicyStates {
        &self.policy_states
    }

    /// The rules for one call that brings its own numbers.
    pub(crate) fn adjusted(&mut self, call: &[Rule]) -> Option<Vec<Rule>> {
        self.policy_states.adjusted(call)
    }

    /// What is wrong when there is no room.
    pub(crate) fn full(&self) -> Error {
        Error::full(self.options.max_keys)
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Asks, and takes if it fits. A key without a slot may be given one.
    #[inline(never)]
    pub(crate) fn hit(&mut self, slot: Option<u32>, rules: Option<&[Rule]>, cost: u64, now: u64) -> Decision {
        if let Some(slot) = slot {
            self.sweep(slot, now);
            return self.hit_slot(slot, rules, cost, now);
        }
        // A hit that leaves nothing behind must not push another key out.
        let mut decision = self.peek_entry(None, rules, cost, now);
        if self.policy_states.records(&decision, cost) {
            let taken = self.take(now);
            // Who only ever meets new keys must clean up as well.
            self.sweep(taken.unwrap_or(NO_SLOT), now);
            match taken {
                Ok(slot) => decision = self.hit_slot(slot, rules, cost, now),
                Err(room_at) => refuse(&mut decision, room_at - now),
            }
        }
        decision
    }

    /// Asks for a key that has a slot, and takes if it fits.
    ///
    /// Never inlined: one copy for all kinds of keys, which writes the decision where its caller wants it.
    #[inline(never)]
    pub(crate) fn hit_slot(&mut self, slot: u32, rules: Option<&[Rule]>, cost: u64, now: u64) -> Decision {
        self.clear_if_stale(slot, now);
        let (policy_states, mut entry) = self.parts(slot);
        let mut changed = false;
        let decision = policy_states.hit(rules.unwrap_or(policy_states.rules()), &mut entry, cost, now, &mut changed);
        if changed {
            self.touch(slot, now);
        }
        decision
    }

    /// What a hit would answer.
    pub(crate) fn peek(&self, slot: Option<u32>, rules: Option<&[Rule]>, cost: u64, now: u64) -> Decision {
        let mut decision = self.peek_entry(slot, rules, cost, now);
        if slot.is_none()
            && self.policy_states.records(&decision, cost)
            && let Some(room_at) = self.no_room_until(now)
        {
            refuse(&mut decision, room_at - now);
        }
        decision
    }

    /// What a hit would answer if there is room.
    fn peek_entry(&self, slot: Option<u32>, rules: Option<&[Rule]>, cost: u64, now: u64) -> Decision {
        let rules = rules.unwrap_or(self.policy_states.rules());
        self.policy_states.hit(rules, &mut self.entry_of(slot, now, &mut None), cost, now, &mut false)
    }

    pub(crate) fn get(&self, slot: Option<u32>, position: usize, now: u64) -> u64 {
        self.policy_states.get(position, &mut self.entry_of(slot, now, &mut None), now)
    }

    pub(crate) fn expires_at(&self, slot: Option<u32>, position: usize, now: u64) -> u64 {
        let ends = self.policy_states.expires_at(position, &mut self.entry_of(slot, now, &mut None), now);
        slot.map_or(ends, |slot| ends.min(self.stale_at(slot)))
    }

    /// Changes one policy's state without asking, as `inc` and `set` do. A key without a slot is given one.
    pub(crate) fn change(&mut self, slot: Option<u32>, position: usize, act: Act, now: u64) -> Result<u64, Full> {
        let slot = self.open(slot, now)?;
        let (policy_states, mut entry) = self.parts(slot);
        Ok(policy_states.change(position, &mut entry, act, now))
    }

    /// A slot to write to: the key's own, or one that is taken for it.
    fn open(&mut self, slot: Option<u32>, now: u64) -> Result<u32, Full> {
        let slot = match slot {
            Some(slot) => slot,
            None => self.take(now).map_err(|_| Full)?,
        };
        self.clear_if_stale(slot, now);
        self.touch(slot, now);
        self.sweep(slot, now);
        Ok(slot)
    }

    /// Whether a slot's states have ended, or lain untouched for too long.
    pub(crate) fn has_ended(&self, slot: u32, now: u64) -> bool {
        self.ends_at(slot, now) <= now
    }

    /// When a slot's states end, or have lain untouched for too long; `now` or earlier if it is so.
    pub(crate) fn ends_at(&self, slot: u32, now: u64) -> u64 {
        #[cfg(test)]
        self.looked_at.fetch_add(1, Relaxed);
        self.policy_states.all_end_at(&mut self.entry(slot), now).min(self.stale_at(slot))
    }

    /// Frees a slot whose key its owner has forgotten.
    pub(crate) fn release(&mut self, slot: u32) {
        if !self.is_occupied(slot) {
            return;
        }
        self.entries.get_mut(slot).1.fill_with(Log::default);
        self.link(slot);
        self.len -= 1;
        self.flip(slot);
    }

    /// Puts a slot before the free ones.
    fn link(&mut self, slot: u32) {
        if let Some(next) = self.entries.get_mut(slot).0.first_mut() {
            *next = u64::from(self.free);
        }
        self.free = slot;
    }

    /// The occupied slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        (0..self.made).filter(|&slot| self.is_occupied(slot))
    }

    fn is_occupied(&self, slot: u32) -> bool {
        self.occupied.get(slot as usize / 64).is_some_and(|bits| bits >> (slot % 64) & 1 == 1)
    }

    /// Makes a free slot an occupied one, or the other way round.
    fn flip(&mut self, slot: u32) {
        self.occupied[slot as usize / 64] ^= 1 << (slot % 64);
    }

    fn entry(&self, slot: u32) -> Entry<'_> {
        let (words, logs) = self.entries.get(slot);
        Entry::Read(words, logs)
    }

    #[inline(always)]
    fn parts(&mut self, slot: u32) -> (&PolicyStates, Entry<'_>) {
        let (words, logs) = self.entries.get_mut(slot);
        (&self.policy_states, Entry::Write(words, logs))
    }

    /// A slot's entry, or that of a key never used, which is made in `unused`.
    fn entry_of<'a>(&'a self, slot: Option<u32>, now: u64, unused: &'a mut Option<[u64; MOST_WORDS]>) -> Entry<'a> {
        match slot {
            Some(slot) if !self.is_stale(slot, now) => self.entry(slot),
            _ => {
                let words = unused.insert([0; MOST_WORDS]);
                let words = &mut words[..self.policy_states.size().word];
                self.policy_states.clear(&mut Entry::Write(words, &mut []), now);
                Entry::Read(words, &[])
            }
        }
    }

    /// Notes that a slot is used now, if that matters.
    #[inline]
    fn touch(&mut self, slot: u32, now: u64) {
        if self.options.key_older_than.is_some() {
            self.note_use(slot, now);
        }
    }

    #[cold]
    fn note_use(&mut self, slot: u32, now: u64) {
        if let Some(touched) = self.entries.get_mut(slot).0.last_mut() {
            *touched = now;
        }
    }

    /// Clears a slot that lay untouched for too long.
    #[inline]
    fn clear_if_stale(&mut self, slot: u32, now: u64) {
        if self.options.key_older_than.is_some() && self.is_stale(slot, now) {
            self.clear(slot, now);
        }
    }

    /// Makes a slot's states those of a key never used.
    #[cold]
    fn clear(&mut self, slot: u32, now: u64) {
        let (policy_states, mut entry) = self.parts(slot);
        policy_states.clear(&mut entry, now);
    }

    fn is_stale(&self, slot: u32, now: u64) -> bool {
        self.stale_at(slot) <= now
    }

    /// When a slot has lain untouched for too long.
    fn stale_at(&self, slot: u32) -> u64 {
        match (self.options.key_older_than, self.entries.get(slot).0.last()) {
            (Some(older_than), Some(touched)) => touched.saturating_add(older_than),
            _ => NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    #[test]
    fn as_many_of_the_widest_states_as_there_can_be_are_read_without_a_slot() {
        for policy in [Policy::sliding_counter(9, 1).unwrap(), Policy::token_bucket(9, 1, 1 << 40).unwrap()] {
            let mut slots = Slots::new(vec![policy.rule; MAX_POLICIES], Denied::Free, Options::new());
            assert_eq!(slots.policy_states.size().word, MOST_WORDS);
            assert_eq!(slots.peek(None, None, 2, 0), slots.hit(None, None, 2, 0));
        }
    }
}
