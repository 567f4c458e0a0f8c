//! Credit: an amount that the row holds beyond what was used, so that not every allowed hit writes a row.
//!
//! The memory of an object has the exact states. Its row has those of the last write, and the credit as an open
//! reservation. What memory allows is taken out of the credit; only when it does not cover an operation is a row written.
//! If the memory is lost, the credit is a reservation of nobody's, which its end charges in full: so the row counts at
//! least what was allowed, and no earlier than it was.

use crate::lease::{CREDIT_TTL, Traffic, next_credit};
use crate::{Answer, Costs, Error, Ledger, Operation};

/// How long no operation may come before unspent credit is written back, in milliseconds.
pub(super) const QUIET: u64 = 2_000;

/// How many writes a credit must have saved before it is written back: that is one write, and the time for which a timer
/// keeps the object in memory costs about three.
const WORTH_RETURNING: u64 = 8;

/// What is left of a credit, and how it was used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Credit {
    /// The size of the last one.
    size: u64,
    left: u64,
    /// Until when it may be spent; 0 if there is none.
    until: u64,
    /// When it was opened or last spent.
    latest: u64,
    /// How many writes it has saved.
    saved: u64,
    traffic: Traffic,
}

/// The amount that an operation takes out of a credit, and until when that may be used.
struct Taken {
    amount: u64,
    until: u64,
}

impl Credit {
    /// Takes what an operation allowed out of the credit. Returns false if a row must be written.
    pub(super) fn covers(&mut self, operation: &Operation<'_>, answer: &Answer, now: u64) -> bool {
        let Some(Taken { amount, until }) = taken(operation, answer, now) else { return false };
        self.traffic.add(amount, now, CREDIT_TTL);
        // A clock that stepped back does not tell how old the credit is.
        let holds = (self.latest..self.until).contains(&now) && until <= self.until;
        let Some(left) = self.left.checked_sub(amount).filter(|_| holds) else { return false };
        (self.left, self.latest) = (left, now);
        self.saved += 1;
        true
    }

    /// Opens the next credit beside the states of a ledger. Returns those with the credit as a reservation; `None` if there
    /// is no credit now.
    pub(super) fn renew(&mut self, ledger: &Ledger, random: u128, now: u64) -> Result<Option<Ledger>, Error> {
        let size = next_credit(self.traffic.recent(now, CREDIT_TTL), self.size, ledger.remaining(now)?);
        let until = ledger.window_end(now + CREDIT_TTL, now);
        (self.left, self.until, self.latest) = (0, 0, now);
        if size == 0 || until <= now {
            return Ok(None);
        }
        let mut with_credit = ledger.clone();
        let operation = Operation::Reserve { costs: Costs::All(size), ttl: Some(until - now), random };
        let (answer, _) = with_credit.apply(operation, now)?;
        if !matches!(answer, Answer::Reserved { id: Some(_), .. }) {
            return Ok(None);
        }
        (self.size, self.left, self.until) = (size, size, until);
        Ok(Some(with_credit))
    }

    /// Closes the credit: the row no longer holds it.
    pub(super) fn close(&mut self) {
        (self.left, self.until, self.saved) = (0, 0, 0);
    }

    /// Whether something is left of it, and it saved more than writing it back costs.
    pub(super) fn is_worth_returning(&self) -> bool {
        self.left > 0 && self.saved >= WORTH_RETURNING
    }

    /// Whether it was spent a moment ago.
    pub(super) fn is_in_use(&self, now: u64) -> bool {
        now.abs_diff(self.latest) < QUIET
    }
}

/// Returns what an operation takes out of a credit; `None` if it must be written.
fn taken(operation: &Operation<'_>, answer: &Answer, now: u64) -> Option<Taken> {
    match (operation, answer) {
        (Operation::Hit { cost }, Answer::Decision(decision)) => {
            Some(Taken { amount: if decision.allowed { *cost } else { 0 }, until: now })
        }
        // All of a lease may be used until its end. What was reported is counted, too: a row that knows nothing of the
        // report holds it as a part of the lease, and would lease it out once more.
        (Operation::Lease { cost, renewal }, Answer::Leased { decision, lease }) => {
            let hit = if decision.allowed { *cost } else { 0 };
            let (amount, until) = lease.map_or((0, now), |lease| (lease.amount, lease.id.end()));
            Some(Taken { amount: renewal.used.saturating_add(hit).saturating_add(amount), until })
        }
        _ => None,
    }
}
