//! One key's open reservations: amounts that count as used until they are settled or expire.
//!
//! A reservation has an amount for each policy it was opened under. A policy that was added since has none.

use crate::algorithm::Act;
use crate::algorithm::any::{AnyAlgorithm, CallNumbers};
use crate::growth::{OutOfMemory, copied, push};
use crate::key::bans::Bans;
use crate::number::in_range;
use crate::policy::schema::{MAX_TTL, RESERVATION_HEAD};
use alloc::vec::Vec;

/// The 128 random bits that identify a reservation.
pub(crate) type Bits = [u32; 4];

/// The number of words of a row before its amounts: two of bits, the start, the end and the ttl.
const HEAD: usize = 5;
/// The index of the end in a row.
const END: usize = 3;
/// The number of words that the numbers of a call take for one policy.
const CALL_WORDS: usize = 2;
/// Sentinel numbers of a call: the reservation was opened under an exception that allows everything, and is never charged.
pub(crate) const FREE: CallNumbers = [0, 1];
/// Sentinel amount: the reservation was not opened under the policy. It is out of the range of amounts.
const ABSENT: u64 = u64::MAX;

/// One policy's part of a reservation as plain numbers: four of bits, start, end, ttl, the amount, and the capacity and
/// rate of the call that opened it, or two zeros.
pub(crate) type OpenRow = [i64; OPEN_ROW];
/// The index of the end in an [`OpenRow`].
#[cfg(feature = "cloudflare")]
pub(crate) const OPEN_END: usize = 5;
/// The number of numbers of one policy's part of a reservation.
pub const OPEN_ROW: usize = RESERVATION_HEAD + 1 + CALL_WORDS;

/// The open reservations of one key. Allocates only when the first is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open {
    /// A row of words for each reservation, in order of their ends: the reservation, and an amount for each policy. With
    /// `has_call_numbers`, also the numbers of its call for each policy.
    rows: Vec<u64>,
    has_call_numbers: bool,
    /// The sums of each policy. Empty if no reservation is open.
    sums: Vec<Sum>,
    /// The latest time at which the ttl of a reservation started.
    latest_start: u64,
    /// Whether a reservation ends before it was opened, because the clock stepped back.
    ends_before_start: bool,
}

/// No open reservations.
pub(crate) static NONE_OPEN: Open =
    Open { rows: Vec::new(), has_call_numbers: false, sums: Vec::new(), latest_start: 0, ends_before_start: false };

/// One open reservation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserved {
    bits: Bits,
    /// When it was opened or last extended. It is never charged before this time, even if the clock has stepped back.
    start: u64,
    end: u64,
    ttl: u64,
}

impl Reserved {
    pub(crate) fn new(bits: Bits, now: u64, ttl: u64) -> Self {
        Self { bits, start: now, end: now + ttl, ttl }
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn bits(&self) -> Bits {
        self.bits
    }

    /// Returns the time of its charge under a policy of that period if it is closed at `now`.
    pub(crate) fn charged_at(&self, now: u64, period: u64) -> u64 {
        // A start that far ahead was a wrong reading of the clock.
        if self.start > now + period { now } else { self.start.max(now) }
    }

    fn words(&self) -> [u64; HEAD] {
        let [a, b, c, d] = self.bits.map(u64::from);
        [a << 32 | b, c << 32 | d, self.start, self.end, self.ttl]
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        let &[high, low, start, end, ttl, ..] = words else { return None };
        let bits = [high >> 32, high, low >> 32, low].map(|bits| bits as u32);
        Some(Self { bits, start, end, ttl })
    }
}

/// Sentinel `drain_key`: the drain is not computed.
const UNKNOWN: u64 = u64::MAX;

/// The sum of the amounts that are open under one policy.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    amount: u64,
    /// When the amounts have drained.
    drain: u64,
    /// The number of the state that `drain` was computed from.
    drain_key: u64,
}

