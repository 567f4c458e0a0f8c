//! Leases: reservations that a holder spends in parts and renews, so that it need not ask for every hit.
//!
//! This file is the issuer's side: what a store does with a renewal. [`holder`] is the side that spends.
//!
//! A lease admits no more than the policy says, for the reason that a reservation does not: its amount counts as used
//! while it is open, each report charges what was spent no earlier than it was spent, and the end charges the rest.

use core::iter::repeat_n;

use crate::algorithm::Outcome;
use crate::algorithm::rule::Rule;
use crate::costs::PositionCosts;
use crate::extra::KeyMut;
use crate::memory::OutOfMemory;
use crate::number::check_cost;
use crate::open::Reserved;
use crate::policy_states::{Entry, PolicyStates};
use crate::reservation::{bits_of, random_of};
use crate::{Decision, Error, Expected, Found, ReservationId, Span};

#[doc(hidden)]
pub mod holder;
mod known;
mod size;
#[doc(hidden)]
pub mod text;
mod traffic;

#[cfg(feature = "cloudflare")]
pub(crate) use size::{CREDIT_TTL, next_credit};
#[cfg(feature = "cloudflare")]
pub(crate) use traffic::Traffic;

/// How long a lease lasts that does not say, in milliseconds.
pub const DEFAULT_LEASE_TTL: u64 = 1_000;

/// The longest that a lease may last, in milliseconds.
pub const MAX_LEASE_TTL: u64 = 10_000;

/// The shortest lease that is worth a message, in milliseconds.
const SHORTEST: u64 = 20;

/// A lease lasts at most this part of the period of a policy whose uses end one by one: each use counts from its report
/// on, and so for longer than it should.
const PARTS_OF_PERIOD: u64 = 16;

/// A holder stops this part of a lease's life before the end, for clocks that do not run alike.
const MARGIN: u64 = 8;

/// How many of a key's reservations may be leases: the other half stays for callers of `reserve`.
const SHARE_OF_RESERVATIONS: usize = 2;

/// What a holder says of its lease, and what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The lease that it holds.
    pub id: Option<ReservationId>,
    /// How much of it was spent since the last report.
    pub used: u64,
    /// The size of the lease that it asks for, with what is left of the old one; 0 gives back what is left.
    pub size: u64,
    /// How long it is to last, in milliseconds: at most [`MAX_LEASE_TTL`].
    pub ttl: u64,
    /// 128 random bits for the id of a new lease.
    pub random: u128,
}

/// A lease that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The id, by which it is renewed and given back.
    pub id: ReservationId,
    /// How much of it is left.
    pub amount: u64,
    /// For how long it may be spent, in milliseconds from when it was asked for.
    pub life: u64,
    /// Whether the count of the decision falls as it is spent, as that of a token bucket does.
    pub counts_down: bool,
}

impl Renewal {
    /// Checks that the numbers are in range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_cost(self.used)?;
        check_cost(self.size)?;
        check_lease_ttl(self.ttl.into()).map(|_| ())
    }
}

/// Checks that a lease may last so long; returns it in milliseconds.
pub(crate) fn check_lease_ttl(ttl: Span) -> Result<u64, Error> {
    let in_range = |ttl: u64| if ttl <= MAX_LEASE_TTL { Ok(ttl) } else { Err(Found::from(ttl)) };
    let invalid = |found| Error::InvalidOption { option: "ttl".into(), found, expected: Expected::LeaseTtl };
    ttl.checked().and_then(in_range).map_err(invalid)
}

impl Rule {
    /// Returns the last millisecond of the window in force; `None` if there is none, or uses do not end together.
    fn window_end(&self, entry: Entry<'_>, now: u64) -> Option<u64> {
        match self {
            Self::Window(window) if !window.slides() => window.end_in_force(entry.words, now).checked_sub(1),
            _ => None,
        }
    }

    /// Returns how long a lease may last under the rule.
    fn longest_lease(&self) -> u64 {
        match self {
            Self::Window(window) if !window.slides() => MAX_LEASE_TTL,
            _ => self.period() / PARTS_OF_PERIOD,
        }
    }
}

impl PolicyStates {
    /// Returns the last millisecond of the windows in force, or `end` if that is earlier. A reservation that ends then is
    /// charged to the window in which it was used.
    pub(crate) fn window_end(&self, entry: Entry<'_>, end: u64, now: u64) -> u64 {
        let ends = |(position, rule): (usize, &Rule)| rule.window_end(entry.from(self.place(position)), now);
        self.rules().iter().enumerate().filter_map(ends).fold(end, u64::min)
    }
}

