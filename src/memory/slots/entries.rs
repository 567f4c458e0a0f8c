//! The entries of all slots: for each a run of words and one of logs, in chunks that never move.

use crate::algorithm::entry::{Entry, EntryMut};
use crate::algorithm::log::Log;
use crate::growth::{OutOfMemory, defaults, push};
use crate::memory::chunked::CHUNK;
use alloc::vec::Vec;

/// The entries of all slots.
#[derive(Debug)]
pub(super) struct Entries {
    words: Runs<u64>,
    logs: Runs<Log>,
}

/// A run of `length` values for each slot.
#[derive(Debug)]
struct Runs<T> {
    length: usize,
    chunks: Vec<Vec<T>>,
}

impl Entries {
    pub(super) fn new(words: usize, logs: usize) -> Self {
        Self { words: Runs { length: words, chunks: Vec::new() }, logs: Runs { length: logs, chunks: Vec::new() } }
    }

    /// Makes room for slots below `slots`.
    pub(super) fn reserve(&mut self, slots: u32) -> Result<(), OutOfMemory> {
        self.words.reserve(slots)?;
        self.logs.reserve(slots)
    }

    // In wasm it is compiled once, for its size; elsewhere it is inlined, for its speed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(super) fn get(&self, slot: u32) -> Entry<'_> {
        Entry { words: self.words.get(slot), logs: self.logs.get(slot) }
    }

    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(super) fn get_mut(&mut self, slot: u32) -> EntryMut<'_> {
        self.both_mut(slot)
    }

    /// Returns an entry for writing. Always inlined, for its speed.
    #[inline(always)]
    pub(super) fn both_mut(&mut self, slot: u32) -> EntryMut<'_> {
        EntryMut { words: self.words.get_mut(slot), logs: self.logs.get_mut(slot) }
    }

    /// Returns the words of an entry for writing.
    #[inline(always)]
    pub(super) fn words_mut(&mut self, slot: u32) -> &mut [u64] {
        self.words.get_mut(slot)
    }
}

impl<T: Default> Runs<T> {
    fn reserve(&mut self, slots: u32) -> Result<(), OutOfMemory> {
        while self.length > 0 && self.chunks.len() * CHUNK < slots as usize {
            push(&mut self.chunks, defaults(CHUNK * self.length)?)?;
        }
        Ok(())
    }
}

impl<T> Runs<T> {
    #[inline(always)]
    fn get(&self, slot: u32) -> &[T] {
        let (chunk, start) = self.place(slot);
        // Two slices are checked in fewer steps than a range, whose ends could be in the wrong order.
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

    /// Returns the chunk of a slot's run, and where the run starts in it.
    #[inline(always)]
    fn place(&self, slot: u32) -> (usize, usize) {
        (slot as usize / CHUNK, slot as usize % CHUNK * self.length)
    }
}
