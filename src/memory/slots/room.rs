//! Room for new keys in a bounded number of slots.

use super::sweep::FREED_AT_MOST;
use super::{NO_SLOT, SlotError, Slots};
use crate::growth::{OutOfMemory, push};
use crate::number::NEVER;
use crate::policy::costs::PositionCosts;
use crate::{Decision, OnFull, Reason};

/// The number of slots that are examined to make room where no slot is free.
pub(super) const PROBED: u32 = 8;

/// A slot that can be freed for a new key.
struct Candidate {
    slot: u32,
    ends_at: u64,
    /// Whether it has an exception, so that it is not evicted.
    is_excepted: bool,
    /// Whether a hit would be denied, so that it is evicted only if no other can be: a flood of new keys frees none.
    is_denied: bool,
    /// The slot after the last one examined.
    next: u32,
}

/// Why there is no slot for a new key.
pub(super) enum NoSlot {
    /// There are `max_keys` keys until that time.
    FullUntil(u64),
    OutOfMemory,
}

impl From<OutOfMemory> for NoSlot {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<NoSlot> for SlotError {
    fn from(no_slot: NoSlot) -> Self {
        match no_slot {
            NoSlot::FullUntil(_) => Self::Full,
            NoSlot::OutOfMemory => Self::OutOfMemory,
        }
    }
}

impl Slots {
    /// Takes a slot for a new key.
    pub(super) fn take(&mut self, now: u64) -> Result<u32, NoSlot> {
        if self.free == NO_SLOT {
            self.make_room(now)?;
        }
        let slot = self.free;
        let next = self.entries.get(slot).words.first().map_or(NO_SLOT, |&next| next as u32);
        self.len += 1;
        self.flip(slot);
        // A hit on a free slot would overwrite this number. No owner does that, but it is checked all the
        // same.
        self.free = if next < self.made && !self.is_occupied(next) { next } else { NO_SLOT };
        self.taken = Some(slot);
        Ok(slot)
    }

    /// Frees an ended slot among a few, if there is no memory for another.
    fn reuse(&mut self, now: u64) -> Result<(), NoSlot> {
        let Candidate { slot, ends_at, next, .. } = self.soonest(now);
        self.probe = next;
        if self.made == 0 || ends_at > now {
            return Err(NoSlot::OutOfMemory);
        }
        self.reserve_reports(1)?;
        self.drop_entry(slot, true);
        Ok(())
    }

    /// Adds a free slot. At `max_keys`, examines a few slots and frees one: an ended one if there is one, else, by
    /// eviction, the one that would end soonest.
    fn make_room(&mut self, now: u64) -> Result<(), NoSlot> {
        if self.made < self.options.max_keys {
            return self.add().or_else(|OutOfMemory| self.reuse(now));
        }
        let Candidate { slot, ends_at, is_excepted, next, .. } = self.soonest(now);
        let ended = ends_at <= now;
        if !ended && (is_excepted || self.options.on_full == OnFull::Deny) {
            // The next new key examines this slot first, so that the wait is exact.
            self.probe = slot;
            return Err(NoSlot::FullUntil(ends_at));
        }
        self.reserve_reports(1)?;
        self.probe = next;
        self.evicted += u64::from(!ended);
        self.note_evicted(slot, now);
        self.drop_entry(slot, ended);
        Ok(())
    }

    fn add(&mut self) -> Result<(), OutOfMemory> {
        let slot = self.made;
        self.entries.reserve(slot + 1)?;
        if slot.is_multiple_of(64) {
            push(&mut self.occupied, 0)?;
        }
        self.made += 1;
        self.link(slot);
        Ok(())
    }

    /// Returns the number of slots after one more key gets a slot.
    pub(crate) fn slots_with_one_more(&self) -> u32 {
        let adds = self.free == NO_SLOT && self.made < self.options.max_keys;
        self.made + u32::from(adds)
    }

    /// Makes room for `keys` new keys, and for their extras if `with_extras` is set. Returns the number of slots after
    /// they are added.
    pub(crate) fn reserve(&mut self, keys: usize, with_extras: bool) -> Result<u32, OutOfMemory> {
        let free = (self.made - self.len) as usize;
        let added = u32::try_from(keys.saturating_sub(free)).unwrap_or(u32::MAX);
        let slots = self.made + added.min(self.options.max_keys - self.made);
        self.entries.reserve(slots)?;
        if with_extras {
            self.extras.reserve(slots)?;
        }
        self.occupied.try_reserve(slots.div_ceil(64) as usize - self.occupied.len())?;
        self.reserve_reports(FREED_AT_MOST)?;
        Ok(slots)
    }

    /// Returns when there will be room for a new key, if new keys are denied; `None` if it has room now.
    pub(super) fn no_room_until(&self, now: u64) -> Option<u64> {
        let full = self.free == NO_SLOT && self.made >= self.options.max_keys;
        let denies = full && (self.options.on_full == OnFull::Deny || !self.extras.is_empty());
        let soonest = denies.then(|| self.soonest(now)).filter(|soonest| soonest.ends_at > now)?;
        (soonest.is_excepted || self.options.on_full == OnFull::Deny).then_some(soonest.ends_at)
    }

    /// Examines a few slots. Returns the first ended one, or else the one that will end soonest; where keys are evicted, one
    /// that is not denied now comes before one that is. Slots with exceptions are passed over: the one among them that ends
    /// first is returned only if there are no others.
    fn soonest(&self, now: u64) -> Candidate {
        let evicts = self.options.on_full == OnFull::Evict;
        let mut soonest =
            Candidate { slot: self.probe, ends_at: NEVER, is_excepted: true, is_denied: true, next: self.probe };
        let mut left = PROBED.min(self.made);
        for _ in 0..self.made {
            if left == 0 {
                break;
            }
            let slot = soonest.next;
            // Wraps around.
            soonest.next = if slot + 1 < self.made { slot + 1 } else { 0 };
            let is_excepted = self.is_excepted(slot, now);
            if is_excepted && !soonest.is_excepted {
                continue;
            }
            let ends_at = self.ends_at(slot, now);
            let is_first = soonest.is_excepted && !is_excepted;
            if ends_at < soonest.ends_at || is_first || soonest.is_denied {
                let is_denied = evicts && !is_excepted && ends_at > now && self.is_denied(slot, now);
                if is_first || (is_denied, ends_at) < (soonest.is_denied, soonest.ends_at) {
                    soonest = Candidate { slot, ends_at, is_excepted, is_denied, ..soonest };
                }
            }
            if ends_at <= now {
                break;
            }
            left -= u32::from(!is_excepted);
        }
        soonest
    }

    /// Returns whether a hit on a slot would be denied.
    fn is_denied(&self, slot: u32, now: u64) -> bool {
        self.peek(Some(slot), None, &PositionCosts::All(1), now).is_ok_and(|decision| !decision.allowed)
    }

    /// Returns whether there is room for `keys` new keys.
    pub(crate) fn has_room_for(&self, keys: usize) -> bool {
        let max_keys = self.options.max_keys;
        let fits = keys as u64 + u64::from(self.len) <= u64::from(max_keys);
        fits || self.options.on_full == OnFull::Evict
    }
}

/// Turns a decision into the denial of a key for which there is no room.
pub(super) fn deny_full(decision: &mut Decision, wait: u64) {
    decision.allowed = false;
    decision.count = 0;
    decision.remaining = 0;
    decision.retry_after = decision.retry_after.map(|_| wait);
    decision.reset_after = 0;
    decision.more_after = wait;
    decision.violated = Default::default();
    decision.reason = Some(Reason::Full);
}
