//! A policy's state under another `scale` than its own.
//!
//! A policy whose `scale` changes must find its state again when the scale changes back, or each change would admit a
//! whole limit anew. So the state of the former scale is kept beside the converted one, and every cost that is charged
//! to the policy is charged to it as well, whether it fits or not. When the policy returns to that scale, it is the
//! state.
//!
//! It is kept for one scale after it was last in force, and at least until it ends. Beside open reservations it is kept
//! until their charges have ended, also if they are extended. Of several states, the one of the longest scale is kept.
//! Buckets need none: their content converts exactly, but for a rounding against the client.

use crate::algorithm::log::Log;
use crate::algorithm::rule::Rule;
use crate::algorithm::{Act, Outcome, Push};
use crate::memory::{OutOfMemory, push};
use crate::number::{MAX, in_range};
use crate::policy::schema::MAX_STORED_LOG;
use crate::policy_states::{Entry, EntryMut, PolicyStates};
use crate::scale::Scale;
use alloc::vec::Vec;

/// A state under another scale.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    /// The position of its policy.
    pub(crate) position: usize,
    /// The policy's rule with the other scale.
    rule: Rule,
    /// The time until which it is kept.
    pub(crate) until: u64,
    words: [u64; 3],
    log: Log,
}

impl Earlier {
    /// Appends to `list` a state of the policy at `position`, made under `scale`. `open_until` is the end of the last
    /// open reservation. Returns whether the numbers are valid.
    pub(crate) fn read(
        list: &mut Vec<Self>,
        position: usize,
        own: &Rule,
        scale: Scale,
        numbers: &[i64],
        open_until: Option<u64>,
        now: u64,
    ) -> Result<bool, OutOfMemory> {
        let Some(rule) = with_scale(own, scale, numbers) else { return Ok(false) };
        let mut earlier = Self { position, rule, until: 0, words: [0; 3], log: Log::EMPTY };
        rule.clear(earlier.entry_mut(), now);
        let valid = rule.import(earlier.entry_mut(), rule.scale(), numbers)?;
        let ends_at = rule.ends_at(earlier.entry(), now);
        if ends_at > now || open_until.is_some() {
            earlier.until = (now + rule.scale()).max(ends_at).min(MAX);
            earlier.keep_beside(open_until, now);
        }
        push(list, earlier)?;
        Ok(valid)
    }

    /// Appends to `list` a state that [`Earlier::export`] wrote, from the number after the position on. Returns whether
    /// the numbers are valid.
    pub(crate) fn import(
        list: &mut Vec<Self>,
        position: usize,
        own: &Rule,
        numbers: &[i64],
        now: u64,
    ) -> Result<bool, OutOfMemory> {
        let Some((&[scale, until], numbers)) = numbers.split_first_chunk() else { return Ok(false) };
        let Some(scale) = Scale::from_number(scale, own.position()).filter(|_| in_range(until)) else {
            return Ok(false);
        };
        let valid = Self::read(list, position, own, scale, numbers, None, now)?;
        if let Some(earlier) = list.last_mut() {
            earlier.until = until as u64;
        }
        Ok(valid)
    }

    /// Passes the policy's position, the scale, the end and the state to `push` as plain numbers.
    pub(crate) fn export(&self, push: Push<'_>) -> Result<(), OutOfMemory> {
        push(self.position as i64)?;
        push(self.scale().number())?;
        push(self.until as i64)?;
        self.rule.export(self.entry(), push)
    }

    pub(crate) fn scale(&self) -> Scale {
        self.rule.stored_scale()
    }

    /// Returns whether the state is still kept.
    pub(crate) fn is_live(&self, now: u64) -> bool {
        self.until > now
    }

    /// Returns whether the state has ended by its own scale.
    pub(crate) fn has_ended(&self, now: u64) -> bool {
        self.rule.ends_at(self.entry(), now) <= now
    }

    /// Returns the count by its own scale.
    pub(crate) fn count(&self, now: u64) -> u64 {
        self.rule.peek(self.entry(), Act::LOOK, now).count
    }

    /// Charges a cost, of which `granted` was reserved. With `prepares` it only makes room for the cost, so that charging it
    /// next cannot run out of memory.
    fn charge(&mut self, cost: u64, granted: u64, now: u64, prepares: bool) -> Result<(), OutOfMemory> {
        let (rule, act) = (self.rule.keeping(self.entry(), granted), Act::Inc(cost));
        if prepares {
            return rule.prepare(self.entry_mut(), act, now);
        }
        rule.act(self.entry_mut(), act, now, &mut Outcome::default());
        Ok(())
    }

