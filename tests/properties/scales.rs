//! A policy whose `scale` changes back and forth, as in a gradual deploy or a rollback, admits no more for it.

use num_rational::BigRational;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::{
    Answer, Calendar, Clock, Costs, Denied, Ledger, Limiter, ManualClock, Operation, Policies, Record, ReservationId,
    Snapshot, step,
};

use crate::support::*;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const WINDOWS: [Kind; 4] = [FixWindow, FixWindowPerKey, SlidingWindow, SlidingCounter];

fn spec(kind: Kind, scale: u64) -> Spec {
    Spec { kind, limit: 5, scale, rate: 5, denied: Denied::Free }
}

/// A key that is kept outside, and operated on under one policy or another.
pub(crate) trait Carrier {
    fn operate(&mut self, spec: &Spec, operation: Operation<'static>, now: u64) -> Answer;
    /// What [`Operation::ExpiresAt`] would answer, with nothing stored.
    fn expires_at(&mut self, spec: &Spec, now: u64) -> u64;

    fn hit(&mut self, spec: &Spec, cost: u64, now: u64) -> bool {
        decision(self.operate(spec, Operation::Hit { cost }, now)).allowed
    }
}

/// A record, through JSON at every step.
#[derive(Default)]
pub(crate) struct Stored(Option<String>);

impl Stored {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Carrier for Stored {
    fn operate(&mut self, spec: &Spec, operation: Operation<'static>, now: u64) -> Answer {
        let record: Option<Record> = self.0.as_deref().map(|json| serde_json::from_str(json).unwrap());
        let step = step(&Policies::from(spec.policy()), record.as_ref(), operation, now).unwrap();
        assert_eq!(step.expires_at > now, step.record.is_some());
        if step.changed {
            self.0 = step.record.map(|record| serde_json::to_string(&record).unwrap());
        }
        step.answer
    }

    fn expires_at(&mut self, spec: &Spec, now: u64) -> u64 {
        let stored = Self(self.0.clone()).operate(spec, Operation::ExpiresAt { policy: None }, now);
        let Answer::Number(expires_at) = stored else { panic!("{stored:?} is not a time") };
        expires_at
    }
}

/// A limiter in memory, through a snapshot in JSON whenever its policy changes. Cleaned before each operation.
pub(crate) struct Restored<'a> {
    clock: &'a ManualClock,
    spec: Spec,
    limiter: Limiter<u8, &'a ManualClock>,
}

impl<'a> Restored<'a> {
    pub(crate) fn new(spec: &Spec, clock: &'a ManualClock) -> Self {
        Self { clock, spec: spec.clone(), limiter: Limiter::new(spec.policy(), clock).unwrap() }
    }
}

impl Carrier for Restored<'_> {
    fn operate(&mut self, spec: &Spec, operation: Operation<'static>, now: u64) -> Answer {
        self.clock.set(now);
        self.limiter.clean().unwrap();
        if *spec != self.spec {
            let json = serde_json::to_string(&self.limiter.snapshot().unwrap()).unwrap();
            let snapshot: Snapshot<u8> = serde_json::from_str(&json).unwrap();
            let mut next = Self::new(spec, self.clock);
            next.limiter.restore(&snapshot).unwrap();
            *self = next;
        }
        match operation {
            Operation::Hit { cost } => Answer::Decision(self.limiter.hit(&1, cost).unwrap()),
            Operation::Inc { cost, .. } => Answer::Number(self.limiter.inc(&1, cost).unwrap()),
            other => panic!("{other:?} is not needed"),
        }
    }

    fn expires_at(&mut self, spec: &Spec, now: u64) -> u64 {
        self.operate(spec, Operation::Hit { cost: 0 }, now);
        self.limiter.expires_at(&1).unwrap()
    }
}

#[test]
fn alternating_an_hour_and_a_minute_admits_five_an_hour() {
    for kind in WINDOWS {
        let mut key = Stored::default();
        let mut by_hour = [0; 2];
        for minute in 0..100 {
            let scale = if minute % 2 == 0 { HOUR } else { MINUTE };
            for _ in 0..10 {
                let admitted = key.hit(&spec(kind, scale), 1, minute * MINUTE);
                by_hour[minute as usize / 60] += u64::from(admitted && scale == HOUR);
            }
        }
        assert!(by_hour.iter().all(|&admitted| admitted <= 5), "{kind:?}: {by_hour:?}");
        assert_eq!(by_hour[0], 5, "{kind:?}");
    }
}

