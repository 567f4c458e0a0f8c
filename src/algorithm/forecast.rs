//! Decisions beside open amounts: each amount is assumed to be charged at its end, with no other hit in between.
//!
//! All of it is computed by the plain operations on a state, or on a copy of it. As long as a state flows at one rate, the
//! sum of the used and the open amounts never grows in that time, so a hit that fits at one time fits at every later one.

use super::any::AnyAlgorithm;
use super::concurrency::Concurrency;
use super::entry::{Entry, EntryMut, EntryState};
use super::window::{Kind, Window};
use super::{Act, Algorithm, Outcome};
use crate::key::open_reservations::{Amount, Open, OpenOf};
use crate::number::MAX;
use crate::{Decision, Reason};

/// The most words that a state takes.
pub(crate) const WORDS: usize = 4;

/// The number of amounts that are skipped at once.
const STRIDE: usize = 32;

/// A state at a later time, and the sum of the amounts still open then.
#[derive(Clone, Copy)]
struct Later {
    words: [u64; WORDS],
    left: u64,
    at: u64,
}

/// A decision to be made under an algorithm on one policy's state and its open amounts.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    /// The algorithm that decides.
    pub(crate) algorithm: &'a AnyAlgorithm,
    pub(crate) entry: Entry<'a>,
    /// The open amounts, none of which is due.
    pub(crate) open: OpenOf<'a>,
    pub(crate) now: u64,
}

