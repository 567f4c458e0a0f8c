//! A time in which a key is denied because it was denied too often.
//!
//! The other policies of a list decide, and each of their denials is a violation. The `after`-th violation within `scale`
//! of the first begins a ban of `length`. While it holds, everything is denied and nothing is counted. With a factor, a
//! ban is so much longer than the last one, up to `most`, until the key had none for as long as its last one lasted.
//!
//! The cheapest answer to a flood: at most `after` changes of a state in each `scale` or `length`. It cannot distinguish
//! an attacker from a client with a bug, and it holds for everyone behind a shared address.
//!
//! A state has the length of its window of violations and the end of its last ban, so it ends at a time of its own,
//! whichever numbers a later policy has.

use super::{Act, Algorithm, Charge, Outcome, Push};
use crate::growth::OutOfMemory;
use crate::number::{MAX, in_range};
use crate::policy::schema::MAX_BAN_COUNT;
use crate::{Decision, Reason, Violated};

/// Without the feature `bans`, this has no value, and so a ban has none either: the compiler leaves out what is only for
/// bans.
#[cfg(feature = "bans")]
type Available = ();
#[cfg(not(feature = "bans"))]
type Available = core::convert::Infallible;

#[cfg(feature = "bans")]
const AVAILABLE: Option<Available> = Some(());
#[cfg(not(feature = "bans"))]
const AVAILABLE: Option<Available> = None;

/// The numbers of a `ban` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ban {
    /// How many violations begin a ban.
    pub(crate) after: u16,
    /// How much longer a ban is than the last one; 1 if all have the same length.
    pub(crate) factor: u16,
    /// How long violations are counted, from the first one on.
    pub(crate) scale: u64,
    /// The length of the first ban.
    pub(crate) length: u64,
    /// The length of the longest ban; without a factor, of each.
    pub(crate) most: u64,
    available: Available,
}

/// The bits of the window's length in the word that it shares with the count of violations.
const LENGTH_BITS: u32 = 53;

/// The count of violations and the last ban as of a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// The time of the decision: the clock's, or the state's while the clock is a little behind.
    at: u64,
    /// The start of the violations' window, or of the last ban if there are none.
    start: u64,
    violations: u64,
    /// The length of the violations' window; 0 if there are none.
    window: u64,
    /// When the last ban ends or ended; 0 if there was none.
    pub(crate) until: u64,
    /// The length of the last ban that a factor multiplies; 0 if it is not remembered.
    last: u64,
    followed: bool,
}

impl Ban {
    /// Returns a ban of which only the shape is known.
    pub(crate) fn of_shape() -> Option<Self> {
        Self::new(1, 1, 1, 1, 1)
    }

    /// Returns the ban with these numbers; `None` if one of them is out of range. Without a factor, `most` is ignored.
    pub(crate) fn new(after: u64, factor: u64, scale: u64, length: u64, most: u64) -> Option<Self> {
        let most = if factor == 1 { length } else { most };
        let are_counts = [after, factor].iter().all(|count| (1..=MAX_BAN_COUNT).contains(count));
        let are_times = [scale, length, most].iter().all(|time| (1..=MAX).contains(time)) && length <= most;
        let (after, factor) = (after as u16, factor as u16);
        AVAILABLE.filter(|_| are_counts && are_times).map(|available| Self {
            after,
            factor,
            scale,
            length,
            most,
            available,
        })
    }

    /// Returns the decision of a policy that is alone in its list, and moves a state back that is far ahead of the clock.
    pub(crate) fn decide(&self, words: &[u64], act: Act, now: u64) -> (Decision, View) {
        let view = self.view(words, now);
        let holds = view.holds() && act.can_be_denied();
        let wait = if view.holds() { view.until - now } else { 0 };
        let decision = Decision {
            allowed: !holds,
            count: self.used(&view),
            limit: MAX,
            remaining: if view.holds() { 0 } else { MAX },
            retry_after: Some(if holds { wait } else { 0 }),
            reset_after: view.ends_at().saturating_sub(now),
            more_after: wait,
            policy: 0,
            violated: Violated(u32::from(holds)),
            reason: holds.then_some(Reason::Banned),
        };
        (decision, view)
    }

    /// Stores a state that was moved back to the clock; otherwise every hit would move it again.
    pub(crate) fn keep_moved(&self, words: &mut [u64], view: View, outcome: &mut Outcome) {
        if view.followed {
            self.commit(words, view);
            outcome.changed = true;
        }
    }

    /// Counts a violation, and begins a ban if there are enough of them. No ban may hold.
    pub(crate) fn count(&self, view: &mut View) {
        if view.violations == 0 || view.window_has_ended() {
            (view.start, view.window, view.violations) = (view.at, self.scale, 0);
        }
        view.violations += 1;
        if view.violations >= u64::from(self.after) {
            let factor = u64::from(self.factor);
            // The product is below 2^63.
            let length = (view.remembered() * factor).max(self.length).min(self.most);
            view.begin(length);
            view.last = if factor > 1 { length } else { 0 };
        }
    }
}

