//! What a slab holds for each slot: a run of words and one of logs, in chunks that never move.

use crate::algorithm::log::Log;
use crate::store::chunked::CHUNK;
use alloc::vec;
use alloc::vec::Vec;

/// The words and logs of all slots.
#[derive(Debug)]
pub(super) struct Entries {
    words: Runs<u64>,
    logs: Runs<Log>,
}

/// A run of the same length for each slot.
#[derive(Debug)]
struct Runs<T> {
    length: usize,
    chunks: Vec<Vec<T>>,
}

impl Entries {
    /// None yet, of so many words and logs each.
    pub(super) fn new(words: usize, logs: usize) -> Self {
        Self { words: Runs { length: words, chunks: Vec::new() }, logs: Runs { length: logs, chunks: Vec::new() } }
    }

    /// Makes room for slots below `slots`, of which there was room for all but the last.
    pub(super) fn reserve(&mut self, slots: u32) {
        if self.words.chunks.len() * CHUNK < slots as usize {
            self.words.chunks.push(vec![0; CHUNK * self.words.length]);
            if self.logs.length > 0 {
                self.logs.chunks.push(Log::many(CHUNK * self.logs.length));
            }
        }
    }

    /// The words and logs of a slot; none where there is no slot.
    // In wasm once, for its size, and the same code as the next; elsewhere wherever it is used, for its speed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(super) fn get(&self, slot: u32) -> (&[u64], &[Log]) {
        (self.words.get(slot), self.logs.get(slot))
    }

    /// The same, to be changed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(super) fn get_mut(&mut self, slot: u32) -> (&mut [u64], &mut [Log]) {
        (self.words.get_mut(slot), self.logs.get_mut(slot))
    }

    /// The same where it is used, for its speed.
    #[cfg(all(feature = "js", target_arch = "wasm32"))]
    #[inline(always)]
    pub(super) fn both_mut(&mut self, slot: u32) -> (&mut [u64], &mut [Log]) {
        (self.words.get_mut(slot), self.logs.get_mut(slot))
    }

    /// The words alone, to be changed.
    #[cfg(all(feature = "js", target_arch = "wasm32"))]
    #[inline(always)]
    pub(super) fn words_mut(&mut self, slot: u32) -> &mut [u64] {
        self.words.get_mut(slot)
    }
}

impl<T> Runs<T> {
    #[inline(always)]
    fn get(&self, slot: u32) -> &[T] {
        let (chunk, start) = self.place(slot);
        // Two short slices are checked in fewer steps than a range, whose ends could be in the wrong order.
        match self.chunks.get(chunk) {
            Some(chunk) => chunk.get(start..).unwrap_or(&[]).get(..self.length).unwrap_or(&[]),
            None => &[],
        }
    }

    #[inline(always)]
    fn get_mut(&mut self, slot: u32) -> &mut [T] {
        let (chunk, start) = self.place(slot);
        match self.chunks.get_mut(chunk) {
            Some(chunk) => chunk.get_mut(start..).unwrap_or(&mut []).get_mut(..self.length).unwrap_or(&mut []),
            None => &mut [],
        }
    }

    /// Which chunk a slot's run lies in, and where it starts.
    #[inline(always)]
    fn place(&self, slot: u32) -> (usize, usize) {
        (slot as usize / CHUNK, slot as usize % CHUNK * self.length)
    }
}
