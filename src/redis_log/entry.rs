//! An entry of a log: a time, operations, and the tag of its writer.

use alloc::string::String;
use alloc::vec::Vec;

use super::ReplayError;
use super::text::Cursor;
use crate::growth::push;
use crate::key::reservation::check_ttl;
use crate::policy::costs::{AS_RESERVED, PositionCosts};
use crate::policy::schema::{ALLOW, DENY, MAX_POLICIES};
use crate::{HitId, MAX, Renewal, ReservationId};

/// The number of characters of a tag.
pub(super) const TAG_LENGTH: usize = 9;

/// The number of characters of a process's id, with which its tags begin.
pub(super) const PROCESS_LENGTH: usize = 5;

/// The number of characters of a time.
const STAMP_LENGTH: usize = 7;

/// The first of the 64 consecutive characters in which times are written, six bits in each.
const STAMP_DIGIT: u8 = b'0';

/// The tag of an entry: the process that wrote it, and the number of the call in that process, which increases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag([u8; TAG_LENGTH]);

impl Tag {
    pub(super) fn new(text: &[u8]) -> Option<Self> {
        text.first_chunk().copied().map(Self)
    }

    pub(super) fn process(&self) -> [u8; PROCESS_LENGTH] {
        let mut process = [0; PROCESS_LENGTH];
        process.copy_from_slice(&self.0[..PROCESS_LENGTH]);
        process
    }

    /// Returns the number in base 36, whose texts have the order of the numbers.
    pub(super) fn number(&self) -> [u8; TAG_LENGTH - PROCESS_LENGTH] {
        let mut number = [0; TAG_LENGTH - PROCESS_LENGTH];
        number.copy_from_slice(&self.0[PROCESS_LENGTH..]);
        number
    }

    /// Reads a tag with the character before it: `!`, or `"` if the states before it were replaced.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, ReplayError> {
        match cursor.next()? {
            b'!' | b'"' => Self::read_bare(cursor),
            _ => Err(ReplayError::Malformed),
        }
    }

    pub(super) fn read_bare(cursor: &mut Cursor<'_>) -> Result<Self, ReplayError> {
        let tag: [u8; TAG_LENGTH] = cursor.bytes()?;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if tag.iter().all(is_part) { Ok(Self(tag)) } else { Err(ReplayError::Malformed) }
    }

    pub(super) fn push_to(&self, text: &mut String) {
        text.extend(self.0.iter().map(|&byte| char::from(byte)));
    }
}

/// The amounts of an operation: one number for all policies, or the text of one number for each policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amounts<'a> {
    All(u64),
    Each(&'a str),
}

impl<'a> Amounts<'a> {
    /// Reads amounts, up to the first byte that is not part of them.
    fn read(cursor: &mut Cursor<'a>) -> Self {
        Self::new(cursor.amounts())
    }

    /// Returns the amounts of a text. [`at_positions`](Self::at_positions) checks them.
    pub(super) fn new(text: &'a str) -> Self {
        match Cursor::new(text).into_decimal() {
            Some(amount) => Self::All(amount),
            None => Self::Each(text),
        }
    }

    /// Returns the amounts by position, for a number of policies. `_` is the reserved amount.
    pub(super) fn at_positions(self, policies: usize) -> Result<PositionCosts, ReplayError> {
        let text = match self {
            Self::All(amount) => return check_amount(amount).map(PositionCosts::All),
            Self::Each(text) => text,
        };
        if text.split(',').count() != policies {
            return Err(ReplayError::Malformed);
        }
        let mut costs = [AS_RESERVED; MAX_POLICIES];
        for (cost, item) in costs.iter_mut().zip(text.split(',')).filter(|(_, item)| *item != "_") {
            *cost = check_amount(Cursor::new(item).into_decimal().ok_or(ReplayError::Malformed)?)?;
        }
        Ok(PositionCosts::Each(costs))
    }
}

/// Checks that an amount is in range.
fn check_amount(amount: u64) -> Result<u64, ReplayError> {
    if amount <= MAX { Ok(amount) } else { Err(ReplayError::Malformed) }
}

/// When an exception ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    At(u64),
    /// So long after the entry.
    After(u64),
}

impl End {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, ReplayError> {
        let is_after = cursor.take(b'+');
        let time = check_amount(cursor.decimal()?)?;
        Ok(if is_after { Self::After(time) } else { Self::At(time) })
    }

