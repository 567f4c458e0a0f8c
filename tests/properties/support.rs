//! Policies, times and operations to try, and how a property is run.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::calendar::naive_window;
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestCaseResult, TestError, TestRunner};
use tollgate::{Answer, Calendar, Costs, Decision, Denied, Ledger, Limiter, ManualClock, Operation, Options, Policy};

pub(crate) const DAY: u64 = 86_400_000;

/// An algorithm to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    FixWindow,
    CalendarWindow,
    FixWindowPerKey,
    SlidingWindow,
    SlidingCounter,
    TokenBucket,
    LeakyBucket,
    Concurrency,
}

pub(crate) use Kind::*;

pub(crate) const KINDS: [Kind; 8] =
    [FixWindow, CalendarWindow, FixWindowPerKey, SlidingWindow, SlidingCounter, TokenBucket, LeakyBucket, Concurrency];

/// Those that count hits. Slots are only reserved, and reject `hit`, `inc` and `set`.
pub(crate) const COUNTING_KINDS: [Kind; 7] =
    [FixWindow, CalendarWindow, FixWindowPerKey, SlidingWindow, SlidingCounter, TokenBucket, LeakyBucket];

#[test]
fn every_algorithm_is_tried() {
    // A ban counts the denials of others: `bans.rs` tries it beside each of them.
    for name in tollgate::ALGORITHMS.iter().filter(|name| **name != "ban") {
        let spec = |kind| Spec { kind, limit: 1, scale: 1, rate: 1, denied: Denied::Free };
        assert!(KINDS.iter().any(|&kind| spec(kind).policy().algorithm() == *name), "{name}");
    }
}

impl Kind {
    pub(crate) fn is_bucket(self) -> bool {
        matches!(self, TokenBucket | LeakyBucket)
    }

    /// Whether all keys' windows begin together, and a window has one counter.
    pub(crate) fn is_fix_window(self) -> bool {
        matches!(self, FixWindow | CalendarWindow)
    }
}

/// A policy's numbers, for oracles that must not ask the policy itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    pub(crate) limit: u64,
    /// The window's `scale` or the bucket's `per`. For a window of the calendar any number: [`Spec::calendar`] reads it.
    pub(crate) scale: u64,
    pub(crate) rate: u64,
    pub(crate) denied: Denied,
}

impl Spec {
    pub(crate) fn policy(&self) -> Policy {
        let &Self { limit, scale, rate, .. } = self;
        let policy = match self.kind {
            FixWindow => Policy::fix_window(limit, scale),
            CalendarWindow => {
                let (unit, offset) = self.calendar();
                let sign = if offset < 0 { '-' } else { '+' };
                let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
                Policy::calendar(limit, unit)
                    .and_then(|policy| policy.utc_offset(&format!("{sign}{hours:02}:{minutes:02}")))
            }
            FixWindowPerKey => Policy::fix_window_per_key(limit, scale),
            SlidingWindow => Policy::sliding_window(limit, scale),
            SlidingCounter => Policy::sliding_counter(limit, scale),
            TokenBucket => Policy::token_bucket(limit, rate, scale),
            LeakyBucket => Policy::leaky_bucket(limit, rate, scale),
            Concurrency => Policy::concurrency(limit, scale),
        };
        policy.and_then(|policy| policy.denied(self.denied)).expect("a policy")
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::new(self.policy()).expect("a ledger")
    }

    /// The time by which a state may be ahead of the clock.
    pub(crate) fn period(&self) -> u64 {
        match self.kind.is_bucket() {
            true => {
                // A bucket's is rounded up to six significant bits.
                let empties = (u128::from(self.limit) * u128::from(self.scale)).div_ceil(u128::from(self.rate)) as u64;
                let unit = (empties + 1).next_power_of_two() / 64;
                empties.next_multiple_of(unit.max(1))
            }
            false if self.kind == CalendarWindow => match self.calendar().0 {
                Calendar::Day => DAY,
                Calendar::Week => 7 * DAY,
                _ => 31 * DAY,
            },
            false => self.scale,
        }
    }

    /// The unit of the calendar and the offset from UTC in minutes.
    pub(crate) fn calendar(&self) -> (Calendar, i64) {
        let unit = [Calendar::Month, Calendar::Day, Calendar::Week][(self.scale % 3) as usize];
        (unit, (self.scale / 3 % 1_681) as i64 - 840)
    }

    pub(crate) fn start_of(&self, now: u64) -> u64 {
        self.window_of(now).0
    }

    /// When the window that begins at `start` ends.
    pub(crate) fn end_of(&self, start: u64) -> u64 {
        if self.kind == CalendarWindow { self.window_of(start).1 } else { start + self.scale }
    }

    fn window_of(&self, now: u64) -> (u64, u64) {
        if self.kind == CalendarWindow {
            let (unit, offset) = self.calendar();
            return naive_window(unit, offset, now);
        }
        let start = now / self.scale * self.scale;
        (start, start + self.scale)
    }
}

