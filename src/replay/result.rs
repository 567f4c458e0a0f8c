//! The results of replayed operations, as numbers.

use alloc::string::String;
use alloc::vec::Vec;

use crate::lease::text::{Certainty, from_decision, with_lease};
use crate::memory::{OutOfMemory, push};
use crate::{Answer, Decision, Lease, Reason, Settlement};

/// How many numbers a result has: its kind, then count, limit, remaining, retry after, reset after, position of the policy,
/// bits of the policies that denied, and the end of a reservation.
pub const NUMBERS_PER_RESULT: usize = 9;

/// The kinds of results.
pub mod kind {
    /// A hit was denied.
    pub const DENIED: f64 = 0.0;
    /// A hit was allowed.
    pub const ALLOWED: f64 = 1.0;
    /// A hit was denied for want of room.
    pub const FULL: f64 = 2.0;
    /// A count or a time follows, and no decision.
    pub const NUMBER: f64 = 3.0;
    /// The operation was rejected.
    pub const REJECTED: f64 = 4.0;
}

/// What a replay comes to as a number: bits if it is at least 0, else why a text was not replayed.
pub mod status {
    /// The own entry was there.
    pub const OWN: i32 = 1;
    /// There were entries under other policies.
    pub const FOREIGN: i32 = 2;
    /// The text is not a log.
    pub const MALFORMED: i32 = -1;
    /// It is of another version.
    pub const VERSION: i32 = -2;
    /// There is no memory.
    pub const OUT_OF_MEMORY: i32 = -3;
}

/// The results of closing or extending a reservation, by number.
pub mod settlement {
    use crate::Settlement;

    /// The words for the numbers.
    pub const WORDS: [Settlement; 4] =
        [Settlement::Settled, Settlement::Extended, Settlement::Expired, Settlement::Closed];
}

/// The operations that only read, by number.
pub mod reading {
    /// Returns the decision of a hit.
    pub const PEEK: u32 = 0;
    /// Returns a count.
    pub const GET: u32 = 1;
    /// Returns when a state ends.
    pub const EXPIRES_AT: u32 = 2;
}

/// Results, one after the other.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) numbers: Vec<f64>,
    /// Decisions with leases as text, each after its place among the results.
    leases: Vec<(usize, String)>,
}

impl Results {
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.leases.clear();
    }

    /// Adds the decision of a renewal, with the lease as text.
    pub(super) fn lease(&mut self, decision: &Decision, lease: Option<&Lease>) -> Result<(), OutOfMemory> {
        let place = self.numbers.len() / NUMBERS_PER_RESULT;
        // A denial is known to last by the states, which are here, and not by the text.
        let text = with_lease(from_decision(decision, Certainty::Uncertain), lease);
        push(&mut self.leases, (place, text))?;
        self.decision(decision)
    }

    /// Returns the decision and the lease at a place among the results; `None` if it is not of a renewal.
    pub(super) fn lease_at(&self, place: usize) -> Option<&str> {
        self.leases.iter().find(|(own, _)| *own == place).map(|(_, text)| &text[..])
    }

    pub(super) fn decision(&mut self, decision: &Decision) -> Result<(), OutOfMemory> {
        self.reservation(decision, 0)
    }

    /// Adds the decision of a reservation, and when it ends.
    pub(super) fn reservation(&mut self, decision: &Decision, end: u64) -> Result<(), OutOfMemory> {
        let kind = match (decision.allowed, decision.reason) {
            (true, _) => kind::ALLOWED,
            (false, Some(Reason::Full)) => kind::FULL,
            (false, _) => kind::DENIED,
        };
        self.push([
            kind,
            decision.count as f64,
            decision.limit as f64,
            decision.remaining as f64,
            decision.retry_after.map_or(f64::INFINITY, |after| after as f64),
            decision.reset_after as f64,
            decision.policy as f64,
            f64::from(decision.violated.bits()),
            end as f64,
        ])
    }

    pub(super) fn number(&mut self, number: u64) -> Result<(), OutOfMemory> {
        self.ending(number, 0)
    }

    /// Adds what became of a reservation, and when it ends.
    pub(super) fn settlement(&mut self, settlement: Settlement, end: u64) -> Result<(), OutOfMemory> {
        let number = settlement::WORDS.iter().position(|&known| known == settlement);
        self.ending(number.unwrap_or_default() as u64, end)
    }

    fn ending(&mut self, number: u64, end: u64) -> Result<(), OutOfMemory> {
        self.push([kind::NUMBER, number as f64, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, end as f64])
    }

    pub(super) fn answer(&mut self, answer: Answer) -> Result<(), OutOfMemory> {
        match answer {
            Answer::Decision(decision) | Answer::Reserved { decision, .. } => self.decision(&decision),
            Answer::Leased { decision, lease } => self.lease(&decision, lease.as_ref()),
            Answer::Number(number) => self.number(number),
            Answer::Settled(settlement) => self.settlement(settlement, 0),
            Answer::Done => self.number(0),
        }
    }

    pub(super) fn rejected(&mut self) -> Result<(), OutOfMemory> {
        self.push([kind::REJECTED, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    }

    fn push(&mut self, result: [f64; NUMBERS_PER_RESULT]) -> Result<(), OutOfMemory> {
        self.numbers.try_reserve(result.len())?;
        self.numbers.extend_from_slice(&result);
        Ok(())
    }
}