impl Beside<'_> {
    /// Returns what an operation would return.
    pub(crate) fn peek(&self, act: Act) -> Decision {
        let &Self { algorithm, entry, open, now, .. } = self;
        let (sum, cost) = (open.sum().min(MAX), act.amount());
        if sum == 0 {
            return algorithm.peek(entry, act, now);
        }
        let mut decision = algorithm.peek(entry, Act::Hit(cost + sum), now);
        let charged = if act.charges(decision.allowed) { cost } else { 0 };
        if !decision.allowed {
            let fits_at = if cost > algorithm.limit() { None } else { Some(self.fits_at(charged, cost, now)) };
            let mut denied = algorithm.peek(entry, Act::Charge(charged + sum), now);
            // In a full log, the hit takes the place of the oldest.
            denied.count = denied.count.min(algorithm.peek(entry, Act::Count(charged), now).count + sum);
            let retry_after = fits_at.map(|fits_at| fits_at.saturating_sub(now));
            // Hits that are counted in advance by leases are used.
            let is_reserved = algorithm.peek(entry, Act::Hit(cost + open.leased().min(MAX)), now).allowed;
            let reason = is_reserved.then_some(Reason::Reserved);
            decision = Decision { allowed: false, retry_after, violated: decision.violated, reason, ..denied };
        }
        decision.reset_after = self.unused_at(charged, decision.reset_after).saturating_sub(now);
        decision.more_after = match algorithm.limit() - decision.remaining {
            0 => 0,
            _ => self.more_at(charged, &decision).saturating_sub(now),
        };
        decision
    }

    /// Returns the time from which on the key is as if never used, after `charged` was charged. `together` is how long it
    /// would take if all open amounts were charged now.
    fn unused_at(&self, charged: u64, together: u64) -> u64 {
        let &Self { algorithm, entry, open, now, .. } = self;
        if !self.flows_alike() {
            let mut later = self.charged(charged);
            open.amounts().for_each(|(_, amount)| self.pass(&mut later, amount));
            return later.at + algorithm.peek(later.entry(), Act::LOOK, later.at).reset_after;
        }
        let key = algorithm.drain_key(entry, charged, now);
        let drained = open.drained_at(key, |key| algorithm.drain(key, open));
        match algorithm {
            AnyAlgorithm::Concurrency(_) if charged == 0 => drained,
            // Amounts that are only open start no window.
            AnyAlgorithm::Window(Window { kind: Kind::Key, .. }) => key.max(drained),
            AnyAlgorithm::Window(_)
            | AnyAlgorithm::SlidingWindow(_)
            | AnyAlgorithm::Bucket(_)
            | AnyAlgorithm::Concurrency(_)
            | AnyAlgorithm::Ban(_) => (now + together).max(drained),
        }
    }

    /// Returns the time from which on more remains than `decision` says, after `charged` was charged.
    fn more_at(&self, charged: u64, &Decision { remaining, count, .. }: &Decision) -> u64 {
        let &Self { algorithm, entry, open, now, .. } = self;
        match algorithm {
            AnyAlgorithm::Window(window) if !window.slides() && count <= window.limit && open.are_charged_at_ends() => {
                // The used and the open amounts stay the same until a window ends to which something is charged.
                let end = window.used_until(entry.words, charged, now);
                match open.amounts().next() {
                    Some((_, first)) if end == 0 => {
                        window.end_after(entry.words, first.charged_at(algorithm.lead()), now)
                    }
                    Some(_) | None => end,
                }
            }
            AnyAlgorithm::Concurrency(Concurrency { ttl, .. }) => self.slot_free_at(*ttl, charged, remaining + 1),
            AnyAlgorithm::Window(_)
            | AnyAlgorithm::SlidingWindow(_)
            | AnyAlgorithm::Bucket(_)
            | AnyAlgorithm::Ban(_) => self.fits_at(charged, remaining + 1, now),
        }
    }

    /// Returns the first end that leaves room for a cost, that of the charged amount among them, or now if there is room.
    fn slot_free_at(&self, ttl: u64, charged: u64, cost: u64) -> u64 {
        let &Self { algorithm, open, now, .. } = self;
        let room = algorithm.limit().saturating_sub(cost);
        let mut left = open.sum() + charged;
        let mut own = charged;
        if left <= room {
            return now;
        }
        for (_, amount) in open.amounts() {
            if own > 0 && now + ttl <= amount.end {
                left -= core::mem::take(&mut own);
                if left <= room {
                    break;
                }
            }
            left -= amount.amount;
            if left <= room {
                return amount.end;
            }
        }
        now + ttl
    }

    /// Returns the first time from `from` on at which a hit of `cost` fits, after `charged` was charged; `None` for never.
    pub(crate) fn fits_from(&self, charged: u64, cost: u64, from: u64) -> Option<u64> {
        let algorithm = self.algorithm;
        if cost > algorithm.limit() {
            return None;
        }
        let at = match algorithm {
            AnyAlgorithm::Concurrency(Concurrency { ttl, .. }) => self.slot_free_at(*ttl, charged, cost),
            AnyAlgorithm::Window(_)
            | AnyAlgorithm::SlidingWindow(_)
            | AnyAlgorithm::Bucket(_)
            | AnyAlgorithm::Ban(_) => self.fits_at(charged, cost, from),
        };
        Some(at.max(from))
    }

    /// Returns the time from which on a hit of `cost`, which is within the limit, fits, after `charged` was charged. While
    /// a state flows at several rates, times before `from` do not count.
    fn fits_at(&self, charged: u64, cost: u64, from: u64) -> u64 {
        let &Self { algorithm, entry, open, now, .. } = self;
        match algorithm {
            AnyAlgorithm::SlidingWindow(window) => window.fits_beside(EntryState::of(entry), charged, cost, open, now),
            AnyAlgorithm::Window(_) | AnyAlgorithm::Bucket(_) | AnyAlgorithm::Concurrency(_) | AnyAlgorithm::Ban(_) => {
                self.words_fit_at(charged, cost, from)
            }
        }
    }

    /// The same for a state of words: its copy is charged with one open amount after the other.
    fn words_fit_at(&self, charged: u64, cost: u64, from: u64) -> u64 {
        let &Self { algorithm, open, .. } = self;
        let decide =
            |later: &Later, until: u64| algorithm.peek(later.entry(), Act::Hit(later.left + cost), until.max(later.at));
        let mut later = self.charged(charged);
        if !self.flows_alike() {
            for (_, amount) in open.amounts() {
                if let Some(wait) = decide(&later, from).retry_after
                    && later.at.max(from) + wait < amount.end
                {
                    break;
                }
                self.pass(&mut later, amount);
            }
            return later.at.max(from) + decide(&later, from).retry_after.unwrap_or(0);
        }
        let (mut before, mut stretch, mut row) = (later, 0, 0);
        // Finds the stretch of amounts after which the hit fits, and then the amount within it.
        while row < open.rows() && !decide(&later, 0).allowed {
            (before, stretch) = (later, row);
            for (_, amount) in open.amounts_from(row).take_while(|(index, _)| *index < row + STRIDE) {
                self.pass(&mut later, amount);
            }
            row += STRIDE;
        }
        if !decide(&later, 0).allowed {
            before = later;
            stretch = row;
        }
        for (_, amount) in open.amounts_from(stretch) {
            if decide(&before, amount.end).allowed {
                break;
            }
            self.pass(&mut before, amount);
        }
        before.at + decide(&before, 0).retry_after.unwrap_or(0)
    }

    /// Returns whether the state and all open amounts flow at the rate of the algorithm that decides.
    pub(crate) fn flows_alike(&self) -> bool {
        match self.algorithm {
            AnyAlgorithm::Bucket(bucket) => {
                self.open.are_charged_by(self.algorithm) && bucket.flows_alike(self.entry.words)
            }
            AnyAlgorithm::Window(_)
            | AnyAlgorithm::SlidingWindow(_)
            | AnyAlgorithm::Concurrency(_)
            | AnyAlgorithm::Ban(_) => true,
        }
    }

    /// Returns a copy of the state after `charged` was charged, with all amounts open.
    fn charged(&self, charged: u64) -> Later {
        let mut words = [0; WORDS];
        for (word, own) in words.iter_mut().zip(self.entry.words) {
            *word = *own;
        }
        // The copy follows the clock if it must, also if `charged` is 0.
        let state = EntryMut { words: &mut words, logs: &mut [] };
        self.algorithm.act(state, Act::Charge(charged), self.now, &mut Outcome::default());
        Later { words, left: self.open.sum(), at: self.now }
    }

    /// Moves on to the end of an open amount, which charges it.
    fn pass(&self, later: &mut Later, amount: Amount) {
        later.left -= amount.amount;
        let algorithm = amount.charged_by(self.algorithm);
        algorithm.charge_words(&mut later.words, amount.amount, amount.charged_at(algorithm.lead()));
        later.at = amount.end;
    }
}

