//! A bounded slab of entries, swept as it is used. It knows slots by number; whoever owns the keys maps them.

use super::chunked::Chunked;
use crate::algorithm::Act;
use crate::algorithm::rule::Rule;
use crate::algorithm::sliding_window::Log;
use crate::lanes::{Entry, Lanes};
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
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
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

    /// Asks, and takes if it fits. A key without a slot may be given one, which is answered too.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn hit(
        &mut self,
        slot: Option<u32>,
        rules: Option<&[Rule]>,
        cost: u64,
        now: u64,
    ) -> (Decision, Option<u32>) {
        let (slot, taken) = match slot {
            Some(slot) => (slot, None),
            None => match self.place_for(rules, cost, now) {
                Ok(slot) => (slot, Some(slot)),
                Err(decision) => return (decision, None),
            },
        };
        self.sweep(slot, now);
        (self.hit_slot(slot, rules, cost, now), taken)
    }

    /// A slot for a key that has none, or the decision about a hit that needs or gets none.
    fn place_for(&mut self, rules: Option<&[Rule]>, cost: u64, now: u64) -> Result<u32, Decision> {
        // A hit that leaves nothing behind must not push another key out.
        let decision = self.peek_entry(None, rules, cost, now);
        if !self.lanes.records(&decision, cost) {
            return Err(decision);
        }
        self.take(now).map_err(|room_at| {
            // Who only ever meets new keys must clean up as well.
            self.sweep(NO_SLOT, now);
            self.refused(&decision, room_at - now)
        })
    }

    /// The commonest hit of all, in the fewest steps: of a key that has its slot, under a single fixed window, when
    /// nothing is to be swept. Any other is not answered.
    #[cfg(all(feature = "js", target_arch = "wasm32"))]
    #[inline(always)]
    pub(crate) fn hit_window(&mut self, slot: i32, cost: u64, now: u64) -> Option<Decision> {
        let rests = self.cleaning.rests(now, self.options.clean_period);
        if slot < 0 || !rests || self.options.key_older_than.is_some() {
            return None;
        }
        self.lanes.hit_window(self.words.get_mut(slot as u32), cost, now)
    }

    /// Asks for a key that has a slot, and takes if it fits.
    ///
    /// Natively never inlined: one copy for all kinds of keys, which writes the decision where its caller wants it.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(never))]
    pub(crate) fn hit_slot(&mut self, slot: u32, rules: Option<&[Rule]>, cost: u64, now: u64) -> Decision {
        self.clear_if_stale(slot, now);
        let (lanes, mut entry) = self.parts(slot);
        let mut changed = false;
        let decision = lanes.hit(rules.unwrap_or(lanes.rules()), &mut entry, cost, now, &mut changed);
        if changed {
            self.touch(slot, now);
        }
        decision
    }

    /// What a hit would answer.
    pub(crate) fn peek(&self, slot: Option<u32>, rules: Option<&[Rule]>, cost: u64, now: u64) -> Decision {
        let decision = self.peek_entry(slot, rules, cost, now);
        let needs_room = slot.is_none() && self.lanes.records(&decision, cost);
        match needs_room.then(|| self.no_room_until(now)).flatten() {
            Some(room_at) => self.refused(&decision, room_at - now),
            None => decision,
        }
    }

    /// What a hit would answer if there is room.
    fn peek_entry(&self, slot: Option<u32>, rules: Option<&[Rule]>, cost: u64, now: u64) -> Decision {
        let rules = rules.unwrap_or(self.lanes.rules());
        self.with_entry(slot, now, |lanes, entry| lanes.hit(rules, entry, cost, now, &mut false))
    }

    pub(crate) fn get(&self, slot: Option<u32>, position: usize, now: u64) -> u64 {
        self.with_entry(slot, now, |lanes, entry| lanes.get(position, entry, now))
    }

    pub(crate) fn expires_at(&self, slot: Option<u32>, position: usize, now: u64) -> u64 {
        self.with_entry(slot, now, |lanes, entry| lanes.expires_at(position, entry, now))
    }

    /// Changes one policy's state without asking, as `inc` and `set` do. Also answers the slot of a key that had none.
    pub(crate) fn change(
        &mut self,
        slot: Option<u32>,
        position: usize,
        act: Act,
        now: u64,
    ) -> Result<(u64, Option<u32>), Error> {
        let (slot, taken) = self.open(slot, now)?;
        let (lanes, mut entry) = self.parts(slot);
        Ok((lanes.change(position, &mut entry, act, now), taken))
    }

    /// A slot to write to: the key's own, or one that is taken for it.
    fn open(&mut self, slot: Option<u32>, now: u64) -> Result<(u32, Option<u32>), Error> {
        let (slot, taken) = match slot {
            Some(slot) => (slot, None),
            None => {
                let slot = self.take(now).map_err(|_| Error::full(self.options.max_keys))?;
                (slot, Some(slot))
            }
        };
        self.clear_if_stale(slot, now);
        self.touch(slot, now);
        self.sweep(slot, now);
        Ok((slot, taken))
    }

    /// The states of a slot as plain numbers, one after the other, each behind how many there are.
    #[cfg(all(feature = "js", target_arch = "wasm32"))]
    pub(crate) fn export_flat(&self, slot: u32) -> Vec<i64> {
        let mut numbers = Vec::new();
        for position in 0..self.lanes.rules().len() {
            let start = numbers.len();
            numbers.push(0);
            self.lanes.export_one(position, &mut self.entry(slot), &mut numbers);
            numbers[start] = (numbers.len() - start - 1) as i64;
        }
        numbers
    }

    /// The states of a slot as plain numbers.
    pub(crate) fn export(&self, slot: u32) -> Vec<Vec<i64>> {
        self.lanes.export(&mut self.entry(slot))
    }

    /// Passes states from plain numbers if they can be read. Also answers the policies that start afresh.
    pub(crate) fn read<S: AsRef<str>>(
        &mut self,
        made_by: &[MadeBy<S>],
        states: &[impl AsRef<[i64]>],
        now: u64,
    ) -> Result<Imported, Error> {
        self.lanes.start_within_capacity();
        let (mut words, mut logs) = self.unused(now);
        let mut entry = Entry::Write(&mut words, &mut logs);
        let afresh = load_states(&self.lanes, &mut entry, made_by, states, now)?;
        let ended = self.lanes.all_end_at(&mut Entry::Read(&words, &logs), now) <= now;
        Ok(Imported { words, logs, ended, afresh })
    }

    /// Passes if a slab that refuses new keys has room for so many.
    pub(crate) fn check_room(&self, keys: usize) -> Result<(), Error> {
        let max_keys = self.options.max_keys;
        let fits = keys as u64 + u64::from(self.len) <= u64::from(max_keys);
        if fits || self.options.on_full == OnFull::Evict { Ok(()) } else { Err(Error::full(max_keys)) }
    }

    /// Puts states that were read into a key's slot. Also answers the slot of a key that had none.
    pub(crate) fn import(&mut self, slot: Option<u32>, states: Imported, now: u64) -> Result<Option<u32>, Error> {
        let (slot, taken) = self.open(slot, now)?;
        self.parts(slot).1.replace(states.words, states.logs);
        Ok(taken)
    }

    /// Whether a slot's states have ended, or lain untouched for too long.
    pub(crate) fn has_ended(&self, slot: u32, now: u64) -> bool {
        self.ends_at(slot, now) <= now
    }

    /// When a slot's states end, or have lain untouched for too long; `now` or earlier if it is so.
    pub(crate) fn ends_at(&self, slot: u32, now: u64) -> u64 {
        self.lanes.all_end_at(&mut self.entry(slot), now).min(self.stale_at(slot))
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
        Entry::Read(self.words.get(slot), self.logs.get(slot))
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn parts(&mut self, slot: u32) -> (&Lanes, Entry<'_>) {
        (&self.lanes, Entry::Write(self.words.get_mut(slot), self.logs.get_mut(slot)))
    }

    /// Reads a slot's entry, or that of a key never used.
    fn with_entry<R>(&self, slot: Option<u32>, now: u64, with: impl FnOnce(&Lanes, &mut Entry<'_>) -> R) -> R {
        match slot {
            Some(slot) if !self.is_stale(slot, now) => with(&self.lanes, &mut self.entry(slot)),
            _ => {
                let (words, logs) = self.unused(now);
                with(&self.lanes, &mut Entry::Read(&words, &logs))
            }
        }
    }

    /// The states of a key never used.
    fn unused(&self, now: u64) -> (Vec<u64>, Vec<Log>) {
        let mut words = vec![0; self.lanes.words()];
        let mut logs = Log::many(self.lanes.logs());
        self.lanes.clear(&mut Entry::Write(&mut words, &mut logs), now);
        (words, logs)
    }

    /// Notes that a slot is used now, if that matters.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn touch(&mut self, slot: u32, now: u64) {
        if self.options.key_older_than.is_some() {
            self.note_use(slot, now);
        }
    }

    #[cold]
    fn note_use(&mut self, slot: u32, now: u64) {
        if let Some(touched) = self.words.get_mut(slot).last_mut() {
            *touched = now;
        }
    }

    /// Clears a slot that lay untouched for too long.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn clear_if_stale(&mut self, slot: u32, now: u64) {
        if self.options.key_older_than.is_some() && self.is_stale(slot, now) {
            self.clear(slot, now);
        }
    }

    /// Makes a slot's states those of a key never used.
    #[cold]
    fn clear(&mut self, slot: u32, now: u64) {
        let (lanes, mut entry) = self.parts(slot);
        lanes.clear(&mut entry, now);
    }

    fn is_stale(&self, slot: u32, now: u64) -> bool {
        self.stale_at(slot) <= now
    }

    /// When a slot has lain untouched for too long.
    fn stale_at(&self, slot: u32) -> u64 {
        match (self.options.key_older_than, self.words.get(slot).last()) {
            (Some(older_than), Some(touched)) => touched.saturating_add(older_than),
            _ => NEVER,
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
        self.clear(slot, now);
        self.touch(slot, now);
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
        let (ends_at, slot, probed) = self.soonest(now);
        #[cfg(test)]
        {
            self.looked_at += u64::from(probed);
        }
        self.probe = self.after(self.probe, probed);
        if self.expire(slot, now) {
            return Ok(slot);
        }
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

    /// When a full slab that refuses new keys will have room for one, if it has none now.
    fn no_room_until(&self, now: u64) -> Option<u64> {
        let full = self.free == NO_SLOT && self.made >= self.options.max_keys;
        (full && self.options.on_full == OnFull::Deny).then(|| self.soonest(now).0).filter(|&ends_at| ends_at > now)
    }

    /// An ended slot of a few, or else the one of them that will end soonest: when, which, and how many were looked at.
    fn soonest(&self, now: u64) -> (u64, u32, u32) {
        let mut soonest = (NEVER, self.probe);
        for probed in 0..PROBED.min(self.made) {
            let slot = self.after(self.probe, probed);
            soonest = soonest.min((self.ends_at(slot, now), slot));
            if soonest.0 <= now {
                return (soonest.0, slot, probed + 1);
            }
        }
        (soonest.0, soonest.1, PROBED.min(self.made))
    }

    /// The slot so many after another, round and round.
    fn after(&self, slot: u32, many: u32) -> u32 {
        ((u64::from(slot) + u64::from(many)) % u64::from(self.made.max(1))) as u32
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
            let (value, ends_at) = self.lanes.last_value(policy, &mut self.entry(slot));
            self.expired.push(Expired { slot, policy, value, expired_at: ends_at.min(self.stale_at(slot)) });
        }
    }

    /// Looks at a few slots, if a cleaning is due or under way, but never at the one in use.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
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
            retry_after: decision.retry_after.map(|_| wait),
            reset_after: 0,
            violated: Default::default(),
            reason: Some(Reason::Full),
            ..*decision
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    const KEYS: u32 = 1_000_000;

    /// A slab that once was full of keys, all of which have expired at the time that is returned.
    fn expired(options: Options) -> (Slots, u64) {
        let mut slots = Slots::new(Policy::fix_window_per_key(1, 1).unwrap().into(), options);
        for _ in 0..KEYS {
            slots.hit(None, None, 1, 0);
        }
        (slots, 60_000)
    }

    #[test]
    fn a_million_expired_keys_are_swept_a_few_at_a_time() {
        let (mut slots, now) = expired(Options::new());
        let mut hits = 0;
        while slots.len() > 1 {
            let before = (slots.looked_at, slots.len());
            slots.hit(Some(0), None, 1, now);
            let (looked_at, freed) = (slots.looked_at - before.0, before.1 - slots.len());
            assert!(looked_at <= u64::from(SWEPT) && freed <= SWEPT, "one hit looked at {looked_at} slots");
            slots.freed.clear();
            hits += 1;
        }
        assert_eq!(hits, KEYS / SWEPT);
        assert!(slots.is_occupied(0));

        // It rests until the next is due.
        slots.hit(Some(0), None, 1, now);
        let looked_at = slots.looked_at;
        slots.hit(Some(0), None, 1, now + 59_999);
        assert_eq!(slots.looked_at, looked_at);
    }

    #[test]
    fn a_new_key_of_a_full_slab_looks_at_few_slots_too() {
        let (mut slots, now) = expired(Options::new().max_keys(KEYS.into()).unwrap());
        for _ in 0..1_000 {
            let looked_at = slots.looked_at;
            assert!(slots.hit(None, None, 1, now).1.is_some());
            assert!(slots.looked_at - looked_at <= u64::from(SWEPT + PROBED + 1));
            slots.freed.clear();
        }
        assert_eq!(slots.evicted(), 0);
    }
}
