//! Waits by their definitions: for any key, `retry_after`, `more_after` and `reset_after` are the first times at which the same
//! call is allowed, more would be, and the key is as if never used, if nothing comes in between. Later times are asked of
//! copies of the key; no rate arithmetic is in here.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::{
    Costs, Decision, Denied, Exception, Limiter, MAX, ManualClock, Policies, Reason, Reservation, Reserve, Snapshot,
};

use crate::ban_oracle::Numbers;
use crate::support::*;

const KEY: u8 = 1;

/// A policy to try: a counting one or a ban.
#[derive(Clone, Debug)]
enum Tried {
    Counts(Spec),
    Bans(Numbers),
}

/// The policies of a case, named by their positions.
#[derive(Clone, Debug)]
struct Set(Vec<Tried>);

const NAMES: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

impl Set {
    fn policies(&self) -> Policies {
        let named = self.0.iter().zip(NAMES).map(|(tried, name)| match tried {
            Tried::Counts(spec) => spec.policy().named(name).unwrap(),
            Tried::Bans(numbers) => numbers.policy().named(name).unwrap(),
        });
        Policies::new(named).unwrap()
    }

    /// Returns the specs of the policies that count, with their positions.
    fn specs(&self) -> impl Iterator<Item = (usize, &Spec)> {
        self.0.iter().enumerate().filter_map(|(position, tried)| match tried {
            Tried::Counts(spec) => Some((position, spec)),
            Tried::Bans(_) => None,
        })
    }

    fn bans(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().zip(NAMES).filter(|(tried, _)| matches!(tried, Tried::Bans(_))).map(|(_, name)| name)
    }

    fn has_concurrency(&self) -> bool {
        self.specs().any(|(_, spec)| spec.kind == Concurrency)
    }

    /// Returns the set with other limits and rates, one pair for each policy.
    fn with(&self, numbers: &[(u64, u64)]) -> Self {
        let other = |(tried, &(limit, rate)): (&Tried, &(u64, u64))| match tried {
            Tried::Counts(spec) => Tried::Counts(Spec { limit, rate, ..spec.clone() }),
            Tried::Bans(numbers) => Tried::Bans(*numbers),
        };
        Self(self.0.iter().zip(numbers).map(other).collect())
    }

    /// Returns a period to move the clock by.
    fn period(&self) -> u64 {
        self.specs().map(|(_, spec)| spec.period()).min().unwrap_or(1_000)
    }
}

/// An exception to try, with limits and rates for some policies.
#[derive(Clone, Debug)]
enum Excepted {
    Allow,
    Deny,
    Numbers(Vec<(Option<u64>, Option<u64>)>),
}

impl Excepted {
    fn exception(&self, set: &Set) -> Exception {
        let numbers = match self {
            Self::Allow => return Exception::allow(),
            Self::Deny => return Exception::deny(),
            Self::Numbers(numbers) => numbers,
        };
        // A number that no algorithm has, so that the exception is not empty.
        let mut exception = Exception::new().with(NAMES[0], "after", 5_u64).unwrap();
        for (position, spec) in set.specs() {
            let (limit, rate) = numbers[position];
            let (limit_field, rate_field) = match spec.kind {
                TokenBucket => ("capacity", "refillRate"),
                LeakyBucket => ("capacity", "leakRate"),
                _ => ("limit", ""),
            };
            if let Some(limit) = limit {
                exception = exception.with(NAMES[position], limit_field, limit).unwrap();
            }
            if let Some(rate) = rate.filter(|_| spec.kind.is_bucket()) {
                exception = exception.with(NAMES[position], rate_field, rate).unwrap();
            }
        }
        exception
    }

    /// Returns the limit of the policy at a position.
    fn limit(&self, position: usize) -> Option<u64> {
        match self {
            Self::Allow | Self::Deny => None,
            Self::Numbers(numbers) => numbers[position].0,
        }
    }
}

/// Something done to a key. Numbers of a call are by their index.
#[derive(Clone, Debug)]
enum Deed {
    Hit(u64, Option<usize>),
    Reserve(u64, u64, Option<usize>),
    /// Settles the oldest reservation for so much.
    Settle(u64),
    Except(Excepted, u64),
    Lift,
    Ban(u64),
    Unban,
    Inc(u64),
}

