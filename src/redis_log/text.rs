//! Numbers as text, and a cursor that parses them.

use alloc::string::String;

use super::ReplayError;

const RADIX: u64 = 36;

/// Appends a number in base 36.
pub(super) fn push_number(text: &mut String, number: i64) {
    if number < 0 {
        text.push('-');
    }
    let mut digits = [0_u8; 13];
    let mut rest = number.unsigned_abs();
    let mut first = digits.len();
    loop {
        first -= 1;
        let digit = (rest % RADIX) as u8;
        digits[first] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        rest /= RADIX;
        if rest == 0 {
            break;
        }
    }
    text.push_str(core::str::from_utf8(&digits[first..]).unwrap_or_default());
}

/// The part of a text that is not parsed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.as_bytes() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next byte without taking it.
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Takes the next byte if it is `byte`. Returns whether it was.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Takes `byte`, which must come next.
    pub(super) fn expect(&mut self, byte: u8) -> Result<(), ReplayError> {
        if self.take(byte) { Ok(()) } else { Err(ReplayError::Malformed) }
    }

    /// Takes the next byte.
    pub(super) fn next(&mut self) -> Result<u8, ReplayError> {
        let (&byte, rest) = self.rest.split_first().ok_or(ReplayError::Malformed)?;
        self.rest = rest;
        Ok(byte)
    }

    /// Takes the next `N` bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ReplayError> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(ReplayError::Malformed)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// Takes the text before the next of the bytes in `ends`, one of which must follow.
    pub(super) fn until(&mut self, ends: &[u8]) -> Result<&'a str, ReplayError> {
        let end = self.rest.iter().position(|byte| ends.contains(byte)).ok_or(ReplayError::Malformed)?;
        self.text(end)
    }

    /// Takes the text before the next of these bytes, or the rest if there is none.
    pub(super) fn until_or_rest(&mut self, ends: &[u8]) -> Result<&'a str, ReplayError> {
        self.text(self.rest.iter().position(|byte| ends.contains(byte)).unwrap_or(self.rest.len()))
    }

    /// Takes the digits, commas and underscores that come next.
    pub(super) fn amounts(&mut self) -> &'a str {
        let is_amount = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b',' | b'_');
        let end = self.rest.iter().position(|byte| !is_amount(byte)).unwrap_or(self.rest.len());
        self.text(end).unwrap_or_default()
    }

    /// Parses the rest as a decimal number; `None` if invalid.
    pub(super) fn into_decimal(mut self) -> Option<u64> {
        self.decimal().ok().filter(|_| self.is_empty())
    }

    fn text(&mut self, length: usize) -> Result<&'a str, ReplayError> {
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        core::str::from_utf8(text).map_err(|_| ReplayError::Malformed)
    }

    /// Takes a decimal number.
    pub(super) fn decimal(&mut self) -> Result<u64, ReplayError> {
        self.digits(10)
    }

    /// Takes a decimal number that may be negative.
    pub(super) fn signed(&mut self) -> Result<i64, ReplayError> {
        self.integer(10)
    }

    /// Takes a number in base 36 that may be negative.
    pub(super) fn number(&mut self) -> Result<i64, ReplayError> {
        self.integer(RADIX)
    }

    fn integer(&mut self, radix: u64) -> Result<i64, ReplayError> {
        let negative = self.take(b'-');
        let number = self.digits(radix)?;
        match (i64::try_from(number), negative) {
            (Ok(number), false) => Ok(number),
            (Ok(number), true) => Ok(-number),
            (Err(_), true) if number == i64::MIN.unsigned_abs() => Ok(i64::MIN),
            _ => Err(ReplayError::Malformed),
        }
    }

    fn digits(&mut self, radix: u64) -> Result<u64, ReplayError> {
        let mut number = 0_u64;
        let mut count = 0;
        while let Some(digit) = self.peek().and_then(digit_of).filter(|&digit| digit < radix) {
            number =
                number.checked_mul(radix).and_then(|number| number.checked_add(digit)).ok_or(ReplayError::Malformed)?;
            self.rest = &self.rest[1..];
            count += 1;
        }
        if count == 0 { Err(ReplayError::Malformed) } else { Ok(number) }
    }
}

fn digit_of(byte: u8) -> Option<u64> {
    match byte {
        b'0'..=b'9' => Some(u64::from(byte - b'0')),
        b'a'..=b'z' => Some(u64::from(byte - b'a') + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_was_written() {
        for number in [0, 1, 35, 36, -1, -36, 1_767_227_321_853, i64::MAX, i64::MIN] {
            let mut text = String::new();
            push_number(&mut text, number);
            let mut cursor = Cursor::new(&text);
            assert_eq!(cursor.number(), Ok(number), "{text}");
            assert!(cursor.is_empty());
        }
    }

    #[test]
    fn a_text_that_is_not_a_number_is_malformed() {
        for text in ["", "-", "Z", "zzzzzzzzzzzzzzzz", "-zzzzzzzzzzzzzz"] {
            assert_eq!(Cursor::new(text).number(), Err(ReplayError::Malformed), "{text}");
        }
    }
}
