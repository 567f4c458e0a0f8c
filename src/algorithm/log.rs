//! A log of hits, in a ring.

use crate::number::MAX;
use alloc::vec::Vec;

/// Hits of one millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    pub(crate) time: u64,
    pub(crate) cost: u64,
}

/// The hits that still count, oldest first, and their sum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// As many places as a power of two, or none.
    ring: Vec<Hits>,
    /// The place of the oldest.
    first: u32,
    len: u32,
    pub(crate) total: u64,
}

impl Log {
    pub(crate) const EMPTY: Self = Self { ring: Vec::new(), first: 0, len: 0, total: 0 };

    /// So many empty logs.
    pub(crate) fn many(count: usize) -> Vec<Self> {
        (0..count).map(|_| Self::EMPTY).collect()
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The hits at a position, counted from the oldest.
    pub(crate) fn get(&self, position: u32) -> Option<&Hits> {
        if position < self.len { self.ring.get(self.place(position)) } else { None }
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, position: u32) -> Option<&mut Hits> {
        let place = self.place(position);
        if position < self.len { self.ring.get_mut(place) } else { None }
    }

    /// Where that is in the ring, going round and round.
    fn place(&self, position: u32) -> usize {
        self.first.wrapping_add(position) as usize & self.ring.len().wrapping_sub(1)
    }

    /// When the oldest and the newest hits came; if there are none, as late and as early as can be.
    #[inline(always)]
    pub(crate) fn span(&self) -> (u64, u64) {
        let newest = self.ring.get(self.place(self.len.wrapping_sub(1)));
        match (self.ring.get(self.place(0)), newest) {
            (Some(oldest), Some(newest)) if self.len > 0 => (oldest.time, newest.time),
            _ => (MAX, 0),
        }
    }

    /// When the newest hits came; 0 if there are none.
    pub(crate) fn newest(&self) -> u64 {
        self.get(self.len.wrapping_sub(1)).map_or(0, |hits| hits.time)
    }

    /// Forgets so many of the oldest, but not their share of the sum.
    pub(crate) fn forget(&mut self, oldest: u32) {
        self.first = self.first.wrapping_add(oldest);
        self.len -= oldest;
    }

    /// Adds hits that are as new as the newest or newer, but not to the sum.
    pub(crate) fn push(&mut self, hits: Hits) {
        if let Some(newest) = self.get_mut(self.len.wrapping_sub(1))
            && newest.time == hits.time
        {
            newest.cost += hits.cost;
            return;
        }
        if self.ring.len() == self.len as usize {
            self.grow();
        }
        self.len += 1;
        if let Some(newest) = self.get_mut(self.len - 1) {
            *newest = hits;
        }
    }

    /// Twice the room, or the first.
    #[cold]
    fn grow(&mut self) {
        self.first = self.place(0) as u32;
        if self.ring.is_empty() {
            self.ring.push(Hits::default());
        } else {
            // From the place of the oldest on, two rings in a row hold all hits in order.
            self.ring.extend_from_within(..);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn a_ring_that_turns_and_grows_keeps_its_order() {
        let (mut log, mut expected) = (Log::default(), VecDeque::new());
        assert_eq!((log.newest(), log.span()), (0, (MAX, 0)));
        for time in 0..1_000 {
            // More come than go, in bursts: the oldest lies anywhere in the ring when it grows.
            let gone = if time % 5 == 0 { (time % 4).min(u64::from(log.len())) } else { 0 };
            log.forget(gone as u32);
            expected.drain(..gone as usize);
            log.push(Hits { time, cost: time + 1 });
            expected.push_back(Hits { time, cost: time + 1 });
            assert_eq!(
                (0..log.len()).filter_map(|position| log.get(position)).collect::<Vec<_>>(),
                Vec::from_iter(&expected)
            );
            assert_eq!((log.newest(), log.get(log.len())), (time, None));
            assert_eq!(log.span(), (expected[0].time, time));
        }
        assert!(log.first > 0 && log.ring.len() >= expected.len());
    }

    #[test]
    fn hits_of_one_millisecond_lie_together() {
        let mut log = Log::default();
        log.push(Hits { time: 7, cost: 1 });
        log.push(Hits { time: 7, cost: 2 });
        assert_eq!((log.len(), log.get(0)), (1, Some(&Hits { time: 7, cost: 3 })));
    }
}
