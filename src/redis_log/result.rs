//! The results of replayed operations as numbers, which JavaScript reads from memory.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::growth::{OutOfMemory, push};
use crate::lease::text::{Certainty, from_decision, with_lease};
use crate::{Answer, Decision, HitId, Lease, Settlement, verdict};

/// The count of numbers in a result: its kind, count, limit, remaining, retry after, reset after, position of the policy,
/// violated policies as bits, the end of a reservation, and more after.
pub const NUMBERS_PER_RESULT: usize = 10;

/// The count of numbers in the outcome of a key in a call: its status, the position of its first result, and the time at
/// which its last state ends, if its own entry was replayed.
pub const NUMBERS_PER_OUTCOME: usize = 3;

/// The kinds of results that are no decisions. The kind of a decision is its [verdict](crate::verdict).
pub mod kind {
    /// The result is a count, a time or a settlement.
    pub const NUMBER: u8 = 8;
    /// The operation was rejected.
    pub const REJECTED: u8 = 9;
    /// The operation was rejected, since the key has as many rows as it may.
    pub const MANY_ROWS: u8 = 10;
}

/// Why the ledger rejected an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rejected {
    /// It does not fit the policies in force.
    Unfit,
    /// The key has as many rows as it may.
    ManyRows,
}

/// The status of a replay: flags if it succeeded, a negative number if it failed.
pub mod status {
    use super::super::{ReplayError, Replayed};

    /// The text contained the caller's own entry.
    pub const OWN: i32 = 1;
    /// The text contained entries under other policies.
    pub const FOREIGN: i32 = 2;
    /// The states were kept, since they know more than the value.
    pub const KEPT: i32 = 4;
    /// The text is not a log.
    pub const MALFORMED: i32 = -1;
    /// The text is of another version.
    pub const VERSION: i32 = -2;
    /// There is not enough memory.
    pub const OUT_OF_MEMORY: i32 = -3;

    /// Returns the status of a replay.
    pub fn of(replayed: Result<Replayed, ReplayError>) -> i32 {
        match replayed {
            Ok(Replayed { own, foreign }) => i32::from(own) * OWN + i32::from(foreign) * FOREIGN,
            Err(ReplayError::Malformed) => MALFORMED,
            Err(ReplayError::UnsupportedVersion) => VERSION,
            Err(ReplayError::OutOfMemory) => OUT_OF_MEMORY,
        }
    }
}

/// The outcomes of closing or extending a reservation. A result has the position in this list.
pub const SETTLEMENTS: [Settlement; 4] =
    [Settlement::Settled, Settlement::Extended, Settlement::Expired, Settlement::Closed];

/// The numbers of the operations that only read.
pub mod reading {
    /// Returns the decision of a hit.
    pub const PEEK: u32 = 0;
    /// Returns a count.
    pub const GET: u32 = 1;
    /// Returns the time at which a state ends.
    pub const EXPIRES_AT: u32 = 2;
    /// Returns the exception as text.
    pub const EXCEPTION: u32 = 3;
}

/// The results of a replay, in order.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) numbers: Vec<f64>,
    /// The results that are texts or have one, each with its index: decisions of renewals with their leases, ids of hits, and
    /// exceptions.
    texts: Vec<(usize, String)>,
}

impl Results {
    /// Returns how many results there are.
    pub(super) fn count(&self) -> usize {
        self.numbers.len() / NUMBERS_PER_RESULT
    }

    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.texts.clear();
    }

    /// Adds the decision of a renewal, with the lease as text.
    pub(super) fn push_lease(&mut self, decision: &Decision, lease: Option<&Lease>) -> Result<(), OutOfMemory> {
        let index = self.count();
        // The replica has the states, and decides from them how long a denial lasts. The text need not contain it.
        let text = with_lease(from_decision(decision, Certainty::Uncertain), lease);
        push(&mut self.texts, (index, text))?;
        self.push_decision(decision)
    }

    /// Adds the decision of a hit that can be undone, with the id as text if it has one.
    pub(super) fn push_undoable(&mut self, decision: &Decision, id: Option<HitId>) -> Result<(), OutOfMemory> {
        if let Some(id) = id {
            let index = self.count();
            push(&mut self.texts, (index, id.to_string()))?;
        }
        self.push_decision(decision)
    }

    /// Adds a text.
    pub(super) fn push_text(&mut self, text: String) -> Result<(), OutOfMemory> {
        let index = self.count();
        push(&mut self.texts, (index, text))?;
        self.push_number(0)
    }

    /// Returns a result as text: the decision and the lease of a renewal, the id of a hit, or an exception; `None` for any
    /// other.
    pub(super) fn text(&self, index: usize) -> Option<&str> {
        self.texts.iter().find(|(own, _)| *own == index).map(|(_, text)| &text[..])
    }

    /// Adds the decision of a hit.
    pub(super) fn push_decision(&mut self, decision: &Decision) -> Result<(), OutOfMemory> {
        self.push_reservation(decision, 0)
    }

    /// Adds the decision of a reservation, and its end.
    pub(super) fn push_reservation(&mut self, decision: &Decision, end: u64) -> Result<(), OutOfMemory> {
        self.push([
            verdict::of(decision).into(),
            decision.count as f64,
            decision.limit as f64,
            decision.remaining as f64,
            decision.retry_after.map_or(f64::INFINITY, |after| after as f64),
            decision.reset_after as f64,
            decision.policy as f64,
            f64::from(decision.violated.bits()),
            end as f64,
            decision.more_after as f64,
        ])
    }

    /// Adds a count or a time.
    pub(super) fn push_number(&mut self, number: u64) -> Result<(), OutOfMemory> {
        self.push_number_and_end(number, 0)
    }

    /// Adds the outcome of closing or extending a reservation, and its end.
    pub(super) fn push_settlement(&mut self, settlement: Settlement, end: u64) -> Result<(), OutOfMemory> {
        let position = SETTLEMENTS.iter().position(|&known| known == settlement);
        self.push_number_and_end(position.unwrap_or_default() as u64, end)
    }

    fn push_number_and_end(&mut self, number: u64, end: u64) -> Result<(), OutOfMemory> {
        self.push([kind::NUMBER.into(), number as f64, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, end as f64, 0.0])
    }

    /// Adds the result of a ledger's operation.
    pub(super) fn push_answer(&mut self, answer: Answer) -> Result<(), OutOfMemory> {
        match answer {
            Answer::Decision(decision) => self.push_decision(&decision),
            Answer::Reserved { decision, id } => self.push_reservation(&decision, id.map_or(0, |id| id.end())),
            Answer::Undoable { decision, id } => self.push_undoable(&decision, id),
            Answer::Leased { decision, lease } => self.push_lease(&decision, lease.as_ref()),
            Answer::Number(number) => self.push_number(number),
            Answer::Settled(settlement) => self.push_settlement(settlement, 0),
            Answer::Done => self.push_number(0),
        }
    }

    /// Adds the result of an operation that the ledger rejected.
    pub(super) fn push_rejected(&mut self, rejected: Rejected) -> Result<(), OutOfMemory> {
        let kind = match rejected {
            Rejected::Unfit => kind::REJECTED,
            Rejected::ManyRows => kind::MANY_ROWS,
        };
        self.push([kind.into(), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    }

    fn push(&mut self, result: [f64; NUMBERS_PER_RESULT]) -> Result<(), OutOfMemory> {
        self.numbers.try_reserve(result.len())?;
        self.numbers.extend_from_slice(&result);
        Ok(())
    }
}