fn sets() -> impl Strategy<Value = Set> {
    let counting = prop::sample::select(&KINDS[..]).prop_flat_map(specs).prop_map(Tried::Counts);
    let bans = (1..=3_u64, 1..=400_u64, 1..=900_u64)
        .prop_map(|(after, scale, length)| Tried::Bans(Numbers { after, scale, length, factor: 1, most: length }));
    let one = prop_oneof![7 => counting, 1 => bans];
    let list = prop_oneof![3 => prop::collection::vec(one.clone(), 1..=2), 2 => prop::collection::vec(one, 3..=8)];
    list.prop_map(|mut list| {
        if list.len() > 1 {
            for tried in &mut list {
                if let Tried::Counts(spec) = tried {
                    spec.denied = Denied::Free;
                }
            }
        }
        Set(list)
    })
}

fn excepted() -> impl Strategy<Value = Excepted> {
    let number = |most: u64| prop::option::of(prop_oneof![3 => 1..=9_u64, 1 => 10..=most]);
    prop_oneof![
        6 => prop::collection::vec((number(300), number(5_000)), 8).prop_map(Excepted::Numbers),
        1 => Just(Excepted::Allow),
        2 => Just(Excepted::Deny),
    ]
}

fn deeds() -> impl Strategy<Value = Deed> {
    let length = || prop_oneof![4 => 1..=60_u64, 3 => 61..=3_000_u64, 1 => 3_001..=86_400_000_u64];
    let call = || prop::option::weighted(0.25, 0..2_usize);
    prop_oneof![
        10 => (weights(), call()).prop_map(|(weight, call)| Deed::Hit(weight, call)),
        6 => (weights(), length(), call()).prop_map(|(weight, ttl, call)| Deed::Reserve(weight, ttl, call)),
        2 => (0..=3_u64).prop_map(Deed::Settle),
        3 => (excepted(), length()).prop_map(|(excepted, length)| Deed::Except(excepted, length)),
        1 => Just(Deed::Lift),
        1 => (1..=500_u64).prop_map(Deed::Ban),
        1 => Just(Deed::Unban),
        1 => weights().prop_map(Deed::Inc),
    ]
}

/// A key and what is known of it from outside.
struct Case<'a> {
    set: &'a Set,
    calls: [Set; 2],
    policies: Policies,
    clock: &'a ManualClock,
    limiter: Limiter<u8, &'a ManualClock>,
    open: Vec<Reservation<u8>>,
    excepted: Option<(Excepted, u64)>,
}

/// A call whose decision is examined.
#[derive(Clone, Copy, Debug)]
struct Call {
    cost: u64,
    numbers: Option<usize>,
}

impl<'a> Case<'a> {
    fn new(set: &'a Set, numbers: &[Vec<(u64, u64)>; 2], clock: &'a ManualClock) -> Self {
        let policies = set.policies();
        let limiter = Limiter::new(policies.clone(), clock).unwrap();
        let calls = [0, 1].map(|index| set.with(&numbers[index]));
        Self { set, calls, policies, clock, limiter, open: Vec::new(), excepted: None }
    }

    /// Returns the limit of the policy at a position for a call at a time: that of the exception, the call's, or its own.
    fn limit(&self, position: usize, call: Call, at: u64) -> u64 {
        let set = call.numbers.map_or(self.set, |index| &self.calls[index]);
        let own = set.specs().find(|(own, _)| *own == position).map_or(MAX, |(_, spec)| spec.limit);
        let excepted = self.excepted.as_ref().filter(|(_, until)| at < *until);
        excepted.and_then(|(excepted, _)| excepted.limit(position)).unwrap_or(own)
    }

