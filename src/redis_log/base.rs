//! The base of a value: the states after an entry as text, and the tokens of recent entries.
//!
//! Numbers are in base 36, and each is the difference to the number two places before it. The state of a sliding window
//! alternates times and costs, so each hit takes a few characters.

use alloc::string::String;
use alloc::vec::Vec;

use super::ReplayError;
use super::entry::Tag;
use super::text::{Cursor, push_number};
use crate::growth::{OutOfMemory, push};
use crate::key::shapes::Shape;
use crate::store::record::StoredRow;
use crate::{Ledger, Policies, Record};

/// How long the base keeps the token of an entry, in milliseconds. A client that resends the entry later is past the
/// entry's deadline.
const TOKEN_TTL: u64 = 60_000;

/// The number of tokens from which on expired ones are dropped.
const MANY_TOKENS: usize = 64;

/// The tag with the highest number among the entries of a process, and the time of its last entry. With it the store
/// detects an entry that is sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) tag: Tag,
    pub(super) at: u64,
}

impl Token {
    /// Returns whether a base of time `stamp` must contain the token.
    pub(super) fn is_recent(&self, stamp: u64) -> bool {
        self.at + TOKEN_TTL > stamp
    }
}

/// Records the tag of an entry among the tokens, of which that of the last entry is last.
pub(super) fn record_token(tokens: &mut Vec<Token>, token: Token, stamp: u64) -> Result<(), OutOfMemory> {
    if let Some(position) = tokens.iter().position(|known| known.tag.process() == token.tag.process()) {
        let known = &mut tokens[position];
        if token.tag.number() > known.tag.number() {
            known.tag = token.tag;
        }
        known.at = known.at.max(token.at);
        tokens[position..].rotate_left(1);
        return Ok(());
    }
    if tokens.len() >= MANY_TOKENS {
        tokens.retain(|token| token.is_recent(stamp));
    }
    tokens.try_reserve_exact(1)?;
    push(tokens, token)
}

/// Appends lists of numbers: `,` between numbers, `;` between lists.
pub(super) fn push_lists(text: &mut String, lists: &[Vec<i64>]) {
    for (index, list) in lists.iter().enumerate() {
        if index > 0 {
            text.push(';');
        }
        for (position, &number) in list.iter().enumerate() {
            if position > 0 {
                text.push(',');
            }
            let before = if position < 2 { 0 } else { list[position - 2] };
            push_number(text, number.wrapping_sub(before));
        }
    }
}

