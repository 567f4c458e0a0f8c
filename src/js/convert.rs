//! Between the numbers that cross the border and the core's own types.

use crate::conversion::Stored;
use crate::key_states::KeyStates;
use crate::number::MAX;
use crate::policy_states::PolicyStates;

/// A cost or count that JavaScript gave, if it is one.
#[inline(always)]
pub(super) fn cost(cost: f64) -> Option<u64> {
    // A fraction and not-a-number come back as something else. Machines convert signed numbers in fewer steps.
    let whole = cost as i64;
    (whole as f64 == cost && whole as u64 <= MAX).then_some(whole as u64)
}

/// A time that JavaScript gave, if it is one. A fraction is floored.
#[inline(always)]
pub(super) fn time(now: f64) -> Option<u64> {
    (now >= 0.0 && now <= MAX as f64).then_some(now as i64 as u64)
}

/// Puts states into the entry of a key never used: for each policy the scale it was made by, 0 for none, how many
/// numbers there are, then they. Answers the position of the first that cannot be read.
pub(super) fn load_all(
    policy_states: &PolicyStates,
    key: &mut KeyStates,
    mut numbers: &[i64],
    now: u64,
) -> Result<(), usize> {
    for position in 0..policy_states.rules().len() {
        let state = numbers.split_first_chunk().and_then(|(&[scale, count], rest)| {
            let (state, rest) = rest.split_at_checked(count as usize)?;
            numbers = rest;
            let stored = Stored { scale: scale as u64, numbers: state, earlier: None };
            (scale == 0 || stored.load(position, policy_states, key, now) == Ok(true)).then_some(())
        });
        state.ok_or(position)?;
    }
    Ok(())
}
