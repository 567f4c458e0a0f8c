//! A growing array that never moves what it holds: growth costs one small allocation, never a copy.

use alloc::vec::Vec;

/// How many slots one allocation holds.
pub(super) const CHUNK: usize = 256;

/// A value for each slot.
#[derive(Debug)]
pub(crate) struct Chunked<T>(Vec<Vec<T>>);

impl<T: Default> Chunked<T> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Makes room for slots below `slots`.
    pub(crate) fn reserve(&mut self, slots: u32) {
        while self.0.len() * CHUNK < slots as usize {
            let mut chunk = Vec::with_capacity(CHUNK);
            chunk.resize_with(CHUNK, T::default);
            self.0.push(chunk);
        }
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.0.get(slot as usize / CHUNK)?.get(slot as usize % CHUNK)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.0.get_mut(slot as usize / CHUNK)?.get_mut(slot as usize % CHUNK)
    }
}
