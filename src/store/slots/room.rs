//! Room for new keys in a slab that holds only so many.

use super::{NEVER, NO_SLOT, Slots};
use crate::{Decision, Error, OnFull, Reason};

/// How many slots are looked at when a full slab needs room.
pub(super) const PROBED: u32 = 8;

impl Slots {
    /// A slot for a new key, or when there might be one.
    pub(super) fn take(&mut self, now: u64) -> Result<u32, u64> {
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
    pub(super) fn no_room_until(&self, now: u64) -> Option<u64> {
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

    /// Passes if a slab that refuses new keys has room for so many.
    pub(crate) fn check_room(&self, keys: usize) -> Result<(), Error> {
        let max_keys = self.options.max_keys;
        let fits = keys as u64 + u64::from(self.len) <= u64::from(max_keys);
        if fits || self.options.on_full == OnFull::Evict { Ok(()) } else { Err(Error::full(max_keys)) }
    }

    /// The decision for a key that a full slab has no room for.
    pub(super) fn refused(&self, decision: &Decision, wait: u64) -> Decision {
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