    /// Returns the end of an exception in an entry of that time.
    pub(super) fn at(self, now: u64) -> u64 {
        match self {
            Self::At(time) => time,
            Self::After(time) => (now + time).min(MAX),
        }
    }
}

/// The fields of an exception as text: `+` allows and `-` denies everything, or for each policy its position, and the
/// position and number of each field, all after `.`, with `,` between policies; empty if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the numbers that [`Exceptions::from_flat`](crate::key::exceptions::Exceptions::from_flat) reads. `decision` is
    /// the name under which a decision is.
    pub(super) fn numbers(
        self,
        policies: usize,
        decision: usize,
        (until, since): (u64, u64),
    ) -> Result<Vec<i64>, ReplayError> {
        let [until, since, decision] = [until, since, decision as u64].map(|number| number as i64);
        match self.0 {
            "" => return Ok(Vec::new()),
            "+" => return Ok([decision, 4, until, since, ALLOW as i64, 1].into()),
            "-" => return Ok([decision, 4, until, since, DENY as i64, 1].into()),
            _ => {}
        }
        let mut numbers: Vec<i64> = Vec::new();
        for part in self.0.split(',') {
            let mut items = part.split('.').map(|item| Cursor::new(item).into_decimal().ok_or(ReplayError::Malformed));
            let position = items.next().ok_or(ReplayError::Malformed)??;
            if position >= policies as u64 {
                return Err(ReplayError::Malformed);
            }
            let start = numbers.len();
            for number in [position as i64, 0, until, since] {
                push(&mut numbers, number)?;
            }
            for item in items {
                push(&mut numbers, check_amount(item?)? as i64)?;
            }
            let count = (numbers.len() - start - 2) as i64;
            if let Some(own) = numbers.get_mut(start + 1) {
                *own = count;
            }
        }
        Ok(numbers)
    }
}

/// How an entry, or an operation, names its policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named<'a> {
    /// `$` and the number under which the value has them.
    Number(u64),
    /// Their text in braces and the number that it gets.
    New { text: &'a str, number: u64 },
    /// `@` and their text, which gets no number.
    Text(&'a str),
}

impl<'a> Named<'a> {
    /// Reads the name of policies; `None` if there is none.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Option<Self>, ReplayError> {
        Ok(Some(if cursor.take(b'$') {
            Self::Number(cursor.decimal()?)
        } else if cursor.take(b'{') {
            let text = cursor.until(b"}")?;
            cursor.expect(b'}')?;
            Self::New { text, number: cursor.decimal()? }
        } else if cursor.take(b'@') {
            Self::Text(cursor.until_or_rest(b";&")?)
        } else {
            return Ok(None);
        }))
    }
}

/// An operation of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op<'a> {
    /// One or more hits of the same cost. `call_policies` apply to this operation only.
    Hit {
        costs: Amounts<'a>,
        times: u64,
        call_policies: Option<Named<'a>>,
    },
    /// A hit whose writer may undo it.
    HitUndoable {
        costs: Amounts<'a>,
        call_policies: Option<Named<'a>>,
    },
    Undo {
        id: HitId,
        costs: Amounts<'a>,
        call_policies: Option<Named<'a>>,
    },
    Inc {
        cost: i64,
        position: usize,
    },
    Set {
        count: u64,
        position: usize,
    },
    /// Begins a ban of some length; without one, lifts it.
    Ban {
        length: Option<u64>,
        position: usize,
    },
    Reset {
        reservations: bool,
    },
    /// Sets an exception; one without fields lifts it.
    Except {
        end: End,
        fields: Fields<'a>,
    },
    Reserve {
        costs: Amounts<'a>,
        ttl: u64,
        random: u128,
        call_policies: Option<Named<'a>>,
    },
    Settle {
        id: ReservationId,
        used: Amounts<'a>,
    },
    Extend {
        id: ReservationId,
        ttl: u64,
    },
    /// A hit, unless its cost is 0, and the renewal of a lease.
    Lease {
        cost: u64,
        renewal: Renewal,
    },
}

impl<'a> Op<'a> {
    /// Returns how many times the operation is done.
    pub(super) fn times(&self) -> u64 {
        if let Self::Hit { times, .. } = self { *times } else { 1 }
    }

