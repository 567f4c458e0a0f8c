//! An algorithm and its numbers, validated once when it is made.

pub(crate) mod costs;
mod draft;
pub(crate) mod duration;
pub(crate) mod exception;
mod mismatch;
mod policies;
pub(crate) mod scale;
pub mod schema;
mod value;

use alloc::boxed::Box;

use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::ban::Ban;
use crate::algorithm::bucket::{Bucket, Kind};
use crate::algorithm::calendar::{Calendar, CalendarScale, parse_offset};
use crate::algorithm::concurrency::Concurrency;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::window::{self, Window};
use crate::number::MAX;
use crate::policy::duration::Span;
use crate::policy::scale::Scale;
use crate::{Error, Expected};
use schema::{
    ALGORITHM_SCHEMAS, ALGORITHMS, AMOUNTS, AlgorithmSchema, BAN, CONCURRENCY, FIX_WINDOW, FIX_WINDOW_PER_KEY,
    LEAKY_BUCKET, MAX_BAN_COUNT, MAX_NAME, MAX_TTL, Role, SLIDING_COUNTER, SLIDING_WINDOW, TOKEN_BUCKET,
};

pub use draft::PolicyDraft;
pub use exception::Exception;
pub(crate) use mismatch::mismatch;
pub use policies::{IntoPolicies, Policies};
pub use value::Value;

/// What a denied hit does to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Denied {
    /// It is counted all the same, as in Hammer: a client that keeps trying keeps waiting.
    Count,
    /// It changes no state: the default.
    Free,
}

/// An algorithm and its numbers.
///
/// ```
/// use tollgate::{Denied, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let per_minute = Policy::sliding_window(100, "1m")?.named("burst")?.denied(Denied::Free)?;
/// assert_eq!((per_minute.algorithm(), per_minute.limit()), ("sliding_window", 100));
///
/// // The same from JSON, TOML or anything else that serde reads.
/// let json = r#"{ "algorithm": "sliding_window", "limit": 100, "scale": "1m", "name": "burst", "denied": "free" }"#;
/// assert_eq!(serde_json::from_str::<Policy>(json).unwrap(), per_minute);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    pub(crate) algorithm: AnyAlgorithm,
    pub(crate) name: Option<Box<str>>,
    /// Written into headers only: no state depends on it.
    pub(crate) unit: Option<Box<str>>,
    pub(crate) denied: Option<Denied>,
}

impl Policy {
    /// At most `limit` in each window of the clock, `scale` long. [`Policy::calendar`] has days, weeks and months.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(100, "1m").unwrap().scale(), 60_000);
    /// ```
    pub fn fix_window(limit: u64, scale: impl Into<Span>) -> Result<Self, Error> {
        Self::new(FIX_WINDOW, limit, 1, scale.into())
    }

    /// At most `limit` in each day, week or month of the calendar, in UTC or at an [offset](Policy::utc_offset) from
    /// it.
    ///
    /// The algorithm is `fix_window`. A week begins on Monday.
    ///
    /// ```
    /// use tollgate::{Calendar, Limiter, ManualClock, Policy};
    ///
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(1_835_308_800_000); // 28 February 2028
    /// let mut limiter = Limiter::<String, _>::new(Policy::calendar(1_000_000, Calendar::Month)?, &clock)?;
    /// let two_days = 2 * 86_400_000;
    /// assert_eq!(limiter.hit("tenant:42", 1)?.reset_after, two_days);
    /// # Ok(())
    /// # }
    /// ```
    pub fn calendar(limit: u64, unit: Calendar) -> Result<Self, Error> {
        Self::from_numbers(FIX_WINDOW, limit, 1, CalendarScale::new(unit, 0).into())
    }

    /// Returns the policy with days that begin at midnight at an `offset` from UTC: from `"-14:00"` to `"+14:00"`, or
    /// `"Z"`.
    ///
    /// The offset is fixed: it does not follow daylight saving time.
    ///
    /// ```
    /// # use tollgate::{Calendar, Policy};
    /// assert!(Policy::calendar(9, Calendar::Day).unwrap().utc_offset("+05:30").is_ok());
    /// assert!(Policy::calendar(9, Calendar::Day).unwrap().utc_offset("India").is_err());
    /// assert!(Policy::fix_window(9, "1d").unwrap().utc_offset("+05:30").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// The text is not an offset, or the policy's windows are not those of the calendar.
    pub fn utc_offset(mut self, offset: &str) -> Result<Self, Error> {
        let expected = self.expected_offset();
        match (&mut self.algorithm, parse_offset(offset)) {
            (AnyAlgorithm::Window(Window { kind: window::Kind::Calendar(calendar), .. }), Some(parsed)) => {
                *calendar = CalendarScale::new(calendar.unit(), parsed);
                Ok(self)
            }
            _ => Err(Error::policy("utcOffset", offset, expected)),
        }
    }