impl Later {
    fn entry(&self) -> Entry<'_> {
        Entry { words: &self.words, logs: &[] }
    }
}

impl AnyAlgorithm {
    /// Charges a state of words.
    fn charge_words(&self, words: &mut [u64], cost: u64, now: u64) {
        match self {
            Self::Window(window) => charge(window, words, cost, now),
            Self::Bucket(bucket) => charge(bucket, words, cost, now),
            Self::SlidingWindow(_) | Self::Concurrency(_) | Self::Ban(_) => {}
        }
    }

    /// Returns the number of the state or of the algorithm that [`AnyAlgorithm::drain`] depends on, after `charged` was charged.
    pub(crate) fn drain_key(&self, entry: Entry<'_>, charged: u64, now: u64) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.rate,
            // The end of the window in force, which takes the charges before it; 0 if there is none.
            Self::Window(window @ Window { kind: Kind::Key, .. }) => window.own_end(entry.words, charged > 0, now),
            Self::Window(_) | Self::SlidingWindow(_) | Self::Concurrency(_) | Self::Ban(_) => 0,
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
        for (_, amount) in open.amounts() {
            let by = amount.charged_by(self);
            newest = newest.max(amount.charged_at(by.lead()));
            drained = match self {
                Self::SlidingWindow(window) => newest + window.scale,
                // No amount is open under a ban.
                Self::Concurrency(_) | Self::Ban(_) => amount.end,
                Self::Window(_) | Self::Bucket(_) => {
                    let charge = Act::Charge(amount.amount);
                    newest + by.act(state.reborrow(), charge, newest, &mut Outcome::default()).reset_after
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
