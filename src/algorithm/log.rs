//! A log of hits, in a ring of words.
//!
//! A word holds a time (53 bits) and a cost below 2^11. A larger cost takes a second word. Both words of such an entry
//! have the cost bits 0, so that entries can be read from either end.

use crate::growth::{OutOfMemory, copied};
use crate::number::MAX;
use alloc::vec::Vec;

const COST_BITS: u32 = 11;
/// The largest cost that shares a word with its time.
const MAX_SHORT_COST: u64 = (1 << COST_BITS) - 1;

/// Hits of one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hits {
    pub(crate) time: u64,
    pub(crate) cost: u64,
}

impl Hits {
    /// Returns the number of words that the entry takes.
    #[inline(always)]
    pub(crate) fn words(self) -> u32 {
        if self.cost > MAX_SHORT_COST { 2 } else { 1 }
    }
}

/// The hits that still count, oldest first, and their sum.
///
/// A hit drops the oldest entries and adds one. The ring of a key that is not hot is not in the CPU's cache, and a read
/// of it takes longer than the rest of the hit. So `front` has a copy of the oldest words, refilled from the ring a
/// cache line at a time. Adding writes to the ring, and no hit waits for a write.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub(crate) struct Log {
    /// The time of the newest entry; 0 if there is none.
    newest: u64,
    pub(crate) total: u64,
    /// The time of the newest hit that was dropped while it counted; 0 if there is none.
    pub(crate) lost: u64,
    /// The index of the oldest entry's first word.
    first: u32,
    /// The number of words in use.
    len: u32,
    ring: Vec<u64>,
    /// How many of the oldest words `front` holds.
    fronted: u32,
    /// The oldest words, at the end of the array.
    front: [u64; FRONT],
}

/// The number of words in a cache line.
const FRONT: usize = 8;

impl Default for Log {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Log {
    pub(crate) const EMPTY: Self =
        Self { newest: 0, total: 0, lost: 0, first: 0, len: 0, ring: Vec::new(), fronted: 0, front: [0; FRONT] };

    /// Returns a copy.
    pub(crate) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        Ok(Self { ring: copied(&self.ring)?, ..*self })
    }

    /// Returns the number of words in use.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the time of the oldest entry; the latest possible time if the log is empty.
    pub(crate) fn oldest(&self) -> u64 {
        if self.len == 0 { MAX } else { self.word(0) >> COST_BITS }
    }

    /// Returns the time of the newest entry; 0 if the log is empty.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Returns the entry that begins `at` words after the oldest.
    #[inline(always)]
    pub(crate) fn entry(&self, at: u32) -> Option<Hits> {
        if at >= self.len {
            return None;
        }
        let word = self.word(at);
        let cost = match word & MAX_SHORT_COST {
            0 => self.word(at + 1) >> COST_BITS,
            cost => cost,
        };
        Some(Hits { time: word >> COST_BITS, cost })
    }

    /// Returns the newest entry.
    fn last(&self) -> Option<Hits> {
        let last = self.word(self.len.checked_sub(1)?);
        let cost = if last & MAX_SHORT_COST == 0 { last >> COST_BITS } else { last & MAX_SHORT_COST };
        Some(Hits { time: self.newest, cost })
    }

    #[inline(always)]
    fn word(&self, at: u32) -> u64 {
        let word =
            if at < self.fronted { self.front.get(self.place_in_front(at)) } else { self.ring.get(self.place(at)) };
        word.copied().unwrap_or(0)
    }

    /// Returns the index in `front` of a word that it holds.
    #[inline(always)]
    fn place_in_front(&self, at: u32) -> usize {
        FRONT - self.fronted as usize + at as usize
    }

    /// Returns the index in the ring of the word that is `at` words after the oldest.
    #[inline(always)]
    fn place(&self, at: u32) -> usize {
        let place = self.first as usize + at as usize;
        if place >= self.ring.len() { place - self.ring.len() } else { place }
    }

    /// Drops the oldest entries, `words` words in all, and leaves `total` as it is.
    #[inline(always)]
    pub(crate) fn forget(&mut self, words: u32) {
        self.first = self.place(words) as u32;
        self.len -= words;
        if self.len == 0 {
            (self.first, self.newest, self.lost) = (0, 0, 0);
        }
        if words < self.fronted {
            self.fronted -= words;
        } else {
            self.refill_front();
        }
    }

    #[inline(never)]
    fn refill_front(&mut self) {
        self.fronted = 0;
        let fronted = self.len.min(FRONT as u32);
        for at in 0..fronted {
            self.front[FRONT - (fronted - at) as usize] = self.word(at);
        }
        self.fronted = fronted;
    }

