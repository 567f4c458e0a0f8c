//! One key's account: its rows in memory, and as they are stored, which survives the memory.

use worker::console_error;

use crate::cloudflare::object::credit::{Credit, WAKE};
use crate::cloudflare::object::row::{LoadError, Row, Storage};
use crate::cloudflare::object::states::States;
use crate::cloudflare::protocol::policies;
use crate::cloudflare::protocol::wire::{self, Certainty, Reply};
use crate::cloudflare::thrown::ThrownError;
use crate::store::apply::Applied;
use crate::{Answer, Error, Exception, Ledger, Operation, Policies, ReservationId};

/// The most bytes of an unreadable row that are logged.
const LOGGED_BYTES: usize = 256;

/// The most lists of policies whose parsed form and credit are in memory.
const MAX_LISTS: usize = 64;

/// How long it takes until most hits that are undone have been, in milliseconds: a caller's time for the other keys, and its
/// message.
const UNDONE_WITHIN: u64 = 1_000;

/// One key's account.
#[derive(Clone, Debug)]
pub(crate) struct Account<S = Row> {
    /// The object's id, for the log.
    id: String,
    pub(crate) row: S,
    /// The key's rows as they were last saved; `None` until they are read.
    states: Option<States>,
    /// The same rows as they are, under the policies of the last operation.
    ledger: Option<Ledger>,
    /// The lists of policies that operations were under. The last one is that of the ledger, if there is one.
    lists: Vec<List>,
    /// Whether the ledger has changes that must be saved, such as a state that has followed the clock.
    unsaved: bool,
    /// Whether rows have changed, too, that the last operation's policies do not name.
    others_changed: bool,
    /// Until when a hit that was just made together with others may be undone, and so a denial may end early.
    undone_until: u64,
    /// Whether an alarm is set that looks for credit to return.
    wakes: bool,
}

/// A request to an account: one operation, and the policies that it is under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) operation: Operation<'a>,
    /// The policies as JSON.
    pub(crate) policies: &'a str,
    /// Whether allowed hits may be kept in memory, covered by a credit in the row.
    pub(crate) credit: bool,
}

/// Policies that operations were under.
#[derive(Clone, Debug)]
struct List {
    /// The policies as JSON, as the operations had them.
    text: String,
    policies: Policies,
    counts_denied: bool,
    /// The credit that the saved rows of the policies contain.
    credit: Credit,
}

