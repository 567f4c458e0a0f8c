//! One key's states in memory, loaded from a record and saved to one: the core of every durable store.

#[cfg(feature = "cloudflare")]
use crate::algorithm::Outcome;
use crate::growth::or_abort;
use crate::key::exceptions::Exceptions;
use crate::key::open_reservations::is_lease;
#[cfg(feature = "cloudflare")]
use crate::key::operate::Extra;
use crate::key::policy_states::PolicyStates;
use crate::key::rows::{Row, rows_of};
use crate::key::shapes::Names;
use crate::key::states::KeyStates;
use crate::key::undo::is_mark;
use crate::number::check_time;
#[cfg(feature = "cloudflare")]
use crate::policy::costs::PositionCosts;
use crate::store::parked::Parked;
use crate::store::record::{StoredRow, names_at};
use crate::{Error, Exception, Expected, IntoPolicies, Policies, Record, Span};
use alloc::string::String;
use alloc::vec::Vec;

/// One key's rows, and the policies that operations are under.
///
/// For a store that keeps a key's states in memory between operations, as a Durable Object does.
/// A store that loads and saves on each operation has [`step`](crate::step).
///
/// ```
/// use tollgate::{Answer, Ledger, Operation, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let mut ledger = Ledger::new(Policy::token_bucket(10, 1, "1s")?)?;
/// let (answer, changed) = ledger.apply(Operation::Hit { cost: 4 }, 1_000)?;
/// assert!(matches!(answer, Answer::Decision(decision) if decision.allowed && changed));
///
/// let mut copy = Ledger::new(Policy::token_bucket(10, 1, "1s")?)?;
/// copy.load(&ledger.record(1_000)?.unwrap(), 2_000)?;
/// assert_eq!(copy.apply(Operation::Get { policy: None }, 2_000)?.0, Answer::Number(7));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(crate) policies: Policies,
    pub(crate) policy_states: PolicyStates,
    pub(crate) states: KeyStates,
    pub(super) names: Names,
    /// The rows of policies that operations were under before, as they were read.
    pub(super) parked: Vec<Parked>,
}