impl KeyMut<'_> {
    /// Charges what was spent of a lease, decides a hit of `cost`, and if that is allowed renews the lease. `most` is how
    /// many reservations may be open.
    pub(crate) fn renew(
        &mut self,
        cost: u64,
        renewal: &Renewal,
        most: usize,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<(Decision, Option<Lease>), OutOfMemory> {
        outcome.changed |= self.expire(now)?;
        let rest = self.report(renewal, now, outcome)?;
        let decision = self.hit(&PositionCosts::All(cost), now, outcome);
        if outcome.out_of_memory {
            return Err(OutOfMemory);
        }
        let counts_down = self.rules.get(decision.policy).is_some_and(Rule::counts_down);
        // What is left of the lease is the holder's to use.
        let decision = if decision.allowed { decision.with_freed(rest, counts_down) } else { decision };
        let room = self.extra.open.len() < most / SHARE_OF_RESERVATIONS || rest > 0;
        let wanted = if decision.allowed && room { renewal.size } else { 0 };
        let granted = size::granted(wanted, rest, decision.remaining);
        let index = self.open_lease(renewal, granted, rest, now, outcome)?;
        let lease = index.and_then(|index| self.lease(index, counts_down, now));
        Ok((decision, lease))
    }

    /// Returns the lease that the reservation at an index is.
    fn lease(&self, index: usize, counts_down: bool, now: u64) -> Option<Lease> {
        let reserved = self.extra.open.get(index)?;
        let (end, lasts) = (reserved.end(), reserved.end().saturating_sub(now));
        // A policy that came since has less of it, or nothing: then it may not be spent, and its end charges it.
        let policies = 0..self.policy_states.rules().len();
        let amount =
            policies.map(|position| self.extra.open.amount(index, position)).min().filter(|&least| least > 0)?;
        let id = ReservationId { random: random_of(reserved.bits()), end, by_policy: false };
        Some(Lease { id, amount, life: lasts - lasts / MARGIN, counts_down })
    }

    /// Charges what was spent of an open lease, and returns what is left of it. One that is given back is closed.
    fn report(&mut self, renewal: &Renewal, now: u64, outcome: &mut Outcome) -> Result<u64, OutOfMemory> {
        let index = renewal.id.and_then(|id| self.extra.open.find(id.bits()));
        // One that is no longer open was charged in full at its end.
        let Some(index) = index else { return Ok(0) };
        self.charge_closed(index, now, now, &PositionCosts::All(renewal.used))?;
        let left = self.extra.open.spend(index, renewal.used);
        let rest = if renewal.size == 0 { 0 } else { left };
        if rest == 0 {
            self.extra.open.remove(index, 1);
        }
        self.refresh(now);
        outcome.changed = true;
        Ok(rest)
    }

    /// Makes the lease one of `granted`, and moves its end; or leaves what is left of it as it is. Returns its index if it
    /// is open.
    fn open_lease(
        &mut self,
        renewal: &Renewal,
        granted: u64,
        rest: u64,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<Option<usize>, OutOfMemory> {
        let found = if rest > 0 { renewal.id.and_then(|id| self.extra.open.find(id.bits())) } else { None };
        let longest = self.policy_states.rules().iter().map(Rule::longest_lease).fold(renewal.ttl, u64::min);
        let end = self.policy_states.window_end(self.entry.as_read(), now + longest, now);
        if granted <= rest || end < now + SHORTEST || !self.policy_states.may_lease() {
            return Ok(found);
        }
        let open = &mut self.extra.open;
        let bits = match found.and_then(|index| Some((index, open.get(index)?))) {
            Some((index, reserved)) => {
                open.grow(index, granted);
                open.extend(index, now, reserved.end().max(end) - now);
                reserved.bits()
            }
            None => {
                let policies = self.policy_states.rules().len();
                open.reserve(policies, false)?;
                let reserved = Reserved::new(bits_of(renewal.random), now, end - now);
                open.insert(reserved, repeat_n(granted, policies), repeat_n([0; 2], policies));
                reserved.bits()
            }
        };
        self.refresh(now);
        outcome.changed = true;
        Ok(self.extra.open.find(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Denied, Ledger, MAX, Operation, Policies, Policy};

    const NOW: u64 = 1_800_000_000_000;

    fn window(name: &str) -> Policy {
        Policy::fix_window(1_000, "1m").unwrap().denied(Denied::Free).unwrap().named(name).unwrap()
    }

    fn renew(ledger: &mut Ledger, id: Option<ReservationId>, used: u64, size: u64) -> Result<Option<Lease>, Error> {
        let renewal = Renewal { id, used, size, ttl: 1_000, random: 42 };
        match ledger.apply(Operation::Lease { cost: 0, renewal }, NOW)?.0 {
            Answer::Leased { lease, .. } => Ok(lease),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_policy_that_came_since_a_lease_was_granted_has_it_too_or_it_is_not_spent() {
        for size in [1, 50, 120] {
            let mut before = Ledger::new(window("a")).unwrap();
            let lease = renew(&mut before, None, 0, 100).unwrap().unwrap();
            let mut after = Ledger::new(Policies::new([window("a"), window("b")]).unwrap()).unwrap();
            after.load(&before.record(NOW).unwrap(), NOW).unwrap();
            let left = renew(&mut after, Some(lease.id), 10, size).unwrap().map_or(0, |lease| lease.amount);
            let count = after.apply(Operation::Get { policy: Some("b") }, NOW).unwrap().0;
            assert_eq!(count, Answer::Number(10 + left), "{size}");
        }
    }

    #[test]
    fn numbers_out_of_range_change_nothing() {
        let mut ledger = Ledger::new(window("a")).unwrap();
        let lease = renew(&mut ledger, None, 0, 100).unwrap().unwrap();
        for wrong in [MAX + 1, u64::MAX - 1, u64::MAX] {
            assert_eq!(renew(&mut ledger, Some(lease.id), wrong, 1).unwrap_err().code(), "invalid_cost");
            assert_eq!(renew(&mut ledger, Some(lease.id), 1, wrong).unwrap_err().code(), "invalid_cost");
        }
        assert_eq!(ledger.apply(Operation::Get { policy: None }, NOW).unwrap().0, Answer::Number(100));
    }
}
