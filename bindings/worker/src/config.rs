//! The Worker's configuration: read once for each isolate, and as a whole, so that all errors are reported at once.

pub(crate) mod addresses;
pub(crate) mod cors;
pub(crate) mod leases;
pub(crate) mod new_keys;
pub(crate) mod place;
pub(crate) mod policies;
pub(crate) mod rules;

use tollgate::cloudflare::wire::milliseconds;
use tollgate::{Policy, Span};

use crate::api::request_error::RequestError;
use crate::reader::{FieldError, FieldErrors, Reader, integer, non_empty_text};
use crate::request::path::normalise;
use crate::request::pattern::Pattern;
use crate::request::ranges::{Range, Verdict};
use crate::tree::Tree;
use cors::Cors;
use place::Place;
use policies::{PolicySet, named_policies};
use rules::{Defaults, NamedPolicies, Rule};

/// The checked configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) upstream: Option<String>,
    /// The path before the paths of requests, if the upstream is a URL with a path.
    pub(crate) base: Option<Base>,
    pub(crate) prefix: String,
    /// The origins whose pages may call the HTTP API.
    pub(crate) origins: Vec<String>,
    pub(crate) cors: Cors,
    pub(crate) headers: Headers,
    pub(crate) timeout: u64,
    pub(crate) place: Place,
    pub(crate) deny_cache: bool,
    /// The duration of leases; `None` if there are none.
    pub(crate) leases: Option<u64>,
    /// Whether objects keep allowed hits in memory, covered by a credit in the row.
    pub(crate) credit: bool,
    /// Whether the origin reads the method from a header such as `X-HTTP-Method-Override`.
    pub(crate) method_override: bool,
    /// Whether the origin receives `X-Original-URL` and `X-Rewrite-URL`, by which some origins replace the URL.
    pub(crate) forward_rewrites: bool,
    pub(crate) plain_keys: bool,
    /// True if decisions are counted for the live page.
    pub(crate) watch: bool,
    /// The ranges of addresses that pass or are denied.
    pub(crate) addresses: Vec<(Range, Verdict)>,
    pub(crate) named: Vec<(String, Policy)>,
    pub(crate) sets: Vec<PolicySet>,
    pub(crate) rules: Vec<Rule>,
}

/// The path of an upstream's URL.
#[derive(Debug)]
pub(crate) struct Base {
    /// Without a slash at its end.
    pub(crate) path: String,
    /// All paths below it.
    pub(crate) pattern: Pattern,
}

/// The rate limit headers of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Headers {
    Standard,
    /// The standard ones and `X-RateLimit-*`.
    Legacy,
    None,
}

/// The decision about a request when its object fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnError {
    Allow,
    Deny,
}

pub(crate) const ON_ERROR: &[(&str, OnError)] = &[("allow", OnError::Allow), ("deny", OnError::Deny)];

