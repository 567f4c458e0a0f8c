//! One key's open reservations: amounts that count as used until they are settled or expire.
//!
//! A reservation has an amount for each policy it was opened under, and the numbers of the call that opened it, by which
//! it is charged, whoever looks at its end. A policy that was added since has neither.

use crate::algorithm::any::{AnyAlgorithm, CallNumbers};
use crate::growth::{OutOfMemory, copied, push};
use crate::key::bans::Bans;
use crate::key::undo::is_mark;
use crate::number::in_range;
use crate::policy::schema::{MAX_TTL, RESERVATION_HEAD};
use alloc::vec::Vec;

/// The 128 random bits that identify a reservation.
pub(crate) type Bits = [u32; 4];

/// Returns whether a reservation with these bits is a lease: hits that its holder counts in advance. The first 32 bits of a
/// lease's id are 0; those of another id have a probability of 1 in 2³².
pub(crate) fn is_lease(bits: Bits) -> bool {
    bits[0] == 0
}

/// Returns random bits as those of a lease.
pub(crate) fn lease_random(random: u128) -> u128 {
    random << 32 >> 32
}

/// The number of words of a row before its amounts: two of bits, the start, the end and the ttl.
const HEAD: usize = 5;
/// The index of the end in a row.
const END: usize = 3;
/// The number of words of a policy's part of a row.
const PART: usize = 3;
/// One policy's part of a reservation: the amount, and the numbers of the call that opened it.
pub(crate) type Part = [u64; PART];
/// The part of a reservation that was opened under an exception that allows everything, and is never charged.
pub(crate) const FREE: Part = [0, 0, 1];
/// The part of a policy that the reservation was not opened under. Its amount is out of the range of amounts.
const ABSENT: Part = [u64::MAX, 0, 0];

/// One policy's part of a reservation as plain numbers: four of bits, start, end, ttl, the amount, and the capacity and
/// rate of the call that opened it, or two zeros if the policy is no bucket. With zeros, a bucket is charged by the numbers
/// of those who look.
pub(crate) type OpenRow = [i64; OPEN_ROW];
/// The index of the end in an [`OpenRow`].
pub(crate) const OPEN_END: usize = 5;
/// The number of numbers of one policy's part of a reservation.
pub const OPEN_ROW: usize = RESERVATION_HEAD + PART;

/// The open reservations of one key. Allocates only when the first is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open {
    /// A row of words for each reservation, in order of their ends: the reservation, and a [`Part`] for each policy.
    rows: Vec<u64>,
    /// The sums of each policy. Empty if no reservation is open.
    sums: Vec<Sum>,
    /// The latest time at which the ttl of a reservation started.
    latest_start: u64,
    /// Whether a reservation ends before it was opened, because the clock stepped back.
    ends_before_start: bool,
    /// How many of the rows are marks of undone hits.
    marks: usize,
}

