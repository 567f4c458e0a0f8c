//! No algorithm admits more than its definition allows, at whatever cost and however the clock moves.
//!
//! Checked on the list of what was admitted, not on states. Times are effective ones: a clock that is behind a key
//! by up to a period counts as that key's last time, and one further behind takes the whole past along.

use proptest::prelude::*;
use tollgate::Denied;

use crate::support::*;

/// A hit that left something behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charged {
    /// When it counts: the start of its window, or for sliding windows and buckets the hit's own time.
    pub(crate) time: i128,
    /// When in that window.
    pub(crate) elapsed: i128,
    pub(crate) cost: i128,
    pub(crate) admitted: bool,
}

/// All that was charged to one key.
pub(crate) struct Past {
    pub(crate) spec: Spec,
    charged: Vec<Charged>,
    /// The most that was held at once, where what is charged is held.
    most_held: i128,
}

impl Past {
    pub(crate) fn new(spec: Spec) -> Self {
        Self { spec, charged: Vec::new(), most_held: 0 }
    }

    /// Notes a hit and what was answered.
    pub(crate) fn note(&mut self, cost: u64, now: u64, admitted: bool) {
        let (scale, now) = (i128::from(self.spec.scale), i128::from(now));
        let begins_by_clock = self.spec.kind.is_fix_window() || self.spec.kind == SlidingCounter;
        let this = if begins_by_clock { i128::from(self.spec.start_of(now as u64)) } else { now };
        let mut latest = self.charged.last().map(|hit| hit.time);
        if let Some(ahead) = latest.filter(|&latest| latest > now + i128::from(self.spec.period())) {
            self.charged.iter_mut().for_each(|hit| hit.time -= ahead - this);
            latest = Some(this);
        }
        if self.spec.kind == Concurrency {
            // A slot ends at the latest a ttl from now, and what has ended is free.
            self.charged.iter_mut().for_each(|hit| hit.time = hit.time.min(now));
            self.charged.retain(|hit| hit.time + scale > now);
            latest = None;
        }
        if cost == 0 || !(admitted || self.spec.denied == Denied::Count) {
            return;
        }
        let time = match (latest, self.spec.kind) {
            (Some(latest), FixWindowPerKey) if latest + scale > now => latest,
            (Some(latest), _) => latest.max(this),
            (None, _) => this,
        };
        self.charged.push(Charged { time, elapsed: (now - time).max(0), cost: cost.into(), admitted });
        self.most_held = self.most_held.max(self.charged.iter().map(|hit| hit.cost).sum());
    }

    /// Fails if more was admitted than the policy's definition allows.
    pub(crate) fn check(&self) -> Result<(), TestCaseError> {
        if self.spec.kind == Concurrency {
            prop_assert!(self.most_held <= i128::from(self.spec.limit), "{} slots at once", self.most_held);
        }
        for position in 0..self.charged.len() {
            if self.charged[position].admitted {
                self.check_one(position)?;
            }
        }
        Ok(())
    }

    fn check_one(&self, position: usize) -> Result<(), TestCaseError> {
        let past = &self.charged[..=position];
        let Charged { time, elapsed, .. } = past[position];
        let (scale, limit) = (i128::from(self.spec.scale), i128::from(self.spec.limit));
        let sum =
            |counts: &dyn Fn(&Charged) -> bool| past.iter().filter(|hit| counts(hit)).map(|hit| hit.cost).sum::<i128>();
        match self.spec.kind {
            FixWindow | CalendarWindow | FixWindowPerKey => {
                prop_assert!(sum(&|hit| hit.time == time) <= limit, "{past:#?}")
            }
            Concurrency => {}
            SlidingWindow => prop_assert!(sum(&|hit| hit.time > time - scale) <= limit, "{past:#?}"),
            SlidingCounter => {
                let (previous, current) = (sum(&|hit| hit.time == time - scale), sum(&|hit| hit.time == time));
                prop_assert!(previous * (scale - elapsed) + current * scale <= limit * scale, "{past:#?}");
            }
            TokenBucket | LeakyBucket => {
                let mut admitted = 0;
                for earlier in past.iter().rev() {
                    admitted += earlier.cost;
                    let flowed = i128::from(self.spec.rate) * (time - earlier.time);
                    prop_assert!(admitted * scale <= limit * scale + flowed, "{past:#?}");
                }
            }
        }
        Ok(())
    }
}

fn admits_no_more_than_its_definition(kind: Kind) {
    let hits = prop::collection::vec((anywhere(), weights()), 1..60);
    check((specs(kind), starts(), hits), |(spec, mut now, hits)| {
        let (mut ledger, mut past) = (spec.ledger(), Past::new(spec.clone()));
        for (step, weight) in hits {
            now = step.from(now, spec.period());
            let cost = fit(weight, spec.limit);
            let decision = hit(&mut ledger, cost, now);
            past.note(cost, now, decision.allowed);
        }
        past.check()
    });
}

/// Greedy traffic: all that fits is taken at every moment, so that limits are met exactly.
fn admits_all_of_its_limit(kind: Kind) {
    let moves = prop::collection::vec(a_little_back(), 1..40);
    check((specs(kind), starts(), moves), |(mut spec, mut now, moves)| {
        spec.denied = Denied::Free;
        let (mut ledger, mut past) = (spec.ledger(), Past::new(spec.clone()));
        for step in moves {
            now = step.from(now, spec.period());
            let remaining = peek(&mut ledger, 0, now).remaining;
            // A counter that went back within its window may be past its limit, where not even nothing fits.
            prop_assert!(hit(&mut ledger, remaining, now).allowed || remaining == 0);
            past.note(remaining, now, true);
            // One more is too many.
            prop_assert!(!hit(&mut ledger, 1, now).allowed);
            past.note(1, now, false);
        }
        past.check()
    });
}

each_algorithm!(admits_no_more_than_its_definition admits_all_of_its_limit);
