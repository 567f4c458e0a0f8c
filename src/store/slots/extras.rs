//! What a few slots have beside their states.

use crate::extra::Extra;
use crate::memory::{OutOfMemory, push};
use crate::store::chunked::Chunked;
use alloc::vec::Vec;

/// Extras by slot. It takes no memory until a slot has one.
#[derive(Debug)]
pub(super) struct Extras {
    /// A list of one or none for each slot: a list's memory can run out without a panic, a box's cannot.
    slots: Chunked<Vec<Extra>>,
    /// The number of slots that have one.
    len: u32,
}

impl Extras {
    pub(super) fn new() -> Self {
        Self { slots: Chunked::new(), len: 0 }
    }

    /// Whether no slot has any, as almost always.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for the lists of all slots below `slots`.
    pub(super) fn reserve(&mut self, slots: u32) -> Result<(), OutOfMemory> {
        self.slots.reserve(slots)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Extra> {
        if self.is_empty() { None } else { self.slots.get(slot)?.first() }
    }

    /// Returns the extra of a slot to be changed; `None` if it has none.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Extra> {
        if self.is_empty() { None } else { self.slots.get_mut(slot)?.first_mut() }
    }

    /// Returns the extra of a slot, an empty one if it had none.
    pub(super) fn get_or_insert(&mut self, slot: u32) -> Result<&mut Extra, OutOfMemory> {
        self.slots.reserve(slot + 1)?;
        let own = self.slots.get_mut(slot).ok_or(OutOfMemory)?;
        if own.is_empty() {
            push(own, Extra::default())?;
            self.len += 1;
        }
        own.first_mut().ok_or(OutOfMemory)
    }

    /// Gives a slot this list instead of its own. There must be room for it.
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