/// The number that stands for a unit of the calendar at an offset from UTC in minutes.
pub(crate) fn calendar_scale(unit: Calendar, offset: i64) -> u64 {
    let unit = match unit {
        Calendar::Day => 1,
        Calendar::Week => 2,
        _ => 0,
    };
    3 * (offset + 840) as u64 + unit
}

/// One test for each algorithm of a list, for properties that are functions of the algorithm.
macro_rules! each_kind {
    (@ $property:ident { $($name:ident: $kind:ident,)+ }) => { $(
        #[test]
        fn $name() {
            super::$property(crate::support::Kind::$kind);
        }
    )+ };
    ($kinds:tt $($property:ident)+) => { $(
        mod $property {
            each_kind!(@ $property $kinds);
        }
    )+ };
}

/// One test per algorithm for each property.
macro_rules! each_algorithm {
    ($($property:ident)+) => {
        each_kind! { {
            fix_window: FixWindow,
            calendar_window: CalendarWindow,
            fix_window_per_key: FixWindowPerKey,
            sliding_window: SlidingWindow,
            sliding_counter: SlidingCounter,
            token_bucket: TokenBucket,
            leaky_bucket: LeakyBucket,
            concurrency: Concurrency,
        } $($property)+ }
    };
}

/// One test per algorithm that counts hits: the property is of `hit`, `inc` or `set`, which slots reject.
macro_rules! each_counting_algorithm {
    ($($property:ident)+) => {
        each_kind! { {
            fix_window: FixWindow,
            calendar_window: CalendarWindow,
            fix_window_per_key: FixWindowPerKey,
            sliding_window: SlidingWindow,
            sliding_counter: SlidingCounter,
            token_bucket: TokenBucket,
            leaky_bucket: LeakyBucket,
        } $($property)+ }
    };
}

/// Runs a property over many cases, and over those that ever failed.
pub(crate) fn check<S: Strategy>(strategy: S, property: impl Fn(S::Value) -> TestCaseResult) {
    check_cases(192, strategy, property);
}

pub(crate) fn check_cases<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value) -> TestCaseResult) {
    let persistence = FileFailurePersistence::Direct("regressions.txt");
    let config = ProptestConfig { cases, failure_persistence: Some(Box::new(persistence)), ..Default::default() };
    match TestRunner::new(config).run(&strategy, property) {
        Ok(()) => {}
        Err(TestError::Fail(reason, input)) => panic!("{reason}\nfor {input:#?}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// Policies of an algorithm: small numbers, so that limits are reached, and some odd ones.
pub(crate) fn specs(kind: Kind) -> impl Strategy<Value = Spec> + Clone {
    let limit = prop_oneof![4 => 1..=8_u64, 1 => 9..=300_u64];
    let scale = prop_oneof![
        2 => 1..=20_u64,
        4 => 21..=2_000_u64,
        1 => Just(60_000),
        // Past 2^21 a bucket's content takes another form.
        1 => (1_u64 << 21) - 1..=(1 << 21) + 1,
        1 => Just(86_400_000),
    ];
    let rate = prop_oneof![3 => 1..=9_u64, 1 => 10..=5_000_u64];
    let denied = prop_oneof![Just(Denied::Count), Just(Denied::Free)];
    (limit, scale, rate, denied).prop_map(move |(limit, scale, rate, denied)| {
        let denied = if kind.is_bucket() || kind == Concurrency { Denied::Free } else { denied };
        // A stored key has at most 128 reservations.
        let limit = if kind == Concurrency { limit.min(100) } else { limit };
        Spec { kind, limit, scale, rate, denied }
    })
}

pub(crate) fn any_spec() -> impl Strategy<Value = Spec> + Clone {
    prop::sample::select(&COUNTING_KINDS[..]).prop_flat_map(specs)
}

/// Where the clock starts: close to the epoch, and today.
pub(crate) fn starts() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![1 => 0..3_000_u64, 3 => 1_767_225_600_000..1_767_225_700_000_u64]
}

/// How the clock moves before an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Stay,
    Tick(u64),
    /// By so many thousandths of a period.
    Forward(u64),
    /// Back by at most a period.
    Back(u64),
    /// Back by more than a period.
    FarBack(u64),
}

impl Move {
    /// The same, unless it is back: then none.
    pub(crate) fn not_back(self) -> Self {
        if matches!(self, Self::Back(_) | Self::FarBack(_)) { Self::Stay } else { self }
    }

    pub(crate) fn from(self, now: u64, period: u64) -> u64 {
        let part = |thousandths: u64| (u128::from(period) * u128::from(thousandths)).div_ceil(1_000) as u64;
        match self {
            Self::Stay => now,
            Self::Tick(milliseconds) => now + milliseconds,
            Self::Forward(thousandths) => now + part(thousandths),
            Self::Back(thousandths) => now.saturating_sub(part(thousandths)),
            Self::FarBack(thousandths) => now.saturating_sub(period + part(thousandths)),
        }
    }
}

pub(crate) fn forward() -> impl Strategy<Value = Move> + Clone {
    prop_oneof![
        3 => Just(Move::Stay),
        3 => (1..=5_u64).prop_map(Move::Tick),
        3 => (1..=400_u64).prop_map(Move::Forward),
        1 => (1..=2_500_u64).prop_map(Move::Forward),
        1 => prop::sample::select(&[1_000_u64, 2_000][..]).prop_map(Move::Forward),
    ]
}

pub(crate) fn a_little_back() -> impl Strategy<Value = Move> + Clone {
    prop_oneof![
        6 => forward(),
        1 => (1..=1_000_u64).prop_map(Move::Back),
    ]
}

pub(crate) fn anywhere() -> impl Strategy<Value = Move> + Clone {
    prop_oneof![
        12 => a_little_back(),
        1 => (1..=9_000_u64).prop_map(Move::FarBack),
    ]
}

/// Something done to a key that may change it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Hit(u64),
    Inc(u64),
    Refund(u64),
    Set(u64),
}

