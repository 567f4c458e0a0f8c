//! Cleaning: expired states are removed a few at a time, as slots are used.

use super::{NO_SLOT, Slots};
use crate::growth::OutOfMemory;
use crate::key::open_reservations::NONE_OPEN;
use crate::number::NEVER;

/// The number of slots that one operation examines for expired states, while a cleaning is under way.
const SWEPT: u32 = 4;

/// The most slots that one operation frees, except an explicit cleaning: those it sweeps, and one to make room.
pub(crate) const FREED_AT_MOST: usize = SWEPT as usize + 1;

/// The schedule of cleanings, and the slot to examine next.
#[derive(Debug)]
pub(super) struct Cleaning {
    /// When the next cleaning starts: `NEVER` before the first operation, and while one is under way.
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
    /// Returns whether no cleaning is due or under way: `now < due <= now + period`, in one comparison. The upper bound
    /// keeps a clock that stepped back from putting the cleaning off.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(super) fn is_idle(&self, now: u64, period: u64) -> bool {
        self.due.wrapping_sub(now).wrapping_sub(1) < period
    }
}

/// The value of an expired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    /// The slot that was freed.
    pub slot: u32,
    /// The position of the policy.
    pub policy: usize,
    /// The count when the state was last changed.
    pub value: u64,
    /// When the state ended.
    pub expired_at: u64,
}

impl Slots {
    /// Frees slots whose states have ended, from slot `from` on and at most `most` of them. Returns the slot to go on
    /// from; `None` at the end. On an error, too, the slots freed so far are in `freed`.
    pub(crate) fn clean(&mut self, from: u32, most: u32, now: u64) -> Result<Option<u32>, OutOfMemory> {
        let before = self.len;
        for slot in from..self.made {
            if before - self.len == most {
                return Ok(Some(slot));
            }
            self.expire(slot, now)?;
        }
        Ok(None)
    }

    /// Frees a slot if its states have ended.
    fn expire(&mut self, slot: u32, now: u64) -> Result<(), OutOfMemory> {
        if self.is_occupied(slot) && !self.expire_open(slot, now)? && self.has_ended(slot, now) {
            self.reserve_reports(1)?;
            self.drop_entry(slot, true);
        }
        Ok(())
    }

    /// Makes room to report `slots` freed slots to the owner.
    pub(crate) fn reserve_reports(&mut self, slots: usize) -> Result<(), OutOfMemory> {
        self.freed.try_reserve(slots)?;
        if self.reports {
            self.expired.try_reserve(slots * self.policy_states.algorithms().len())?;
        }
        Ok(())
    }

    /// Frees a slot whose key the owner still maps to it. There must be room to report it.
    pub(super) fn drop_entry(&mut self, slot: u32, ended: bool) {
        if ended && self.reports {
            self.report(slot);
        }
        self.freed.push(slot);
        self.release(slot);
    }

    fn report(&mut self, slot: u32) {
        for policy in 0..self.policy_states.algorithms().len() {
            let entry = self.entries.get(slot);
            let ends_at = self.policy_states.row_ends_at(policy, entry, &NONE_OPEN);
            // A state that never started has not ended either.
            if ends_at > 0 {
                let value = self.policy_states.last_count(policy, entry, &NONE_OPEN);
                self.expired.push(Expired { slot, policy, value, expired_at: ends_at.min(self.stale_at(slot)) });
            }
        }
    }

    /// Sweeps before an operation on a key that has a slot.
    // In wasm it is compiled once, for its size; elsewhere it is inlined, for its speed. So is the next.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(super) fn sweep_before(&mut self, slot: Option<u32>, now: u64) {
        if let Some(slot) = slot {
            self.sweep(slot, now);
        }
    }

    /// Sweeps after an operation on a key that had no slot.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(super) fn sweep_after(&mut self, slot: Option<u32>, now: u64) {
        if slot.is_none() {
            self.sweep(self.taken.unwrap_or(NO_SLOT), now);
        }
    }

    /// Examines a few slots other than the one in use, if a cleaning is due or under way.
    #[inline]
    pub(crate) fn sweep(&mut self, in_use: u32, now: u64) {
        if !self.cleaning.is_idle(now, self.options.clean_period) {
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
            // A slot that cannot be reported for lack of memory stays until the next cleaning.
            if slot != in_use && self.expire(slot, now).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::room::PROBED;
    use super::*;
    use crate::policy::costs::PositionCosts;
    use crate::{Decision, Denied, Options, Policy};
    use core::sync::atomic::Ordering::Relaxed;

    /// Miri is some thousand times slower.
    const KEYS: u32 = if cfg!(miri) { 2_000 } else { 1_000_000 };

    fn hit(slots: &mut Slots, slot: Option<u32>, now: u64) -> Decision {
        slots.operate(slot, now, |slots| slots.hit::<OutOfMemory>(slot, None, &PositionCosts::All(1), now)).unwrap()
    }

    fn looked_at(slots: &Slots) -> u64 {
        slots.looked_at.load(Relaxed)
    }

    /// Returns slots full of keys, and a time at which all of them have expired.
    fn expired(options: Options) -> (Slots, u64) {
        let algorithm = Policy::fix_window_per_key(1, 1).unwrap().algorithm;
        let mut slots = Slots::new(vec![algorithm], Denied::Count, options).unwrap();
        for _ in 0..KEYS {
            hit(&mut slots, None, 0);
        }
        (slots, 60_000)
    }

    #[test]
    #[cfg_attr(miri, ignore = "has too many keys for Miri, which is a thousand times slower")]
    fn a_million_expired_keys_are_swept_a_few_at_a_time() {
        let (mut slots, now) = expired(Options::new());
        let mut hits = 0;
        while slots.len() > 1 {
            let before = (looked_at(&slots), slots.len());
            hit(&mut slots, Some(0), now);
            let (looked_at, freed) = (looked_at(&slots) - before.0, before.1 - slots.len());
            assert!(looked_at <= u64::from(SWEPT) && freed <= SWEPT, "one hit looked at {looked_at} slots");
            slots.freed.clear();
            hits += 1;
        }
        assert_eq!(hits, KEYS / SWEPT);
        assert!(slots.is_occupied(0));

        // No slot is examined until the next cleaning is due.
        hit(&mut slots, Some(0), now);
        let before = looked_at(&slots);
        hit(&mut slots, Some(0), now + 59_999);
        assert_eq!(looked_at(&slots), before);
    }

    #[test]
    #[cfg_attr(miri, ignore = "has too many keys for Miri, which is a thousand times slower")]
    fn a_new_key_of_a_full_limiter_looks_at_few_slots_too() {
        let (mut slots, now) = expired(Options::new().max_keys(KEYS.into()).unwrap());
        for _ in 0..1_000 {
            let before = looked_at(&slots);
            assert!(hit(&mut slots, None, now).allowed && slots.taken.take().is_some());
            assert!(looked_at(&slots) - before <= u64::from(SWEPT + PROBED + 1));
            slots.freed.clear();
        }
        assert_eq!(slots.evicted(), 0);
    }
}
