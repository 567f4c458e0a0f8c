use super::*;
use crate::request::key::testing;
use crate::tree::Tree;

const POLICIES: &str = r#"
    [policies]
    api = { algorithm = "fix_window", limit = 5, scale = "1m" }
    other = { algorithm = "fix_window", limit = 9, scale = "1m" }
"#;

const RULES: &str = r#"
    [[rules]]
    path = "/public/*"
    mode = "skip"
    [[rules]]
    method = "POST"
    path = "/login"
    key = ["ip", "constant:login"]
    policies = "api"
    on_error = "deny"
    [[rules]]
    path = "/keyed"
    key = "header:x-key"
    missing = "deny"
    policies = "api"
    [[rules]]
    path = "/maybe"
    key = "header:x-key"
    missing = "skip"
    policies = "api"
    [[rules]]
    path = "/else"
    key = "cookie:id"
    policies = "api"
    mode = "shadow"
    [[rules]]
    method = "OPTIONS"
    path = "/options"
    policies = "api"
    [[rules]]
    path = "/*"
    policies = "api"
    cost = 3
"#;

fn configured(rules: &str, upstream: &str) -> Config {
    let written = format!("upstream = \"{upstream}\"\n{POLICIES}{rules}");
    Config::read(toml::from_str::<Tree>(&written).unwrap()).unwrap()
}

pub(super) fn with_rules(rules: &str) -> Config {
    configured(rules, "ORIGIN")
}

fn planned_by(config: &Config, method: &str, path: &str, headers: &[(&'static str, &'static str)]) -> Plan {
    plan(config, Request { method, path, has_body: false }, &testing::Request(headers.to_vec()))
}

fn planned(method: &str, path: &str, headers: &[(&'static str, &'static str)]) -> Plan {
    planned_by(&with_rules(RULES), method, path, headers)
}

/// Returns the one object of a plan.
fn object(plan: Plan) -> String {
    match plan {
        Plan::Check(checks) if checks.len() == 1 => checks[0].object.clone(),
        other => format!("{other:?}"),
    }
}

/// Returns the rules of a plan, in order.
pub(super) fn rules(plan: Plan) -> Vec<usize> {
    match plan {
        Plan::Check(checks) => checks.into_iter().map(|check| check.rule).collect(),
        Plan::Pass | Plan::Deny => Vec::new(),
        Plan::Reject { rule, reason } => panic!("rejected by {rule}: {reason:?}"),
    }
}

#[test]
fn ranges_of_addresses_come_before_all_rules() {
    let toml = "upstream = \"ORIGIN\"\nallow = \"192.0.2.7\"\ndeny = \"192.0.2.0/24\"\n[policies]\n\
                api = { algorithm = \"fix_window\", limit = 1, scale = \"1m\" }\n\
                [[rules]]\npath = \"/*\"\nkey = \"header:X-Key\"\nmissing = \"deny\"\npolicies = \"api\"";
    let config = Config::read(toml::from_str(toml).unwrap()).unwrap();
    let planned = |headers: &[(&'static str, &'static str)]| {
        let request = Request { method: "GET", path: "/", has_body: false };
        plan(&config, request, &key::testing::Request(headers.to_vec()))
    };
    assert_eq!(planned(&[("cf-connecting-ip", "192.0.2.7")]), Plan::Pass);
    assert_eq!(planned(&[("cf-connecting-ip", "::ffff:192.0.2.8")]), Plan::Deny);
    // An unreadable address does not pass.
    assert_eq!(planned(&[("cf-connecting-ip", "192.0.2.8:443")]), Plan::Deny);
    let missing = Plan::Reject { rule: 0, reason: Rejection::Missing };
    // Only Cloudflare's header counts.
    for headers in [&[("cf-connecting-ip", "192.0.3.1")], &[("x-forwarded-for", "192.0.2.7")]] {
        assert_eq!(planned(headers), missing);
    }
}

const ADDRESS: &[(&str, &str)] = &[("cf-connecting-ip", "192.0.2.1")];

#[test]
fn the_first_rule_that_matches_decides() {
    let check = |rule: usize, object: &str, cost: u64| {
        Plan::Check(vec![LimitCheck { rule, limit: 0, object: object.into(), cost }])
    };
    assert_eq!(planned("POST", "/login", ADDRESS), check(1, "/ip=9:192.0.2.1/constant=5:login", 1));
    assert_eq!(planned("GET", "/login", ADDRESS), check(6, "/ip=9:192.0.2.1", 3));
}

