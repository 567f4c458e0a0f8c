//! A policy whose limit and scale change while reservations are open: what one scale grants stays within its limit,
//! whatever is decided, extended and settled under the other scale in between.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::{Clock, Costs, Denied, Limiter, ManualClock, Reservation, Reserve, Settlement, Snapshot};

use crate::support::*;

/// An operation. Indices are of the open reservations, weights are of the limit, and times are thousandths of the longer
/// scale.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Hit(u64),
    Reserve(u64, u64),
    Settle(prop::sample::Index, Option<u64>),
    Extend(prop::sample::Index, u64),
}

/// The scale in force, the limit, whether denied hits count, how far the clock moves, and the operation.
type Turn = (usize, usize, bool, u64, Operation);

fn turns() -> impl Strategy<Value = Vec<Turn>> + Clone {
    let times = || prop_oneof![2 => Just(0), 4 => 1..=60_u64, 2 => 61..=500_u64, 1 => 501..=1_500_u64];
    let index = any::<prop::sample::Index>;
    let operation = prop_oneof![
        4 => weights().prop_map(Operation::Hit),
        3 => (weights(), times()).prop_map(|(weight, time)| Operation::Reserve(weight, 2 * time + 1)),
        2 => (index(), prop::option::of(weights())).prop_map(|(index, used)| Operation::Settle(index, used)),
        1 => (index(), times()).prop_map(|(index, time)| Operation::Extend(index, 2 * time + 1)),
    ];
    prop::collection::vec((0..2_usize, 0..3_usize, any::<bool>(), times(), operation), 1..80)
}

/// A reservation that is open, and the scale that granted it.
struct Granted {
    reservation: Reservation<u8>,
    scale: usize,
    amount: u64,
    end: u64,
}

/// The grants under each scale.
struct Story<'a> {
    clock: &'a ManualClock,
    limiter: Limiter<u8, &'a ManualClock>,
    open: Vec<Granted>,
    /// Times and amounts of what was used, by the scale that granted it. A reservation is used at the worst moment.
    uses: [Vec<(u64, u64)>; 2],
    random: u128,
}

impl Story<'_> {
    /// Puts other numbers in force, by a snapshot in JSON.
    fn deploy(&mut self, spec: &Spec) {
        let json = serde_json::to_string(&self.limiter.snapshot().unwrap()).unwrap();
        let snapshot: Snapshot<u8> = serde_json::from_str(&json).unwrap();
        self.limiter = Limiter::new(spec.policy(), self.clock).unwrap();
        self.limiter.restore(&snapshot).unwrap();
    }

    fn expire(&mut self, now: u64) {
        for Granted { scale, amount, end, .. } in self.open.extract_if(.., |open| open.end <= now) {
            self.uses[scale].push((end, amount));
        }
    }

    fn operate(&mut self, operation: Operation, spec: &Spec, scale: usize, longest: u64) -> TestCaseResult {
        let now = self.clock.now();
        let ttl_of = |thousandths: u64| (longest * thousandths).div_ceil(1_000);
        match operation {
            Operation::Hit(weight) => {
                let cost = fit(weight, spec.limit);
                if self.limiter.hit(&1, cost).unwrap().allowed {
                    self.uses[scale].push((now, cost));
                    self.check(spec, scale, now)?;
                }
            }
            Operation::Reserve(weight, time) => {
                let (amount, ttl) = (fit(weight, spec.limit), ttl_of(time));
                self.random += 1;
                let reserve = Reserve::new(self.random).cost(amount).ttl(ttl);
                if let Some(reservation) = self.limiter.reserve(&1, reserve).unwrap().reservation {
                    self.open.push(Granted { reservation, scale, amount, end: now + ttl });
                    self.check(spec, scale, now)?;
                }
            }
            Operation::Settle(index, used) if !self.open.is_empty() => {
                let Granted { reservation, scale, amount, .. } = self.open.remove(index.index(self.open.len()));
                let used = used.map_or(amount, |weight| fit(weight, amount).min(amount));
                let settlement = self.limiter.settle(reservation, Some(Costs::All(used))).unwrap();
                prop_assert_eq!(settlement, Settlement::Settled);
                self.uses[scale].push((now, used));
            }
            Operation::Extend(index, time) if !self.open.is_empty() => {
                let (at, ttl) = (index.index(self.open.len()), ttl_of(time));
                let open = &mut self.open[at];
                prop_assert_eq!(self.limiter.extend(&mut open.reservation, ttl).unwrap(), Settlement::Extended);
                open.end = now + ttl;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks what a scale has granted against its limit, at a grant.
    fn check(&self, spec: &Spec, scale: usize, now: u64) -> TestCaseResult {
        let open: u64 = self.open.iter().filter(|open| open.scale == scale).map(|open| open.amount).sum();
        let sum = |from: u64, to: u64| -> u64 {
            let within = self.uses[scale].iter().filter(|(time, _)| (from..to).contains(time));
            within.map(|(_, amount)| amount).sum()
        };
        let start = spec.start_of(now);
        let faded = match spec.kind {
            SlidingCounter => sum(start - spec.scale, start) * (start + spec.scale - now),
            _ => 0,
        };
        let from = if spec.kind == SlidingWindow { now + 1 - spec.scale } else { start };
        let used = faded + (sum(from, now + 1) + open) * spec.scale;
        prop_assert!(used <= spec.limit * spec.scale, "{spec:?} granted {used} parts at {now}");
        Ok(())
    }
}

/// Windows of a key start with a charge, which may be under another scale, and buckets convert: both have other oracles.
fn what_a_scale_grants_stays_within_its_limit(kind: Kind) {
    if kind.is_bucket() || matches!(kind, FixWindowPerKey | CalendarWindow) {
        return;
    }
    let scales = (1..=500_u64, prop_oneof![2..=9_u64, 10..=300_u64], 0..=3_u64);
    // A limit in memory may be higher than that of stored logs.
    let limits = prop_oneof![3 => 1..=9_u64, 1 => 1_000..=5_000_u64];
    let start = 1_767_225_600_000..1_767_225_700_000_u64;
    check_cases(768, (scales, limits, start, turns()), |((short, factor, odd), limit, start, turns)| {
        let (scales, limits) = ([short, short * factor + odd], [limit, limit / 2 + 1, limit / 9 + 1]);
        let spec_of = |scale: usize, limit: usize, counts: bool| {
            let denied = if counts { Denied::Count } else { Denied::Free };
            Spec { kind, limit: limits[limit], scale: scales[scale], rate: 1, denied }
        };
        let clock = ManualClock::new(start);
        let mut spec = spec_of(0, 0, false);
        let limiter = Limiter::new(spec.policy(), &clock).unwrap();
        let mut story = Story { clock: &clock, limiter, open: Vec::new(), uses: Default::default(), random: 0 };
        for (scale, limit, counts, time, operation) in turns {
            clock.advance((scales[1] * time).div_ceil(1_000));
            story.expire(clock.now());
            let next = spec_of(scale, limit, counts);
            if next != spec {
                spec = next;
                story.deploy(&spec);
            }
            story.operate(operation, &spec, scale, scales[1])?;
        }
        Ok(())
    });
}

each_algorithm!(what_a_scale_grants_stays_within_its_limit);
