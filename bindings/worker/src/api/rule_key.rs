//! The key of a rule as an operator writes it: the parts of the rule's key, each with the value that a request has.

use tollgate::cloudflare::client_key;

use crate::config::Config;
use crate::config::rules::{Limit, Missing, Rule};
use crate::reader::{FieldError, Reader, invalid, non_empty_text};
use crate::request::key::{Part, Source, UNKNOWN, is_object_name, object_name};
use crate::request::pattern::Match;
use crate::request::plan::key_paths;
use crate::request::reading::readings;
use crate::tree::Tree;

/// Describes the accepted parts in error messages.
const ACCEPTS: &str = "\"ip=<address>\", \"path=/<path without ; ? #>\", \"header:<name>=<value>\", \
                       \"cookie:<name>=<value without ;>\", \"constant:<text>\", or alone a key as the log prints it \
                       or # and an object's id";

/// The key of a rule.
#[derive(Debug)]
pub(crate) enum RuleKey {
    /// The parts, in the order of the rule.
    Parts(Vec<PartValue>),
    /// The name of the object, as the log prints it.
    Logged(String),
}

/// A part of a key, and its value in a request.
#[derive(Debug)]
pub(crate) struct PartValue {
    part: Part,
    value: String,
}

/// The value takes the place of a request's headers, so that it is normalised as a request's value is.
impl Source for PartValue {
    fn header(&self, _: &str) -> Option<String> {
        Some(match &self.part {
            Part::Cookie(name) => format!("{name}={}", escaped(&self.value)),
            _ => self.value.clone(),
        })
    }
}

impl RuleKey {
    /// Reads a list of parts, or one part; `None` if the field is missing. The reader collects the errors.
    pub(crate) fn read(reader: &mut Reader<'_>, field: &'static str) -> Option<Self> {
        let path = reader.path_of(field);
        let list = reader.list(field)?;
        if let [(_, Tree::Text(text))] = list.as_slice()
            && is_object_name(text)
        {
            return Some(Self::Logged(text.clone()));
        }
        if list.is_empty() {
            reader.errors.push(FieldError { path, problem: format!("an empty list is not a key; expected {ACCEPTS}") });
        }
        let mut parts = Vec::new();
        for (path, tree) in list {
            match non_empty_text(&tree).and_then(|written| PartValue::parse(&written)) {
                Some(part) => parts.push(part),
                None => {
                    reader.errors.push(invalid(path, &tree, ACCEPTS));
                    // Only the first error is shown, and a body may have a million.
                    break;
                }
            }
        }
        Some(Self::Parts(parts))
    }

    /// Returns the name of the object by which the gateway limits such a request. `names` are the item's policies.
    pub(crate) fn object(self, config: &Config, names: &[String]) -> String {
        match self {
            Self::Logged(name) => name,
            Self::Parts(parts) => {
                let case_sensitive = is_case_sensitive(config, &parts, names);
                object_name(parts.iter().filter_map(|part| part.encoded(case_sensitive)).collect())
            }
        }
    }
}

impl PartValue {
    /// Parses a part with its value; `None` if invalid. A path with `;` is two keys, so it is invalid. So is a value that no
    /// request has: a URL or a query in a path, or several cookies. It would be read as that of another key.
    fn parse(written: &str) -> Option<Self> {
        if let Some(part @ Part::Constant(_)) = Part::parse(written) {
            return Some(Self { part, value: String::new() });
        }
        // No name of a header or a cookie contains `=`.
        let (part, value) = written.split_once('=').filter(|(_, value)| !value.is_empty())?;
        let part = Part::parse(part)?;
        let value = if part == Part::Ip { without_prefix(value) } else { value };
        let is_valid = match part {
            Part::Ip => value == UNKNOWN || client_key(value).is_some(),
            Part::Path => value.starts_with('/') && !value.contains(['?', '#']) && key_paths(value, true)[1].is_none(),
            Part::Cookie(_) => !value.contains(';'),
            _ => true,
        };
        let own = Self { part, value: value.into() };
        own.encoded(false).filter(|_| is_valid).map(|_| own)
    }

    /// Returns the part as the gateway encodes it; `None` if the value is empty or ambiguous.
    fn encoded(&self, case_sensitive: bool) -> Option<String> {
        let [path, _] = match self.part {
            Part::Path => key_paths(&self.value, case_sensitive),
            _ => [Some(String::new()), None],
        };
        self.part.encoded(&path?, self).ok().flatten()
    }
}

/// Returns the value of a cookie with escapes for what a request cannot have in it: logs print it decoded.
fn escaped(value: &str) -> String {
    let letter = |byte: u8| match byte {
        b',' | b'\\' => format!("%{byte:02x}"),
        _ if byte.is_ascii_graphic() => char::from(byte).into(),
        _ => format!("%{byte:02x}"),
    };
    value.bytes().map(letter).collect()
}