impl Ledger {
    /// Returns the states of a key never used.
    ///
    /// # Errors
    ///
    /// If the policies are invalid together, the limit of a sliding window exceeds [`MAX_STORED_LOG`](crate::MAX_STORED_LOG), or
    /// that of a concurrency policy [`MAX_STORED_RESERVATIONS`](crate::MAX_STORED_RESERVATIONS).
    ///
    /// ```
    /// # use tollgate::{Ledger, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// assert!(Ledger::new(Policy::sliding_window(1_000, "1s")?).is_ok());
    /// assert!(Ledger::new(Policy::sliding_window(1_001, "1s")?).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(policies: impl IntoPolicies) -> Result<Self, Error> {
        let policies = policies.into_policies()?;
        check_stored(&policies)?;
        let mut policy_states = PolicyStates::new(policies.algorithms(), policies.denied())?;
        policy_states.store();
        let states = KeyStates::new(&policy_states)?;
        let names = Names::new(policies.clone());
        let mut ledger = Self { names, policies, states, policy_states, parked: Vec::new() };
        ledger.clear(0);
        Ok(ledger)
    }

    /// Returns the policies.
    ///
    /// ```
    /// # use tollgate::{Ledger, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let ledger = Ledger::new(Policy::fix_window(10, "1s")?)?;
    /// assert_eq!(ledger.policies().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Loads stored rows. Returns the names of the policies that start unused because their algorithm, `scale` or `per`
    /// changed. Rows of other shapes than those of the policies stay until their ends.
    ///
    /// On an error the states are those of a key never used.
    ///
    /// ```
    /// # use tollgate::{Ledger, Operation, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let minute = Policy::fix_window(10, "1m")?;
    /// let mut ledger = Ledger::new(minute.clone())?;
    /// ledger.apply(Operation::Hit { cost: 7 }, 0)?;
    ///
    /// let mut hourly = Ledger::new(Policy::fix_window(10, "1h")?)?;
    /// assert_eq!(hourly.load(&ledger.record(0)?.unwrap(), 0)?, ["fix_window"]);
    /// hourly.apply(Operation::Hit { cost: 10 }, 0)?;
    ///
    /// let mut again = Ledger::new(minute)?;
    /// again.load(&hourly.record(0)?.unwrap(), 0)?;
    /// assert_eq!(again.apply(Operation::Get { policy: None }, 0)?.0, tollgate::Answer::Number(7));
    /// # Ok(())
    /// # }
    /// ```
    pub fn load(&mut self, record: &Record, now: u64) -> Result<Vec<String>, Error> {
        check_time(now)?;
        self.load_all(record, now)?;
        self.states.extra.drop_ended_rows(now);
        Ok(self.afresh(now))
    }

    /// Returns the names of the policies that are unused while a row of their name has another shape.
    pub(crate) fn afresh(&self, now: u64) -> Vec<String> {
        or_abort(names_at(self.states.afresh(&self.policy_states, now), &self.policies))
    }

    /// The same, with the rows that have ended.
    pub(crate) fn load_all(&mut self, record: &Record, now: u64) -> Result<(), Error> {
        self.clear(now);
        let Self { policy_states, states, names, .. } = self;
        let loaded = record.load(names, policy_states, states, now);
        if loaded.is_err() {
            self.clear(now);
        }
        loaded
    }

    /// Returns the record to store; `None` if the states are those of a key never used.
    ///
    /// # Errors
    ///
    /// If `now` is out of range.
    ///
    /// ```
    /// # use tollgate::{Ledger, Operation, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut ledger = Ledger::new(Policy::fix_window(10, "1s")?)?;
    /// assert!(ledger.record(0)?.is_none());
    /// ledger.apply(Operation::Hit { cost: 1 }, 0)?;
    /// assert!(ledger.record(0)?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn record(&self, now: u64) -> Result<Option<Record>, Error> {
        let record = (self.expires_at(now)? > 0).then(|| self.record_after(now));
        Ok(record.filter(|record| !record.rows.is_empty()))
    }

    /// Returns the record of the rows that end later than `now`.
    pub(crate) fn record_after(&self, now: u64) -> Record {
        let rows = self.rows();
        let live = rows.iter().filter(|row| row.is_live(now)).map(|row| StoredRow::new(row, &self.names));
        Record::new(live.chain(self.stored_parked(now)).collect())
    }

    /// Returns rows as they are stored.
    pub(crate) fn stored<'a>(&'a self, rows: &'a [Row]) -> impl Iterator<Item = StoredRow> {
        rows.iter().map(|row| StoredRow::new(row, &self.names))
    }

    /// Returns the policies' rows as they are stored, with the count of each when it was last changed.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn stored_named(&self) -> impl Iterator<Item = (StoredRow, u64)> {
        (0..self.policies.len()).map(|position| {
            let row = or_abort(self.row(position));
            let count = self.policy_states.last_count(position, self.states.entry(), &self.states.extra.open);
            (StoredRow::new(&row, &self.names), count)
        })
    }

    /// Returns the rows that operations do not name as they are stored, but for parked ones.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn stored_others(&self) -> impl Iterator<Item = StoredRow> {
        self.stored(&self.states.extra.rows)
    }

    /// Returns the exception as it is stored.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn stored_exceptions(&self) -> impl Iterator<Item = StoredRow> {
        let first = self.policies.len() + self.states.extra.rows.len();
        self.rows().into_iter().skip(first).map(|row| StoredRow::new(&row, &self.names))
    }

    /// Returns a copy of the policies' rows and the exception.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn copy_of_named(&self) -> Result<Self, Error> {
        let Self { policies, policy_states, states, names, .. } = self;
        let extra = Extra {
            open: states.extra.open.try_clone()?,
            exceptions: states.extra.exceptions.clone(),
            ..Extra::default()
        };
        let states = KeyStates { words: states.words.clone(), logs: states.logs.clone(), extra };
        Ok(Self {
            policies: policies.clone(),
            policy_states: policy_states.clone(),
            states,
            names: names.clone(),
            parked: Vec::new(),
        })
    }

    /// Returns the rows of the policies in order, then those of no policies that operations were under, then the exception.
    pub(crate) fn rows(&self) -> Vec<Row> {
        or_abort(rows_of(&self.policy_states, self.states.entry(), Some(&self.states.extra)))
    }

    /// Returns the key's exception and its end, in milliseconds since the epoch; `None` if none is in force.
    ///
    /// ```
    /// # use tollgate::{Exception, Ledger, Operation, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut ledger = Ledger::new(Policy::fix_window(10, "1s")?)?;
    /// ledger.apply(Operation::Except { exception: Some(&Exception::deny()), until: 5_000 }, 0)?;
    /// assert_eq!(ledger.exception(4_999), Some((Exception::deny(), 5_000)));
    /// assert_eq!(ledger.exception(5_000), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn exception(&self, now: u64) -> Option<(Exception, u64)> {
        self.states.extra.exceptions.exception(&self.names, now)
    }

    /// Returns the number of the name under which a decision of an exception is.
    pub(crate) fn decision_name(&mut self) -> Result<usize, Error> {
        Ok(self.names.number("")?)
    }

    /// Takes over the exception of other states of the key if it was set later.
    pub(crate) fn take_later_exception(&mut self, other: &Self) -> Result<(), Error> {
        let Self { states, names, .. } = self;
        let theirs = &other.states.extra.exceptions;
        let own = &states.extra.exceptions;
        // Of one that was set and lifted in the same millisecond, the lifted one stands.
        let is_lifted = theirs.since() == own.since() && theirs.are_lifted() && !own.are_lifted();
        if theirs.since() > own.since() || is_lifted {
            states.extra.exceptions = theirs.renamed(&other.names, names)?;
        }
        Ok(())
    }

    /// Drops the exception if it has ended.
    pub(crate) fn drop_ended_exception(&mut self, now: u64) {
        self.states.extra.exceptions.drop_ended(now);
    }

    /// Replaces the key's exception. Returns when the new one ends, or without one, when the former one would have ended.
    pub(crate) fn except(&mut self, exception: Option<&Exception>, (until, now): (u64, u64)) -> Result<u64, Error> {
        let Some(exception) = exception else {
            let lifted = core::mem::take(&mut self.states.extra.exceptions);
            return Ok(if lifted.are_in_force(now) { lifted.ends_at() } else { 0 });
        };
        let exceptions = Exceptions::new(exception, &mut self.names, &self.policies, (until, now))?;
        self.replace_exceptions(exceptions)
    }

    /// Lifts the key's exception, and keeps when it was lifted until it would have ended: so that no process with an older memory
    /// brings it back. Returns when it would have ended; 0 if there was none.
    pub(crate) fn lift_exception(&mut self, now: u64) -> Result<u64, Error> {
        let lifted = self.states.extra.exceptions.lifted(now)?;
        let ends_at = if lifted.is_empty() { 0 } else { lifted.ends_at() };
        self.states.extra.exceptions = lifted;
        Ok(ends_at)
    }

    /// Replaces the key's exception by one that the policies can take. Returns when it ends.
    pub(crate) fn replace_exceptions(&mut self, exceptions: Exceptions) -> Result<u64, Error> {
        if let Some(unfit) = exceptions.unfit(&self.policy_states) {
            return Err(unfit.error(&self.policies));
        }
        self.states.extra.exceptions = exceptions;
        Ok(self.states.extra.exceptions.ends_at())
    }

    /// Returns whether a reservation is open under the policies.
    pub(crate) fn has_open(&self) -> bool {
        self.states.extra.open.reservations() > 0
    }

    /// Returns whether all open reservations are leases.
    pub(crate) fn has_only_leases(&self) -> bool {
        self.states.extra.open.all().all(|(bits, _)| is_lease(bits) || is_mark(bits))
    }

    /// Returns whether hits may be leased, or kept in memory alone.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn may_lease(&self) -> bool {
        self.policy_states.may_lease()
    }

    /// Returns whether one of the policies is a ban.
    pub(crate) fn has_bans(&self) -> bool {
        !self.policy_states.bans().is_empty()
    }

    /// Returns how many hits of cost 1 would be allowed.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn remaining(&self, now: u64) -> Result<u64, Error> {
        Ok(self.peek(&PositionCosts::All(0), None, now)?.remaining)
    }

    /// Returns the last millisecond of the windows in force and of an exception, or `end` if that is earlier.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn window_end(&self, end: u64, now: u64) -> u64 {
        let end = self.policy_states.window_end(self.states.entry(), end, now);
        let excepted_until = Some(self.states.extra.exceptions.ends_at()).filter(|&until| until > now);
        excepted_until.map_or(end, |until| until.min(end))
    }

    /// Charges expired reservations, and moves states that are ahead of the clock back to it. Returns whether the states
    /// changed.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn follow_clock(&mut self, now: u64) -> Result<bool, Error> {
        let mut outcome = Outcome::default();
        let mut key = self.states.key_mut(&self.policy_states, self.policy_states.algorithms());
        key.hit(&PositionCosts::All(0), check_time(now)?, &mut outcome);
        Ok(outcome.changed()?)
    }

    /// Returns when the last of the states ends, in milliseconds since the epoch; 0 if there is none.
    ///
    /// # Errors
    ///
    /// If `now` is out of range.
    ///
    /// ```
    /// # use tollgate::{Ledger, Operation, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let mut ledger = Ledger::new(Policy::fix_window(10, "1s")?)?;
    /// ledger.apply(Operation::Hit { cost: 1 }, 300)?;
    /// assert_eq!(ledger.expires_at(300)?, 1_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn expires_at(&self, now: u64) -> Result<u64, Error> {
        let parked = self.parked.iter().map(Parked::ends_at).max().unwrap_or(0);
        let ends = self.states.end_at(&self.policy_states, check_time(now)?).max(parked);
        Ok(if ends > now { ends } else { 0 })
    }

    fn clear(&mut self, now: u64) {
        self.states.clear(&self.policy_states, now);
        self.parked.clear();
    }
}

/// Checks how long a ban is to last.
pub(crate) fn check_ban(length: Span) -> Result<u64, Error> {
    let invalid = |found| Error::InvalidOption { option: "for".into(), found, expected: Expected::Duration };
    length.checked().map_err(invalid)
}

/// Checks that the policies' states can be stored outside the process.
pub(crate) fn check_stored(policies: &Policies) -> Result<(), Error> {
    check_reachable(policies, true)
}

/// Checks that each limit can be reached, in memory or outside the process.
pub(crate) fn check_reachable(policies: &Policies, are_stored: bool) -> Result<(), Error> {
    match policies.iter().find(|policy| !policy.algorithm.is_reachable(policy.limit(), are_stored)) {
        Some(policy) => Err(Error::policy("limit", policy.limit(), policy.algorithm.limit_expected(are_stored))),
        None => Ok(()),
    }
}
