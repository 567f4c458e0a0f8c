//! The holder's side of leases: decides hits from leases and remembered denials, without a message to the issuer.
//!
//! A holder counts a lease's life by its own clock, from when it sent the request. The issuer granted it later, so it ends
//! no earlier there. The clocks need not agree; the holder's must only not run much slower.

use alloc::string::String;
use core::fmt::Write;

use super::known::{Known, KnownKeys, LocalLease, PendingRenewal, Refusals};
use super::size::{Turn, turn};
use crate::growth::OutOfMemory;
use crate::{Decision, ReservationId};

/// How long a denial is remembered at most, in milliseconds. A `set` or `reset` takes effect that late.
const LONGEST_DENIAL: u64 = 2_000;

/// The duration of the longest leases, as a multiple of the holder's ttl.
const LONGEST_TURN: u64 = 8;

/// How long a holder waits for the reply to a renewal, in milliseconds.
const LONGEST_RENEWAL: u64 = 2_000;

/// The holder of leases: for each of its keys the lease, the last denial and the recent traffic.
#[derive(Clone, Debug)]
pub struct Holder {
    keys: KnownKeys,
    /// The duration of the leases of hot keys. Those of slower keys last longer.
    ttl: u64,
    remembers_denials: bool,
}

/// The next step for a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Return this decision: the lease allows the hit, or a remembered denial denies it.
    Decided {
        /// The decision.
        decision: Decision,
        /// A renewal to send to the issuer without a hit.
        renewal: Option<Report>,
    },
    /// Send the hit to the issuer, without a renewal.
    Ask,
    /// Send the hit to the issuer with this renewal.
    Renew(Report),
    /// Wait for a pending renewal, which will cover the hit.
    Wait,
}

/// A holder's report on its lease, and its request for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The holder's lease; `None` if it has none.
    pub id: Option<ReservationId>,
    /// The amount spent since the last report.
    pub used: u64,
    /// The requested amount; 0 to give the unspent part back.
    pub size: u64,
    /// The requested duration in milliseconds.
    pub ttl: u64,
}

/// An issuer's reply to a hit or a renewal.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// The cost of the hit; 0 if there was none.
    pub cost: u64,
    /// The decision.
    pub decision: Decision,
    /// How long a denial may be repeated at most, in milliseconds; 0 if it may end at any time.
    pub certain: u64,
    /// The open lease.
    pub lease: Option<super::Lease>,
}

/// How long a denial may be repeated while no reservation is open, in milliseconds.
pub const CERTAIN: u64 = LONGEST_DENIAL;

/// Returns the duration of the longest leases of a holder, for keys with few hits.
fn longest_turn(ttl: u64) -> u64 {
    (ttl * LONGEST_TURN).min(super::MAX_LEASE_TTL)
}

impl Holder {
    /// Returns a holder of at most `capacity` keys, which requests leases of `ttl` milliseconds for hot keys, and longer
    /// ones for slower keys.
    pub fn new(capacity: usize, ttl: u64, remembers_denials: bool) -> Self {
        Self { keys: KnownKeys::new(capacity), ttl: ttl.clamp(1, super::MAX_LEASE_TTL), remembers_denials }
    }

    /// Returns the decision of a hit that a remembered denial covers.
    pub fn denied(&self, key: &str, cost: u64, now: u64) -> Option<Decision> {
        self.keys.get(key)?.denied(cost, now)
    }

    /// Decides a hit, or returns the request for the issuer.
    pub fn hit(&mut self, key: &str, cost: u64, now: u64) -> Step {
        let ttl = self.ttl;
        if cost == 0 {
            return Step::Ask;
        }
        // A key without a recent hit is left to the issuer, and takes no memory.
        let Some(known) = self.keys.get_recent(key, now, ttl) else { return Step::Ask };
        if let Some(decision) = known.denied(cost, now) {
            return Step::Decided { decision, renewal: None };
        }
        known.traffic.add(cost, now, ttl);
        known.slow_traffic.add(cost, now, longest_turn(ttl));
        known.drop_lost_renewal(now);
        if let Some(decision) = known.spend(cost, now) {
            let renewal = if known.is_due(now) { known.report(now, ttl) } else { None };
            return Step::Decided { decision, renewal };
        }
        if known.is_renewing() {
            return if known.claim(cost) { Step::Wait } else { Step::Ask };
        }
        match known.report(now, ttl) {
            Some(report) => Step::Renew(report),
            None => Step::Ask,
        }
    }

