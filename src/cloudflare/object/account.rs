//! One key's account: its states in memory, and in a stored row that survives the memory.

use worker::console_error;

use crate::cloudflare::object::credit::{Credit, WAKE};
use crate::cloudflare::object::row::{LoadError, Row, Storage};
use crate::cloudflare::object::states::States;
use crate::cloudflare::protocol::policies;
use crate::cloudflare::protocol::wire::{self, Certainty, Reply};
use crate::cloudflare::thrown::ThrownError;
use crate::{Answer, Error, Exception, Ledger, Operation, Policies, ReservationId};

/// The most bytes of an unreadable row that are logged.
const LOGGED_BYTES: usize = 256;

/// One key's account.
#[derive(Clone, Debug)]
pub(crate) struct Account<S = Row> {
    /// The object's id, for the log.
    id: String,
    pub(crate) row: S,
    /// The states of the row under all policies; `None` until the row is read.
    states: Option<States>,
    memory: Option<Memory>,
    /// The leases that were granted since the object was started and may still be open.
    leases: Vec<ReservationId>,
    /// Whether an alarm is set that looks for credit to return.
    wakes: bool,
}

/// A request to an account: one operation, and the policies that it is under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) operation: Operation<'a>,
    /// Reservations that are settled in full first.
    pub(crate) settles: &'a [ReservationId],
    /// The policies as JSON.
    pub(crate) policies: &'a str,
    /// Whether allowed hits may be kept in memory, covered by a credit in the row.
    pub(crate) credit: bool,
}

/// The states in memory, under the policies of the last operation.
#[derive(Clone, Debug)]
struct Memory {
    /// The policies as JSON, as the operation had them.
    policies: String,
    counts_denied: bool,
    ledger: Ledger,
    /// Whether the ledger has changes that must be saved, such as a reservation that was settled first.
    unsaved: bool,
    credit: Credit,
}

/// The result of an alarm.
#[derive(Debug)]
pub(crate) struct Expired {
    /// The states that have ended.
    pub(crate) ended: States,
    /// Whether no states are left, so that the whole storage can be deleted.
    pub(crate) empty: bool,
}

impl Account {
    /// Returns the account in an object's storage. The row is not read before the first operation.
    pub(crate) fn new(state: &worker::State) -> Self {
        Self::stored_in(Row::new(&state.storage()), state.id().to_string())
    }
}

impl<S: Storage> Account<S> {
    pub(crate) fn stored_in(row: S, id: String) -> Self {
        Self { id, row, states: None, memory: None, leases: Vec::new(), wakes: false }
    }

    /// Applies one operation. Changes that must survive the memory are saved before it returns.
    pub(crate) fn apply(&mut self, request: Request<'_>, now: u64) -> Result<Reply, ThrownError> {
        let reply = self.load(request.policies, now).and_then(|()| self.perform(request, now));
        if matches!(reply, Err(ThrownError::Platform(_))) {
            // A change that was not saved must not count: the row is read again.
            self.drop_memory();
        }
        reply
    }

    /// Returns whether nothing is stored of the key. A row that is stored from now on is kept for `kept_for` milliseconds
    /// at least, so that a key is new once in that time.
    pub(crate) fn is_new(&mut self, policies: &str, kept_for: u64, now: u64) -> Result<bool, ThrownError> {
        self.load(policies, now)?;
        self.row.keep_for(kept_for);
        Ok(self.states.as_ref().is_none_or(|states| states.0.is_empty()))
    }

    /// Returns the exception of the key that is in force, with its end; the number 0 if there is none.
    pub(crate) fn exceptions(&mut self, policies: &str, now: u64) -> Result<Reply, ThrownError> {
        self.load(policies, now)?;
        let exception = self.memory.as_ref().and_then(|memory| memory.ledger.exception(now));
        Ok(with_exception(0, exception))
    }

    /// Returns the policies of the last operation.
    pub(crate) fn policies(&self) -> Option<&Policies> {
        self.memory.as_ref().map(|memory| memory.ledger.policies())
    }

    /// Returns the first number of the first state in memory.
    #[cfg(test)]
    pub(crate) fn first_number(&self) -> Option<i64> {
        self.memory.as_ref()?.ledger.shaped().first()?.numbers.first().copied()
    }

