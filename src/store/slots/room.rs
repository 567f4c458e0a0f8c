//! Room for new keys in a slab that holds only so many.

use super::{NO_SLOT, Slots};
use crate::number::NEVER;
use crate::{Decision, OnFull, Reason};

/// How many slots are looked at when a full slab needs room.
pub(super) const PROBED: u32 = 8;

/// A slot of a full slab that can be freed for a new key.
struct Candidate {
    slot: u32,
    ends_at: u64,
    /// The slot after the last one looked at.
    next: u32,
}

impl Slots {
    /// A slot for a new key, or when there might be one.
    pub(super) fn take(&mut self, now: u64) -> Result<u32, u64> {
        if self.free == NO_SLOT {
            self.make_room(now)?;
        }
        let slot = self.free;
        self.free = self.entries.get(slot).0.first().map_or(NO_SLOT, |&next| next as u32);
        self.len += 1;
        self.flip(slot);
        self.clear(slot, now);
        self.touch(slot, now);
        self.taken = Some(slot);
        Ok(slot)
    }

    /// Adds a free slot. Where there may be no more, frees one: an ended one of a few, else by eviction the one of them
    /// that would end soonest.
    fn make_room(&mut self, now: u64) -> Result<(), u64> {
        if self.made < self.options.max_keys {
            self.add();
            return Ok(());
        }
        let Candidate { slot, ends_at, next } = self.soonest(now);
        let ended = ends_at <= now;
        if !ended && self.options.on_full == OnFull::Deny {
            // The next to ask looks there first, so what this one is told is true.
            self.probe = slot;
            return Err(ends_at);
        }
        self.probe = next;
        self.evicted += u64::from(!ended);
        self.drop_entry(slot, ended);
        Ok(())
    }

    fn add(&mut self) {
        let slot = self.made;
        self.made += 1;
        self.entries.reserve(self.made);
        if slot.is_multiple_of(64) {
            self.occupied.push(0);
        }
        self.link(slot);
    }

    /// When a full slab that refuses new keys will have room for one, if it has none now.
    pub(super) fn no_room_until(&self, now: u64) -> Option<u64> {
        let full = self.free == NO_SLOT && self.made >= self.options.max_keys;
        let refuses = full && self.options.on_full == OnFull::Deny;
        refuses.then(|| self.soonest(now).ends_at).filter(|&ends_at| ends_at > now)
    }

    /// An ended slot of a few, or else the one of them that will end soonest.
    fn soonest(&self, now: u64) -> Candidate {
        let mut soonest = Candidate { slot: self.probe, ends_at: NEVER, next: self.probe };
        for _ in 0..PROBED.min(self.made) {
            let slot = soonest.next;
            let ends_at = self.ends_at(slot, now);
            // Round and round.
            soonest.next = if slot + 1 < self.made { slot + 1 } else { 0 };
            if ends_at < soonest.ends_at {
                soonest = Candidate { slot, ends_at, ..soonest };
            }
            if ends_at <= now {
                break;
            }
        }
        soonest
    }

    /// Passes if a slab that refuses new keys has room for so many.
    pub(crate) fn has_room_for(&self, keys: usize) -> bool {
        let max_keys = self.options.max_keys;
        let fits = keys as u64 + u64::from(self.len) <= u64::from(max_keys);
        fits || self.options.on_full == OnFull::Evict
    }
}

/// Makes a decision that of a key which a full slab has no room for.
pub(super) fn refuse(decision: &mut Decision, wait: u64) {
    decision.allowed = false;
    decision.count = 0;
    decision.remaining = 0;
    decision.retry_after = decision.retry_after.map(|_| wait);
    decision.reset_after = 0;
    decision.violated = Default::default();
    decision.reason = Some(Reason::Full);
}
