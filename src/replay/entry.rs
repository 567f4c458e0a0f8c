//! An entry of a log: a time, operations, and the mark of whoever wrote it.

use super::Unreadable;
use super::policy_set::FINGERPRINT;
use super::text::Cursor;
use crate::costs::{AS_RESERVED, PositionCosts};
use crate::open::Bits;
use crate::policy::schema::MAX_POLICIES;
use crate::reservation::check_ttl;
use crate::{MAX, Renewal, ReservationId};

/// How many characters name a process.
pub(super) const PROCESS: usize = 8;

/// How many digits a time has.
const TIME: usize = 13;

/// The mark of an entry: the process that wrote it, its rising number there, and the fingerprint of its policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) process: [u8; PROCESS],
    pub(super) number: u64,
    pub(super) fingerprint: [u8; FINGERPRINT],
}

impl Mark {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Unreadable> {
        cursor.expect(b'!')?;
        let process = cursor.bytes()?;
        let number = cursor.number()? as u64;
        cursor.expect(b'.')?;
        Ok(Self { process, number, fingerprint: cursor.bytes()? })
    }
}

/// What an operation costs: one number, or one for each position as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amounts<'a> {
    All(u64),
    Each(&'a str),
}

impl<'a> Amounts<'a> {
    /// Reads amounts up to a byte that is none of theirs.
    fn read(cursor: &mut Cursor<'a>) -> Self {
        Self::of(cursor.amounts())
    }

    /// Returns the amounts of a text.
    pub(super) fn of(text: &'a str) -> Self {
        match Cursor::new(text).only_decimal() {
            Some(amount) => Self::All(amount),
            None => Self::Each(text),
        }
    }

    /// Returns the costs under so many policies. `_` stands for as much as was reserved.
    pub(super) fn at_positions(self, policies: usize) -> Result<PositionCosts, Unreadable> {
        let text = match self {
            Self::All(amount) => return checked(amount).map(PositionCosts::All),
            Self::Each(text) => text,
        };
        let mut costs = [AS_RESERVED; MAX_POLICIES];
        let mut count = 0;
        for (cost, item) in costs.iter_mut().zip(text.split(',')) {
            if item != "_" {
                *cost = checked(Cursor::new(item).only_decimal().ok_or(Unreadable::Malformed)?)?;
            }
            count += 1;
        }
        if count == policies { Ok(PositionCosts::Each(costs)) } else { Err(Unreadable::Malformed) }
    }
}

fn checked(amount: u64) -> Result<u64, Unreadable> {
    if amount <= MAX { Ok(amount) } else { Err(Unreadable::Malformed) }
}

/// An operation of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op<'a> {
    /// So many hits of a cost, perhaps under the policies of a call.
    Hit {
        costs: Amounts<'a>,
        times: u64,
        call: Option<&'a str>,
    },
    Inc {
        cost: i64,
        position: usize,
    },
    Set {
        count: u64,
        position: usize,
    },
    Reset {
        reservations: bool,
    },
    Reserve {
        costs: Amounts<'a>,
        ttl: u64,
        random: u128,
        call: Option<&'a str>,
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
    /// Reads an operation. One of a later version is unreadable: skipped, it would be decided differently here and there.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Unreadable> {
        match cursor.next()? {
            b'h' => {
                let costs = Amounts::read(cursor);
                let times = if cursor.take(b'*') { cursor.decimal()? } else { 1 };
                Ok(Self::Hit { costs, times, call: call(cursor)? })
            }
            b'i' => Ok(Self::Inc { cost: cursor.signed()?, position: position(cursor)? }),
            b's' => Ok(Self::Set { count: cursor.decimal()?, position: position(cursor)? }),
            b'r' => Ok(Self::Reset { reservations: cursor.decimal()? == 1 }),
            b'v' => {
                let costs = Amounts::read(cursor);
                cursor.expect(b':')?;
                let ttl = ttl(cursor)?;
                cursor.expect(b':')?;
                Ok(Self::Reserve { costs, ttl, random: random::<RANDOM>(cursor)?, call: call(cursor)? })
            }
            b't' => Ok(Self::Settle { id: id(cursor)?, used: Amounts::read(cursor) }),
            b'x' => Ok(Self::Extend { id: id(cursor)?, ttl: ttl(cursor)? }),
            b'l' => lease(cursor),
            _ => Err(Unreadable::Version),
        }
    }
}

