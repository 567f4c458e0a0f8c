//! Reads `leases`: whether an isolate leases the limits of hot keys, and for how long.

use tollgate::{DEFAULT_LEASE_TTL, MAX_LEASE_TTL};

use crate::config::span;
use crate::reader::Reader;
use crate::tree::Tree;

const ACCEPTS: &str = "true, false, or a table such as { ttl = \"2s\" }";
const TTL: &str = "milliseconds from 1 to 10000, or text such as \"500ms\" or \"2s\"";

/// Returns the duration of leases, which is `None` if there are none; the outer `None` if the field is missing or invalid.
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Option<u64>> {
    let path = reader.path_of("leases");
    match reader.take("leases")? {
        tree @ Tree::Table(_) => {
            let mut own = Reader::new(path, tree, reader.errors);
            let ttl = own.read("ttl", TTL, |tree| span(tree).filter(|ttl| (1..=MAX_LEASE_TTL).contains(ttl)));
            own.finish();
            Some(Some(ttl.unwrap_or(DEFAULT_LEASE_TTL)))
        }
        Tree::Bool(has_leases) => Some(has_leases.then_some(DEFAULT_LEASE_TTL)),
        other => {
            reader.reject("leases", &other, ACCEPTS);
            None
        }
    }
}
