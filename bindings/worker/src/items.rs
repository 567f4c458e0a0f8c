//! Requests to the HTTP API and by RPC: one item, or a batch of independent items.

use serde::Deserialize;
use tollgate::cloudflare::wire::{self, Amount, Question};
use tollgate::{Error, Policies, Reservation, Value, check_key};

use crate::config::{Config, TRUTH, truth};
use crate::key;
use crate::policies::PolicySet;
use crate::reader::{FieldErrors, Reader, invalid, whole, words};
use crate::text::{AMOUNT, listed, shown};
use crate::tree::Tree;

/// The largest batch.
pub(crate) const MAX_ITEMS: usize = 100;

/// What a key may be, for error messages.
const KEY: &str = "a string of 1 to 1024 UTF-8 bytes";

/// Describes the accepted ids in error messages.
const ID: &str = "the id of a reservation";

/// Describes the accepted costs of an addition in error messages.
const SIGNED: &str = "an integer from -9007199254740991 to 9007199254740991";

/// One operation on one object.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) object: String,
    pub(crate) policies: Policies,
    /// The cost or the count.
    pub(crate) amount: i64,
    /// Which of several policies.
    pub(crate) of: Option<String>,
    /// The question as JSON, if it says more than that.
    pub(crate) question: Option<String>,
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
    let said = Said::read(&mut reader, operation);
    reader.finish();
    match errors.first() {
        Some(first) => Err(Refusal::request(first.to_string())),
        None => said.item(config, operation, &names),
    }
}

/// Returns whether an operation is on one policy, which must be named if there are several.
fn asks_one(operation: &str) -> bool {
    matches!(operation, "inc" | "set" | "get" | "expires_at")
}

/// Everything that an item says but for its policies.
#[derive(Default)]
struct Said {
    key: String,
    id: Option<String>,
    amount: Option<i64>,
    /// The same by policy.
    amounts: Option<Vec<(String, f64)>>,
    ttl: Option<Value>,
    /// To `lease`: how much of the lease was spent, and the size that is asked for.
    used: Option<u64>,
    size: Option<u64>,
    settles: Vec<String>,
    reservations: bool,
    of: Option<String>,
}

impl Said {
    /// Reads the fields that an operation has.
    fn read(reader: &mut Reader<'_>, operation: &str) -> Self {
        let mut said = Self::default();
        match operation {
            "settle" | "cancel" | "extend" => said.id = Some(text(reader, "id", ID)),
            _ => said.key = text(reader, "key", KEY),
        }
        match operation {
            "hit" | "peek" | "reserve" => said.read_amounts(reader, "cost"),
            "lease" => {
                said.id = reader.read("id", ID, words);
                said.amount = reader.read("cost", AMOUNT, whole).map(|cost| cost as i64);
                said.used = reader.read("used", AMOUNT, whole);
                said.size = reader.read("size", AMOUNT, whole);
            }
            "settle" => said.read_amounts(reader, "used"),
            "inc" => said.amount = reader.read("cost", SIGNED, signed),
            "set" => said.amount = count(reader),
            "reset" => said.reservations = reader.read("reservations", TRUTH, truth).unwrap_or_default(),
            _ => {}
        }
        if matches!(operation, "reserve" | "extend" | "lease") {
            said.ttl = reader.take("ttl").and_then(|tree| Value::deserialize(tree).ok());
        }
        if operation == "reserve" {
            let ids = reader.list("settles").unwrap_or_default();
            said.settles = ids.iter().filter_map(|(path, tree)| checked(reader, path, tree, ID)).collect();
        }
        if asks_one(operation) {
            said.of = reader.read("of", "the name of one of the policies", words);
        }
        said
    }

    /// Reads one number, or one for each policy by its name.
    fn read_amounts(&mut self, reader: &mut Reader<'_>, field: &'static str) {
        let path = reader.path_of(field);
        match reader.take(field) {
            None => {}
            Some(Tree::Table(fields)) => {
                let mut amounts = Vec::new();
                for (name, tree) in fields {
                    match whole(&tree) {
                        Some(amount) => amounts.push((name, amount as f64)),
                        None => reader.errors.push(invalid(format!("{path}.{name}"), &tree, AMOUNT)),
                    }
                }
                self.amounts = Some(amounts);
            }
            Some(found) => match whole(&found) {
                Some(amount) => self.amount = Some(amount as i64),
                None => reader.refuse(field, &found, &format!("{AMOUNT}, or one for each policy by its name")),
            },
        }
    }