#[test]
fn a_deploy_of_a_second_between_two_of_a_day_admits_five_a_day_and_what_the_second_admits() {
    for kind in WINDOWS {
        let mut key = Stored::default();
        let mut admitted = [0; 3];
        for (deploy, scale) in [DAY, 1_000, DAY].into_iter().enumerate() {
            for minute in 0..3 {
                let now = (deploy as u64 * 10 + minute) * MINUTE;
                admitted[deploy] += (0..10).filter(|_| key.hit(&spec(kind, scale), 1, now)).count();
            }
        }
        assert_eq!((admitted[0], admitted[2]), (5, 0), "{kind:?}");
    }
}

#[test]
fn setting_or_resetting_a_key_drops_what_was_kept_of_another_scale() {
    for kind in WINDOWS {
        for forget in [Operation::Set { policy: None, count: 0 }, Operation::Reset] {
            let mut key = Stored::default();
            assert!(key.hit(&spec(kind, DAY), 5, 0));
            key.operate(&spec(kind, MINUTE), forget, MINUTE);
            assert!(key.hit(&spec(kind, DAY), 5, 10 * MINUTE), "{kind:?} {forget:?}");
        }
    }
}

#[test]
fn what_is_added_counts_under_both_scales() {
    for kind in WINDOWS {
        let mut key = Stored::default();
        assert!(key.hit(&spec(kind, DAY), 1, 0));
        key.operate(&spec(kind, MINUTE), Operation::Inc { policy: None, cost: 3 }, MINUTE);
        assert!(!key.hit(&spec(kind, DAY), 2, 2 * MINUTE), "{kind:?}");
        assert!(key.hit(&spec(kind, DAY), 1, 2 * MINUTE), "{kind:?}");
    }
}

/// What is known of one scale: since when all that was admitted is counted, and until when that is kept.
#[derive(Clone, Copy, Default)]
struct Kept {
    since: Option<u64>,
    until: u64,
    /// When the key's own window began, if there is one.
    window: Option<u64>,
}

/// Everything that was admitted, under whichever scale.
struct Oracle {
    specs: Vec<Spec>,
    kept: Vec<Kept>,
    admitted: Vec<(u64, u64)>,
    in_force: usize,
}

impl Oracle {
    fn new(specs: Vec<Spec>) -> Self {
        Self { kept: vec![Kept::default(); specs.len()], specs, admitted: Vec::new(), in_force: 0 }
    }

    /// Puts another scale in force.
    fn switch(&mut self, to: usize, key: &mut dyn Carrier, now: u64) {
        if to != self.in_force {
            let spec = &self.specs[self.in_force];
            let expires_at = key.expires_at(spec, now);
            let until = if expires_at > now { expires_at.max(now + spec.period()) } else { 0 };
            self.kept[self.in_force].until = until;
            if self.kept[to].until <= now {
                self.kept[to].since = None;
            }
        }
        self.in_force = to;
        if self.kept[to].since.is_none() {
            // What was converted began a window now.
            let expires_at = key.expires_at(&self.specs[to], now);
            let window = (expires_at > 0).then(|| expires_at.saturating_sub(self.specs[to].period()));
            self.kept[to] = Kept { since: Some(now), until: 0, window };
        }
    }

    /// Notes what was admitted, which counts under every scale.
    fn admit(&mut self, cost: u64, now: u64) {
        self.admitted.push((now, cost));
        for (kept, spec) in self.kept.iter_mut().zip(&self.specs) {
            kept.window = kept.window.filter(|start| start + spec.scale > now).or(Some(now));
        }
    }

    /// Checks a hit that was admitted now, against all that is known to the scale in force.
    fn check(&self, now: u64) -> TestCaseResult {
        let spec = &self.specs[self.in_force];
        let since = self.kept[self.in_force].since.unwrap_or(now);
        let sum = |from: u64, to: u64| -> u64 {
            let within = self.admitted.iter().filter(|(time, _)| *time >= from.max(since) && *time < to);
            within.map(|(_, cost)| cost).sum()
        };
        let start = spec.start_of(now);
        let used = match spec.kind {
            FixWindow | CalendarWindow => sum(start, spec.end_of(start)) * spec.scale,
            FixWindowPerKey => sum(self.kept[self.in_force].window.unwrap_or(now), now + 1) * spec.scale,
            SlidingWindow => sum((now + 1).saturating_sub(spec.scale), now + 1) * spec.scale,
            _ => {
                let previous = sum(start.saturating_sub(spec.scale), start);
                previous * (start + spec.scale - now) + sum(start, start + spec.scale) * spec.scale
            }
        };
        prop_assert!(used <= spec.limit * spec.scale, "{spec:?} admitted {used} parts at {now}");
        Ok(())
    }
}

/// A scale to put in force, how the clock moves by the longest scale, and a weight.
pub(crate) type Turn = (usize, u64, u64);

