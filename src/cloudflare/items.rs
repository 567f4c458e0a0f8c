//! What is asked through the HTTP API and by RPC: one item, or a batch of independent ones.

use super::config::Config;
use super::key;
use super::policies::PolicySet;
use super::reader::{BROKEN, Mistakes, Reader, mistake, whole, words};
use super::tree::Tree;
use crate::number::AMOUNT;
use crate::text::{digits, text};
use crate::{Error, Policies, check_key};

/// How many items one call takes.
pub(super) const MAX_ITEMS: usize = 100;

/// One thing that is asked of one object.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) object: String,
    pub(super) policies: Policies,
    /// The cost or the count.
    pub(super) amount: u64,
    /// Which of several policies.
    pub(super) of: Option<String>,
}

/// What is wrong with a whole request or with one item.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Refusal {
    fn request(message: String) -> Self {
        Self { code: "invalid_request", message }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

/// The items of a request's body, each right or refused; and whether they came as a batch.
pub(super) fn read(
    config: &Config,
    operation: &str,
    body: Tree,
) -> Result<(Vec<Result<Item, Refusal>>, bool), Refusal> {
    let (trees, batch) = match body {
        Tree::List(list) => (list, true),
        one => (vec![one], false),
    };
    if !(1..=MAX_ITEMS).contains(&trees.len()) {
        let found = text(&["a batch of ", &digits(trees.len() as u64), " is not accepted; give 1 to 100 items"]);
        return Err(Refusal::request(found));
    }
    Ok((trees.into_iter().map(|tree| item(config, operation, tree)).collect(), batch))
}

fn item(config: &Config, operation: &str, tree: Tree) -> Result<Item, Refusal> {
    let mut mistakes = Mistakes::new();
    let mut reader = Reader::new(String::new(), tree, &mut mistakes);
    let names = names(&mut reader);
    let key = key_of(&mut reader);
    let amount = match operation {
        "hit" | "peek" | "inc" => reader.read("cost", AMOUNT, whole).or(Some(1)),
        "set" => count(&mut reader),
        _ => Some(0),
    };
    let of = asks_one(operation).then(|| reader.read("of", "the name of one of the policies", words)).flatten();
    reader.finish();
    if let Some(first) = mistakes.first() {
        let place = if first.path.is_empty() { "" } else { ": " };
        return Err(Refusal::request(text(&[&first.path, place, &first.problem])));
    }
    made(config, operation, &names, &key?, amount.unwrap_or_default(), of)
}

/// Whether an operation is about one policy, where there are several.
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

/// The key, if it is a text.
fn key_of(reader: &mut Reader<'_>) -> Result<String, Refusal> {
    match reader.take("key").unwrap_or(Tree::Nothing) {
        Tree::Text(text) => Ok(text),
        Tree::Broken => Err(Error::key(BROKEN).into()),
        other => {
            reader.refuse("key", &other, crate::key::ACCEPTS);
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
            None => reader.mistakes.push(mistake(path, &tree, "the name of a policy")),
        }
    }
    if names.is_empty() && reader.mistakes.is_empty() {
        reader.mistakes.push(mistake(path, &Tree::Nothing, "the name of a policy, or a list of names"));
    }
    names
}

/// The item that is made of parts that are of the right kind.
pub(super) fn made(
    config: &Config,
    operation: &str,
    names: &[String],
    key: &str,
    amount: u64,
    of: Option<String>,
) -> Result<Item, Refusal> {
    check_key(key)?;
    let PolicySet { policies, .. } = config.set(names)?;
    if asks_one(operation) && policies.position(of.as_deref()).is_err() {
        let known: Vec<_> = policies.names().collect();
        return Err(Error::unknown_policy("of", of.as_deref(), &known).into());
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
        assert!(many[1].as_ref().unwrap_err().starts_with("key: leaving it out is not accepted"));
    }

    #[test]
    fn mistakes_are_named() {
        for (operation, json, start) in [
            ("hit", "3", "3 is not accepted; give an object"),
            ("hit", r#"{"key":"a"}"#, "policy: leaving it out"),
            ("hit", r#"{"policy":7,"key":"a"}"#, "policy: 7"),
            ("hit", r#"{"policy":["api",null],"key":"a"}"#, "policy[1]: leaving it out"),
            ("hit", r#"{"policy":"other","key":"a"}"#, "policy: \"other\" is not accepted; give one of api, day"),
            ("hit", r#"{"policy":["api","api"],"key":"a"}"#, "name: \"api\" a second time"),
            ("hit", r#"{"policy":"api","key":""}"#, "key: an empty string"),
            ("hit", r#"{"policy":"api","key":1}"#, "key: 1"),
            ("hit", r#"{"policy":"api","key":"a","cost":0.5}"#, "cost: a fraction"),
            ("hit", r#"{"policy":"api","key":"a","count":1}"#, "count: no such field"),
            ("set", r#"{"policy":"api","key":"a"}"#, "count: leaving it out"),
            ("get", r#"{"policy":"api","key":"a","of":"day"}"#, "of: \"day\" is not accepted; give one of api"),
            ("get", r#"{"policy":["api","day"],"key":"a"}"#, "of: leaving it out, where there are several, is not"),
        ] {
            let problem = asked(operation, json).unwrap().remove(0).unwrap_err();
            assert!(problem.starts_with(start), "{json}: {problem}");
        }
        assert!(asked("hit", "[]").unwrap_err().starts_with("a batch of 0"));
        assert!(asked("hit", &format!("[{}1]", "1,".repeat(100))).unwrap_err().starts_with("a batch of 101"));
    }
}