impl Config {
    /// Reads a configuration. The error has all errors in it.
    pub(crate) fn read(tree: Tree) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::new();
        let mut reader = Reader::new(String::new(), tree, &mut errors);
        let on_error = reader.choice("onError", ON_ERROR).unwrap_or(OnError::Allow);
        let case_sensitive = reader.boolean("caseSensitive").unwrap_or(false);
        let headers = &[("standard", Headers::Standard), ("legacy", Headers::Legacy), ("none", Headers::None)];
        let mut config = Self {
            upstream: reader.read("upstream", UPSTREAM, upstream),
            base: None,
            prefix: reader.read("prefix", PREFIX, prefix).unwrap_or(PREFIX_BY_DEFAULT.into()),
            origins: cors::origins(&mut reader).unwrap_or_default(),
            cors: cors::read(&mut reader),
            headers: reader.choice("headers", headers).unwrap_or(Headers::Standard),
            timeout: reader.read("timeout", TIMEOUT, span).unwrap_or(2_000),
            place: place::read(&mut reader),
            deny_cache: reader.boolean("denyCache").unwrap_or(true),
            leases: leases::read(&mut reader).unwrap_or_default(),
            credit: reader.boolean("credit").unwrap_or(false),
            method_override: reader.boolean("methodOverride").unwrap_or(false),
            forward_rewrites: reader.boolean("forwardRewrites").unwrap_or(false),
            plain_keys: reader.choice("logKeys", &[("hashed", false), ("plain", true)]).unwrap_or(false),
            watch: reader.boolean("watch").unwrap_or(false),
            addresses: addresses::read(&mut reader),
            named: Vec::new(),
            sets: Vec::new(),
            rules: Vec::new(),
        };
        config.base = config.upstream.as_deref().and_then(base);
        on_misconfigured(&mut reader);
        let policies = reader.take("policies");
        let written = reader.list("rules").unwrap_or_default();
        reader.finish();
        if config.upstream.is_none() && !written.is_empty() && errors.iter().all(|error| error.path != "upstream") {
            let problem = format!("is required with rules ({UPSTREAM})");
            errors.push(FieldError { path: "upstream".into(), problem });
        }
        let names = policies.as_ref().map(names).unwrap_or_default();
        config.named = policies.map(|tree| named_policies(tree, &mut errors)).unwrap_or_default();
        let defaults = Defaults { on_error, case_sensitive, leases: config.leases.is_some(), credit: config.credit };
        for (path, tree) in written {
            let named = NamedPolicies { valid: &config.named, names: &names };
            config.rules.extend(rules::read(path, tree, named, &mut config.sets, defaults, &mut errors));
        }
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }

    /// Returns the number of a rule's limit among the limits of all rules.
    pub(crate) fn limit(&self, rule: usize, limit: usize) -> usize {
        self.rules.iter().take(rule).map(|rule| rule.limits.len()).sum::<usize>() + limit
    }

    /// Returns the policies of these names as one set.
    pub(crate) fn set(&self, names: &[String]) -> Result<PolicySet, RequestError> {
        PolicySet::of(names, &self.named)
    }
}

/// Returns the names of a table.
fn names(tree: &Tree) -> Vec<String> {
    match tree {
        Tree::Table(fields) => fields.iter().map(|(name, _)| name.clone()).collect(),
        _ => Vec::new(),
    }
}

const UPSTREAM: &str = "the name of a service binding, or a URL such as \"https://origin.example\"";

fn upstream(tree: &Tree) -> Option<String> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    non_empty_text(tree).filter(|name| match address(name) {
        // The request's own path and query follow it.
        Some(rest) => {
            !rest.starts_with('/') && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\".contains(&byte))
        }
        None => name.bytes().all(letter),
    })
}

/// Reads whether requests pass while the configuration has errors.
fn on_misconfigured(reader: &mut Reader<'_>) -> bool {
    reader.choice("onMisconfigured", &[("deny", false), ("pass", true)]).unwrap_or(false)
}

/// Returns the upstream and the prefix of a configuration that has errors, if its `onMisconfigured` is `"pass"` and these
/// two are valid.
pub(crate) fn open_gate(tree: Tree) -> Option<(String, String)> {
    let mut errors = FieldErrors::new();
    let mut reader = Reader::new(String::new(), tree, &mut errors);
    let pass = on_misconfigured(&mut reader);
    let upstream = reader.read("upstream", UPSTREAM, upstream);
    let prefix = reader.read("prefix", PREFIX, prefix).unwrap_or(PREFIX_BY_DEFAULT.into());
    upstream.filter(|_| pass && errors.is_empty()).map(|upstream| (upstream, prefix))
}

fn base(upstream: &str) -> Option<Base> {
    let (_, path) = address(upstream)?.split_once('/')?;
    let path = path.trim_end_matches('/');
    let pattern = Pattern::parse(&format!("/{path}/*"))?;
    (!path.is_empty()).then(|| Base { path: format!("/{path}"), pattern })
}

/// Returns the part of a URL after its scheme; `None` if there is none.
fn address(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.filter(|rest| !rest.is_empty())
}

pub(crate) const ORIGIN: &str = "an origin as browsers send it, such as \"https://app.example\", or \"*\" for all";