/// No open reservations.
pub(crate) static NONE_OPEN: Open =
    Open { rows: Vec::new(), sums: Vec::new(), latest_start: 0, ends_before_start: false, marks: 0 };

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

    /// Returns a mark that ends a `ttl` after `now`, with a time that it keeps.
    pub(crate) fn mark(bits: Bits, at: u64, now: u64, ttl: u64) -> Self {
        Self { bits, start: at, end: now + ttl, ttl }
    }

    /// Returns when a mark was made.
    pub(crate) fn made_at(&self) -> u64 {
        self.end.saturating_sub(self.ttl)
    }

    /// Returns when it was opened or last extended; the time that a mark keeps.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn bits(&self) -> Bits {
        self.bits
    }

    /// Returns the time of its charge under a policy of that lead if it is closed at `now`.
    pub(crate) fn charged_at(&self, now: u64, lead: u64) -> u64 {
        // A start that far ahead was a wrong reading of the clock.
        if self.start > now + lead { now } else { self.start.max(now) }
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
    /// The numbers by which all of them are charged; two zeros if they differ.
    numbers: CallNumbers,
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
        HEAD + self.sums.len() * PART
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len() / self.width()
    }

    /// Returns how many reservations are open, without the marks of undone hits.
    pub(crate) fn reservations(&self) -> usize {
        self.len() - self.marks
    }

    /// Returns how many rows are marks of undone hits.
    pub(crate) fn marks(&self) -> usize {
        self.marks
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

    /// Returns when the first reservation expires that is no mark of an undone hit.
    pub(crate) fn first_reservation_end(&self) -> Option<u64> {
        self.all().find(|(bits, _)| !is_mark(*bits)).map(|(_, end)| end)
    }

    /// Returns when the first reservation or mark expires.
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

    /// Returns the part of the reservation at an index under the policy at a position; `None` if it was not opened under
    /// that policy.
    fn part(&self, index: usize, position: usize) -> Option<Part> {
        part_of(self.row(index), position).filter(|&part| part != ABSENT)
    }

    /// Returns the amount of the reservation at an index under the policy at a position; 0 if it was not opened under that
    /// policy.
    pub(crate) fn amount(&self, index: usize, position: usize) -> u64 {
        self.part(index, position).map_or(0, |[amount, ..]| amount)
    }

    /// Returns the amount of the reservation at an index under the policy at a position, and the algorithm that charges it, by
    /// the numbers of the call that opened it. `None` if nothing is charged.
    pub(crate) fn to_charge(&self, index: usize, position: usize, own: &AnyAlgorithm) -> Option<(u64, AnyAlgorithm)> {
        let [amount, numbers @ ..] = self.part(index, position).filter(|&part| part != FREE)?;
        Some((amount, own.with_call_numbers(numbers)))
    }

    /// Makes room for one more reservation.
    pub(crate) fn make_room(&mut self, policies: usize) -> Result<(), OutOfMemory> {
        while self.sums.len() < policies {
            push(&mut self.sums, Sum::default())?;
        }
        Ok(self.rows.try_reserve(self.width())?)
    }

    /// Inserts a reservation with its part for each policy. [`Open::make_room`] must have made room, and [`Open::refresh`]
    /// must follow.
    pub(crate) fn insert(&mut self, reserved: Reserved, parts: impl Iterator<Item = Part>) {
        self.rows.extend_from_slice(&reserved.words());
        self.rows.extend(parts.flatten());
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

    /// Removes the parts of all reservations under the policy at a position.
    pub(crate) fn remove_of(&mut self, position: usize) {
        let mut index = 0;
        while index < self.len() {
            self.parts_mut(index).filter(|(own, _)| *own == position).for_each(|(_, part)| *part = ABSENT);
            let is_left = self.parts_mut(index).next().is_some();
            if is_left {
                index += 1;
            } else {
                self.remove(index, 1);
            }
        }
        self.refresh();
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
        self.parts_mut(index).for_each(|(_, [amount, ..])| *amount = amount.saturating_sub(used));
    }

    /// Returns the least amount of the reservation at an index, and the largest: only the least may be used under all
    /// policies. A policy that was added since has 0 of it; bans have no amounts.
    pub(crate) fn bounds(&self, index: usize, bans: Bans) -> (u64, u64) {
        let positions = (0..self.sums.len()).filter(move |&position| !bans.contains(position));
        let amounts = positions.map(|position| self.amount(index, position));
        (amounts.clone().min().unwrap_or(0), amounts.max().unwrap_or(0))
    }

    /// Raises the reservation at an index to at least the amounts of `parts`, and lets it be charged by their numbers.
    /// [`Open::refresh`] must follow.
    pub(crate) fn grow(&mut self, index: usize, parts: impl Iterator<Item = Part>) {
        let mut parts = parts.enumerate();
        for (position, own) in self.parts_mut(index) {
            if let Some((_, [amount, numbers @ ..])) = parts.find(|(at, _)| *at == position) {
                *own = [amount.max(own[0]), numbers[0], numbers[1]];
            }
        }
    }

    /// Returns the parts under the policies that the reservation was opened under, with their positions.
    fn parts_mut(&mut self, index: usize) -> impl Iterator<Item = (usize, &mut Part)> {
        let width = self.width();
        let row = self.rows.chunks_exact_mut(width).nth(index).unwrap_or_default();
        let parts = row.get_mut(HEAD..).unwrap_or_default().as_chunks_mut().0;
        parts.iter_mut().enumerate().filter(|(_, part)| **part != ABSENT)
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
        (self.latest_start, self.ends_before_start, self.marks) = (0, false, 0);
        for row in self.rows.chunks_exact(self.width()) {
            if let Some(Reserved { bits, start, end, ttl }) = Reserved::from_words(row) {
                self.marks += usize::from(is_mark(bits));
                self.latest_start = self.latest_start.max(end - ttl);
                self.ends_before_start |= start > end;
            }
        }
        for position in 0..self.sums.len() {
            let mut amounts = self.of(position).amounts();
            let mut sum = Sum { drain_key: UNKNOWN, ..Sum::default() };
            if let Some((_, first)) = amounts.next() {
                (sum.amount, sum.numbers) = (first.amount, first.numbers);
            }
            for (_, open) in amounts {
                sum.amount += open.amount;
                if open.numbers != sum.numbers {
                    sum.numbers = [0; 2];
                }
            }
            if let Some(own) = self.sums.get_mut(position) {
                *own = sum;
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
            let (reserved, part) = (self.get(index)?, self.part(index, position)?);
            let [a, b, c, d] = reserved.bits.map(i64::from);
            let [amount, capacity, rate] = part.map(|number| number as i64);
            let [start, end, ttl] = [reserved.start, reserved.end, reserved.ttl].map(|time| time as i64);
            Some([a, b, c, d, start, end, ttl, amount, capacity, rate])
        })
    }

    /// Adds one of `policies` policies' part of a reservation. Returns whether the numbers are valid. [`Open::refresh`] must
    /// follow.
    pub(crate) fn import(&mut self, position: usize, row: &OpenRow, policies: usize) -> Result<bool, OutOfMemory> {
        let &[a, b, c, d, start, end, ttl, amount, capacity, rate] = row;
        let are_bits = [a, b, c, d].iter().all(|&bits| bits as u64 >> 32 == 0);
        let in_time = (1..=MAX_TTL as i64).contains(&ttl) && ttl <= end && in_range(start) && in_range(end);
        let part = [amount, capacity, rate];
        let is_part = (capacity > 0) == (rate > 0) || part == FREE.map(|number| number as i64);
        if !are_bits || !in_time || !is_part || !part.into_iter().all(in_range) {
            return Ok(false);
        }
        let bits = [a, b, c, d].map(|bits| bits as u32);
        let reserved = Reserved { bits, start: start as u64, end: end as u64, ttl: ttl as u64 };
        self.make_room(policies)?;
        let index = match self.find(bits) {
            Some(index) if self.part(index, position).is_some() => return Ok(false),
            Some(index) => index,
            None => {
                self.insert(reserved, core::iter::repeat_n(ABSENT, policies));
                self.find(bits).unwrap_or(0)
            }
        };
        let at = index * self.width() + HEAD + position * PART;
        if let Some(own) = self.rows.get_mut(at..at + PART) {
            own.copy_from_slice(&part.map(|number| number as u64));
        }
        Ok(true)
    }
}

/// Returns the part of a row under the policy at a position.
fn part_of(row: &[u64], position: usize) -> Option<Part> {
    row.get(HEAD + position * PART..)?.first_chunk().copied()
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
    /// The numbers of the call that opened it.
    numbers: CallNumbers,
    reserved: Reserved,
}

impl Amount {
    /// Returns the algorithm that charges the amount.
    pub(crate) fn charged_by(&self, own: &AnyAlgorithm) -> AnyAlgorithm {
        own.with_call_numbers(self.numbers)
    }

    /// Returns the time of its charge under a policy of that lead if it is not settled.
    pub(crate) fn charged_at(&self, lead: u64) -> u64 {
        self.reserved.charged_at(self.end, lead)
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

    /// Returns the sum of the amounts of leases. An id below 2⁶⁴ is that of a caller who counts reservations.
    pub(crate) fn leased(self) -> u64 {
        let is_leased = |bits: Bits| is_lease(bits) && bits[1] != 0;
        self.amounts().filter(|(_, amount)| is_leased(amount.reserved.bits)).map(|(_, amount)| amount.amount).sum()
    }

    /// Returns the number of reservations.
    pub(crate) fn rows(self) -> usize {
        self.open.len()
    }

    /// Returns whether all amounts are charged by the numbers of an algorithm.
    pub(crate) fn are_charged_by(self, algorithm: &AnyAlgorithm) -> bool {
        self.own().numbers == algorithm.call_numbers()
    }

    /// Returns whether each amount is charged at its end, if it is not settled.
    pub(crate) fn are_charged_at_ends(self) -> bool {
        !self.open.ends_before_start
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
            let (reserved, part) = (Reserved::from_words(row)?, part_of(row, self.position)?);
            let [amount, numbers @ ..] = part;
            let is_open = amount != 0 && part != ABSENT;
            is_open.then_some((index, Amount { end: reserved.end, amount, numbers, reserved }))
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
