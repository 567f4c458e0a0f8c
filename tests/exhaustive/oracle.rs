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
    /// The policies it was opened under.
    specs: Vec<Spec>,
    /// Which of them were numbers for that call only, which then stay with it.
    has_numbers: Vec<bool>,
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

    /// Charges the reservations that have expired, each at its end. `own` are the numbers of the limiter or ledger.
    fn expire(&mut self, own: &[Spec], now: i64) {
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
            self.close(own, &open, open.amount, open.end, now);
        }
    }

    /// Charges the used amount of a reservation in the shapes it was opened under: not before it was made, nor before what
    /// the state has, unless one of them was a wrong reading of the clock.
    fn close(&mut self, own: &[Spec], open: &Open, used: i64, closed_at: i64, now: i64) {
        for (opened, has_numbers) in open.specs.iter().zip(&open.has_numbers) {
            // Without numbers of its own it is charged by those at hand, if its shape still is.
            let has_numbers = *has_numbers && opened.algorithm.is_bucket();
            let at_hand = own.iter().find(|spec| spec.shape == opened.shape && !has_numbers);
            let spec = at_hand.unwrap_or(opened);
            let state = &mut self.states[spec.shape];
            let latest_possible = closed_at + spec.period();
            let start = if open.start > latest_possible { closed_at } else { open.start };
            let at = closed_at.max(start).max(state.latest().unwrap_or(closed_at));
            let at = if at > latest_possible { now } else { at };
            if used > 0 {
                state.charge(spec, used, !has_numbers, at);
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
    fn later(&self, own: &[Spec], at: i64) -> Self {
        let mut later = self.clone();
        later.expire(own, at);
        later
    }

    /// How long it takes under one policy, if nothing else comes, until a cost fits, until more than `remaining` does, and
    /// until the key is as if unused: each the first time at which it is so.
    fn waits(&self, own: &[Spec], spec: &Spec, cost: i64, remaining: i64, now: i64) -> [i64; 3] {
        let holds = |later: &Self, which: usize, at: i64| match which {
            0 => later.fits(spec, cost, at),
            1 => later.fits(spec, remaining + 1, at),
            _ => later.open_amount(spec) == 0 && later.states[spec.shape].is_unused(spec, at),
        };
        let is_due = |at: i64| self.open.iter().any(|open| open.end <= at || open.end > at + open.ttl);
        let mut waits = [None; 3];
        // Most waits are short here, so that every millisecond can be asked.
        for wait in 0..64 {
            let expired = is_due(now + wait).then(|| self.later(own, now + wait));
            let later = expired.as_ref().unwrap_or(self);
            for (which, found) in waits.iter_mut().enumerate() {
                if found.is_none() && holds(later, which, now + wait) {
                    *found = Some(wait);
                }
            }
            if waits.iter().all(Option::is_some) {
                break;
            }
        }
        let mut ends: Vec<_> = self.open.iter().map(|open| open.end - now).collect();
        ends.sort_unstable();
        let search = |which: usize| first(63, &ends, |wait| holds(&self.later(own, now + wait), which, now + wait));
        [0, 1, 2].map(|which| waits[which].unwrap_or_else(|| search(which)))
    }

    /// The numbers of a decision that was made and charged already. `denied` has a bit for each policy that denied.
    fn verdict(&self, own: &[Spec], specs: &[Spec], denied: u32, cost: i64, now: i64) -> Verdict {
        let mut verdict: Option<Verdict> = None;
        let mut reset_after = 0;
        for (position, spec) in specs.iter().enumerate() {
            let fits = denied >> position & 1 == 0;
            let remaining = self.remaining(spec, now);
            // What can never fit is not searched for.
            let (searched, left) = (cost.min(spec.limit), remaining.min(spec.limit - 1));
            let [retry, more, reset] = self.waits(own, spec, if fits { 0 } else { searched }, left, now);
            reset_after = reset_after.max(reset);
            let retry_after = match fits {
                true => Some(0),
                false if cost > spec.limit => None,
                false => Some(retry),
            };
            let never = |wait: Option<i64>| wait.unwrap_or(i64::MAX);
            // The policy that binds most: a denial, then the longer wait, or the less remaining.
            let binds_more = verdict.as_ref().is_none_or(|other| match (fits, other.allowed) {
                (true, true) => remaining < other.remaining,
                (false, false) => never(retry_after) > never(other.retry_after),
                (fits, _) => !fits,
            });
            if binds_more {
                verdict = Some(Verdict {
                    allowed: fits,
                    count: self.count(spec, now),
                    limit: spec.limit,
                    remaining,
                    retry_after,
                    reset_after: 0,
                    more_after: if remaining == spec.limit { 0 } else { more },
                    policy: position,
                    violated: denied,
                });
            }
        }
        Verdict { allowed: denied == 0, reset_after, ..verdict.expect("a policy") }
    }

    /// Whether a cost fits under one policy. No reservation may be due.
    fn fits(&self, spec: &Spec, cost: i64, now: i64) -> bool {
        self.taken(spec, now) <= spec.parts(spec.limit - cost)
    }

    /// A bit for each policy under which a cost does not fit.
    fn denied(&self, specs: &[Spec], cost: i64, now: i64) -> u32 {
        let bits = specs.iter().enumerate().map(|(position, spec)| u32::from(!self.fits(spec, cost, now)) << position);
        bits.sum()
    }

    fn hit(&mut self, own: &[Spec], specs: &[Spec], cost: i64, now: i64) -> Verdict {
        let denied = self.denied(specs, cost, now);
        for spec in specs {
            let state = &mut self.states[spec.shape];
            match denied == 0 {
                true if cost > 0 => state.charge(spec, cost, false, now),
                false if cost > 0 && spec.counts => state.count_denied(spec, cost, now),
                _ => state.follow(spec, now),
            }
        }
        self.verdict(own, specs, denied, cost, now)
    }

    fn reserve(&mut self, own: &[Spec], specs: &[Spec], cost: i64, ttl: i64, now: i64) -> Verdict {
        if self.denied(specs, cost, now) > 0 {
            return self.hit(own, specs, cost, now);
        }
        for spec in specs {
            self.states[spec.shape].follow(spec, now);
        }
        let (id, end) = (self.next_id(), now + ttl);
        self.made.push(Made { id, end });
        // The numbers of a call are its own only if they are others.
        let has_numbers = specs.iter().zip(own).map(|(call, own)| call != own).collect();
        self.open.push(Open { id, start: now, end, ttl, amount: cost, specs: specs.to_vec(), has_numbers });
        self.verdict(own, specs, 0, cost, now)
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
        self.apply_with(specs, specs, op, now)
    }

    /// The same with the numbers of the call, beside those of the limiter or ledger itself.
    pub(crate) fn apply_with(&mut self, own: &[Spec], specs: &[Spec], op: Op, now: i64) -> Option<Outcome> {
        if let Op::Peek(cost) = op {
            let mut copy = self.clone();
            copy.expire(own, now);
            return Some(Outcome::Decided(match specs {
                // Slots are only reserved.
                [spec] if spec.algorithm == Concurrency && cost > 0 => copy.reserve(own, specs, cost, spec.scale, now),
                _ => copy.hit(own, specs, cost, now),
            }));
        }
        let made = match op {
            Op::Settle(which, _) | Op::Extend(which, _) => Some(self.named(which)?),
            _ => None,
        };
        self.expire(own, now);
        Some(match op {
            Op::Hit(cost) | Op::Peek(cost) => Outcome::Decided(self.hit(own, specs, cost, now)),
            Op::Inc(position, cost) => {
                let spec = &specs[position];
                match cost {
                    0.. => self.states[spec.shape].charge(spec, cost, true, now),
                    _ => self.states[spec.shape].refund(spec, -cost, now),
                }
                Outcome::Number(self.count(spec, now))
            }
            Op::Set(position, count) => {
                let spec = &specs[position];
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
            Op::Reserve(cost, ttl) => Outcome::Decided(self.reserve(own, specs, cost, ttl, now)),
            Op::Settle(_, used) => {
                let made = made?;
                match self.open.iter().position(|open| open.id == made.id) {
                    None => self.missing(made, now),
                    Some(index) => {
                        let open = self.open.remove(index);
                        self.close(own, &open, used.unwrap_or(open.amount), now, now);
                        Outcome::Settled
                    }
                }
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

/// The first wait past `least` for which something holds. Between two ends of reservations it keeps holding: at an end, a
/// bucket that flows faster for this call than by itself may be fuller again.
fn first(mut least: i64, ends: &[i64], holds: impl Fn(i64) -> bool) -> i64 {
    let held = ends.iter().map(|end| end - 1).find(|&before| {
        let found = before > least && holds(before);
        least = if found { least } else { least.max(before) };
        found
    });
    let mut most = held.unwrap_or(2 * least);
    while !holds(most) {
        (least, most) = (most, 2 * most);
        assert!(most < 1 << 50, "it never holds");
    }
    while least + 1 < most {
        let middle = least + (most - least) / 2;
        if holds(middle) { most = middle } else { least = middle }
    }
    most
}
