//! The parts of a key, encoded so that no value of one kind can pass for another.

use tollgate::cloudflare::client_key;

use crate::request::cookie::cookie;
use crate::request::credential::{Ambiguous, credential};
use crate::request::digest::digest;

/// The longest name of an object that is written out; a longer one becomes its hash.
const MAX_NAME: usize = 512;

/// The header with the client's address. Only Cloudflare can set it.
pub(crate) const ADDRESS: &str = "cf-connecting-ip";

/// The address of requests without one, which share a key.
pub(crate) const UNKNOWN: &str = "unknown";

/// Describes the accepted parts of a key in error messages.
pub(crate) const ACCEPTS: &str = "\"ip\", \"path\", \"header:<name>\", \"cookie:<name>\" or \"constant:<text>\"";

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The client's address.
    Ip,
    /// The path, normalised.
    Path,
    /// A header, by its name in lower case.
    Header(Box<str>),
    /// A cookie.
    Cookie(Box<str>),
    /// A constant text.
    Constant(Box<str>),
}

/// The headers of a request.
pub(crate) trait Source {
    /// Returns the value of a header; `None` if it is missing.
    fn header(&self, name: &str) -> Option<String>;
}

impl Part {
    /// Parses a part; `None` if invalid.
    pub(crate) fn parse(written: &str) -> Option<Self> {
        match written.split_once(':') {
            None if written == "ip" => Some(Self::Ip),
            None if written == "path" => Some(Self::Path),
            Some(("header", name)) if is_token(name) => Some(Self::Header(name.to_ascii_lowercase().into())),
            Some(("cookie", name)) if is_token(name) => Some(Self::Cookie(name.into())),
            Some(("constant", text)) if !text.is_empty() => Some(Self::Constant(text.into())),
            _ => None,
        }
    }