impl Act {
    /// The operation, or where nothing but reservations counts, a reservation instead of it.
    pub(crate) fn operation_or_reserve(self, spec: &Spec) -> Operation<'static> {
        match self {
            Self::Hit(weight) | Self::Inc(weight) if spec.kind == Concurrency => {
                reserve(fit(weight, spec.limit).max(1))
            }
            Self::Refund(_) | Self::Set(_) if spec.kind == Concurrency => Operation::Peek { cost: 0 },
            _ => self.operation(spec),
        }
    }

    /// The operation, with its number fitted to the policy's limit.
    pub(crate) fn operation(self, spec: &Spec) -> Operation<'static> {
        match self {
            Self::Hit(weight) => Operation::Hit { cost: fit(weight, spec.limit) },
            Self::Inc(weight) => Operation::Inc { policy: None, cost: fit(weight, spec.limit) as i64 },
            Self::Refund(weight) => Operation::Inc { policy: None, cost: -(fit(weight, spec.limit) as i64) },
            Self::Set(weight) if spec.kind == TokenBucket => {
                Operation::Set { policy: None, count: fit(weight, spec.limit).min(spec.limit) }
            }
            Self::Set(weight) => Operation::Set { policy: None, count: fit(weight, spec.limit) },
        }
    }
}

/// A weight as a cost: as it is when small, else a share of the limit, up to a little past it.
pub(crate) fn fit(weight: u64, limit: u64) -> u64 {
    if weight <= 3 { weight } else { limit * (weight - 3) / 10 }
}

/// Mostly small, sometimes much of a limit, sometimes more than all of it.
pub(crate) fn weights() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![1 => Just(0), 6 => 1..=3_u64, 3 => 4..=16_u64]
}

pub(crate) fn acts() -> impl Strategy<Value = Act> + Clone {
    prop_oneof![
        6 => weights().prop_map(Act::Hit),
        1 => weights().prop_map(Act::Inc),
        1 => weights().prop_map(Act::Refund),
        1 => weights().prop_map(Act::Set),
    ]
}

/// A key that something has happened to: the ledger, and the time it is.
pub(crate) fn after(spec: &Spec, start: u64, history: &[(Move, Act)]) -> (Ledger, u64) {
    let (mut ledger, mut now) = (spec.ledger(), start);
    for (step, act) in history {
        now = step.from(now, spec.period());
        ledger.apply(act.operation_or_reserve(spec), now).expect("an operation");
    }
    (ledger, now)
}

/// Hits; reserves what is only reserved.
pub(crate) fn hit(ledger: &mut Ledger, cost: u64, now: u64) -> Decision {
    let slots = ledger.policies().iter().any(|policy| policy.algorithm() == "concurrency");
    let operation = if slots { reserve(cost) } else { Operation::Hit { cost } };
    decision(ledger.apply(operation, now).expect("a hit").0)
}

/// A reservation for the time that the policy says, with an id of its own.
pub(crate) fn reserve(cost: u64) -> Operation<'static> {
    Operation::Reserve { costs: Costs::All(cost), ttl: None, random: next_random() }
}

/// Bits that no other reservation has.
pub(crate) fn next_random() -> u128 {
    static LAST: AtomicU64 = AtomicU64::new(1 << 40);
    LAST.fetch_add(1, Ordering::Relaxed).into()
}

pub(crate) fn peek(ledger: &mut Ledger, cost: u64, now: u64) -> Decision {
    decision(ledger.apply(Operation::Peek { cost }, now).expect("a peek").0)
}

pub(crate) fn decision(answer: Answer) -> Decision {
    match answer {
        Answer::Decision(decision) | Answer::Reserved { decision, .. } => decision,
        other => panic!("{other:?} is not a decision"),
    }
}

pub(crate) fn limiter<'a>(spec: &Spec, clock: &'a ManualClock, options: Options) -> Limiter<u8, &'a ManualClock> {
    Limiter::with_options(spec.policy(), clock, options).expect("a limiter")
}