    /// Returns how many words adding `hits` takes. They must not be older than the newest.
    #[inline(always)]
    pub(crate) fn words_to_add(&self, hits: Hits) -> u32 {
        match self.last() {
            Some(last) if last.time == hits.time => Hits { cost: last.cost + hits.cost, ..last }.words() - last.words(),
            _ => hits.words(),
        }
    }

    /// Makes room for `words` words in all, by doubling the ring up to `most` words.
    #[inline(always)]
    pub(crate) fn make_room(&mut self, words: u64, most: u64) -> Result<(), OutOfMemory> {
        if words <= self.ring.len() as u64 { Ok(()) } else { self.grow(words, most) }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, words: u64, most: u64) -> Result<(), OutOfMemory> {
        let room = words.max((2 * self.ring.len() as u64).min(most));
        let room = u32::try_from(room).map_err(|_| OutOfMemory)? as usize;
        self.ring.try_reserve_exact(room - self.ring.len())?;
        self.ring.rotate_left(self.first as usize);
        self.ring.resize(room, 0);
        self.first = 0;
        Ok(())
    }

    /// Adds hits that are not older than the newest, and leaves `total` as it is. There must be room for them.
    #[inline(always)]
    pub(crate) fn push(&mut self, mut hits: Hits) {
        if let Some(last) = self.last()
            && last.time == hits.time
        {
            hits.cost += last.cost;
            self.len -= last.words();
            if self.fronted > self.len {
                self.fronted = 0;
            }
        }
        let at = self.len;
        self.len += hits.words();
        debug_assert!(self.len as usize <= self.ring.len(), "room was made before");
        self.newest = hits.time;
        self.write(at, hits);
    }

    /// Writes an entry over the words that begin `at` words after the oldest.
    #[inline(always)]
    fn write(&mut self, at: u32, Hits { time, cost }: Hits) {
        if cost <= MAX_SHORT_COST {
            self.write_word(at, time << COST_BITS | cost);
        } else {
            self.write_word(at, time << COST_BITS);
            self.write_word(at + 1, cost << COST_BITS);
        }
    }

    #[inline(always)]
    fn write_word(&mut self, at: u32, word: u64) {
        let place = self.place(at);
        if let Some(old) = self.ring.get_mut(place) {
            *old = word;
        }
        if at < self.fronted {
            let place = self.place_in_front(at);
            self.front[place] = word;
        }
    }

    /// Replaces the oldest entries, `words` words in all, by one entry that takes no more words.
    pub(crate) fn replace_oldest(&mut self, words: u32, hits: Hits) {
        let is_only = words == self.len;
        let excess = words - hits.words();
        self.first = self.place(excess) as u32;
        self.len -= excess;
        self.fronted = self.fronted.saturating_sub(excess);
        self.write(0, hits);
        if is_only {
            self.newest = hits.time;
        }
    }

    /// Takes a cost out of the entry that begins `at` words after the oldest. Returns what was taken.
    #[cold]
    pub(crate) fn take(&mut self, at: u32, cost: u64) -> u64 {
        let Some(hits) = self.entry(at) else { return 0 };
        let taken = cost.min(hits.cost);
        let left = Hits { cost: hits.cost - taken, ..hits };
        let words = if left.cost > 0 { left.words() } else { 0 };
        let gap = hits.words() - words;
        for from in at + hits.words()..self.len {
            let word = self.word(from);
            self.write_word(from - gap, word);
        }
        self.len -= gap;
        // It is filled again when the next entry is dropped.
        self.fronted = 0;
        if words > 0 {
            self.write(at, left);
        }
        self.newest = self.last_time();
        // One that is as if never used has no times.
        self.lost = self.lost.min(self.newest);
        self.total -= taken;
        taken
    }

    /// Returns the time of the newest entry, read from its words; 0 if the log is empty.
    fn last_time(&self) -> u64 {
        let (mut at, mut time) = (0, 0);
        while let Some(hits) = self.entry(at) {
            (at, time) = (at + hits.words(), hits.time);
        }
        time
    }

