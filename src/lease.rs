//! Leases: reservations that a holder spends hit by hit and renews, so that not every hit takes a message.
//!
//! This file is the side of the issuer, the store that grants and renews leases. [`holder`] is the side that spends.
//!
//! A lease admits no more than the policy allows, for the same reason as a reservation: its amount counts as used while
//! it is open, a report charges the spent amount no earlier than it was spent, and the end charges the rest.

use crate::algorithm::Outcome;
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::OutOfMemory;
use crate::key::open_reservations::{Reserved, lease_random};
use crate::key::operate::{Extra, KeyMut, parts};
use crate::key::policy_states::{Entry, PolicyStates};
use crate::key::reservation::{bits_of, random_of};
use crate::number::check_cost;
use crate::policy::costs::PositionCosts;
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

/// The default duration of a lease, in milliseconds.
pub const DEFAULT_LEASE_TTL: u64 = 1_000;

/// The longest duration of a lease, in milliseconds.
pub const MAX_LEASE_TTL: u64 = 10_000;

/// The shortest lease that is worth a message, in milliseconds.
const SHORTEST: u64 = 20;

/// The divisor of the period of a policy whose hits expire one by one, for the longest lease under it. Such a hit counts
/// from its report on, and so for longer than it should.
const PARTS_OF_PERIOD: u64 = 16;

/// The divisor of a lease's duration for the margin before its end in which the holder no longer spends it: clocks do
/// not run at the same speed.
const MARGIN: u64 = 8;

/// The divisor of a key's reservations for those that may be leases. The others are left to callers of `reserve`.
const SHARE_OF_RESERVATIONS: usize = 2;

/// A holder's report on its lease, and its request for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The holder's lease; `None` if it has none.
    pub id: Option<ReservationId>,
    /// The amount spent since the last report.
    pub used: u64,
    /// The requested amount, including the unspent part of the old lease; 0 gives the unspent part back.
    pub size: u64,
    /// The requested duration in milliseconds, at most [`MAX_LEASE_TTL`].
    pub ttl: u64,
    /// 128 random bits for the id of a new lease.
    pub random: u128,
}

/// An open lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The id, by which it is renewed and given back.
    pub id: ReservationId,
    /// The amount that the holder may spend.
    pub amount: u64,
    /// How long the holder may spend it, in milliseconds from when it sent the request.
    pub life: u64,
    /// Whether the decision's count falls as the lease is spent, as that of a token bucket does.
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

/// Checks that `ttl` is in the range of a lease. Returns it in milliseconds.
pub(crate) fn check_lease_ttl(ttl: Span) -> Result<u64, Error> {
    let in_range = |ttl: u64| if ttl <= MAX_LEASE_TTL { Ok(ttl) } else { Err(Found::from(ttl)) };
    let invalid = |found| Error::InvalidOption { option: "ttl".into(), found, expected: Expected::LeaseTtl };
    ttl.checked().and_then(in_range).map_err(invalid)
}

impl AnyAlgorithm {
    /// Returns the last millisecond of the current window; `None` if there is none, or if hits expire one by one.
    fn window_end(&self, entry: Entry<'_>, now: u64) -> Option<u64> {
        match self {
            Self::Window(window) if !window.slides() => window.end_in_force(entry.words, now).checked_sub(1),
            Self::Window(_) | Self::SlidingWindow(_) | Self::Bucket(_) | Self::Concurrency(_) | Self::Ban(_) => None,
        }
    }

    /// Returns the longest duration of a lease under the algorithm.
    fn longest_lease(&self) -> u64 {
        match self {
            Self::Window(window) if !window.slides() => MAX_LEASE_TTL,
            Self::Ban(_) => MAX_LEASE_TTL,
            Self::Window(_) | Self::SlidingWindow(_) | Self::Bucket(_) | Self::Concurrency(_) => {
                self.period() / PARTS_OF_PERIOD
            }
        }
    }
}

impl PolicyStates {
    /// Returns the earliest last millisecond of the current windows, or `end` if that is earlier. A reservation that ends
    /// then is charged to the window in which it was spent.
    pub(crate) fn window_end(&self, entry: Entry<'_>, end: u64, now: u64) -> u64 {
        let ends =
            |(position, algorithm): (usize, &AnyAlgorithm)| algorithm.window_end(entry.from(self.place(position)), now);
        self.algorithms().iter().enumerate().filter_map(ends).fold(end, u64::min)
    }
}

