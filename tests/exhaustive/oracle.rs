//! The law once more, read off the page: one key with its states and reservations, and waits found by search.
//!
//! It shares no code with the crate. Numbers are signed and small, and nothing saturates.

use std::rc::Rc;

pub(crate) use crate::spec::{ALGORITHMS, Algorithm, Algorithm::*, NAMES, Spec};
use crate::state::State;

/// An open reservation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Open {
    pub(crate) id: u128,
    start: i64,
    pub(crate) end: i64,
    ttl: i64,
    amount: i64,
    /// The policies of the call that opened it, by which it is charged.
    specs: Vec<Spec>,
}

/// A decision, as far as the law says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) allowed: bool,
    pub(crate) count: i64,
    pub(crate) limit: i64,
    pub(crate) remaining: i64,
    /// `None` for never.
    pub(crate) retry_after: Option<i64>,
    pub(crate) reset_after: i64,
    pub(crate) more_after: i64,
    pub(crate) policy: usize,
    /// A bit for each policy that denied.
    pub(crate) violated: u32,
    /// Whether open reservations alone are in the way.
    pub(crate) reserved: bool,
}

/// An exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Excepted {
    /// A limit and a rate of the first policy; a rate of 0 for none.
    Numbers(i64, i64),
    Deny,
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Decided(Verdict),
    Number(i64),
    Done,
    Settled,
    Extended,
    Expired,
    Closed,
}

/// Operations. A reservation is named by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Hit(i64),
    Peek(i64),
    /// A policy's position and a cost, which may be negative.
    Inc(usize, i64),
    Set(usize, i64),
    Reset,
    /// A cost and a ttl.
    Reserve(i64, i64),
    /// Which reservation, counted back from the last one made, and the used amount; `None` for all.
    Settle(usize, Option<i64>),
    Extend(usize, i64),
    /// An exception, and how long it lasts.
    Except(Excepted, i64),
    Lift,
}

/// A reservation that was made, as its holder knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Made {
    pub(crate) id: u128,
    /// The end that the holder's id has.
    pub(crate) end: i64,
}

/// One key: a state for each shape, and the open reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) states: Vec<State>,
    /// The name of each shape.
    names: Rc<[usize]>,
    pub(crate) open: Vec<Open>,
    pub(crate) made: Vec<Made>,
    /// The exception and its end.
    excepted: Option<(Excepted, i64)>,
}

