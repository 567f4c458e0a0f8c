//! The table of policies: algorithms, fields, defaults, ranges, and the wording of what is accepted.
//!
//! The readers in Rust use it as it is. `js/wasm/generated.ts` is generated from it, so that TypeScript
//! has the same names and ranges.

use crate::number::MAX;

/// The schema of one algorithm's policies.
#[derive(Debug)]
pub struct AlgorithmSchema {
    /// The algorithm's name.
    pub name: &'static str,
    /// Further names under which it is accepted.
    pub aliases: &'static [&'static str],
    /// Its fields, in the order in which errors list them.
    pub fields: &'static [Field],
}

/// The schema of one field.
#[derive(Debug)]
pub struct Field {
    /// The field's name, in camelCase.
    pub name: &'static str,
    /// The same in snake_case, where that differs.
    pub snake_case: Option<&'static str>,
    /// The meaning of the field.
    pub role: Role,
    /// The default. A field without one is required, unless its role is [`Role::UtcOffset`], [`Role::Most`],
    /// [`Role::Name`], [`Role::Unit`] or [`Role::Denied`].
    pub default: Option<u64>,
}

/// The meaning of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The algorithm's name.
    Algorithm,
    /// The limit or capacity: an integer from 1 to [`MAX`].
    Limit,
    /// How much flows in each `per`: an integer from 1 to [`MAX`].
    Rate,
    /// A duration; for an algorithm with an offset from UTC, a unit of the calendar too.
    Scale,
    /// The offset from UTC of a unit of the calendar.
    UtcOffset,
    /// How long a reservation lasts: a duration of at most [`MAX_TTL`].
    Ttl,
    /// How many denials begin a ban: an integer from 1 to [`MAX_BAN_COUNT`].
    After,
    /// How long a ban lasts: a duration.
    Length,
    /// How much longer a ban lasts than the last one: an integer from 1 to [`MAX_BAN_COUNT`].
    Factor,
    /// The longest ban: a duration, with a factor only.
    Most,
    /// The policy's name.
    Name,
    /// The unit of the limit, for headers.
    Unit,
    /// Whether denied hits count.
    Denied,
}

const fn field(name: &'static str, role: Role) -> Field {
    Field { name, snake_case: None, role, default: None }
}

const ALGORITHM: Field = field("algorithm", Role::Algorithm);
const LIMIT: Field = field("limit", Role::Limit);
const CAPACITY: Field = field("capacity", Role::Limit);
const REFILL_RATE: Field =
    Field { name: "refillRate", snake_case: Some("refill_rate"), role: Role::Rate, default: None };
const LEAK_RATE: Field = Field { name: "leakRate", snake_case: Some("leak_rate"), role: Role::Rate, default: None };
const SCALE: Field = field("scale", Role::Scale);
const UTC_OFFSET: Field =
    Field { name: "utcOffset", snake_case: Some("utc_offset"), role: Role::UtcOffset, default: None };
const PER: Field = Field { name: "per", snake_case: None, role: Role::Scale, default: Some(1_000) };
const TTL: Field = Field { name: "ttl", snake_case: None, role: Role::Ttl, default: Some(DEFAULT_TTL) };
const AFTER: Field = field("after", Role::After);
const FOR: Field = field("for", Role::Length);
const FACTOR: Field = Field { name: "factor", snake_case: None, role: Role::Factor, default: Some(1) };
const MOST: Field = field("most", Role::Most);
const NAME: Field = field("name", Role::Name);
const UNIT: Field = field("unit", Role::Unit);
const DENIED: Field = field("denied", Role::Denied);

const FIX_WINDOW_FIELDS: &[Field] = &[ALGORITHM, LIMIT, SCALE, UTC_OFFSET, NAME, UNIT, DENIED];
const WINDOW_FIELDS: &[Field] = &[ALGORITHM, LIMIT, SCALE, NAME, UNIT, DENIED];
const TOKEN_BUCKET_FIELDS: &[Field] = &[ALGORITHM, CAPACITY, REFILL_RATE, PER, NAME, UNIT, DENIED];
const LEAKY_BUCKET_FIELDS: &[Field] = &[ALGORITHM, CAPACITY, LEAK_RATE, PER, NAME, UNIT, DENIED];
const CONCURRENCY_FIELDS: &[Field] = &[ALGORITHM, LIMIT, TTL, NAME, UNIT];
const BAN_FIELDS: &[Field] = &[ALGORITHM, AFTER, SCALE, FOR, FACTOR, MOST, NAME];

