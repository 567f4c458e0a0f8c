//! The values of headers as origins read them: values that differ only in spelling are one key.

/// The error of a value that origins read differently: the key would not be the one that they see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ambiguous;

/// Returns a header's value without the blanks around it; `None` if it is empty. `name` is in lower case.
pub(crate) fn credential(name: &str, value: &str) -> Result<Option<String>, Ambiguous> {
    let value = trimmed(value);
    let value = match name {
        "authorization" | "proxy-authorization" => authorization(value)?,
        _ if value.contains(',') => list(value),
        _ => value.into(),
    };
    Ok(Some(value).filter(|value| !value.is_empty()))
}

/// Returns a list without its empty elements, which RFC 9110 tells readers to ignore.
fn list(value: &str) -> String {
    let elements: Vec<&str> = value.split(',').map(trimmed).filter(|element| !element.is_empty()).collect();
    elements.join(", ")
}

/// Returns `Authorization` with its scheme in lower case and one space after it.
fn authorization(value: &str) -> Result<String, Ambiguous> {
    let Some((scheme, rest)) = value.split_once(is_blank) else { return Ok(value.into()) };
    let (scheme, rest) = (scheme.to_ascii_lowercase(), trimmed(rest));
    Ok(match scheme.as_str() {
        // Rails reads both alike.
        "bearer" | "token" => format!("bearer {}", token(rest)),
        "basic" => format!("basic {}", base64(rest)?),
        _ => format!("{scheme} {rest}"),
    })
}

/// Returns the token at the start of credentials: one word, or Rails' `token="word", option="value"`.
fn token(credentials: &str) -> &str {
    let is_end = |letter: char| is_blank(letter) || letter == ',' || letter == ';';
    let word = credentials.trim_start_matches(is_end).split(is_end).next().unwrap_or_default();
    word.strip_prefix("token=").unwrap_or(word).trim_matches('"')
}

/// Returns base64 in one spelling: decoders accept both alphabets and ignore spare bits. Some skip what is no digit, and
/// others end there, so that is ambiguous.
fn base64(text: &str) -> Result<String, Ambiguous> {
    let digit = |byte: u8| match byte {
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        b'+' | b'/' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => Some(byte),
        _ => None,
    };
    let unpadded = text.trim_end_matches('=').bytes();
    let mut digits: Vec<u8> = unpadded.map(digit).collect::<Option<_>>().ok_or(Ambiguous)?;
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
    Ok(String::from_utf8_lossy(&digits).into())
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn value_of(digit: u8) -> usize {
    DIGITS.iter().position(|known| *known == digit).unwrap_or(0)
}

/// Returns a text without the blanks around it.
pub(super) fn trimmed(text: &str) -> &str {
    let is_graphic = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
    if is_graphic(text.as_bytes().first()) && is_graphic(text.as_bytes().last()) {
        return text;
    }
    text.trim_matches(is_blank)
}

/// Returns whether some origin takes a character for a blank: those of Unicode, and the controls that Python does. The
/// platform shows a byte that is not UTF-8, such as a no-break space in Latin-1, as the replacement character.
pub(super) fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control() || letter == '\u{feff}' || letter == '\u{fffd}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorized(value: &str) -> String {
        credential("authorization", value).unwrap().unwrap()
    }

    fn keyed(value: &str) -> Option<String> {
        credential("x-key", value).unwrap()
    }

    #[test]
    fn a_header_is_trimmed() {
        for value in ["key", " key", "key\t ", "\u{a0}key\u{a0}", "\u{feff}key", "key\u{fffd}", "key\u{1f}"] {
            assert_eq!(keyed(value).as_deref(), Some("key"), "{value:?}");
        }
        assert_eq!(keyed("a b, C").as_deref(), Some("a b, C"));
        assert_eq!(keyed(" \t\u{a0}"), None);
    }

    #[test]
    fn empty_elements_of_a_list_do_not_count() {
        for value in ["tok,", ", tok", ",tok,,", "tok, ,", ",\t, tok"] {
            assert_eq!(keyed(value).as_deref(), Some("tok"), "{value:?}");
        }
        for value in ["a,b", "a ,, b", ",a,b"] {
            assert_eq!(keyed(value).as_deref(), Some("a, b"), "{value:?}");
        }
        assert_eq!(keyed(" , ,"), None);
    }

    #[test]
    fn a_token_is_one_however_servers_take_it_apart() {
        for value in [
            "Bearer aB",
            "bearer aB",
            "BEARER  aB",
            "Bearer\taB ",
            "Bearer aB junk",
            "Bearer aB, Bearer x",
            "Bearer\u{fffd}\u{a0}aB",
            "Bearer\u{1f}aB",
            "Bearer aB;n=1",
            "Bearer ;,aB",
            "Bearer aB\tn=1",
            "Token aB",
            "Token token=\"aB\";n=1",
            "Token token=\"aB\", nonce=\"x\"",
            "Bearer token=aB",
            "Bearer \"aB\"",
        ] {
            assert_eq!(authorized(value), "bearer aB", "{value:?}");
        }
        assert_eq!(authorized("aB"), "aB");
        assert_eq!(authorized("Digest  username=\"a\", nc=1"), "digest username=\"a\", nc=1");
        assert_eq!(authorized("Bearer"), "Bearer");
    }

    #[test]
    fn basic_credentials_are_one_however_their_base64_is_spelled() {
        for value in ["dTpwYQ==", "dTpwYQ", "dTpwYR==", "dTpwYQ=", "dTpwYf"] {
            assert_eq!(authorized(&format!("Basic {value}")), "basic dTpwYQ", "{value}");
        }
        assert_eq!(authorized("Basic dTpw_-8="), authorized("basic dTpw/+8"));
        assert_ne!(authorized("Basic dTpwYg=="), authorized("Basic dTpwYQ=="));
        assert_eq!(authorized("Basic ="), "basic ");
    }

    #[test]
    fn basic_credentials_that_decoders_read_differently_are_ambiguous() {
        for value in ["dTpw,YQ==", "dTpw;YQ==", "d.Tp~wYQ=", "dTpw YQ==", "dTpwYQ==, Basic eA==", "dTpwYQ==eA"] {
            assert_eq!(credential("authorization", &format!("Basic {value}")), Err(Ambiguous), "{value}");
        }
    }
}
