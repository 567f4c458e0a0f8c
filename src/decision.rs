//! The result of a hit.

/// The result of a hit, with the numbers that a client needs.
///
/// ```
/// use tollgate::{Limiter, ManualClock, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(1, "1m")?, ManualClock::new(15_000))?;
/// assert!(limiter.hit("login:42", 1)?.allowed);
///
/// let denied = limiter.hit("login:42", 1)?;
/// assert!(!denied.allowed);
/// assert_eq!(denied.retry_after, Some(45_000));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the key may act now.
    pub allowed: bool,
    /// The count: hits in the window, the level rounded up (leaky bucket), or the whole tokens left (token bucket).
    pub count: u64,
    /// The policy's limit or capacity.
    pub limit: u64,
    /// How many hits of cost 1 would be allowed right now.
    pub remaining: u64,
    /// Milliseconds until this same hit is allowed, if no other comes before: 0 if allowed, `None` for never.
    pub retry_after: Option<u64>,
    /// Milliseconds until the key is as if it had never been used: under several policies, under all of them.
    pub reset_after: u64,
    /// Milliseconds until more than [`Decision::remaining`] would be allowed, if no other hit comes before; 0 if all of
    /// the limit remains.
    pub more_after: u64,
    /// The position of the policy whose numbers these are.
    pub policy: usize,
    /// The positions of the policies that denied.
    pub violated: Violated,
    /// Why the hit was denied, if not by what is used.
    pub reason: Option<Reason>,
}

impl Decision {
    /// A placeholder, before the first policy has decided.
    pub(crate) const NOTHING: Self = Self {
        allowed: false,
        count: 0,
        limit: 0,
        remaining: 0,
        retry_after: None,
        reset_after: 0,
        more_after: 0,
        policy: 0,
        violated: Violated(0),
        reason: None,
    };

    /// Returns whether this binds a client more than `other`: by a denial, a longer wait, or less remaining.
    // A call in wasm, so that decisions are compared in place.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(crate) fn binds_more_than(&self, other: &Self) -> bool {
        let never = |wait: Option<u64>| wait.unwrap_or(u64::MAX);
        match (self.allowed, other.allowed) {
            (true, true) => self.remaining < other.remaining,
            (false, false) => never(self.retry_after) > never(other.retry_after),
            (allowed, _) => !allowed,
        }
    }
}

impl Decision {
    /// Returns whether the holder of a lease must drop it: everything is denied, whatever is left.
    pub(crate) fn ends_lease(&self) -> bool {
        matches!(self.reason, Some(Reason::Banned | Reason::Denied))
    }

    /// Returns the decision as it is when so much less is used.
    pub(crate) fn with_freed(self, amount: u64, counts_down: bool) -> Self {
        let remaining = self.remaining.saturating_add(amount).min(self.limit);
        let count = if counts_down { remaining } else { self.count.saturating_sub(amount) };
        let more_after = if remaining == self.limit { 0 } else { self.more_after };
        Self { remaining, count, more_after, ..self }
    }

    /// Returns the decision as it is when so much more is used.
    pub(crate) fn with_spent(self, amount: u64, counts_down: bool) -> Self {
        let remaining = self.remaining.saturating_sub(amount);
        let count = if counts_down { remaining } else { self.count.saturating_add(amount) };
        Self { remaining, count, ..self }
    }

    /// Returns the decision as it is some milliseconds later: its waits are shorter.
    pub(crate) fn later(self, elapsed: u64) -> Self {
        Self {
            retry_after: self.retry_after.map(|wait| wait.saturating_sub(elapsed)),
            reset_after: self.reset_after.saturating_sub(elapsed),
            // At least 1 while a part is used: when the rest of a lease comes back is not known.
            more_after: self.more_after.saturating_sub(elapsed).max(u64::from(self.remaining < self.limit)),
            ..self
        }
    }
}

/// A reason for a denial other than what is used of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The limiter is full and denies new keys.
    Full,
    /// The store failed, and such hits are denied.
    Error,
    /// The key was denied too often, or banned by hand: a policy of algorithm `ban` holds.
    Banned,
    /// An exception denies the key.
    Denied,
    /// Open reservations alone are in the way: the same hit would be allowed if none were open. Any settlement may free it.
    Reserved,
}

impl Reason {
    /// Returns the reason as it is written in JSON.
    ///
    /// ```
    /// assert_eq!(tollgate::Reason::Full.as_str(), "full");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Error => "error",
            Self::Banned => "banned",
            Self::Denied => "denied",
            Self::Reserved => "reserved",
        }
    }
}

/// The positions of the policies that denied a hit.
///
/// ```
/// use tollgate::{Limiter, ManualClock, Policy};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let policies = [Policy::fix_window(9, "1s")?, Policy::fix_window(1, "1d")?];
/// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
/// limiter.hit("key", 1)?;
/// assert_eq!(limiter.hit("key", 1)?.violated.iter().collect::<Vec<_>>(), [1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Violated(pub(crate) u32);

impl Violated {
    pub(crate) fn add(&mut self, position: usize) {
        self.0 |= 1 << position;
    }

    /// Returns the positions that are set in `bits`.
    #[doc(hidden)]
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the positions as bits.
    #[doc(hidden)]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether no policy denied.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::fix_window(9, "1s")?, Policy::fix_window(1, "1d")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// assert!(limiter.hit("key", 1)?.violated.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the policy at `position` denied.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let policies = [Policy::fix_window(9, "1s")?, Policy::fix_window(1, "1d")?];
    /// let mut limiter = Limiter::<String, _>::new(policies, ManualClock::new(0))?;
    /// assert!(limiter.hit("key", 2)?.violated.contains(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn contains(self, position: usize) -> bool {
        position < 32 && self.0 >> position & 1 == 1
    }

    /// Returns an iterator over the positions, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |&position| self.contains(position))
    }
}

/// What a decision says, as a number: the first of its written form, part of its status in memory, and of its result in a
/// replay.
pub mod verdict {
    use super::{Decision, Reason};

    /// Denied by what counts.
    pub const DENIED: u8 = 0;
    /// Allowed.
    pub const ALLOWED: u8 = 1;
    /// Denied by what counts, which may change at any time.
    pub const UNCERTAIN: u8 = 2;
    /// Denied by what counts, of which leases may give back some at any time.
    pub const UNTIL_LEASE_ENDS: u8 = 3;

    /// The reasons of denials, whose numbers follow.
    const REASONS: [Reason; 4] = [Reason::Banned, Reason::Denied, Reason::Reserved, Reason::Full];

    const FIRST: u8 = UNTIL_LEASE_ENDS + 1;

    /// Returns the number of a decision.
    #[inline(always)]
    pub fn of(decision: &Decision) -> u8 {
        match decision.reason {
            None | Some(Reason::Error) => u8::from(decision.allowed),
            Some(Reason::Banned) => FIRST,
            Some(Reason::Denied) => FIRST + 1,
            Some(Reason::Reserved) => FIRST + 2,
            Some(Reason::Full) => FIRST + 3,
        }
    }

    /// Returns the reason that a number stands for.
    pub fn reason(verdict: u8) -> Option<Reason> {
        REASONS.get(usize::from(verdict.checked_sub(FIRST)?)).copied()
    }

    /// Returns whether the number is that of a denial.
    pub(crate) fn is_denial(verdict: u8) -> bool {
        verdict != ALLOWED && verdict < FIRST + REASONS.len() as u8
    }
}
