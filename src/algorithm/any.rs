//! The algorithm of a policy as an enum, and the dispatch to it.

use super::ban::Ban;
use super::bucket::{self, Bucket};
use super::concurrency::Concurrency;
use super::entry::{Entry, EntryMut, EntryState};
use super::sliding_window::SlidingWindow;
use super::window::{self, Window};
use super::{Act, Algorithm, Charge, Charged, Outcome, Push};
use crate::growth::OutOfMemory;
use crate::key::policy_states::most_open;
use crate::number::MAX;
use crate::policy::build_algorithm;
use crate::policy::exception::Numbers;
use crate::policy::scale::Scale;
use crate::policy::schema::{
    ALGORITHMS, BAN, CONCURRENCY, EXCEPTED_AFTER, EXCEPTED_CAPACITY, EXCEPTED_FACTOR, EXCEPTED_LEAK_RATE,
    EXCEPTED_LENGTH, EXCEPTED_LIMIT, EXCEPTED_MOST, EXCEPTED_REFILL_RATE, FIX_WINDOW, FIX_WINDOW_PER_KEY, LEAKY_BUCKET,
    MAX_STORED_LOG, SLIDING_COUNTER, SLIDING_WINDOW, TOKEN_BUCKET,
};
use crate::{Decision, Expected};

/// An algorithm with its numbers. The discriminant is a byte of its own, which takes one step to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum AnyAlgorithm {
    /// A counter of windows.
    Window(Window),
    /// A log.
    SlidingWindow(SlidingWindow),
    /// A bucket.
    Bucket(Bucket),
    /// Reservations alone.
    Concurrency(Concurrency),
    /// Denials by the others.
    Ban(Ban),
}

/// The capacity and the rate of the bucket of a call; two zeros for every other algorithm.
pub(crate) type CallNumbers = [u64; 2];

/// Evaluates one expression for the algorithm that an [`AnyAlgorithm`] is.
macro_rules! dispatch {
    ($any:expr, $algorithm:ident => $body:expr) => {
        match $any {
            $crate::algorithm::any::AnyAlgorithm::Window($algorithm) => $body,
            $crate::algorithm::any::AnyAlgorithm::SlidingWindow($algorithm) => $body,
            $crate::algorithm::any::AnyAlgorithm::Bucket($algorithm) => $body,
            $crate::algorithm::any::AnyAlgorithm::Concurrency($algorithm) => $body,
            $crate::algorithm::any::AnyAlgorithm::Ban($algorithm) => $body,
        }
    };
}
pub(crate) use dispatch;

impl AnyAlgorithm {
    /// Returns the position of the algorithm in the schema.
    pub(crate) fn position(&self) -> usize {
        match self {
            Self::Window(Window { kind: window::Kind::Clock | window::Kind::Calendar(_), .. }) => FIX_WINDOW,
            Self::Window(Window { kind: window::Kind::Key, .. }) => FIX_WINDOW_PER_KEY,
            Self::Window(Window { kind: window::Kind::Sliding, .. }) => SLIDING_COUNTER,
            Self::SlidingWindow(_) => SLIDING_WINDOW,
            Self::Bucket(Bucket { kind: bucket::Kind::Token, .. }) => TOKEN_BUCKET,
            Self::Bucket(Bucket { kind: bucket::Kind::Leaky, .. }) => LEAKY_BUCKET,
            Self::Concurrency(_) => CONCURRENCY,
            Self::Ban(_) => BAN,
        }
    }