    /// Spends a lease after the issuer denied the hit or a renewal has ended; `None` if it does not cover the cost.
    pub fn spend(&mut self, key: &str, cost: u64, now: u64) -> Option<Decision> {
        self.keys.get_mut(key)?.spend(cost, now)
    }

    /// Records the issuer's reply to a request that was sent at `sent_at`; `renews` if that was a renewal.
    pub fn replied(&mut self, key: &str, reply: Reply, renews: bool, sent_at: u64, now: u64) {
        // A reply to a renewal that has timed out is ignored.
        let known = if renews { self.keys.get_mut(key) } else { None };
        if let Some(known) = known.filter(|known| known.pending.is_some_and(|pending| pending.since == sent_at)) {
            known.renewed(reply, sent_at, now);
        }
        let Reply { cost, decision, certain, .. } = reply;
        if decision.ends_lease()
            && let Some(known) = self.keys.get_mut(key)
        {
            // The end of the lease charges it.
            known.abandon();
        }
        let lasts = decision.retry_after.unwrap_or(LONGEST_DENIAL).min(certain).min(LONGEST_DENIAL);
        if !decision.allowed && lasts > 0 && cost > 0 && self.remembers_denials {
            // Without memory the denial is not remembered.
            let _: Result<(), OutOfMemory> = self.keys.deny(key, cost, decision, sent_at, lasts);
        }
    }

    /// Records that a renewal failed. The issuer may have charged the report or not, so the lease is dropped and its end
    /// charges it.
    pub fn failed(&mut self, key: &str) {
        if let Some(known) = self.keys.get_mut(key) {
            known.abandon();
        }
    }