    /// Returns the policies that apply to this operation only.
    pub(super) fn call_policies(&self) -> Option<Named<'a>> {
        match *self {
            Self::Hit { call_policies, .. }
            | Self::HitUndoable { call_policies, .. }
            | Self::Undo { call_policies, .. }
            | Self::Reserve { call_policies, .. } => call_policies,
            Self::Inc { .. }
            | Self::Set { .. }
            | Self::Ban { .. }
            | Self::Reset { .. }
            | Self::Except { .. }
            | Self::Settle { .. }
            | Self::Extend { .. }
            | Self::Lease { .. } => None,
        }
    }

    /// Returns the amounts by policy, if it has any.
    pub(super) fn amounts(&self) -> Amounts<'a> {
        match *self {
            Self::Hit { costs, .. }
            | Self::HitUndoable { costs, .. }
            | Self::Undo { costs, .. }
            | Self::Reserve { costs, .. }
            | Self::Settle { used: costs, .. } => costs,
            Self::Inc { .. }
            | Self::Set { .. }
            | Self::Ban { .. }
            | Self::Reset { .. }
            | Self::Except { .. }
            | Self::Extend { .. }
            | Self::Lease { .. } => Amounts::All(0),
        }
    }

    /// Reads an operation. An unknown one is an error: if it were skipped, this process and its writer would decide later
    /// operations differently.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, ReplayError> {
        match cursor.next()? {
            b'h' => {
                // A hit without a cost is one of cost 1.
                let costs = match cursor.peek() {
                    Some(b'0'..=b'9' | b'_' | b',') => Amounts::read(cursor),
                    _ => Amounts::All(1),
                };
                let times = if cursor.take(b'*') { cursor.decimal()? } else { 1 };
                Ok(Self::Hit { costs, times, call_policies: Named::read(cursor)? })
            }
            b'y' => Ok(Self::HitUndoable { costs: Amounts::read(cursor), call_policies: Named::read(cursor)? }),
            b'u' => {
                let id = cursor.until(b":")?.parse().map_err(|_| ReplayError::Malformed)?;
                cursor.expect(b':')?;
                Ok(Self::Undo { id, costs: Amounts::read(cursor), call_policies: Named::read(cursor)? })
            }
            b'i' => Ok(Self::Inc { cost: cursor.signed()?, position: read_position(cursor)? }),
            b's' => Ok(Self::Set { count: cursor.decimal()?, position: read_position(cursor)? }),
            b'b' => {
                let length = Some(cursor.decimal()?).filter(|&length| length > 0);
                Ok(Self::Ban { length, position: read_position(cursor)? })
            }
            b'e' => {
                let end = End::read(cursor)?;
                cursor.expect(b':')?;
                Ok(Self::Except { end, fields: Fields::new(cursor.until_or_rest(b";")?) })
            }
            b'r' => Ok(Self::Reset { reservations: cursor.decimal()? == 1 }),
            b'v' => {
                let costs = Amounts::read(cursor);
                cursor.expect(b':')?;
                let ttl = read_ttl(cursor)?;
                cursor.expect(b':')?;
                let random = read_random::<RANDOM_DIGITS>(cursor)?;
                Ok(Self::Reserve { costs, ttl, random, call_policies: Named::read(cursor)? })
            }
            b't' => Ok(Self::Settle { id: read_id(cursor)?, used: Amounts::read(cursor) }),
            b'x' => Ok(Self::Extend { id: read_id(cursor)?, ttl: read_ttl(cursor)? }),
            b'l' => read_lease(cursor),
            _ => Err(ReplayError::UnsupportedVersion),
        }
    }
}

/// The number of hexadecimal digits of a reservation's random bits.
const RANDOM_DIGITS: usize = 32;

/// The number of hexadecimal digits of a lease's random bits. The first 32 bits of its id are 0, so a base needs no flag
/// for leases.
const LEASE_RANDOM_DIGITS: usize = 24;

/// Reads the fields of a lease: the cost of the hit, the holder's report, and random bits.
fn read_lease<'a>(cursor: &mut Cursor<'a>) -> Result<Op<'a>, ReplayError> {
    let cost = check_amount(cursor.decimal()?)?;
    cursor.expect(b':')?;
    let id = match cursor.until(b",")? {
        "" => None,
        text => Some(text.parse().map_err(|_| ReplayError::Malformed)?),
    };
    let mut number = || {
        cursor.expect(b',')?;
        check_amount(cursor.decimal()?)
    };
    let (used, size, ttl) = (number()?, number()?, number()?);
    cursor.expect(b':')?;
    let renewal = Renewal { id, used, size, ttl, random: read_random::<LEASE_RANDOM_DIGITS>(cursor)? };
    Ok(Op::Lease { cost, renewal })
}

