//! Every algorithm once more, as slowly and plainly as possible: whole logs, nothing saturated, and waits found by search.

use tollgate::{Denied, MAX, MAX_STORED_LOG, Operation};

use crate::support::*;

/// What is known of a key. Counts have no bound here.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Nothing: the key was never used.
    Unused,
    Window {
        start: u64,
        count: i128,
    },
    Log(Vec<(u64, i128)>),
    Pair {
        start: u64,
        previous: i128,
        current: i128,
    },
    /// The level in parts, and the rate of the last charge.
    Bucket {
        at: u64,
        level: i128,
        rate: u64,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) spec: Spec,
    /// The limit of the limiter, for which a log is kept, where `spec` is that of a call.
    pub(crate) keep: u64,
    pub(crate) state: State,
}

/// What a hit answers, of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) allowed: bool,
    pub(crate) count: u64,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<u64>,
    pub(crate) reset_after: u64,
    pub(crate) more_after: u64,
}

impl From<tollgate::Decision> for Verdict {
    fn from(decision: tollgate::Decision) -> Self {
        let tollgate::Decision { allowed, count, remaining, retry_after, reset_after, more_after, .. } = decision;
        Self { allowed, count, remaining, retry_after, reset_after, more_after }
    }
}

impl Model {
    pub(crate) fn new(spec: Spec) -> Self {
        Self { keep: spec.limit, spec, state: State::Unused }
    }

    /// The state at `now`: what is over is gone, what flows has flowed, and what is far ahead has come along.
    pub(crate) fn at(&self, now: u64) -> Self {
        let Spec { scale, .. } = self.spec;
        let far_ahead = |time: u64| time > now + self.spec.period();
        let state = match (&self.state, self.spec.kind) {
            (State::Unused, _) => State::Unused,
            (&State::Window { start, count }, kind) => {
                let new_start = if kind.is_fix_window() { self.spec.start_of(now) } else { now };
                match () {
                    () if far_ahead(start) => State::Window { start: new_start, count },
                    () if self.spec.end_of(start) <= now => State::Unused,
                    () => State::Window { start, count },
                }
            }
            (State::Log(hits), _) => {
                let newest = hits.iter().map(|hit| hit.0).max().unwrap_or(0);
                let back = if far_ahead(newest) { newest - now } else { 0 };
                let at = now.max(newest - back);
                let moved = hits.iter().map(|&(time, cost)| (time.saturating_sub(back), cost));
                State::Log(moved.filter(|&(time, _)| time + scale > at).collect())
            }
            (&State::Pair { start, previous, current }, _) => {
                let this = self.spec.start_of(now);
                match () {
                    // What is empty holds no time either.
                    () if far_ahead(start) || (previous, current) == (0, 0) => {
                        State::Pair { start: this, previous, current }
                    }
                    () if start + scale == this => State::Pair { start: this, previous: current, current: 0 },
                    () if start < this => State::Unused,
                    () => State::Pair { start, previous, current },
                }
            }
            (&State::Bucket { at, level, rate }, _) => {
                let flowed = i128::from(now.saturating_sub(at)) * i128::from(rate.max(self.spec.rate));
                match (level - flowed).max(0) {
                    0 => State::Unused,
                    level => State::Bucket { at: if far_ahead(at) { now } else { now.max(at) }, level, rate },
                }
            }
        };
        Self { spec: self.spec.clone(), state, ..*self }
    }

    /// So many hits, in parts: a hit is `scale` of them, so that there are no fractions.
    pub(crate) fn parts(&self, hits: impl Into<i128>) -> i128 {
        hits.into() * i128::from(self.spec.scale)
    }

    /// The whole limit, in parts.
    pub(crate) fn full(&self) -> i128 {
        self.parts(self.spec.limit)
    }

    /// What has been used of the limit at `now`, in parts.
    pub(crate) fn used(&self, now: u64) -> i128 {
        match &self.at(now).state {
            State::Unused => 0,
            State::Window { count, .. } => self.parts(*count),
            State::Log(hits) => self.parts(hits.iter().map(|hit| hit.1).sum::<i128>()),
            State::Pair { start, previous, current } => {
                let left = self.spec.scale - now.saturating_sub(*start);
                previous * i128::from(left) + self.parts(*current)
            }
            State::Bucket { level, .. } => *level,
        }
    }