    /// Returns the algorithm's name.
    pub(crate) fn name(&self) -> &'static str {
        ALGORITHMS[self.position()]
    }

    /// Returns the rate of a bucket; 1 for every other algorithm.
    pub(crate) fn rate(&self) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.rate,
            Self::Window(_) | Self::SlidingWindow(_) | Self::Concurrency(_) | Self::Ban(_) => 1,
        }
    }

    /// Returns the limit or the capacity.
    pub(crate) fn limit(&self) -> u64 {
        dispatch!(self, algorithm => algorithm.limit())
    }

    /// Returns the window's or a ban's `scale` (for the calendar, its longest window), the bucket's `per`, or the `ttl` of
    /// a concurrency limit, in milliseconds.
    pub(crate) fn scale(&self) -> u64 {
        match self {
            Self::Window(window) => window.scale,
            Self::SlidingWindow(window) => window.scale,
            Self::Bucket(bucket) => bucket.per,
            Self::Concurrency(concurrency) => concurrency.ttl,
            Self::Ban(ban) => ban.scale,
        }
    }

    /// Returns the `scale` or `per` as it is stored.
    pub(crate) fn stored_scale(&self) -> Scale {
        match self {
            Self::Window(Window { kind: window::Kind::Calendar(calendar), .. }) => (*calendar).into(),
            Self::Window(_) | Self::SlidingWindow(_) | Self::Bucket(_) | Self::Concurrency(_) | Self::Ban(_) => {
                Scale::of_time(self.scale())
            }
        }
    }

    /// Returns how far the clock may be behind a state before the state follows it.
    pub(crate) fn period(&self) -> u64 {
        dispatch!(self, algorithm => algorithm.period())
    }

    /// Returns how far the clock may be behind a state of these numbers before the state follows it.
    pub(crate) fn lead(&self) -> u64 {
        dispatch!(self, algorithm => algorithm.lead())
    }

    /// Performs an operation on the first state of an entry, and notes in `outcome` whether the state changed. In wasm
    /// it is compiled once, for its size; elsewhere it is inlined, for its speed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn act(&self, entry: EntryMut<'_>, act: Act, now: u64, outcome: &mut Outcome) -> Decision {
        if let Self::Ban(ban) = self {
            let (decision, view) = ban.decide(entry.words, act, now);
            ban.keep_moved(entry.words, view, outcome);
            return decision;
        }
        let charged = dispatch!(self, algorithm => match EntryState::of_mut(entry) {
            Some(state) => algorithm.keep(state, algorithm.try_once(state, act, now), outcome),
            None => algorithm.try_once(EntryState::unused(), act, now).charged,
        });
        self.decision(charged, now)
    }

    /// Returns what an operation on the first state of an entry would return.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn peek(&self, entry: Entry<'_>, act: Act, now: u64) -> Decision {
        if let Self::Ban(ban) = self {
            return ban.decide(entry.words, act, now).0;
        }
        let charged = dispatch!(self, algorithm => algorithm.try_once(EntryState::of(entry), act, now).charged);
        self.decision(charged, now)
    }

    /// Gives back a cost of a hit in the first state of an entry. Returns what was given back.
    #[cold]
    pub(crate) fn undo(&self, entry: EntryMut<'_>, cost: u64, charge: Charge, now: u64) -> u64 {
        dispatch!(self, algorithm => match EntryState::of_mut(entry) {
            Some(state) => algorithm.undo(state, cost, charge, now),
            None => 0,
        })
    }

    /// Returns the level of a bucket in whole hits, rounded down; `None` for every other algorithm.
    pub(crate) fn bucket_level(&self, entry: Entry<'_>, now: u64) -> Option<u64> {
        match self {
            Self::Bucket(bucket) => Some(bucket.whole_level(entry.words, now)),
            Self::Window(_) | Self::SlidingWindow(_) | Self::Concurrency(_) | Self::Ban(_) => None,
        }
    }

    /// Returns whether only reservations count.
    pub(crate) fn is_concurrency(&self) -> bool {
        matches!(self, Self::Concurrency(_))
    }

    /// Returns whether denials by the other policies count.
    pub(crate) fn is_ban(&self) -> bool {
        matches!(self, Self::Ban(_))
    }

    /// Returns the latest time in the first state of an entry.
    pub(crate) fn latest(&self, entry: Entry<'_>) -> u64 {
        dispatch!(self, algorithm => algorithm.latest(EntryState::of(entry)))
    }

    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn decision(&self, charged: Charged, now: u64) -> Decision {
        charged.decision(self.limit(), self.counts_down(), now)
    }

    /// Makes room for an operation on the first state of an entry.
    pub(crate) fn prepare(&self, entry: EntryMut<'_>, act: Act, now: u64) -> Result<(), OutOfMemory> {
        match self {
            Self::SlidingWindow(window) => {
                EntryState::of_mut(entry).map_or(Ok(()), |log| window.prepare(log, act, now))
            }
            // These states have a fixed size.
            Self::Window(_) | Self::Bucket(_) | Self::Concurrency(_) | Self::Ban(_) => Ok(()),
        }
    }

    /// Returns whether a decision's count is the remaining amount.
    pub(crate) fn counts_down(&self) -> bool {
        matches!(self, Self::Bucket(Bucket { kind: bucket::Kind::Token, .. }))
    }

    /// Returns when the first state of an entry ends by its own numbers, whatever the limit, capacity and rate of this
    /// algorithm are; `now` or earlier if it has ended.
    pub(crate) fn ends_at(&self, entry: Entry<'_>, now: u64) -> u64 {
        match self {
            Self::SlidingWindow(window) => window.log_ends_at(EntryState::of(entry), now),
            Self::Window(window) => match window.kind {
                // Such a window lives to its end even if its count is 0.
                window::Kind::Clock | window::Kind::Calendar(_) => window.window_ends_at(EntryState::of(entry), now),
                window::Kind::Key | window::Kind::Sliding => match self.peek(entry, Act::LOOK, now).reset_after {
                    0 => 0,
                    after => now + after,
                },
            },
            Self::Bucket(bucket) => bucket.level_ends_at(EntryState::of(entry), now),
            Self::Concurrency(_) => 0,
            Self::Ban(ban) => ban.view(entry.words, now).ends_at(),
        }
    }

    /// Makes the first state of an entry that of a key never used.
    pub(crate) fn clear(&self, entry: EntryMut<'_>, now: u64) {
        dispatch!(self, algorithm => {
            if let Some(state) = EntryState::of_mut(entry) {
                algorithm.clear(state, now);
            }
        });
    }

    /// Passes the first state of an entry to `push` as plain numbers.
    pub(crate) fn export(&self, entry: Entry<'_>, push: Push<'_>) -> Result<(), OutOfMemory> {
        dispatch!(self, algorithm => algorithm.export(EntryState::of(entry), push))
    }

    /// Reads the first state of an entry, that of a key never used, from plain numbers of the same shape. Returns whether
    /// they are valid.
    pub(crate) fn import(&self, entry: EntryMut<'_>, numbers: &[i64]) -> Result<bool, OutOfMemory> {
        dispatch!(self, algorithm => match EntryState::of_mut(entry) {
            Some(state) => algorithm.import(state, numbers),
            None => Ok(false),
        })
    }

    /// Returns the algorithm of a shape, by the algorithm's position in the schema: as much of a policy as is needed to charge
    /// its state and to know when it ends.
    pub(crate) fn of_shape(algorithm: usize, scale: Scale) -> Option<Self> {
        let by_bucket = |kind| Self::Bucket(Bucket::of_shape(kind, scale.length()));
        match algorithm {
            TOKEN_BUCKET => Some(by_bucket(bucket::Kind::Token)),
            LEAKY_BUCKET => Some(by_bucket(bucket::Kind::Leaky)),
            SLIDING_WINDOW => build_algorithm(algorithm, MAX_STORED_LOG, 1, scale),
            FIX_WINDOW | FIX_WINDOW_PER_KEY | SLIDING_COUNTER | CONCURRENCY => {
                build_algorithm(algorithm, MAX, 1, scale)
            }
            BAN => Ban::of_shape().map(Self::Ban),
            _ => None,
        }
    }

    /// Returns whether two algorithms have the same shape, so that a state of one is a state of the other.
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        let has_scale = !self.is_concurrency() && !self.is_ban();
        self.position() == other.position() && (!has_scale || self.stored_scale() == other.stored_scale())
    }

    /// Returns the algorithm of one call on the states of this algorithm; `None` if its shape is another.
    pub(crate) fn for_call(&self, call: &Self) -> Option<Self> {
        if !self.has_shape_of(call) {
            return None;
        }
        Some(match (self, call) {
            (Self::SlidingWindow(own), Self::SlidingWindow(call)) => Self::SlidingWindow(own.keeping_for(call)),
            (Self::Window(_) | Self::SlidingWindow(_) | Self::Bucket(_) | Self::Concurrency(_) | Self::Ban(_), _) => {
                *call
            }
        })
    }

    /// Returns the algorithm with the numbers of an exception; a field that the algorithm lacks is ignored. `is_stored` is
    /// whether its states are stored outside the process. Numbers that it cannot take are left out: policies may have changed
    /// since the exception was set.
    pub(crate) fn excepted(&self, fields: &Numbers, is_stored: bool) -> Self {
        if self.unfit_field(fields, is_stored).is_some() {
            return *self;
        }
        let number = |field: usize, own: u64| if fields[field] > 0 { fields[field] } else { own };
        match self {
            Self::Window(own) => Self::Window(Window { limit: number(EXCEPTED_LIMIT, own.limit), ..*own }),
            Self::SlidingWindow(own) => {
                Self::SlidingWindow(SlidingWindow { limit: number(EXCEPTED_LIMIT, own.limit), ..*own })
            }
            Self::Bucket(own) => Self::Bucket(excepted_bucket(own, fields)),
            Self::Concurrency(own) => {
                Self::Concurrency(Concurrency { limit: number(EXCEPTED_LIMIT, own.limit), ..*own })
            }
            Self::Ban(own) => {
                let length = number(EXCEPTED_LENGTH, own.length);
                let counts = [(EXCEPTED_AFTER, own.after), (EXCEPTED_FACTOR, own.factor)];
                let [after, factor] = counts.map(|(field, own)| number(field, own.into()));
                let most = number(EXCEPTED_MOST, own.most).max(length);
                Ban::new(after, factor, own.scale, length, most).map_or(*self, Self::Ban)
            }
        }
    }

    /// Returns the field of an exception that the algorithm cannot take, if there is one.
    pub(crate) fn unfit_field(&self, fields: &Numbers, is_stored: bool) -> Option<usize> {
        match self {
            Self::SlidingWindow(_) | Self::Concurrency(_) => {
                Some(EXCEPTED_LIMIT).filter(|&field| !self.is_reachable(fields[field], is_stored))
            }
            Self::Bucket(own) => {
                let period = Self::Bucket(excepted_bucket(own, fields)).period();
                Some(EXCEPTED_CAPACITY).filter(|_| period > MAX)
            }
            Self::Window(_) | Self::Ban(_) => None,
        }
    }

    /// Returns whether a state can have as much as `limit`, in memory or outside the process, where logs are short. A key has a
    /// bounded number of open reservations.
    pub(crate) fn is_reachable(&self, limit: u64, is_stored: bool) -> bool {
        match self {
            Self::SlidingWindow(_) => !is_stored || limit <= MAX_STORED_LOG,
            Self::Concurrency(_) => limit <= most_open(is_stored) as u64,
            Self::Window(_) | Self::Bucket(_) | Self::Ban(_) => true,
        }
    }

    /// Returns what is accepted in the place of a limit that is not reachable, or of a capacity.
    pub(crate) fn limit_expected(&self, is_stored: bool) -> Expected {
        match self {
            Self::SlidingWindow(_) => Expected::StoredLimit,
            Self::Concurrency(_) => Expected::ReachableLimit { max: most_open(is_stored) },
            Self::Window(_) | Self::Bucket(_) | Self::Ban(_) => Expected::FillableCapacity,
        }
    }

    /// Returns the largest count that a state may be set to: a token bucket holds no more than its capacity.
    pub(crate) fn most_to_set(&self) -> u64 {
        match self {
            Self::Bucket(Bucket { kind: bucket::Kind::Token, capacity, .. }) => *capacity,
            Self::Bucket(_) | Self::Window(_) | Self::SlidingWindow(_) | Self::Concurrency(_) | Self::Ban(_) => MAX,
        }
    }

    /// Returns the numbers by which a reservation that a call opens is charged.
    pub(crate) fn call_numbers(&self) -> CallNumbers {
        match self {
            Self::Bucket(bucket) => [bucket.capacity, bucket.rate],
            Self::Window(_) | Self::SlidingWindow(_) | Self::Concurrency(_) | Self::Ban(_) => [0; 2],
        }
    }

    /// Returns the algorithm with the numbers of the call that opened a reservation.
    pub(crate) fn with_call_numbers(&self, numbers: CallNumbers) -> Self {
        match (self, numbers) {
            (Self::Bucket(own), [capacity, rate]) if rate > 0 && numbers != self.call_numbers() => {
                Self::Bucket(own.with_numbers(capacity, rate))
            }
            (Self::Window(_) | Self::SlidingWindow(_) | Self::Bucket(_) | Self::Concurrency(_) | Self::Ban(_), _) => {
                *self
            }
        }
    }

    /// Returns the algorithm with room for an amount that was granted under another limit, which may be in force again: charging
    /// the amount drops none of the hits in a log.
    pub(crate) fn keeping(self, entry: Entry<'_>, amount: u64) -> Self {
        match (self, entry.logs) {
            (Self::SlidingWindow(own), [log, ..]) => {
                Self::SlidingWindow(SlidingWindow { keep: own.keep.max(log.total + amount), ..own })
            }
            (Self::Window(_) | Self::SlidingWindow(_) | Self::Bucket(_) | Self::Concurrency(_) | Self::Ban(_), _) => {
                self
            }
        }
    }
}

/// Returns a bucket with the capacity and the rate of an exception. Its period may be out of range.
fn excepted_bucket(own: &Bucket, fields: &Numbers) -> Bucket {
    let rate = match own.kind {
        bucket::Kind::Token => fields[EXCEPTED_REFILL_RATE],
        bucket::Kind::Leaky => fields[EXCEPTED_LEAK_RATE],
    };
    let number = |number: u64, own: u64| if number > 0 { number } else { own };
    let capacity = number(fields[EXCEPTED_CAPACITY], own.capacity);
    Bucket::new(own.kind, capacity, number(rate, own.rate), own.per)
}
