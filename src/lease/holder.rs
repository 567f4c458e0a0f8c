//! The holder's side of leases: what a machine knows of the keys that it asks about, and when it need not ask.
//!
//! A holder counts a lease's life from when it asked for it, by its own clock: a lease that was granted later ends no
//! earlier. It needs no clock that agrees with the issuer's, only one that does not run slower.

use alloc::string::String;
use core::fmt::Write;

use super::known::{Held, Known, KnownKeys, Renewing};
use super::size::wanted;
use crate::memory::OutOfMemory;
use crate::{Decision, ReservationId};

/// The longest that a denial is remembered, in milliseconds: how late a `set` or `reset` may be seen.
const LONGEST_DENIAL: u64 = 2_000;

/// After how long a renewal is given up that was not answered, in milliseconds.
const LONGEST_RENEWAL: u64 = 2_000;

/// What a holder knows of its keys: denials that hold for a while, leases that it spends, and how much is asked for.
#[derive(Debug)]
pub struct Holder {
    keys: KnownKeys,
    /// How long a lease is asked for.
    ttl: u64,
    remembers_denials: bool,
}

/// What a holder does with a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is decided: allowed from the lease, or denied as was remembered. A renewal is to be sent with no hit, if any.
    Decided {
        /// The decision.
        decision: Decision,
        /// The renewal that is due.
        renewal: Option<Report>,
    },
    /// The issuer is asked, as if there were no leases.
    Ask,
    /// The issuer is asked, with this renewal.
    Renew(Report),
    /// A renewal is under way that will cover the hit.
    Wait,
}

/// What a holder reports, and asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The lease that it has; empty if none.
    pub id: Option<ReservationId>,
    /// How much was spent of it since the last report.
    pub used: u64,
    /// The size that it asks for; 0 to give back what is left.
    pub size: u64,
    /// How long the lease is to last.
    pub ttl: u64,
}

/// What an issuer said of a hit or a renewal.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// The cost of the hit; 0 if there was none.
    pub cost: u64,
    /// The decision.
    pub decision: Decision,
    /// For how long a denial is certain at the most, in milliseconds; 0 if it may end at any time.
    pub certain: u64,
    /// The lease that is open.
    pub lease: Option<super::Lease>,
}

/// How certain a denial is that nothing but hits can end.
pub const CERTAIN: u64 = LONGEST_DENIAL;

impl Holder {
    /// Makes a holder that knows at most `capacity` keys, and asks for leases of `ttl` milliseconds.
    pub fn new(capacity: usize, ttl: u64, remembers_denials: bool) -> Self {
        Self { keys: KnownKeys::new(capacity), ttl: ttl.clamp(1, super::MAX_LEASE_TTL), remembers_denials }
    }

    /// Returns the decision of a hit that is known to be denied.
    pub fn denied(&self, key: &str, cost: u64, now: u64) -> Option<Decision> {
        self.keys.get(key)?.denied(cost, now)
    }

    /// Decides a hit, or returns what to ask the issuer.
    pub fn hit(&mut self, key: &str, cost: u64, now: u64) -> Step {
        let ttl = self.ttl;
        if cost == 0 {
            return Step::Ask;
        }
        // A key that was not hit a moment ago is left to the issuer, and takes no memory.
        let Some(known) = self.keys.warm(key, now, ttl) else { return Step::Ask };
        if let Some(decision) = known.denied(cost, now) {
            return Step::Decided { decision, renewal: None };
        }
        known.traffic.add(cost, now, ttl);
        known.forget_lost_renewal(now);
        if let Some(decision) = known.spend(cost, now) {
            let renewal = if known.is_due(now) { known.report(now, ttl) } else { None };
            return Step::Decided { decision, renewal };
        }
        if known.is_renewing() {
            return if known.promise(cost) { Step::Wait } else { Step::Ask };
        }
        match known.report(now, ttl) {
            Some(report) => Step::Renew(report),
            None => Step::Ask,
        }
    }

    /// Spends a lease, where the issuer did not allow the hit or a renewal has come.
    pub fn spend(&mut self, key: &str, cost: u64, now: u64) -> Option<Decision> {
        self.keys.get_mut(key)?.spend(cost, now)
    }

    /// Notes what the issuer replied to what was asked at `asked`; `renews` if that was a renewal.
    pub fn replied(&mut self, key: &str, reply: Reply, renews: bool, asked: u64, now: u64) {
        // The reply to a renewal that was given up comes too late.
        let known = if renews { self.keys.get_mut(key) } else { None };
        if let Some(known) = known.filter(|known| known.renewing.is_some_and(|renewing| renewing.since == asked)) {
            known.renewed(reply, asked, now);
        }
        let Reply { cost, decision, certain, .. } = reply;
        let lasts = decision.retry_after.unwrap_or(LONGEST_DENIAL).min(certain).min(LONGEST_DENIAL);
        if !decision.allowed && lasts > 0 && cost > 0 && self.remembers_denials {
            // Without memory it is not remembered.
            let _: Result<(), OutOfMemory> = self.keys.deny(key, cost, decision, asked, lasts);
        }
    }

