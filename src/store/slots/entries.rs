//! What a slab holds for each slot: a run of words and one of logs, in chunks that never move.

use crate::algorithm::sliding_window::Log;
use crate::store::chunked::CHUNK;
use alloc::vec;
use alloc::vec::Vec;

/// The words and logs of all slots.
#[derive(Debug)]
pub(super) struct Entries {
    words: usize,
    logs: usize,
    chunks: Vec<Chunk>,
}

#[derive(Debug)]
struct Chunk {
    words: Vec<u64>,
    logs: Vec<Log>,
}

impl Entries {
    /// None yet, of so many words and logs each.
    pub(super) fn new(words: usize, logs: usize) -> Self {
        Self { words, logs, chunks: Vec::new() }
    }

    /// Makes room for slots below `slots`, of which there was room for all but the last.
    pub(super) fn reserve(&mut self, slots: u32) {
        if self.chunks.len() * CHUNK < slots as usize {
            let (words, logs) = (vec![0; CHUNK * self.words], Log::many(CHUNK * self.logs));
            self.chunks.push(Chunk { words, logs });
        }
    }

    /// The words and logs of a slot; none where there is no slot.
    // In wasm once, for its size, and the same code as the next; elsewhere wherever it is used, for its speed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(super) fn get(&self, slot: u32) -> (&[u64], &[Log]) {
        let (chunk, place) = place(slot);
        match self.chunks.get(chunk) {
            Some(chunk) => (run(&chunk.words, place, self.words), run(&chunk.logs, place, self.logs)),
            None => (&[], &[]),
        }
    }

    /// The same, to be changed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(super) fn get_mut(&mut self, slot: u32) -> (&mut [u64], &mut [Log]) {
        let (chunk, place) = place(slot);
        match self.chunks.get_mut(chunk) {
            Some(chunk) => (run_mut(&mut chunk.words, place, self.words), run_mut(&mut chunk.logs, place, self.logs)),
            None => (&mut [], &mut []),
        }
    }

    /// The words alone, to be changed.
    #[cfg(all(feature = "js", target_arch = "wasm32"))]
    #[inline(always)]
    pub(super) fn words_mut(&mut self, slot: u32) -> &mut [u64] {
        let (chunk, place) = place(slot);
        match self.chunks.get_mut(chunk) {
            Some(chunk) => run_mut(&mut chunk.words, place, self.words),
            None => &mut [],
        }
    }
}

/// Which chunk a slot is in, and where in it.
#[inline(always)]
fn place(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK, slot as usize % CHUNK)
}

/// One of many runs of the same width.
// Two short slices are checked in fewer steps than a range, whose ends could be in the wrong order.
#[inline(always)]
fn run<T>(all: &[T], place: usize, width: usize) -> &[T] {
    all.get(place * width..).and_then(|rest| rest.get(..width)).unwrap_or_default()
}

#[inline(always)]
fn run_mut<T>(all: &mut [T], place: usize, width: usize) -> &mut [T] {
    all.get_mut(place * width..).and_then(|rest| rest.get_mut(..width)).unwrap_or_default()
}