/// Reads lists of numbers, up to the first byte that is not part of one.
pub(super) fn read_lists(cursor: &mut Cursor<'_>) -> Result<Vec<Vec<i64>>, ReplayError> {
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

/// Appends the rows of a ledger: for each of its policies the numbers of the state; after `=` the parts of open reservations,
/// each after the position of its policy; after `:` the other rows, each as the bytes of its name after their count, and the
/// numbers of a record's row.
pub(super) fn push_rows(text: &mut String, ledger: &Ledger) {
    let (mut own, mut open) = (Vec::new(), Vec::new());
    let mut rows = ledger.rows();
    let others = rows.split_off(ledger.policies().len());
    for (position, row) in rows.iter().enumerate() {
        let row = row.as_ref();
        open.extend(row.open.iter().map(|part| [&[position as i64], &part[..]].concat()));
        own.push(row.state.to_vec());
    }
    let stored = ledger.stored(&others).chain(ledger.stored_parked(0));
    let stored = stored.map(|StoredRow(name, numbers)| -> Vec<i64> {
        let name = [name.len() as i64].into_iter().chain(name.bytes().map(i64::from));
        name.chain(numbers).collect()
    });
    let mut others: Vec<Vec<i64>> = Vec::new();
    for row in stored {
        // In order, since a replica has them in the order in which it read them.
        let at = others.iter().position(|other| *other > row).unwrap_or(others.len());
        others.insert(at, row);
    }
    push_lists(text, &own);
    for (separator, lists) in [('=', open), (':', others)] {
        if !lists.is_empty() {
            text.push(separator);
            push_lists(text, &lists);
        }
    }
}

/// Returns the record of the rows that [`push_rows`] appended.
pub(super) fn to_record(
    policies: &Policies,
    own: Vec<Vec<i64>>,
    open: Vec<Vec<i64>>,
    others: &[Vec<i64>],
) -> Result<Record, ReplayError> {
    if own.len() != policies.len() {
        return Err(ReplayError::Malformed);
    }
    let mut rows: Vec<StoredRow> = Vec::new();
    for ((name, policy), state) in policies.names().zip(policies.iter()).zip(own) {
        let Shape { algorithm, scale, .. } = Shape::of(0, &policy.algorithm);
        // When it ends is read off the state.
        let head = [algorithm as i64, scale.number(), 0, state.len() as i64];
        rows.push(StoredRow(name.into(), head.into_iter().chain(state).collect()));
    }
    for row in open {
        let (&position, part) = row.split_first().ok_or(ReplayError::Malformed)?;
        let own = usize::try_from(position).ok().and_then(|position| rows.get_mut(position));
        own.ok_or(ReplayError::Malformed)?.1.extend_from_slice(part);
    }
    for row in others {
        rows.push(other_row(row).ok_or(ReplayError::Malformed)?);
    }
    Ok(Record::new(rows))
}

fn other_row(row: &[i64]) -> Option<StoredRow> {
    let (&length, rest) = row.split_first()?;
    let (name, numbers) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    let name: Option<Vec<u8>> = name.iter().map(|&byte| u8::try_from(byte).ok()).collect();
    Some(StoredRow(String::from_utf8(name?).ok()?, numbers.into()))
}

/// Appends the tokens that a base of time `stamp` must contain, each as tag and age. The one that is the base's mark is left out.
pub(super) fn push_tokens(text: &mut String, tokens: &[Token], stamp: u64, mark: Option<Tag>) {
    for token in tokens.iter().filter(|token| token.is_recent(stamp) && mark != Some(token.tag)) {
        text.push('~');
        token.tag.push_to(text);
        push_number(text, stamp.saturating_sub(token.at) as i64);
    }
}

/// Reads the tokens of a base of time `stamp`.
pub(super) fn read_tokens(cursor: &mut Cursor<'_>, stamp: u64) -> Result<Vec<Token>, ReplayError> {
    let mut tokens = Vec::new();
    while cursor.take(b'~') {
        let tag = Tag::read_bare(cursor)?;
        let age = u64::try_from(cursor.number()?).map_err(|_| ReplayError::Malformed)?;
        push(&mut tokens, Token { tag, at: stamp.saturating_sub(age) })?;
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
            assert_eq!(read_lists(&mut Cursor::new(&text)), Ok(written), "{text}");
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
    fn tokens_are_kept_for_a_minute() {
        let token = |tag: &[u8], at| Token { tag: Tag::new(tag).unwrap(), at };
        let (old, young) = (token(b"aaaaa0007", 10_000), token(b"bbbbb00zz", 10_001));
        let mut text = String::new();
        push_tokens(&mut text, &[old, young], 70_000, None);
        assert_eq!(text, "~bbbbb00zz1aan");
        assert_eq!(read_tokens(&mut Cursor::new(&text), 70_000), Ok(vec![young]));
    }

    #[test]
    fn the_token_that_is_the_mark_is_left_out() {
        let token = |tag: &[u8], at| Token { tag: Tag::new(tag).unwrap(), at };
        let mut text = String::new();
        push_tokens(&mut text, &[token(b"aaaaa0007", 8), token(b"bbbbb0001", 9)], 9, Tag::new(b"bbbbb0001"));
        assert_eq!(text, "~aaaaa00071");
    }

    #[test]
    fn a_token_has_the_highest_number_of_its_process() {
        let token = |tag: &[u8], at| Token { tag: Tag::new(tag).unwrap(), at };
        let mut tokens = Vec::new();
        for added in [token(b"aaaaa000z", 10), token(b"bbbbb0001", 11), token(b"aaaaa0009", 12)] {
            record_token(&mut tokens, added, 12).unwrap();
        }
        assert_eq!(tokens, [token(b"bbbbb0001", 11), token(b"aaaaa000z", 12)]);
    }
}
