//! Writes `js/wasm/generated.ts`: statuses, offsets, the schema of policies and the texts of errors as TypeScript.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::mem::offset_of;

use tollgate::boundary::numbers::PER_POLICY;
use tollgate::boundary::schema::{
    ALGORITHM_SCHEMAS, CALENDAR_SCALES, DEFAULT_CLEAN_PERIOD, DEFAULT_MAX_KEYS, DENIED_WORDS, DURATION_UNITS,
    EXCEPTION, EXCEPTION_FIELDS, EXCEPTION_NAME, Field, MAX_BAN_COUNT, MAX_EXCEPTION, MAX_KEY_BYTES, MAX_KEYS_IN_JS,
    MAX_POLICIES, MAX_RESERVATIONS, MAX_ROWS, MAX_STORED_LOG, MAX_STORED_RESERVATIONS, MAX_TTL, MAX_UTC_OFFSET,
    ON_FULL_WORDS, Role,
};
use tollgate::boundary::{OPEN_NUMBERS, STORED_VERSION, TEXTS, status};
use tollgate::redis_log;
use tollgate::{DEFAULT_LEASE_TTL, MAX_LEASE_TTL, MAX_UNDO, Settlement, verdict};

use crate::hot::{hit_kind, settlement};
use crate::limiter::operation;
use crate::result_buffer::ResultBuffer;

mod operations;

pub use operations::operations_typescript;

const HEAD: &str = "// Generated from Rust: `npm run build` writes this file. Do not edit it.\n";

/// Returns the text of `js/wasm/generated.ts`.
pub fn typescript() -> String {
    let mut text = written(&[
        statuses(),
        verdicts(),
        reasons(),
        operations(),
        hit_kinds(),
        settlements(),
        offsets(),
        replay(),
        schemas(),
        units(),
        calendar_scales(),
        limits(),
        lease_ttl(),
        exceptions(),
        exception_name(),
        stored_version(),
    ]);
    text.push_str(
        "\n// The wording of errors: `{names}` are replaced. Each is an export, so that a bundler drops unused ones.\n",
    );
    for (name, wording) in TEXTS {
        let _ = writeln!(text, "export const {} = {wording:?};", camel_case(&format!("{name}_TEXT")));
    }
    text
}

/// A constant: its description, its name and its value.
type Constant = (&'static str, &'static str, String);

/// Returns a file of constants.
fn written(constants: &[Constant]) -> String {
    let mut text = String::from(HEAD);
    for (about, name, value) in constants {
        let _ = write!(text, "\n/** {about} */\nexport const {name} = {value} as const;\n");
    }
    text
}

fn stored_version() -> Constant {
    let about = "The version of snapshots and stored states.";
    (about, "storedVersion", format!("{STORED_VERSION}"))
}

fn verdicts() -> Constant {
    let values = [("denied", verdict::DENIED), ("allowed", verdict::ALLOWED), ("uncertain", verdict::UNCERTAIN)];
    let about = "The numbers of verdicts. Those of denials with a reason follow.";
    (about, "verdict", object(values.map(|(name, value)| (name.into(), format!("{value}")))))
}

fn reasons() -> Constant {
    let reasons = (0..=u8::MAX).filter_map(|number| Some((format!("{number}"), verdict::reason(number)?.as_str())));
    let about = "The reasons of denials by the numbers of their verdicts.";
    (about, "reasons", object(reasons.map(|(number, reason)| (number, format!("{reason:?}")))))
}

fn statuses() -> Constant {
    let values = [
        ("small", status::SMALL),
        ("moved", status::MOVED),
        ("verdict", status::VERDICT),
        ("invalidCost", status::INVALID_COST),
        ("invalidTime", status::INVALID_TIME),
        ("invalidHandle", status::INVALID_HANDLE),
        ("outOfMemory", status::OUT_OF_MEMORY),
        ("mismatch", status::MISMATCH),
        ("noRoom", status::NO_ROOM),
        ("manyExceptions", status::MANY_EXCEPTIONS),
        ("manyRows", status::MANY_ROWS),
        ("invalidAmount", status::INVALID_AMOUNT),
        ("uncountable", status::UNCOUNTABLE),
        ("at", status::AT),
    ];
    let about = "Bits of a status, and, below 0, statuses of operations that failed.";
    (about, "status", object(values.map(|(name, value)| (name.into(), format!("{value}")))))
}