impl Open {
    /// Returns whether no reservation is open.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the number of words of a row.
    fn width(&self) -> usize {
        HEAD + self.sums.len() * (1 + self.call_words())
    }

    /// Returns the number of words that the numbers of a call take for one policy in each row.
    fn call_words(&self) -> usize {
        if self.has_call_numbers { CALL_WORDS } else { 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len() / self.width()
    }

    /// Returns the reservation at an index.
    pub(crate) fn get(&self, index: usize) -> Option<Reserved> {
        Reserved::from_words(self.row(index))
    }

    /// Returns the bits and ends of all reservations.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Bits, u64)> {
        (0..self.len()).filter_map(|index| self.get(index)).map(|reserved| (reserved.bits, reserved.end))
    }

    fn row(&self, index: usize) -> &[u64] {
        self.rows.chunks_exact(self.width()).nth(index).unwrap_or(&[])
    }

    /// Returns when the first reservation expires.
    pub(crate) fn first_end(&self) -> Option<u64> {
        self.rows.get(END).copied()
    }

    /// Returns when the last reservation expires; 0 if there is none.
    pub(crate) fn last_end(&self) -> u64 {
        self.get(self.len().saturating_sub(1)).map_or(0, |reserved| reserved.end)
    }

    /// Returns whether a reservation has expired, or ends later than its ttl from now because the clock stepped back.
    #[inline(always)]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.first_end().is_some_and(|end| end <= now) || self.latest_start > now
    }

    /// Returns the open amounts of the policy at a position.
    pub(crate) fn of(&self, position: usize) -> OpenOf<'_> {
        OpenOf { open: self, position }
    }

    /// Returns the index of the reservation with these bits.
    pub(crate) fn find(&self, bits: Bits) -> Option<usize> {
        (0..self.len()).find(|&index| self.get(index).is_some_and(|reserved| reserved.bits == bits))
    }

    /// Returns the amount of the reservation at an index under the policy at a position; `None` if it was not opened under
    /// that policy.
    pub(crate) fn amount(&self, index: usize, position: usize) -> Option<u64> {
        self.row(index).get(HEAD + position).copied().filter(|&amount| amount != ABSENT)
    }

    /// Returns the numbers of the call that opened the reservation at an index, for the policy at a position; two zeros if
    /// the call had none.
    fn call_numbers(&self, index: usize, position: usize) -> CallNumbers {
        let at = HEAD + self.sums.len() + position * CALL_WORDS;
        self.row(index).get(at..).and_then(|numbers| numbers.first_chunk().copied()).unwrap_or([0; CALL_WORDS])
    }

    /// Returns the algorithm and the operation that charge `cost` for the reservation at an index to the policy at a position:
    /// by the numbers of the call that opened it, or by `own`, which keeps the rate of the last charge.
    pub(crate) fn charge(&self, index: usize, position: usize, own: &AnyAlgorithm, cost: u64) -> (AnyAlgorithm, Act) {
        match self.call_numbers(index, position) {
            FREE => (*own, Act::LOOK),
            [_, 0] => (*own, Act::Inc(cost)),
            numbers => (own.with_call_numbers(numbers), Act::Charge(cost)),
        }
    }

    /// Returns whether the reservation at an index was opened under an exception that allows everything.
    pub(crate) fn is_free(&self, index: usize, position: usize) -> bool {
        self.call_numbers(index, position) == FREE
    }

    /// Makes room for one more reservation.
    pub(crate) fn make_room(&mut self, policies: usize, has_call_numbers: bool) -> Result<(), OutOfMemory> {
        while self.sums.len() < policies {
            push(&mut self.sums, Sum::default())?;
        }
        if has_call_numbers && !self.has_call_numbers {
            self.widen()?;
        }
        Ok(self.rows.try_reserve(self.width())?)
    }

    /// Makes room in each row for the numbers of a call.
    fn widen(&mut self) -> Result<(), OutOfMemory> {
        let added = self.sums.len() * CALL_WORDS;
        let mut rows = Vec::new();
        rows.try_reserve_exact((self.len() + 1) * (self.width() + added))?;
        for row in self.rows.chunks_exact(self.width()) {
            rows.extend_from_slice(row);
            rows.extend(core::iter::repeat_n(0, added));
        }
        (self.rows, self.has_call_numbers) = (rows, true);
        Ok(())
    }

    /// Inserts a reservation with the numbers of its call for each policy. [`Open::reserve`] must have made room, and
    /// [`Open::refresh`] must follow.
    pub(crate) fn insert(
        &mut self,
        reserved: Reserved,
        amounts: impl Iterator<Item = u64>,
        numbers: impl Iterator<Item = CallNumbers>,
    ) {
        self.rows.extend_from_slice(&reserved.words());
        self.rows.extend(amounts);
        if self.has_call_numbers {
            self.rows.extend(numbers.flatten());
        }
        self.sift(self.len() - 1);
    }

    /// Moves the row at an index forward to its place in the order of ends.
    fn sift(&mut self, mut index: usize) {
        let width = self.width();
        while index > 0
            && let Some([before, own]) = self.rows.get_mut((index - 1) * width..).map(|rows| first_two(rows, width))
            && before.get(END) > own.get(END)
        {
            before.swap_with_slice(own);
            index -= 1;
        }
    }

    /// Removes `count` reservations from an index on. [`Open::refresh`] must follow.
    pub(crate) fn remove(&mut self, index: usize, count: usize) {
        let width = self.width();
        let (to, from) = (index * width, (index + count) * width);
        if from <= self.rows.len() {
            self.rows.copy_within(from.., to);
            self.rows.truncate(self.rows.len() - (from - to));
        }
    }

    /// Moves the end of the reservation at an index to `ttl` from now, but never to an earlier time: an id that was given
    /// out names the end. [`Open::refresh`] must follow.
    pub(crate) fn extend(&mut self, index: usize, now: u64, ttl: u64) {
        if let Some(reserved) = self.get(index) {
            let (start, end) = (reserved.start.max(now), reserved.end.max(now + ttl));
            self.replace(index, Reserved { start, end, ttl: end - now, ..reserved });
            // It may now end after later rows, which then move before it.
            for index in index + 1..self.len() {
                self.sift(index);
            }
        }
    }

    /// Takes so much out of each amount of the reservation at an index. [`Open::refresh`] must follow.
    pub(crate) fn spend(&mut self, index: usize, used: u64) {
        self.amounts_mut(index).for_each(|(_, amount)| *amount = amount.saturating_sub(used));
    }

    /// Returns the least amount of the reservation at an index, and the largest: only the least may be used under all
    /// policies. A policy that was added since has 0 of it; bans have no amounts.
    pub(crate) fn bounds(&self, index: usize, bans: Bans) -> (u64, u64) {
        let positions = (0..self.sums.len()).filter(move |&position| !bans.contains(position));
        let amounts = positions.map(|position| self.amount(index, position).unwrap_or(0));
        (amounts.clone().min().unwrap_or(0), amounts.max().unwrap_or(0))
    }

    /// Raises each amount of the reservation at an index to at least `amount`, but for bans. [`Open::refresh`] must follow.
    pub(crate) fn grow(&mut self, index: usize, amount: u64, bans: Bans) {
        let amounts = self.amounts_mut(index).filter(|(position, _)| !bans.contains(*position));
        amounts.for_each(|(_, own)| *own = amount.max(*own));
    }

    /// Returns the amounts under the policies that the reservation was opened under, with their positions.
    fn amounts_mut(&mut self, index: usize) -> impl Iterator<Item = (usize, &mut u64)> {
        let (width, policies) = (self.width(), self.sums.len());
        let amounts = self.rows.iter_mut().skip(index * width + HEAD).take(policies).enumerate();
        amounts.filter(|(_, amount)| **amount != ABSENT)
    }

    fn replace(&mut self, index: usize, reserved: Reserved) {
        let width = self.width();
        for (word, new) in self.rows.iter_mut().skip(index * width).zip(reserved.words()) {
            *word = new;
        }
        self.sift(index);
    }

    /// Moves the ends that are further away than their ttl, so that one wrong reading of the clock cannot freeze a key.
    /// Returns whether there may be such ends. [`Open::refresh`] must follow if so.
    pub(crate) fn follow_clock(&mut self, now: u64) -> bool {
        if self.latest_start <= now {
            return false;
        }
        for index in 0..self.len() {
            if let Some(reserved) = self.get(index).filter(|reserved| reserved.end > now + reserved.ttl) {
                self.replace(index, Reserved { end: now + reserved.ttl, ..reserved });
            }
        }
        true
    }

    /// Updates the sums after a change. [`Open::note_drain`] then caches when they drain.
    pub(crate) fn refresh(&mut self) {
        if self.is_empty() {
            *self = Self::default();
            return;
        }
        (self.latest_start, self.ends_before_start) = (0, false);
        for row in self.rows.chunks_exact(self.width()) {
            if let Some(Reserved { start, end, ttl, .. }) = Reserved::from_words(row) {
                self.latest_start = self.latest_start.max(end - ttl);
                self.ends_before_start |= start > end;
            }
        }
        for position in 0..self.sums.len() {
            let amount = self.of(position).amounts().map(|(_, open)| open.amount).sum();
            if let Some(sum) = self.sums.get_mut(position) {
                *sum = Sum { amount, drain: 0, drain_key: UNKNOWN };
            }
        }
    }

    /// Caches when a policy's amounts have drained. `key` is the number of its state that this depends on.
    pub(crate) fn note_drain(&mut self, position: usize, key: u64, algorithm: &AnyAlgorithm) {
        if self.sums.get(position).is_some_and(|sum| sum.drain_key != key) {
            let drain = algorithm.drain(key, self.of(position));
            if let Some(sum) = self.sums.get_mut(position) {
                (sum.drain, sum.drain_key) = (drain, key);
            }
        }
    }

    /// Returns a copy.
    pub(crate) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        Ok(Self { rows: copied(&self.rows)?, sums: copied(&self.sums)?, ..*self })
    }

    /// Returns the parts of all reservations under the policy at a position.
    pub(crate) fn parts(&self, position: usize) -> impl Iterator<Item = OpenRow> {
        (0..self.len()).filter_map(move |index| {
            let (reserved, amount) = (self.get(index)?, self.amount(index, position)?);
            let [a, b, c, d] = reserved.bits.map(i64::from);
            let [capacity, rate] = self.call_numbers(index, position).map(|number| number as i64);
            let [start, end, ttl] = [reserved.start, reserved.end, reserved.ttl].map(|time| time as i64);
            Some([a, b, c, d, start, end, ttl, amount as i64, capacity, rate])
        })
    }

    /// Adds one of `policies` policies' part of a reservation. Returns whether the numbers are valid. [`Open::refresh`] must
    /// follow.
    pub(crate) fn import(&mut self, position: usize, row: &OpenRow, policies: usize) -> Result<bool, OutOfMemory> {
        let &[a, b, c, d, start, end, ttl, amount, capacity, rate] = row;
        let are_bits = [a, b, c, d].iter().all(|&bits| bits as u64 >> 32 == 0);
        let in_time = (1..=MAX_TTL as i64).contains(&ttl) && ttl <= end && in_range(start) && in_range(end);
        let is_free = [capacity, rate] == FREE.map(|number| number as i64) && amount == 0;
        let are_numbers =
            ((capacity > 0) == (rate > 0) || is_free) && [amount, capacity, rate].into_iter().all(in_range);
        if !are_bits || !in_time || !are_numbers {
            return Ok(false);
        }
        let bits = [a, b, c, d].map(|bits| bits as u32);
        let reserved = Reserved { bits, start: start as u64, end: end as u64, ttl: ttl as u64 };
        self.make_room(policies, rate > 0)?;
        let index = match self.find(bits) {
            Some(index) if self.amount(index, position).is_some() => return Ok(false),
            Some(index) => index,
            None => {
                self.insert(reserved, core::iter::repeat_n(ABSENT, policies), core::iter::repeat_n([0; 2], policies));
                self.find(bits).unwrap_or(0)
            }
        };
        let at = index * self.width() + HEAD;
        let numbers = at + self.sums.len() + position * CALL_WORDS;
        if let Some(own) = self.rows.get_mut(at + position) {
            *own = amount as u64;
        }
        if self.has_call_numbers
            && let Some([own_capacity, own_rate, ..]) = self.rows.get_mut(numbers..)
        {
            (*own_capacity, *own_rate) = (capacity as u64, rate as u64);
        }
        Ok(true)
    }
}