    /// Keeps it until the charges of reservations have ended, of which the last ends at `open_until`. A sliding counter
    /// counts a charge for up to two scales.
    pub(crate) fn keep_beside(&mut self, open_until: Option<u64>, now: u64) {
        if let Some(open_until) = open_until {
            self.until = self.until.max(self.latest_until(open_until.max(now)));
        }
    }

    /// Shortens the time for which it is kept to two scales from `now`: a clock that was far ahead must not keep it for ever.
    pub(crate) fn shorten(&mut self, now: u64) {
        self.until = self.until.min(self.latest_until(now));
    }

    /// Returns the time until which it is kept at most after a charge at `now`.
    fn latest_until(&self, now: u64) -> u64 {
        (now + 2 * self.rule.scale()).min(MAX)
    }

    fn entry(&self) -> Entry<'_> {
        Entry { words: &self.words, logs: core::slice::from_ref(&self.log) }
    }

    fn entry_mut(&mut self) -> EntryMut<'_> {
        EntryMut { words: &mut self.words, logs: core::slice::from_mut(&mut self.log) }
    }
}

/// Returns the rule with another scale; `None` for algorithms without earlier states.
fn with_scale(own: &Rule, scale: Scale, numbers: &[i64]) -> Option<Rule> {
    match *own {
        Rule::Window(window) => Some(Rule::Window(window.with_scale(scale))),
        Rule::SlidingWindow(window) => {
            // Another limit must not shorten the log: the limit may change back as well. And a state that is stored and
            // read again must keep as many hits as one that is not.
            let total = numbers.iter().skip(1).step_by(2).fold(0, |sum: u64, &cost| sum.saturating_add(cost as u64));
            let keep = window.keep.max(total.min(MAX).saturating_sub(1)).max(MAX_STORED_LOG);
            let scale = scale.length();
            Some(Rule::SlidingWindow(crate::algorithm::sliding_window::SlidingWindow { scale, keep, ..window }))
        }
        Rule::Bucket(_) | Rule::Concurrency(_) => None,
    }
}

/// Returns the time until which the last of them is kept; 0 if there are none.
pub(crate) fn last_until(earlier: &[Earlier]) -> u64 {
    earlier.iter().map(|earlier| earlier.until).max().unwrap_or(0)
}

/// Drops the states that are no longer kept.
pub(crate) fn drop_ended(earlier: &mut Vec<Earlier>, now: u64) {
    earlier.retain(|earlier| earlier.is_live(now));
}

/// Returns the live states as rows of plain numbers: `before`, and then those of [`Earlier::export`].
pub(crate) fn export_earlier(earlier: &[Earlier], before: &[i64], now: u64) -> Result<Vec<Vec<i64>>, OutOfMemory> {
    let mut rows = Vec::new();
    for earlier in earlier.iter().filter(|earlier| earlier.is_live(now)) {
        let mut row = Vec::new();
        row.try_reserve(before.len())?;
        row.extend_from_slice(before);
        earlier.export(&mut |number| push(&mut row, number))?;
        push(&mut rows, row)?;
    }
    Ok(rows)
}

/// Charges a cost, of which `granted` was reserved, to the earlier states of the policy at a position. With `prepares` it
/// only makes room for the cost.
pub(crate) fn charge(
    earlier: &mut [Earlier],
    position: usize,
    cost: u64,
    granted: u64,
    now: u64,
    prepares: bool,
) -> Result<(), OutOfMemory> {
    let mut own = earlier.iter_mut().filter(|earlier| earlier.position == position);
    own.try_for_each(|earlier| earlier.charge(cost, granted, now, prepares))
}

/// Gives a cost back to the earlier states of the policy at a position.
fn refund(earlier: &mut [Earlier], position: usize, cost: u64, now: u64) {
    for earlier in earlier.iter_mut().filter(|earlier| earlier.position == position) {
        let rule = earlier.rule;
        rule.act(earlier.entry_mut(), Act::Refund(cost), now, &mut Outcome::default());
    }
}

/// Changes one policy's state unconditionally, and returns the count. An added cost is charged to the earlier state
/// too; setting a count drops the earlier state.
pub(crate) fn change(
    policy_states: &PolicyStates,
    position: usize,
    entry: EntryMut<'_>,
    earlier: &mut Vec<Earlier>,
    act: Act,
    now: u64,
) -> Result<u64, OutOfMemory> {
    drop_ended(earlier, now);
    if let Act::Inc(cost) = act {
        charge(earlier, position, cost, 0, now, true)?;
    }
    let count = policy_states.change(position, entry, act, now)?;
    match act {
        Act::Inc(cost) => charge(earlier, position, cost, 0, now, false)?,
        Act::Refund(cost) => refund(earlier, position, cost, now),
        _ => earlier.retain(|earlier| earlier.position != position),
    }
    Ok(count)
}
