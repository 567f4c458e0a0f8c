//! A bounded slab of entries, swept as it is used. It knows slots by number; whoever owns the keys maps them.

use super::chunked::Chunked;
use crate::algorithm::rule::Rule;
use crate::algorithm::sliding_window::Log;
use crate::lanes::{Entry, EntryMut, Lanes};
use crate::record::{MadeBy, load_states};
use crate::{Decision, Error, OnFull, Options, Policies, Reason};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// How many slots one operation looks at for expired states, while a cleaning is under way.
const SWEPT: u32 = 4;
/// How many slots are looked at when a full slab needs room.
const PROBED: u32 = 8;
/// Later than any time.
const NEVER: u64 = u64::MAX;
/// The end of the list of free slots.
const NO_SLOT: u32 = u32::MAX;

/// The slab. After each operation its owner must forget the keys of the slots in `freed`,
/// and only then give a key to the slot that the operation returned.
#[derive(Debug)]
pub(crate) struct Slots {
    lanes: Lanes,
    options: Options,
    words: Chunked<u64>,
    logs: Chunked<Log>,
    /// One bit a slot: whether it holds an entry.
    occupied: Vec<u64>,
    /// How many slots were ever made; those beyond hold nothing.
    made: u32,
    len: u32,
    /// The first free slot; each names the next in its first word.
    free: u32,
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
    looked_at: u64,
}

/// When slots are swept, and how far it has come.
#[derive(Debug)]
struct Cleaning {
    /// When the next one starts: `NEVER` before the first operation, and while one is under way.
    due: u64,
    under_way: bool,
    cursor: u32,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self { due: NEVER, under_way: false, cursor: 0 }
    }
}

impl Cleaning {
    /// Whether `now < due <= now + period`, in one comparison: nothing is due, nor put off by a clock that stepped back.
    #[inline]
    fn rests(&self, now: u64, period: u64) -> bool {
        self.due.wrapping_sub(now).wrapping_sub(1) < period
    }
}

/// What an expired state of a slot held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    pub(crate) slot: u32,
    pub(crate) policy: usize,
    pub(crate) value: u64,
    pub(crate) expired_at: u64,
}

/// States that were read from plain numbers and found right.
pub(crate) struct Imported {
    words: Vec<u64>,
    logs: Vec<Log>,
    /// Whether all of them have ended, so that there is nothing to keep.
    pub(crate) ended: bool,
    /// The names of the policies that start afresh.
    pub(crate) afresh: Vec<String>,
}

