//! An algorithm and its numbers, checked once when it is made.

mod draft;
mod policies;

use alloc::boxed::Box;

use crate::Error;
use crate::algorithm::bucket::{Bucket, Kind};
use crate::algorithm::rule::Rule;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::window::{self, Window};
use crate::duration::{self, Span};
use crate::number::MAX;
use crate::text::{digits, shown};

pub use draft::PolicyDraft;
pub use policies::{IntoPolicies, MAX_POLICIES, Policies};

/// The names of the algorithms.
pub const ALGORITHMS: &[&str] =
    &["fix_window", "fix_window_per_key", "sliding_window", "sliding_counter", "token_bucket", "leaky_bucket"];

// Their places in that list.
const FIX_WINDOW: usize = 0;
const FIX_WINDOW_PER_KEY: usize = 1;
const SLIDING_WINDOW: usize = 2;
const SLIDING_COUNTER: usize = 3;
pub(crate) const TOKEN_BUCKET: usize = 4;
pub(crate) const LEAKY_BUCKET: usize = 5;

pub(crate) const WHOLE: &str = "a whole number from 1 to 9007199254740991";
const PRINTABLE: &str = "1 to 64 printable ASCII characters";

/// What a denied hit does to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Denied {
    /// It is counted all the same, as Hammer does: who keeps knocking keeps waiting.
    Count,
    /// It changes nothing.
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
    pub(crate) rule: Rule,
    pub(crate) name: Option<Box<str>>,
    pub(crate) denied: Option<Denied>,
}

impl Policy {
    /// At most `limit` in each window of the clock, `scale` long.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(100, "1m").unwrap().scale(), 60_000);
    /// ```
    pub fn fix_window(limit: u64, scale: impl Into<Span>) -> Result<Self, Error> {
        WINDOW.policy(FIX_WINDOW, limit, 1, scale.into())
    }

    /// At most `limit` in a window that starts at the key's first hit and is `scale` long.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window_per_key(100, 60_000).unwrap().limit(), 100);
    /// ```
    pub fn fix_window_per_key(limit: u64, scale: impl Into<Span>) -> Result<Self, Error> {
        WINDOW.policy(FIX_WINDOW_PER_KEY, limit, 1, scale.into())
    }

    /// At most `limit` in any stretch of time that is `scale` long.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::sliding_window(100, "1h").unwrap().scale(), 3_600_000);
    /// ```
    pub fn sliding_window(limit: u64, scale: impl Into<Span>) -> Result<Self, Error> {
        WINDOW.policy(SLIDING_WINDOW, limit, 1, scale.into())
    }

    /// About `limit` in any stretch of time that is `scale` long, from two counters.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::sliding_counter(1_000_000, "1d").unwrap().limit(), 1_000_000);
    /// ```
    pub fn sliding_counter(limit: u64, scale: impl Into<Span>) -> Result<Self, Error> {
        WINDOW.policy(SLIDING_COUNTER, limit, 1, scale.into())
    }

    /// Bursts of up to `capacity`, refilled at `refill_rate` for each `per`.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::token_bucket(500, 100, "1s").unwrap().limit(), 500);
    /// ```
    pub fn token_bucket(capacity: u64, refill_rate: u64, per: impl Into<Span>) -> Result<Self, Error> {
        whole("refill_rate", refill_rate)?;
        TOKENS.policy(TOKEN_BUCKET, capacity, refill_rate, per.into())
    }

    /// A level of up to `capacity`, leaking at `leak_rate` for each `per`.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::leaky_bucket(500, 100, "1s").unwrap().algorithm(), "leaky_bucket");
    /// ```
    pub fn leaky_bucket(capacity: u64, leak_rate: u64, per: impl Into<Span>) -> Result<Self, Error> {
        whole("leak_rate", leak_rate)?;
        LEVEL.policy(LEAKY_BUCKET, capacity, leak_rate, per.into())
    }

    /// The same policy with a name, for headers, logs and limiters with several policies.
    ///
    /// ```
    /// # use tollgate::Policy;
    /// assert_eq!(Policy::fix_window(1, "1s").unwrap().named("burst").unwrap().name(), Some("burst"));
    /// assert!(Policy::fix_window(1, "1s").unwrap().named("new\nline").is_err());
    /// ```
    pub fn named(mut self, name: &str) -> Result<Self, Error> {
        let printable = name.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        if !printable || !(1..=64).contains(&name.len()) {
            return Err(Error::policy("name", &shown(name), PRINTABLE));
        }
        self.name = Some(name.into());
        Ok(self)
    }