    /// Returns a copy of the key at a later time.
    fn copy(&self, snapshot: &Snapshot<u8>, at: u64) -> Limiter<u8, &'a ManualClock> {
        self.clock.set(at);
        let mut copy = Limiter::new(self.policies.clone(), self.clock).unwrap();
        copy.restore(snapshot).unwrap();
        copy
    }

    /// Returns whether a cost for each policy that counts would be allowed at a later time.
    fn fits(&self, snapshot: &Snapshot<u8>, call: Call, at: u64, cost: impl Fn(usize) -> u64) -> bool {
        let costs: Vec<_> = self.set.specs().map(|(position, _)| (NAMES[position], cost(position))).collect();
        // A ban takes no cost.
        let costs = if costs.is_empty() { Costs::All(1) } else { Costs::ByPolicy(&costs) };
        let reserve = Reserve::new(random()).costs(costs).ttl(1);
        let numbers = call.numbers.map(|index| self.calls[index].policies());
        let reserve = match &numbers {
            Some(policies) => reserve.policies(policies),
            None => reserve,
        };
        self.copy(snapshot, at).reserve(&KEY, reserve).unwrap().decision.allowed
    }

    /// Returns when something of the key ends by itself.
    fn ends(&self) -> BTreeSet<u64> {
        let mut ends: BTreeSet<u64> = self.open.iter().map(|reservation| reservation.id.end()).collect();
        ends.extend(self.excepted.iter().map(|(_, until)| *until));
        ends.extend(self.set.bans().map(|name| self.limiter.expires_at_policy(&KEY, Some(name)).unwrap()));
        ends
    }

    /// Compares the waits of a decision that was made at `now` with their definitions.
    fn examine(&self, decision: &Decision, call: Call, now: u64) -> TestCaseResult {
        self.clock.set(now);
        let (snapshot, ends) = (self.limiter.snapshot().unwrap(), self.ends());
        let retry_at = match decision.allowed {
            true => Some(now),
            false => first(&ends, now, |at| self.fits(&snapshot, call, at, |_| call.cost)),
        };
        prop_assert_eq!(decision.retry_after, retry_at.map(|at| at - now), "retry: {:?}", decision);
        let is_free = decision.allowed && decision.limit == MAX;
        let more = |at: u64| {
            let cost = |position| (decision.remaining + 1).min(self.limit(position, call, at));
            self.fits(&snapshot, call, at, cost)
        };
        let more_at = if is_free { Some(now) } else { first(&ends, now, more) };
        prop_assert_eq!(Some(now + decision.more_after), more_at, "more: {:?}", decision);
        // What an exception decides without numbers leaves the states as they are.
        let states = match self.excepted {
            Some((Excepted::Allow | Excepted::Deny, until)) if now < until => {
                let mut lifted = self.copy(&snapshot, now);
                lifted.lift_exception(&KEY).unwrap();
                lifted.snapshot().unwrap()
            }
            _ => snapshot,
        };
        let unused = |at: u64| {
            let copy = self.copy(&states, at);
            let mut bans = self.set.bans().map(|name| copy.expires_at_policy(&KEY, Some(name)).unwrap());
            bans.all(|end| end == 0) && self.fits(&states, call, at, |position| self.limit(position, call, at))
        };
        prop_assert_eq!(Some(now + decision.reset_after), first(&ends, now, unused), "reset: {:?}", decision);
        Ok(())
    }

    /// Does something, and examines the decision if there is one.
    fn apply(&mut self, deed: &Deed, now: u64) -> TestCaseResult {
        self.clock.set(now);
        let limit = self.set.specs().next().map_or(1, |(_, spec)| spec.limit);
        self.open.retain(|reservation| reservation.id.end() > now);
        match deed {
            Deed::Hit(weight, numbers) if !self.set.has_concurrency() => {
                let cost = fit(*weight, limit);
                let call = Call { cost, numbers: *numbers };
                let expected = self.without_reservations(call, now);
                let peeked = self.limiter.peek(&KEY, cost).unwrap();
                let violations = self.violations();
                let decision = match numbers {
                    Some(index) => self.limiter.hit_with(&KEY, cost, &self.calls[*index].policies()).unwrap(),
                    None => self.limiter.hit(&KEY, cost).unwrap(),
                };
                if numbers.is_none() {
                    prop_assert_eq!(peeked, decision);
                }
                self.examine_reason(&decision, expected, violations)?;
                self.examine(&decision, call, now)
            }
            Deed::Hit(weight, numbers) => self.reserve(fit(*weight, limit), None, *numbers, now),
            Deed::Reserve(weight, ttl, numbers) => self.reserve(fit(*weight, limit), Some(*ttl), *numbers, now),
            Deed::Settle(used) => {
                if !self.open.is_empty() {
                    let reservation = self.open.remove(0);
                    self.limiter.settle(reservation, Some(Costs::All(*used))).unwrap();
                }
                Ok(())
            }
            Deed::Except(excepted, length) => {
                let exception = excepted.exception(self.set);
                self.limiter.except(&KEY, &exception, now + length).unwrap();
                self.excepted = Some((excepted.clone(), now + length));
                Ok(())
            }
            Deed::Lift => {
                self.limiter.lift_exception(&KEY).unwrap();
                self.excepted = None;
                Ok(())
            }
            Deed::Ban(length) => {
                if let Some(name) = self.set.bans().next() {
                    self.limiter.ban_policy(&KEY, *length, Some(name)).unwrap();
                }
                Ok(())
            }
            Deed::Unban => {
                if let Some(name) = self.set.bans().next() {
                    self.limiter.unban_policy(&KEY, Some(name)).unwrap();
                }
                Ok(())
            }
            Deed::Inc(weight) => {
                if let Some((position, spec)) = self.set.specs().find(|(_, spec)| spec.kind != Concurrency) {
                    self.limiter.inc_policy(&KEY, fit(*weight, spec.limit) as i64, Some(NAMES[position])).unwrap();
                }
                Ok(())
            }
        }
    }

    fn reserve(&mut self, cost: u64, ttl: Option<u64>, numbers: Option<usize>, now: u64) -> TestCaseResult {
        let reserve = Reserve::new(random()).cost(cost);
        let reserve = match ttl {
            Some(ttl) => reserve.ttl(ttl),
            None => reserve,
        };
        let policies = numbers.map(|index| self.calls[index].policies());
        let reserve = match &policies {
            Some(policies) => reserve.policies(policies),
            None => reserve,
        };
        let call = Call { cost, numbers };
        let (expected, violations) = (self.without_reservations(call, now), self.violations());
        let reserving = self.limiter.reserve(&KEY, reserve).unwrap();
        self.open.extend(reserving.reservation);
        self.examine_reason(&reserving.decision, expected, violations)?;
        self.examine(&reserving.decision, call, now)
    }

    /// Returns whether a call would be allowed if no reservation were open.
    fn without_reservations(&self, call: Call, now: u64) -> bool {
        self.clock.set(now);
        let mut copy = self.copy(&self.limiter.snapshot().unwrap(), now);
        for reservation in &self.open {
            copy.settle_by_id(&KEY, &reservation.id, Some(Costs::All(0))).unwrap();
        }
        self.fits(&copy.snapshot().unwrap(), call, now, |_| call.cost)
    }

    /// Returns the violations under each ban.
    fn violations(&self) -> Vec<u64> {
        self.set.bans().map(|name| self.limiter.get_policy(&KEY, Some(name)).unwrap()).collect()
    }

    /// Checks that a denial is `reserved` if open reservations alone cause it, and then is no violation.
    fn examine_reason(&self, decision: &Decision, without: bool, violations: Vec<u64>) -> TestCaseResult {
        let comes_first = matches!(decision.reason, Some(Reason::Banned | Reason::Denied | Reason::Full));
        let is_reserved = decision.reason == Some(Reason::Reserved);
        if !comes_first {
            prop_assert_eq!(is_reserved, !decision.allowed && without, "{:?}", decision);
        }
        if decision.allowed || is_reserved || decision.reason == Some(Reason::Denied) {
            prop_assert_eq!(self.violations(), violations, "{:?}", decision);
        }
        Ok(())
    }
}

