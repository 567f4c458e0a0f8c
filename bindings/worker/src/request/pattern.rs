//! The path patterns of rules: literal segments, `:name` for any one segment, `*` at the end for any rest.

use crate::request::fold::folded;
use crate::request::path::{Path, without_end};
use crate::request::reading::Reading;

/// A pattern such as `/users/:id/posts/*`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    segments: Vec<Part>,
    /// Whether any segments, or none, may follow.
    open: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Literal { exact: Box<str>, folded: Box<str> },
    Any,
}

/// How a path matches a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    No,
    /// In another letter case.
    Folded,
    /// Without the end of a segment, which some servers drop.
    Longer,
    Exact,
}

/// Describes the accepted patterns in error messages.
pub(crate) const ACCEPTS: &str =
    "a path such as \"/users/:id\" or \"/api/*\", with * only as the last segment, and without . and ..";

impl Pattern {
    /// Parses a pattern; `None` if invalid.
    pub(crate) fn parse(written: &str) -> Option<Self> {
        let mut rest = written.strip_prefix('/')?;
        let open = rest == "*" || rest.ends_with("/*");
        if open {
            rest = rest[..rest.len() - 1].trim_end_matches('/');
        }
        let mut segments = Vec::new();
        for segment in rest.split('/').filter(|segment| !segment.is_empty()) {
            segments.push(match segment.strip_prefix(':') {
                Some("") => return None,
                Some(_) => Part::Any,
                None if segment.contains(['*', '?', '#']) => return None,
                None => Part::literal(Path::new(segment).text())?,
            });
        }
        Some(Self { segments, open })
    }

    /// Returns how many segments the pattern has.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Returns how a path matches under one reading.
    pub(crate) fn matches(&self, reading: &Reading<'_>) -> Match {
        let Some((own, rest)) = reading.segments.split_at_checked(self.segments.len()) else { return Match::No };
        if !self.open && !rest.is_empty() {
            return Match::No;
        }
        let mut least = Match::Exact;
        for (part, segment) in self.segments.iter().zip(own) {
            least = least.min(match part {
                Part::Any => Match::Exact,
                Part::Literal { .. } if !reading.decoded(segment) => Match::No,
                literal => literal.compare(segment.text),
            });
            if least == Match::No {
                break;
            }
        }
        least
    }
}

impl Part {
    fn literal(text: String) -> Option<Self> {
        let folded = folded(&text).into();
        (text != "." && text != "..").then(|| Self::Literal { exact: text.into(), folded })
    }

    fn compare(&self, text: &[u8]) -> Match {
        match self {
            Self::Any => Match::Exact,
            Self::Literal { exact, .. } if exact.as_bytes() == text => Match::Exact,
            Self::Literal { exact, folded } => {
                let text = without_end(text);
                if exact.as_bytes() == text {
                    Match::Longer
                } else if is_folded(text, folded) {
                    Match::Folded
                } else {
                    Match::No
                }
            }
        }
    }
}

/// Returns whether a text is a folded literal in some letter case.
fn is_folded(text: &[u8], literal: &str) -> bool {
    if text.is_ascii() {
        literal.as_bytes().eq_ignore_ascii_case(text)
    } else {
        folded(&String::from_utf8_lossy(text)) == literal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::reading::readings;

    /// The best match under any reading.
    fn best(pattern: &str, path: &str) -> Match {
        let pattern = Pattern::parse(pattern).unwrap();
        let mut best = Match::No;
        readings(path, |reading| best = best.max(pattern.matches(&reading)));
        best
    }

    #[test]
    fn literals_names_and_the_rest() {
        for (pattern, path) in [
            ("/", "/"),
            ("/*", "/"),
            ("/*", "/a/b"),
            ("/api/*", "/api"),
            ("/api/*", "/api/"),
            ("/api/*", "/api/v1/users"),
            ("/users/:id", "/users/42"),
            ("/users/:id", "/users/"),
            ("/users/:id/posts", "/users/a%20b/posts"),
            ("/users/:id/posts", "/users//posts"),
            ("/users/:id/*", "/users/42"),
            ("/caf%C3%A9", "/caf%c3%a9"),
            ("/café", "/caf%C3%A9"),
            ("/a%2Fb", "/a%2fb"),
            ("/users/", "/users"),
            ("/Users", "/Users"),
        ] {
            assert_eq!(best(pattern, path), Match::Exact, "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/", "/a"),
            ("/api/*", "/apis"),
            ("/api", "/api/v1"),
            ("/users/:id", "/users"),
            ("/users/:id", "/users/42/posts"),
        ] {
            assert_eq!(best(pattern, path), Match::No, "{pattern} {path}");
        }
    }

    #[test]
    fn another_letter_case_is_another_match() {
        for (pattern, path) in [("/Users", "/uSERS"), ("/café", "/CAF%C3%89"), ("/api/*", "/API/x")] {
            assert_eq!(best(pattern, path), Match::Folded, "{pattern} {path}");
        }
    }

    #[test]
    fn an_end_that_some_servers_drop_is_another_match() {
        for (pattern, path) in [("/users", "/users."), ("/users", "/users%20%0a"), ("/users", "/users%00.css")] {
            assert_eq!(best(pattern, path), Match::Longer, "{pattern} {path}");
        }
        assert_eq!(best("/Users", "/users%0a"), Match::Folded);
        assert_eq!(best("/users", "/users%20x"), Match::No);
    }

    #[test]
    fn rejects_an_invalid_pattern() {
        for written in ["", "api", "/a*", "/*/a", "/a/:", "/a?b", "/**", "*", "/a/../b", "/%2e/a"] {
            assert_eq!(Pattern::parse(written), None, "{written}");
        }
    }
}