    /// Returns the name of the header whose value is the part; `None` for other parts.
    pub(crate) fn header(&self) -> Option<&str> {
        match self {
            Self::Header(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the part's value, encoded; `None` if the request has none. `path` is the normalised path.
    pub(crate) fn encoded(&self, path: &str, source: &dyn Source) -> Result<Option<String>, Ambiguous> {
        let (kind, name, value) = match self {
            Self::Ip => return Ok(Some(encode("ip", &ip(source)))),
            Self::Path => return Ok(Some(encode("path", path))),
            Self::Constant(text) => return Ok(Some(encode("constant", text))),
            Self::Header(name) => ("header", name, source.header(name).map(|value| credential(name, &value))),
            Self::Cookie(name) => ("cookie", name, source.header("cookie").map(|header| cookie(&header, name))),
        };
        Ok(value.transpose()?.flatten().map(|value| encode(&format!("{kind}:{name}"), &value)))
    }
}

/// Returns the key of the client's address; clients without one share a key.
pub(crate) fn ip(source: &dyn Source) -> String {
    source.header(ADDRESS).and_then(|address| client_key(&address)).unwrap_or(UNKNOWN.into())
}

/// Encodes a value with its kind and its length, so that no value can look like another part.
pub(crate) fn encode(kind: &str, value: &str) -> String {
    format!("/{kind}={}:{value}", value.len())
}

/// Returns the name of the object of a key, which consists of encoded parts. Names have no line breaks.
pub(crate) fn object_name(key: String) -> String {
    if key.len() <= MAX_NAME && !key.contains('\n') { key } else { format!("/sha256={}", digest(&key)) }
}

/// Returns whether a text is the name of an object, as logs show it: that of a rule's key or of a key of the API; or `#`
/// and the id of an object, as the live page shows it, whose name may be known only by its hash.
pub(crate) fn is_object_name(text: &str) -> bool {
    if let Some(hash) = text.strip_prefix("/sha256=").or_else(|| text.strip_prefix('#')) {
        return hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    }
    let mut rest = text;
    while !rest.is_empty() {
        let Some(after) = after_part(rest) else { return false };
        rest = after;
    }
    !text.is_empty() && text.len() <= MAX_NAME && !text.contains('\n')
}

/// Returns the text after an encoded part at its start; `None` if there is none.
fn after_part(text: &str) -> Option<&str> {
    let (kind, rest) = text.strip_prefix('/')?.split_once('=')?;
    let (length, rest) = rest.split_once(':')?;
    let is_kind = match Part::parse(kind) {
        Some(Part::Header(name)) => kind.ends_with(&*name),
        Some(Part::Constant(_)) => false,
        Some(_) => true,
        None => matches!(kind, "constant" | "key"),
    };
    let is_kind = is_kind && matches!(length.as_bytes(), [b'1'..=b'9', ..]);
    rest.get(length.parse().ok()?..).filter(|_| is_kind)
}

/// Returns whether a text can be the name of a header or a cookie.
fn is_token(name: &str) -> bool {
    let symbol = |byte| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || symbol(byte))
}

#[cfg(test)]
pub(crate) mod testing {
    use super::Source;

    /// A request that has these headers.
    pub(crate) struct Request(pub(crate) Vec<(&'static str, &'static str)>);

    impl Source for Request {
        fn header(&self, name: &str) -> Option<String> {
            self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Request;
    use super::*;

    fn encoded(part: &str, headers: &[(&'static str, &'static str)]) -> Option<String> {
        Part::parse(part).unwrap().encoded("/a", &Request(headers.to_vec())).unwrap()
    }

    #[test]
    fn parts_are_encoded_with_kind_and_length() {
        assert_eq!(encoded("ip", &[("cf-connecting-ip", "::ffff:192.0.2.1")]).unwrap(), "/ip=9:192.0.2.1");
        assert_eq!(encoded("ip", &[("x-forwarded-for", "192.0.2.1")]).unwrap(), "/ip=7:unknown");
        assert_eq!(encoded("path", &[]).unwrap(), "/path=2:/a");
        assert_eq!(encoded("header:X-Key", &[("x-key", "k")]).unwrap(), "/header:x-key=1:k");
        assert_eq!(encoded("constant:all", &[]).unwrap(), "/constant=3:all");
    }

    #[test]
    fn no_value_passes_for_another_kind_or_for_two() {
        let header = encoded("header:x-key", &[("x-key", "1:k/ip=9:192.0.2.1")]).unwrap();
        let address = encoded("ip", &[("cf-connecting-ip", "192.0.2.1")]).unwrap();
        assert_ne!(header, format!("/header:x-key=1:k{address}"));
        assert_ne!(encode("a", "b/c=1:d"), encode("a", "b") + &encode("c", "d"));
    }

    #[test]
    fn a_missing_part_is_none() {
        assert_eq!(encoded("header:x-key", &[]), None);
        assert_eq!(encoded("header:x-key", &[("x-key", "")]), None);
        assert_eq!(encoded("cookie:id", &[]), None);
        assert_eq!(encoded("header:x-key", &[("x-key", " \t")]), None);
        assert_eq!(encoded("cookie:id", &[("cookie", "xid=1; id=")]), None);
    }

    #[test]
    fn rejects_an_invalid_part() {
        for written in ["", "IP", "header:", "header:a b", "cookie:", "constant:", "user", "ip:4"] {
            assert_eq!(Part::parse(written), None, "{written}");
        }
    }

    #[test]
    fn the_name_of_an_object_is_known_by_its_form() {
        let hash = object_name(encode("path", &"a".repeat(600)));
        for name in [
            "/ip=9:192.0.2.1",
            "/ip=24:2001:0db8:0000:0000::/64",
            "/ip=9:192.0.2.1/constant=5:login",
            "/header:x-key=9:/ip=1:a/b",
            "/cookie:Id=2:é/path=1:/",
            "/key=7:user:42",
            &hash,
            &hash.replace("/sha256=", "#"),
        ] {
            assert!(is_object_name(name), "{name}");
        }
        let long = encode("key", &"a".repeat(600));
        for text in [
            "",
            "/",
            "192.0.2.1",
            "/ip",
            "/ip=192.0.2.1",
            "/ip=09:192.0.2.1",
            "/ip=+9:192.0.2.1",
            "/ip=8:192.0.2.1",
            "/ip=10:192.0.2.1",
            "/ip=0:",
            "/ip=99999999999999999999:a",
            "/ip=9:192.0.2.1/",
            "ip=9:192.0.2.1",
            "/header:X-Key=1:k",
            "/header:=1:k",
            "/constant:a=1:k",
            "/wrong-tokens=9:192.0.2.1",
            "/cookie:a=1:é",
            "/path=3:/\nb",
            "/sha256=ab",
            "#",
            "#ab",
            &hash.to_uppercase(),
            &format!("{hash}/ip=9:192.0.2.1"),
            &long,
        ] {
            assert!(!is_object_name(text), "{text}");
        }
    }

    #[test]
    fn a_long_key_becomes_a_hash_of_its_own_kind() {
        assert_eq!(object_name("/ip=9:192.0.2.1".into()), "/ip=9:192.0.2.1");
        let [one, other] = ["a", "b"].map(|letter| object_name(encode("key", &letter.repeat(600))));
        assert!(one.starts_with("/sha256=") && one.len() == 72);
        assert_ne!(one, other);
        assert!(object_name(encode("path", "/a\nb")).starts_with("/sha256="));
    }
}