/// How many digits the random bits of a reservation have.
const RANDOM: usize = 32;

/// How many digits those of a lease have. The bits before them are 0, so that a base need not say which of its reservations
/// are leases.
const LEASE_RANDOM: usize = 24;

/// Whether a reservation with these bits is a lease. A plain one has such bits once in four thousand million times.
pub(super) fn is_lease(bits: Bits) -> bool {
    bits[0] == 0
}

/// Reads the rest of a lease: the cost of the hit, what its holder reports as one word, and random bits.
fn lease<'a>(cursor: &mut Cursor<'a>) -> Result<Op<'a>, Unreadable> {
    let cost = checked(cursor.decimal()?)?;
    cursor.expect(b':')?;
    let id = match cursor.until(b",")? {
        "" => None,
        text => Some(text.parse().map_err(|_| Unreadable::Malformed)?),
    };
    let mut number = || {
        cursor.expect(b',')?;
        checked(cursor.decimal()?)
    };
    let (used, size, ttl) = (number()?, number()?, number()?);
    cursor.expect(b':')?;
    let renewal = Renewal { id, used, size, ttl, random: random::<LEASE_RANDOM>(cursor)? };
    Ok(Op::Lease { cost, renewal })
}

/// Takes random bits of so many hexadecimal digits.
fn random<const DIGITS: usize>(cursor: &mut Cursor<'_>) -> Result<u128, Unreadable> {
    let digits = cursor.bytes::<DIGITS>()?;
    let text = core::str::from_utf8(&digits).map_err(|_| Unreadable::Malformed)?;
    u128::from_str_radix(text, 16).map_err(|_| Unreadable::Malformed)
}

fn call<'a>(cursor: &mut Cursor<'a>) -> Result<Option<&'a str>, Unreadable> {
    if cursor.take(b'@') { cursor.up_to(b';').map(Some) } else { Ok(None) }
}

fn position(cursor: &mut Cursor<'_>) -> Result<usize, Unreadable> {
    cursor.expect(b':')?;
    Ok(cursor.decimal()? as usize)
}

fn ttl(cursor: &mut Cursor<'_>) -> Result<u64, Unreadable> {
    check_ttl(cursor.decimal()?.into()).map_err(|_| Unreadable::Malformed)
}

fn id(cursor: &mut Cursor<'_>) -> Result<ReservationId, Unreadable> {
    let id = cursor.until(b":")?.parse().map_err(|_| Unreadable::Malformed)?;
    cursor.expect(b':')?;
    Ok(id)
}

/// Takes a time of 13 digits.
pub(super) fn time(cursor: &mut Cursor<'_>) -> Result<u64, Unreadable> {
    let digits = cursor.bytes::<TIME>()?;
    digits.iter().try_fold(0, |time, digit| match digit {
        b'0'..=b'9' => Ok(10 * time + u64::from(digit - b'0')),
        _ => Err(Unreadable::Malformed),
    })
}

/// An entry, whose operations are still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) at: u64,
    /// The text of its policies, where they changed.
    pub(super) policies: Option<&'a str>,
    ops: Cursor<'a>,
    pub(super) mark: Mark,
}

impl<'a> Entry<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Unreadable> {
        let at = time(cursor)?;
        let policies = match cursor.take(b'@') {
            true => {
                let text = cursor.until(b";!")?;
                cursor.expect(b';')?;
                Some(text)
            }
            false => None,
        };
        let ops = Cursor::new(cursor.until(b"!")?);
        Ok(Self { at, policies, ops, mark: Mark::read(cursor)? })
    }

    /// Calls `work` with each operation. Stops at the first error.
    pub(super) fn each(mut self, mut work: impl FnMut(Op<'a>) -> Result<(), Unreadable>) -> Result<(), Unreadable> {
        loop {
            work(Op::read(&mut self.ops)?)?;
            if self.ops.is_empty() {
                return Ok(());
            }
            // What follows an operation may be a field of a later version.
            if !self.ops.take(b';') {
                return Err(Unreadable::Version);
            }
        }
    }
}