    /// Handles the alarm: returns the credit of a quiet key, and removes the states that have ended. If others are left,
    /// the alarm is set again.
    pub(crate) fn expire(&mut self, now: u64) -> Result<Expired, ThrownError> {
        self.wakes = false;
        let memory = self.memory.as_ref();
        if memory.is_some_and(|memory| memory.credit.is_in_use(now)) && !self.row.is_due(now) {
            self.row.wake_at(now + WAKE)?;
            self.wakes = true;
            return Ok(Expired { ended: States::default(), empty: false });
        }
        // The states in memory are without the credit, so that saving them returns it.
        let unsaved = memory.is_some_and(|memory| memory.unsaved || memory.credit.is_worth_returning());
        let mut states = match self.take_states(now) {
            Ok(states) => states,
            Err(LoadError::Platform(thrown)) => return Err(thrown.into()),
            Err(LoadError::Unreadable(error)) => {
                self.quarantine(&error, now)?;
                return Ok(Expired { ended: States::default(), empty: false });
            }
        };
        let ended = states.take_ended(now);
        if states.0.is_empty() {
            self.drop_memory();
            self.row.clear();
            return Ok(Expired { ended, empty: true });
        }
        self.row.clear_alarm();
        if unsaved || !ended.0.is_empty() {
            self.row.save(&states, now)?;
        } else {
            self.row.renew_alarm(&states, now)?;
        }
        self.states = Some(states);
        Ok(Expired { ended, empty: false })
    }

    /// Takes the states of the key under all policies, with the changes that are only in memory. The row is read if it
    /// was not.
    fn take_states(&mut self, now: u64) -> Result<States, LoadError> {
        let mut states = match self.states.take() {
            Some(states) => states,
            None => self.row.load()?,
        };
        if let Some(memory) = self.memory.take() {
            states.keep(&memory.ledger, now);
        }
        Ok(states)
    }

    fn drop_memory(&mut self) {
        (self.states, self.memory) = (None, None);
    }

    /// Loads the key's states under these policies into memory, unless they are there.
    fn load(&mut self, policies: &str, now: u64) -> Result<(), ThrownError> {
        if self.memory.as_ref().is_some_and(|memory| memory.policies == policies) {
            return Ok(());
        }
        let built = policies::read(policies)?;
        let counts_denied = wire::counts_denied(&built);
        let mut ledger = Ledger::new(built)?;
        let loaded = self.take_states(now).and_then(|states| {
            let loaded = states.load(&mut ledger, now).map_err(LoadError::Unreadable);
            self.states = Some(states);
            loaded
        });
        let afresh = match loaded {
            Ok(afresh) => afresh,
            Err(LoadError::Platform(thrown)) => return Err(thrown.into()),
            Err(LoadError::Unreadable(error)) => {
                self.quarantine(&error, now)?;
                return Err(error.into());
            }
        };
        if !afresh.is_empty() {
            self.row.warn(&serde_json::json!({ "event": "afresh", "policies": afresh }).to_string());
        }
        self.memory = Some(Memory {
            policies: policies.into(),
            counts_denied,
            ledger,
            unsaved: false,
            credit: Credit::default(),
        });
        Ok(())
    }

    /// Moves an unreadable row to quarantine and logs it, so that the next operation starts afresh.
    fn quarantine(&mut self, error: &Error, now: u64) -> Result<(), ThrownError> {
        self.drop_memory();
        let bytes = self.row.quarantine(now)?;
        let row: String = bytes.iter().take(LOGGED_BYTES).map(|byte| format!("{byte:02x}")).collect();
        let line = serde_json::json!({
            "event": "unreadable",
            "object": self.id,
            "code": error.code(),
            "message": error.to_string(),
            "bytes": bytes.len(),
            "row": row,
        });
        console_error!("{line}");
        Ok(())
    }