/// Returns an address without the `/64` that an IPv6 address has in keys.
fn without_prefix(address: &str) -> &str {
    let is_network = |address: &&str| client_key(address).is_some_and(|key| key.ends_with("/64"));
    address.strip_suffix("/64").filter(is_network).unwrap_or(address)
}

/// Returns whether the rule that counts by these parts, under one of these policies, distinguishes the case of paths. Of
/// several such rules it is one that applies to the path.
fn is_case_sensitive(config: &Config, parts: &[PartValue], names: &[String]) -> bool {
    let counts = |rule: &Rule, limit: &Limit| {
        let is_same = |(own, PartValue { part, .. }): (&Part, &PartValue)| {
            let may_lack = rule.missing == Missing::Ip && matches!(own, Part::Header(_) | Part::Cookie(_));
            own == part || may_lack && *part == Part::Ip
        };
        let mut policies = config.sets[limit.set].policies.names();
        limit.key.len() == parts.len()
            && limit.key.iter().zip(parts).all(is_same)
            && policies.any(|known| names.iter().any(|name| name == known))
    };
    let counting = || config.rules.iter().filter(|rule| rule.limits.iter().any(|limit| counts(rule, limit)));
    let any_applies = |sensitive| counting().any(|rule| rule.case_sensitive == sensitive && applies(rule, parts));
    any_applies(true) || !any_applies(false) && counting().any(|rule| rule.case_sensitive)
}