impl List {
    fn read(text: &str) -> Result<Self, ThrownError> {
        let policies = policies::read(text)?;
        let counts_denied = wire::counts_denied(&policies);
        Ok(Self { text: text.into(), policies, counts_denied, credit: Credit::default() })
    }
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
        let (states, ledger, lists) = (None, None, Vec::new());
        let (unsaved, others_changed, undone_until, wakes) = (false, false, 0, false);
        Self { id, row, states, ledger, lists, unsaved, others_changed, undone_until, wakes }
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
        let exception = self.ledger.as_ref().and_then(|ledger| ledger.exception(now));
        Ok(with_exception(0, exception))
    }

    /// Returns the policies of the last operation.
    pub(crate) fn policies(&self) -> Option<&Policies> {
        self.ledger.as_ref().map(Ledger::policies)
    }

    /// Returns the first number of the first state in memory.
    #[cfg(test)]
    pub(crate) fn first_number(&self) -> Option<i64> {
        self.ledger.as_ref()?.rows().first()?.as_ref().state.first().copied()
    }

    /// Handles the alarm: returns the credit of a quiet key, and removes the states that have ended. If others are left,
    /// the alarm is set again.
    pub(crate) fn expire(&mut self, now: u64) -> Result<Expired, ThrownError> {
        self.wakes = false;
        if self.lists.iter().any(|list| list.credit.is_in_use(now)) && self.ledger.is_some() && !self.row.is_due(now) {
            self.row.wake_at(now + WAKE)?;
            self.wakes = true;
            return Ok(Expired { ended: States::default(), empty: false });
        }
        // The rows in memory are without the credit, so that saving them returns it.
        let unsaved = self.unsaved || self.lists.iter().any(|list| list.credit.is_worth_returning());
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

    /// Takes all rows of the key, with the changes that are only in memory. They are read if they were not.
    fn take_states(&mut self, now: u64) -> Result<States, LoadError> {
        let mut states = match self.states.take() {
            Some(states) => states,
            None => self.row.load()?,
        };
        if let Some(ledger) = self.ledger.take() {
            states.keep_all(&ledger, now);
        }
        self.drop_memory();
        Ok(states)
    }

    fn drop_memory(&mut self) {
        (self.states, self.ledger) = (None, None);
        (self.unsaved, self.others_changed) = (false, false);
        self.lists.clear();
    }

    /// Makes these policies those of the ledger.
    fn load(&mut self, text: &str, now: u64) -> Result<(), ThrownError> {
        if self.ledger.is_some() && self.lists.last().is_some_and(|list| list.text == text) {
            return Ok(());
        }
        let known = self.lists.iter().position(|list| list.text == text);
        let list = match known {
            Some(at) => self.lists.remove(at),
            None => List::read(text)?,
        };
        let loaded = self.load_rows(&list.policies, known.is_none(), now);
        match loaded {
            Ok(()) => self.lists.push(list),
            // The last list stays that of the ledger.
            Err(_) if known.is_some() => self.lists.insert(0, list),
            Err(_) => {}
        }
        loaded?;
        self.close_credits();
        Ok(())
    }

    /// Makes policies those of the ledger, which reads the rows if it has not. Those of new lists may start unused, which is
    /// logged.
    fn load_rows(&mut self, policies: &Policies, are_new: bool, now: u64) -> Result<(), ThrownError> {
        if are_new && self.lists.len() == MAX_LISTS {
            self.states = Some(self.take_states(now).map_err(thrown_by)?);
        }
        let afresh = match &mut self.ledger {
            Some(ledger) => {
                ledger.under(policies, now)?;
                if are_new { ledger.afresh(now) } else { Vec::new() }
            }
            None => self.read_rows(policies, now)?,
        };
        if !afresh.is_empty() {
            self.row.warn(&serde_json::json!({ "event": "afresh", "policies": afresh }).to_string());
        }
        Ok(())
    }

    /// Reads the rows into a ledger under these policies. Returns the names of the policies that start unused.
    fn read_rows(&mut self, policies: &Policies, now: u64) -> Result<Vec<String>, ThrownError> {
        let mut ledger = Ledger::new(policies.clone())?;
        let loaded = self.take_states(now).and_then(|states| {
            let loaded = states.load(&mut ledger, now).map_err(LoadError::Unreadable);
            self.states = Some(states);
            loaded
        });
        match loaded {
            Ok(afresh) => {
                self.ledger = Some(ledger);
                Ok(afresh)
            }
            Err(LoadError::Platform(thrown)) => Err(thrown.into()),
            Err(LoadError::Unreadable(error)) => {
                self.quarantine(&error, now)?;
                Err(error.into())
            }
        }
    }

    /// Closes the credits of policies whose rows other policies have taken over.
    fn close_credits(&mut self) {
        let Some(ledger) = &self.ledger else { return };
        for list in self.lists.iter_mut().filter(|list| list.credit.is_open() && !ledger.has_read(&list.policies)) {
            list.credit.close();
            self.others_changed = true;
        }
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
        let Self { row, states: Some(states), ledger: Some(ledger), lists, unsaved, others_changed, .. } = self else {
            return Err(Error::state("there is none").into());
        };
        let (undone_until, wakes) = (&mut self.undone_until, &mut self.wakes);
        let Some(List { counts_denied, credit, .. }) = lists.last_mut() else {
            return Err(Error::state("there is none").into());
        };
        let Request { operation, credit: has_credit, .. } = request;
        let was_used = matches!(operation, Operation::Reset | Operation::ResetAll) && ledger.expires_at(now)? > 0;
        // An expired reservation and a state that follows the clock must be saved, but not a denial that is counted.
        *unsaved |= *counts_denied && is_decided(&operation) && ledger.follow_clock(now)?;
        let Applied { answer, changed, others_changed: are_others } = ledger.applied(operation, now)?;
        let must_save = *unsaved || changed && !(*counts_denied && is_decided(&operation) && is_denial(&answer));
        *others_changed |= are_others;
        // Lifted or set, an exception holds from the row that is written now.
        let is_exception = matches!(operation, Operation::Except { .. });
        let has_credit = has_credit && ledger.may_lease() && !is_exception;
        // A denial that counts toward a ban changes the row, whatever the credit covers.
        let is_violation = ledger.has_bans() && is_denial(&answer);
        if must_save
            && (*unsaved || *others_changed || !has_credit || is_violation || !credit.covers(&operation, &answer, now))
        {
            let with_credit = if has_credit { credit.renew(ledger, row.random()?, now)? } else { None };
            if !has_credit {
                credit.close();
            }
            states.keep(with_credit.as_ref().unwrap_or(ledger), now);
            if *others_changed {
                states.keep_others(ledger, now);
            }
            row.save(states, now)?;
            (*unsaved, *others_changed) = (false, false);
        }
        if has_credit && !*wakes && credit.is_worth_returning() {
            row.wake_at(now + WAKE)?;
            *wakes = true;
        }
        if let Answer::Undoable { id: Some(_), .. } = &answer {
            *undone_until = now + UNDONE_WITHIN;
        }
        let open = match ledger.has_open() {
            // A denial that is not repeated by the caller counts toward a ban.
            _ if is_violation => Certainty::Uncertain,
            // What was just hit together with other keys may be given back.
            _ if now < *undone_until => Certainty::Uncertain,
            false => Certainty::Certain,
            true if ledger.has_only_leases() => Certainty::UntilLeaseEnds,
            true => Certainty::Uncertain,
        };
        Ok(match answer {
            Answer::Decision(decision) => Reply::Decision { decision, open },
            Answer::Undoable { decision, id } => Reply::Undoable { decision, open, id },
            Answer::Leased { decision, lease } => Reply::Leased { decision, open, lease },
            Answer::Number(number) if matches!(operation, Operation::Get { .. }) => {
                with_exception(number, ledger.exception(now))
            }
            Answer::Number(given) if matches!(operation, Operation::Undo { .. }) => Reply::Undone(given),
            Answer::Number(number) => Reply::Number(number),
            // Other rows, reservations and an exception stay.
            Answer::Done => Reply::Reset(was_used && (changed || ledger.has_open())),
            Answer::Reserved { decision, id } => Reply::Reserved { decision, open, id },
            Answer::Settled(settlement) => Reply::Settled { settlement, id: id_after(&operation, now) },
        })
    }
}

/// Returns the error of loading as it is thrown.
fn thrown_by(error: LoadError) -> ThrownError {
    match error {
        LoadError::Unreadable(error) => error.into(),
        LoadError::Platform(thrown) => thrown.into(),
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
        Operation::Hit { .. }
            | Operation::HitCosts { .. }
            | Operation::HitUndoable { .. }
            | Operation::Reserve { .. }
            | Operation::Lease { .. }
    )
}

fn is_denial(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Decision(decision)
            | Answer::Undoable { decision, .. }
            | Answer::Reserved { decision, .. }
            | Answer::Leased { decision, .. }
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
