//! Tests of the items of request bodies.

use super::*;

/// Returns the items of a body, each shown as text or the message of its error.
fn items(operation: &str, json: &str) -> Result<Vec<Result<String, String>>, String> {
    let toml = r#"
        [policies]
        api = { algorithm = "fix_window", limit = 5, scale = "1m" }
        day = { algorithm = "fix_window", limit = 9, scale = "1d" }
    "#;
    let config = Config::read(toml::from_str(toml).unwrap()).unwrap();
    let (items, _) = read(&config, operation, serde_json::from_str(json).unwrap()).map_err(|error| error.message)?;
    let shown =
        |item: Item| format!("{} {} {:?}{}", item.object, item.amount, item.policy, item.question.unwrap_or_default());
    Ok(items.into_iter().map(|item| item.map(shown).map_err(|error| error.message)).collect())
}

#[test]
fn a_body_has_one_item_or_a_batch() {
    assert_eq!(items("hit", r#"{"policy":"api","key":"a"}"#).unwrap(), [Ok("/key=1:a 1 None".into())]);
    let many = items("inc", r#"[{"policy":["api","day"],"key":"a","cost":2,"of":"day"},{"policy":"api"}]"#).unwrap();
    assert_eq!(many[0], Ok("/key=1:a 2 Some(\"day\")".into()));
    assert!(many[1].as_ref().unwrap_err().starts_with("key: is required"));
}

#[test]
fn an_item_with_more_than_an_amount_has_a_question() {
    let item = |operation: &str, json: &str| items(operation, json).unwrap().remove(0);
    let api = r#"[{"algorithm":"fix_window","limit":5,"scale":60000,"name":"api"}]"#;
    let question = |object: &str, amount: i64, operation: &str, rest: &str| {
        Ok(format!(r#"{object} {amount} None{{"operation":"{operation}","policies":{api},{rest}}}"#))
    };
    assert_eq!(
        item("hit", r#"{"policy":"api","key":"a","cost":{"api":3}}"#),
        question("/key=1:a", 1, "hit", r#""cost":{"api":3},"key":"sa""#)
    );
    assert_eq!(
        item("reserve", r#"{"policy":"api","key":"a","cost":2,"ttl":"2s"}"#),
        question("/key=1:a", 2, "reserve", r#""cost":2,"ttl":2000,"key":"sa""#)
    );
    assert_eq!(
        item("hit", r#"{"policy":"api","key":"a","cost":2,"undoable":true}"#),
        question("/key=1:a", 2, "hit", r#""cost":2,"key":"sa","undoable":true"#)
    );
    assert_eq!(item("hit", r#"{"policy":"api","key":"a","undoable":false}"#), Ok("/key=1:a 1 None".into()));
    assert_eq!(
        item("undo", r#"{"policy":"api","key":"a","cost":{"api":3},"id":"000000000000002a.lw.3"}"#),
        question("/key=1:a", 1, "undo", r#""cost":{"api":3},"id":"000000000000002a.lw.3","key":"sa""#)
    );
    let id = "0000000000000000000000000000002a.lw.a.sb.c";
    assert_eq!(
        item("settle", &format!(r#"{{"policy":"api","id":"{id}"}}"#)),
        question("/key=3:b.c", 0, "settle", &format!(r#""id":"{id}","key":"sb.c""#))
    );
    let id = "0000000000000000000000000000002a.lw.a.sa";
    assert_eq!(
        item("lease", &format!(r#"{{"policy":"api","key":"a","id":"{id}","cost":1,"used":3,"size":8,"ttl":"2s"}}"#)),
        question("/key=1:a", 1, "lease", &format!(r#""cost":1,"used":3,"size":8,"ttl":2000,"id":"{id}","key":"sa""#))
    );
    assert_eq!(item("lease", r#"{"policy":"api","key":"a"}"#), question("/key=1:a", 0, "lease", r#""key":"sa""#));
    assert_eq!(
        item("reset", r#"{"policy":"api","key":"a","reservations":true}"#),
        question("/key=1:a", 0, "reset", r#""key":"sa","reservations":true"#)
    );
    assert_eq!(item("reset", r#"{"policy":"api","key":"a","reservations":false}"#), Ok("/key=1:a 0 None".into()));
    assert_eq!(
        item("except", r#"{"policy":"api","key":"a","exception":{"api":{"limit":9}},"for":"2s"}"#),
        question("/key=1:a", 0, "except", r#""key":"sa","exception":{"api":{"limit":9}},"for":2000"#)
    );
    assert_eq!(
        item("except", r#"{"policy":"api","key":"a","exception":{"deny":true},"until":5}"#),
        question("/key=1:a", 0, "except", r#""key":"sa","exception":{"deny":true},"until":5"#)
    );
    assert_eq!(
        item("except", r#"{"policy":"api","key":"a","exception":null}"#),
        question("/key=1:a", 0, "except", r#""key":"sa""#)
    );
    assert_eq!(
        item("exceptions", r#"{"policy":"api","key":"a"}"#),
        question("/key=1:a", 0, "exceptions", r#""key":"sa""#)
    );
    assert_eq!(item("inc", r#"{"policy":"api","key":"a","cost":-3}"#), Ok("/key=1:a -3 None".into()));
}

#[test]
fn an_item_may_name_the_key_of_a_rule() {
    let item = |operation: &str, json: &str| items(operation, json).unwrap().remove(0);
    let parts = r#""policy":"api","parts":["ip=::FFFF:192.0.2.7","constant:login"]"#;
    let object = "/ip=9:192.0.2.7/constant=5:login";
    for (operation, more, amount) in [
        ("hit", "", 1),
        ("peek", "", 1),
        ("inc", r#","cost":-2"#, -2),
        ("set", r#","count":3"#, 3),
        ("get", "", 0),
        ("expires_at", "", 0),
        ("reset", "", 0),
    ] {
        assert_eq!(item(operation, &format!("{{{parts}{more}}}")), Ok(format!("{object} {amount} None")));
    }
    assert_eq!(item("get", r#"{"policy":"api","parts":"ip=192.0.2.7"}"#), Ok("/ip=9:192.0.2.7 0 None".into()));
    let reserve = item("reserve", &format!("{{{parts}}}")).unwrap();
    assert!(reserve.ends_with(&format!(r#","key":"o{object}"}}"#)), "{reserve}");
    let reset = item("reset", &format!(r#"{{{parts},"reservations":true}}"#)).unwrap();
    assert!(reset.starts_with(&format!("{object} 0 None{{")), "{reset}");
}

#[test]
fn the_id_of_a_reservation_has_the_key_of_a_rule() {
    let item = |operation: &str, json: &str| items(operation, json).unwrap().remove(0);
    let id = |key: &str| format!("0000000000000000000000000000002a.lw.a.{key}");
    let settled = |key: &str| item("settle", &format!(r#"{{"policy":"api","id":"{}"}}"#, id(key)));
    let own = settled("o/ip=9:192.0.2.7").unwrap();
    assert!(own.starts_with("/ip=9:192.0.2.7 0 None{"), "{own}");
    assert!(own.ends_with(&format!(r#","id":"{}","key":"o/ip=9:192.0.2.7"}}"#, id("o/ip=9:192.0.2.7"))), "{own}");
    // A key of the API may look like the name of an object, and is another one.
    assert!(settled("s/ip=9:192.0.2.7").unwrap().starts_with("/key=15:/ip=9:192.0.2.7 "));
    for broken in ["o", "oa", "o/ip=8:192.0.2.7", "r/ip=9:192.0.2.7", "o/wrong-tokens=9:192.0.2.7"] {
        assert!(settled(broken).unwrap_err().starts_with("id: "), "{broken}");
    }
    let lease = |parts: &str, key: &str| item("lease", &format!(r#"{{"policy":"api",{parts},"id":"{}"}}"#, id(key)));
    assert!(lease(r#""parts":"ip=192.0.2.7""#, "o/ip=9:192.0.2.7").is_ok());
    for (parts, key) in [
        (r#""parts":"ip=192.0.2.8""#, "o/ip=9:192.0.2.7"),
        (r#""parts":"ip=192.0.2.7""#, "s/ip=9:192.0.2.7"),
        (r#""key":"/ip=9:192.0.2.7""#, "o/ip=9:192.0.2.7"),
    ] {
        assert!(lease(parts, key).unwrap_err().starts_with("id: "), "{parts} {key}");
    }
}

#[test]
fn errors_are_named() {
    for (operation, json, start) in [
        ("hit", "3", "3 is not an object"),
        ("hit", r#"{"key":"a"}"#, "policy: is required"),
        ("hit", r#"{"policy":7,"key":"a"}"#, "policy: 7"),
        ("hit", r#"{"policy":["api",null],"key":"a"}"#, "policy[1]: is required"),
        ("hit", r#"{"policy":"other","key":"a"}"#, "policy: \"other\" is not one of api, day"),
        ("hit", r#"{"policy":["api","api"],"key":"a"}"#, "name: two policies are named \"api\""),
        ("hit", r#"{"policy":"api","key":""}"#, "key: an empty string"),
        ("hit", r#"{"policy":"api","key":1}"#, "key: 1"),
        ("hit", r#"{"policy":"api"}"#, "key: is required (a string of 1 to 1024 UTF-8 bytes, or parts with"),
        ("hit", r#"{"policy":"api","key":"a","parts":"ip=::1"}"#, "parts: there is a key too; use one of them"),
        ("hit", r#"{"policy":"api","parts":[]}"#, "parts: an empty list is not a key; expected \"ip=<address>\""),
        ("hit", r#"{"policy":"api","parts":7}"#, "parts: 7 is not \"ip=<address>\""),
        ("hit", r#"{"policy":"api","parts":["ip=::1",null]}"#, "parts[1]: is required (\"ip=<address>\""),
        ("hit", r#"{"policy":"api","parts":["ip"]}"#, "parts[0]: \"ip\" is not \"ip=<address>\""),
        ("hit", r#"{"policy":"none","parts":"ip=::1"}"#, "policy: \"none\" is not one of"),
        ("settle", r#"{"policy":"api","parts":"ip=::1"}"#, "id: is required"),
        ("hit", r#"{"policy":"api","key":"a","cost":0.5}"#, "cost: 0.5 is not"),
        ("hit", r#"{"policy":"api","key":"a","count":1}"#, "count: unknown field"),
        ("hit", r#"{"policy":"api","key_":"a"}"#, "key: is required"),
        ("hit", r#"{"policy":"api","key":"a","cost_":2}"#, "cost_: unknown field"),
        ("hit", r#"{"policy":"api","key":"a","cost":null}"#, "cost: null is not an integer"),
        ("hit", r#"{"policy":"api","key":"a","cost":{}}"#, "cost: an object is not an integer"),
        ("hit", r#"{"policy":"api","key":"a","cost":[]}"#, "cost: a list is not an integer"),
        ("peek", r#"{"policy":"api","key":"a","cost":"1"}"#, "cost: \"1\" is not an integer"),
        ("reserve", r#"{"policy":"api","key":"a","cost":null}"#, "cost: null is not an integer"),
        ("reserve", r#"{"policy":"api","key":"a","cost":{"api":null}}"#, "cost.api"),
        ("inc", r#"{"policy":"api","key":"a","cost":null}"#, "cost: null is not an integer from -"),
        ("lease", r#"{"policy":"api","key":"a","cost":null,"used":0,"size":1}"#, "cost: null is not an integer"),
        ("hit", r#"{"policy":"api","key":"a","cost":{"api":-1}}"#, "cost.api: -1 is not an integer"),
        ("hit", r#"{"policy":"api","key":"a","cost":{"day":1}}"#, "cost: \"day\" is not one of api"),
        ("inc", r#"{"policy":"api","key":"a","cost":0.5}"#, "cost: 0.5 is not an integer from -9007199254740991"),
        ("reserve", r#"{"policy":"api","key":"a","ttl":"2d"}"#, "ttl: \"2d\" is not"),
        ("reserve", r#"{"policy":"api","key":"a","undoable":true}"#, "undoable: unknown field"),
        ("hit", r#"{"policy":"api","key":"a","undoable":1}"#, "undoable: 1 is not true or false"),
        ("undo", r#"{"policy":"api","key":"a"}"#, "id: is required (the id of a hit, as hit returned it)"),
        ("undo", r#"{"policy":"api","key":"a","id":"lost"}"#, "id: \"lost\" is not the id of a hit"),
        ("undo", r#"{"policy":"api","id":"000000000000002a.lw.3"}"#, "key: is required"),
        ("settle", r#"{"policy":"api","key":"a"}"#, "id: is required"),
        ("settle", r#"{"policy":"api","id":"lost"}"#, "id: \"lost\" is not"),
        ("extend", r#"{"policy":"api","id":"0000000000000000000000000000002a.lw.a.sa"}"#, "ttl is required"),
        ("lease", r#"{"policy":"api"}"#, "key: is required"),
        ("lease", r#"{"policy":"api","key":"a","cost":{"api":1}}"#, "cost: an object is not an integer from 0"),
        ("lease", r#"{"policy":"api","key":"a","used":-1}"#, "used: -1 is not an integer from 0"),
        ("lease", r#"{"policy":"api","key":"a","size":0.5}"#, "size: 0.5 is not an integer from 0"),
        ("lease", r#"{"policy":"api","key":"a","ttl":10001}"#, "ttl: 10001 is not a duration of at most ten seconds"),
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
        ("lease", r#"{"policy":"api","key":"a","undoable":true}"#, "undoable: unknown field"),
        ("reset", r#"{"policy":"api","key":"a","reservations":1}"#, "reservations: 1 is not true or false"),
        ("except", r#"{"policy":"api","key":"a","for":"1h"}"#, "exception: is required"),
        ("except", r#"{"policy":"api","key":"a","exception":{"deny":true}}"#, "until: is required"),
        ("except", r#"{"policy":"api","key":"a","exception":{"deny":true},"for":"401d"}"#, "for: 34646400000 is not"),
        ("except", r#"{"policy":"api","key":"a","exception":{"day":9},"for":1}"#, "exception: \"day\" is not a field"),
        ("except", r#"{"policy":"api","key":"a","exception":{"deny":true},"for":1,"until":2}"#, "for: there is an end"),
        ("exceptions", r#"{"policy":"api","key":"a","for":1}"#, "for: unknown field"),
        ("set", r#"{"policy":"api","key":"a"}"#, "count: is required"),
        ("get", r#"{"policy":"api","key":"a","of":"day"}"#, "of: \"day\" is not one of api"),
        ("get", r#"{"policy":["api","day"],"key":"a"}"#, "of: is required with several policies"),
    ] {
        let problem = items(operation, json).unwrap().remove(0).unwrap_err();
        assert!(problem.starts_with(start), "{json}: {problem}");
    }
    assert!(items("hit", "[]").unwrap_err().starts_with("a batch of 0"));
    assert!(items("hit", &format!("[{}1]", "1,".repeat(100))).unwrap_err().starts_with("a batch of 101"));
}