fn operations() -> Constant {
    let values = [
        ("get", operation::GET),
        ("expiresAt", operation::EXPIRES_AT),
        ("inc", operation::INC),
        ("set", operation::SET),
        ("maxCount", operation::MAX_COUNT),
        ("defaultTtl", operation::DEFAULT_TTL),
        ("ban", operation::BAN),
        ("unban", operation::UNBAN),
    ];
    (
        "The operations on one policy's count.",
        "operation",
        object(values.map(|(name, value)| (name.into(), format!("{value}")))),
    )
}

fn hit_kinds() -> Constant {
    let values = [
        ("hit", hit_kind::HIT),
        ("peek", hit_kind::PEEK),
        ("reserve", hit_kind::RESERVE),
        ("peekFree", hit_kind::PEEK_FREE),
        ("byPolicy", hit_kind::BY_POLICY),
    ];
    ("The kinds of `hit_with`.", "hitKind", object(values.map(|(name, value)| (name.into(), format!("{value}")))))
}

fn settlements() -> Constant {
    let mut words = [""; 5];
    for (number, settlement) in [
        (settlement::SETTLED, Settlement::Settled),
        (settlement::EXTENDED, Settlement::Extended),
        (settlement::EXPIRED, Settlement::Expired),
        (settlement::CLOSED, Settlement::Closed),
        (settlement::EVICTED, Settlement::Evicted),
    ] {
        words[number as usize] = settlement.as_str();
    }
    (
        "The results of closing a reservation, by the number that `close_reservation` returns.",
        "settlements",
        format!("{words:?}"),
    )
}

fn offsets() -> Constant {
    let offsets = [
        ("floats", offset_of!(ResultBuffer, floats)),
        ("integers", offset_of!(ResultBuffer, integers)),
        ("moved", offset_of!(ResultBuffer, moved)),
        ("list", offset_of!(ResultBuffer, list)),
        ("handle", offset_of!(ResultBuffer, handle)),
    ];
    let about = "Offsets within the result buffer, in bytes.";
    (about, "resultOffsets", object(offsets.map(|(name, offset)| (name.into(), format!("{offset}")))))
}

fn replay() -> Constant {
    let numbers =
        |values: &[(&str, f64)]| object(values.iter().map(|(name, value)| ((*name).into(), format!("{value}"))));
    let values = [
        (
            "status",
            numbers(&[
                ("own", redis_log::status::OWN.into()),
                ("foreign", redis_log::status::FOREIGN.into()),
                ("kept", redis_log::status::KEPT.into()),
                ("malformed", redis_log::status::MALFORMED.into()),
                ("version", redis_log::status::VERSION.into()),
                ("outOfMemory", redis_log::status::OUT_OF_MEMORY.into()),
            ]),
        ),
        (
            "reading",
            numbers(&[
                ("peek", redis_log::reading::PEEK.into()),
                ("get", redis_log::reading::GET.into()),
                ("expiresAt", redis_log::reading::EXPIRES_AT.into()),
                ("exception", redis_log::reading::EXCEPTION.into()),
            ]),
        ),
        (
            "kind",
            numbers(&[
                ("number", redis_log::kind::NUMBER.into()),
                ("rejected", redis_log::kind::REJECTED.into()),
                ("manyRows", redis_log::kind::MANY_ROWS.into()),
            ]),
        ),
        ("settlements", format!("{:?}", redis_log::SETTLEMENTS.map(Settlement::as_str))),
        ("numbersPerResult", format!("{}", redis_log::NUMBERS_PER_RESULT)),
        ("numbersPerOutcome", format!("{}", redis_log::NUMBERS_PER_OUTCOME)),
        ("noSlot", format!("{}", redis_log::NO_SLOT)),
    ];
    let about = "Statuses, operations and results of the replay of a log.";
    (about, "replay", object(values.map(|(name, value)| (name.into(), value))))
}

fn schemas() -> Constant {
    let schemas = ALGORITHM_SCHEMAS.iter().enumerate().flat_map(|(position, schema)| {
        let fields = schema.fields.iter().map(|field| (field.name.into(), field_value(field)));
        let value = format!("{{ position: {position}, name: {:?}, fields: {} }}", schema.name, object(fields));
        [schema.name].into_iter().chain(schema.aliases.iter().copied()).map(move |name| (name.into(), value.clone()))
    });
    ("The algorithms by their names, aliases included.", "algorithms", object(schemas))
}