/// Splits off the first two rows.
fn first_two(rows: &mut [u64], width: usize) -> [&mut [u64]; 2] {
    let (first, rest) = rows.split_at_mut_checked(width).unwrap_or_default();
    [first, rest.get_mut(..width).unwrap_or_default()]
}

/// One policy's amount of an open reservation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pub(crate) end: u64,
    pub(crate) amount: u64,
    reserved: Reserved,
}

impl Amount {
    /// Returns the time of its charge under a policy of that period if it is not settled.
    pub(crate) fn charged_at(&self, period: u64) -> u64 {
        self.reserved.charged_at(self.end, period)
    }
}

/// The open amounts of one policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenOf<'a> {
    open: &'a Open,
    position: usize,
}

impl OpenOf<'_> {
    fn own(self) -> Sum {
        self.open.sums.get(self.position).copied().unwrap_or_default()
    }

    /// Returns the sum of the amounts.
    pub(crate) fn sum(self) -> u64 {
        self.own().amount
    }

    /// Returns the number of reservations.
    pub(crate) fn rows(self) -> usize {
        self.open.len()
    }

    /// Returns whether a call with numbers of its own opened a reservation.
    pub(crate) fn has_call_numbers(self) -> bool {
        self.open.has_call_numbers
    }

    /// Returns whether each amount is charged at its end, if it is not settled.
    pub(crate) fn are_charged_at_ends(self) -> bool {
        !self.open.ends_before_start
    }

    /// Returns the algorithm and the operation that charge `cost` for the reservation at an index.
    pub(crate) fn charge(self, index: usize, own: &AnyAlgorithm, cost: u64) -> (AnyAlgorithm, Act) {
        self.open.charge(index, self.position, own, cost)
    }

    /// Returns the amounts in order of their ends, without those of 0, each with the index of its reservation.
    pub(crate) fn amounts(self) -> impl Iterator<Item = (usize, Amount)> {
        self.amounts_from(0)
    }

    /// Returns the amounts of the reservations from an index on.
    pub(crate) fn amounts_from(self, index: usize) -> impl Iterator<Item = (usize, Amount)> {
        let width = self.open.width();
        let rows = self.open.rows.get(index * width..).unwrap_or(&[]).chunks_exact(width);
        rows.zip(index..).filter_map(move |(row, index)| {
            let (reserved, &amount) = (Reserved::from_words(row)?, row.get(HEAD + self.position)?);
            let is_open = amount != 0 && amount != ABSENT;
            is_open.then_some((index, Amount { end: reserved.end, amount, reserved }))
        })
    }

    /// Returns when the amounts have drained: cached if it was computed from the same `key`, otherwise from `compute`.
    pub(crate) fn drained_at(self, key: u64, compute: impl FnOnce(u64) -> u64) -> u64 {
        let own = self.own();
        match own.amount {
            0 => 0,
            _ if own.drain_key == key => own.drain,
            _ => compute(key),
        }
    }
}