impl Slots {
    pub(crate) fn new(policies: Policies, options: Options) -> Self {
        let lanes = Lanes::new(policies);
        // The last word says when the entry was touched, if that matters. A free slot needs a word as well.
        let width = (lanes.words() + usize::from(options.key_older_than.is_some())).max(1);
        Self {
            words: Chunked::new(width),
            logs: Chunked::new(lanes.logs()),
            lanes,
            options,
            occupied: Vec::new(),
            made: 0,
            len: 0,
            free: NO_SLOT,
            freed: Vec::new(),
            expired: Vec::new(),
            reports: false,
            evicted: 0,
            cleaning: Cleaning::default(),
            probe: 0,
            #[cfg(test)]
            looked_at: 0,
        }
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The rules for one call that brings its own numbers.
    pub(crate) fn adjusted(&mut self, call: &Policies) -> Result<Vec<Rule>, Error> {
        self.lanes.adjusted(call)
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Asks, and takes if it fits. A key without a slot may be given one.
    #[inline]
    pub(crate) fn hit(
        &mut self,
        slot: Option<u32>,
        rules: Option<&[Rule]>,
        cost: u64,
        now: u64,
    ) -> (Decision, Option<u32>) {
        let Some(slot) = slot else { return self.first_hit(rules, cost, now) };
        self.sweep(slot, now);
        (self.hit_slot(slot, rules, cost, now), None)
    }

    /// Asks for a key that has no slot. It is given one if the hit leaves something behind.
    fn first_hit(&mut self, rules: Option<&[Rule]>, cost: u64, now: u64) -> (Decision, Option<u32>) {
        // A hit that leaves nothing behind must not push another key out.
        let decision = self.peek(None, rules, cost, now);
        if !self.lanes.records(&decision, cost) {
            return (decision, None);
        }
        match self.take(now) {
            Ok(slot) => {
                self.sweep(slot, now);
                (self.hit_slot(slot, rules, cost, now), Some(slot))
            }
            Err(room_at) => (self.refused(&decision, room_at.saturating_sub(now)), None),
        }
    }

    /// Asks for a key that has a slot, and takes if it fits.
    ///
    /// Never inlined: one copy for all kinds of keys, which writes the decision where its caller wants it.
    #[inline(never)]
    pub(crate) fn hit_slot(&mut self, slot: u32, rules: Option<&[Rule]>, cost: u64, now: u64) -> Decision {
        self.touch(slot, now);
        let (lanes, mut entry) = self.parts(slot);
        lanes.hit(rules.unwrap_or(lanes.rules()), &mut entry, cost, now, &mut false)
    }

    /// What a hit would answer.
    pub(crate) fn peek(&self, slot: Option<u32>, rules: Option<&[Rule]>, cost: u64, now: u64) -> Decision {
        let rules = rules.unwrap_or(self.lanes.rules());
        self.with_entry(slot, now, |lanes, entry| lanes.peek(rules, entry, cost, now))
    }

    pub(crate) fn get(&self, slot: Option<u32>, position: usize, now: u64) -> u64 {
        self.with_entry(slot, now, |lanes, entry| lanes.get(position, entry, now))
    }

    pub(crate) fn expires_at(&self, slot: Option<u32>, position: usize, now: u64) -> u64 {
        self.with_entry(slot, now, |lanes, entry| lanes.expires_at(position, entry, now))
    }

    /// Changes an entry without asking, as `inc` and `set` do. Also answers the slot of a key that had none.
    pub(crate) fn change(
        &mut self,
        slot: Option<u32>,
        now: u64,
        with: impl FnOnce(&Lanes, &mut EntryMut<'_>) -> u64,
    ) -> Result<(u64, Option<u32>), Error> {
        let taken = match slot {
            Some(_) => None,
            None => Some(self.take(now).map_err(|_| Error::Full { max_keys: self.options.max_keys })?),
        };
        let slot = slot.or(taken).unwrap_or(NO_SLOT);
        self.touch(slot, now);
        let (lanes, mut entry) = self.parts(slot);
        let count = with(lanes, &mut entry);
        self.sweep(slot, now);
        Ok((count, taken))
    }

    /// The states of a slot as plain numbers.
    pub(crate) fn export(&self, slot: u32) -> Vec<Vec<i64>> {
        self.lanes.export(self.entry(slot))
    }

    /// Passes states from plain numbers if they can be read. Also answers the policies that start afresh.
    pub(crate) fn read(&self, made_by: &[MadeBy], states: &[Vec<i64>], now: u64) -> Result<Imported, Error> {
        let (mut words, mut logs) = self.unused(now);
        let mut entry = EntryMut { words: &mut words, logs: &mut logs };
        let afresh = load_states(&self.lanes, &mut entry, made_by, states, now)?;
        let ended = self.lanes.all_end_at(Entry { words: &words, logs: &logs }, now) <= now;
        Ok(Imported { words, logs, ended, afresh })
    }

    /// Puts states that were read into a key's slot. Also answers the slot of a key that had none.
    pub(crate) fn import(&mut self, slot: Option<u32>, states: Imported, now: u64) -> Result<Option<u32>, Error> {
        let put = |_: &Lanes, entry: &mut EntryMut<'_>| {
            entry.words[..states.words.len()].copy_from_slice(&states.words);
            entry.logs.clone_from_slice(&states.logs);
            0
        };
        Ok(self.change(slot, now, put)?.1)
    }

    /// Whether a slot's states have ended, or lain untouched for too long.
    pub(crate) fn has_ended(&self, slot: u32, now: u64) -> bool {
        self.is_stale(slot, now) || self.lanes.all_end_at(self.entry(slot), now) <= now
    }

    /// Frees a slot whose key its owner has forgotten.
    pub(crate) fn release(&mut self, slot: u32) {
        if !self.is_occupied(slot) {
            return;
        }
        self.logs.get_mut(slot).fill_with(Log::default);
        if let Some(next) = self.words.get_mut(slot).first_mut() {
            *next = u64::from(self.free);
        }
        self.free = slot;
        self.len -= 1;
        self.occupied[slot as usize / 64] &= !(1 << (slot % 64));
    }

    /// Removes every ended entry, and answers how many there were.
    pub(crate) fn clean(&mut self, now: u64) -> u32 {
        let before = self.len;
        for slot in 0..self.made {
            self.expire(slot, now);
        }
        before - self.len
    }

    /// The occupied slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        (0..self.made).filter(|&slot| self.is_occupied(slot))
    }

    fn is_occupied(&self, slot: u32) -> bool {
        self.occupied.get(slot as usize / 64).is_some_and(|bits| bits >> (slot % 64) & 1 == 1)
    }

    fn entry(&self, slot: u32) -> Entry<'_> {
        Entry { words: self.words.get(slot), logs: self.logs.get(slot) }
    }

    #[inline]
    fn parts(&mut self, slot: u32) -> (&Lanes, EntryMut<'_>) {
        (&self.lanes, EntryMut { words: self.words.get_mut(slot), logs: self.logs.get_mut(slot) })
    }

