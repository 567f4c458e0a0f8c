//! The bans of a key, and their count of violations.

use crate::Violated;
use crate::algorithm::Algorithm;
use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::ban::{self, Ban};
use crate::key::decide::KeyAt;
use crate::key::policy_states::{EntryMut, PolicyStates};

/// The positions of the policies that are bans, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bans(u32);

impl Bans {
    pub(crate) fn of(algorithms: &[AnyAlgorithm]) -> Self {
        let bans = algorithms.iter().enumerate().filter(|(_, algorithm)| algorithm.is_ban());
        Self(bans.fold(0, |bits, (position, _)| bits | 1 << position))
    }

    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        // So that the compiler leaves out what is only for bans.
        cfg!(not(feature = "bans")) || self.0 == 0
    }

    #[inline(always)]
    pub(crate) fn contains(self, position: usize) -> bool {
        !self.is_empty() && self.0 >> position & 1 == 1
    }
}

/// The bans of a key, taken together.
pub(super) struct Together {
    /// Which of them hold.
    pub(super) held: Violated,
    /// The ban that ends last.
    pub(super) last: usize,
    pub(super) until: u64,
    /// When the last of their states ends.
    pub(super) ends_at: u64,
}

impl KeyAt<'_> {
    /// Returns the bans; with `counts`, as they are after a violation.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(super) fn bans(&self, counts: bool) -> Together {
        let mut together = Together { held: Violated::default(), last: 0, until: 0, ends_at: 0 };
        for (position, ban) in bans(self.algorithms) {
            let mut view = ban.view(self.entry.from(self.policy_states.place(position)).words, self.now);
            if counts {
                ban.count(&mut view);
            }
            if view.holds() {
                together.held.add(position);
                if view.until > together.until {
                    (together.until, together.last) = (view.until, position);
                }
            }
            together.ends_at = together.ends_at.max(view.ends_at());
        }
        together
    }
}

impl PolicyStates {
    /// Counts a violation under each ban. None of them may hold.
    pub(crate) fn count_violation(&self, algorithms: &[AnyAlgorithm], mut entry: EntryMut<'_>, now: u64) {
        for (position, ban) in bans(algorithms) {
            change(ban, entry.from(self.place(position)), now, |view| ban.count(view));
        }
    }

    /// Begins a ban at a position, or changes the end of the one that holds; without a length, removes its state. Returns
    /// when it ends, or ended.
    pub(crate) fn hold(&self, position: usize, mut entry: EntryMut<'_>, length: Option<u64>, now: u64) -> u64 {
        let Some(AnyAlgorithm::Ban(ban)) = self.algorithms().get(position) else { return 0 };
        let mut own = entry.from(self.place(position));
        match length {
            Some(length) => change(ban, own, now, |view| view.begin(length)).until,
            None => {
                let view = ban.view(own.words, now);
                ban.clear(own.reborrow().words, now);
                if view.holds() { view.until } else { 0 }
            }
        }
    }
}

/// Changes the state of a ban.
fn change(ban: &Ban, entry: EntryMut<'_>, now: u64, work: impl FnOnce(&mut ban::View)) -> ban::View {
    let mut view = ban.view(entry.words, now);
    work(&mut view);
    ban.commit(entry.words, view);
    view
}

/// Returns the bans of a list with their positions.
fn bans(algorithms: &[AnyAlgorithm]) -> impl Iterator<Item = (usize, &Ban)> {
    algorithms.iter().enumerate().filter_map(|(position, algorithm)| match algorithm {
        AnyAlgorithm::Ban(ban) => Some((position, ban)),
        AnyAlgorithm::Window(_)
        | AnyAlgorithm::SlidingWindow(_)
        | AnyAlgorithm::Bucket(_)
        | AnyAlgorithm::Concurrency(_) => None,
    })
}