const fn algorithm(name: &'static str, fields: &'static [Field]) -> AlgorithmSchema {
    AlgorithmSchema { name, aliases: &[], fields }
}

/// The schema of every algorithm. An algorithm's position here is its number in the bindings.
pub static ALGORITHM_SCHEMAS: &[AlgorithmSchema] = &[
    AlgorithmSchema { name: "fix_window", aliases: &["fixed_window"], fields: FIX_WINDOW_FIELDS },
    algorithm("fix_window_per_key", WINDOW_FIELDS),
    algorithm("sliding_window", WINDOW_FIELDS),
    algorithm("sliding_counter", WINDOW_FIELDS),
    algorithm("token_bucket", TOKEN_BUCKET_FIELDS),
    algorithm("leaky_bucket", LEAKY_BUCKET_FIELDS),
    algorithm("concurrency", CONCURRENCY_FIELDS),
    algorithm("ban", BAN_FIELDS),
];

/// The names of the algorithms.
pub const ALGORITHMS: &[&str] = &[
    "fix_window",
    "fix_window_per_key",
    "sliding_window",
    "sliding_counter",
    "token_bucket",
    "leaky_bucket",
    "concurrency",
    "ban",
];

// Positions in that list.
pub(crate) const FIX_WINDOW: usize = 0;
pub(crate) const FIX_WINDOW_PER_KEY: usize = 1;
pub(crate) const SLIDING_WINDOW: usize = 2;
pub(crate) const SLIDING_COUNTER: usize = 3;
pub(crate) const TOKEN_BUCKET: usize = 4;
pub(crate) const LEAKY_BUCKET: usize = 5;
pub(crate) const CONCURRENCY: usize = 6;
pub(crate) const BAN: usize = 7;

/// The name of a row that is a part of an exception, in the place of an algorithm.
pub const EXCEPTION_NAME: &str = "exception";
/// Its number in the place of an algorithm's position, which those of later algorithms do not move.
pub const EXCEPTION: usize = 99;

/// Returns the name of an algorithm at a position, or of a stored exception; empty if there is none.
pub(crate) fn state_name(position: usize) -> &'static str {
    if position == EXCEPTION { EXCEPTION_NAME } else { ALGORITHMS.get(position).copied().unwrap_or_default() }
}

/// The fields of an exception. A field's position here is its number in stored states and in the bindings.
pub const EXCEPTION_FIELDS: &[&str] =
    &["allow", "deny", "limit", "capacity", "refillRate", "leakRate", "after", "for", "factor", "most"];

// Positions in that list.
pub(crate) const ALLOW: usize = 0;
pub(crate) const DENY: usize = 1;
pub(crate) const EXCEPTED_LIMIT: usize = 2;
pub(crate) const EXCEPTED_CAPACITY: usize = 3;
pub(crate) const EXCEPTED_REFILL_RATE: usize = 4;
pub(crate) const EXCEPTED_LEAK_RATE: usize = 5;
pub(crate) const EXCEPTED_AFTER: usize = 6;
pub(crate) const EXCEPTED_LENGTH: usize = 7;
pub(crate) const EXCEPTED_FACTOR: usize = 8;
pub(crate) const EXCEPTED_MOST: usize = 9;

/// The longest that an exception lasts, in milliseconds: 400 days.
pub const MAX_EXCEPTION: u64 = 400 * 86_400_000;

/// The values of `denied`. In the bindings they are the numbers 1 and 2; 0 is a missing value.
pub const DENIED_WORDS: &[&str] = &["count", "free"];

/// The units of a duration, in milliseconds.
pub const DURATION_UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

/// The units of the calendar that a `scale` may name, and their numbers in stored states and in the bindings, from
/// which the offset from UTC in minutes is subtracted. They are below 0, as no duration is.
pub const CALENDAR_SCALES: &[(&str, i64)] = &[("day", -10_000), ("week", -20_000), ("month", -30_000)];

/// The largest offset from UTC, in minutes.
pub const MAX_UTC_OFFSET: u64 = 14 * 60;

/// How long a reservation lasts by default, in milliseconds.
pub const DEFAULT_TTL: u64 = 60_000;

/// The longest that a reservation lasts, in milliseconds: a day.
pub const MAX_TTL: u64 = 86_400_000;

