//! Requests to the HTTP API and by RPC: one item, or a batch of independent items.

use tollgate::{Error, Policies, check_key};

use crate::config::Config;
use crate::key;
use crate::policies::PolicySet;
use crate::reader::{FieldErrors, Reader, invalid, whole, words};
use crate::text::{AMOUNT, listed, shown};
use crate::tree::Tree;

/// The largest batch.
pub(crate) const MAX_ITEMS: usize = 100;

/// What a key may be, for error messages.
const KEY: &str = "a string of 1 to 1024 UTF-8 bytes";

/// One operation on one object.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) object: String,
    pub(crate) policies: Policies,
    /// The cost or the count.
    pub(crate) amount: u64,
    /// Which of several policies.
    pub(crate) of: Option<String>,
}

/// The error of a whole request or of one item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    fn request(message: String) -> Self {
        Self { code: "invalid_request", message }
    }

    /// A name that no policy has, or none where one is required.
    pub(crate) fn unknown_policy(field: &str, found: Option<&str>, known: &str) -> Self {
        let message = match found {
            Some(name) => format!("{field}: {} is not one of {known}", shown(name)),
            None => format!("{field}: is required with several policies (one of {known})"),
        };
        Self { code: "unknown_policy", message }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

/// Returns the items of a request's body, each valid or an error, and whether they came as a batch.
pub(crate) fn read(
    config: &Config,
    operation: &str,
    body: Tree,
) -> Result<(Vec<Result<Item, Refusal>>, bool), Refusal> {
    let (trees, batch) = match body {
        Tree::List(list) => (list, true),
        one => (vec![one], false),
    };
    if !(1..=MAX_ITEMS).contains(&trees.len()) {
        let found = format!("a batch of {} items is not one of 1 to {MAX_ITEMS}", trees.len());
        return Err(Refusal::request(found));
    }
    Ok((trees.into_iter().map(|tree| item(config, operation, tree)).collect(), batch))
}

fn item(config: &Config, operation: &str, tree: Tree) -> Result<Item, Refusal> {
    let mut errors = FieldErrors::new();
    let mut reader = Reader::new(String::new(), tree, &mut errors);
    let names = names(&mut reader);
    let key = key_of(&mut reader);
    let amount = match operation {
        "hit" | "peek" | "inc" => reader.read("cost", AMOUNT, whole).or(Some(1)),
        "set" => count(&mut reader),
        _ => Some(0),
    };
    let of = asks_one(operation).then(|| reader.read("of", "the name of one of the policies", words)).flatten();
    reader.finish();
    if let Some(first) = errors.first() {
        return Err(Refusal::request(first.to_string()));
    }
    made(config, operation, &names, &key?, amount.unwrap_or_default(), of)
}

/// Returns whether an operation is on one policy, which must be named if there are several.
fn asks_one(operation: &str) -> bool {
    matches!(operation, "inc" | "set" | "get" | "expires_at")
}

fn count(reader: &mut Reader<'_>) -> Option<u64> {
    let found = reader.take("count").unwrap_or(Tree::Nothing);
    let count = whole(&found);
    if count.is_none() {
        reader.refuse("count", &found, AMOUNT);
    }
    count
}

/// Returns the key, if it is a text.
fn key_of(reader: &mut Reader<'_>) -> Result<String, Refusal> {
    match reader.take("key").unwrap_or(Tree::Nothing) {
        Tree::Text(text) => Ok(text),
        other => {
            reader.refuse("key", &other, KEY);
            Ok(String::new())
        }
    }
}

fn names(reader: &mut Reader<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let path = reader.path_of("policy");
    for (path, tree) in reader.list("policy").unwrap_or_default() {
        match words(&tree) {
            Some(name) => names.push(name),
            None => reader.errors.push(invalid(path, &tree, "the name of a policy")),
        }
    }
    if names.is_empty() && reader.errors.is_empty() {
        reader.errors.push(invalid(path, &Tree::Nothing, "the name of a policy, or a list of names"));
    }
    names
}

/// Returns the item of parts that have the right types.
pub(crate) fn made(
    config: &Config,
    operation: &str,
    names: &[String],
    key: &str,
    amount: u64,
    of: Option<String>,
) -> Result<Item, Refusal> {
    check_key(key)?;
    let PolicySet { policies, .. } = config.set(names)?;
    let is_known = match &of {
        Some(of) => policies.names().any(|known| known == of),
        None => policies.len() == 1,
    };
    if asks_one(operation) && !is_known {
        return Err(Refusal::unknown_policy("of", of.as_deref(), &listed(policies.names())));
    }
    Ok(Item { object: key::object_name(key::encode("key", key)), policies, amount, of })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(operation: &str, json: &str) -> Result<Vec<Result<String, String>>, String> {
        let toml = r#"
            [policies]
            api = { algorithm = "fix_window", limit = 5, scale = "1m" }
            day = { algorithm = "fix_window", limit = 9, scale = "1d" }
        "#;
        let config = Config::read(toml::from_str(toml).unwrap()).unwrap();
        let (items, _) =
            read(&config, operation, serde_json::from_str(json).unwrap()).map_err(|error| error.message)?;
        let shown = |item: Item| format!("{} {} {:?}", item.object, item.amount, item.of);
        Ok(items.into_iter().map(|item| item.map(shown).map_err(|refusal| refusal.message)).collect())
    }

    #[test]
    fn one_or_many() {
        assert_eq!(asked("hit", r#"{"policy":"api","key":"a"}"#).unwrap(), [Ok("/key=1:a 1 None".into())]);
        let many =
            asked("inc", r#"[{"policy":["api","day"],"key":"a","cost":2,"of":"day"},{"policy":"api"}]"#).unwrap();
        assert_eq!(many[0], Ok("/key=1:a 2 Some(\"day\")".into()));
        assert!(many[1].as_ref().unwrap_err().starts_with("key: is required"));
    }

    #[test]
    fn errors_are_named() {
        for (operation, json, start) in [
            ("hit", "3", "3 is not an object"),
            ("hit", r#"{"key":"a"}"#, "policy: is required"),
            ("hit", r#"{"policy":7,"key":"a"}"#, "policy: 7"),
            ("hit", r#"{"policy":["api",null],"key":"a"}"#, "policy[1]: is required"),
            ("hit", r#"{"policy":"other","key":"a"}"#, "policy: \"other\" is not one of api, day"),
            ("hit", r#"{"policy":["api","api"],"key":"a"}"#, "name: \"api\" is not unique"),
            ("hit", r#"{"policy":"api","key":""}"#, "key: an empty string"),
            ("hit", r#"{"policy":"api","key":1}"#, "key: 1"),
            ("hit", r#"{"policy":"api","key":"a","cost":0.5}"#, "cost: 0.5 is not"),
            ("hit", r#"{"policy":"api","key":"a","count":1}"#, "count: unknown field"),
            ("set", r#"{"policy":"api","key":"a"}"#, "count: is required"),
            ("get", r#"{"policy":"api","key":"a","of":"day"}"#, "of: \"day\" is not one of api"),
            ("get", r#"{"policy":["api","day"],"key":"a"}"#, "of: is required with several policies"),
        ] {
            let problem = asked(operation, json).unwrap().remove(0).unwrap_err();
            assert!(problem.starts_with(start), "{json}: {problem}");
        }
        assert!(asked("hit", "[]").unwrap_err().starts_with("a batch of 0"));
        assert!(asked("hit", &format!("[{}1]", "1,".repeat(100))).unwrap_err().starts_with("a batch of 101"));
    }
}