    /// Returns the accepted values of the field `utcOffset`.
    fn expected_offset(&self) -> Expected {
        if self.algorithm.stored_scale().calendar().is_some() { Expected::UtcOffset } else { Expected::CalendarOnly }
    }

    /// At most `limit` in a window that starts at the key's first hit and is `scale` long.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window_per_key(100, 60_000).unwrap().limit(), 100);
    /// ```
    pub fn fix_window_per_key(limit: u64, scale: impl Into<Span>) -> Result<Self, Error> {
        Self::new(FIX_WINDOW_PER_KEY, limit, 1, scale.into())
    }

    /// At most `limit` in any stretch of time that is `scale` long.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::sliding_window(100, "1h").unwrap().scale(), 3_600_000);
    /// ```
    pub fn sliding_window(limit: u64, scale: impl Into<Span>) -> Result<Self, Error> {
        Self::new(SLIDING_WINDOW, limit, 1, scale.into())
    }

    /// About `limit` in any stretch of time that is `scale` long, from two counters.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::sliding_counter(1_000_000, "1d").unwrap().limit(), 1_000_000);
    /// ```
    pub fn sliding_counter(limit: u64, scale: impl Into<Span>) -> Result<Self, Error> {
        Self::new(SLIDING_COUNTER, limit, 1, scale.into())
    }

    /// Bursts of up to `capacity`, refilled at `refill_rate` for each `per`.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::token_bucket(500, 100, "1s").unwrap().limit(), 500);
    /// ```
    pub fn token_bucket(capacity: u64, refill_rate: u64, per: impl Into<Span>) -> Result<Self, Error> {
        Self::new(TOKEN_BUCKET, capacity, refill_rate, per.into())
    }

    /// A level of up to `capacity`, leaking at `leak_rate` for each `per`.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::leaky_bucket(500, 100, "1s").unwrap().algorithm(), "leaky_bucket");
    /// ```
    pub fn leaky_bucket(capacity: u64, leak_rate: u64, per: impl Into<Span>) -> Result<Self, Error> {
        Self::new(LEAKY_BUCKET, capacity, leak_rate, per.into())
    }

    /// At most `limit` at the same time: only reservations count, each until it is settled or its `ttl` ends.
    ///
    /// The `ttl` is at most a day, and is the default of a reservation's own.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::concurrency(5, "30s").unwrap().limit(), 5);
    /// ```
    pub fn concurrency(limit: u64, ttl: impl Into<Span>) -> Result<Self, Error> {
        let ttl = ttl.into().checked().and_then(|ttl| if ttl <= MAX_TTL { Ok(ttl) } else { Err(ttl.into()) });
        let ttl = ttl.map_err(|found| Error::policy("ttl", found, Expected::Ttl))?;
        Self::from_numbers(CONCURRENCY, limit, 1, Scale::of_time(ttl))
    }