    /// Notes that a renewal was not answered: whether it was counted is unknown, so the lease is left to its end.
    pub fn failed(&mut self, key: &str) {
        if let Some(known) = self.keys.get_mut(key) {
            known.abandon();
        }
    }

    /// Returns what gives back a lease that was asked for at `asked` and not renewed since; `None` if nothing is left.
    pub fn give_back(&mut self, key: &str, asked: u64, now: u64) -> Option<Report> {
        self.keys.get_mut(key)?.give_back(asked, now)
    }

    /// Returns how many keys are known.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Known {
    /// Returns the decision of a hit that was denied a moment ago. A higher cost gets the wait of the lower one.
    fn denied(&self, cost: u64, now: u64) -> Option<Decision> {
        let denial = self.denial.as_ref()?;
        // A clock that stepped back says nothing about how long ago that was.
        let holds = cost >= denial.cost && (denial.since..denial.until).contains(&now);
        holds.then(|| denial.decision.later(now - denial.since))
    }

    /// Spends the lease; `None` if it has ended or not so much is left.
    fn spend(&mut self, cost: u64, now: u64) -> Option<Decision> {
        let held = self.held.as_mut()?;
        if !(held.latest..held.until).contains(&now) {
            // A clock that stepped back does not tell how old the lease is. What was spent of it stays known: a renewal
            // may be under way that is not told of it.
            held.until = 0;
            return None;
        }
        held.latest = now;
        held.left = held.left.checked_sub(cost)?;
        held.spent += cost;
        held.shown += cost;
        let decision = held.decision.with_spent(held.shown, held.counts_down).later(now - held.asked);
        Some(Decision { allowed: true, retry_after: Some(0), ..decision })
    }

    /// Whether three quarters of the lease's amount or time are gone, and no renewal is under way.
    fn is_due(&self, now: u64) -> bool {
        let Some(held) = self.held.as_ref().filter(|_| !self.is_renewing()) else { return false };
        4 * held.left <= held.amount || 4 * (now - held.asked) >= 3 * (held.until - held.asked)
    }

    fn is_renewing(&self) -> bool {
        self.renewing.is_some()
    }

    /// Counts a hit among those that the renewal under way will cover; false if it will not.
    fn promise(&mut self, cost: u64) -> bool {
        let Some(renewing) = self.renewing.as_mut() else { return false };
        match renewing.unclaimed.checked_sub(cost) {
            Some(unclaimed) => {
                renewing.unclaimed = unclaimed;
                true
            }
            None => false,
        }
    }

    /// Gives up a renewal that was not answered in time: whoever sent it may have been cancelled.
    fn forget_lost_renewal(&mut self, now: u64) {
        if self.renewing.is_some_and(|renewing| now.abs_diff(renewing.since) >= LONGEST_RENEWAL) {
            self.abandon();
        }
    }

    /// Returns what to ask for; `None` if a lease would not pay.
    fn report(&mut self, now: u64, ttl: u64) -> Option<Report> {
        let size = wanted(self.traffic.lately(now, ttl), self.size);
        let (id, used) = match self.held.as_mut().filter(|held| (held.latest..held.until).contains(&now)) {
            Some(held) => (Some(held.id), core::mem::take(&mut held.spent)),
            None => (None, 0),
        };
        if size == 0 && id.is_none() {
            return None;
        }
        // A lease that no longer pays is kept to its end.
        let size = size.max(1);
        // Others wait for a renewal only where one was granted before.
        let unclaimed = if self.held.is_some() { size } else { 0 };
        (self.size, self.renewing) = (size, Some(Renewing { since: now, unclaimed }));
        Some(Report { id, used, size, ttl })
    }

    /// Takes over the lease that a renewal came to.
    fn renewed(&mut self, reply: Reply, asked: u64, now: u64) {
        self.renewing = None;
        // Spent since the renewal was sent, and to be reported with the next one.
        let spent = self.held.take().map_or(0, |held| held.spent);
        let Some(lease) = reply.lease else {
            self.size = 1;
            return;
        };
        self.size = lease.amount.min(self.size).max(1);
        self.held = Some(Held {
            id: lease.id,
            amount: lease.amount,
            left: lease.amount.saturating_sub(spent),
            spent,
            shown: spent,
            asked,
            latest: asked.max(now),
            until: asked + lease.life,
            decision: reply.decision,
            counts_down: lease.counts_down,
        });
    }

    fn abandon(&mut self) {
        (self.held, self.renewing, self.size) = (None, None, 1);
    }

    fn give_back(&mut self, asked: u64, now: u64) -> Option<Report> {
        let held = self.held.as_ref().filter(|held| held.asked == asked && self.renewing.is_none())?;
        let is_alive = (held.latest..held.until).contains(&now);
        let (id, used, left) = (held.id, held.spent, held.left);
        self.held = None;
        // One that was spent to the end is charged by its end.
        (is_alive && left > 0).then_some(Report { id: Some(id), used, size: 0, ttl: super::DEFAULT_LEASE_TTL })
    }
}

impl Report {
    /// Returns the report as it is sent in one word: id, used, size and ttl, with commas between them.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some(id) = &self.id {
            let _ = write!(text, "{id}");
        }
        let _ = write!(text, ",{},{},{}", self.used, self.size, self.ttl);
        text
    }
}
