//! The value of a cookie, if every server reads the same one.
//!
//! Servers disagree about everything but `name=value; other=value`: of two cookies with one name some take the first and
//! some the last; some end a value at a comma or a blank, some read escapes between quotes, some decode names or ignore
//! their letter case. So a `Cookie` header is ambiguous, and its request is rejected, unless all of them find one value.

use super::credential::{Ambiguous, is_blank, trimmed};

/// Returns the value of a cookie; `None` if it is missing or empty.
///
/// Spellings that some server reads as one value have one result: without quotes, decoded fully, `+` as a blank.
pub(crate) fn cookie(header: &str, name: &str) -> Result<Option<String>, Ambiguous> {
    let own = Name::of(name);
    let mut found: Option<String> = None;
    for pair in header.split(';') {
        if hides(pair, &own) {
            return Err(Ambiguous);
        }
        let Some((_, value)) = pair.split_once('=').filter(|(name, _)| Name::of(name).is(&own)) else { continue };
        let value = normalised(plain(trimmed(value)).ok_or(Ambiguous)?);
        if found.as_ref().is_some_and(|known| *known != value) {
            return Err(Ambiguous);
        }
        found = Some(value);
    }
    Ok(found.filter(|value| !value.is_empty()))
}

/// Returns whether a server that ends a pair at a comma or a blank finds the cookie inside a pair.
fn hides(pair: &str, own: &Name) -> bool {
    let is_end = |letter: char| letter == ',' || is_blank(letter);
    let mut rest = pair.trim_start_matches(is_blank);
    // The name itself may be followed by blanks.
    let mut is_first = true;
    while let Some(at) = rest.find('=') {
        let before = rest[..at].trim_end_matches(is_blank);
        let start = before.char_indices().rev().find(|(_, letter)| is_end(*letter));
        let word = start.map_or(0, |(at, letter)| at + letter.len_utf8());
        if (word > 0 || !is_first) && Name::of(&before[word..]).is(own) {
            return true;
        }
        is_first = false;
        // Only the first `=` of a word ends a name.
        let Some(end) = rest[at..].find(is_end) else { return false };
        rest = &rest[at + end..];
    }
    false
}

/// A name as servers may read it.
struct Name {
    /// Decoded, in lower case, without blanks around it, a bracket and what follows.
    trimmed: String,
    /// The same with what PHP replaces by `_`.
    replaced: String,
}

impl Name {
    fn of(written: &str) -> Self {
        let mut name = decoded(written);
        name.make_ascii_lowercase();
        let name = name.trim_start_matches(is_blank);
        let replaced = name.replace([' ', '.', '['], "_");
        let trimmed = name.split('[').next().unwrap_or_default().trim_end_matches(is_blank).into();
        Self { trimmed, replaced }
    }

    fn is(&self, own: &Self) -> bool {
        self.trimmed == own.trimmed || self.replaced == own.replaced
    }
}

/// Returns a value without quotes around it; `None` if some server would read only a part of it or an escape in it.
fn plain(value: &str) -> Option<&str> {
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    // The characters that RFC 6265 has in a value.
    value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)).then_some(value)
}

fn normalised(value: &str) -> String {
    trimmed(&decoded(value)).into()
}

/// Returns a text decoded as often as it can be, up to a NUL, with `+` as a blank.
fn decoded(text: &str) -> String {
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        bytes.push(byte);
        // A byte that was decoded may end another escape.
        while let [.., b'%', high, low] = bytes[..] {
            let Some(byte) = digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low) else { break };
            bytes.truncate(bytes.len() - 3);
            bytes.push(byte);
        }
    }
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes.iter_mut().filter(|byte| **byte == b'+').for_each(|byte| *byte = b' ');
    String::from_utf8(bytes).unwrap_or_else(|error| latin1(error.as_bytes()))
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Returns bytes that are not UTF-8 as text, a character each.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> Result<Option<String>, Ambiguous> {
        cookie(header, "id")
    }

    #[test]
    fn spellings_of_one_value_are_one() {
        for header in [
            "id=abc",
            "id=%61bc",
            "id=%2561b%63",
            "id=\"abc\"",
            "id= abc",
            "id =abc",
            "\tid\t=\tabc\t",
            "id=abc; id=abc",
            "id=abc; id=\"%61bc\"",
            "a=b; id=abc; c",
            "a; id=abc",
            "a=\"x; id=abc",
            "a=é x, y; id=abc",
            "ID=abc",
            "%69d=abc",
            "+id=abc",
            "id[x]=abc",
            "id%00x=abc",
            "id=abc%00x",
            "id=abc+",
        ] {
            assert_eq!(read(header).as_ref().map(Option::as_deref), Ok(Some("abc")), "{header}");
        }
        assert_eq!(read("id=a=b"), Ok(Some("a=b".into())));
        assert_eq!(read("id=a+b%20c"), read("id=a%2Bb+c"));
        for (header, value) in [("id=%zz", "%zz"), ("id=%ff", "ÿ"), ("id=%4", "%4"), ("id=%c3%a9", "é")] {
            assert_eq!(read(header), Ok(Some(value.into())));
        }
    }

    #[test]
    fn a_cookie_may_be_missing() {
        for header in ["", "id", "id=", "id=\"\"", "xid=abc", "id=;id= ", "a=id", "a=b id", "x-id=abc", "a=bid=c"] {
            assert_eq!(read(header), Ok(None), "{header}");
        }
    }

    #[test]
    fn a_header_that_servers_read_differently_is_ambiguous() {
        for header in [
            "id=r1; id=abc",
            "id=; id=abc",
            "id=abc; ID=r1",
            "id=abc; id[]=r1",
            "id=\"\\141bc\"",
            "id=\"\\abc\"",
            "id=\\abc",
            "id=\"a;b\"",
            "id=\"abc",
            "id=a\"bc\"",
            "x=1 id=abc",
            "x=1 id =abc",
            "x=1\tid=abc",
            "x=1, id=abc",
            "x=1,id=abc",
            "x id=abc",
            "x=y=z id=abc",
            "x=1\u{1f}id=abc",
            "x=1\u{a0}id=abc",
            "id=abc d=1",
            "id=abc, x=1",
            "id=abc def",
            "id=abcé",
            "id=abc\u{1f}d",
            "id=1 id=abc",
        ] {
            assert_eq!(read(header), Err(Ambiguous), "{header}");
        }
        // PHP replaces characters that no name of a variable has.
        assert_eq!(cookie("a_b=1; a.b=2", "a_b"), Err(Ambiguous));
        assert_eq!(cookie("a =2", "a_"), Ok(Some("2".into())));
    }

    #[test]
    fn a_long_header_takes_no_longer_than_its_length() {
        let long = 200_000;
        assert_eq!(read(&format!("{}id=abc", "x=\"; ".repeat(long))), Ok(Some("abc".into())));
        assert_eq!(read(&format!("x{}; id=abc", "=".repeat(long))), Ok(Some("abc".into())));
        assert_eq!(read(&format!("x{}; id=abc", " ".repeat(long))), Ok(Some("abc".into())));
        assert_eq!(read(&format!("x{}; id=abc", " =".repeat(long))), Ok(Some("abc".into())));
        assert_eq!(read(&format!("id={}", "%25".repeat(long))), Ok(Some("%".repeat(long))));
        assert_eq!(read(&format!("{}; id=abc", "x ".repeat(long))), Ok(Some("abc".into())));
    }
}