    /// Denies a key for `length` after it was denied `after` times within `scale` by the other policies of its list.
    ///
    /// The `after`-th denial already is the ban. While it holds, nothing is charged or counted. At most 1,000 denials begin
    /// one. Alone in a list, it only holds bans of [`Limiter::ban`](crate::Limiter::ban). Without the feature `bans` of the
    /// crate, which is on by default, this is an error.
    ///
    /// ```
    /// use tollgate::{Limiter, ManualClock, Policy, Reason};
    ///
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::sliding_window(3, "1m")?, Policy::ban(2, "10m", "1h")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// for _ in 0..4 {
    ///     limiter.hit("login:42", 1)?;
    /// }
    /// let denied = limiter.hit("login:42", 1)?;
    /// assert_eq!((denied.reason, denied.retry_after), (Some(Reason::Banned), Some(3_600_000)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn ban(after: u64, scale: impl Into<Span>, length: impl Into<Span>) -> Result<Self, Error> {
        let duration =
            |field, span: Span| span.checked().map_err(|found| Error::policy(field, found, Expected::Duration));
        if !(1..=MAX_BAN_COUNT).contains(&after) {
            return Err(Error::policy("after", after, Expected::BAN_COUNT));
        }
        let (scale, length) = (duration("scale", scale.into())?, duration("for", length.into())?);
        Self::of_ban(after, 1, scale, length, length)
    }

    /// Returns the ban with lengths that grow: each lasts `factor` times as long as the last one, up to `most`, until a
    /// key had none for as long as its last one lasted.
    ///
    /// ```
    /// # use tollgate::Policy;
    /// assert!(Policy::ban(5, "10m", "1h").unwrap().growing(2, "1d").is_ok());
    /// assert!(Policy::ban(5, "10m", "1h").unwrap().growing(2, "1m").is_err());
    /// assert!(Policy::fix_window(5, "10m").unwrap().growing(2, "1d").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// The policy is not a ban, the factor is not an integer from 2 to 1,000, or `most` is less than the first length.
    pub fn growing(self, factor: u64, most: impl Into<Span>) -> Result<Self, Error> {
        let AnyAlgorithm::Ban(ban) = self.algorithm else {
            return Err(Error::UnknownField {
                field: "factor".into(),
                algorithm: self.algorithm(),
                known: self.schema().fields.iter().map(|field| field.name).collect(),
            });
        };
        if !(2..=MAX_BAN_COUNT).contains(&factor) {
            return Err(Error::policy("factor", factor, Expected::Integer { min: 2, max: MAX_BAN_COUNT }));
        }
        let most = most.into().checked().and_then(|most| if most >= ban.length { Ok(most) } else { Err(most.into()) });
        let most = most.map_err(|found| Error::policy("most", found, Expected::MostOfBan))?;
        let grown = Self::of_ban(ban.after.into(), factor, ban.scale, ban.length, most)?;
        Ok(Self { algorithm: grown.algorithm, ..self })
    }

    /// Returns the ban with these numbers, which are in range.
    pub(crate) fn of_ban(after: u64, factor: u64, scale: u64, length: u64, most: u64) -> Result<Self, Error> {
        let ban = Ban::new(after, factor, scale, length, most);
        let unavailable = || Error::UnknownAlgorithm { found: ALGORITHMS[BAN].into() };
        let ban = ban.ok_or_else(|| match cfg!(feature = "bans") {
            true => Error::policy("most", most, Expected::MostOfBan),
            false => unavailable(),
        })?;
        Ok(Self { algorithm: AnyAlgorithm::Ban(ban), name: None, unit: None, denied: None })
    }

    /// Returns the policy with a name, for headers, logs and limiters with several policies.
    ///
    /// ```
    /// # use tollgate::Policy;
    /// assert_eq!(Policy::fix_window(1, "1s").unwrap().named("burst").unwrap().name(), Some("burst"));
    /// assert!(Policy::fix_window(1, "1s").unwrap().named("new\nline").is_err());
    /// ```
    pub fn named(mut self, name: &str) -> Result<Self, Error> {
        if !is_name(name) {
            return Err(Error::policy("name", name, Expected::Name));
        }
        self.name = Some(name.into());
        Ok(self)
    }

    /// Returns the policy with the unit that its limit counts, such as `"content-bytes"`, for the headers.
    ///
    /// The default is `"requests"`, and `"concurrent-requests"` for [`Policy::concurrency`].
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy, rate_limit_headers};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let upload = Policy::token_bucket(10_000_000, 1_000_000, "1s")?.named("upload")?.unit("content-bytes")?;
    /// let mut limiter = Limiter::<String, _>::new(upload, ManualClock::new(0))?;
    /// let decision = limiter.hit("user:42", 65_536)?;
    /// let headers = rate_limit_headers(&decision, limiter.policies());
    /// assert_eq!(headers[0].1, r#""upload";q=10000000;qu="content-bytes";w=10"#);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The unit is not 1 to 64 printable ASCII characters.
    pub fn unit(mut self, unit: &str) -> Result<Self, Error> {
        if !is_name(unit) {
            return Err(Error::policy("unit", unit, Expected::Unit));
        }
        self.unit = Some(unit.into());
        Ok(self)
    }

    /// Returns the policy with a choice whether denied hits count. A bucket's denied hits are always free.
    ///
    /// ```
    /// # use tollgate::{Denied, Policy};
    /// assert!(Policy::fix_window(1, "1s").unwrap().denied(Denied::Free).is_ok());
    /// assert!(Policy::token_bucket(1, 1, "1s").unwrap().denied(Denied::Count).is_err());
    /// ```
    pub fn denied(mut self, denied: Denied) -> Result<Self, Error> {
        let is_window = matches!(self.algorithm, AnyAlgorithm::Window(_) | AnyAlgorithm::SlidingWindow(_));
        if !is_window && denied == Denied::Count {
            return Err(Error::policy("denied", "count", Expected::FreeForBucket));
        }
        // A concurrency limit and a ban have no such field.
        self.denied = Some(denied).filter(|_| !self.algorithm.is_concurrency() && !self.algorithm.is_ban());
        Ok(self)
    }

    /// Returns whether `denied` was set.
    #[doc(hidden)]
    pub fn has_choice(&self) -> bool {
        self.denied.is_some()
    }

    /// Returns the algorithm's name.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(1, "1s").unwrap().algorithm(), "fix_window");
    /// ```
    pub fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Returns the limit or the capacity; of a ban [`MAX`](crate::MAX), since it binds only while it holds.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(9, "1s").unwrap().limit(), 9);
    /// ```
    pub fn limit(&self) -> u64 {
        self.algorithm.limit()
    }

    /// Returns the window's `scale`, or a bucket's `per`, in milliseconds. For windows of the calendar it is the
    /// longest: 31 days for months.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(9, "1s").unwrap().scale(), 1_000);
    /// ```
    pub fn scale(&self) -> u64 {
        self.algorithm.scale()
    }

    /// Returns the window's `scale`, or how long a bucket takes to fill or empty, in milliseconds.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::token_bucket(500, 100, "1s").unwrap().period(), 5_000);
    /// ```
    pub fn period(&self) -> u64 {
        self.algorithm.period()
    }

    /// Validates the numbers of the algorithm at a position of the schema.
    fn new(algorithm: usize, limit: u64, rate: u64, scale: Span) -> Result<Self, Error> {
        let schema = &ALGORITHM_SCHEMAS[algorithm];
        let name = |role| schema.field(role).map_or("", |field| field.name);
        let scale = scale.checked().map_err(|found| Error::policy(name(Role::Scale), found, Expected::Duration))?;
        Self::from_numbers(algorithm, limit, rate, Scale::of_time(scale))
    }

    /// Validates the numbers of the algorithm at a position of the schema, whose scale is valid.
    pub(crate) fn from_numbers(algorithm: usize, limit: u64, rate: u64, scale: Scale) -> Result<Self, Error> {
        let schema = &ALGORITHM_SCHEMAS[algorithm];
        let (min, max) = AMOUNTS;
        for (role, number) in [(Role::Limit, limit), (Role::Rate, rate)] {
            if let Some(field) = schema.field(role)
                && !(min..=max).contains(&number)
            {
                return Err(Error::policy(field.name, number, Expected::Integer { min, max }));
            }
        }
        Self { algorithm: unchecked_algorithm(algorithm, limit, rate, scale), name: None, unit: None, denied: None }
            .fillable()
    }

    /// Checks that a bucket does not take too long to fill or empty.
    fn fillable(self) -> Result<Self, Error> {
        if self.period() <= MAX {
            Ok(self)
        } else {
            Err(Error::policy("capacity", self.limit(), Expected::FillableCapacity))
        }
    }

    /// Returns the schema of the policy's algorithm.
    pub(crate) fn schema(&self) -> &'static AlgorithmSchema {
        &ALGORITHM_SCHEMAS[self.algorithm.position()]
    }

    /// Returns the policy's own name; `None` if it has none.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(9, "1s").unwrap().name(), None);
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// Returns whether a name or a unit is valid: 1 to 64 printable ASCII characters.
fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// Returns whether denied hits count, given the policy's own choice. Among several policies they are always free.
pub(crate) fn denied(algorithms: &[AnyAlgorithm], choice: Option<Denied>) -> Denied {
    match algorithms {
        [_] => choice.unwrap_or(Denied::Free),
        _ => Denied::Free,
    }
}