#[test]
fn a_method_is_the_same_in_every_spelling_and_get_is_head_too() {
    assert_eq!(object(planned("post", "/login", ADDRESS)), "/ip=9:192.0.2.1/constant=5:login");
    let config = with_rules("[[rules]]\nmethod = \"GET\"\npath = \"/*\"\npolicies = \"api\"");
    for (method, is_checked) in [("GET", true), ("HEAD", true), ("POST", false)] {
        assert_eq!(planned_by(&config, method, "/", ADDRESS) != Plan::Pass, is_checked, "{method}");
    }
    let upgrade = [("upgrade", "websocket")];
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"] {
        assert_eq!(rules(planned_by(&config, method, "/", &upgrade)), [0], "{method}");
    }
}

#[test]
fn only_a_path_that_is_skipped_in_every_reading_is_let_off() {
    assert_eq!(planned("GET", "/public/a", ADDRESS), Plan::Pass);
    assert_eq!(planned("GET", "/public/a%20b;c", ADDRESS), Plan::Pass);
    for path in [
        "/public/../login",
        "/public%2fa",
        "/%70ublic/a",
        "/public/%2e%2e/x",
        "/public;x/a",
        "//public/a",
        "/PUBLIC/a",
        "/public/..%2fapi/..%5cpublic",
        "/public/%2e%2e%2fapi%2f%252e%252e%2fpublic",
        "/public/..%2fapi/..;/public/x",
    ] {
        assert_eq!(object(planned("GET", path, ADDRESS)), "/ip=9:192.0.2.1", "{path}");
    }
}

#[test]
fn every_rule_that_a_reading_finds_is_checked_in_order() {
    let config = with_rules(
        r#"
        [[rules]]
        path = "/api/*"
        policies = "other"
        [[rules]]
        path = "/login"
        policies = "api"
        "#,
    );
    for (path, expected) in [
        ("/api/x", &[0][..]),
        ("/login", &[1]),
        ("/Login/", &[1]),
        ("/api/..%2flogin", &[0, 1]),
        ("/login/..%2fapi", &[0]),
        ("/api/..;/login", &[0, 1]),
        ("/api/%252e%252e/x", &[0]),
        ("/other", &[]),
    ] {
        assert_eq!(rules(planned_by(&config, "POST", path, ADDRESS)), expected, "{path}");
    }
}

#[test]
fn dots_may_leave_the_path_of_the_upstream_and_come_back() {
    let written = "[[rules]]\npath = \"/login\"\npolicies = \"api\"";
    let with = |upstream: &str| configured(written, upstream);
    for path in ["/zz/..%2f..%2fbase%2flogin", "/..%2fBASE/login", "/login", "/%252e%252e/base\\login"] {
        let config = with("https://origin.example/base/");
        assert_eq!(rules(planned_by(&config, "GET", path, ADDRESS)), [0], "{path}");
    }
    for upstream in ["https://origin.example", "https://origin.example/", "https://origin.example/other"] {
        assert_eq!(planned_by(&with(upstream), "GET", "/..%2fbase/login", ADDRESS), Plan::Pass, "{upstream}");
    }
}

#[test]
fn letter_case_matters_where_a_rule_says_so() {
    let config = with_rules(
        r#"
        [[rules]]
        path = "/Exact"
        key = "path"
        policies = "other"
        case_sensitive = true
        [[rules]]
        path = "/users/:id"
        key = "path"
        policies = "api"
        "#,
    );
    assert_eq!(rules(planned_by(&config, "GET", "/Exact", &[])), [0]);
    assert_eq!(planned_by(&config, "GET", "/exact", &[]), Plan::Pass);
    assert_eq!(object(planned_by(&config, "GET", "/Exact", &[])), "/path=6:/Exact");
    assert_eq!(object(planned_by(&config, "GET", "/USERS/ANN", &[])), "/path=10:/users/ann");
}

#[test]
fn a_budget_that_two_rules_share_is_checked_once_at_the_higher_cost() {
    let config = with_rules(
        r#"
        [[rules]]
        path = "/a"
        policies = "api"
        [[rules]]
        path = "/*"
        policies = "api"
        cost = 3
        "#,
    );
    assert_eq!(rules(planned_by(&config, "GET", "/a", ADDRESS)), [0]);
    assert_eq!(rules(planned_by(&config, "GET", "/%61", ADDRESS)), [1]);
}

#[test]
fn a_path_in_a_key_is_the_same_in_every_spelling() {
    let config = with_rules("[[rules]]\npath = \"/*\"\nkey = \"path\"\npolicies = \"api\"");
    let named = |path: &str| planned_by(&config, "GET", path, &[]);
    for path in ["/a/b", "/A/b/", "/a%2fb", "/a%252Fb", "//a\\b", "/a/x/../b"] {
        assert_eq!(object(named(path)), "/path=4:/a/b", "{path}");
    }
    // To some servers it ends the path, to others the segment.
    let Plan::Check(checks) = named("/a;/b") else { panic!("no check") };
    assert_eq!(checks.iter().map(|check| &*check.object).collect::<Vec<_>>(), ["/path=4:/a/b", "/path=2:/a"]);
}

