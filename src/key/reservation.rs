//! Reservations: amounts that count as used now and are settled later.

use alloc::string::String;
use core::fmt::{self, Display, Formatter};
use core::str::FromStr;

use crate::key::open_reservations::{Bits, Reserved};
use crate::key::policy_states::PolicyStates;
use crate::number::{from_base_36, push_base_36};
use crate::policy::schema::MAX_TTL;
use crate::{Costs, Decision, Error, Expected, Found, Policies, Span, check_key};

/// The arguments of a reservation: costs, duration, and 128 random bits for its id.
///
/// The bits are an argument because the core has no source of randomness, as it has no clock. Use bits that cannot be
/// guessed: anyone who knows an id can settle its reservation.
///
/// ```
/// use tollgate::{Costs, Limiter, ManualClock, Policy, Reserve, Settlement};
///
/// # fn main() -> Result<(), tollgate::Error> {
/// let clock = ManualClock::new(0);
/// let policies = [Policy::concurrency(5, "2m")?.named("running")?, Policy::fix_window(90_000, "1m")?.named("tokens")?];
/// let mut limiter = Limiter::<String, _>::new(policies, &clock)?;
///
/// let reserve = Reserve::new(0x5eed).costs(Costs::ByPolicy(&[("tokens", 4_000)])).ttl("1m");
/// let reservation = limiter.reserve("user:42", reserve)?.reservation.unwrap();
/// assert_eq!(limiter.get_policy("user:42", Some("tokens"))?, 4_000);
///
/// // The work is done, and took less.
/// clock.advance(9_000);
/// assert_eq!(limiter.settle(reservation, Some(Costs::ByPolicy(&[("tokens", 1_234)])))?, Settlement::Settled);
/// assert_eq!(limiter.get_policy("user:42", Some("tokens"))?, 1_234);
/// assert_eq!(limiter.get_policy("user:42", Some("running"))?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Reserve<'a> {
    pub(crate) random: u128,
    pub(crate) costs: Costs<'a>,
    pub(crate) ttl: Option<Span>,
    pub(crate) policies: Option<&'a Policies>,
}

impl<'a> Reserve<'a> {
    /// Reserves a cost of 1, for the default duration of the policies, with an id of these random bits.
    pub fn new(random: u128) -> Self {
        Self { random, costs: Costs::All(1), ttl: None, policies: None }
    }

    /// Reserves this cost under each policy.
    pub fn cost(self, cost: u64) -> Self {
        self.costs(Costs::All(cost))
    }

    /// Reserves these costs.
    pub fn costs(self, costs: Costs<'a>) -> Self {
        Self { costs, ..self }
    }

    /// Reserves for this long; by default for the `ttl` of a concurrency policy, or a minute. It is at most a day.
    pub fn ttl(self, ttl: impl Into<Span>) -> Self {
        Self { ttl: Some(ttl.into()), ..self }
    }

    /// Decides by these numbers, as [`Limiter::hit_with`](crate::Limiter::hit_with) does.
    pub fn policies(self, policies: &'a Policies) -> Self {
        Self { policies: Some(policies), ..self }
    }

    /// Returns the reservation that starts at `now`.
    pub(crate) fn at(&self, policy_states: &PolicyStates, now: u64) -> Result<Reserved, Error> {
        let ttl = match &self.ttl {
            Some(ttl) => check_ttl(ttl.clone())?,
            None => policy_states.default_ttl(),
        };
        Ok(Reserved::new(bits_of(self.random), now, ttl))
    }

    /// Returns the id of the reservation that ends at `end`.
    pub(crate) fn id(&self, end: u64) -> ReservationId {
        ReservationId { random: self.random, end, by_policy: self.costs.is_by_policy() }
    }
}

/// Checks that `ttl` is in the range of a reservation. Returns it in milliseconds.
pub(crate) fn check_ttl(ttl: Span) -> Result<u64, Error> {
    let in_range = |ttl: u64| if ttl <= MAX_TTL { Ok(ttl) } else { Err(Found::from(ttl)) };
    let invalid = |found| Error::InvalidOption { option: "ttl".into(), found, expected: Expected::Ttl };
    ttl.checked().and_then(in_range).map_err(invalid)
}

/// Joins the four parts of an id's random bits.
pub(crate) fn random_of(bits: Bits) -> u128 {
    bits.into_iter().fold(0, |random, part| random << 32 | u128::from(part))
}

/// Splits an id's random bits into four parts.
pub(crate) fn bits_of(random: u128) -> Bits {
    [random >> 96, random >> 64, random >> 32, random].map(|bits| bits as u32)
}

/// The result of `reserve`: the decision, and the reservation if it is allowed.
#[derive(Debug, PartialEq, Eq)]
pub struct Reserving<K> {
    /// The decision. Its numbers include the reserved amounts.
    pub decision: Decision,
    /// The reservation; `None` if it was denied.
    pub reservation: Option<Reservation<K>>,
}