pub(crate) fn turns(scales: usize) -> impl Strategy<Value = Vec<Turn>> + Clone {
    let thousandths = prop_oneof![2 => Just(0), 4 => 1..=60_u64, 2 => 61..=500_u64, 1 => 501..=1_500_u64];
    prop::collection::vec((0..scales, thousandths, weights()), 1..80)
}

/// Runs turns, and checks what is admitted under each scale for which `checks` says so.
pub(crate) fn run(
    key: &mut dyn Carrier,
    specs: &[Spec],
    start: u64,
    turns: &[Turn],
    checks: &dyn Fn(usize) -> bool,
) -> TestCaseResult {
    let mut oracle = Oracle::new(specs.to_vec());
    let longest = specs.iter().map(Spec::period).max().unwrap();
    let mut now = start;
    for &(scale, thousandths, weight) in turns {
        now += (longest * thousandths).div_ceil(1_000);
        oracle.switch(scale, key, now);
        let (spec, cost) = (&specs[scale], fit(weight, specs[scale].limit));
        if key.hit(spec, cost, now) && cost > 0 {
            oracle.admit(cost, now);
            if checks(scale) {
                oracle.check(now)?;
            }
        }
    }
    Ok(())
}

fn specs_of(kind: Kind, limit: u64, scales: &[u64]) -> Vec<Spec> {
    scales.iter().map(|&scale| Spec { kind, limit, scale, rate: 1, denied: Denied::Free }).collect()
}

fn two_scales_hold_each_its_limit(kind: Kind) {
    if kind.is_bucket() {
        return a_bucket_refills_by_the_rate_in_force(kind);
    }
    let scales = (prop_oneof![1..=20_u64, 21..=2_000_u64], prop_oneof![2..=9_u64, 10..=300_u64], 0..=3_u64);
    check((scales, 1..=9_u64, starts(), turns(2)), |((short, factor, odd), limit, start, turns)| {
        let specs = specs_of(kind, limit, &[short, short * factor + odd]);
        run(&mut Stored::default(), &specs, start, &turns, &|_| true)?;
        let clock = ManualClock::new(start);
        run(&mut Restored::new(&specs[0], &clock), &specs, start, &turns, &|_| true)
    });
}

fn of_three_scales_the_longest_holds_its_limit(kind: Kind) {
    if kind.is_bucket() {
        return;
    }
    check((1..=100_u64, 1..=9_u64, starts(), turns(3)), |(short, limit, start, turns)| {
        let mut scales = [7 * short, short, 60 * short];
        if kind == CalendarWindow {
            let offset = (short % 57) as i64 * 30 - 840;
            scales = [Calendar::Week, Calendar::Day, Calendar::Month].map(|unit| calendar_scale(unit, offset));
        }
        let specs = specs_of(kind, limit, &scales);
        run(&mut Stored::default(), &specs, start, &turns, &|scale| scale == 2)?;
        let clock = ManualClock::new(start);
        run(&mut Restored::new(&specs[0], &clock), &specs, start, &turns, &|scale| scale == 2)
    });
}

each_algorithm!(two_scales_hold_each_its_limit of_three_scales_the_longest_holds_its_limit);

/// A bucket's content flows at the rate in force when it is asked, and no conversion adds to it.
fn a_bucket_refills_by_the_rate_in_force(kind: Kind) {
    let pers = (1..=2_000_u64, prop_oneof![1..=2_000_u64, (1_u64 << 21) - 1..=(1 << 21) + 1]);
    check((pers, 1..=9_u64, 1..=9_u64, starts(), turns(2)), |(pers, limit, rate, start, turns)| {
        let specs = [pers.0, pers.1].map(|scale| Spec { kind, limit, scale, rate, denied: Denied::Free });
        let whole = |number: u64| BigRational::from_integer(number.into());
        let (mut key, mut now, mut last, mut left) = (Stored::default(), start, start, whole(limit));
        for (scale, thousandths, weight) in turns {
            now += (specs[0].period() * thousandths).div_ceil(1_000);
            let (spec, cost) = (&specs[scale], fit(weight, limit));
            let flowed = whole(now - last) * whole(rate) / whole(spec.scale);
            let fits = (left.clone() + flowed).min(whole(limit));
            let admitted = key.hit(spec, cost, now);
            prop_assert!(!admitted || fits >= whole(cost), "{fits} left at {now}");
            // A bucket that is as if never used is not stored.
            if fits == whole(limit) || (admitted && cost > 0) {
                (left, last) = (fits - whole(if admitted { cost } else { 0 }), now);
            }
        }
        Ok(())
    });
}