#[test]
fn a_missing_part_follows_the_rule() {
    assert_eq!(planned("GET", "/keyed", ADDRESS), Plan::Reject { rule: 2, reason: Rejection::Missing });
    assert_eq!(planned("GET", "/maybe", ADDRESS), Plan::Pass);
    assert_eq!(object(planned("GET", "/else", ADDRESS)), "/ip=9:192.0.2.1");
    assert_eq!(object(planned("GET", "/keyed", &[("x-key", "k")])), "/header:x-key=1:k");
}

#[test]
fn a_part_that_origins_read_differently_is_rejected_but_not_by_a_shadow_rule() {
    let two = [("cookie", "id=a; id=b")];
    let rule = "[[rules]]\npath = \"/*\"\nkey = [\"ip\", \"cookie:id\"]\npolicies = \"api\"\n";
    let rejection = Plan::Reject { rule: 0, reason: Rejection::Ambiguous };
    assert_eq!(planned_by(&with_rules(rule), "GET", "/a", &two), rejection);
    let shadow = format!("{rule}mode = \"shadow\"");
    assert_eq!(planned_by(&with_rules(&shadow), "GET", "/a", &two), Plan::Pass);
    let unkeyed = "[[rules]]\npath = \"/*\"\npolicies = \"api\"";
    assert_eq!(rules(planned_by(&with_rules(unkeyed), "GET", "/a", &two)), [0]);
}

#[test]
fn preflights_pass_unless_a_rule_names_options() {
    const PREFLIGHT: &[(&str, &str)] = &[("origin", "https://page.example"), ("access-control-request-method", "POST")];
    assert_eq!(planned("OPTIONS", "/login", PREFLIGHT), Plan::Pass);
    assert_eq!(object(planned("OPTIONS", "/options", PREFLIGHT)), "/ip=7:unknown");
    assert_eq!(object(planned("OPTIONS", "/login", &PREFLIGHT[1..])), "/ip=7:unknown");
    assert_eq!(object(planned("OPTIONS", "/login", &[])), "/ip=7:unknown");
}

/// The limits and objects of a plan, in order.
fn limits(plan: Plan) -> Vec<(usize, usize, String)> {
    let Plan::Check(checks) = plan else { panic!("no check") };
    checks.into_iter().map(|LimitCheck { rule, limit, object, .. }| (rule, limit, object)).collect()
}

#[test]
fn the_limits_of_a_rule_are_checked_together() {
    let config = with_rules(
        r#"
        [[rules]]
        path = "/a/*"
        limits = [{ key = "ip", policies = "api" }, { key = "path", policies = "other", cost = 2 }]
        [[rules]]
        path = "/*"
        limits = [{ policies = "api", cost = 5 }, { key = ["ip", "constant:b"], policies = "api" }]
        "#,
    );
    let ip = || "/ip=9:192.0.2.1".to_string();
    assert_eq!(limits(planned_by(&config, "GET", "/a/x", ADDRESS)), [(0, 0, ip()), (0, 1, "/path=4:/a/x".into())]);
    assert_eq!((config.limit(0, 1), config.limit(1, 0)), (1, 2));
    // In one reading it is below /a, in another it is not. The address is checked once, at the higher cost.
    let both = limits(planned_by(&config, "GET", "/a/..;/x", ADDRESS));
    assert_eq!(
        both.iter().map(|(rule, limit, _)| (*rule, *limit)).collect::<Vec<_>>(),
        [(0, 1), (0, 1), (1, 0), (1, 1)]
    );
    assert_eq!(both.iter().filter(|(_, _, object)| *object == ip()).count(), 1);
}

#[test]
fn limits_of_a_rule_on_one_object_are_one_check_of_the_sum() {
    let config = with_rules(
        r#"
        [[rules]]
        path = "/a/*"
        policies = "api"
        cost = 7
        [[rules]]
        path = "/*"
        missing = "ip"
        limits = [
          { key = "ip", policies = "api", cost = 3 },
          { key = "header:user", policies = "api", cost = 4 },
          { key = "ip", policies = "other", cost = 5 },
        ]
        "#,
    );
    let costs = |path, headers| {
        let Plan::Check(checks) = planned_by(&config, "GET", path, headers) else { panic!("no check") };
        checks.into_iter().map(|check| (check.rule, check.limit, check.cost)).collect::<Vec<_>>()
    };
    let user: &[_] = &[ADDRESS[0], ("user", "7")];
    assert_eq!(costs("/x", user), [(1, 0, 3), (1, 1, 4), (1, 2, 5)]);
    // Without the header both count by the address.
    assert_eq!(costs("/x", ADDRESS), [(1, 0, 7), (1, 2, 5)]);
    // In two readings: the sum is compared with the other rule's cost.
    assert_eq!(costs("/a/..;/x", ADDRESS), [(0, 0, 7), (1, 2, 5)]);
}
