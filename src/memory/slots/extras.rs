//! The extras that a few slots have beside their states.

use crate::growth::{OutOfMemory, push};
use crate::key::operate::Extra;
use crate::memory::chunked::Chunked;
use alloc::vec::Vec;

/// Extras by slot. It takes no memory until a slot has one.
#[derive(Debug)]
pub(super) struct Extras {
    /// A list of at most one for each slot: a `Vec` can run out of memory without a panic, a `Box` cannot.
    slots: Chunked<Vec<Extra>>,
    /// The number of slots with an extra.
    len: u32,
}

impl Extras {
    pub(super) fn new() -> Self {
        Self { slots: Chunked::new(), len: 0 }
    }

    /// Returns whether no slot has an extra, as is almost always so.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of slots with an extra.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Makes room for the lists of all slots below `slots`.
    pub(super) fn reserve(&mut self, slots: u32) -> Result<(), OutOfMemory> {
        self.slots.reserve(slots)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Extra> {
        if self.is_empty() { None } else { self.slots.get(slot)?.first() }
    }

    /// Returns the extra of a slot for writing; `None` if it has none.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Extra> {
        if self.is_empty() { None } else { self.slots.get_mut(slot)?.first_mut() }
    }

    /// Returns the extra of a slot for writing; inserts an empty one if it has none.
    pub(super) fn get_or_insert(&mut self, slot: u32) -> Result<&mut Extra, OutOfMemory> {
        self.slots.reserve(slot + 1)?;
        let own = self.slots.get_mut(slot).ok_or(OutOfMemory)?;
        if own.is_empty() {
            push(own, Extra::default())?;
            self.len += 1;
        }
        own.first_mut().ok_or(OutOfMemory)
    }

    /// Replaces the list of a slot. There must be room for it.
    pub(super) fn replace(&mut self, slot: u32, list: Vec<Extra>) {
        let Some(own) = self.slots.get_mut(slot) else { return };
        self.len -= u32::from(!own.is_empty());
        *own = list;
        self.len += u32::from(!own.is_empty());
    }

    /// Drops the extra of a slot.
    pub(super) fn remove(&mut self, slot: u32) {
        self.replace(slot, Vec::new());
    }
}