    /// The same policy with a choice of what a denied hit does. A bucket's denied hits are always free.
    ///
    /// ```
    /// # use tollgate::{Denied, Policy};
    /// assert!(Policy::fix_window(1, "1s").unwrap().denied(Denied::Free).is_ok());
    /// assert!(Policy::token_bucket(1, 1, "1s").unwrap().denied(Denied::Count).is_err());
    /// ```
    pub fn denied(mut self, denied: Denied) -> Result<Self, Error> {
        let bucket = matches!(self.rule, Rule::Bucket(_));
        if bucket && denied == Denied::Count {
            return Err(Error::policy("denied", "\"count\"", "\"free\", since a bucket never counts what it denies"));
        }
        self.denied = Some(denied);
        Ok(self)
    }

    /// The algorithm's name.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(1, "1s").unwrap().algorithm(), "fix_window");
    /// ```
    pub fn algorithm(&self) -> &'static str {
        self.rule.name()
    }

    /// The limit or the capacity.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(9, "1s").unwrap().limit(), 9);
    /// ```
    pub fn limit(&self) -> u64 {
        self.rule.limit()
    }

    /// The window's `scale`, or a bucket's `per`, in milliseconds.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(9, "1s").unwrap().scale(), 1_000);
    /// ```
    pub fn scale(&self) -> u64 {
        self.rule.scale()
    }

    /// The window's `scale`, or how long a bucket takes to fill or empty, in milliseconds.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::token_bucket(500, 100, "1s").unwrap().period(), 5_000);
    /// ```
    pub fn period(&self) -> u64 {
        self.rule.period()
    }

    /// The name that was given, if one was.
    ///
    /// ```
    /// assert_eq!(tollgate::Policy::fix_window(9, "1s").unwrap().name(), None);
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// What the fields of a kind of policy are called.
struct Fields {
    amount: &'static str,
    rate: &'static str,
    span: &'static str,
    known: &'static [&'static str],
}

const WINDOW: Fields =
    Fields { amount: "limit", rate: "", span: "scale", known: &["algorithm", "limit", "scale", "name", "denied"] };
const TOKENS: Fields = Fields {
    amount: "capacity",
    rate: "refillRate",
    span: "per",
    known: &["algorithm", "capacity", "refillRate", "per", "name", "denied"],
};
const LEVEL: Fields = Fields {
    amount: "capacity",
    rate: "leakRate",
    span: "per",
    known: &["algorithm", "capacity", "leakRate", "per", "name", "denied"],
};

impl Fields {
    /// The fields of the algorithm at a place in [`ALGORITHMS`].
    fn of(algorithm: usize) -> &'static Self {
        match algorithm {
            TOKEN_BUCKET => &TOKENS,
            LEAKY_BUCKET => &LEVEL,
            _ => &WINDOW,
        }
    }

    /// A policy of the algorithm at a place in [`ALGORITHMS`], if its numbers are right.
    fn policy(&self, algorithm: usize, amount: u64, rate: u64, span: Span) -> Result<Policy, Error> {
        let limit = whole(self.amount, amount)?;
        let rate = whole(self.rate, rate)?;
        let scale = milliseconds(self.span, span)?;
        let Some(rule) = rule(algorithm, limit, rate, scale) else {
            let accepts = "a capacity that the rate fills within 9007199254740991 ms";
            return Err(Error::policy(self.amount, &digits(limit), accepts));
        };
        Ok(Policy { rule, name: None, denied: None })
    }
}

/// What a denied hit does, if that was `said` of the policy: among several, always nothing.
pub(crate) fn denied(rules: &[Rule], said: Option<Denied>) -> Denied {
    match (rules, said) {
        ([Rule::Bucket(_)], None) => Denied::Free,
        ([_], said) => said.unwrap_or(Denied::Count),
        _ => Denied::Free,
    }
}

fn whole(field: &'static str, number: u64) -> Result<u64, Error> {
    if (1..=MAX).contains(&number) { Ok(number) } else { Err(Error::policy(field, &digits(number), WHOLE)) }
}

fn milliseconds(field: &'static str, span: Span) -> Result<u64, Error> {
    span.checked().map_err(|found| Error::policy(field, &found, duration::ACCEPTS))
}

/// The algorithm at a place in [`ALGORITHMS`], with numbers that are in range. None if a bucket would take too long to
/// fill or empty.
pub(crate) fn rule(algorithm: usize, limit: u64, rate: u64, scale: u64) -> Option<Rule> {
    let window = |kind| Rule::Window(Window { kind, limit, scale });
    let rule = match algorithm {
        FIX_WINDOW => window(window::Kind::Clock),
        FIX_WINDOW_PER_KEY => window(window::Kind::Key),
        SLIDING_WINDOW => Rule::SlidingWindow(SlidingWindow::new(limit, scale)),
        SLIDING_COUNTER => window(window::Kind::Sliding),
        _ => {
            let kind = if algorithm == TOKEN_BUCKET { Kind::Token } else { Kind::Leaky };
            Rule::Bucket(Bucket::new(kind, limit, rate, scale))
        }
    };
    (rule.period() <= MAX).then_some(rule)
}
