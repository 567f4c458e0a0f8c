//! Invalid input: each is a typed error that names the field and what is accepted, and changes no state.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use serde_json::{Value, json};
use tollgate::{
    ALGORITHMS, Costs, Denied, Error, Exception, Ledger, Limiter, MAX, MAX_EXCEPTION, ManualClock, Operation, Options,
    Policies, Policy, PolicyDraft, Record, ReservationId, Reserve, Snapshot, StoreLimiter, Value as Given, check_key,
    step,
};

const INTEGER: &str = "an integer from 1 to 9007199254740991";
const DURATION: &str = "milliseconds or a string such as \"500ms\", \"1s\", \"5m\", \"1h\" or \"1d\"";
const SCALE: &str =
    "milliseconds, a string such as \"500ms\", \"1s\", \"5m\", \"1h\" or \"1d\", or \"day\", \"week\" or \"month\"";
const TOO_LARGE: &str = "a number above 9007199254740991";
const NEGATIVE: &str = "a negative number";

/// An error of this code whose message has all of these words.
#[track_caller]
fn assert_error(error: &Error, code: &str, words: &[&str]) {
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

#[track_caller]
fn from_json(policy: &Value) -> Error {
    let draft: PolicyDraft = serde_json::from_value(policy.clone()).unwrap();
    let error = draft.build().unwrap_err();
    // As the format's own error it says the same.
    let told = serde_json::from_value::<Policy>(policy.clone()).unwrap_err().to_string();
    assert!(told.contains(&error.to_string()), "{told}");
    error
}

#[track_caller]
fn from_toml(policy: &str) -> Error {
    toml::from_str::<PolicyDraft>(policy).unwrap().build().unwrap_err()
}

/// Each algorithm with good numbers, the names of its whole numbers, and that of its duration.
fn good() -> Vec<(Value, Vec<&'static str>, &'static str)> {
    let window = |name: &&str| (json!({ "algorithm": name, "limit": 5, "scale": "1s" }), vec!["limit"], "scale");
    let mut all: Vec<_> = ALGORITHMS[..4].iter().map(window).collect();
    for (name, rate) in [("token_bucket", "refillRate"), ("leaky_bucket", "leakRate")] {
        all.push((json!({ "algorithm": name, "capacity": 5, rate: 5, "per": "1s" }), vec!["capacity", rate], "per"));
    }
    all.push((json!({ "algorithm": "concurrency", "limit": 5, "ttl": "1s" }), vec!["limit"], "ttl"));
    // Those of a ban are in `errors.json`.
    assert_eq!(all.len(), ALGORITHMS.len() - 1);
    all
}

#[test]
fn limits_rates_and_capacities() {
    let bad = [
        (json!(0), "0"),
        (json!(-1), "-1"),
        (json!(-0.5), "-0.5"),
        (json!(1.5), "1.5"),
        (json!(0.0001), "a fraction"),
        (json!(MAX + 1), TOO_LARGE),
        (json!(u64::MAX), TOO_LARGE),
        (json!(1e300), TOO_LARGE),
        (json!("5"), "\"5\""),
        (json!(true), "true"),
        (json!([5]), "an array"),
        (json!({ "limit": 5 }), "an object"),
    ];
    for (policy, fields, _) in good() {
        serde_json::from_value::<Policy>(policy.clone()).unwrap();
        for field in fields {
            for (value, found) in &bad {
                let mut policy = policy.clone();
                policy[field] = value.clone();
                let expected = format!("{field}: {found} is not {INTEGER}");
                assert_error(&from_json(&policy), "invalid_policy", &[&expected]);
            }
            let mut without = policy.clone();
            without.as_object_mut().unwrap().remove(field);
            let mut null = policy.clone();
            null[field] = json!(null);
            for policy in [without, null] {
                let expected = format!("{field} is required ({INTEGER})");
                assert_error(&from_json(&policy), "invalid_policy", &[&expected]);
            }
        }
    }
}

#[test]
fn numbers_that_only_toml_can_write() {
    for (value, found) in [
        ("nan", "NaN"),
        ("inf", TOO_LARGE),
        ("-inf", "a negative number"),
        ("-3", "-3"),
        ("0", "0"),
        ("2.5", "2.5"),
        ("9007199254740992", TOO_LARGE),
    ] {
        let error = from_toml(&format!("algorithm = \"fix_window\"\nlimit = {value}\nscale = \"1s\""));
        assert_error(&error, "invalid_policy", &[&format!("limit: {found} is not {INTEGER}")]);
        let error = from_toml(&format!("algorithm = \"leaky_bucket\"\ncapacity = 1\nleak_rate = {value}"));
        assert_error(&error, "invalid_policy", &[&format!("leakRate: {found} is not {INTEGER}")]);
    }
    let error = from_toml("algorithm = \"fix_window\"\nlimit = 1979-05-27T07:32:00Z\nscale = 1");
    assert_error(&error, "invalid_policy", &["limit: ", INTEGER]);
}

#[test]
fn durations() {
    let bad = [
        json!(0),
        json!(-1),
        json!(0.5),
        json!(MAX + 1),
        json!(""),
        json!("0s"),
        json!("1"),
        json!("s"),
        json!("1.5h"),
        json!("-1s"),
        json!("+1s"),
        json!(" 1s"),
        json!("1 s"),
        json!("1S"),
        json!("1sec"),
        json!("1m30s"),
        json!("1mo"),
        json!("14892857w"),
        json!("104249992d"),
        json!("99999999999999999999s"),
        json!(false),
        json!([1]),
    ];
    for (policy, _, field) in good() {
        let (expected, forms) = match policy["algorithm"] == "fix_window" {
            true => (" is not a duration or a unit of the calendar", SCALE),
            false => (" is not a duration", DURATION),
        };
        for value in &bad {
            let mut policy = policy.clone();
            policy[field] = value.clone();
            assert_error(&from_json(&policy), "invalid_policy", &[&format!("{field}: "), expected, "; use ", forms]);
        }
    }
    assert_error(&Policy::fix_window(1, 0).unwrap_err(), "invalid_policy", &["scale: 0", DURATION]);
    assert_error(&Policy::fix_window(1, "soon").unwrap_err(), "invalid_policy", &["scale: \"soon\"", DURATION]);
    let endless = std::time::Duration::MAX;
    assert_error(&Policy::fix_window(1, endless).unwrap_err(), "invalid_policy", &["scale: ", DURATION]);
    let error = from_json(&json!({ "algorithm": "fix_window", "limit": 1 }));
    assert_error(&error, "invalid_policy", &[&format!("scale is required ({SCALE})")]);
}

#[test]
fn bans() {
    let number = "an integer from 1 to 1000";
    assert_error(&Policy::ban(0, 1, 1).unwrap_err(), "invalid_policy", &["after: 0", number]);
    assert_error(&Policy::ban(1_001, 1, 1).unwrap_err(), "invalid_policy", &["after: 1001", number]);
    assert_error(&Policy::ban(1, 0, 1).unwrap_err(), "invalid_policy", &["scale: 0", DURATION]);
    assert_error(&Policy::ban(1, 1, "soon").unwrap_err(), "invalid_policy", &["for: \"soon\"", DURATION]);
    let ban = Policy::ban(1, 1, 10).unwrap();
    assert_error(&ban.clone().growing(1, 10).unwrap_err(), "invalid_policy", &["factor: 1", "from 2 to 1000"]);
    assert_error(&ban.clone().growing(2, 9).unwrap_err(), "invalid_policy", &["most: 9", "at least"]);
    assert_error(&ban.clone().denied(Denied::Count).unwrap_err(), "invalid_policy", &["denied"]);
    let window = Policy::fix_window(1, 1).unwrap();
    assert_error(&window.clone().growing(2, 9).unwrap_err(), "unknown_field", &["factor", "fix_window"]);

    let mut limiter = Limiter::<u8, _>::new([window.clone(), ban.clone()], ManualClock::new(0)).unwrap();
    assert_error(&limiter.set_policy(&1, 1, Some("ban")).unwrap_err(), "ban_only", &["set", "docs/bans.md"]);
    assert_error(&limiter.inc_policy(&1, 1, Some("ban")).unwrap_err(), "ban_only", &["inc", "docs/bans.md"]);
    assert_error(&limiter.ban(&1, 0).unwrap_err(), "invalid_option", &["for: 0", DURATION]);
    assert_error(&limiter.ban_policy(&1, 1, Some("fix_window")).unwrap_err(), "unknown_policy", &["one of ban"]);
    assert!(limiter.is_empty());
    let mut none = Limiter::<u8, _>::new(window, ManualClock::new(0)).unwrap();
    assert_error(&none.ban(&1, 1).unwrap_err(), "unknown_policy", &["has no ban"]);
    assert_error(&none.unban(&1).unwrap_err(), "unknown_policy", &["has no ban"]);
    let mut two = Limiter::<u8, _>::new([ban.clone(), ban], ManualClock::new(0)).unwrap();
    assert_error(&two.unban(&1).unwrap_err(), "unknown_policy", &["where there are several (one of ban, ban-2)"]);
}

#[test]
fn exceptions() {
    let with = |field, value: Given| Exception::new().with("api", field, value).unwrap_err();
    let fields = "use one of limit, capacity, refillRate, leakRate, after, for, factor, most";
    for field in ["scale", "allow", "deny", "name", ""] {
        let error = with(field, 1_u64.into());
        assert_error(&error, "unknown_field", &[&format!("{field:?} is not a field of an exception; {fields}")]);
    }
    let number = "an integer from 1 to 9007199254740991";
    assert_error(&with("limit", 0_u64.into()), "invalid_option", &["api.limit: 0", number]);
    assert_error(&with("limit", "5".into()), "invalid_option", &["api.limit: \"5\"", number]);
    assert_error(&with("refill_rate", u64::MAX.into()), "invalid_option", &["api.refillRate: a number above", number]);
    assert_error(&with("after", 1_001_u64.into()), "invalid_option", &["api.after: 1001", "from 1 to 1000"]);
    assert_error(&with("for", "soon".into()), "invalid_option", &["api.for: \"soon\"", DURATION]);
    let once = Exception::new().with("api", "leakRate", 5_u64).unwrap();
    assert_error(
        &once.with("api", "leak_rate", 5_u64).unwrap_err(),
        "invalid_option",
        &["api.leakRate: a second value"],
    );
    let mut denied = Exception::new();
    assert_error(
        &denied.push("", "deny", &Given::Bool(false)).unwrap_err(),
        "invalid_option",
        &["deny: false", "true"],
    );

    let policies = [Policy::sliding_window(5, "1h").unwrap(), Policy::token_bucket(5, 1, "1h").unwrap()];
    let clock = ManualClock::new(1_000);
    let mut limiter = Limiter::<u8, _>::new(policies.clone(), &clock).unwrap();
    let named = |name: &str, field, number: u64| Exception::new().with(name, field, number).unwrap();
    let except =
        |limiter: &mut Limiter<u8, _>, exception: &Exception| limiter.except_for(&1, exception, 1).unwrap_err();
    assert_error(&except(&mut limiter, &Exception::new()), "invalid_option", &["exception: an empty object"]);
    let mut both = Exception::allow();
    both.push("", "deny", &Given::Bool(true)).unwrap();
    assert_error(&except(&mut limiter, &both), "invalid_option", &["with allow or deny and more"]);
    assert_error(&except(&mut limiter, &named("api", "limit", 1)), "unknown_policy", &["\"api\"", "sliding_window"]);
    assert_error(
        &except(&mut limiter, &named("", "limit", 1)),
        "unknown_policy",
        &["is required where there are several"],
    );
    let wide = named("token_bucket", "capacity", tollgate::MAX);
    assert_error(&except(&mut limiter, &wide), "invalid_option", &["token_bucket.capacity: 9007", "the rate fills"]);
    let deny = Exception::deny();
    for until in [0, 1_000, 1_001 + MAX_EXCEPTION, u64::MAX] {
        let error = limiter.except(&1, &deny, until).unwrap_err();
        assert_error(&error, "invalid_option", &["until: ", "a time within the next 400 days"]);
    }
    assert_error(&limiter.except_for(&1, &deny, "401d").unwrap_err(), "invalid_option", &["for: ", "at most 400 days"]);
    assert!(limiter.is_empty());
    assert_eq!(limiter.except(&1, &deny, 1_000 + MAX_EXCEPTION), Ok(1_000 + MAX_EXCEPTION));

    let mut ledger = Ledger::new(policies).unwrap();
    let long = named("sliding_window", "limit", 1_001);
    let error = ledger.apply(Operation::Except { exception: Some(&long), until: 5 }, 0).unwrap_err();
    assert_error(&error, "invalid_option", &["sliding_window.limit: 1001", "stored outside the process"]);
    assert_eq!(ledger.record(0), Ok(None));
    for json in ["5", "[]", r#"{"api":[]}"#, r#"{"api":{"scale":1}}"#, r#"{"allow":false}"#, r#"{"api":{"limit":1.5}}"#]
    {
        assert!(serde_json::from_str::<Exception>(json).is_err(), "{json}");
    }
    for json in [r#"{"api":{"limit":5,"for":60000}}"#, r#"{"deny":true}"#, r#"{"allow":true}"#, r#"{"limit":7}"#, "{}"]
    {
        let exception: Exception = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&exception).unwrap(), json);
    }
}

#[test]
fn costs_of_a_ban() {
    let policies = [Policy::fix_window(1, 1).unwrap(), Policy::ban(1, 1, 10).unwrap()];
    let mut limiter = Limiter::<u8, _>::new(policies, ManualClock::new(0)).unwrap();
    let named = Costs::ByPolicy(&[("ban", 2)]);
    for error in [limiter.hit_costs(&1, named), limiter.peek_costs(&1, named)].map(Result::unwrap_err) {
        assert_error(&error, "ban_only", &["\"ban\" is a ban, which a cost cannot change", "docs/bans.md"]);
    }
    assert_error(&limiter.reserve(&1, Reserve::new(1).costs(named)).unwrap_err(), "ban_only", &["a cost"]);
    let reservation = limiter.reserve(&1, Reserve::new(1)).unwrap().reservation.unwrap();
    assert_error(&limiter.settle(reservation, Some(named)).unwrap_err(), "ban_only", &["a cost"]);
}

#[test]
fn the_longest_durations_are_accepted() {
    assert_eq!(Policy::fix_window(1, MAX).unwrap().scale(), MAX);
    assert_eq!(Policy::fix_window(MAX, "104249991d").unwrap().limit(), MAX);
    assert_eq!(Policy::token_bucket(1, 1, MAX).unwrap().period(), MAX);
}

#[test]
fn a_bucket_that_takes_longer_than_all_of_time_to_fill() {
    for policy in [Policy::token_bucket(2, 1, MAX), Policy::leaky_bucket(MAX, 1, 2)] {
        assert_error(&policy.unwrap_err(), "invalid_policy", &["capacity: ", "fills within 9007199254740991 ms"]);
    }
}

#[test]
fn unknown_algorithms() {
    for (value, start) in [
        (json!("gcra"), "algorithm: \"gcra\" is not an algorithm; use one of "),
        (json!("Fix_Window"), "algorithm: \"Fix_Window\" is not an algorithm; use one of "),
        (json!(7), "algorithm: 7 is not an algorithm; use one of "),
        (json!(null), "algorithm is required (one of "),
    ] {
        let error = from_json(&json!({ "algorithm": value, "limit": 1, "scale": 1 }));
        assert_error(&error, "unknown_algorithm", &[start, &ALGORITHMS.join(", ")]);
    }
    assert_error(&from_json(&json!({})), "unknown_algorithm", &["algorithm is required", "sliding_counter"]);
}

#[test]
fn unknown_fields() {
    for (policy, mut fields, duration) in good() {
        fields.extend(["algorithm", "name", "unit", duration]);
        if duration != "ttl" {
            fields.push("denied");
        }
        for unknown in ["limits", "Limit", "refill-rate", "tti", ""] {
            let mut policy = policy.clone();
            policy[unknown] = json!(1);
            let error = from_json(&policy);
            assert_error(&error, "unknown_field", &[&format!("\"{unknown}\" is not a field of ")]);
            assert_error(&error, "unknown_field", &fields);
        }
    }
    // Another algorithm's field is unknown to this one.
    let error = from_json(&json!({ "algorithm": "token_bucket", "capacity": 1, "leakRate": 1 }));
    assert_error(&error, "unknown_field", &["leakRate", "refillRate"]);
    let error = from_json(&json!({ "algorithm": "fix_window", "limit": 1, "scale": 1, "per": 1 }));
    assert_error(&error, "unknown_field", &["per", "scale"]);
}

#[test]
fn a_field_twice() {
    let both = json!({ "algorithm": "token_bucket", "capacity": 1, "refillRate": 1, "refill_rate": 1 });
    assert_error(
        &from_json(&both),
        "invalid_policy",
        &["refillRate: a second value is not accepted; give the field once"],
    );
    let twice = r#"{ "algorithm": "fix_window", "limit": 1, "limit": 100, "scale": 1 }"#;
    let error = serde_json::from_str::<PolicyDraft>(twice).unwrap().build().unwrap_err();
    assert_error(&error, "invalid_policy", &["limit: a second value", "the field once"]);
    let twice = r#"{ "algorithm": "fix_window", "algorithm": "sliding_window", "limit": 1, "scale": 1 }"#;
    let error = serde_json::from_str::<PolicyDraft>(twice).unwrap().build().unwrap_err();
    assert_error(&error, "invalid_policy", &["algorithm: a second value"]);
}

#[test]
fn what_is_no_policy_at_all() {
    for text in ["7", "\"fix_window\"", "[]", "null", "true"] {
        let message = serde_json::from_str::<Policy>(text).unwrap_err().to_string();
        let accepted = "an object such as { algorithm: \"fix_window\", limit: 100, scale: \"1m\" }";
        assert!(message.contains(accepted), "{message}");
        assert_error(&Policy::from_json(text).unwrap_err(), "invalid_policy", &["policy", accepted]);
    }
    for text in ["", "{", "fix_window", "{}{}"] {
        let error = Policy::from_json(text).unwrap_err();
        assert_eq!(error.to_string(), "policy: the text is not JSON");
        assert_eq!(error.code(), "invalid_policy");
    }
}

#[test]
fn names() {
    let policy = || Policy::fix_window(1, 1).unwrap();
    for name in ["", "new\nline", "tab\t", "caf\u{e9}", "\u{7f}", &"n".repeat(65)] {
        let error = policy().named(name).unwrap_err();
        assert_error(&error, "invalid_policy", &["name: ", "1 to 64 printable ASCII characters"]);
        let json = json!({ "algorithm": "fix_window", "limit": 1, "scale": 1, "name": name });
        assert_eq!(from_json(&json), error);
    }
    let number = json!({ "algorithm": "fix_window", "limit": 1, "scale": 1, "name": 7 });
    assert_error(&from_json(&number), "invalid_policy", &["name: 7", "printable ASCII"]);
    let twice = policy().named("burst").unwrap();
    let error = Policies::new([twice.clone(), policy(), twice]).unwrap_err();
    assert_error(&error, "invalid_policy", &["name: two policies are named \"burst\""]);
    assert_error(
        &Policies::new([]).unwrap_err(),
        "invalid_policy",
        &["policies: an empty array", "use 1 to 32 policies"],
    );
    let many = std::iter::repeat_with(policy).take(33);
    assert_error(
        &Policies::new(many).unwrap_err(),
        "invalid_policy",
        &["an array of more than 32", "use 1 to 32 policies"],
    );
}

#[test]
fn unit() {
    for (value, found) in
        [(json!(""), "\"\""), (json!("é"), "\"é\""), (json!(7), "7"), (json!("x".repeat(65)), "\"xxx")]
    {
        let json = json!({ "algorithm": "concurrency", "limit": 1, "unit": value });
        assert_error(&from_json(&json), "invalid_policy", &[&format!("unit: {found}"), "a unit", "1 to 64 printable"]);
    }
    let error = Policy::fix_window(1, 1).unwrap().unit("new\nline").unwrap_err();
    assert_error(&error, "invalid_policy", &["unit: ", "a unit"]);
}

#[test]
fn denied() {
    let json = json!({ "algorithm": "fix_window", "limit": 1, "scale": 1, "denied": "maybe" });
    assert_error(&from_json(&json), "invalid_policy", &["denied: \"maybe\"", "\"count\" or \"free\""]);
    for policy in [Policy::token_bucket(1, 1, 1).unwrap(), Policy::leaky_bucket(1, 1, 1).unwrap()] {
        let error = policy.denied(Denied::Count).unwrap_err();
        assert_error(&error, "invalid_policy", &["denied: \"count\"", "\"free\"", "bucket"]);
    }
    let counts = Policy::fix_window(1, 1).unwrap().denied(Denied::Count).unwrap();
    let error = Policies::new([counts.clone(), Policy::fix_window(2, 2).unwrap()]).unwrap_err();
    assert_error(&error, "invalid_policy", &["denied: \"count\"", "\"free\"", "several"]);
    // With one policy, in an array or not, it applies.
    assert!(Limiter::<u8, _>::new([counts], ManualClock::new(0)).is_ok());
}

#[test]
fn keys_that_may_not_leave_the_process() {
    for (key, found) in [
        (String::new(), "an empty string is not a string of"),
        ("k".repeat(1_025), "1025 bytes"),
        ("é".repeat(513), "1026 bytes"),
    ] {
        let error = check_key(&key).unwrap_err();
        assert_error(&error, "invalid_key", &["key: ", found, "1 to 1024 UTF-8 bytes"]);
        let store = Limiter::<String, _>::new(Policy::fix_window(1, 1).unwrap(), ManualClock::new(0)).unwrap();
        let mut limiter = StoreLimiter::new(Policy::fix_window(1, 1).unwrap(), store, ManualClock::new(0)).unwrap();
        assert_eq!(limiter.apply(&key, Operation::Hit { cost: 1 }), Err(error.into()));
        assert!(limiter.store().is_empty());
    }
    assert!(check_key(&"é".repeat(512)).is_ok());
}

/// A limiter of each algorithm with one key in use.
fn in_use(clock: &ManualClock) -> Vec<Limiter<u8, &ManualClock>> {
    let limiter = |(policy, _, _)| {
        let policy: Policy = serde_json::from_value(policy).unwrap();
        let mut limiter = Limiter::new(policy, clock).unwrap();
        limiter.hit(&1, 2).unwrap();
        limiter
    };
    // A concurrency limit has no hits.
    good().into_iter().filter(|(_, _, duration)| *duration != "ttl").map(limiter).collect()
}

#[test]
fn costs_and_counts() {
    let clock = ManualClock::new(1_000);
    for mut limiter in in_use(&clock) {
        let before = limiter.snapshot().unwrap();
        let call = limiter.policies().clone();
        for cost in [MAX + 1, u64::MAX] {
            for error in [
                limiter.hit(&1, cost).unwrap_err(),
                limiter.hit_with(&1, cost, &call).unwrap_err(),
                limiter.peek(&1, cost).unwrap_err(),
                limiter.hit(&2, cost).unwrap_err(),
            ] {
                let expected = format!("cost: {TOO_LARGE} is not an integer from 0 to 9007199254740991");
                assert_error(&error, "invalid_cost", &[&expected]);
            }
            for (cost, found) in [(MAX as i64 + 1, TOO_LARGE), (i64::MAX, TOO_LARGE), (i64::MIN, NEGATIVE)] {
                let expected = format!("cost: {found} is not an integer from -{MAX} to {MAX}");
                assert_error(&limiter.inc(&1, cost).unwrap_err(), "invalid_cost", &[&expected]);
            }
            let most = if limiter.policies().name(0) == "token_bucket" { 5 } else { MAX };
            let expected = format!("count: {TOO_LARGE} is not an integer from 0 to {most}");
            assert_error(&limiter.set(&1, cost).unwrap_err(), "invalid_count", &[&expected]);
        }
        if limiter.policies().name(0) == "token_bucket" {
            assert_error(&limiter.set(&1, 6).unwrap_err(), "invalid_count", &["count: 6", "from 0 to 5"]);
        }
        assert_eq!(limiter.snapshot().unwrap(), before);
        assert_eq!(limiter.len(), 1);
    }
}

#[test]
fn a_clock_out_of_range() {
    let clock = ManualClock::new(1_000);
    for mut limiter in in_use(&clock) {
        let before = limiter.snapshot().unwrap();
        for now in [MAX + 1, u64::MAX] {
            clock.set(now);
            for error in [
                limiter.hit(&1, 1).unwrap_err(),
                limiter.peek(&1, 1).unwrap_err(),
                limiter.inc(&1, 1).unwrap_err(),
                limiter.set(&1, 1).unwrap_err(),
                limiter.get(&1).unwrap_err(),
                limiter.expires_at(&1).unwrap_err(),
                limiter.clean().unwrap_err(),
                limiter.snapshot().unwrap_err(),
                limiter.restore(&before).unwrap_err(),
            ] {
                let accepts = "milliseconds since the epoch, from 0 to 9007199254740991";
                assert_error(&error, "invalid_time", &["clock: ", TOO_LARGE, accepts]);
            }
            let policies = limiter.policies().clone();
            let error = step(&policies, None, Operation::Hit { cost: 1 }, now).unwrap_err();
            assert_eq!(error.code(), "invalid_time");
        }
        clock.set(1_000);
        assert_eq!(limiter.snapshot().unwrap(), before);
    }
}

#[test]
fn options() {
    for (keys, found) in [(0, "0"), (4_294_967_295, "4294967295"), (u64::MAX, TOO_LARGE)] {
        let error = Options::new().max_keys(keys).unwrap_err();
        let expected = format!("max_keys: {found} is not an integer from 1 to 4294967294");
        assert_error(&error, "invalid_option", &[&expected]);
    }
    for (error, option) in [
        (Options::new().clean_period(0).unwrap_err(), "clean_period: 0"),
        (Options::new().clean_period("soon").unwrap_err(), "clean_period: \"soon\""),
        (Options::new().key_older_than(MAX + 1).unwrap_err(), "key_older_than: a number above 9007199254740991"),
        (Options::new().key_older_than("").unwrap_err(), "key_older_than: \"\""),
    ] {
        assert_error(&error, "invalid_option", &[option, DURATION]);
    }
}

#[test]
fn numbers_for_one_call_that_do_not_fit_the_limiter() {
    let clock = ManualClock::new(1_000);
    for mut limiter in in_use(&clock) {
        let before = limiter.snapshot().unwrap();
        let own = serde_json::to_value(limiter.policies().iter().next().unwrap()).unwrap();
        for (other, _, field) in good() {
            let policy: Policy = serde_json::from_value(other.clone()).unwrap();
            if own["algorithm"] != other["algorithm"] {
                let error = limiter.hit_with(&1, 1, &policy.into()).unwrap_err();
                let words = ["algorithm", other["algorithm"].as_str().unwrap(), own["algorithm"].as_str().unwrap()];
                assert_error(&error, "policy_mismatch", &words);
                continue;
            }
            let mut slower = other.clone();
            slower[field] = json!(1_001);
            let slower: Policy = serde_json::from_value(slower).unwrap();
            let error = limiter.hit_with(&1, 1, &slower.into()).unwrap_err();
            assert_error(&error, "policy_mismatch", &[&format!("{field} 1001 ms"), "accepts 1000 ms only"]);
        }
        let two = Policies::new([Policy::fix_window(1, 1).unwrap(), Policy::fix_window(1, 1).unwrap()]).unwrap();
        assert_error(
            &limiter.hit_with(&1, 1, &two).unwrap_err(),
            "policy_mismatch",
            &["policies of this call is 2", "accepts 1 only"],
        );
        assert_eq!(limiter.snapshot().unwrap(), before);
    }
}

#[test]
fn names_of_policies_there_are_not() {
    let two = [Policy::fix_window(9, "1s").unwrap(), Policy::token_bucket(9, 9, "1s").unwrap()];
    let mut limiter = Limiter::<u8, _>::new(two, ManualClock::new(0)).unwrap();
    for (name, words) in [(None, "policy is required where there are several"), (Some("burst"), "policy: \"burst\"")] {
        for error in [
            limiter.inc_policy(&1, 1, name).unwrap_err(),
            limiter.set_policy(&1, 1, name).unwrap_err(),
            limiter.get_policy(&1, name).unwrap_err(),
            limiter.expires_at_policy(&1, name).unwrap_err(),
        ] {
            assert_error(&error, "unknown_policy", &[words, "one of fix_window, token_bucket"]);
        }
    }
    assert!(limiter.is_empty());
}

#[test]
fn a_log_that_is_too_long_to_store() {
    let policy = Policy::sliding_window(1_001, "1m").unwrap();
    for error in [
        Ledger::new(policy.clone()).unwrap_err(),
        step(&policy.clone().into(), None, Operation::Get { policy: None }, 0).unwrap_err(),
    ] {
        assert_error(
            &error,
            "invalid_policy",
            &["limit: 1001 is not accepted", "use at most 1000, or sliding_counter"],
        );
    }
    assert!(Ledger::new(Policy::sliding_window(1_000, "1m").unwrap()).is_ok());
}

/// Numbers that no state of the algorithm has.
fn garbage(algorithm: &str) -> Vec<Value> {
    let (huge, beyond) = (json!(MAX), json!(MAX + 1));
    let common = vec![
        json!([1]),
        json!([-1, 1]),
        json!([1_000, 1, 1, 1, 1, 1, 9_000]),
        json!([i64::MIN, 0]),
        json!([i64::MAX, 0]),
    ];
    let own = match algorithm {
        "fix_window" => {
            vec![json!([1_001, 1]), json!([1_000, -1]), json!([beyond, 1]), json!([0, beyond]), json!([0, 0, 0])]
        }
        "fix_window_per_key" => vec![json!([1_000, -1]), json!([beyond, 1]), json!([0, beyond]), json!([0, 0, 0])],
        "sliding_window" => vec![
            json!([1_000, 0]),
            json!([1_000, -1]),
            json!([1_000, 1, 0, 1]),
            json!([1_000, 1, -1, 1]),
            json!([huge, 1, 1, 1]),
            json!([1_000, beyond]),
            json!([i64::MAX, 1, i64::MAX, 1]),
        ],
        "sliding_counter" => {
            vec![
                json!([]),
                json!([1_001, 1, 1]),
                json!([0, -1, 0]),
                json!([0, 0, beyond]),
                json!([beyond, 0, 0]),
                json!([0, 0]),
            ]
        }
        _ => vec![
            json!([]),
            json!([1_000, 1, 0]),
            json!([1_000, 1, -1, 1, 1]),
            json!([1_000, 1, 1_000, 1, 1]),
            json!([1_000, beyond, 0, 1, 1]),
            json!([1_000, huge, 1, 1, 1]),
            json!([beyond, 1, 0, 1, 1]),
            json!([1_000, i64::MIN, 0, 1, 1]),
            json!([1_000, -1, 0, 1, 1]),
            json!([1_000, 1, 0, 0, 1]),
            json!([1_000, 1, 0, beyond, 1]),
            json!([1_000, 1, 0, 1, -1]),
            json!([1_000, 1, 0, 1, 2_047]),
            json!([1_000, 1, 0, 1]),
        ],
    };
    common.into_iter().chain(own).collect()
}

/// A row of a record.
fn stored(name: &str, scale: u64, state: &Value, open: Value) -> Value {
    let algorithm = tollgate::boundary::schema::ALGORITHMS.iter().position(|known| *known == name);
    let algorithm = algorithm.map_or(-1, |position| position as i64);
    json!([name, numbers(&[json!(algorithm), json!(scale)], state, &open)])
}

/// The numbers of a row after some.
fn numbers(head: &[Value], state: &Value, open: &Value) -> Value {
    let state = state.as_array().unwrap();
    let rest = [json!(60_000), json!(state.len())];
    let parts = open.as_array().unwrap().iter().flat_map(|part| part.as_array().unwrap());
    head.iter().chain(&rest).chain(state).chain(parts).cloned().collect()
}

#[test]
fn records_of_garbage() {
    for (policy, _, _) in good() {
        let policy: Policy = serde_json::from_value(policy).unwrap();
        let (name, policies) = (policy.algorithm(), Policies::from(policy));
        let mut states = garbage(name);
        if name == "concurrency" {
            states.retain(|state| *state != json!([]));
        }
        for state in states {
            let json = json!({ "version": 4, "rows": [stored(name, 1_000, &state, json!([]))] });
            let record: Record = serde_json::from_value(json.clone()).unwrap();
            let error = step(&policies, Some(&record), Operation::Peek { cost: 1 }, 1_000).unwrap_err();
            assert_error(&error, "invalid_state", &["cannot be read", name]);
            let mut ledger = Ledger::new(policies.clone()).unwrap();
            assert_eq!(ledger.load(&record, 1_000), Err(error.clone()), "{json}");
            assert_eq!(ledger.record(1_000).unwrap(), None);

            // A snapshot with a good key before the bad one: nothing of it is taken.
            let own: Vec<Policy> = policies.iter().cloned().collect();
            let clock = ManualClock::new(1_000);
            let mut limiter = Limiter::<u8, _>::new(policies.clone(), &clock).unwrap();
            let _ = limiter.reserve(&1, Reserve::new(7)).unwrap();
            let good = serde_json::to_value(limiter.snapshot().unwrap()).unwrap()["keys"][0][1].clone();
            let algorithm = json!(stored(name, 1_000, &state, json!([]))[1][0]);
            let row = numbers(&[json!(0), algorithm, json!(1_000)], &state, &json!([]));
            let json = json!({ "version": 4, "policies": own, "keys": [[2, good], [1, [row]]] });
            let snapshot: Snapshot<u8> = serde_json::from_value(json).unwrap();
            let before = limiter.snapshot().unwrap();
            assert_eq!(limiter.restore(&snapshot), Err(error));
            assert_eq!(limiter.snapshot().unwrap(), before);
        }
    }
}

#[test]
fn reservations_of_garbage() {
    let policies = Policies::from(Policy::fix_window(5, "1s").unwrap());
    let good = json!([1, 2, 3, 4, 900, 1_900, 1_000, 2, 0, 0]);
    let with = |rows: Value| {
        let json = json!({ "version": 4, "rows": [stored("fix_window", 1_000, &json!([]), rows)] });
        let record: Record = serde_json::from_value(json).unwrap();
        step(&policies, Some(&record), Operation::Get { policy: None }, 1_000)
    };
    assert_eq!(with(json!([good])).unwrap().answer, tollgate::Answer::Number(2));
    let with_number = |at: usize, number: i64| {
        let mut row = good.clone();
        row[at] = json!(number);
        json!([row])
    };
    let mut rows = vec![json!([good, good])];
    rows.extend((0..10).map(|at| with_number(at, -1)));
    rows.extend((0..4).map(|at| with_number(at, 1 << 32)));
    rows.extend((4..10).map(|at| with_number(at, MAX as i64 + 1)));
    rows.extend([with_number(6, 0), with_number(6, 86_400_001), with_number(6, 1_901), with_number(9, 1)]);
    for row in rows {
        assert_error(&with(row).unwrap_err(), "invalid_state", &["the numbers of \"fix_window\""]);
    }
    for short in [json!([1, 2, 3, 4, 900, 1_900, 1_000]), json!([1, 2, 3, 4, 900, 1_900, 1_000, 2, 0, 0, 0])] {
        assert_error(&with(json!([short])).unwrap_err(), "invalid_state", &["the numbers of \"fix_window\""]);
    }
}

#[test]
fn what_cannot_be_reserved_or_settled() {
    let clock = ManualClock::new(1_000);
    let named = |policy: Policy, name| policy.named(name).unwrap();
    let policies =
        [named(Policy::fix_window(5, "1s").unwrap(), "rpm"), named(Policy::concurrency(2, "1s").unwrap(), "running")];
    let mut limiter = Limiter::<u8, _>::new(policies, &clock).unwrap();
    let before = limiter.snapshot().unwrap();
    for error in [limiter.hit(&1, 1), limiter.hit_costs(&1, Costs::ByPolicy(&[("running", 1)]))].map(Result::unwrap_err)
    {
        assert_error(&error, "reserve_only", &["\"running\" is a concurrency limit", "hit", "use reserve"]);
    }
    let error = limiter.inc_policy(&1, -1, Some("running")).unwrap_err();
    assert_error(&error, "reserve_only", &["\"running\"", "inc", "use reserve"]);
    let error = limiter.set_policy(&1, 1, Some("running")).unwrap_err();
    assert_error(&error, "reserve_only", &["\"running\"", "set", "use reserve"]);
    for ttl in [0, 86_400_001, u64::MAX] {
        let error = limiter.reserve(&1, Reserve::new(1).ttl(ttl)).unwrap_err();
        assert_error(&error, "invalid_option", &["ttl: ", "is not a duration of at most a day", DURATION]);
    }
    let error = limiter.reserve(&1, Reserve::new(1).costs(Costs::ByPolicy(&[("tpm", 1)]))).unwrap_err();
    assert_error(&error, "unknown_policy", &["\"tpm\"", "rpm, running"]);
    let error = limiter.reserve(&1, Reserve::new(1).cost(MAX + 1)).unwrap_err();
    assert_error(&error, "invalid_cost", &[TOO_LARGE]);
    assert_eq!(limiter.snapshot().unwrap(), before);

    let reserve = Reserve::new(1).costs(Costs::ByPolicy(&[("rpm", 2)]));
    let id = limiter.reserve(&1, reserve).unwrap().reservation.unwrap().id;
    let open = limiter.snapshot().unwrap();
    let error = limiter.settle_by_id(&1, &id, Some(3.into())).unwrap_err();
    assert_error(&error, "invalid_cost", &["used: 3 is one number for a reservation of costs by policy"]);
    assert_eq!(limiter.snapshot().unwrap(), open);
    for text in [
        "",
        ".",
        "x.1.a",
        &"0".repeat(32),
        "+0000000000000000000000000000002a.lw.p",
        "A0000000000000000000000000000000.1.a",
    ] {
        assert_error(&text.parse::<ReservationId>().unwrap_err(), "invalid_reservation", &["the id of a reservation"]);
    }
}

#[test]
fn records_that_do_not_hold_together() {
    let policies = Policies::from(Policy::fix_window(5, "1s").unwrap());
    let state = json!([0, 1]);
    for states in [
        json!([stored("gcra", 1_000, &state, json!([]))]),
        json!([stored("fix_window", 0, &state, json!([]))]),
        json!([stored("fix_window", MAX + 1, &state, json!([]))]),
        json!([["fix_window", []]]),
        json!([["fix_window", [0, 1_000, 60_000]]]),
        json!([["fix_window", [0, 1_000, 60_000, 3, 0, 1]]]),
        json!([["fix_window", [0, 1_000, -1, 2, 0, 1]]]),
        json!([["fix_window", [0, 1_000, MAX + 1, 2, 0, 1]]]),
        // Of a shape that no policy has.
        json!([["fix_window", [0, 7, 60_000, 2, 0, 1, 5]]]),
        json!([["fix_window", [0, 7, 60_000, -1, 0, 1]]]),
    ] {
        let record: Record = serde_json::from_value(json!({ "version": 4, "rows": states })).unwrap();
        let error = step(&policies, Some(&record), Operation::Hit { cost: 1 }, 0).unwrap_err();
        assert_error(&error, "invalid_state", &["the stored state cannot be read: "]);
    }
    for json in [
        json!({}),
        json!([]),
        json!(null),
        json!({ "version": "3" }),
        json!({ "version": 4, "rows": [stored("fix_window", 1_000, &json!([0.5, 1]), json!([]))] }),
        json!({ "version": 4, "rows": [stored("fix_window", 1_000, &json!(["0", 1]), json!([]))] }),
        json!({ "version": 4, "rows": [stored("fix_window", 1_000, &json!([1e300, 1]), json!([]))] }),
        json!({ "version": 4, "rows": [["fix_window"]] }),
        json!({ "version": 4, "rows": [["fix_window", 7]] }),
        json!({ "version": 4, "rows": [{ "name": "fix_window" }] }),
    ] {
        assert!(serde_json::from_value::<Record>(json.clone()).is_err(), "{json}");
    }
}

/// A row that no policy names is not read: bytes in, bytes out.
#[test]
fn rows_that_no_policy_names_are_not_read() {
    let policies = Policies::from(Policy::fix_window(5, "1s").unwrap());
    let rows = json!([
        ["fix_window", [0, 7, 60_000, 2, 1, 1]],
        ["token_bucket", [4, 7, 60_000, 4, 0, -1, 0, 0]],
        ["sliding_window", [2, 7, 60_000, 1, 0]],
        ["concurrency", [6, 7, 60_000, 0, 1, 2, 3, 4, 900, 1_900, 0, 2, 0, 0]]
    ]);
    let record: Record = serde_json::from_value(json!({ "version": 4, "rows": rows })).unwrap();
    let stepped = step(&policies, Some(&record), Operation::Hit { cost: 1 }, 0).unwrap();
    let mut stored = serde_json::to_value(stepped.record.unwrap()).unwrap()["rows"].as_array().unwrap().clone();
    assert_eq!(stored.remove(0), json!(["fix_window", [0, 1_000, 1_000, 2, 0, 1]]));
    assert_eq!(Value::from(stored), rows);
    // One that has ended is dropped.
    let record = step(&policies, Some(&record), Operation::Hit { cost: 1 }, 60_000).unwrap().record.unwrap();
    assert_eq!(serde_json::to_value(record).unwrap()["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn rows_of_no_name() {
    let clock = ManualClock::new(0);
    let policy = json!({ "algorithm": "fix_window", "limit": 9, "scale": 1_000 });
    let restored = |row: Value| {
        let keys = json!([[1, [row.clone(), [0, 0, 60_000, 60_000, 2, 0, 4]]]]);
        let json = json!({ "version": 4, "policies": [policy], "keys": keys });
        let snapshot: Snapshot<u8> = serde_json::from_value(json).unwrap();
        let mut limiter = Limiter::<u8, _>::new(Policy::fix_window(9, 60_000).unwrap(), &clock).unwrap();
        limiter.restore(&snapshot).map(|_| limiter.get(&1).unwrap())
    };
    assert_eq!(restored(json!([0, 0, 1_000, 1_000, 2, 0, 1])), Ok(4));
    for wrong in [json!([]), json!([0]), json!([9, 0, 60_000, 60_000, 0]), json!([0, 0, 60_000, 60_000, 9])] {
        assert_eq!(restored(wrong).unwrap_err().code(), "invalid_state");
    }
}

/// A time out of range is an error, not an overflow.
#[test]
fn times_out_of_range() {
    let mut ledger = Ledger::new(Policy::token_bucket(5, 1, "1s").unwrap()).unwrap();
    ledger.apply(Operation::Hit { cost: 1 }, MAX).unwrap();
    for now in [MAX + 1, u64::MAX - 1, u64::MAX] {
        assert_eq!(ledger.expires_at(now).unwrap_err().code(), "invalid_time");
        assert_eq!(ledger.record(now).unwrap_err().code(), "invalid_time");
    }
}

#[test]
fn other_versions() {
    let policies = Policies::from(Policy::fix_window(5, "1s").unwrap());
    for version in [0, 1, 2, 3, 5, u64::MAX] {
        let words = [&*format!("the stored state has version {version}"), "reads version 4"];
        // Whatever else is in it.
        let record: Record = serde_json::from_value(json!({ "version": version, "other": [{}] })).unwrap();
        let error = step(&policies, Some(&record), Operation::Hit { cost: 1 }, 0).unwrap_err();
        assert_error(&error, "unsupported_version", &words);

        let mut limiter = Limiter::<u8, _>::new(policies.clone(), ManualClock::new(0)).unwrap();
        limiter.hit(&1, 1).unwrap();
        let before = limiter.snapshot().unwrap();
        let mut json = serde_json::to_value(&before).unwrap();
        json["version"] = json!(version);
        let snapshot: Snapshot<u8> = serde_json::from_value(json).unwrap();
        assert_error(&snapshot.policies().unwrap_err(), "unsupported_version", &words);
        assert_error(&limiter.restore(&snapshot).unwrap_err(), "unsupported_version", &words);
        assert_eq!(limiter.snapshot().unwrap(), before);
    }
}

/// Garbage in a store is an error of that key, never an allowance, and stays where it is.
#[test]
fn a_store_that_holds_garbage() {
    struct Garbage(u32);

    impl tollgate::Store for Garbage {
        type Error = std::convert::Infallible;

        fn load(&mut self, _key: &str) -> Result<Option<Record>, Self::Error> {
            Ok(serde_json::from_value(json!({ "version": 9 })).ok())
        }

        fn save(&mut self, _key: &str, _record: Option<&Record>) -> Result<(), Self::Error> {
            self.0 += 1;
            Ok(())
        }
    }

    let policy = Policy::fix_window(5, "1s").unwrap();
    let mut limiter = StoreLimiter::new(policy, Garbage(0), ManualClock::new(0)).unwrap();
    let error = limiter.apply("key", Operation::Hit { cost: 1 }).unwrap_err();
    assert_eq!(error.to_string(), "the stored state has version 9; this library reads version 4");
    assert_eq!(limiter.store().0, 0);
}

#[test]
fn a_concurrency_limit_that_is_written_can_be_read_again() {
    let policy = Policy::concurrency(2, "1s").unwrap().denied(Denied::Free).unwrap();
    let json = serde_json::to_string(&policy).unwrap();
    assert_eq!(Policy::from_json(&json).unwrap(), policy, "{json}");
}
