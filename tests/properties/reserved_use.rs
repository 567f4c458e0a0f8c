//! No more is really used than a policy allows, wherever within the life of its reservation each use comes.
//!
//! Checked on the list of uses. Times are effective ones: a clock that is a little behind what was charged last counts as
//! that time.

use proptest::prelude::*;
use tollgate::{Answer, Costs, Denied, Ledger, Operation, ReservationId};

use crate::reservations::ttl_of;
use crate::support::*;

/// A use of an amount at a time.
#[derive(Clone, Copy, Debug)]
struct Use {
    time: i128,
    cost: i128,
}

/// An open reservation, which is used at its worst moment.
#[derive(Clone, Debug)]
struct Open {
    id: ReservationId,
    /// The clock when it was made, and when its life begins.
    start: u64,
    since: u64,
    end: u64,
    ttl: u64,
    amount: u64,
    /// Where in its life it is used, in thousandths.
    moment: u64,
}

/// What was really used of one key.
struct Uses {
    spec: Spec,
    uses: Vec<Use>,
    /// The starts of a key's own windows.
    starts: Vec<u64>,
    open: Vec<Open>,
    /// What was charged last.
    latest: u64,
}

impl Uses {
    /// When something that is charged at `now` counts.
    fn effective(&self, now: u64) -> u64 {
        now.max(self.latest)
    }

    fn charge(&mut self, now: u64) {
        let at = self.effective(now);
        self.latest = match self.spec.kind {
            FixWindow | CalendarWindow | SlidingCounter => self.spec.start_of(at),
            FixWindowPerKey if self.starts.last().is_some_and(|&start| start + self.spec.scale > at) => self.latest,
            _ => at,
        };
        if self.spec.kind == FixWindowPerKey && self.starts.last() != Some(&self.latest) {
            self.starts.push(self.latest);
        }
    }

    /// Notes that a reservation is closed at `now`, after so much of it was used.
    fn close(&mut self, open: &Open, used: u64, now: u64) {
        let now = now.max(open.start);
        let closed = self.effective(now).max(open.since);
        let time = open.since + (u128::from(closed - open.since) * u128::from(open.moment) / 1_000) as u64;
        self.uses.push(Use { time: time.into(), cost: used.min(open.amount).into() });
        if used > 0 {
            self.charge(now);
        }
    }

    fn expire(&mut self, now: u64) {
        for open in &mut self.open {
            open.end = open.end.min(now + open.ttl);
        }
        self.open.sort_by_key(|open| open.end);
        while let Some(open) = self.open.first().filter(|open| open.end <= now).cloned() {
            self.open.remove(0);
            self.close(&open, open.amount, open.end);
        }
    }

    /// Fails if more was used than the policy's definition allows.
    fn check(&self) -> Result<(), TestCaseError> {
        let (scale, limit, rate) =
            (i128::from(self.spec.scale), i128::from(self.spec.limit), i128::from(self.spec.rate));
        let sum = |from: i128, to: i128| {
            self.uses.iter().filter(|own| from <= own.time && own.time < to).map(|own| own.cost).sum::<i128>()
        };
        for one in &self.uses {
            let (time, window) = (one.time, one.time.div_euclid(scale) * scale);
            match self.spec.kind {
                FixWindow | CalendarWindow => {
                    let start = self.spec.start_of(time as u64);
                    let end = self.spec.end_of(start);
                    prop_assert!(sum(start.into(), end.into()) <= limit, "{:?}", self.uses);
                }
                SlidingWindow => prop_assert!(sum(time, time + scale) <= limit, "{:?}", self.uses),
                SlidingCounter => {
                    let (previous, current) = (sum(window - scale, window), sum(window, time + 1));
                    let weighted = previous * (scale - (time - window)) + current * scale;
                    prop_assert!(weighted <= limit * scale, "{:?}", self.uses);
                }
                // A slot is not used, but held.
                Concurrency => {}
                TokenBucket | LeakyBucket => {
                    for last in &self.uses {
                        let flowed = rate * (last.time - time);
                        let within = last.time < time || sum(time, last.time + 1) * scale <= limit * scale + flowed;
                        prop_assert!(within, "{:?}", self.uses);
                    }
                }
                FixWindowPerKey => {}
            }
        }
        self.check_own_windows()
    }

    /// A key's own windows, and the stretches between them, in which only reservations can be used.
    fn check_own_windows(&self) -> Result<(), TestCaseError> {
        let (mut edges, scale) = (vec![0], self.spec.scale);
        edges.extend(self.starts.iter().flat_map(|&start| [start, start + scale]));
        edges.push(u64::MAX);
        for edge in edges.windows(2).filter(|_| self.spec.kind == FixWindowPerKey) {
            let (from, to) = (i128::from(edge[0]), i128::from(edge[1]));
            let sum: i128 = self.uses.iter().filter(|own| from <= own.time && own.time < to).map(|own| own.cost).sum();
            prop_assert!(sum <= i128::from(self.spec.limit), "from {from} to {to}: {:?}", self.uses);
        }
        Ok(())
    }
}

