//! The earlier states of slots whose policies changed their scale.

use crate::earlier::Earlier;
use crate::memory::OutOfMemory;
use crate::store::chunked::Chunked;
use alloc::vec::Vec;

/// Earlier states by slot. It takes no memory until a slot has some.
#[derive(Debug)]
pub(super) struct EarlierBySlot {
    states: Chunked<Option<Vec<Earlier>>>,
    /// The number of slots that have some.
    len: u32,
}

impl EarlierBySlot {
    pub(super) fn new() -> Self {
        Self { states: Chunked::new(), len: 0 }
    }

    /// Whether no slot has any, as almost always.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for the states of all slots below `slots`.
    pub(super) fn reserve(&mut self, slots: u32) -> Result<(), OutOfMemory> {
        self.states.reserve(slots)
    }

    pub(super) fn get(&self, slot: u32) -> &[Earlier] {
        self.states.get(slot).and_then(Option::as_deref).unwrap_or_default()
    }

    /// Returns the states of a slot to be changed; `None` if it has none.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Vec<Earlier>> {
        if self.is_empty() { None } else { self.states.get_mut(slot)?.as_mut() }
    }

    /// Gives a slot these states instead of those it has. There must be room for them.
    pub(super) fn replace(&mut self, slot: u32, states: Vec<Earlier>) {
        let Some(own) = self.states.get_mut(slot) else { return };
        self.len -= u32::from(own.is_some());
        *own = Some(states).filter(|states| !states.is_empty());
        self.len += u32::from(own.is_some());
    }

    /// Drops the states of a slot.
    pub(super) fn remove(&mut self, slot: u32) {
        self.replace(slot, Vec::new());
    }
}
