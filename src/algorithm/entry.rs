//! One key's states, as algorithms see them.

use super::log::Log;

/// All states of one key: a run of words, and the logs of the algorithms that keep one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) words: &'a [u64],
    pub(crate) logs: &'a [Log],
}

/// The same states, mutable.
#[derive(Debug)]
pub(crate) struct EntryMut<'a> {
    pub(crate) words: &'a mut [u64],
    pub(crate) logs: &'a mut [Log],
}

/// Where one policy's state begins within an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) word: usize,
    pub(crate) log: usize,
}

impl<'a> Entry<'a> {
    /// Returns the states from a place on.
    pub(crate) fn from(self, place: Place) -> Self {
        Self { words: self.words.get(place.word..).unwrap_or(&[]), logs: self.logs.get(place.log..).unwrap_or(&[]) }
    }
}

impl EntryMut<'_> {
    /// Returns the same states for reading.
    pub(crate) fn as_read(&self) -> Entry<'_> {
        Entry { words: self.words, logs: self.logs }
    }

    /// Returns the same states, for a shorter time.
    #[inline(always)]
    pub(crate) fn reborrow(&mut self) -> EntryMut<'_> {
        EntryMut { words: self.words, logs: self.logs }
    }

    /// Returns the states from a place on.
    pub(crate) fn from(&mut self, place: Place) -> EntryMut<'_> {
        EntryMut {
            words: self.words.get_mut(place.word..).unwrap_or(&mut []),
            logs: self.logs.get_mut(place.log..).unwrap_or(&mut []),
        }
    }
}

/// A state at the beginning of an entry.
pub(crate) trait EntryState {
    /// Returns the state of a key never used, for entries without a state.
    fn unused() -> &'static Self;
    /// Returns the state, followed by the rest of the entry.
    fn of<'a>(entry: Entry<'a>) -> &'a Self;
    /// Returns the state for writing; `None` if the entry has none.
    fn of_mut<'a>(entry: EntryMut<'a>) -> Option<&'a mut Self>;
}

impl EntryState for [u64] {
    fn unused() -> &'static Self {
        &[]
    }

    #[inline(always)]
    fn of<'a>(entry: Entry<'a>) -> &'a Self {
        entry.words
    }

    #[inline(always)]
    fn of_mut<'a>(entry: EntryMut<'a>) -> Option<&'a mut Self> {
        Some(entry.words)
    }
}

impl EntryState for Log {
    fn unused() -> &'static Self {
        const { &Self::EMPTY }
    }

    #[inline(always)]
    fn of<'a>(entry: Entry<'a>) -> &'a Self {
        // The entry of a key never used need not have one.
        entry.logs.first().unwrap_or(Self::unused())
    }

    #[inline(always)]
    fn of_mut<'a>(entry: EntryMut<'a>) -> Option<&'a mut Self> {
        entry.logs.first_mut()
    }
}
