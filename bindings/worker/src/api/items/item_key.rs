//! The key of an item: a key of the API, or the key of a rule.

use tollgate::cloudflare::wire::id_and_object;
use tollgate::{Error, Reservation, ReservationId, check_key};

use crate::request::key::{encode, is_object_name, object_name};

/// The key of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemKey {
    /// A key of the API.
    Own(String),
    /// The key of a rule, by the name of its object.
    Rule(String),
}

impl ItemKey {
    /// Returns the name of the key's object. Checks the key.
    pub(crate) fn object(&self) -> Result<String, Error> {
        match self {
            Self::Own(key) => Ok(object_name(encode("key", check_key(key)?))),
            Self::Rule(object) => Ok(object.clone()),
        }
    }

    /// Parses the id of a reservation, and the key in it.
    pub(super) fn of_reservation(text: &str) -> Result<(Self, ReservationId), Error> {
        match id_and_object(text).filter(|(_, object)| is_object_name(object)) {
            Some((id, object)) => Ok((Self::Rule(object.into()), id)),
            None => text.parse().map(|Reservation { key, id }| (Self::Own(key), id)),
        }
    }
}
