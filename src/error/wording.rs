//! The texts of error messages. `js/wasm/generated.ts` has the same texts, so that both languages have the same messages.

use core::fmt::{self, Display, Formatter, Write};

/// Defines the texts, and the list of all of them by name.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* pub(crate) const $name: &str = $text;)*

        /// Every text by its name.
        pub const TEXTS: &[(&str, &str)] = &[$((stringify!($name), $name),)*];
    };
}

texts! {
    /// A value that is not accepted.
    REJECTED = "{field}: {found} is not {expected}";
    /// A field that is required and missing.
    REQUIRED = "{field} is required ({expected})";
    /// A name that two policies have.
    NAMED_TWICE = "{field}: two policies are named {found}";
    /// A field that an algorithm does not have.
    UNKNOWN_FIELD = "{found} is not a field of {algorithm}; use one of {known}";
    /// A name that no policy of a limiter has.
    UNKNOWN_POLICY = "policy: {found} is not a policy of this limiter; use one of {known}";
    /// A name that is required among several policies.
    POLICY_REQUIRED = "policy is required where there are several (one of {known})";
    /// A time that is not accepted.
    INVALID_TIME = "clock: {found} is not a time; return milliseconds since the epoch, from 0 to {max}";
    /// Another number of policies.
    OTHER_POLICIES = "the number of policies of this call is {found}; this limiter accepts {expected} only";
    /// Another algorithm.
    OTHER_ALGORITHM = "the policy of this call has algorithm {found}; this limiter accepts {expected} only";
    /// Another scale.
    OTHER_SCALE = "the policy of this call has {field} {found} ms; this limiter accepts {expected} ms only";
    /// Another scale, where one is of the calendar.
    OTHER_CALENDAR = "the policy of this call has another scale or utcOffset; this limiter accepts its own only";
    /// A limiter without room for another key.
    FULL = "the limiter is full: it holds {found} keys and denies new ones";
    /// A stored state that cannot be read.
    INVALID_STATE = "the stored state cannot be read: {problem}";
    /// A stored state of another version.
    UNSUPPORTED_VERSION = "the stored state has version {found}; this library reads version {expected}";
    /// A policy that counts reservations alone.
    RESERVE_ONLY = "{policy} is a concurrency limit, which {operation} cannot change; use reserve; see docs/concurrency.md";
    /// A policy that is a ban.
    BAN_ONLY = "{policy} is a ban, which {operation} cannot change; use ban or unban; see docs/bans.md";
    /// A ban by hand without a policy for it.
    NO_BAN = "policy: this limiter has no ban; add a policy such as { algorithm: \"ban\", after: 5, scale: \"10m\", for: \"1h\" }; see docs/bans.md";
    /// A name that no ban of a limiter has.
    UNKNOWN_BAN = "policy: {found} is not a ban of this limiter; use one of {known}";
    /// A single amount where amounts by policy are required.
    SETTLE_BY_POLICY = "used: {found} is one number for a reservation of costs by policy; use an object with a number for each policy";
    /// No memory.
    OUT_OF_MEMORY = "there is no memory left for another key or hit";

    /// A state of an algorithm that is not known.
    UNKNOWN_STATE = "known algorithm";
    /// Numbers that are not a row.
    ROW_NUMBERS = "the numbers of a row are not those of one";
    /// Numbers that are not a state.
    STATE_NUMBERS = "the numbers of {name} are not those of a {algorithm}";

    /// An integer.
    INTEGER = "an integer from {min} to {max}";
    /// An integer that may be negative.
    SIGNED_INTEGER = "an integer from -{max} to {max}";
    /// A duration.
    DURATION = "a duration; use {forms}";
    /// How long a reservation lasts.
    TTL = "a duration of at most a day; use {forms}";
    /// How long a lease lasts.
    LEASE_TTL = "a duration of at most ten seconds; use 1 to 10000 milliseconds or a string such as \"500ms\", \"2s\" or \"10s\"";
    /// The forms of a duration.
    DURATION_FORMS = "milliseconds or a string such as \"500ms\", \"1s\", \"5m\", \"1h\" or \"1d\"";
    /// Follows a duration, where a unit of the calendar was found.
    NO_CALENDAR = "; use fix_window for \"day\", \"week\" or \"month\"";
    /// A duration, or a unit of the calendar.
    SCALE = "a duration or a unit of the calendar; use {forms}";
    /// The forms of those.
    SCALE_FORMS = "milliseconds, a string such as \"500ms\", \"1s\", \"5m\", \"1h\" or \"1d\", or \"day\", \"week\" or \"month\"";
    /// An offset from UTC.
    UTC_OFFSET = "an offset from UTC; use {forms}";
    /// The forms of an offset.
    UTC_OFFSET_FORMS = "a string from \"-14:00\" to \"+14:00\", or \"Z\"";
    /// An offset without a calendar.
    CALENDAR_ONLY = "accepted with a duration; use it with scale \"day\", \"week\" or \"month\"";
    /// An algorithm.
    ALGORITHM = "an algorithm; use {forms}";
    /// The names of the algorithms.
    ALGORITHM_FORMS = "one of {known}";
    /// A policy's name.
    NAME = "a name; use {forms}";
    /// A policy's unit.
    UNIT = "a unit; use {forms}";
    /// The forms of a name or a unit.
    NAME_FORMS = "1 to 64 printable ASCII characters";
    /// A key that may leave the process.
    KEY = "a string of 1 to 1024 UTF-8 bytes";
    /// The id of a reservation.
    RESERVATION = "the id of a reservation, as reserve returned it";
    /// An option.
    OPTION = "an option; use one of {known}";
    /// A field that is given twice.
    ONCE = "accepted; give the field once";
    /// A policy.
    POLICY = "a policy; use {forms}";
    /// The forms of a policy.
    POLICY_FORMS = "an object such as { algorithm: \"fix_window\", limit: 100, scale: \"1m\" }";
    /// A list of policies.
    POLICIES = "accepted; use 1 to 32 policies";
    /// The choice of a bucket.
    FREE_FOR_BUCKET = "accepted for a bucket, which never counts denied hits; use \"free\"";
    /// The choice among several policies.
    FREE_AMONG_SEVERAL = "accepted among several policies, where a denied hit changes nothing; use \"free\"";
    /// The longest ban.
    MOST_OF_BAN = "a duration of at least \"for\"; a ban with a factor needs one, such as \"1d\"";
    /// The longest ban without a factor.
    FACTOR_FOR_MOST = "accepted without a factor; use it with a factor from 2 to 1000";
    /// A capacity.
    FILLABLE_CAPACITY = "a capacity that the rate fills within {max} ms";
    /// A limit.
    REACHABLE_LIMIT = "a concurrency that a key can reach; it has at most {max} open reservations here";
    /// A limit.
    STORED_LIMIT = "accepted for a sliding_window that is stored outside the process; use at most 1000, or sliding_counter; see docs/choosing.md";

    /// A number below 0.
    NEGATIVE = "a negative number";
    /// A number that is no integer.
    FRACTION = "a fraction";
    /// A number above the range.
    TOO_LARGE = "a number above 9007199254740991";
    /// An exception, in the place of an algorithm.
    EXCEPTION = "an exception";
    /// The forms of an exception.
    EXCEPTION_FORMS = "an exception; use { allow: true }, { deny: true } or numbers by policy such as { api: { limit: 1000 } }";
    /// A decision beside other fields.
    DECISION_AND_MORE = "an object with allow or deny and more";
    /// When an exception ends.
    EXCEPTION_END = "a time within the next 400 days; use milliseconds since the epoch";
    /// How long an exception lasts.
    EXCEPTION_LENGTH = "a duration of at most 400 days; use milliseconds or a string such as \"1h\", \"1d\" or \"1w\"";
    /// A limiter half of whose keys have exceptions.
    MANY_EXCEPTIONS = "half of the {found} keys that this limiter holds have exceptions; raise its number of keys";
    /// A key outside the process with as many rows as it may have.
    MANY_ROWS = "the key has states under {found} policies that have not ended, and keeps no more; use fewer policies with one key, or reset it";
    /// An object without fields.
    EMPTY_OBJECT = "an empty object";
    /// A list.
    ARRAY = "an array";
    /// An object.
    OBJECT = "an object";
    /// A second value of one field.
    SECOND_VALUE = "a second value";
    /// No policies.
    NO_POLICIES = "an empty array";
    /// Too many policies.
    MANY_POLICIES = "an array of more than 32";
}

/// Writes a text with its `{names}` replaced. A name without a value stays as it is.
pub(crate) fn fill(f: &mut Formatter<'_>, text: &str, names: &[&str], values: &[&dyn Display]) -> fmt::Result {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        f.write_str(before)?;
        let value = after.split_once('}').and_then(|(name, after)| {
            let value = values.get(names.iter().position(|known| *known == name)?)?;
            Some((value, after))
        });
        match value {
            Some((value, after)) => {
                value.fmt(f)?;
                rest = after;
            }
            None => {
                f.write_char('{')?;
                rest = after;
            }
        }
    }
    f.write_str(rest)
}

/// A text with its `{names}` replaced.
pub(crate) struct Filled<'a>(pub(crate) &'a str, pub(crate) &'a [&'a str], pub(crate) &'a [&'a dyn Display]);

impl Display for Filled<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fill(f, self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_other_braces_stay() {
        let filled = Filled("{a} is {b}, { c } {d}", &["a", "b"], &[&1, &"{a}"]).to_string();
        assert_eq!(filled, "1 is {a}, { c } {d}");
    }
}
