//! The values of headers and cookies as origins read them: values that differ only in spelling are one key.

/// Schemes of `Authorization` whose credentials are one word. Origins ignore the rest.
const ONE_WORD: [&str; 3] = ["bearer", "basic", "token"];

/// Returns a header's value without the blanks around it; `None` if it is empty. `name` is in lower case.
pub(crate) fn credential(name: &str, value: &str) -> Option<String> {
    let value = trimmed(value);
    if value.is_empty() {
        return None;
    }
    Some(match name {
        "authorization" | "proxy-authorization" => authorization(value),
        _ => value.into(),
    })
}

/// Returns `Authorization` with its scheme in lower case and one space after it.
fn authorization(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once(is_blank) else { return value.into() };
    let rest = trimmed(rest);
    let mut whole = String::with_capacity(value.len());
    whole.push_str(scheme);
    whole.make_ascii_lowercase();
    let one_word = ONE_WORD.contains(&whole.as_str());
    let rest =
        if one_word { rest.split(|letter| is_blank(letter) || letter == ',').next().unwrap_or_default() } else { rest };
    whole.push(' ');
    if whole == "basic " { whole + &base64(rest) } else { whole + rest }
}

/// Returns base64 in one spelling: decoders skip other characters, accept both alphabets and ignore spare bits.
fn base64(text: &str) -> String {
    let digit = |byte: u8| match byte {
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        b'+' | b'/' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => Some(byte),
        _ => None,
    };
    let mut digits: Vec<u8> = text.bytes().filter_map(digit).collect();
    // One digit is no byte; of two the last has four spare bits, of three it has two.
    let spare = match digits.len() % 4 {
        0 => None,
        1 => digits.pop().and(None),
        2 => Some(0b00_1111),
        _ => Some(0b00_0011),
    };
    if let (Some(spare), Some(last)) = (spare, digits.last_mut()) {
        *last = DIGITS[value_of(*last) & !spare];
    }
    String::from_utf8_lossy(&digits).into()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn value_of(digit: u8) -> usize {
    DIGITS.iter().position(|known| *known == digit).unwrap_or(0)
}

/// Returns the value of a cookie as the package `cookie` and most frameworks read it: the first of that name, without
/// blanks and quotes, percent-decoded; `None` if it is missing or empty.
///
/// Some readers skip an empty or an invalid value, so such a value counts only if there is no other.
pub(crate) fn cookie(header: &str, name: &str) -> Option<String> {
    let values = |separators: &'static [char]| {
        let pairs = header.split(separators).filter_map(|pair| pair.split_once('='));
        pairs.filter(|(found, _)| trimmed(found) == name).map(|(_, value)| unquoted(trimmed(value)))
    };
    let found = |separators: &'static [char]| {
        values(separators).find(|value| !value.is_empty() && value.bytes().all(is_cookie_octet))
    };
    let any = |separators: &'static [char]| values(separators).find(|value| !value.is_empty());
    // Old servers separate cookies by commas.
    let value = found(&[';']).or_else(|| any(&[';'])).or_else(|| any(&[';', ',']))?;
    Some(percent_decoded(value))
}

/// Returns whether a byte may stand in a cookie's value, by what readers accept.
fn is_cookie_octet(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// Returns a text decoded once, or as it is if it cannot be decoded as a whole.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let Some((byte, after)) = escape(after) else { return text.into() };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.into())
}

fn escape(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = bytes.split_first_chunk::<2>()?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    Some((u8::from_str_radix(digits, 16).ok()?, rest))
}

/// Returns a text without the blanks around it.
fn trimmed(text: &str) -> &str {
    let is_graphic = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
    if is_graphic(text.as_bytes().first()) && is_graphic(text.as_bytes().last()) {
        return text;
    }
    text.trim_matches(is_blank)
}

/// Returns whether some origin takes a character for a blank, those of Unicode included. The platform shows a byte that
/// is not UTF-8, such as a no-break space in Latin-1, as the replacement character.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter == '\u{feff}' || letter == '\u{fffd}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorized(value: &str) -> String {
        credential("authorization", value).unwrap()
    }

    #[test]
    fn a_header_is_trimmed() {
        for value in ["key", " key", "key\t ", "\u{a0}key\u{a0}", "\u{feff}key", "key\u{fffd}"] {
            assert_eq!(credential("x-key", value).as_deref(), Some("key"), "{value:?}");
        }
        assert_eq!(credential("x-key", "a b, C").as_deref(), Some("a b, C"));
        assert_eq!(credential("x-key", " \t\u{a0}"), None);
    }

    #[test]
    fn a_scheme_is_in_lower_case_and_followed_by_one_space() {
        for value in [
            "Bearer aB",
            "bearer aB",
            "BEARER  aB",
            "Bearer\taB ",
            "Bearer aB junk",
            "Bearer aB, Bearer x",
            "Bearer\u{fffd}\u{a0}aB",
        ] {
            assert_eq!(authorized(value), "bearer aB", "{value:?}");
        }
        assert_eq!(authorized("aB"), "aB");
        assert_eq!(authorized("Digest  username=\"a\", nc=1"), "digest username=\"a\", nc=1");
        assert_eq!(authorized("Bearer"), "Bearer");
    }

    #[test]
    fn basic_credentials_are_one_however_their_base64_is_spelled() {
        for value in ["dTpwYQ==", "dTpwYQ", "dTpwYR==", "d.Tp~wYQ=", "dTpwYf"] {
            assert_eq!(authorized(&format!("Basic {value}")), "basic dTpwYQ", "{value}");
        }
        assert_eq!(authorized("Basic dTpw_-8="), authorized("basic dTpw/+8"));
        assert_ne!(authorized("Basic dTpwYg=="), authorized("Basic dTpwYQ=="));
        assert_eq!(authorized("Basic ="), "basic ");
    }

    #[test]
    fn a_cookie_is_read_as_origins_read_it() {
        for header in [
            "id=abc",
            "id=%61bc",
            "id=\"abc\"",
            "id= abc",
            "id =abc",
            "\tid\t=\tabc\t",
            "id=abc; id=x",
            "a=b; id=abc; c",
            "a; id=abc",
            "id=; id=abc",
            "id=\"\"; id=abc",
            "id=\"x; id=abc",
            "id=é; id=abc",
            "id=%61%62%63",
            "a=b, id=abc",
        ] {
            assert_eq!(cookie(header, "id").as_deref(), Some("abc"), "{header}");
        }
        assert_eq!(cookie("id=é", "id").as_deref(), Some("é"));
        assert_eq!(cookie("id=a=b", "id").as_deref(), Some("a=b"));
        assert_eq!(cookie("id=a,b", "id").as_deref(), Some("a,b"));
        for (header, value) in [("id=%zz", "%zz"), ("id=%ff", "%ff"), ("id=%4", "%4"), ("id=%+1", "%+1")] {
            assert_eq!(cookie(header, "id").as_deref(), Some(value));
        }
        for header in ["", "id", "id=", "id=\"\"", "ID=abc", "xid=abc", "id=;id= "] {
            assert_eq!(cookie(header, "id"), None, "{header}");
        }
    }

    #[test]
    fn many_cookies_take_no_longer_than_their_length() {
        let header = format!("{}id=abc", "id=\"; ".repeat(20_000));
        assert_eq!(cookie(&header, "id").as_deref(), Some("abc"));
    }
}