    /// Returns the item of a whole, under the policies of these names.
    fn item(self, config: &Config, operation: &str, names: &[String]) -> Result<Item, Refusal> {
        let key = match &self.id {
            Some(id) if operation == "lease" => checked_lease(id, &self.key)?,
            Some(id) => id.parse::<Reservation<String>>()?.key,
            None => self.key.clone(),
        };
        let by_default = i64::from(matches!(operation, "hit" | "peek" | "inc" | "reserve"));
        let item = made(config, operation, names, &key, self.amount.unwrap_or(by_default), self.of.clone())?;
        for (name, _) in self.amounts.iter().flatten() {
            if !item.policies.names().any(|known| known == name) {
                let field = if operation == "settle" { "used" } else { "cost" };
                return Err(Refusal::unknown_policy(field, Some(name), &listed(item.policies.names())));
            }
        }
        let ttl = match (operation, &self.ttl) {
            ("lease", ttl) => ttl.as_ref().map(wire::lease_ttl),
            ("extend", None) => Some(wire::ttl(&Value::Null)),
            (_, ttl) => ttl.as_ref().map(wire::ttl),
        };
        let ttl = ttl.transpose()?;
        let says_more = match operation {
            "hit" | "peek" => self.amounts.is_some(),
            "reset" => self.reservations,
            _ => matches!(operation, "reserve" | "settle" | "cancel" | "extend" | "lease"),
        };
        let has_credit = config.credit && operation == "lease";
        let question =
            if says_more { Some(self.question(operation, &item.policies, &key, ttl, has_credit)?) } else { None };
        Ok(Item { question, ..item })
    }

    fn question(
        self,
        operation: &str,
        policies: &Policies,
        key: &str,
        ttl: Option<u64>,
        credit: bool,
    ) -> Result<String, Error> {
        let policies = wire::json_of(policies)?;
        let by_policy =
            |list: Vec<(String, f64)>| list.into_iter().map(|(name, amount)| (name.into(), Amount(amount))).collect();
        let question = Question {
            amount: self.amount.map(|amount| Amount(amount as f64)),
            used: self.used.map(|used| Amount(used as f64)),
            size: self.size.map(|size| Amount(size as f64)),
            credit,
            amounts: self.amounts.map(by_policy),
            ttl: ttl.map(|ttl| Value::Number(ttl as f64)),
            id: self.id.map(Into::into),
            key: Some(key.into()),
            settles: self.settles.into_iter().map(Into::into).collect(),
            reservations: self.reservations,
            ..Question::new(operation, &policies)
        };
        Ok(question.to_json())
    }
}

/// Checks that an id is that of a lease of the key, which has one amount for all policies; returns the key.
fn checked_lease(id: &str, key: &str) -> Result<String, Error> {
    let reservation = id.parse::<Reservation<String>>()?;
    if reservation.key == key && !reservation.id.is_by_policy() {
        Ok(reservation.key)
    } else {
        Err(Error::InvalidReservation { found: id.into() })
    }
}

/// Returns an integer of either sign; `None` for anything else.
fn signed(tree: &Tree) -> Option<i64> {
    match *tree {
        Tree::Number(number) if number < 0.0 => whole(&Tree::Number(-number)).map(|amount| -(amount as i64)),
        _ => whole(tree).map(|amount| amount as i64),
    }
}

fn count(reader: &mut Reader<'_>) -> Option<i64> {
    let found = reader.take("count").unwrap_or(Tree::Nothing);
    let count = whole(&found);
    if count.is_none() {
        reader.refuse("count", &found, AMOUNT);
    }
    count.map(|count| count as i64)
}

/// Returns a field that must be a text; an empty one if it is not.
fn text(reader: &mut Reader<'_>, field: &'static str, accepts: &str) -> String {
    match reader.take(field).unwrap_or(Tree::Nothing) {
        Tree::Text(text) => text,
        other => {
            reader.refuse(field, &other, accepts);
            String::new()
        }
    }
}

