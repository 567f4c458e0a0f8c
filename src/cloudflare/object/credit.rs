//! Credit: an amount that the row reserves in advance, so that not every allowed hit writes a row.
//!
//! The object has the exact states in memory. Its row has the states of the last write, and the credit as an open
//! reservation. Operations in memory spend the credit; the row is written only when the credit does not cover one. If the
//! memory is lost, no one settles the reservation, and its end charges the whole credit. So the row counts at least the
//! allowed amount, and no earlier than it was allowed.

use crate::key::open_reservations::lease_random;
use crate::lease::{CREDIT_TTL, Traffic, next_credit};
use crate::{Answer, Costs, Error, Ledger, Operation};

/// The time without an operation after which a key is quiet, in milliseconds.
const QUIET: u64 = 2_000;

/// The time between the alarms that look whether a key is quiet, in milliseconds. The platform evicts an object after ten
/// seconds without an event, and this and [`QUIET`] are less. An alarm, unlike a timer, does not keep it in memory.
pub(crate) const WAKE: u64 = 7_000;

/// The number of writes that a credit must have saved before it is returned. Returning it writes a row, and sets the alarm
/// twice.
const MIN_SAVED_WRITES: u64 = 8;

/// The credit of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credit {
    /// The amount of the last credit.
    size: u64,
    left: u64,
    /// The time until which it may be spent; 0 if there is none.
    until: u64,
    /// When it was opened or last spent.
    latest: u64,
    /// The number of writes that it has saved.
    saved: u64,
    traffic: Traffic,
}

/// The amount that an operation spends of a credit, and the time until which that amount may be used.
struct Spent {
    amount: u64,
    until: u64,
}

impl Credit {
    /// Spends the credit on an operation. Returns false if the credit does not cover it and the row must be written.
    pub(crate) fn covers(&mut self, operation: &Operation<'_>, answer: &Answer, now: u64) -> bool {
        let Some(Spent { amount, until }) = spent(operation, answer, now) else { return false };
        self.traffic.add(amount, now, CREDIT_TTL);
        // If the clock has stepped back, the age of the credit is unknown.
        let is_valid = (self.latest..self.until).contains(&now) && until <= self.until;
        let Some(left) = self.left.checked_sub(amount).filter(|_| is_valid) else { return false };
        (self.left, self.latest) = (left, now);
        self.saved += 1;
        true
    }

    /// Opens the next credit. Returns a copy of the policies' rows with the credit as a reservation; `None` if there is no credit.
    pub(crate) fn renew(&mut self, ledger: &Ledger, random: u128, now: u64) -> Result<Option<Ledger>, Error> {
        let size = next_credit(self.traffic.recent(now, CREDIT_TTL), self.size, ledger.remaining(now)?);
        let until = ledger.window_end(now + CREDIT_TTL, now);
        (self.left, self.until, self.latest) = (0, 0, now);
        if size == 0 || until <= now {
            return Ok(None);
        }
        let mut with_credit = ledger.copy_of_named()?;
        // To those who find it after a crash, it is hits counted in advance, as a lease is.
        let random = lease_random(random);
        let operation = Operation::Reserve { costs: Costs::All(size), ttl: Some(until - now), random };
        let (answer, _) = with_credit.apply(operation, now)?;
        if !matches!(answer, Answer::Reserved { id: Some(_), .. }) {
            return Ok(None);
        }
        (self.size, self.left, self.until) = (size, size, until);
        Ok(Some(with_credit))
    }

    /// Returns whether the row contains it.
    pub(crate) fn is_open(&self) -> bool {
        self.until > 0
    }

    /// Closes the credit: the row no longer contains it.
    pub(crate) fn close(&mut self) {
        (self.left, self.until, self.saved) = (0, 0, 0);
    }

    /// Returns whether some credit is left, and it has saved more writes than returning it costs.
    pub(crate) fn is_worth_returning(&self) -> bool {
        self.left > 0 && self.saved >= MIN_SAVED_WRITES
    }

    /// Returns whether the credit was opened or spent less than [`QUIET`] ago.
    pub(crate) fn is_in_use(&self, now: u64) -> bool {
        now.abs_diff(self.latest) < QUIET
    }
}

/// Returns the credit that an operation spends; `None` if the operation must write the row.
fn spent(operation: &Operation<'_>, answer: &Answer, now: u64) -> Option<Spent> {
    match (operation, answer) {
        (Operation::Hit { cost }, Answer::Decision(decision)) => {
            Some(Spent { amount: if decision.allowed { *cost } else { 0 }, until: now })
        }
        // All of a lease may be used until its end. The reported amount counts too: the row, which has not seen the
        // report, has it as a part of the lease, and after a crash would lease it out again.
        (Operation::Lease { cost, renewal }, Answer::Leased { decision, lease }) => {
            let hit = if decision.allowed { *cost } else { 0 };
            let (amount, until) = lease.map_or((0, now), |lease| (lease.amount, lease.id.end()));
            Some(Spent { amount: renewal.used.saturating_add(hit).saturating_add(amount), until })
        }
        _ => None,
    }
}