/// What the traffic does next.
#[derive(Clone, Copy, Debug)]
enum Traffic {
    Hit(u64),
    Reserve { weight: u64, ttl: u64, moment: u64 },
    Settle { which: usize, less: bool },
    Settled { which: usize },
    Cancel { which: usize },
    Extend { which: usize, ttl: u64 },
}

fn traffic() -> impl Strategy<Value = Traffic> + Clone {
    let (ttl, moment) = (1..=2_500_u64, prop_oneof![Just(0), Just(1_000_u64), 0..=1_000_u64]);
    let which = 0..8_usize;
    prop_oneof![
        4 => weights().prop_map(Traffic::Hit),
        6 => (weights(), ttl.clone(), moment).prop_map(|(weight, ttl, moment)| Traffic::Reserve { weight, ttl, moment }),
        2 => (which.clone(), prop::bool::ANY).prop_map(|(which, less)| Traffic::Settle { which, less }),
        2 => which.clone().prop_map(|which| Traffic::Settled { which }),
        2 => which.clone().prop_map(|which| Traffic::Cancel { which }),
        1 => (which, ttl).prop_map(|(which, ttl)| Traffic::Extend { which, ttl }),
    ]
}

fn settle(ledger: &mut Ledger, id: ReservationId, used: Option<u64>, now: u64) -> Answer {
    ledger.apply(Operation::Settle { id, used: used.map(Costs::All) }, now).unwrap().0
}

fn no_more_is_used_than_allowed(kind: Kind) {
    let story = prop::collection::vec((a_little_back(), traffic()), 1..80);
    check_cases(600, (specs(kind), starts(), story), |(mut spec, mut now, story)| {
        spec.denied = Denied::Free;
        let (mut ledger, mut made) = (spec.ledger(), 0);
        let mut uses = Uses { spec: spec.clone(), uses: vec![], starts: vec![], open: vec![], latest: 0 };
        for (step, traffic) in story {
            // Never so far back that the past would move.
            let latest = uses.open.iter().map(|open| open.start).fold(uses.latest, u64::max);
            now = step.from(now, spec.period()).max(latest.saturating_sub(spec.period()));
            // Both see every reading of the clock.
            hit(&mut ledger, 0, now);
            uses.expire(now);
            let taken = |uses: &mut Uses, which: usize| (which < uses.open.len()).then(|| uses.open.remove(which));
            match traffic {
                Traffic::Hit(weight) => {
                    let cost = fit(weight, spec.limit);
                    if hit(&mut ledger, cost, now).allowed && cost > 0 {
                        uses.uses.push(Use { time: uses.effective(now).into(), cost: cost.into() });
                        uses.charge(now);
                    }
                }
                Traffic::Reserve { weight, ttl, moment } => {
                    let (amount, ttl) = (fit(weight, spec.limit), ttl_of(&spec, ttl));
                    made += 1;
                    let operation = Operation::Reserve { costs: Costs::All(amount), ttl: Some(ttl), random: made };
                    if let Answer::Reserved { id: Some(id), .. } = ledger.apply(operation, now).unwrap().0 {
                        let since = uses.effective(now);
                        uses.open.push(Open { id, start: now, since, end: now + ttl, ttl, amount, moment });
                        uses.open.sort_by_key(|open| open.end);
                    }
                }
                Traffic::Settle { which, less } => {
                    if let Some(open) = taken(&mut uses, which) {
                        let used = if less { open.amount / 2 } else { open.amount };
                        settle(&mut ledger, open.id, Some(used), now);
                        uses.close(&open, used, now);
                    }
                }
                Traffic::Settled { which } => {
                    if let Some(open) = taken(&mut uses, which) {
                        settle(&mut ledger, open.id, None, now);
                        uses.close(&open, open.amount, now);
                    }
                }
                Traffic::Cancel { which } => {
                    if let Some(open) = taken(&mut uses, which) {
                        settle(&mut ledger, open.id, Some(0), now);
                    }
                }
                Traffic::Extend { which, ttl } => {
                    let ttl = ttl_of(&spec, ttl);
                    if let Some(open) = uses.open.get_mut(which) {
                        ledger.apply(Operation::Extend { id: open.id, ttl }, now).unwrap();
                        // The end never moves to an earlier time.
                        open.end = open.end.max(now + ttl);
                        (open.start, open.ttl) = (open.start.max(now), open.end - now);
                    }
                    uses.open.sort_by_key(|open| open.end);
                }
            }
        }
        let end = now + 10 * spec.period() + 86_400_000;
        uses.expire(end);
        uses.check()
    });
}

each_counting_algorithm!(no_more_is_used_than_allowed);