fn checked(reader: &mut Reader<'_>, path: &str, tree: &Tree, accepts: &str) -> Option<String> {
    let text = words(tree);
    if text.is_none() {
        reader.errors.push(invalid(path.into(), tree, accepts));
    }
    text
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
    amount: i64,
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
    Ok(Item { object: key::object_name(key::encode("key", key)), policies, amount, of, question: None })
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
        let shown =
            |item: Item| format!("{} {} {:?}{}", item.object, item.amount, item.of, item.question.unwrap_or_default());
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
    fn what_is_more_than_an_amount_is_a_question() {
        let asked = |operation: &str, json: &str| asked(operation, json).unwrap().remove(0);
        let api = r#"[{"algorithm":"fix_window","limit":5,"scale":60000,"name":"api","denied":"free"}]"#;
        let question = |object: &str, amount: i64, operation: &str, rest: &str| {
            Ok(format!(r#"{object} {amount} None{{"operation":"{operation}","policies":{api},{rest}}}"#))
        };
        assert_eq!(
            asked("hit", r#"{"policy":"api","key":"a","cost":{"api":3}}"#),
            question("/key=1:a", 1, "hit", r#""amounts":[["api",3]],"key":"a""#)
        );
        assert_eq!(
            asked("reserve", r#"{"policy":"api","key":"a","cost":2,"ttl":"2s","settles":"x"}"#),
            question("/key=1:a", 2, "reserve", r#""amount":2,"ttl":2000,"key":"a","settles":["x"]"#)
        );
        let id = "0000000000000000000000000000002a.lw.a.sb.c";
        assert_eq!(
            asked("settle", &format!(r#"{{"policy":"api","id":"{id}"}}"#)),
            question("/key=3:b.c", 0, "settle", &format!(r#""id":"{id}","key":"b.c""#))
        );
        let id = "0000000000000000000000000000002a.lw.a.sa";
        assert_eq!(
            asked(
                "lease",
                &format!(r#"{{"policy":"api","key":"a","id":"{id}","cost":1,"used":3,"size":8,"ttl":"2s"}}"#)
            ),
            question(
                "/key=1:a",
                1,
                "lease",
                &format!(r#""amount":1,"ttl":2000,"id":"{id}","key":"a","used":3,"size":8"#)
            )
        );
        assert_eq!(asked("lease", r#"{"policy":"api","key":"a"}"#), question("/key=1:a", 0, "lease", r#""key":"a""#));
        assert_eq!(
            asked("reset", r#"{"policy":"api","key":"a","reservations":true}"#),
            question("/key=1:a", 0, "reset", r#""key":"a","reservations":true"#)
        );
        assert_eq!(asked("reset", r#"{"policy":"api","key":"a","reservations":false}"#), Ok("/key=1:a 0 None".into()));
        assert_eq!(asked("inc", r#"{"policy":"api","key":"a","cost":-3}"#), Ok("/key=1:a -3 None".into()));
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
            ("hit", r#"{"policy":"api","key":"a","cost":{"api":-1}}"#, "cost.api: -1 is not an integer"),
            ("hit", r#"{"policy":"api","key":"a","cost":{"day":1}}"#, "cost: \"day\" is not one of api"),
            ("inc", r#"{"policy":"api","key":"a","cost":0.5}"#, "cost: 0.5 is not an integer from -9007199254740991"),
            ("reserve", r#"{"policy":"api","key":"a","ttl":"2d"}"#, "ttl: \"2d\" is not"),
            ("reserve", r#"{"policy":"api","key":"a","settles":[7]}"#, "settles[0]: 7 is not the id"),
            ("settle", r#"{"policy":"api","key":"a"}"#, "id: is required"),
            ("settle", r#"{"policy":"api","id":"lost"}"#, "id: \"lost\" is not"),
            ("extend", r#"{"policy":"api","id":"0000000000000000000000000000002a.lw.a.sa"}"#, "ttl is required"),
            ("lease", r#"{"policy":"api"}"#, "key: is required"),
            ("lease", r#"{"policy":"api","key":"a","cost":{"api":1}}"#, "cost: an object is not an integer from 0"),
            ("lease", r#"{"policy":"api","key":"a","used":-1}"#, "used: -1 is not an integer from 0"),
            ("lease", r#"{"policy":"api","key":"a","size":0.5}"#, "size: 0.5 is not an integer from 0"),
            (
                "lease",
                r#"{"policy":"api","key":"a","ttl":10001}"#,
                "ttl: 10001 is not a duration of at most ten seconds",
            ),
            ("lease", r#"{"policy":"api","key":"a","ttl":0}"#, "ttl: 0 is not a duration of at most ten seconds"),
            ("lease", r#"{"policy":"api","key":"a","id":7}"#, "id: 7 is not the id"),
            ("lease", r#"{"policy":"api","key":"a","id":"lost"}"#, "id: \"lost\" is not"),
            (
                "lease",
                r#"{"policy":"api","key":"a","id":"0000000000000000000000000000002a.lw.a.sb"}"#,
                "id: \"0000000000000000000000000000002a.lw.a.sb\" is not",
            ),
            (
                "lease",
                r#"{"policy":"api","key":"a","id":"0000000000000000000000000000002a.lw.p.sa"}"#,
                "id: \"0000000000000000000000000000002a.lw.p.sa\" is not",
            ),
            ("lease", r#"{"policy":"api","key":"a","settles":[]}"#, "settles: unknown field"),
            ("reset", r#"{"policy":"api","key":"a","reservations":1}"#, "reservations: 1 is not true or false"),
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
