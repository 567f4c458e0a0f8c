//! The accepted values of a field, for error messages.

use alloc::borrow::Cow;
use core::fmt::{self, Display, Formatter};

use crate::error::quoting::{Listed, Quoted};
use crate::error::wording::{self, fill};
use crate::number::MAX;
use crate::policy::schema::{ALGORITHMS, MAX_BAN_COUNT};

/// The accepted values of a field. The text completes a sentence that begins with "… is not".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// An integer of a range.
    Integer {
        /// The lowest.
        min: u64,
        /// The highest.
        max: u64,
    },
    /// An integer that may be negative.
    SignedInteger,
    /// A duration.
    Duration,
    /// A duration, where a unit of the calendar was found, which only `fix_window` accepts.
    NoCalendar,
    /// A duration, or a unit of the calendar.
    Scale,
    /// An offset from UTC.
    UtcOffset,
    /// No offset from UTC, since the policy's `scale` is a duration.
    CalendarOnly,
    /// A duration of at most a day, for a reservation.
    Ttl,
    /// A duration of at most ten seconds, for a lease.
    LeaseTtl,
    /// The name of an algorithm.
    Algorithm,
    /// The name of a policy.
    Name,
    /// The unit of a policy.
    Unit,
    /// A name that no other policy of the list has.
    UniqueName,
    /// A key of a store outside the process.
    Key,
    /// One of some strings.
    OneOf(&'static [&'static str]),
    /// One of the names of options.
    Option(Cow<'static, [&'static str]>),
    /// One value, for a field that occurs twice.
    Once,
    /// An object with the fields of a policy.
    Policy,
    /// A list of 1 to [`MAX_POLICIES`](crate::MAX_POLICIES) policies.
    Policies,
    /// `"free"`, the only choice that a bucket has.
    FreeForBucket,
    /// `"free"`, the only choice among several policies.
    FreeAmongSeveral,
    /// A capacity that the rate fills within the range of times.
    FillableCapacity,
    /// A limit of a log outside the process.
    StoredLimit,
    /// A limit of concurrency that a key can reach.
    ReachableLimit {
        /// The most open reservations of a key.
        max: usize,
    },
    /// The longest ban: a duration that is at least its `for`, where there is a factor.
    MostOfBan,
    /// A `most` with a factor.
    FactorForMost,
    /// The id of a reservation.
    Reservation,
    /// A description of anything else.
    Described(&'static str),
}

impl Expected {
    /// The range of `after` and `factor` of a ban.
    pub(crate) const BAN_COUNT: Self = Self::Integer { min: 1, max: MAX_BAN_COUNT };

    /// Returns the accepted forms alone, for "… is required (…)".
    pub fn forms(&self) -> impl Display + '_ {
        Forms(self)
    }
}

/// The accepted forms of an expected value, without the noun before them.
struct Forms<'a>(&'a Expected);

impl Display for Forms<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expected::Duration | Expected::Ttl => f.write_str(wording::DURATION_FORMS),
            Expected::Scale => f.write_str(wording::SCALE_FORMS),
            Expected::UtcOffset => f.write_str(wording::UTC_OFFSET_FORMS),
            Expected::Algorithm => fill(f, wording::ALGORITHM_FORMS, &["known"], &[&Listed(ALGORITHMS)]),
            Expected::Name | Expected::Unit => f.write_str(wording::NAME_FORMS),
            Expected::Policy => f.write_str(wording::POLICY_FORMS),
            expected => expected.fmt(f),
        }
    }
}

impl Display for Expected {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { min, max } => fill(f, wording::INTEGER, &["min", "max"], &[min, max]),
            Self::SignedInteger => fill(f, wording::SIGNED_INTEGER, &["max"], &[&MAX]),
            Self::Duration => fill(f, wording::DURATION, &["forms"], &[&Forms(self)]),
            Self::NoCalendar => {
                Self::Duration.fmt(f)?;
                f.write_str(wording::NO_CALENDAR)
            }
            Self::Scale => fill(f, wording::SCALE, &["forms"], &[&Forms(self)]),
            Self::UtcOffset => fill(f, wording::UTC_OFFSET, &["forms"], &[&Forms(self)]),
            Self::CalendarOnly => f.write_str(wording::CALENDAR_ONLY),
            Self::Ttl => fill(f, wording::TTL, &["forms"], &[&Forms(self)]),
            Self::LeaseTtl => f.write_str(wording::LEASE_TTL),
            Self::Algorithm => fill(f, wording::ALGORITHM, &["forms"], &[&Forms(self)]),
            Self::Name => fill(f, wording::NAME, &["forms"], &[&Forms(self)]),
            Self::Unit => fill(f, wording::UNIT, &["forms"], &[&Forms(self)]),
            Self::UniqueName => f.write_str("a name that no other policy has"),
            Self::Key => f.write_str(wording::KEY),
            Self::OneOf(strings) => {
                for (position, string) in strings.iter().enumerate() {
                    write!(f, "{}{}", if position == 0 { "" } else { " or " }, Quoted(string))?;
                }
                Ok(())
            }
            Self::Option(names) => fill(f, wording::OPTION, &["known"], &[&Listed(names)]),
            Self::Once => f.write_str(wording::ONCE),
            Self::Policy => fill(f, wording::POLICY, &["forms"], &[&Forms(self)]),
            Self::Policies => f.write_str(wording::POLICIES),
            Self::FreeForBucket => f.write_str(wording::FREE_FOR_BUCKET),
            Self::FreeAmongSeveral => f.write_str(wording::FREE_AMONG_SEVERAL),
            Self::FillableCapacity => fill(f, wording::FILLABLE_CAPACITY, &["max"], &[&MAX]),
            Self::StoredLimit => f.write_str(wording::STORED_LIMIT),
            Self::ReachableLimit { max } => fill(f, wording::REACHABLE_LIMIT, &["max"], &[max]),
            Self::MostOfBan => f.write_str(wording::MOST_OF_BAN),
            Self::FactorForMost => f.write_str(wording::FACTOR_FOR_MOST),
            Self::Reservation => f.write_str(wording::RESERVATION),
            Self::Described(text) => f.write_str(text),
        }
    }
}
