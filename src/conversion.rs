//! A stored state under a policy whose `scale` or `per` may have changed since.

use crate::algorithm::Act;
use crate::algorithm::rule::Rule;
use crate::earlier::{Earlier, drop_ended};
use crate::key_states::KeyStates;
use crate::memory::{OutOfMemory, push};
use crate::policy_states::PolicyStates;
use crate::scale::Scale;
use alloc::vec::Vec;

/// One policy's state as it was stored.
pub(crate) struct Stored<'a> {
    /// The scale under which it was made.
    pub(crate) scale: Scale,
    pub(crate) numbers: &'a [i64],
    /// The state of another scale that was kept beside it, as [`Earlier::export`] wrote it.
    pub(crate) earlier: Option<&'a [i64]>,
}

impl Stored<'_> {
    /// Reads the state of the policy at `position` into the states of a key never used. Returns whether the numbers are
    /// valid.
    pub(crate) fn load(
        &self,
        position: usize,
        policy_states: &PolicyStates,
        key: &mut KeyStates,
        now: u64,
    ) -> Result<bool, OutOfMemory> {
        let own = &policy_states.rules()[position];
        if self.earlier.is_none()
            && (self.scale == own.stored_scale() || matches!(own, Rule::Bucket(_) | Rule::Concurrency(_)))
        {
            return policy_states.import(position, key.entry_mut(), self.scale.length(), self.numbers);
        }
        // The state last in force, and the one that was kept beside it.
        let mut states = Vec::new();
        let open_until = key.extra.open.of(position).last_end();
        let mut valid = Earlier::read(&mut states, position, own, self.scale, self.numbers, open_until, now)?;
        if let Some(kept) = self.earlier {
            valid &= Earlier::import(&mut states, position, own, kept, now)?;
        }
        if valid {
            self.convert(position, policy_states, key, states, now)?;
        }
        Ok(valid)
    }

    /// Converts the state to the policy's own scale, and keeps the state of the other scale beside it.
    fn convert(
        &self,
        position: usize,
        policy_states: &PolicyStates,
        key: &mut KeyStates,
        mut states: Vec<Earlier>,
        now: u64,
    ) -> Result<(), OutOfMemory> {
        let own = &policy_states.rules()[position];
        let own_scale = own.stored_scale();
        let is_log = matches!(own, Rule::SlidingWindow(_));
        let kept_scale = states.get(1).filter(|kept| kept.is_live(now)).map(Earlier::scale);
        drop_ended(&mut states, now);
        if states.is_empty() && self.scale != own_scale {
            // Both states have ended: the key is as if never stored.
            return Ok(());
        }
        // The stored numbers to go on with: those of the own scale, or for a log those of the longest scale.
        let (mut scale, mut numbers) = (self.scale, self.numbers);
        if let Some(kept) = kept_scale
            && scale != own_scale
            && (kept == own_scale || (is_log && kept.length() > scale.length()))
        {
            (scale, numbers) = (kept, self.earlier.and_then(|numbers| numbers.get(2..)).unwrap_or_default());
        }
        if is_log || scale == own_scale {
            policy_states.import(position, key.entry_mut(), own.scale(), numbers)?;
        } else if let Some(count) =
            states.iter().filter(|state| !state.has_ended(now)).map(|state| state.count(now)).max()
        {
            // The times of the hits in the old window are not known: all of them count in a window that starts now.
            policy_states.change(position, key.entry_mut(), Act::Set(count), now)?;
        }
        // A log of a longer scale contains every hit that one of a shorter scale needs.
        let is_needed = |scale: &Scale| *scale != own_scale && (!is_log || scale.length() > own.scale());
        let longest = states.iter().map(Earlier::scale).filter(is_needed).max_by_key(|scale| scale.length());
        while let Some(state) = states.pop() {
            if Some(state.scale()) == longest {
                return push(&mut key.extra.earlier, state);
            }
        }
        Ok(())
    }
}
