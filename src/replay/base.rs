//! The base of a value: the states after an entry as text, and the tokens of recent entries.
//!
//! Numbers are written in base 36, each as its difference to the last but one: a log has times and costs by turns, and so
//! takes a few characters for each hit.

use alloc::string::String;
use alloc::vec::Vec;

use super::Unreadable;
use super::entry::PROCESS;
use super::text::{Cursor, push_number};
use crate::memory::push;

/// How long the base remembers an entry's token after the entry, in milliseconds. A client that sends an entry again
/// after that is past the entry's deadline.
const REMEMBERED: u64 = 60_000;

/// The highest number of a process's entries, and when that entry came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) process: [u8; PROCESS],
    pub(super) number: u64,
    pub(super) at: u64,
}

impl Token {
    /// Whether a base that ends at `stamp` has to remember it.
    pub(super) fn is_recent(&self, stamp: u64) -> bool {
        self.at + REMEMBERED > stamp
    }
}

/// Appends lists of numbers: `,` between numbers, `;` between lists.
pub(super) fn push_lists(text: &mut String, lists: &[Vec<i64>]) {
    for (position, list) in lists.iter().enumerate() {
        if position > 0 {
            text.push(';');
        }
        for (at, &number) in list.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            let before = if at < 2 { 0 } else { list[at - 2] };
            push_number(text, number.wrapping_sub(before));
        }
    }
}

/// Reads lists of numbers until a byte that ends them, which stays.
pub(super) fn lists(cursor: &mut Cursor<'_>) -> Result<Vec<Vec<i64>>, Unreadable> {
    let mut lists = Vec::new();
    loop {
        let mut list: Vec<i64> = Vec::new();
        while cursor.peek().is_some_and(|byte| byte == b'-' || byte.is_ascii_alphanumeric()) {
            let before = if list.len() < 2 { 0 } else { list[list.len() - 2] };
            push(&mut list, cursor.number()?.wrapping_add(before))?;
            if !cursor.take(b',') {
                break;
            }
        }
        push(&mut lists, list)?;
        if !cursor.take(b';') {
            return Ok(lists);
        }
    }
}

/// Appends the tokens that a base which ends at `stamp` has to remember, each as process, number and age.
pub(super) fn push_tokens(text: &mut String, tokens: &[Token], stamp: u64) {
    for token in tokens.iter().filter(|token| token.is_recent(stamp)) {
        text.push('~');
        text.extend(token.process.iter().map(|&byte| char::from(byte)));
        push_number(text, token.number as i64);
        text.push('.');
        push_number(text, stamp.saturating_sub(token.at) as i64);
    }
}

/// Reads the tokens of a base that ends at `stamp`.
pub(super) fn tokens(cursor: &mut Cursor<'_>, stamp: u64) -> Result<Vec<Token>, Unreadable> {
    let mut tokens = Vec::new();
    while cursor.take(b'~') {
        let process = cursor.bytes()?;
        let number = cursor.number()? as u64;
        cursor.expect(b'.')?;
        let age = u64::try_from(cursor.number()?).map_err(|_| Unreadable::Malformed)?;
        push(&mut tokens, Token { process, number, at: stamp.saturating_sub(age) })?;
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn lists_are_read_as_they_were_written() {
        let all = [
            vec![vec![]],
            vec![vec![1, 2], vec![], vec![-7]],
            vec![vec![1_767_227_321_853, 1, 1_767_227_321_900, 1, 1_767_227_322_000, 3]],
            vec![vec![i64::MIN, i64::MAX, i64::MAX, i64::MIN, 0, 0]],
        ];
        for written in all {
            let mut text = String::new();
            push_lists(&mut text, &written);
            assert_eq!(lists(&mut Cursor::new(&text)), Ok(written), "{text}");
        }
    }

    #[test]
    fn a_long_log_takes_few_characters() {
        let log: Vec<i64> = (0..1_000).flat_map(|hit| [1_767_227_321_853 + 61 * hit, 1]).collect();
        let mut text = String::new();
        push_lists(&mut text, &[log]);
        assert!(text.len() < 5_100, "{}", text.len());
    }

    #[test]
    fn tokens_are_remembered_for_a_minute() {
        let token = |process, number, at| Token { process: [process; PROCESS], number, at };
        let (old, young) = (token(b'a', 7, 10_000), token(b'b', 1_295, 10_001));
        let mut text = String::new();
        push_tokens(&mut text, &[old, young], 70_000);
        assert_eq!(text, "~bbbbbbbbzz.1aan");
        assert_eq!(tokens(&mut Cursor::new(&text), 70_000), Ok(vec![young]));
    }
}