/// Returns whether a rule applies to the path in these parts.
fn applies(rule: &Rule, parts: &[PartValue]) -> bool {
    let mut applies = false;
    for PartValue { value, .. } in parts.iter().filter(|own| own.part == Part::Path) {
        readings(value, |reading| {
            applies |= match rule.pattern.matches(&reading) {
                Match::No => false,
                Match::Folded => !rule.case_sensitive,
                Match::Longer | Match::Exact => true,
            };
        });
    }
    applies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::FieldErrors;
    use crate::request::key::testing::Request;
    use crate::request::plan::{self, Plan, plan};

    fn config() -> Config {
        let toml = r#"
            upstream = "ORIGIN"
            [policies]
            api = { algorithm = "fix_window", limit = 5, scale = "1m" }
            exact = { algorithm = "fix_window", limit = 5, scale = "1m" }
            [[rules]]
            path = "/login"
            key = ["ip", "constant:login"]
            policies = "api"
            [[rules]]
            path = "/exact/*"
            key = ["path", "header:X-Key"]
            caseSensitive = true
            policies = ["api", "exact"]
            [[rules]]
            path = "/token/*"
            key = ["header:Authorization", "cookie:id"]
            policies = "api"
            [[rules]]
            path = "/*"
            key = ["path", "header:X-Key"]
            policies = "api"
        "#;
        Config::read(toml::from_str(toml).unwrap()).unwrap()
    }

    /// Returns the object that decides about a request.
    fn planned(path: &str, headers: &[(&'static str, &'static str)]) -> String {
        let request = plan::Request { method: "GET", path, has_body: false };
        match plan(&config(), request, &Request(headers.to_vec())) {
            Plan::Check(mut checks) if checks.len() == 1 => checks.remove(0).object,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the object of parts, or the first error.
    fn object_under(policy: &str, parts: &[&str]) -> Result<String, String> {
        let list = Tree::List(parts.iter().map(|part| Tree::Text((*part).into())).collect());
        let mut errors = FieldErrors::new();
        let mut reader = Reader::new(String::new(), Tree::Table(vec![("parts".into(), list)]), &mut errors);
        let key = RuleKey::read(&mut reader, "parts").unwrap();
        match errors.first() {
            Some(error) => Err(error.to_string()),
            None => Ok(key.object(&config(), &[policy.into()])),
        }
    }

    fn object(parts: &[&str]) -> String {
        object_under("api", parts).unwrap()
    }

    #[test]
    fn parts_name_the_object_of_a_request_however_they_are_spelled() {
        let login = |address| planned("/login", &[("cf-connecting-ip", address)]);
        for (address, written) in [
            ("192.0.2.7", "ip=192.0.2.7"),
            ("192.0.2.7", "ip=::ffff:192.0.2.7"),
            ("2001:db8::1", "ip=2001:0DB8:0:0:ffff::9"),
            ("2001:db8::1", "ip=2001:0db8:0000:0000::/64"),
            ("nonsense", "ip=unknown"),
        ] {
            assert_eq!(object(&[written, "constant:login"]), login(address), "{written}");
        }
        let token = |authorization, cookie| {
            planned("/token/a", &[("authorization", authorization), ("cookie", cookie), ("cf-connecting-ip", "::1")])
        };
        assert_eq!(object(&["ip=::2", "cookie:id=é \\ü, "]), token(" ", "id=%c3%A9%20%5c%C3%bc%2c"));
        let id = "cookie:id=a%62";
        assert_eq!(object(&["header:AUTHORIZATION= BEARER  aB x", id]), token("Bearer aB", "x=1; id=\"ab\""));
        assert_eq!(object(&["header:authorization=Basic dTpwYQ==", id]), token("basic dTpwYR", "id=ab; c=d"));
        // The address takes the place of a missing part.
        assert_eq!(object(&["ip=::2", id]), token(" ", "id=ab"));
        assert_eq!(object(&["header:authorization=a=b", "ip=::/64"]), token("a=b", ""));
    }

    #[test]
    fn a_path_is_folded_unless_a_rule_with_that_key_and_policy_is_case_sensitive() {
        let key = ("x-key", "k");
        assert_eq!(object_under("exact", &["path=/exact/A", "header:x-key=k"]).unwrap(), planned("/exact/A", &[key]));
        let other = object_under("none", &["path=//Other/%41/", "header:x-key=k"]).unwrap();
        assert_eq!(other, planned("/other/a", &[key]));
        // Both rules count by this key: the path tells them apart.
        assert_eq!(object(&["path=/exact/A", "header:x-key=k"]), planned("/exact/A", &[key]));
        for path in ["/Other/A", "/other/a", "/EXACT/A"] {
            assert_eq!(object(&[&format!("path={path}"), "header:x-key=k"]), planned(path, &[key]), "{path}");
        }
        let missing = [("cf-connecting-ip", "192.0.2.7")];
        assert_eq!(object(&["path=/exact/A", "ip=192.0.2.7"]), planned("/exact/A", &missing));
        assert_eq!(object(&["header:x-key=k", "path=/A"]), "/header:x-key=1:k/path=2:/a");
    }

    #[test]
    fn a_path_that_no_rule_applies_to_is_not_read_as_another() {
        let one = object_under("exact", &["path=/EXACT/A", "header:x-key=k"]).unwrap();
        assert_ne!(one, planned("/exact/a", &[("x-key", "k")]));
    }

    #[test]
    fn the_order_of_the_parts_matters() {
        assert_ne!(object(&["constant:login", "ip=192.0.2.7"]), object(&["ip=192.0.2.7", "constant:login"]));
        assert_eq!(object(&["constant:a=b", "constant:c"]), "/constant=3:a=b/constant=1:c");
    }

    #[test]
    fn a_key_is_accepted_as_the_log_prints_it() {
        for logged in [planned("/login", &[]), planned("/long", &[("x-key", "k".repeat(600).leak())])] {
            assert_eq!(object(&[&logged]), logged);
        }
        // Values in it are not normalised again.
        assert_eq!(object(&["/cookie:id=3:%41"]), "/cookie:id=3:%41");
    }

    #[test]
    fn errors_name_the_part() {
        for (parts, problem) in [
            (&[] as &[&str], "parts: an empty list is not a key; expected \"ip=<address>\", \"path=/<path"),
            (&[""], "parts[0]: \"\" is not \"ip=<address>\""),
            (&["ip=::1", "user=4"], "parts[1]: \"user=4\" is not \"ip=<address>\", "),
            (&["constant=a"], "parts[0]: \"constant=a\" is not "),
            (&["constant:"], "parts[0]: \"constant:\" is not "),
            (&["header:a b=c"], "parts[0]: \"header:a b=c\" is not "),
            (&["/ip=9:192.0.2.7", "constant:a"], "parts[0]: \"/ip=9:192.0.2.7\" is not "),
            (&["/ip=8:192.0.2.7"], "parts[0]: \"/ip=8:192.0.2.7\" is not "),
            (&["ip"], "parts[0]: \"ip\" is not \"ip=<address>\""),
            (&["ip="], "parts[0]: \"ip=\" is not "),
            (&["path="], "parts[0]: \"path=\" is not "),
            (&["header:x-key"], "parts[0]: \"header:x-key\" is not "),
            (&["header:x-key= \t"], "parts[0]: \"header:x-key= \u{fffd}\" is not "),
            (&["cookie:id=\"\""], "parts[0]: \"cookie:id=\\\"\\\"\" is not "),
            (&["ip=192.0.2"], "parts[0]: \"ip=192.0.2\" is not "),
            (&["ip=192.0.2.7/64"], "parts[0]: \"ip=192.0.2.7/64\" is not "),
            (&["ip=2001:db8::/48"], "parts[0]: \"ip=2001:db8::/48\" is not "),
            (&["path=/a;b/c"], "parts[0]: \"path=/a;b/c\" is not "),
            (&["path=/a?b=c"], "parts[0]: \"path=/a?b=c\" is not "),
            (&["path=/a#b"], "parts[0]: \"path=/a#b\" is not "),
            (&["path=https://example.com/a"], "parts[0]: \"path=https://example.com/a\" is not "),
            (&["cookie:id=; id=b"], "parts[0]: \"cookie:id=; id=b\" is not "),
        ] {
            let found = object_under("api", parts).unwrap_err();
            assert!(found.starts_with(problem), "{parts:?}: {found}");
        }
    }
}
