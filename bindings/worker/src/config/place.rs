//! Where the platform keeps the objects.

use crate::reader::Reader;

/// Where the platform keeps the objects, in its words; `None` for where each was called first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The region in which an object is created, if the platform can.
    pub(crate) location_hint: Option<&'static str>,
    /// The jurisdiction that an object never leaves.
    pub(crate) jurisdiction: Option<&'static str>,
}

const LOCATIONS: &[(&str, &str)] = &[
    ("wnam", "wnam"),
    ("enam", "enam"),
    ("sam", "sam"),
    ("weur", "weur"),
    ("eeur", "eeur"),
    ("apac", "apac"),
    ("apac-ne", "apac-ne"),
    ("apac-se", "apac-se"),
    ("oc", "oc"),
    ("afr", "afr"),
    ("me", "me"),
];

const JURISDICTIONS: &[(&str, &str)] =
    &[("eu", "eu"), ("fedramp", "fedramp"), ("fedramp-high", "fedramp-high"), ("us", "us")];

/// Reads `locationHint` and `jurisdiction`.
pub(crate) fn read(reader: &mut Reader<'_>) -> Place {
    Place {
        location_hint: reader.choice("locationHint", LOCATIONS),
        jurisdiction: reader.choice("jurisdiction", JURISDICTIONS),
    }
}