/// Neither what was stored and has ended nor a cleaning makes a difference.
#[test]
fn a_limiter_in_memory_decides_as_a_store_of_records_does() {
    check((prop::sample::select(&WINDOWS[..]), 1..=9_u64, starts(), turns(2)), |(kind, limit, start, turns)| {
        let specs = specs_of(kind, limit, &[50, 3_000]);
        let clock = ManualClock::new(start);
        let (mut stored, mut restored) = (Stored::default(), Restored::new(&specs[0], &clock));
        let mut now = start;
        for (scale, thousandths, weight) in turns {
            now += (3_000 * thousandths).div_ceil(1_000);
            let hit = Operation::Hit { cost: fit(weight, limit) };
            let expected = stored.operate(&specs[scale], hit, now);
            prop_assert_eq!(restored.operate(&specs[scale], hit, now), expected);
            prop_assert_eq!(clock.now(), now);
        }
        Ok(())
    });
}

/// The state under another scale, through what a store would hold.
fn under(from: &Ledger, spec: &Spec, now: u64) -> Ledger {
    let mut ledger = spec.ledger();
    if let Some(record) = from.record(now) {
        ledger.load(&record, now).unwrap();
    }
    ledger
}

fn reserve(ledger: &mut Ledger, cost: u64, ttl: u64, random: u128) -> ReservationId {
    let operation = Operation::Reserve { costs: Costs::All(cost), ttl: Some(ttl), random };
    match ledger.apply(operation, 0).unwrap().0 {
        Answer::Reserved { id: Some(id), .. } => id,
        other => panic!("{other:?}"),
    }
}

/// What a reservation is charged at its end, in the past, does not shorten the time for which the other scale is kept.
#[test]
fn expired_reservations_leave_the_state_of_the_other_scale() {
    let (long, short) = (spec(SlidingWindow, 10_000), spec(SlidingWindow, 100));
    let mut ledger = long.ledger();
    reserve(&mut ledger, 1, 1_000, 1);
    reserve(&mut ledger, 1, 12_000, 2);
    let mut ledger = under(&ledger, &short, 20_000);
    assert!(decision(ledger.apply(Operation::Hit { cost: 5 }, 20_000).unwrap().0).allowed);
    let mut ledger = under(&ledger, &long, 21_500);
    let denied = decision(ledger.apply(Operation::Hit { cost: 5 }, 21_500).unwrap().0);
    assert_eq!((denied.allowed, denied.count, denied.retry_after), (false, 6, Some(8_500)));
}

/// Nor does a hit, while a reservation is open.
#[test]
fn the_state_of_the_other_scale_is_kept_until_open_reservations_are_charged() {
    let (long, short) = (spec(SlidingWindow, 10_000), spec(SlidingWindow, 100));
    let mut ledger = long.ledger();
    let id = reserve(&mut ledger, 4, HOUR, 1);
    let mut ledger = under(&ledger, &short, 1);
    assert!(decision(ledger.apply(Operation::Hit { cost: 1 }, 1).unwrap().0).allowed);
    ledger.apply(Operation::Settle { id, used: None }, 40_000).unwrap();
    let mut ledger = under(&ledger, &long, 40_200);
    assert!(!decision(ledger.apply(Operation::Hit { cost: 5 }, 40_200).unwrap().0).allowed);
}

/// Nor an extension of it under the other scale.
#[test]
fn the_state_of_the_other_scale_is_kept_until_extended_reservations_are_charged() {
    for kind in [FixWindow, SlidingWindow, SlidingCounter] {
        let (long, short) = (spec(kind, 10_000), spec(kind, 100));
        let mut ledger = long.ledger();
        let id = reserve(&mut ledger, 4, 1_000, 1);
        let mut ledger = under(&ledger, &short, 1);
        ledger.apply(Operation::Extend { id, ttl: HOUR }, 500).unwrap();
        ledger.apply(Operation::Settle { id, used: None }, 40_000).unwrap();
        let mut ledger = under(&ledger, &long, 40_200);
        assert!(!decision(ledger.apply(Operation::Hit { cost: 5 }, 40_200).unwrap().0).allowed, "{kind:?}");
    }
}

/// A sliding counter counts a charge in the window after it too.
#[test]
fn the_state_of_another_scale_is_kept_until_the_charges_of_reservations_have_faded() {
    let (long, short) = (spec(SlidingCounter, 10_000), spec(SlidingCounter, 100));
    let mut ledger = long.ledger();
    reserve(&mut ledger, 5, 12_000, 1);
    let mut ledger = under(&under(&ledger, &short, 1), &long, 24_000);
    let denied = decision(ledger.apply(Operation::Hit { cost: 3 }, 24_000).unwrap().0);
    assert_eq!((denied.allowed, denied.count, denied.retry_after), (false, 3, Some(2_000)));
}