impl KeyMut<'_> {
    /// Charges the spent part of a lease, decides a hit of `cost`, and renews the lease if the hit is allowed.
    pub(crate) fn renew(
        &mut self,
        cost: u64,
        renewal: &Renewal,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<(Decision, Option<Lease>), OutOfMemory> {
        outcome.changed |= self.expire(now)?;
        let rest = self.report(renewal, now, outcome)?;
        // While the holder may spend the rest, a hit that does not fit is not yet a violation.
        let decision = self.hit_in_renewal(&PositionCosts::All(cost), rest == 0, now, outcome);
        if outcome.out_of_memory {
            return Err(OutOfMemory);
        }
        if decision.ends_lease() || self.extra.exceptions.is_decision(now) {
            // The holder drops the lease, and its end charges what is left of it.
            return Ok((decision, None));
        }
        let counts_down = self.algorithms.get(decision.policy).is_some_and(AnyAlgorithm::counts_down);
        // The unspent part of the lease is free for the holder.
        let decision = if decision.allowed { decision.with_freed(rest, counts_down) } else { decision };
        let most = self.policy_states.most_open();
        let room = self.extra.open.reservations() < most / SHARE_OF_RESERVATIONS || rest > 0;
        let wanted = if decision.allowed && room { renewal.size } else { 0 };
        let granted = size::granted(wanted, rest, decision.remaining);
        let index = self.open_lease(renewal, granted, rest, now, outcome)?;
        let lease = index.and_then(|index| self.lease(index, counts_down, now));
        Ok((decision, lease))
    }

    /// Returns the least and the largest amount of the reservation at an index.
    fn bounds(&self, index: usize) -> (u64, u64) {
        self.extra.open.bounds(index, self.policy_states.bans())
    }

    /// Returns the reservation at an index as a lease.
    fn lease(&self, index: usize, counts_down: bool, now: u64) -> Option<Lease> {
        let reserved = self.extra.open.get(index)?;
        // An id may be that of a reservation, which lasts longer.
        let (end, lasts) = (reserved.end(), reserved.end().saturating_sub(now).min(MAX_LEASE_TTL));
        let (amount, _) = self.bounds(index);
        // A policy that was added since has nothing of it: then it may not be spent, and its end charges it.
        if amount == 0 {
            return None;
        }
        let id = ReservationId { random: random_of(reserved.bits()), end, by_policy: false };
        Some(Lease { id, amount, life: lasts - lasts / MARGIN, counts_down })
    }

    /// Charges the spent part of an open lease, and returns the unspent part. A lease that is given back is closed.
    fn report(&mut self, renewal: &Renewal, now: u64, outcome: &mut Outcome) -> Result<u64, OutOfMemory> {
        let Some(bits) = renewal.id.map(|id| id.bits()) else { return Ok(0) };
        let found = self.on_holders(bits, &PositionCosts::All(renewal.used), now, &mut |key, index, used| {
            key.charge_used(index, used, now)?;
            key.extra.open.spend(index, renewal.used);
            let (_, largest) = key.bounds(index);
            if renewal.size == 0 || largest == 0 {
                key.extra.open.remove(index, 1);
            }
            key.refresh(now);
            Ok(())
        })?;
        if !found {
            // A lease that is no longer open was charged in full at its end.
            return Ok(0);
        }
        outcome.changed = true;
        let rest = self.extra.open.find(bits).map_or(0, |index| self.bounds(index).0);
        Ok(if renewal.size == 0 { 0 } else { rest })
    }

    /// Opens a lease of `granted`, or grows the open one to it and moves its end: it is charged by the numbers of this call
    /// then. A lease that may not grow stays as it is.
    /// Returns the index of the lease; `None` if none is open.
    fn open_lease(
        &mut self,
        renewal: &Renewal,
        granted: u64,
        rest: u64,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<Option<usize>, OutOfMemory> {
        let found = if rest > 0 { renewal.id.and_then(|id| self.extra.open.find(id.bits())) } else { None };
        let longest =
            self.policy_states.algorithms().iter().map(AnyAlgorithm::longest_lease).fold(renewal.ttl, u64::min);
        let exception_ends_at = Some(self.extra.exceptions.ends_at()).filter(|&end| end > now);
        let end = self.policy_states.window_end(self.entry.as_read(), now + longest, now);
        // After it, other numbers hold.
        let end = exception_ends_at.map_or(end, |last| last.min(end));
        if granted <= rest || end < now + SHORTEST || !self.policy_states.may_lease() {
            return Ok(found);
        }
        let Extra { open, exceptions, .. } = &mut *self.extra;
        let excepted = |(position, call)| exceptions.applied(position, call, self.policy_states, now);
        let costs = PositionCosts::All(granted);
        let parts = parts(self.algorithms.iter().enumerate().map(excepted), &costs);
        let bits = match found.and_then(|index| Some((index, open.get(index)?))) {
            Some((index, reserved)) => {
                open.grow(index, parts);
                open.extend(index, now, reserved.end().max(end) - now);
                reserved.bits()
            }
            None => {
                open.make_room(self.algorithms.len())?;
                let reserved = Reserved::new(bits_of(lease_random(renewal.random)), now, end - now);
                open.insert(reserved, parts);
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
    use crate::{Answer, Denied, Ledger, MAX, Operation, Policies, Policy, Reason};

    const NOW: u64 = 1_800_000_000_000;

    fn window(name: &str) -> Policy {
        Policy::fix_window(1_000, "1m").unwrap().denied(Denied::Free).unwrap().named(name).unwrap()
    }

    fn renew(ledger: &mut Ledger, id: Option<ReservationId>, used: u64, size: u64) -> Result<Option<Lease>, Error> {
        let renewal = Renewal { id, used, size, ttl: 1_000, random: 42 + u128::from(used) };
        let (answer, _) = ledger.apply(Operation::Lease { cost: 0, renewal }, NOW)?;
        let Answer::Leased { lease, .. } = answer else { panic!("{answer:?}") };
        Ok(lease)
    }

    #[test]
    fn a_lease_is_not_spent_under_a_policy_that_came_since() {
        for size in [1, 50, 120] {
            let mut before = Ledger::new(window("a")).unwrap();
            let lease = renew(&mut before, None, 0, 100).unwrap().unwrap();
            let mut after = Ledger::new(Policies::new([window("a"), window("b")]).unwrap()).unwrap();
            after.load(&before.record(NOW).unwrap().unwrap(), NOW).unwrap();
            let new = renew(&mut after, Some(lease.id), 10, size).unwrap();
            assert!(new.is_none_or(|new| new.id.bits() != lease.id.bits()), "{size}");
            // The report is charged where the lease was opened; the rest of the lease stays open there.
            let left = new.map_or(0, |lease| lease.amount);
            let mut get = |policy| after.apply(Operation::Get { policy: Some(policy) }, NOW).unwrap().0;
            assert_eq!((get("a"), get("b")), (Answer::Number(100 + left), Answer::Number(left)), "{size}");
        }
    }

    #[test]
    fn a_denial_beside_the_rest_of_a_lease_counts_nothing_and_a_ban_ends_the_lease() {
        let ban = Policy::ban(2, "1h", "1h").unwrap();
        let mut ledger = Ledger::new(Policies::new([window("a"), ban]).unwrap()).unwrap();
        let hit = |ledger: &mut Ledger, cost, id, used| {
            let renewal = Renewal { id, used, size: 100, ttl: 1_000, random: 7 };
            let (answer, _) = ledger.apply(Operation::Lease { cost, renewal }, NOW).unwrap();
            let Answer::Leased { decision, lease } = answer else { panic!("{answer:?}") };
            (decision, lease)
        };
        let violations = |ledger: &mut Ledger| ledger.apply(Operation::Get { policy: Some("ban") }, NOW).unwrap().0;
        let (first, lease) = hit(&mut ledger, 1, None, 0);
        let lease = lease.unwrap();
        assert!(first.allowed && lease.amount > 0);
        // The holder still has something: it may spend that instead.
        for _ in 0..5 {
            let (denied, kept) = hit(&mut ledger, 1_000, Some(lease.id), 0);
            assert_eq!((denied.allowed, denied.reason), (false, None));
            assert_eq!(kept.map(|kept| kept.amount), Some(lease.amount));
        }
        assert_eq!(violations(&mut ledger), Answer::Number(0));
        // Without a lease, each denial counts.
        assert_eq!(hit(&mut ledger, 1_000, None, 0).0.reason, None);
        assert_eq!(violations(&mut ledger), Answer::Number(1));
        let (banned, none) = hit(&mut ledger, 1_000, None, 0);
        assert_eq!((banned.reason, none), (Some(Reason::Banned), None));
        // A report is charged during the ban, and its holder loses the lease.
        let (banned, none) = hit(&mut ledger, 0, Some(lease.id), 3);
        assert_eq!((banned.reason, none), (Some(Reason::Banned), None));
        assert_eq!(
            ledger.apply(Operation::Get { policy: Some("a") }, NOW).unwrap().0,
            Answer::Number(1 + lease.amount)
        );
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
