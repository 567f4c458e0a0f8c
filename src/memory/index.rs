//! A map from keys to slots that grows without a pause: a few keys move to the larger table at a time.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::chunked::Chunked;
use crate::growth::OutOfMemory;

/// How many slots one insertion moves from the old table to the new.
const MOVED: u32 = 8;

/// The slot of each key. Keys are stored once, by slot; the tables store slot numbers.
pub(crate) struct Index<K, S = DefaultHashBuilder> {
    hasher: S,
    keys: Chunked<Option<K>>,
    table: HashTable<u32>,
    /// The smaller table that is being emptied into `table`, and the first slot not yet moved.
    old: HashTable<u32>,
    moved: u32,
    /// Slots from here on never had a key.
    end: u32,
}

impl<K: Hash + Eq> Index<K> {
    pub(crate) fn new() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            keys: Chunked::new(),
            table: HashTable::new(),
            old: HashTable::new(),
            moved: 0,
            end: 0,
        }
    }

    /// Returns the slot of a key; `None` if it has none.
    #[inline]
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        let hash = self.hasher.hash_one(key);
        let same = |slot: &u32| self.key(*slot).is_some_and(|stored| stored.borrow() == key);
        let found = self.table.find(hash, same);
        if found.is_none() && !self.old.is_empty() {
            return self.old.find(hash, same).copied();
        }
        found.copied()
    }

    /// Returns the key of a slot; `None` if the slot is free.
    #[inline]
    pub(crate) fn key(&self, slot: u32) -> Option<&K> {
        self.keys.get(slot)?.as_ref()
    }

    /// Makes room for one more key, in a slot below `slots`. Also moves some keys to a larger table, if one was
    /// started.
    pub(crate) fn reserve(&mut self, slots: u32) -> Result<(), OutOfMemory> {
        self.keys.reserve(slots)?;
        if self.table.len() == self.table.capacity() {
            self.start_larger_table()?;
        }
        self.move_some();
        Ok(())
    }

    /// Makes room for `keys` more keys, in slots below `slots`. All keys move to one table.
    pub(crate) fn reserve_many(&mut self, keys: usize, slots: u32) -> Result<(), OutOfMemory> {
        self.keys.reserve(slots)?;
        let Self { table, keys: by_slot, hasher, .. } = self;
        table.try_reserve(keys + self.old.len(), |&slot| hash_of(by_slot, hasher, slot))?;
        while !self.old.is_empty() {
            self.move_some();
        }
        Ok(())
    }

    /// Gives a slot to a key that has none. There must be room for it.
    pub(crate) fn insert(&mut self, key: K, slot: u32) {
        let hash = self.hasher.hash_one(&key);
        if let Some(stored) = self.keys.get_mut(slot) {
            *stored = Some(key);
        }
        self.end = self.end.max(slot + 1);
        self.put(hash, slot);
    }

    /// Removes and returns the key of a slot.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<K> {
        let key = self.keys.get_mut(slot)?.take()?;
        let hash = self.hasher.hash_one(&key);
        for table in [&mut self.table, &mut self.old] {
            if let Ok(entry) = table.find_entry(hash, |&other| other == slot) {
                entry.remove();
                break;
            }
        }
        Some(key)
    }

    /// Starts a larger table; the keys move to it a few at a time.
    #[cold]
    fn start_larger_table(&mut self) -> Result<(), OutOfMemory> {
        debug_assert!(self.old.is_empty(), "the last growth has ended");
        let len = self.table.len();
        // Room for the insertions that it takes to move everything, so that the next growth finds `old` empty.
        let room = (self.end / MOVED) as usize + 16;
        let mut larger = HashTable::new();
        if larger.try_reserve((2 * len).max(len + room), |_| 0).is_err() {
            return self.rebuild_table();
        }
        self.old = core::mem::replace(&mut self.table, larger);
        self.moved = 0;
        Ok(())
    }

    /// Reclaims the room of removed keys without allocating. It takes a while, so it is only done if enough is
    /// reclaimed.
    fn rebuild_table(&mut self) -> Result<(), OutOfMemory> {
        let most = self.table.num_buckets() / 8 * 7;
        if self.table.len() + most / 32 >= most {
            return Err(OutOfMemory);
        }
        self.table.clear();
        for slot in 0..self.end {
            if let Some(hash) = self.key(slot).map(|key| self.hasher.hash_one(key)) {
                self.put(hash, slot);
            }
        }
        Ok(())
    }

    fn move_some(&mut self) {
        let until = self.end.min(self.moved.saturating_add(MOVED));
        while self.moved < until && !self.old.is_empty() {
            let slot = self.moved;
            self.moved += 1;
            if let Some(hash) = self.key(slot).map(|key| self.hasher.hash_one(key))
                && let Ok(entry) = self.old.find_entry(hash, |&other| other == slot)
            {
                entry.remove();
                self.put(hash, slot);
            }
        }
        if self.old.is_empty() && self.old.capacity() > 0 {
            self.old = HashTable::new();
        }
    }

    fn put(&mut self, hash: u64, slot: u32) {
        let Self { table, keys, hasher, .. } = self;
        // Never rehashes: `reserve` made room before.
        table.insert_unique(hash, slot, |&slot| hash_of(keys, hasher, slot));
    }
}

/// Returns the hash of the key of a slot.
fn hash_of<K: Hash>(keys: &Chunked<Option<K>>, hasher: &impl BuildHasher, slot: u32) -> u64 {
    keys.get(slot).and_then(Option::as_ref).map_or(0, |key| hasher.hash_one(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    #[cfg_attr(miri, ignore = "has too many keys for Miri, which is a thousand times slower")]
    fn every_key_is_found_while_the_table_grows() {
        let mut index = Index::new();
        let mut model = HashMap::new();
        let mut random = 1_u64;
        // Miri is some thousand times slower.
        let rounds = if cfg!(miri) { 600 } else { 60_000_u32 };
        for round in 0..rounds {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let slot = (random >> 33) as u32 % (rounds / 3);
            // Mostly filled for a while, then mostly emptied, so that few keys are left in many slots.
            if model.contains_key(&slot) && (round / (rounds / 4) % 2 == 1 || random >> 60 == 0) {
                assert_eq!(index.remove(slot), model.remove(&slot));
            } else {
                model.entry(slot).or_insert_with(|| {
                    index.reserve(slot + 1).unwrap();
                    index.insert(format!("{slot}:{round}"), slot);
                    format!("{slot}:{round}")
                });
            }
            if round % (rounds / 60) == 0 {
                for (slot, key) in &model {
                    assert_eq!(index.get(key.as_str()), Some(*slot));
                }
            }
        }
        assert_eq!(index.get("no such key"), None);
        assert_eq!(index.table.len() + index.old.len(), model.len());
    }
}
