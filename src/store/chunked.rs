//! A growing array of runs that never moves what it holds: growth costs one small allocation, never a copy.

use alloc::vec::Vec;
/// How many slots one allocation holds.
const CHUNK: usize = 256;

/// Runs of `width` values, one run a slot.
#[derive(Clone, Debug)]
pub(crate) struct Chunked<T> {
    width: usize,
    chunks: Vec<Vec<T>>,
}

impl<T: Default> Chunked<T> {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, chunks: Vec::new() }
    }

    /// Makes room for slots below `slots`.
    pub(crate) fn reserve(&mut self, slots: u32) {
        while self.width > 0 && self.chunks.len() * CHUNK < slots as usize {
            let mut chunk = Vec::with_capacity(CHUNK * self.width);
            chunk.resize_with(CHUNK * self.width, T::default);
            self.chunks.push(chunk);
        }
    }

    /// The run of a slot; empty where there is none.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &[T] {
        let (chunk, start) = self.place(slot);
        // Two short slices are checked in fewer steps than a range, whose ends could be in the wrong order.
        match self.chunks.get(chunk) {
            Some(chunk) => chunk.get(start..).unwrap_or(&[]).get(..self.width).unwrap_or(&[]),
            None => &[],
        }
    }

    /// The run of a slot, to be changed; empty where there is none.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut [T] {
        let (chunk, start) = self.place(slot);
        match self.chunks.get_mut(chunk) {
            Some(chunk) => chunk.get_mut(start..).unwrap_or(&mut []).get_mut(..self.width).unwrap_or(&mut []),
            None => &mut [],
        }
    }

    /// The value of a slot, where runs are of one.
    #[inline]
    pub(crate) fn only(&self, slot: u32) -> Option<&T> {
        debug_assert_eq!(self.width, 1);
        self.chunks.get(slot as usize / CHUNK)?.get(slot as usize % CHUNK)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn place(&self, slot: u32) -> (usize, usize) {
        let slot = slot as usize;
        (slot / CHUNK, slot % CHUNK * self.width)
    }
}