    /// Returns the report that gives back a lease which was requested at `sent_at` and not renewed since; `None` if all of
    /// it is spent or it has ended.
    pub fn give_back(&mut self, key: &str, sent_at: u64, now: u64) -> Option<Report> {
        self.keys.get_mut(key)?.give_back(sent_at, now)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Known {
    /// Returns the decision of a hit that the remembered denial covers. A higher cost gets the same wait.
    fn denied(&self, cost: u64, now: u64) -> Option<Decision> {
        let denial = self.denial.as_ref()?;
        // If the clock has stepped back, the age of the denial is unknown.
        let holds = cost >= denial.cost && (denial.since..denial.until).contains(&now);
        holds.then(|| denial.decision.later(now - denial.since))
    }

    /// Spends the lease; `None` if it has ended or less than `cost` is left.
    fn spend(&mut self, cost: u64, now: u64) -> Option<Decision> {
        let lease = self.lease.as_mut()?;
        if !(lease.latest..lease.until).contains(&now) {
            // If the clock has stepped back, the age of the lease is unknown. Its spent amount stays recorded: a pending
            // renewal may not have reported it.
            lease.until = 0;
            return None;
        }
        lease.latest = now;
        lease.left = lease.left.checked_sub(cost)?;
        lease.spent += cost;
        lease.spent_since_decision += cost;
        let decision =
            lease.decision.with_spent(lease.spent_since_decision, lease.counts_down).later(now - lease.sent_at);
        Some(Decision { allowed: true, retry_after: Some(0), ..decision })
    }

    /// Returns whether three quarters of the lease's amount or time are spent, and no renewal is pending.
    fn is_due(&self, now: u64) -> bool {
        let Some(lease) = self.lease.as_ref().filter(|_| !self.is_renewing()) else { return false };
        4 * lease.left <= lease.amount || 4 * (now - lease.sent_at) >= 3 * (lease.until - lease.sent_at)
    }

    fn is_renewing(&self) -> bool {
        self.pending.is_some()
    }

    /// Claims a part of the pending renewal for a waiting hit. Returns false if the renewal will not cover it.
    fn claim(&mut self, cost: u64) -> bool {
        let Some(pending) = self.pending.as_mut() else { return false };
        match pending.unclaimed.checked_sub(cost) {
            Some(unclaimed) => {
                pending.unclaimed = unclaimed;
                true
            }
            None => false,
        }
    }

    /// Drops a renewal that has timed out: the request that sent it may have been cancelled.
    fn drop_lost_renewal(&mut self, now: u64) {
        if self.pending.is_some_and(|pending| now.abs_diff(pending.since) >= LONGEST_RENEWAL) {
            self.abandon();
        }
    }

    /// Starts a renewal and returns its report; `None` if there is too little traffic for a lease, if what is left of the
    /// lease is enough, or if the issuer has just refused one.
    fn report(&mut self, now: u64, ttl: u64) -> Option<Report> {
        let longest = longest_turn(ttl);
        let slow = (self.slow_traffic.recent(now, longest), self.slow_traffic.time(now, longest));
        let Turn { size, lasts } = turn(self.traffic.recent(now, ttl), ttl, slow, longest, self.size)?;
        let lease = self.lease.as_mut().filter(|lease| (lease.latest..lease.until).contains(&now));
        let (id, used, left) = match lease {
            Some(lease) => (Some(lease.id), &mut lease.spent, lease.left),
            None => (None, &mut 0, 0),
        };
        if left >= size || self.refusals.is_backing_off(now) {
            return None;
        }
        let used = core::mem::take(used);
        // Other hits wait for a renewal only if a lease was granted before.
        let unclaimed = if self.lease.is_some() { size } else { 0 };
        (self.size, self.pending) = (size, Some(PendingRenewal { since: now, unclaimed }));
        Some(Report { id, used, size, ttl: lasts })
    }

    /// Replaces the lease by the one that a renewal returned.
    fn renewed(&mut self, reply: Reply, sent_at: u64, now: u64) {
        self.pending = None;
        let former = self.lease.take();
        let Some(lease) = reply.lease else {
            self.size = 1;
            self.refusals.add(now);
            return;
        };
        self.refusals = Refusals::default();
        // Spent since the renewal was sent: the next one reports it. Another lease has nothing to do with it.
        let spent = former.filter(|former| former.id.bits() == lease.id.bits()).map_or(0, |former| former.spent);
        self.size = lease.amount.min(self.size).max(1);
        self.lease = Some(LocalLease {
            id: lease.id,
            amount: lease.amount,
            left: lease.amount.saturating_sub(spent),
            spent,
            spent_since_decision: spent,
            sent_at,
            latest: sent_at.max(now),
            until: sent_at + lease.life,
            decision: reply.decision,
            counts_down: lease.counts_down,
        });
    }

    fn abandon(&mut self) {
        (self.lease, self.pending, self.size) = (None, None, 1);
    }

    fn give_back(&mut self, sent_at: u64, now: u64) -> Option<Report> {
        let lease = self.lease.as_ref().filter(|lease| lease.sent_at == sent_at && self.pending.is_none())?;
        let is_alive = (lease.latest..lease.until).contains(&now);
        let (id, used, left) = (lease.id, lease.spent, lease.left);
        self.lease = None;
        // A lease that is spent in full is charged at its end.
        (is_alive && left > 0).then_some(Report { id: Some(id), used, size: 0, ttl: super::DEFAULT_LEASE_TTL })
    }
}

impl Report {
    /// Returns the report as one field: id, used, size and ttl, separated by commas.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some(id) = &self.id {
            let _ = write!(text, "{id}");
        }
        let _ = write!(text, ",{},{},{}", self.used, self.size, self.ttl);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_hundred_thousand_cold_keys_are_all_asked_for_and_few_are_known() {
        let mut holder = Holder::new(10_000, 1_000, true);
        // Miri is a thousand times slower.
        for number in 0..if cfg!(miri) { 100 } else { 100_000_u64 } {
            assert_eq!(holder.hit(&format!("key:{number}"), 1, 1_000 + number), Step::Ask);
            assert!(holder.len() <= 10_000);
        }
    }
}