/// Returns bits that are no lease's.
fn random() -> u128 {
    next_random() | 7 << 96
}

/// Returns the first time from `now` on for which something holds; `None` if there is none. Between two times at which
/// something ends by itself, it keeps holding.
fn first(ends: &BTreeSet<u64>, now: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let mut least = now;
    for &end in ends.iter().filter(|end| **end > now) {
        if holds(end - 1) {
            return Some(bisect(least, end - 1, holds));
        }
        least = end;
    }
    // After the last end only what is used flows or ends.
    let steps = (0..50).map(|power| least + (1_u64 << power) - 1);
    let most = steps.into_iter().find(|&most| holds(most))?;
    Some(bisect(least, most, holds))
}

/// Returns the first time up to `most` for which something holds that keeps holding.
fn bisect(mut least: u64, mut most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while least < most {
        let middle = least + (most - least) / 2;
        if holds(middle) { most = middle } else { least = middle + 1 }
    }
    most
}

/// Returns how many cases to try: those of the environment, for a long run by hand.
fn cases() -> u32 {
    std::env::var("WAITS_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(768)
}

#[test]
fn all_waits_are_as_their_definitions_say() {
    let numbers = || prop::collection::vec((prop_oneof![3 => 1..=9_u64, 1 => 10..=300_u64], 1..=5_000_u64), 8);
    let deeds = prop::collection::vec((forward(), deeds()), 1..24);
    check_cases(cases(), (sets(), [numbers(), numbers()], starts(), deeds), |(set, numbers, mut now, deeds)| {
        let clock = ManualClock::new(now);
        let mut case = Case::new(&set, &numbers, &clock);
        for (step, deed) in &deeds {
            now = step.from(now, set.period());
            case.apply(deed, now)?;
        }
        Ok(())
    });
}
