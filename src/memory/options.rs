//! The options of a limiter in memory: how many keys it keeps, and when it cleans them.

use crate::policy::schema::{DEFAULT_CLEAN_PERIOD, DEFAULT_MAX_KEYS};
use crate::{Error, Expected, Span};

/// What a full limiter does with a new key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// Examines a few keys and removes one: an expired one, else the one that would expire soonest.
    #[default]
    Evict,
    /// Denies the new key with [`Reason::Full`](crate::Reason::Full).
    Deny,
}

/// The options of a limiter in memory: how many keys it keeps, and when it cleans them.
///
/// ```
/// use tollgate::{Limiter, ManualClock, OnFull, Options, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let options = Options::new().max_keys(10_000)?.on_full(OnFull::Deny).clean_period("10s")?.key_older_than("1d")?;
/// let limiter = Limiter::<String, _>::with_options(Policy::fix_window(9, "1s")?, ManualClock::new(0), options)?;
/// assert_eq!(limiter.len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) max_keys: u32,
    pub(crate) on_full: OnFull,
    pub(crate) clean_period: u64,
    pub(crate) key_older_than: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_keys: DEFAULT_MAX_KEYS,
            on_full: OnFull::Evict,
            clean_period: DEFAULT_CLEAN_PERIOD,
            key_older_than: None,
        }
    }
}

impl Options {
    /// The most keys that any limiter can hold.
    pub const MOST_KEYS: u32 = u32::MAX - 1;

    /// Returns the defaults: a million keys, evicted when full, cleaned every minute, kept however old they are.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Options, Policy};
    /// let policy = Policy::fix_window(9, "1s").unwrap();
    /// assert!(Limiter::<u64, _>::with_options(policy, ManualClock::new(0), Options::new()).is_ok());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns options from numbers that are in range; a `key_older_than` of 0 is `None`.
    #[doc(hidden)]
    pub fn from_numbers(max_keys: u32, on_full: OnFull, clean_period: u64, key_older_than: u64) -> Self {
        let key_older_than = Some(key_older_than).filter(|&age| age > 0);
        Self { max_keys, on_full, clean_period, key_older_than }
    }

    /// Sets the most keys that the limiter keeps.
    ///
    /// ```
    /// assert!(tollgate::Options::new().max_keys(0).is_err());
    /// ```
    pub fn max_keys(mut self, max_keys: u64) -> Result<Self, Error> {
        let fits = u32::try_from(max_keys).ok().filter(|keys| (1..=Self::MOST_KEYS).contains(keys));
        let expected = Expected::Integer { min: 1, max: Self::MOST_KEYS.into() };
        let error = || Error::InvalidOption { option: "max_keys".into(), found: max_keys.into(), expected };
        self.max_keys = fits.ok_or_else(error)?;
        Ok(self)
    }

    /// Sets what happens to a new key when the limiter is full.
    ///
    /// ```
    /// # use tollgate::{OnFull, Options};
    /// let options = Options::new().on_full(OnFull::Deny);
    /// ```
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Sets how often expired keys are removed.
    ///
    /// ```
    /// assert!(tollgate::Options::new().clean_period("soon").is_err());
    /// ```
    pub fn clean_period(mut self, period: impl Into<Span>) -> Result<Self, Error> {
        self.clean_period = span("clean_period", period.into())?;
        Ok(self)
    }

    /// Sets the age at which an unchanged key expires, whatever its state.
    ///
    /// ```
    /// assert!(tollgate::Options::new().key_older_than("1d").is_ok());
    /// ```
    pub fn key_older_than(mut self, age: impl Into<Span>) -> Result<Self, Error> {
        self.key_older_than = Some(span("key_older_than", age.into())?);
        Ok(self)
    }
}

fn span(option: &'static str, span: Span) -> Result<u64, Error> {
    let error = |found| Error::InvalidOption { option: option.into(), found, expected: Expected::Duration };
    span.checked().map_err(error)
}