impl View {
    /// Returns whether a ban holds.
    pub(crate) fn holds(&self) -> bool {
        self.at < self.until
    }

    /// Begins a ban of some length, or ends the one that holds then. It does not change the length of the next one.
    pub(crate) fn begin(&mut self, length: u64) {
        self.last = self.remembered();
        self.start = self.at;
        // No time is later.
        self.until = (self.at + length).min(MAX);
        (self.violations, self.window) = (0, 0);
    }

    /// Returns the length of the last ban; 0 if it ended as long ago.
    fn remembered(&self) -> u64 {
        if self.at < self.until.saturating_add(self.last) { self.last } else { 0 }
    }

    fn window_has_ended(&self) -> bool {
        self.start + self.window <= self.at
    }

    /// Returns when the state ends; a time that is past if it has.
    pub(crate) fn ends_at(&self) -> u64 {
        (self.start + self.window).max(self.until + self.last)
    }
}

impl Algorithm for Ban {
    type State = [u64];
    type View = View;

    /// A ban never binds while it does not hold.
    fn limit(&self) -> u64 {
        MAX
    }

    fn period(&self) -> u64 {
        self.scale
    }

    fn view(&self, state: &[u64], now: u64) -> View {
        let &[start, counted, until, last, ..] = state else { return View::UNUSED };
        let (violations, window) = (counted >> LENGTH_BITS, counted & MAX);
        let view = View { at: start.max(now), start, violations, window, until, last, followed: false };
        // The time of a ban is its start, and its period its length.
        let period = if violations > 0 { window } else { until.saturating_sub(start) };
        if start <= now + period {
            return view;
        }
        let until = until.saturating_sub(start - now);
        View { at: now, start: now, until, last: if until == 0 { 0 } else { last }, followed: true, ..view }
    }

    fn followed(&self, view: &View) -> bool {
        view.followed
    }

    /// Returns the number of violations.
    fn used(&self, view: &View) -> u64 {
        if view.window_has_ended() { 0 } else { view.violations }
    }

    // Violations are counted by `count`: no cost is charged to a ban.

    fn charge(&self, _view: &mut View, _cost: u64, _now: u64) {}

    fn refund(&self, _view: &mut View, _cost: u64, _now: u64) {}

    fn undo(&self, _state: &mut [u64], _cost: u64, _charge: Charge, _now: u64) -> u64 {
        0
    }

    fn wipe(&self, _view: &mut View, _count: u64) -> u64 {
        0
    }

    fn commit(&self, state: &mut [u64], view: View) {
        if let [start, counted, until, last, ..] = state {
            *counted = view.violations << LENGTH_BITS | view.window;
            (*start, *until, *last) = (view.start, view.until, view.last);
        }
    }

    fn fits_at(&self, _state: &[u64], view: &View, _cost: u64) -> u64 {
        view.until
    }

    fn unused_at(&self, view: &View) -> u64 {
        view.ends_at()
    }

    fn width(&self) -> usize {
        4
    }

    fn latest(&self, state: &[u64]) -> u64 {
        state.first().copied().unwrap_or(0)
    }

    fn clear(&self, state: &mut [u64], _now: u64) {
        self.commit(state, View::UNUSED);
    }

    fn export(&self, state: &[u64], push: Push<'_>) -> Result<(), OutOfMemory> {
        let &[start, counted, until, last, ..] = state else { return Ok(()) };
        [start, counted >> LENGTH_BITS, counted & MAX, until, last]
            .into_iter()
            .try_for_each(|number| push(number as i64))
    }

    fn import(&self, state: &mut [u64], numbers: &[i64]) -> Result<bool, OutOfMemory> {
        let &[start, violations, window, until, last] = numbers else { return Ok(false) };
        if !numbers.iter().copied().all(in_range) {
            return Ok(false);
        }
        let [start, violations, window, until, last] =
            [start, violations, window, until, last].map(|number| number as u64);
        let is_counting = (1..=MAX_BAN_COUNT).contains(&violations) && window > 0 && until <= start;
        let is_banned = violations == 0 && window == 0 && start < until;
        let is_unused = [start, violations, window, until, last] == [0; 5];
        self.commit(state, View { start, violations, window, until, last, ..View::UNUSED });
        Ok(is_unused || (is_counting || is_banned) && (until > 0 || last == 0))
    }
}

impl View {
    const UNUSED: Self = Self { at: 0, start: 0, violations: 0, window: 0, until: 0, last: 0, followed: false };
}
