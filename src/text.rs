//! Texts put together by hand: the formatting machinery would outweigh the core in wasm.

use alloc::string::String;

/// What a field that is not there is called, where one is needed.
pub(crate) const LEFT_OUT: &str = "leaving it out";

/// How much of a text that was found an error repeats.
const SHOWN: usize = 64;

/// What text is written into.
pub(crate) trait Text {
    fn push(&mut self, character: char);
    fn push_str(&mut self, piece: &str);
}

impl Text for String {
    fn push(&mut self, character: char) {
        self.push(character);
    }

    fn push_str(&mut self, piece: &str) {
        self.push_str(piece);
    }
}

/// The pieces one after the other.
pub(crate) fn text(pieces: &[&str]) -> String {
    let mut whole = String::new();
    push(&mut whole, pieces);
    whole
}

/// Adds the pieces one after the other.
pub(crate) fn push(whole: &mut String, pieces: &[&str]) {
    for piece in pieces {
        whole.push_str(piece);
    }
}

/// A number in digits.
pub(crate) fn digits(number: u64) -> String {
    let mut whole = String::new();
    push_digits(&mut whole, number);
    whole
}

/// Adds a number in digits.
pub(crate) fn push_digits(whole: &mut impl Text, number: u64) {
    if number >= 10 {
        push_digits(whole, number / 10);
    }
    whole.push(char::from(b'0' + (number % 10) as u8));
}

/// A text in quotes, with quotes and backslashes escaped, as JSON and structured fields have it.
pub(crate) fn quoted(found: &str) -> String {
    let mut whole = String::new();
    push_quoted(&mut whole, found.chars());
    whole
}

/// Adds a text in quotes.
pub(crate) fn push_quoted(whole: &mut impl Text, characters: impl Iterator<Item = char>) {
    whole.push('"');
    for character in characters {
        if character == '"' || character == '\\' {
            whole.push('\\');
        }
        whole.push(character);
    }
    whole.push('"');
}

/// A text as an error repeats it: in quotes, not too long, and on one line.
pub(crate) fn shown(found: &str) -> String {
    let mut short = String::new();
    for (position, character) in found.chars().enumerate() {
        if position == SHOWN {
            short.push('…');
            break;
        }
        short.push(if character.is_ascii_control() { '\u{fffd}' } else { character });
    }
    quoted(&short)
}

/// Names with commas between them.
pub(crate) fn listed(names: &[impl AsRef<str>]) -> String {
    let mut whole = String::new();
    for name in names {
        if !whole.is_empty() {
            whole.push_str(", ");
        }
        whole.push_str(name.as_ref());
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are() {
        for number in [0, 7, 10, 9_007_199_254_740_991, u64::MAX] {
            assert_eq!(digits(number), number.to_string());
        }
    }

    #[test]
    fn what_was_found_is_shown_on_one_line() {
        assert_eq!(shown("a\"b\\c\nd"), "\"a\\\"b\\\\c\u{fffd}d\"");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), 67);
    }
}
