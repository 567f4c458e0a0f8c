//! A table of values by checked handles: a stale or invalid handle has no value.

use alloc::vec::Vec;

/// A handle of a value in a table. The generation distinguishes the values that were at one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The position in the table.
    pub index: u32,
    /// How many values were removed from that position before.
    pub generation: u32,
}

/// Values by handle.
#[derive(Debug)]
pub struct Handles<T> {
    entries: Vec<Entry<T>>,
    /// Positions that are free.
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Handles<T> {
    /// Returns an empty table.
    pub const fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    /// Adds a value; `None` if there is no memory for it.
    pub fn insert(&mut self, value: T) -> Option<Handle> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.entries.try_reserve(1).ok()?;
                // Room for every position, so that removing never needs memory.
                let all = self.entries.len() + 1 - self.free.len();
                self.free.try_reserve(all).ok()?;
                self.entries.push(Entry { generation: 0, value: None });
                (self.entries.len() - 1) as u32
            }
        };
        let entry = self.entries.get_mut(index as usize)?;
        entry.value = Some(value);
        Some(Handle { index, generation: entry.generation })
    }

    /// Returns the value of a handle; `None` if the handle is stale or invalid.
    #[inline(always)]
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        match self.entries.get_mut(handle.index as usize) {
            Some(Entry { generation, value }) if *generation == handle.generation => value.as_mut(),
            _ => None,
        }
    }

    /// Removes and returns the value of a handle; `None` if the handle is stale or invalid.
    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        let entry = self.entries.get_mut(handle.index as usize)?;
        if entry.generation != handle.generation {
            return None;
        }
        let value = entry.value.take()?;
        // A position whose generations are used up stays empty, so that no old handle ever fits again.
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            self.free.push(handle.index);
        }
        Some(value)
    }
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_finds_its_value_until_it_is_removed() {
        let mut table = Handles::new();
        let (first, second) = (table.insert("first").unwrap(), table.insert("second").unwrap());
        assert_eq!(table.get_mut(first), Some(&mut "first"));
        assert_eq!(table.remove(first), Some("first"));
        assert_eq!(table.get_mut(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get_mut(second), Some(&mut "second"));
    }

    #[test]
    fn a_stale_handle_does_not_find_the_value_that_took_its_place() {
        let mut table = Handles::new();
        let stale = table.insert(1).unwrap();
        table.remove(stale);
        let fresh = table.insert(2).unwrap();
        assert_eq!(stale.index, fresh.index);
        assert_eq!(table.get_mut(stale), None);
        assert_eq!(table.remove(stale), None);
        assert_eq!(table.get_mut(fresh), Some(&mut 2));
    }

    #[test]
    fn a_handle_that_was_never_given_finds_nothing() {
        let mut table = Handles::new();
        let handle = table.insert(1).unwrap();
        for (index, generation) in [(handle.index, 1), (1, 0), (u32::MAX, 0), (0, u32::MAX)] {
            assert_eq!(table.get_mut(Handle { index, generation }), None);
            assert_eq!(table.remove(Handle { index, generation }), None);
        }
    }

    #[test]
    fn a_position_whose_generations_are_used_up_is_not_taken_again() {
        let mut table = Handles::new();
        let handle = table.insert(1).unwrap();
        table.entries[0].generation = u32::MAX;
        let last = Handle { generation: u32::MAX, ..handle };
        assert_eq!(table.remove(last), Some(1));
        assert_eq!(table.insert(2).unwrap().index, 1);
        assert_eq!(table.get_mut(last), None);
    }

    #[test]
    fn random_operations_agree_with_a_list_of_all_handles() {
        let mut table = Handles::new();
        let mut known: Vec<(Handle, u64, bool)> = Vec::new();
        let mut random = 1_u64;
        for round in 0..if cfg!(miri) { 200 } else { 5_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if random >> 62 < 2 || known.is_empty() {
                known.push((table.insert(round).unwrap(), round, true));
            } else {
                let at = (random >> 33) as usize % known.len();
                let (handle, value, live) = &mut known[at];
                assert_eq!(table.remove(*handle), live.then_some(*value));
                *live = false;
            }
            for (handle, value, live) in known.iter().rev().take(20) {
                assert_eq!(table.get_mut(*handle).copied(), live.then_some(*value));
            }
        }
    }
}
