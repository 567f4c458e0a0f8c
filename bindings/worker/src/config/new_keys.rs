//! Reads `newKeys`: how many keys that have no state yet a client's address may bring.

use tollgate::{MAX, Policies, Policy};

use crate::config::policies::PolicySet;
use crate::config::span;
use crate::reader::{Reader, integer};
use crate::request::key::{Part, Source, encode, ip};
use crate::tree::Tree;

/// The name of the policy.
const NAME: &str = "new-keys";

const ACCEPTS: &str = "a table such as { limit = 100, scale = \"1h\" }";

const LIMIT: &str = "an integer from 1 to 9007199254740991";

const SCALE: &str = "milliseconds from 1 to 2147483647, or text such as \"10m\", \"1h\" or \"1d\"";

/// The limit on new keys of a rule.
#[derive(Debug)]
pub(crate) struct NewKeys {
    pub(crate) set: PolicySet,
    /// The period, in milliseconds: a key is new once in it.
    pub(crate) scale: u64,
}

/// Reads the limit on new keys; `None` if there is none, or if it is invalid.
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<NewKeys> {
    let path = reader.path_of("newKeys");
    let tree = reader.take("newKeys")?;
    if !matches!(tree, Tree::Table(_)) {
        reader.reject("newKeys", &tree, ACCEPTS);
        return None;
    }
    let mut own = Reader::new(path, tree, reader.errors);
    let mut required = |field, accepts: &str, value: &dyn Fn(&Tree) -> Option<u64>| {
        let found = own.take(field).unwrap_or(Tree::Null);
        let value = value(&found);
        if value.is_none() {
            own.reject(field, &found, accepts);
        }
        value
    };
    let limit = required("limit", LIMIT, &|tree| integer(tree).filter(|limit| (1..=MAX).contains(limit)));
    let scale = required("scale", SCALE, &span);
    own.finish();
    let (limit, scale) = (limit?, scale?);
    let policy = Policy::sliding_counter(limit, scale).and_then(|policy| policy.named(NAME)).ok()?;
    Some(NewKeys { set: PolicySet::new(Policies::new(vec![policy]).ok()?), scale })
}

/// Returns whether a client can make up the value of a part.
pub(crate) fn is_made_up(part: &Part) -> bool {
    matches!(part, Part::Header(_) | Part::Cookie(_) | Part::Path)
}

/// Returns the name of the object that counts the new keys of an address. No key of a rule or of the API has that name.
pub(crate) fn object(source: &impl Source) -> String {
    encode(NAME, &ip(source))
}
