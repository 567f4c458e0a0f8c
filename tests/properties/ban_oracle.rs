//! The definition of a ban, by the times of its denials.

use tollgate::{Decision, Policy, Reason};

/// The numbers of a ban.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) after: u64,
    pub(crate) scale: u64,
    pub(crate) length: u64,
    pub(crate) factor: u64,
    pub(crate) most: u64,
}

impl Numbers {
    pub(crate) fn policy(&self) -> Policy {
        let ban = Policy::ban(self.after, self.scale, self.length).unwrap();
        if self.factor > 1 { ban.growing(self.factor, self.most).unwrap() } else { ban }
    }
}

/// The definition of a ban, by the times of its denials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Oracle {
    /// The denials of the window that counts, and how long it is.
    denials: Vec<i64>,
    window: i64,
    /// The start and the end of the last ban.
    ban: Option<(i64, i64)>,
    /// The length of the last ban that was not by hand, if it is remembered.
    last: Option<i64>,
}

impl Oracle {
    /// Returns the time of a decision: the state's while the clock is at most a period behind it. A state further ahead
    /// moves back with all that it has.
    pub(crate) fn time(&mut self, now: u64) -> i64 {
        let now = now as i64;
        let (start, period) = match (self.denials.first(), self.ban) {
            (Some(first), _) => (*first, self.window),
            (None, Some((start, end))) => (start, end - start),
            (None, None) => return now,
        };
        if start <= now + period {
            return start.max(now);
        }
        let back = start - now;
        self.denials.iter_mut().for_each(|denial| *denial -= back);
        self.ban = self.ban.map(|(start, end)| (start - back, end - back)).filter(|(_, end)| *end > 0);
        self.last = self.last.filter(|_| self.ban.is_some());
        now
    }

    /// Returns when the ban ends that holds at a time.
    pub(crate) fn held_until(&self, at: i64) -> Option<i64> {
        self.ban.map(|(_, end)| end).filter(|end| at < *end)
    }

    fn remembered(&self, at: i64) -> Option<i64> {
        let end = self.ban?.1;
        // The key has had none for as long as its last one lasted.
        self.last.filter(|last| at - end < *last)
    }

    pub(crate) fn begin(&mut self, at: i64, length: i64) {
        self.last = self.remembered(at);
        self.ban = Some((at, at + length));
        self.denials.clear();
    }

    pub(crate) fn deny(&mut self, at: i64, numbers: &Numbers) {
        if self.denials.first().is_some_and(|first| at - first >= self.window) {
            self.denials.clear();
        }
        if self.denials.is_empty() {
            self.window = numbers.scale as i64;
        }
        // Denials before the first one, while the clock is behind, count at its time.
        self.denials.push(at);
        if self.denials.len() as u64 >= numbers.after {
            let longer = self.remembered(at).map(|last| (last * numbers.factor as i64).min(numbers.most as i64));
            let length = longer.unwrap_or(0).max(numbers.length as i64);
            self.begin(at, length);
            self.last = (numbers.factor > 1).then_some(length);
        }
    }

    pub(crate) fn violations(&self, at: i64) -> u64 {
        let is_over = self.denials.first().is_none_or(|first| at - first >= self.window);
        if is_over { 0 } else { self.denials.len() as u64 }
    }

    /// Returns when the state ends.
    pub(crate) fn ends_at(&self) -> i64 {
        let window = self.denials.first().map_or(0, |first| first + self.window);
        window.max(self.ban.map_or(0, |(_, end)| end + self.last.unwrap_or(0)))
    }

    /// Returns how a decision differs from that of the oracle; `None` if it does not. `other` is what the policy beside the
    /// ban decides alone, and the oracle has counted it; `unchanged` is what it decides of a cost of 0.
    pub(crate) fn difference(
        &self,
        own: &Decision,
        (other, unchanged): (&Decision, &Decision),
        at: i64,
        now: u64,
    ) -> Option<String> {
        let expected = match self.held_until(at) {
            Some(end) => {
                let wait = (end - now as i64) as u64;
                let retry_after = match other.allowed {
                    true => Some(wait),
                    false => other.retry_after.map(|own| own.max(wait)),
                };
                let is_ban = own.violated.iter().eq([1]);
                let (policy, reason) = (1, Some(Reason::Banned));
                let (allowed, remaining) = (!is_ban, 0);
                // Something remains when both let it.
                let more_after = if unchanged.remaining == 0 { unchanged.more_after.max(wait) } else { wait };
                Decision { allowed, remaining, retry_after, more_after, policy, reason, ..*own }
            }
            None => {
                let reset_after = other.reset_after.max((self.ends_at() - now as i64).max(0) as u64);
                Decision { reset_after, ..*other }
            }
        };
        (*own != expected).then(|| format!("expected {expected:?}, found {own:?}"))
    }
}