    pub(crate) fn fits(&self, cost: u64, now: u64) -> bool {
        self.used(now) + self.parts(cost) <= self.full()
    }

    pub(crate) fn count(&self, now: u64) -> u64 {
        let scale = i128::from(self.spec.scale);
        let used = (self.used(now) + scale - 1) / scale;
        let limit = i128::from(self.spec.limit);
        (match self.spec.kind {
            TokenBucket => (limit - used).max(0),
            _ => used,
        }) as u64
    }

    /// Whether the key is, at `now`, as if it had never been used.
    pub(crate) fn unused(&self, now: u64) -> bool {
        match self.at(now).state {
            // A window of its own start is a window, also with nothing in it.
            State::Window { .. } if self.spec.kind == FixWindowPerKey => false,
            _ => self.used(now) == 0,
        }
    }

    /// Charges a cost, and brings the rate. A log counts up to 1,001, or one more than a higher limit.
    pub(crate) fn charge(&mut self, cost: u64, now: u64) {
        self.charge_up_to(cost, self.keep.max(MAX_STORED_LOG), false, now);
    }

    /// Charges a hit that counts even if it is denied: in a full log it takes the place of the oldest.
    pub(crate) fn charge_denied(&mut self, cost: u64, now: u64) {
        self.charge_up_to(cost, self.keep, true, now);
    }

    fn charge_up_to(&mut self, cost: u64, limit: u64, replaces: bool, now: u64) {
        let (cost, most) = (i128::from(cost), (i128::from(limit) + 1).min(i128::from(MAX)));
        let fresh = match self.spec.kind {
            FixWindow | CalendarWindow => State::Window { start: self.spec.start_of(now), count: 0 },
            FixWindowPerKey => State::Window { start: now, count: 0 },
            SlidingWindow => State::Log(Vec::new()),
            SlidingCounter => State::Pair { start: self.spec.start_of(now), previous: 0, current: 0 },
            TokenBucket | LeakyBucket => State::Bucket { at: now, level: 0, rate: self.spec.rate },
            // A slot that ends is free.
            Concurrency => State::Unused,
        };
        *self = self.at(now);
        if matches!(self.state, State::Unused) {
            self.state = fresh;
        }
        match &mut self.state {
            State::Unused => {}
            State::Window { count, .. } => *count += cost,
            State::Log(hits) => {
                let newest = hits.last().map_or(now, |hit| hit.0.max(now));
                let sum = hits.iter().map(|hit| hit.1).sum::<i128>();
                hits.push((newest, cost));
                give_up(hits, sum + cost - most.max(if replaces { sum } else { 0 }));
            }
            // What a counter lost at its end shows, once the rest of it fades.
            State::Pair { current, .. } => *current = (*current + cost).min(i128::from(MAX)),
            State::Bucket { level, rate, .. } => {
                *level += cost * i128::from(self.spec.scale);
                *rate = self.spec.rate;
            }
        }
    }

    pub(crate) fn set(&mut self, count: u64, now: u64) {
        self.charge(1, now);
        let (spec, count) = (self.spec.clone(), i128::from(count));
        match &mut self.state {
            State::Unused => {}
            State::Window { start, count: held } => {
                *start = if spec.kind.is_fix_window() { *start } else { now };
                *held = count;
            }
            State::Log(hits) => {
                // What was charged first came last.
                let count = count.min(i128::from(self.keep.max(MAX_STORED_LOG)) + 1);
                *hits = hits.last().map(|hit| (hit.0, count)).filter(|hit| hit.1 > 0).into_iter().collect();
            }
            State::Pair { previous, current, .. } => (*previous, *current) = (0, count),
            State::Bucket { level, rate, .. } => {
                let used = if spec.kind == TokenBucket { i128::from(spec.limit) - count } else { count };
                (*level, *rate) = (used * i128::from(spec.scale), spec.rate);
            }
        }
    }

