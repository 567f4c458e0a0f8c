//! Decisions beside open amounts: each amount is assumed to be charged at its end, with no other hit in between.
//!
//! The sum of the used and the open amounts never grows in that time, so a hit that fits at one time fits at every
//! later one. All of it is computed by the plain operations on a state, or on a copy of it.

use super::entry::{Entry, EntryMut, EntryState};
use super::rule::Rule;
use super::window::{Kind, Window};
use super::{Act, Algorithm, Outcome};
use crate::Decision;
use crate::number::MAX;
use crate::open::{Amount, Open, OpenOf};

/// The most words that a state takes.
const WORDS: usize = 3;

/// The number of amounts that are skipped at once.
const STRIDE: usize = 32;

/// A state at a later time, and the sum of the amounts still open then.
#[derive(Clone, Copy)]
struct Later {
    words: [u64; WORDS],
    left: u64,
    at: u64,
}

impl Rule {
    /// Returns what an operation on the first state of an entry would return beside open amounts, none of which is due.
    pub(crate) fn peek_beside(&self, entry: Entry<'_>, act: Act, open: OpenOf<'_>, now: u64) -> Decision {
        let (sum, cost) = (open.sum().min(MAX), act.amount());
        if sum == 0 {
            return self.peek(entry, act, now);
        }
        let mut decision = self.peek(entry, Act::Hit(cost + sum), now);
        let charged = if act.charges(decision.allowed) { cost } else { 0 };
        if !decision.allowed {
            let fits_at =
                if cost > self.limit() { None } else { Some(self.fits_beside(entry, charged, cost, open, now)) };
            let mut denied = self.peek(entry, Act::Inc(charged + sum), now);
            // In a full log, the hit takes the place of the oldest.
            denied.count = denied.count.min(self.peek(entry, Act::Count(charged), now).count + sum);
            let retry_after = fits_at.map(|fits_at| fits_at.saturating_sub(now));
            decision = Decision { allowed: false, retry_after, violated: decision.violated, ..denied };
        }
        let key = self.drain_key(entry, charged, now);
        if let Self::Window(Window { kind: Kind::Key, .. }) = self {
            // Amounts that are only open start no window.
            decision.reset_after = key.saturating_sub(now);
        }
        let drained = open.drained_at(key, |key| self.drain(key, open));
        decision.reset_after = decision.reset_after.max(drained.saturating_sub(now));
        decision
    }

    /// Returns the time from which on a hit of `cost` fits, after `charged` was charged. The cost does not fit now, but
    /// is within the limit.
    fn fits_beside(&self, entry: Entry<'_>, charged: u64, cost: u64, open: OpenOf<'_>, now: u64) -> u64 {
        if let Self::SlidingWindow(window) = self {
            return window.fits_beside(EntryState::of(entry), charged, cost, open, now);
        }
        let mut words = [0; WORDS];
        for (word, own) in words.iter_mut().zip(entry.words) {
            *word = *own;
        }
        // The copy follows the clock if it must, also if `charged` is 0.
        let state = EntryMut { words: &mut words, logs: &mut [] };
        self.act(state, Act::Inc(charged), now, &mut Outcome::default());
        let decide = |Later { words, left, at }: &Later, until: u64| {
            self.peek(Entry { words, logs: &[] }, Act::Hit(left + cost), until.max(*at))
        };
        let mut later = Later { words, left: open.sum(), at: now };
        let (mut before, mut stretch, mut row) = (later, 0, 0);
        // Finds the stretch of amounts after which the hit fits, and then the amount within it.
        while row < open.rows() && !decide(&later, 0).allowed {
            (before, stretch) = (later, row);
            for (_, amount) in open.rows_from(row).take_while(|(next, _)| *next <= row + STRIDE) {
                self.pass(&mut later, amount);
            }
            row += STRIDE;
        }
        if !decide(&later, 0).allowed {
            before = later;
            stretch = row;
        }
        for (_, amount) in open.rows_from(stretch) {
            if decide(&before, amount.end).allowed {
                break;
            }
            self.pass(&mut before, amount);
        }
        before.at + decide(&before, 0).retry_after.unwrap_or(0)
    }

    /// Moves on to the end of an open amount, which charges it.
    fn pass(&self, later: &mut Later, amount: Amount) {
        later.left -= amount.amount;
        self.charge(&mut later.words, amount.amount, amount.charged_at(self.period()));
        later.at = amount.end;
    }

    /// Charges a state of words.
    fn charge(&self, words: &mut [u64], cost: u64, now: u64) {
        match self {
            Self::Window(window) => charge(window, words, cost, now),
            Self::Bucket(bucket) => charge(bucket, words, cost, now),
            _ => {}
        }
    }

    /// Returns the number of the state or of the rule that [`Rule::drain`] depends on, after `charged` was charged.
    pub(crate) fn drain_key(&self, entry: Entry<'_>, charged: u64, now: u64) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.rate,
            // The end of the window in force, which takes the charges before it; 0 if there is none.
            Self::Window(window @ Window { kind: Kind::Key, .. }) => window.own_end(entry.words, charged > 0, now),
            _ => 0,
        }
    }

    /// Returns when open amounts that are charged at their ends would be gone, if nothing else were used.
    pub(crate) fn drain(&self, key: u64, open: OpenOf<'_>) -> u64 {
        let mut words = [0; WORDS];
        let mut state = EntryMut { words: &mut words, logs: &mut [] };
        self.clear(state.reborrow(), 0);
        if let (Self::Window(Window { kind: Kind::Key, scale, .. }), [start, ..]) = (self, &mut *state.words)
            && key > 0
        {
            *start = key.saturating_sub(*scale);
        }
        let (mut newest, mut drained) = (0, 0);
        for amount in open.amounts() {
            newest = newest.max(amount.charged_at(self.period()));
            drained = match self {
                Self::SlidingWindow(window) => newest + window.scale,
                Self::Concurrency(_) => amount.end,
                _ => {
                    let charge = Act::Inc(amount.amount);
                    newest + self.act(state.reborrow(), charge, newest, &mut Outcome::default()).reset_after
                }
            };
        }
        drained
    }

    /// Records in `open` when the amounts beside the first state of an entry are gone.
    pub(crate) fn note_drain(&self, entry: Entry<'_>, position: usize, open: &mut Open, now: u64) {
        open.note_drain(position, self.drain_key(entry, 0, now), self);
    }
}

/// Charges a state without a decision, which would take twice as long on each of many amounts.
fn charge<A: Algorithm<State = [u64]>>(algorithm: &A, words: &mut [u64], cost: u64, now: u64) {
    let mut view = algorithm.view(words, now);
    algorithm.charge(&mut view, cost, now);
    algorithm.commit(words, view);
}
