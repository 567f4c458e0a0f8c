//! Where states are kept: in slots in memory, or anywhere that can load and save a record by key.

pub(crate) mod apply;
pub(crate) mod ledger;
pub(crate) mod operation;
mod parked;
pub(crate) mod record;
pub(crate) mod snapshot;
pub(crate) mod step;

use core::fmt;

use self::step::step;
use crate::number::check_time;
use crate::{Answer, Clock, Error, IntoPolicies, Operation, Policies, Record, check_key};

/// A place outside the limiter that keeps one record a key.
///
/// ```
/// use std::collections::HashMap;
/// use std::convert::Infallible;
/// use tollgate::{ManualClock, Operation, Policy, Record, Store, StoreLimiter};
///
/// #[derive(Default)]
/// struct Shelf(HashMap<String, Record>);
///
/// impl Store for Shelf {
///     type Error = Infallible;
///
///     fn load(&mut self, key: &str) -> Result<Option<Record>, Infallible> {
///         Ok(self.0.get(key).cloned())
///     }
///
///     fn save(&mut self, key: &str, record: Option<&Record>) -> Result<(), Infallible> {
///         match record {
///             Some(record) => self.0.insert(key.into(), record.clone()),
///             None => self.0.remove(key),
///         };
///         Ok(())
///     }
/// }
///
/// let policy = Policy::fix_window(1, "1m").unwrap();
/// let mut limiter = StoreLimiter::new(policy, Shelf::default(), ManualClock::new(0)).unwrap();
/// assert!(limiter.apply("login:42", Operation::Hit { cost: 1 }).is_ok());
/// ```
pub trait Store {
    /// The error of the store.
    type Error;

    /// Returns the record of a key; `None` if there is none.
    fn load(&mut self, key: &str) -> Result<Option<Record>, Self::Error>;

    /// Stores the record of a key; `None` removes it.
    fn save(&mut self, key: &str, record: Option<&Record>) -> Result<(), Self::Error>;
}

/// A limiter over a [`Store`]: loads the record, decides, saves it if it changed, and returns the result.
///
/// ```
/// # use tollgate::{Answer, Limiter, ManualClock, Operation, Policy, StoreLimiter};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // The limiter in memory is a store too.
/// let policy = Policy::fix_window(10, "1m")?;
/// let slots = Limiter::<String, _>::new(policy.clone(), ManualClock::new(0))?;
/// let mut limiter = StoreLimiter::new(policy, slots, ManualClock::new(0))?;
/// limiter.apply("login:42", Operation::Inc { policy: None, cost: 4 })?;
/// assert_eq!(limiter.apply("login:42", Operation::Get { policy: None })?, Answer::Number(4));
/// assert_eq!(limiter.store().get("login:42")?, 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StoreLimiter<S, C> {
    policies: Policies,
    store: S,
    clock: C,
}

impl<S: Store, C: Clock> StoreLimiter<S, C> {
    /// Returns a limiter with these policies over this store.
    pub fn new(policies: impl IntoPolicies, store: S, clock: C) -> Result<Self, Error> {
        let policies = policies.into_policies()?;
        crate::Ledger::new(policies.clone())?;
        Ok(Self { policies, store, clock })
    }

    /// Performs one operation on a key. If the store fails to save, the error is returned and never an allowed
    /// decision.
    pub fn apply(&mut self, key: &str, operation: Operation<'_>) -> Result<Answer, StoreError<S::Error>> {
        let key = check_key(key)?;
        let now = check_time(self.clock.now())?;
        let record = self.store.load(key).map_err(StoreError::Store)?;
        let step = step(&self.policies, record.as_ref(), operation, now)?;
        if step.changed {
            self.store.save(key, step.record.as_ref()).map_err(StoreError::Store)?;
        }
        Ok(step.answer)
    }

    /// Returns the store.
    pub fn store(&self) -> &S {
        &self.store
    }
}

/// An error of an argument or of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError<E> {
    /// An argument is invalid, or a record cannot be read.
    Tollgate(Error),
    /// The store failed.
    Store(E),
}

impl<E> From<Error> for StoreError<E> {
    fn from(error: Error) -> Self {
        Self::Tollgate(error)
    }
}

impl<E: fmt::Display> fmt::Display for StoreError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tollgate(error) => error.fmt(f),
            Self::Store(error) => write!(f, "the store failed: {error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for StoreError<E> {}