    /// Gives back a cost, but no more than was used.
    pub(crate) fn refund(&mut self, cost: u64, now: u64) {
        let back = i128::from(cost);
        let parts = self.parts(cost);
        *self = self.at(now);
        match &mut self.state {
            State::Unused => {}
            State::Window { count, .. } => *count = (*count - back).max(0),
            State::Log(hits) => {
                give_up(hits, back);
            }
            State::Pair { previous, current, .. } => {
                let of_current = back.min(*current);
                (*current, *previous) = (*current - of_current, (*previous - (back - of_current)).max(0));
            }
            State::Bucket { level, .. } => *level = (*level - parts).max(0),
        }
    }

    pub(crate) fn hit(&mut self, cost: u64, now: u64) -> Verdict {
        let allowed = self.fits(cost, now);
        if cost > 0 && (allowed || self.spec.denied == Denied::Count) {
            self.charge_denied(cost, now);
        } else {
            *self = self.followed(now);
        }
        let retry_after = match allowed {
            true => Some(0),
            false if cost > self.spec.limit => None,
            false => Some(first(|wait| self.fits(cost, now + wait))),
        };
        let left = (self.full() - self.used(now)).max(0) / i128::from(self.spec.scale);
        let (remaining, reset_after) = (left as u64, first(|wait| self.unused(now + wait)));
        let more_after =
            if remaining == self.spec.limit { 0 } else { first(|wait| self.fits(remaining + 1, now + wait)) };
        Verdict { allowed, count: self.count(now), remaining, retry_after, reset_after, more_after }
    }

    /// Only lets a state that is far ahead follow the clock.
    pub(crate) fn followed(&self, now: u64) -> Self {
        if self.is_ahead(now) { self.at(now) } else { self.clone() }
    }

    fn is_ahead(&self, now: u64) -> bool {
        self.latest() > now + self.spec.period()
    }

    /// The last time that the state knows of.
    pub(crate) fn latest(&self) -> u64 {
        match &self.state {
            State::Unused | State::Pair { previous: 0, current: 0, .. } | State::Bucket { level: 0, .. } => 0,
            State::Window { start, .. } | State::Pair { start, .. } => *start,
            State::Log(hits) => hits.last().map_or(0, |hit| hit.0),
            State::Bucket { at, .. } => *at,
        }
    }

    /// Does what an operation does, and answers what `Ledger::apply` should.
    pub(crate) fn apply(&mut self, operation: Operation<'_>, now: u64) -> Result<Verdict, u64> {
        match operation {
            Operation::Hit { cost } => return Ok(self.hit(cost, now)),
            Operation::Peek { cost } => return Ok(self.clone().hit(cost, now)),
            Operation::Inc { cost, .. } if cost > 0 => self.charge(cost as u64, now),
            Operation::Inc { cost, .. } if cost < 0 => self.refund(cost.unsigned_abs(), now),
            Operation::Set { count, .. } => self.set(count, now),
            Operation::Reset => self.state = State::Unused,
            _ => {}
        }
        Err(self.count(now))
    }

    /// When a key's state is over, for a sweeper: 0 when it has none.
    pub(crate) fn expires_at(&self, now: u64) -> u64 {
        let model = self.at(now);
        match model.state {
            // A window set to 0 is a state until its end.
            State::Window { start, .. } => self.spec.end_of(start),
            _ if model.unused(now) => 0,
            // A bucket ends by its own rate.
            State::Bucket { rate, .. } => {
                let own = Self { spec: Spec { rate, ..self.spec.clone() }, ..model.clone() };
                now + first(|wait| own.unused(now + wait))
            }
            _ => now + first(|wait| model.unused(now + wait)),
        }
    }
}

/// Takes so much from the oldest hits.
fn give_up(hits: &mut Vec<(u64, i128)>, mut excess: i128) {
    for hit in hits.iter_mut() {
        let given = hit.1.min(excess.max(0));
        (hit.1, excess) = (hit.1 - given, excess - given);
    }
    hits.retain(|hit| hit.1 > 0);
}

/// The least number for which something holds that then keeps holding.
pub(crate) fn first(holds: impl Fn(u64) -> bool) -> u64 {
    if holds(0) {
        return 0;
    }
    let mut most = 1;
    while !holds(most) {
        most *= 2;
    }
    let mut least = most / 2;
    while least + 1 < most {
        let middle = least + (most - least) / 2;
        if holds(middle) { most = middle } else { least = middle }
    }
    most
}
