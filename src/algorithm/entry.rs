//! Where states lie.

use super::log::Log;

/// All states of one key: a run of words, and the logs of the algorithms that keep one.
pub(crate) enum Entry<'a> {
    /// To be read only.
    Read(&'a [u64], &'a [Log]),
    /// To be changed too.
    Write(&'a mut [u64], &'a mut [Log]),
}

/// Where one policy's state begins within an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) word: usize,
    pub(crate) log: usize,
}

impl Entry<'_> {
    /// The same states, only to be read.
    pub(crate) fn as_read(&self) -> Entry<'_> {
        match self {
            Self::Read(words, logs) => Entry::Read(words, logs),
            Self::Write(words, logs) => Entry::Read(words, logs),
        }
    }

    /// The same states, from one policy's on.
    pub(crate) fn from(&mut self, place: Place) -> Entry<'_> {
        match self {
            Self::Read(words, logs) => Entry::Read(&words[place.word..], logs.get(place.log..).unwrap_or(&[])),
            Self::Write(words, logs) => {
                Entry::Write(&mut words[place.word..], logs.get_mut(place.log..).unwrap_or(&mut []))
            }
        }
    }
}

/// A state with which an entry begins.
pub(crate) trait EntryState {
    /// The state, and what comes after it.
    fn read<'a>(entry: &'a Entry<'_>) -> &'a Self;
    /// The same, if it may be changed.
    fn write<'a>(entry: &'a mut Entry<'_>) -> Option<&'a mut Self>;
}

impl EntryState for [u64] {
    #[inline(always)]
    fn read<'a>(entry: &'a Entry<'_>) -> &'a Self {
        match entry {
            Entry::Read(words, _) => words,
            Entry::Write(words, _) => words,
        }
    }

    #[inline(always)]
    fn write<'a>(entry: &'a mut Entry<'_>) -> Option<&'a mut Self> {
        match entry {
            Entry::Read(..) => None,
            Entry::Write(words, _) => Some(words),
        }
    }
}

impl EntryState for Log {
    #[inline(always)]
    fn read<'a>(entry: &'a Entry<'_>) -> &'a Self {
        let logs: &[Self] = match entry {
            Entry::Read(_, logs) => logs,
            Entry::Write(_, logs) => logs,
        };
        // A key never used need not have one.
        logs.first().unwrap_or(const { &Self::EMPTY })
    }

    #[inline(always)]
    fn write<'a>(entry: &'a mut Entry<'_>) -> Option<&'a mut Self> {
        match entry {
            Entry::Read(..) => None,
            Entry::Write(_, logs) => logs.first_mut(),
        }
    }
}
