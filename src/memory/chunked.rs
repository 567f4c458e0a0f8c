//! A growing array that never moves its values: growth costs one small allocation, never a copy.

use crate::growth::{OutOfMemory, defaults, push};
use alloc::vec::Vec;

/// The number of slots in one allocation.
pub(super) const CHUNK: usize = 256;

/// A value for each slot.
#[derive(Debug)]
pub(crate) struct Chunked<T>(Vec<Vec<T>>);

impl<T: Default> Chunked<T> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Makes room for slots below `slots`.
    pub(crate) fn reserve(&mut self, slots: u32) -> Result<(), OutOfMemory> {
        while self.0.len() * CHUNK < slots as usize {
            push(&mut self.0, defaults(CHUNK)?)?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.0.get(slot as usize / CHUNK)?.get(slot as usize % CHUNK)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.0.get_mut(slot as usize / CHUNK)?.get_mut(slot as usize % CHUNK)
    }
}