    /// Reads a slot's entry, or that of a key never used.
    fn with_entry<R>(&self, slot: Option<u32>, now: u64, with: impl FnOnce(&Lanes, Entry<'_>) -> R) -> R {
        match slot {
            Some(slot) if !self.is_stale(slot, now) => with(&self.lanes, self.entry(slot)),
            _ => {
                let (words, logs) = self.unused(now);
                with(&self.lanes, Entry { words: &words, logs: &logs })
            }
        }
    }

    /// The states of a key never used.
    fn unused(&self, now: u64) -> (Vec<u64>, Vec<Log>) {
        let mut words = vec![0; self.lanes.words()];
        let mut logs = vec![Log::default(); self.lanes.logs()];
        self.lanes.clear(&mut EntryMut { words: &mut words, logs: &mut logs }, now);
        (words, logs)
    }

    /// Notes that a slot is used now, and clears it first if it lay untouched for too long.
    #[inline]
    fn touch(&mut self, slot: u32, now: u64) {
        if self.options.key_older_than.is_none() {
            return;
        }
        if self.is_stale(slot, now) {
            let (lanes, mut entry) = self.parts(slot);
            lanes.clear(&mut entry, now);
        }
        if let Some(touched) = self.words.get_mut(slot).last_mut() {
            *touched = now;
        }
    }

    fn is_stale(&self, slot: u32, now: u64) -> bool {
        match (self.options.key_older_than, self.words.get(slot).last()) {
            (Some(older_than), Some(touched)) => touched.saturating_add(older_than) <= now,
            _ => false,
        }
    }

    /// A slot for a new key, or when there might be one.
    fn take(&mut self, now: u64) -> Result<u32, u64> {
        let slot = if self.free != NO_SLOT {
            self.free
        } else if self.made < self.options.max_keys {
            self.make()
        } else {
            self.make_room(now)?
        };
        if slot == self.free {
            self.free = self.words.get(slot).first().map_or(NO_SLOT, |&next| next as u32);
        }
        self.len += 1;
        self.occupied[slot as usize / 64] |= 1 << (slot % 64);
        let (lanes, mut entry) = self.parts(slot);
        lanes.clear(&mut entry, now);
        if self.options.key_older_than.is_some()
            && let Some(touched) = self.words.get_mut(slot).last_mut()
        {
            *touched = now;
        }
        Ok(slot)
    }

    fn make(&mut self) -> u32 {
        let slot = self.made;
        self.made += 1;
        self.words.reserve(self.made);
        self.logs.reserve(self.made);
        self.occupied.resize(self.made.div_ceil(64) as usize, 0);
        slot
    }

    /// Frees a slot of a full slab: an ended one of a few, else by eviction the one that would end soonest.
    fn make_room(&mut self, now: u64) -> Result<u32, u64> {
        let mut soonest = (u64::MAX, self.probe);
        for _ in 0..PROBED.min(self.made) {
            let slot = self.probe;
            self.probe = (slot + 1) % self.made;
            if self.expire(slot, now) {
                return Ok(slot);
            }
            soonest = soonest.min((self.lanes.all_end_at(self.entry(slot), now), slot));
        }
        let (ends_at, slot) = soonest;
        if self.options.on_full == OnFull::Deny {
            // The next to ask looks there first, so what it was told is true.
            self.probe = slot;
            return Err(ends_at);
        }
        self.evicted += 1;
        self.freed.push(slot);
        self.release(slot);
        Ok(slot)
    }

    /// Frees a slot if its states have ended.
    fn expire(&mut self, slot: u32, now: u64) -> bool {
        #[cfg(test)]
        {
            self.looked_at += 1;
        }
        if !self.is_occupied(slot) || !self.has_ended(slot, now) {
            return false;
        }
        if self.reports {
            self.report(slot);
        }
        self.freed.push(slot);
        self.release(slot);
        true
    }

    fn report(&mut self, slot: u32) {
        for policy in 0..self.lanes.policies().len() {
            let (value, mut expired_at) = self.lanes.last_value(policy, self.entry(slot));
            if let (Some(older_than), Some(touched)) = (self.options.key_older_than, self.words.get(slot).last()) {
                expired_at = expired_at.min(touched.saturating_add(older_than));
            }
            self.expired.push(Expired { slot, policy, value, expired_at });
        }
    }

    /// Looks at a few slots, if a cleaning is due or under way, but never at the one in use.
    #[inline]
    pub(crate) fn sweep(&mut self, in_use: u32, now: u64) {
        if !self.cleaning.rests(now, self.options.clean_period) {
            self.sweep_some(in_use, now);
        }
    }

    #[cold]
    fn sweep_some(&mut self, in_use: u32, now: u64) {
        let latest = now + self.options.clean_period;
        // A clock that stepped back must not put the cleaning off.
        if !self.cleaning.under_way && self.cleaning.due > latest {
            self.cleaning.due = latest;
            return;
        }
        self.cleaning.under_way = true;
        self.cleaning.due = NEVER;
        for _ in 0..SWEPT {
            let slot = self.cleaning.cursor;
            if slot >= self.made {
                self.cleaning = Cleaning { due: latest, ..Cleaning::default() };
                return;
            }
            self.cleaning.cursor += 1;
            if slot != in_use {
                self.expire(slot, now);
            }
        }
    }

    /// The decision for a key that a full slab has no room for.
    fn refused(&self, decision: &Decision, wait: u64) -> Decision {
        Decision {
            allowed: false,
            count: 0,
            remaining: 0,
            retry_after: Some(wait.max(1)),
            reset_after: 0,
            violated: Default::default(),
            reason: Some(Reason::Full),
            ..*decision
        }
    }
}