/// Reads random bits of `DIGITS` hexadecimal digits.
fn read_random<const DIGITS: usize>(cursor: &mut Cursor<'_>) -> Result<u128, ReplayError> {
    let digits = cursor.bytes::<DIGITS>()?;
    let text = core::str::from_utf8(&digits).map_err(|_| ReplayError::Malformed)?;
    u128::from_str_radix(text, 16).map_err(|_| ReplayError::Malformed)
}

fn read_position(cursor: &mut Cursor<'_>) -> Result<usize, ReplayError> {
    cursor.expect(b':')?;
    Ok(cursor.decimal()? as usize)
}

fn read_ttl(cursor: &mut Cursor<'_>) -> Result<u64, ReplayError> {
    check_ttl(cursor.decimal()?.into()).map_err(|_| ReplayError::Malformed)
}

fn read_id(cursor: &mut Cursor<'_>) -> Result<ReservationId, ReplayError> {
    let id = cursor.until(b":")?.parse().map_err(|_| ReplayError::Malformed)?;
    cursor.expect(b':')?;
    Ok(id)
}

/// Reads a time.
pub(super) fn read_stamp(cursor: &mut Cursor<'_>) -> Result<u64, ReplayError> {
    let digits = cursor.bytes::<STAMP_LENGTH>()?;
    digits.iter().try_fold(0, |time, digit| match digit.wrapping_sub(STAMP_DIGIT) {
        value @ 0..64 => Ok(time << 6 | u64::from(value)),
        _ => Err(ReplayError::Malformed),
    })
}

/// Appends a time.
pub(super) fn push_stamp(text: &mut String, time: u64) {
    for position in (0..STAMP_LENGTH).rev() {
        text.push(char::from(STAMP_DIGIT + (time >> (6 * position) & 63) as u8));
    }
}

/// An entry whose operations are not parsed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) at: u64,
    /// Its policies, if they differ from those of the value.
    pub(super) policies: Option<Named<'a>>,
    ops: Cursor<'a>,
    pub(super) tag: Tag,
}

impl<'a> Entry<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, ReplayError> {
        let at = read_stamp(cursor)?;
        let policies = Named::read(cursor)?;
        if matches!(policies, Some(Named::Text(_))) {
            cursor.expect(b';')?;
        }
        let ops = Cursor::new(cursor.until(b"!\"")?);
        Ok(Self { at, policies, ops, tag: Tag::read(cursor)? })
    }

    /// Calls `apply` with each operation. Stops at the first error.
    pub(super) fn for_each_op(
        mut self,
        mut apply: impl FnMut(Op<'a>) -> Result<(), ReplayError>,
    ) -> Result<(), ReplayError> {
        loop {
            apply(Op::read(&mut self.ops)?)?;
            if self.ops.is_empty() {
                return Ok(());
            }
            // Other bytes after an operation may be a field of a later version.
            if !self.ops.take(b';') {
                return Err(ReplayError::UnsupportedVersion);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_was_written() {
        for time in [0, 63, 64, 1_800_000_000_000, (1 << 42) - 1] {
            let mut text = String::new();
            push_stamp(&mut text, time);
            assert_eq!(read_stamp(&mut Cursor::new(&text)), Ok(time), "{text}");
        }
        for text in ["", "000000", "000000/", "000000p", "000000\u{80}"] {
            assert_eq!(read_stamp(&mut Cursor::new(text)), Err(ReplayError::Malformed), "{text}");
        }
    }

    #[test]
    fn there_is_one_amount_for_each_policy() {
        for amounts in [2, MAX_POLICIES - 1, MAX_POLICIES, MAX_POLICIES + 1] {
            let text = ["1", "_"].repeat(amounts)[..amounts].join(",");
            for policies in [2, MAX_POLICIES - 1, MAX_POLICIES] {
                let is_read = Amounts::new(&text).at_positions(policies).is_ok();
                assert_eq!(is_read, amounts == policies, "{amounts} amounts, {policies} policies");
            }
        }
    }
}
