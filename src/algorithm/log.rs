//! A log of hits, in a ring.

use alloc::boxed::Box;
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
    /// As many places as a power of two, if any.
    ring: Option<Box<[Hits]>>,
    /// The place of the oldest.
    first: u32,
    len: u32,
    pub(crate) total: u64,
}

impl Log {
    pub(crate) const EMPTY: Self = Self { ring: None, first: 0, len: 0, total: 0 };

    /// So many empty logs.
    pub(crate) fn many(count: usize) -> Vec<Self> {
        let mut logs = Vec::new();
        logs.resize_with(count, Self::default);
        logs
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The hits at a position, counted from the oldest.
    pub(crate) fn get(&self, position: u32) -> Option<&Hits> {
        let ring = self.ring.as_deref().filter(|_| position < self.len)?;
        ring.get(self.place(position) & (ring.len() - 1))
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, position: u32) -> Option<&mut Hits> {
        let place = self.place(position);
        let ring = self.ring.as_deref_mut().filter(|_| position < self.len)?;
        let mask = ring.len() - 1;
        ring.get_mut(place & mask)
    }

    /// Where that is, going round and round.
    fn place(&self, position: u32) -> usize {
        self.first.wrapping_add(position) as usize
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
        if self.ring.as_ref().is_none_or(|ring| ring.len() == self.len as usize) {
            self.grow();
        }
        self.len += 1;
        if let Some(newest) = self.get_mut(self.len - 1) {
            *newest = hits;
        }
    }

    /// Twice the room.
    #[cold]
    fn grow(&mut self) {
        let room = (2 * self.len).max(4);
        self.ring = Some((0..room).map(|position| self.get(position).copied().unwrap_or_default()).collect());
        self.first = 0;
    }
}
