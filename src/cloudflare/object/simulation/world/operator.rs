//! The operator, who sets, resets and refunds while leases and credit are open.

use super::World;
use crate::cloudflare::protocol::wire::Reply;
use crate::{Exception, Operation};

/// A change by the operator.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Change {
    /// Every shape of the plan's policies is unused.
    Reset,
    /// So much of the plan's first policy counts as used. What is leased counts besides.
    Set { used: u64 },
    /// So much of what was used of the plan's first policy is given back.
    Refund { cost: u64 },
}

/// A change, after so many uses.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Changed {
    pub(in super::super) at: u64,
    pub(in super::super) uses: usize,
    pub(in super::super) plan: usize,
    pub(in super::super) change: Change,
}

/// An exception that was set in the place of the one before.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Excepted {
    pub(in super::super) at: u64,
    /// When it ends; when it was lifted, if it lifts the one before.
    pub(in super::super) until: u64,
    /// The limit; `None` if everything is allowed.
    pub(in super::super) limit: Option<u64>,
}

impl World {
    /// Sets a random exception for some time, or lifts the one that the key has.
    pub(super) fn except(&mut self, now: u64) {
        let own = self.plans[0].limit;
        let limit = match self.random.below(5) {
            0 => None,
            1 => Some(0),
            2 => Some((own / 2).max(1)),
            3 => Some((own * 10).min(if self.plans[0].names[0] == "sliding_window" { 1_000 } else { u64::MAX })),
            _ => Some(own),
        };
        let numbers = |limit: u64| Exception::new().with("", "limit", limit)?.with("", "capacity", limit);
        let is_lifted = limit == Some(own);
        let exception = match limit {
            None => Exception::allow(),
            Some(0) => Exception::deny(),
            Some(limit) => numbers(limit).unwrap(),
        };
        let until = if is_lifted { now } else { now + 2_000 + self.random.below(60_000) };
        let exception = Some(&exception).filter(|_| !is_lifted);
        match self.apply(0, Operation::Except { exception, until }, now) {
            Some(Reply::Number(end)) => assert!(is_lifted || end == until),
            other => panic!("{other:?}"),
        }
        self.excepted.push(Excepted { at: now, until, limit });
    }

    /// Makes a random change.
    pub(super) fn change(&mut self, now: u64) {
        let plan = self.random.below(self.plans.len() as u64) as usize;
        let change = match self.random.below(3) {
            0 => {
                self.apply(plan, Operation::Reset, now);
                Change::Reset
            }
            1 => self.set(plan, now),
            _ => {
                let cost = 1 + self.random.below(30);
                let name = self.plans[plan].names[0].clone();
                self.apply(plan, Operation::Inc { policy: Some(&name), cost: -(cost as i64) }, now);
                Change::Refund { cost }
            }
        };
        self.record_window_start(now - self.clock_behind);
        self.changes.push(Changed { at: now, uses: self.uses.len(), plan, change });
    }

    /// Sets a count. If the storage fails, the count may be that or the one before: it is checked as a reset.
    fn set(&mut self, plan: usize, now: u64) -> Change {
        let (name, limit, counts_down) =
            (self.plans[plan].names[0].clone(), self.plans[plan].limit, self.plans[plan].counts_down);
        let count = self.random.below(limit + 1);
        let set = self.apply(plan, Operation::Set { policy: Some(&name), count }, now);
        let get = self.apply(plan, Operation::Get { policy: Some(&name) }, now);
        let (Some(Reply::Number(_)), Some(Reply::Number(found))) = (set, get) else { return Change::Reset };
        // More may be leased than is left.
        if if counts_down { found == 0 } else { found >= limit } {
            return Change::Reset;
        }
        let used = if counts_down { limit - count } else { count };
        // What is leased may be used beside it.
        Change::Set { used: used.min(limit.saturating_sub(found.abs_diff(count))) }
    }
}