impl Key {
    /// A key never used, for policies of these shapes.
    pub(crate) fn new<'a>(specs: impl IntoIterator<Item = &'a Spec>) -> Self {
        let mut names = Vec::new();
        for spec in specs {
            if names.len() <= spec.shape {
                names.resize(spec.shape + 1, usize::MAX);
            }
            names[spec.shape] = spec.name;
        }
        Self { states: vec![State::Unused; names.len()], names: names.into(), ..Self::default() }
    }

    /// Charges the reservations that have expired, each at its end.
    fn expire(&mut self, now: i64) {
        if self.open.is_empty() {
            return;
        }
        self.open.sort_by_key(|open| open.end);
        for open in &mut self.open {
            // An end further away than the ttl was made by a clock that stepped back since.
            open.end = open.end.min(now + open.ttl);
        }
        self.open.sort_by_key(|open| open.end);
        while self.open.first().is_some_and(|open| open.end <= now) {
            let open = self.open.remove(0);
            self.close(&open, open.amount, open.end);
        }
    }

    /// Charges the used amount of a reservation in the shapes it was opened under, by the numbers of the call that opened
    /// it: not before it was made, nor before what the state has, unless one of them was a wrong reading of the clock.
    fn close(&mut self, open: &Open, used: i64, closed_at: i64) {
        for spec in &open.specs {
            let state = &mut self.states[spec.shape];
            let latest_possible = closed_at + spec.period();
            let start = if open.start > latest_possible { closed_at } else { open.start };
            let at = closed_at.max(start).max(state.latest().unwrap_or(closed_at));
            let at = if at > latest_possible { closed_at } else { at };
            if used > 0 {
                state.charge(spec, used, at);
            } else {
                state.follow(spec, at);
            }
        }
    }

    /// What is open in the shape of a policy.
    fn open_amount(&self, spec: &Spec) -> i64 {
        let counts = |open: &&Open| open.specs.iter().any(|own| own.shape == spec.shape);
        self.open.iter().filter(counts).map(|open| open.amount).sum()
    }

    /// What is used and open under one policy, in parts.
    fn taken(&self, spec: &Spec, now: i64) -> i64 {
        self.states[spec.shape].used(spec, now) + spec.parts(self.open_amount(spec))
    }

    fn remaining(&self, spec: &Spec, now: i64) -> i64 {
        (spec.parts(spec.limit) - self.taken(spec, now)).max(0) / spec.scale
    }

    /// The count under one policy, open amounts included.
    fn count(&self, spec: &Spec, now: i64) -> i64 {
        match spec.algorithm {
            TokenBucket => self.remaining(spec, now),
            _ => (self.taken(spec, now) + spec.scale - 1) / spec.scale,
        }
    }

    /// The key at a later time, if nothing else comes.
    fn later(&self, at: i64) -> Self {
        let mut later = self.clone();
        later.expire(at);
        later
    }

    /// Returns the exception in force.
    fn excepted(&self, at: i64) -> Option<Excepted> {
        self.excepted.filter(|(_, until)| at < *until).map(|(excepted, _)| excepted)
    }

    /// Returns the policies of a call with the numbers of the exception in force.
    fn in_force(&self, specs: &[Spec], at: i64) -> Vec<Spec> {
        let mut specs = specs.to_vec();
        if let (Some(Excepted::Numbers(limit, rate)), [first, ..]) = (self.excepted(at), &mut specs[..]) {
            let rate = if rate > 0 && first.algorithm.is_bucket() { rate } else { first.rate };
            *first = Spec { limit, rate, ..*first };
        }
        specs
    }

    /// How long it takes from `from` on, if nothing else comes, until something holds for the first time of the key and the
    /// policies in force; `None` if it cannot hold after all has ended.
    fn wait(&self, specs: &[Spec], now: i64, from: i64, holds: impl Fn(&Self, &[Spec], i64) -> bool) -> Option<i64> {
        let is_due = |at: i64| self.open.iter().any(|open| open.end <= at || open.end > at + open.ttl);
        let holds = |wait: i64| {
            let at = now + wait;
            let later = is_due(at).then(|| self.later(at));
            holds(later.as_ref().unwrap_or(self), &self.in_force(specs, at), at)
        };
        let from = from - now;
        // Most waits are short here, so that every millisecond can be asked.
        if let Some(wait) = (from..from + 64).find(|&wait| holds(wait)) {
            return Some(wait);
        }
        let mut ends: Vec<_> = self.open.iter().map(|open| open.end - now).collect();
        ends.extend(self.excepted.map(|(_, until)| until - now));
        ends.sort_unstable();
        first(from + 63, &ends, holds)
    }

    /// How long it takes until costs fit under all policies at once.
    fn wait_for(&self, specs: &[Spec], now: i64, from: i64, cost: impl Fn(&Spec) -> i64) -> Option<i64> {
        self.wait(specs, now, from, |later, specs, at| specs.iter().all(|spec| later.fits(spec, cost(spec), at)))
    }

    /// The numbers of a decision that was made and charged already. `denied` has a bit for each policy that denied.
    fn verdict(&self, specs: &[Spec], denied: u32, cost: i64, now: i64) -> Verdict {
        let mut verdict: Option<(Verdict, i64)> = None;
        for (position, spec) in self.in_force(specs, now).iter().enumerate() {
            let fits = denied >> position & 1 == 0;
            let remaining = self.remaining(spec, now);
            // The policy that binds most: a denial, then the longer wait under its numbers, or the less remaining.
            let alone = match self.alone() {
                _ if fits => 0,
                _ if cost > spec.limit => i64::MAX,
                alone => alone.wait_for(&[*spec], now, now, |_| cost).expect("a wait"),
            };
            let binds_more = verdict.as_ref().is_none_or(|(other, wait)| match (fits, other.allowed) {
                (true, true) => remaining < other.remaining,
                (false, false) => alone > *wait,
                (fits, _) => !fits,
            });
            if binds_more {
                let (count, limit) = (self.count(spec, now), spec.limit);
                let verdict_ = Verdict {
                    allowed: fits,
                    count,
                    limit,
                    remaining,
                    retry_after: Some(0),
                    reset_after: 0,
                    more_after: 0,
                    policy: position,
                    violated: denied,
                    reserved: false,
                };
                verdict = Some((verdict_, alone));
            }
        }
        let (verdict, _) = verdict.expect("a policy");
        let reset_after = self.wait(specs, now, now, |later, specs, at| {
            let is_unused = |spec: &Spec| later.states[spec.shape].is_unused(spec, at);
            specs.iter().all(|spec| later.open_amount(spec) == 0 && is_unused(spec))
        });
        let Verdict { remaining, .. } = verdict;
        let more_after = self.wait_for(specs, now, now, |spec| (remaining + 1).min(spec.limit));
        Verdict {
            allowed: denied == 0,
            retry_after: if denied == 0 { Some(0) } else { self.wait_for(specs, now, now, |_| cost) },
            reset_after: reset_after.expect("an end"),
            more_after: more_after.expect("an end"),
            ..verdict
        }
    }

    /// The verdict on a call that the exception denies.
    fn denied_by_exception(&self, specs: &[Spec], cost: i64, now: i64) -> Verdict {
        let until = self.excepted.map_or(now, |(_, until)| until);
        let denied = self.denied(specs, 0, now);
        let more_after = self.wait_for(specs, now, until, |spec| spec.limit.min(1));
        Verdict {
            allowed: false,
            remaining: 0,
            retry_after: self.wait_for(specs, now, until, |_| cost),
            more_after: more_after.expect("an end"),
            violated: 0,
            reserved: false,
            ..self.verdict(specs, denied, 0, now)
        }
    }

    /// The key without its exception.
    fn alone(&self) -> Self {
        Self { excepted: None, ..self.clone() }
    }

    /// The key without its reservations.
    fn without_open(&self) -> Self {
        Self { open: Vec::new(), ..self.clone() }
    }

    /// Whether a cost fits under one policy. No reservation may be due.
    fn fits(&self, spec: &Spec, cost: i64, now: i64) -> bool {
        self.taken(spec, now) <= spec.parts(spec.limit - cost)
    }

    /// A bit for each policy under which a cost does not fit.
    fn denied(&self, specs: &[Spec], cost: i64, now: i64) -> u32 {
        let specs = self.in_force(specs, now);
        let bits = specs.iter().enumerate().map(|(position, spec)| u32::from(!self.fits(spec, cost, now)) << position);
        bits.sum()
    }

    fn hit(&mut self, specs: &[Spec], cost: i64, now: i64) -> Verdict {
        if self.excepted(now) == Some(Excepted::Deny) {
            specs.iter().for_each(|spec| self.states[spec.shape].follow(spec, now));
            return self.denied_by_exception(specs, cost, now);
        }
        let denied = self.denied(specs, cost, now);
        let reserved = denied > 0 && self.without_open().denied(specs, cost, now) == 0;
        for spec in &self.in_force(specs, now) {
            let state = &mut self.states[spec.shape];
            match denied == 0 {
                true if cost > 0 => state.charge(spec, cost, now),
                false if cost > 0 && spec.counts => state.count_denied(spec, cost, now),
                _ => state.follow(spec, now),
            }
        }
        Verdict { reserved, ..self.verdict(specs, denied, cost, now) }
    }

    fn reserve(&mut self, specs: &[Spec], cost: i64, ttl: i64, now: i64) -> Verdict {
        if self.denied(specs, cost, now) > 0 || self.excepted(now) == Some(Excepted::Deny) {
            return self.hit(specs, cost, now);
        }
        let in_force = self.in_force(specs, now);
        for spec in &in_force {
            self.states[spec.shape].follow(spec, now);
        }
        let (id, end) = (self.next_id(), now + ttl);
        self.made.push(Made { id, end });
        self.open.push(Open { id, start: now, end, ttl, amount: cost, specs: in_force });
        self.verdict(specs, 0, cost, now)
    }

    /// The id that the next reservation gets.
    pub(crate) fn next_id(&self) -> u128 {
        self.made.len() as u128 + 1
    }

    /// The reservation that an operation names.
    pub(crate) fn named(&self, which: usize) -> Option<Made> {
        self.made.iter().rev().nth(which).copied()
    }

    /// What is said of a reservation that is not open.
    fn missing(&self, made: Made, now: i64) -> Outcome {
        if now >= made.end { Outcome::Expired } else { Outcome::Closed }
    }

    /// Does an operation; `None` if there is no such reservation.
    pub(crate) fn apply(&mut self, specs: &[Spec], op: Op, now: i64) -> Option<Outcome> {
        if let Op::Peek(cost) = op {
            let mut copy = self.clone();
            copy.expire(now);
            return Some(Outcome::Decided(match specs {
                // Slots are only reserved.
                [spec] if spec.algorithm == Concurrency && cost > 0 => copy.reserve(specs, cost, spec.scale, now),
                _ => copy.hit(specs, cost, now),
            }));
        }
        let made = match op {
            Op::Settle(which, _) | Op::Extend(which, _) => Some(self.named(which)?),
            _ => None,
        };
        self.expire(now);
        Some(match op {
            Op::Hit(cost) | Op::Peek(cost) => Outcome::Decided(self.hit(specs, cost, now)),
            Op::Inc(position, cost) => {
                let spec = &self.in_force(specs, now)[position];
                match cost {
                    0 => {}
                    1.. => self.states[spec.shape].charge(spec, cost, now),
                    _ => self.states[spec.shape].refund(spec, -cost, now),
                }
                Outcome::Number(self.count(spec, now))
            }
            Op::Set(position, count) => {
                let spec = &self.in_force(specs, now)[position];
                self.states[spec.shape].set(spec, count, now);
                Outcome::Number(self.count(spec, now))
            }
            // Every shape of the policies' names.
            Op::Reset => {
                for (state, name) in self.states.iter_mut().zip(self.names.iter()) {
                    if specs.iter().any(|spec| spec.name == *name) {
                        *state = State::Unused;
                    }
                }
                Outcome::Done
            }
            Op::Reserve(cost, ttl) => Outcome::Decided(self.reserve(specs, cost, ttl, now)),
            Op::Settle(_, used) => {
                let made = made?;
                match self.open.iter().position(|open| open.id == made.id) {
                    None => self.missing(made, now),
                    Some(index) => {
                        let open = self.open.remove(index);
                        self.close(&open, used.unwrap_or(open.amount), now);
                        Outcome::Settled
                    }
                }
            }
            Op::Except(excepted, length) => {
                self.excepted = Some((excepted, now + length));
                Outcome::Number(now + length)
            }
            Op::Lift => {
                let until = self.excepted.take().map_or(0, |(_, until)| until);
                Outcome::Number(if until > now { until } else { 0 })
            }
            Op::Extend(_, ttl) => {
                let made = made?;
                match self.open.iter_mut().find(|open| open.id == made.id) {
                    None => self.missing(made, now),
                    Some(open) => {
                        // Never to an earlier time.
                        (open.start, open.end) = (open.start.max(now), open.end.max(now + ttl));
                        open.ttl = open.end - now;
                        Outcome::Extended
                    }
                }
            }
        })
    }
}

/// The first wait past `least` for which something holds; `None` if it never does. Between two ends of reservations or of an
/// exception it keeps holding: at an end, a bucket that flows faster for this call than by itself may be fuller again.
fn first(mut least: i64, ends: &[i64], holds: impl Fn(i64) -> bool) -> Option<i64> {
    let held = ends.iter().map(|end| end - 1).find(|&before| {
        let found = before > least && holds(before);
        least = if found { least } else { least.max(before) };
        found
    });
    let mut most = held.unwrap_or(2 * least);
    while !holds(most) {
        (least, most) = (most, 2 * most);
        if most > 1 << 40 {
            return None;
        }
    }
    while least + 1 < most {
        let middle = least + (most - least) / 2;
        if holds(middle) { most = middle } else { least = middle }
    }
    Some(most)
}