/// The most open reservations of one key in memory.
pub const MAX_RESERVATIONS: usize = 10_000;

/// The most open reservations of one key outside the process, under the policies of a call.
pub const MAX_STORED_RESERVATIONS: usize = 1_024;

/// The most rows of one key outside the process: states of different shapes that have not ended.
pub const MAX_ROWS: usize = 256;

/// The count of numbers before the amounts of a stored reservation: four of its id, its start, its end and its ttl.
pub const RESERVATION_HEAD: usize = 7;

/// The longest name or unit of a policy.
pub const MAX_NAME: usize = 64;

/// The most policies that one limiter takes.
pub const MAX_POLICIES: usize = 32;

/// The highest limit of a sliding window whose log is stored outside the process.
pub const MAX_STORED_LOG: u64 = 1_000;

/// The most denials that begin a ban, so that counting them writes little, and the highest factor of its length.
pub const MAX_BAN_COUNT: u64 = 1_000;

/// The most keys of a limiter in JavaScript: its `Map` holds no more.
pub const MAX_KEYS_IN_JS: u64 = 16_000_000;

/// The default of `max_keys`.
pub const DEFAULT_MAX_KEYS: u32 = 1_000_000;

/// The default of `clean_period`, in milliseconds.
pub const DEFAULT_CLEAN_PERIOD: u64 = 60_000;

/// The values of `on_full`.
pub const ON_FULL_WORDS: &[&str] = &["evict", "deny"];

/// The longest key, in UTF-8 bytes, that a store outside the process takes.
pub const MAX_KEY_BYTES: usize = 1_024;

/// The range of limits, capacities and rates.
pub const AMOUNTS: (u64, u64) = (1, MAX);

impl AlgorithmSchema {
    /// Returns the position of the algorithm with that name or alias; `None` if there is none.
    pub fn position(name: &str) -> Option<usize> {
        ALGORITHM_SCHEMAS.iter().position(|schema| schema.name == name || schema.aliases.contains(&name))
    }

    /// Returns the field with that role, which an algorithm has at most once.
    pub fn field(&self, role: Role) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.role == role)
    }
}

impl Field {
    /// Returns whether `name` is the field's name, in either spelling.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.snake_case == Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_schemas() {
        let names: Vec<_> = ALGORITHM_SCHEMAS.iter().map(|schema| schema.name).collect();
        assert_eq!(names, ALGORITHMS);
        for (position, name) in [
            (FIX_WINDOW, "fix_window"),
            (FIX_WINDOW_PER_KEY, "fix_window_per_key"),
            (SLIDING_WINDOW, "sliding_window"),
            (SLIDING_COUNTER, "sliding_counter"),
            (TOKEN_BUCKET, "token_bucket"),
            (LEAKY_BUCKET, "leaky_bucket"),
            (CONCURRENCY, "concurrency"),
            (BAN, "ban"),
        ] {
            assert_eq!(AlgorithmSchema::position(name), Some(position));
        }
        assert_eq!(AlgorithmSchema::position(EXCEPTION_NAME), None);
    }

    #[test]
    fn an_exception_has_the_numbers_that_change_within_a_shape() {
        let within = [Role::Limit, Role::Rate, Role::After, Role::Length, Role::Factor, Role::Most];
        let fields = ALGORITHM_SCHEMAS.iter().flat_map(|schema| schema.fields);
        let mut names: Vec<_> = fields.filter(|field| within.contains(&field.role)).map(|field| field.name).collect();
        names.sort_unstable();
        names.dedup();
        let mut fields = EXCEPTION_FIELDS[EXCEPTED_LIMIT..].to_vec();
        fields.sort_unstable();
        assert_eq!((names, &EXCEPTION_FIELDS[..EXCEPTED_LIMIT]), (fields, &["allow", "deny"][..]));
        for (position, name) in [
            (ALLOW, "allow"),
            (DENY, "deny"),
            (EXCEPTED_LIMIT, "limit"),
            (EXCEPTED_CAPACITY, "capacity"),
            (EXCEPTED_REFILL_RATE, "refillRate"),
            (EXCEPTED_LEAK_RATE, "leakRate"),
            (EXCEPTED_AFTER, "after"),
            (EXCEPTED_LENGTH, "for"),
            (EXCEPTED_FACTOR, "factor"),
            (EXCEPTED_MOST, "most"),
        ] {
            assert_eq!(EXCEPTION_FIELDS[position], name);
        }
    }
}