    /// Moves all times back by `shift`. Times before the epoch become the epoch.
    #[cold]
    pub(crate) fn shift(&mut self, shift: u64) {
        let mut at = 0;
        while let Some(Hits { time, cost }) = self.entry(at) {
            let hits = Hits { time: time.saturating_sub(shift), cost };
            self.write(at, hits);
            at += hits.words();
        }
        self.newest = self.newest.saturating_sub(shift);
        self.lost = self.lost.saturating_sub(shift);
        // Entries of one millisecond are one entry.
        while let Some(first) = self.entry(0)
            && let Some(second) = self.entry(first.words())
            && second.time == 0
        {
            let merged = Hits { time: 0, cost: first.cost + second.cost };
            self.replace_oldest(first.words() + second.words(), merged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn entries(log: &Log) -> Vec<Hits> {
        let (mut entries, mut at) = (Vec::new(), 0);
        while let Some(hits) = log.entry(at) {
            entries.push(hits);
            at += hits.words();
        }
        entries
    }

    fn push(log: &mut Log, hits: Hits) {
        let words = log.len() + log.words_to_add(hits);
        log.make_room(words.into(), 1_000_000).unwrap();
        log.push(hits);
        assert_eq!(log.len(), words);
    }

    /// Costs of one word and of two.
    fn cost(time: u64) -> u64 {
        [1, 2, MAX_SHORT_COST, MAX_SHORT_COST + 1, MAX][time as usize % 5]
    }

    #[test]
    fn a_ring_that_turns_and_grows_keeps_its_order() {
        let (mut log, mut expected) = (Log::default(), VecDeque::new());
        assert_eq!((log.newest(), log.oldest(), log.entry(0)), (0, MAX, None));
        for time in 0..if cfg!(miri) { 100 } else { 1_000 } {
            // More come than go, in bursts: the oldest can be anywhere in the ring when it grows.
            let gone = if time % 7 == 0 { time as usize % 6 } else { 0 };
            for _ in 0..gone.min(expected.len()) {
                let oldest: Hits = expected.pop_front().unwrap();
                log.forget(oldest.words());
            }
            push(&mut log, Hits { time, cost: cost(time) });
            expected.push_back(Hits { time, cost: cost(time) });
            assert_eq!(entries(&log), Vec::from_iter(expected.iter().copied()));
            assert_eq!((log.oldest(), log.newest(), log.last()), (expected[0].time, time, expected.back().copied()));
        }
        log.forget(log.len());
        assert_eq!((log.newest(), log.oldest(), log.entry(0)), (0, MAX, None));
    }

    #[test]
    fn a_merged_entry_is_read_as_it_is_written() {
        let mut log = Log::default();
        for time in 0..6 {
            push(&mut log, Hits { time, cost: 1 });
        }
        log.forget(3);
        push(&mut log, Hits { time: 5, cost: MAX_SHORT_COST });
        let expected = [(3, 1), (4, 1), (5, MAX_SHORT_COST + 1)].map(|(time, cost)| Hits { time, cost });
        assert_eq!(entries(&log), expected);
        log.forget(1);
        assert_eq!(entries(&log), expected[1..]);
    }

    #[test]
    fn the_ring_is_never_larger_than_it_can_need() {
        let mut log = Log::default();
        for (words, room) in [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (9, 11), (11, 11)] {
            log.make_room(words, 11).unwrap();
            assert_eq!(log.ring.len(), room);
        }
        assert_eq!(log.make_room(u64::from(u32::MAX) + 1, MAX), Err(OutOfMemory));
    }

    #[test]
    fn hits_of_one_millisecond_are_one_entry() {
        let mut log = Log::default();
        for (cost, words) in [(1, 1), (MAX_SHORT_COST - 1, 1), (1, 2), (5, 2)] {
            push(&mut log, Hits { time: 7, cost });
            assert_eq!(log.len(), words);
        }
        assert_eq!(entries(&log), [Hits { time: 7, cost: MAX_SHORT_COST + 6 }]);
    }

    #[test]
    fn an_entry_that_loses_a_word_keeps_its_neighbour() {
        let mut log = Log::default();
        push(&mut log, Hits { time: 7, cost: MAX });
        push(&mut log, Hits { time: 8, cost: 3 });
        log.replace_oldest(2, Hits { time: 7, cost: 4 });
        assert_eq!(entries(&log), [Hits { time: 7, cost: 4 }, Hits { time: 8, cost: 3 }]);
        assert_eq!((log.oldest(), log.newest(), log.len()), (7, 8, 2));
    }

    #[test]
    fn times_that_come_to_the_epoch_are_one_entry() {
        let mut log = Log::default();
        for time in 0..5 {
            push(&mut log, Hits { time, cost: MAX_SHORT_COST });
        }
        log.shift(3);
        assert_eq!(entries(&log), [Hits { time: 0, cost: 4 * MAX_SHORT_COST }, Hits { time: 1, cost: MAX_SHORT_COST }]);
        log.shift(1);
        assert_eq!(entries(&log), [Hits { time: 0, cost: 5 * MAX_SHORT_COST }]);
        assert_eq!((log.oldest(), log.newest()), (0, 0));
    }
}
