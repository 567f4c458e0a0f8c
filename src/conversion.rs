//! A stored state under a policy whose `scale` or `per` may have changed since.

use crate::algorithm::Act;
use crate::algorithm::rule::Rule;
use crate::earlier::Earlier;
use crate::key_states::KeyStates;
use crate::memory::{OutOfMemory, push};
use crate::policy_states::PolicyStates;

/// One policy's state as it was stored.
pub(crate) struct Stored<'a> {
    /// The scale by which it was made.
    pub(crate) scale: u64,
    pub(crate) numbers: &'a [i64],
    /// The state of another scale that was kept beside it, as [`Earlier::export`] wrote it.
    pub(crate) earlier: Option<&'a [i64]>,
}

impl Stored<'_> {
    /// Reads the state of the policy at `position` into those of a key never used. Returns whether the numbers are valid.
    pub(crate) fn load(
        &self,
        position: usize,
        policy_states: &PolicyStates,
        key: &mut KeyStates,
        now: u64,
    ) -> Result<bool, OutOfMemory> {
        let own = &policy_states.rules()[position];
        let Some(kept) = self.earlier else {
            if self.scale == own.scale() || matches!(own, Rule::Bucket(_)) {
                return policy_states.import(position, key.entry_mut(), self.scale, self.numbers);
            }
            return self.convert(position, policy_states, key, None, now);
        };
        match Earlier::import(position, own, kept, now)? {
            Some(kept) => self.convert(position, policy_states, key, Some(kept), now),
            None => Ok(false),
        }
    }

    /// Converts the state to the policy's own scale, and keeps the one that this leaves behind.
    fn convert(
        &self,
        position: usize,
        policy_states: &PolicyStates,
        key: &mut KeyStates,
        kept: Option<Earlier>,
        now: u64,
    ) -> Result<bool, OutOfMemory> {
        let own = &policy_states.rules()[position];
        let Some(last) = Earlier::read(position, own, self.scale, self.numbers, now)? else { return Ok(false) };
        let kept = kept.filter(|kept| kept.is_live(now));
        if !last.is_live(now) && kept.is_none() && self.scale != own.scale() {
            // It is as if it had not been stored.
            return Ok(true);
        }
        // The stored numbers of the state to go on with: the one of the own scale, or of a log the longest.
        let is_log = matches!(own, Rule::SlidingWindow(_));
        let takes_kept = kept.as_ref().is_some_and(|kept| {
            let (scale, own) = (kept.scale(), own.scale());
            self.scale != own && (scale == own || (is_log && scale > self.scale))
        });
        let taken = if takes_kept { self.earlier.and_then(|numbers| numbers.get(2..)) } else { Some(self.numbers) };
        let taken_scale = if takes_kept { kept.as_ref().map_or(0, Earlier::scale) } else { self.scale };
        if is_log || taken_scale == own.scale() {
            policy_states.import(position, key.entry_mut(), own.scale(), taken.unwrap_or_default())?;
        } else {
            // When in the old window the hits came is not known: all of them count in a window that begins now.
            let live = [Some(&last), kept.as_ref()].into_iter().flatten().filter(|state| state.is_live(now));
            if let Some(count) = live.map(|state| state.count(now)).max() {
                policy_states.change(position, key.entry_mut(), Act::Set(count), now)?;
            }
        }
        // A log of a longer scale holds all that one of a shorter scale needs.
        let is_needed = |state: &Earlier| {
            state.is_live(now) && state.scale() != own.scale() && (!is_log || state.scale() > own.scale())
        };
        let left = [Some(last), kept].into_iter().flatten().filter(is_needed);
        if let Some(longest) = left.max_by_key(Earlier::scale) {
            push(&mut key.earlier, longest)?;
        }
        Ok(true)
    }
}