    /// Applies one operation to the ledger in memory, and saves changes that must survive it. A denied hit writes no row.
    fn perform(&mut self, request: Request<'_>, now: u64) -> Result<Reply, ThrownError> {
        let Self { row, states: Some(states), memory: Some(memory), leases, wakes, .. } = self else {
            return Err(Error::state("there is none").into());
        };
        let Request { operation, settles, credit: has_credit, .. } = request;
        let Memory { counts_denied, ledger, unsaved, credit, .. } = memory;
        for &id in settles {
            *unsaved |= ledger.apply(Operation::Settle { id, used: None }, now)?.1;
        }
        let was_used = matches!(operation, Operation::Reset | Operation::ResetAll) && ledger.expires_at(now)? > 0;
        // An expired reservation and a state that follows the clock must be saved, but not a denial that is counted.
        *unsaved |= *counts_denied && is_decided(&operation) && ledger.follow_clock(now)?;
        let (answer, changed) = ledger.apply(operation, now)?;
        let must_save = *unsaved || changed && !(*counts_denied && is_decided(&operation) && is_denial(&answer));
        // Lifted or set, an exception holds from the row that is written now.
        let is_exception = matches!(operation, Operation::Except { .. });
        let has_credit = has_credit && ledger.may_lease() && !is_exception;
        // A denial that counts toward a ban changes the row, whatever the credit covers.
        let is_violation = ledger.has_bans() && is_denial(&answer);
        if must_save && (*unsaved || !has_credit || is_violation || !credit.covers(&operation, &answer, now)) {
            let with_credit = if has_credit { credit.renew(ledger, row.random()?, now)? } else { None };
            if !has_credit {
                credit.close();
            }
            states.keep(with_credit.as_ref().unwrap_or(ledger), now);
            row.save(states, now)?;
            *unsaved = false;
        }
        if has_credit && !*wakes && credit.is_worth_returning() {
            row.wake_at(now + WAKE)?;
            *wakes = true;
        }
        if let Answer::Leased { lease: Some(lease), .. } = &answer {
            leases.retain(|known| known.end() > now && known.bits() != lease.id.bits());
            leases.push(lease.id);
        }
        // A reservation is denied for want of room also by those that are open under former shapes.
        let elsewhere = matches!(operation, Operation::Reserve { .. }) && ledger.has_open_elsewhere(now);
        let open = match ledger.has_open() || elsewhere {
            // A denial that is not repeated by the caller counts toward a ban.
            _ if is_violation => Certainty::Uncertain,
            false => Certainty::Certain,
            true if !elsewhere && ledger.has_open_only(leases) => Certainty::UntilLeaseEnds,
            true => Certainty::Uncertain,
        };
        Ok(match answer {
            Answer::Decision(decision) => Reply::Decision { decision, open },
            Answer::Leased { decision, lease } => Reply::Leased { decision, open, lease },
            Answer::Number(number) if matches!(operation, Operation::Get { .. }) => {
                with_exception(number, ledger.exception(now))
            }
            Answer::Number(number) => Reply::Number(number),
            // An exception stays, so a key with nothing else had nothing to reset.
            Answer::Done => Reply::Reset(was_used && (changed || ledger.exception(now).is_none())),
            Answer::Reserved { decision, id } => Reply::Reserved { decision, open, id },
            Answer::Settled(settlement) => Reply::Settled { settlement, id: id_after(&operation, now) },
        })
    }
}

/// Returns a number with the exception of its key, if that has one.
fn with_exception(number: u64, exception: Option<(Exception, u64)>) -> Reply {
    match exception {
        Some((exception, until)) => Reply::Excepted { number, exception, until },
        None => Reply::Number(number),
    }
}

/// Returns whether an operation is a decision that may charge the key.
fn is_decided(operation: &Operation<'_>) -> bool {
    matches!(
        operation,
        Operation::Hit { .. } | Operation::HitCosts { .. } | Operation::Reserve { .. } | Operation::Lease { .. }
    )
}

fn is_denial(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Decision(decision) | Answer::Reserved { decision, .. } | Answer::Leased { decision, .. }
            if !decision.allowed
    )
}

/// Returns the new id of a reservation that an operation extends; `None` for other operations.
fn id_after(operation: &Operation<'_>, now: u64) -> Option<ReservationId> {
    match *operation {
        Operation::Extend { id, ttl } => Some(id.extended(id.end().max(now + ttl))),
        _ => None,
    }
}