fn field_value(field: &Field) -> String {
    let role = match field.role {
        Role::Algorithm => "algorithm",
        Role::Limit => "limit",
        Role::Rate => "rate",
        Role::Scale => "scale",
        Role::UtcOffset => "utcOffset",
        Role::Ttl => "ttl",
        Role::After => "after",
        Role::Length => "length",
        Role::Factor => "factor",
        Role::Most => "most",
        Role::Name => "name",
        Role::Unit => "unit",
        Role::Denied => "denied",
    };
    let default = field.default.map_or(String::new(), |default| format!(", default: {default}"));
    format!("{{ role: {role:?}{default} }}")
}

fn units() -> Constant {
    let units = DURATION_UNITS.iter().map(|(unit, milliseconds)| ((*unit).into(), format!("{milliseconds}")));
    ("The units of a duration, in milliseconds.", "durationUnits", object(units))
}

fn calendar_scales() -> Constant {
    let units = CALENDAR_SCALES.iter().map(|(unit, number)| ((*unit).into(), format!("{number}")));
    let about = "The numbers of the units of the calendar, from which the offset from UTC in minutes is subtracted.";
    (about, "calendarScales", object(units))
}

fn limits() -> Constant {
    let spellings = ALGORITHM_SCHEMAS.iter().flat_map(|schema| schema.fields);
    let mut snake_case: Vec<_> =
        spellings.filter_map(|field| Some((field.snake_case?.into(), format!("{:?}", field.name)))).collect();
    snake_case.dedup();
    let values = [
        ("snakeCase", object(snake_case)),
        ("deniedWords", format!("{DENIED_WORDS:?}")),
        ("onFullWords", format!("{ON_FULL_WORDS:?}")),
        ("maxUtcOffset", format!("{MAX_UTC_OFFSET}")),
        ("maxPolicies", format!("{MAX_POLICIES}")),
        ("perPolicy", format!("{PER_POLICY}")),
        ("maxKeys", format!("{MAX_KEYS_IN_JS}")),
        ("defaultMaxKeys", format!("{DEFAULT_MAX_KEYS}")),
        ("defaultCleanPeriod", format!("{DEFAULT_CLEAN_PERIOD}")),
        ("maxKeyBytes", format!("{MAX_KEY_BYTES}")),
        ("maxTtl", format!("{MAX_TTL}")),
        ("maxBanCount", format!("{MAX_BAN_COUNT}")),
        ("defaultLeaseTtl", format!("{DEFAULT_LEASE_TTL}")),
        ("maxLeaseTtl", format!("{MAX_LEASE_TTL}")),
        ("openNumbers", format!("{OPEN_NUMBERS}")),
        ("maxRows", format!("{MAX_ROWS}")),
        ("maxReservations", format!("{MAX_RESERVATIONS}")),
        ("maxStoredReservations", format!("{MAX_STORED_RESERVATIONS}")),
        ("maxUndo", format!("{MAX_UNDO}")),
        ("maxStoredLog", format!("{MAX_STORED_LOG}")),
    ];
    let about = "Spellings, words, defaults and limits.";
    (about, "schema", object(values.map(|(name, value)| (name.into(), value))))
}

fn exceptions() -> Constant {
    let values = [
        ("fields", format!("{EXCEPTION_FIELDS:?}")),
        ("position", format!("{EXCEPTION}")),
        ("longest", format!("{MAX_EXCEPTION}")),
    ];
    let about =
        "The fields of an exception, its position among algorithms, and the longest that it lasts, in milliseconds.";
    (about, "exceptionSchema", object(values.map(|(name, value)| (name.into(), value))))
}

fn exception_name() -> Constant {
    ("The name of a stored exception, in the place of an algorithm.", "exceptionName", format!("{EXCEPTION_NAME:?}"))
}

fn lease_ttl() -> Constant {
    let values = [("byDefault", DEFAULT_LEASE_TTL), ("max", MAX_LEASE_TTL)];
    let about = "How long a lease lasts, in milliseconds.";
    (about, "leaseTtl", object(values.map(|(name, value)| (name.into(), format!("{value}")))))
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_').map(str::to_lowercase);
    let mut camel = parts.next().unwrap_or_default();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

fn object(fields: impl IntoIterator<Item = (String, String)>) -> String {
    let mut text = String::from("{ ");
    for (name, value) in fields {
        let _ = write!(text, "{name}: {value}, ");
    }
    text.push('}');
    text
}