pub(crate) fn is_origin(text: &str) -> bool {
    // Browsers send neither capitals nor a slash at the end, so an origin with them would never match.
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._:[]".contains(&byte);
    text == "*" || address(text).is_some_and(|host| host.bytes().all(letter))
}

const PREFIX_BY_DEFAULT: &str = "/_tollgate";

const PREFIX: &str = "a path of at least one segment, such as \"/_tollgate\", without a slash at its end";

fn prefix(tree: &Tree) -> Option<String> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    non_empty_text(tree).filter(|path| {
        let plain = normalise(path) == *path;
        plain && path.len() > 1 && path.bytes().all(letter)
    })
}

const TIMEOUT: &str = "milliseconds from 1 to 2147483647, or text such as \"250ms\" or \"2s\"";

pub(crate) fn span(tree: &Tree) -> Option<u64> {
    let span = match tree {
        Tree::Text(text) => Span::from(text.as_str()),
        other => Span::from(integer(other)?),
    };
    // A timer of the platform takes 31 bits.
    milliseconds(span).filter(|milliseconds| *milliseconds <= 0x7fff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(toml: &str) -> Result<Config, Vec<String>> {
        let tree: Tree = toml::from_str(toml).unwrap();
        let line = |error: FieldError| format!("{}: {}", error.path, error.problem);
        Config::read(tree).map_err(|errors| errors.into_iter().map(line).collect())
    }

    #[test]
    fn an_empty_configuration_is_valid() {
        let config = config("").unwrap();
        assert_eq!((config.prefix.as_str(), config.timeout, config.deny_cache), ("/_tollgate", 2_000, true));
        assert_eq!((config.headers, config.plain_keys, config.watch), (Headers::Standard, false, false));
    }

    #[test]
    fn all_fields_are_read_in_both_spellings() {
        let config = config(
            r#"
            upstream = "ORIGIN"
            origins = ["https://app.example", "http://localhost:3000"]
            prefix = "/limits"
            headers = "legacy"
            on_error = "deny"
            timeout = "250ms"
            location_hint = "weur"
            jurisdiction = "eu"
            deny_cache = false
            leases = { ttl = "2s" }
            credit = true
            method_override = true
            forward_rewrites = true
            case_sensitive = true
            on_misconfigured = "pass"
            cors = { origins = "https://app.example", credentials = true }
            logKeys = "plain"
            watch = true
            allow = "192.0.2.7"
            deny = ["10.0.0.0/8", "2001:db8::/32"]
            [policies]
            api = { algorithm = "token_bucket", capacity = 100, refill_rate = 10 }
            daily = { algorithm = "fix_window", limit = 1000, scale = "1d" }
            [[rules]]
            method = ["GET", "POST"]
            path = "/api/:version/*"
            key = ["header:Authorization", "path"]
            policies = ["api", "daily"]
            cost = 2
            mode = "shadow"
            missing = "deny"
            on_error = "allow"
            caseSensitive = false
            leases = false
            credit = false
            new_keys = { limit = 100, scale = "1h" }
            [[rules]]
            path = "/*"
            key = "ip"
            policies = "daily"
            "#,
        )
        .unwrap();
        assert_eq!((config.rules.len(), config.origins.len()), (2, 2));
        assert_eq!(config.addresses.len(), 3);
        assert!(config.method_override && config.forward_rewrites && config.cors.credentials && config.watch);
        assert_eq!((config.leases, config.credit), (Some(2_000), true));
        assert_eq!(config.place, Place { location_hint: Some("weur"), jurisdiction: Some("eu") });
        let leased: Vec<_> = config.rules.iter().map(|rule| (rule.leases, rule.credit)).collect();
        assert_eq!(leased, [(false, false), (true, true)]);
        assert_eq!((config.rules[0].case_sensitive, config.rules[1].case_sensitive), (false, true));
        assert_eq!((config.rules[0].on_error, config.rules[1].on_error), (OnError::Allow, OnError::Deny));
        let new_keys: Vec<_> = config.rules.iter().map(|rule| rule.new_keys).collect();
        assert_eq!(new_keys, [Some(rules::NewKeys { set: 0, scale: 3_600_000 }), None]);
        assert_eq!(config.sets.iter().map(|set| set.policies.len()).collect::<Vec<_>>(), [1, 2, 1]);
        // Denied hits are free unless a policy says otherwise.
        assert!(!tollgate::cloudflare::wire::counts_denied(&config.sets[2].policies));
    }

    #[test]
    fn leases_are_off_by_default() {
        let leases = |toml: &str| config(toml).map(|config| config.leases);
        assert_eq!(leases(""), Ok(None));
        assert_eq!(leases("leases = false"), Ok(None));
        assert_eq!(leases("leases = true"), Ok(Some(1_000)));
        assert_eq!(leases("leases = {}"), Ok(Some(1_000)));
        assert_eq!(leases("leases = { ttl = 10000 }"), Ok(Some(10_000)));
        for (toml, path) in [
            ("leases = 1", "leases: 1 is not true, false, or a table"),
            ("leases = \"yes\"", "leases: \"yes\" is not true"),
            ("leases = { ttl = \"11s\" }", "leases.ttl: \"11s\" is not milliseconds from 1 to 10000"),
            ("leases = { ttl = 0 }", "leases.ttl: 0 is not"),
            ("leases = { length = 1 }", "leases.length: unknown field"),
            ("credit = 1", "credit: 1 is not true or false"),
            ("watch = 1", "watch: 1 is not true or false"),
        ] {
            let errors = leases(toml).unwrap_err();
            assert!(errors[0].starts_with(path) && errors.len() == 1, "{errors:?}");
        }
    }

    #[test]
    fn places_are_those_of_the_platform() {
        assert_eq!(config("").unwrap().place, Place::default());
        let errors = config("locationHint = \"mars\"\njurisdiction = \"ch\"").unwrap_err();
        assert!(errors[0].starts_with("locationHint: \"mars\" is not one of \"wnam\", "), "{errors:?}");
        assert!(errors[1].starts_with("jurisdiction: \"ch\" is not one of \"eu\", "), "{errors:?}");
    }

    #[test]
    fn every_error_is_named_by_its_path() {
        let errors = config(
            r#"
            prefix = "limits/"
            headers = "all"
            timeout = 0
            speed = 9
            upstream = "https://origin.example?q"
            origins = ["https://app.example/", "https://App.example", "app.example", "*", "null"]
            [policies]
            api = { algorithm = "fix_window", limit = 0, scale = "1m" }
            log = { algorithm = "sliding_window", limit = 2000, scale = "1m" }
            "" = { algorithm = "fix_window", limit = 1, scale = "1m" }
            "a\r\nX: b" = { algorithm = "fix_window", limit = 1, scale = "1m" }
            own = { algorithm = "fix_window", limit = 1, scale = "1m", name = "other" }
            good = { algorithm = "fix_window", limit = 1, scale = "1m", denied = "count" }
            fine = { algorithm = "fix_window", limit = 1, scale = "1m" }
            [[rules]]
            path = "/a*"
            key = ["ip", "header"]
            policies = ["good", "unknown"]
            [[rules]]
            path = "/"
            mode = "skip"
            policies = ["good"]
            [[rules]]
            path = "/"
            key = []
            policies = ["good", "fine"]
            cost = -1
            limits = [{ key = "ip", policies = "good" }, { policies = ["good", "fine"], missing = "ip" }]
            [[rules]]
            method = "get"
            path = "/"
            "#,
        )
        .unwrap_err();
        let expected = [
            "prefix: \"limits/\" is not a path",
            "headers: \"all\" is not one of \"standard\", \"legacy\", \"none\"",
            "timeout: 0 is not ",
            "speed: unknown field",
            "upstream: \"https://origin.example?q\" is not ",
            "origins[0]: \"https://app.example/\" is not ",
            "origins[1]: ",
            "origins[2]: ",
            "origins[4]: ",
            "policies.: ",
            "policies.a\r\nX: b: the name must be",
            "policies.api.limit: 0 is not ",
            "policies.log.limit: 2000 is not ",
            "policies.own.name: \"other\" is not ",
            "rules[0].path: \"/a*\" is not ",
            "rules[0].key[1]: \"header\" is not ",
            "rules[0].policies[1]: \"unknown\" is not one of ",
            "rules[1].policies: ",
            "rules[2].key: is not accepted beside limits",
            "rules[2].limits[1].policies: denied: \"count\" is not ",
            "rules[2].limits[1].missing: unknown field",
            "rules[2].cost: -1 is not an integer",
            "rules[2].policies: is not accepted beside limits",
            "rules[3].method: \"get\" is not ",
            "rules[3].policies: is required",
        ];
        for start in expected {
            assert!(errors.iter().any(|error| error.starts_with(start)), "{start}\n{errors:#?}");
        }
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
    }

    #[test]
    fn a_field_in_both_spellings_is_an_error_and_an_unknown_one_is_named_as_written() {
        let errors = config("on_error = \"deny\"\nonError = \"deny\"\ndeny_cach = true").unwrap_err();
        assert!(errors[0].starts_with("deny_cach: unknown field; expected one of "), "{errors:?}");
        assert_eq!(errors[1..], ["on_error: there is a second value; use one spelling"]);
    }

    #[test]
    fn an_invalid_policy_is_no_error_of_its_rules() {
        let rule = "upstream = \"ORIGIN\"\n[[rules]]\npath = \"/*\"\npolicies = \"api\"\n";
        let wrong = config(&format!("{rule}[policies]\napi = {{ algorithm = \"fix_window\" }}")).unwrap_err();
        assert!(wrong.len() == 1 && wrong[0].starts_with("policies.api.limit: "), "{wrong:?}");
        let others =
            "apii = { algorithm = \"fix_window\" }\nlogin = { algorithm = \"fix_window\", limit = 1, scale = 1 }";
        let misspelt = config(&format!("{rule}[policies]\n{others}")).unwrap_err();
        assert_eq!(misspelt[1..], ["rules[0].policies: \"api\" is not one of \"apii\", \"login\""]);
        let none = config(rule).unwrap_err();
        assert_eq!(none, ["rules[0].policies: \"api\" is not a name that is under policies"]);
    }

    #[test]
    fn rules_need_an_upstream() {
        let policies = "policies.api = { algorithm = \"fix_window\", limit = 1, scale = \"1m\" }";
        let rules = "[[rules]]\npath = \"/*\"\npolicies = \"api\"";
        let errors = config(&format!("{policies}\n{rules}")).unwrap_err();
        assert!(errors.len() == 1 && errors[0].starts_with("upstream: is required with rules (the name"), "{errors:?}");
        for upstream in ["ORIGIN", "https://origin.example", "http://localhost:8080/base/"] {
            assert!(config(&format!("upstream = \"{upstream}\"\n{policies}\n{rules}")).is_ok(), "{upstream}");
        }
        for upstream in ["https://", "https:///a", "http://a b", "ftp://a", "https://a#b", "origin.example"] {
            assert!(config(&format!("upstream = \"{upstream}\"")).is_err(), "{upstream}");
        }
    }

    #[test]
    fn a_gate_is_open_only_with_pass_and_a_valid_upstream() {
        let opened = |toml: &str| open_gate(toml::from_str(toml).unwrap());
        let pass = "on_misconfigured = \"pass\"\nspeed = 9\n";
        let open = opened(&format!("{pass}upstream = \"ORIGIN\"")).unwrap();
        assert_eq!(open, ("ORIGIN".into(), "/_tollgate".into()));
        for closed in ["upstream = \"ORIGIN\"", pass, &format!("{pass}upstream = 1"), "onMisconfigured = \"open\""] {
            assert_eq!(opened(closed), None, "{closed}");
        }
        assert_eq!(opened(&format!("{pass}upstream = \"ORIGIN\"\nprefix = \"/\"")), None);
    }

    #[test]
    fn anything_but_a_table_is_one_error() {
        assert_eq!(Config::read(Tree::Text("x".into())).unwrap_err().len(), 1);
    }
}