/// Returns the algorithm at a position of the schema with numbers that are in range; `None` if a bucket would take too
/// long to fill or empty.
pub(crate) fn build_algorithm(position: usize, limit: u64, rate: u64, scale: Scale) -> Option<AnyAlgorithm> {
    let algorithm = unchecked_algorithm(position, limit, rate, scale);
    (algorithm.period() <= MAX).then_some(algorithm)
}

/// Returns the algorithm at a position of the schema, however long a bucket takes to fill or empty.
fn unchecked_algorithm(position: usize, limit: u64, rate: u64, by: Scale) -> AnyAlgorithm {
    let scale = by.length();
    let window = |kind| AnyAlgorithm::Window(Window { kind, limit, scale });
    match position {
        FIX_WINDOW => window(by.calendar().map_or(window::Kind::Clock, window::Kind::Calendar)),
        FIX_WINDOW_PER_KEY => window(window::Kind::Key),
        SLIDING_WINDOW => AnyAlgorithm::SlidingWindow(SlidingWindow::new(limit, scale)),
        SLIDING_COUNTER => window(window::Kind::Sliding),
        TOKEN_BUCKET => AnyAlgorithm::Bucket(Bucket::new(Kind::Token, limit, rate, scale)),
        LEAKY_BUCKET => AnyAlgorithm::Bucket(Bucket::new(Kind::Leaky, limit, rate, scale)),
        // No caller has a position outside the schema, and only a ban, which has other numbers, is without an arm.
        _ => AnyAlgorithm::Concurrency(Concurrency { limit, ttl: scale }),
    }
}

const _: () =
    assert!(ALGORITHMS.len() == 8, "each algorithm of the schema but `ban` has an arm in `unchecked_algorithm`");