/// An open reservation. Settling it consumes it; one that is dropped is charged in full at its end, as in a crash.
#[must_use = "a reservation that is not settled is charged in full at its end"]
#[derive(Debug, PartialEq, Eq)]
pub struct Reservation<K> {
    /// The key.
    pub key: K,
    /// The id, by which it can be settled elsewhere or after a restart.
    pub id: ReservationId,
}

/// Writes the reservation as one text, by which it can be settled elsewhere or after a restart: its id and its key.
///
/// ```
/// use tollgate::Reservation;
///
/// let text = "0000000000000000000000000000002a.lw.p.suser:4.2";
/// let reservation: Reservation<String> = text.parse().unwrap();
/// assert_eq!((reservation.key.as_str(), reservation.id.end()), ("user:4.2", 788));
/// assert_eq!(reservation.to_string(), text);
/// ```
impl<K: AsRef<str>> Display for Reservation<K> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{STRING}{}", self.id, self.key.as_ref())
    }
}

/// The prefix of a key that is a string. JavaScript has prefixes for other types.
pub(crate) const STRING: char = 's';

impl FromStr for Reservation<String> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parse = || {
            // The key comes last, and may contain dots.
            let (dot, _) = text.match_indices('.').nth(2)?;
            let (id, key) = (text.get(..dot)?, text.get(dot + 1..)?.strip_prefix(STRING)?);
            Some(Self { key: check_key(key).ok()?.into(), id: id.parse().ok()? })
        };
        parse().ok_or_else(|| Error::InvalidReservation { found: text.into() })
    }
}

/// The id of a reservation: 128 random bits, its end, and whether its costs are by policy.
///
/// ```
/// use tollgate::ReservationId;
///
/// let id: ReservationId = "0000000000000000000000000000002a.lw.p".parse().unwrap();
/// assert_eq!((id.end(), id.to_string().as_str()), (788, "0000000000000000000000000000002a.lw.p"));
/// assert!("lost".parse::<ReservationId>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationId {
    pub(crate) random: u128,
    pub(crate) end: u64,
    pub(crate) by_policy: bool,
}

impl ReservationId {
    /// Returns when the reservation expires, in milliseconds since the epoch.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns whether its costs are by policy.
    pub fn is_by_policy(&self) -> bool {
        self.by_policy
    }

    pub(crate) fn bits(&self) -> Bits {
        bits_of(self.random)
    }

    /// Returns the id of the reservation after its end has moved to `end`.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn extended(self, end: u64) -> Self {
        Self { end, ..self }
    }

    /// Checks that the used amounts are by policy if the costs were.
    pub(crate) fn check_used(&self, used: Option<Costs<'_>>) -> Result<(), Error> {
        match used {
            Some(Costs::All(found @ 1..)) if self.by_policy => Err(Error::SettleByPolicy { found }),
            _ => Ok(()),
        }
    }

    /// Returns the result of settling the reservation when it is not open.
    pub(crate) fn missing(&self, now: u64) -> Settlement {
        Settlement::missing(self.end, now)
    }
}

impl Display for ReservationId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut end = String::new();
        push_base_36(&mut end, self.end);
        write!(f, "{:032x}.{end}{}", self.random, if self.by_policy { ".p" } else { ".a" })
    }
}

impl FromStr for ReservationId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parse = || {
            let (random, rest) = text.split_once('.')?;
            let (end, kind) = rest.split_once('.')?;
            let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
            let by_policy = match kind {
                "p" => true,
                "a" => false,
                _ => return None,
            };
            let valid = random.len() == 32 && plain(random);
            let random = u128::from_str_radix(random, 16).ok().filter(|_| valid)?;
            Some(Self { random, end: from_base_36(end)?, by_policy })
        };
        parse().ok_or_else(|| Error::InvalidReservation { found: text.into() })
    }
}

/// The result of settling, cancelling or extending a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It was open, and is settled now.
    Settled,
    /// It was open, and its end has moved.
    Extended,
    /// It had expired, and was charged in full at its end.
    Expired,
    /// It had been settled before, or was dropped.
    Closed,
    /// Its key was evicted because the limiter was full, and the reservation with it.
    Evicted,
}

impl Settlement {
    /// Returns the result of settling a reservation that is not open, by the end in its id.
    pub(crate) fn missing(end: u64, now: u64) -> Self {
        if now >= end { Self::Expired } else { Self::Closed }
    }

    /// Returns the name: `"settled"`, `"extended"`, `"expired"`, `"closed"` or `"evicted"`.
    ///
    /// ```
    /// assert_eq!(tollgate::Settlement::Expired.as_str(), "expired");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Extended => "extended",
            Self::Expired => "expired",
            Self::Closed => "closed",
            Self::Evicted => "evicted",
        }
    }

    /// Parses a name; `None` if invalid.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Settled, Self::Extended, Self::Expired, Self::Closed, Self::Evicted];
        all.into_iter().find(|known| known.as_str() == name)
    }
}
