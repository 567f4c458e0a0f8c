//! The policies that a value names: those of entries that name none, and others by number.
//!
//! The script gives a number to policies that the value does not name yet, in the order of the entries, and refers to it
//! later. Both happen where the entry is appended, so a number is never that of another value. A base keeps the policies and
//! their numbers, since entries between its mark and its place may refer to them. Only a new beginning, whose mark nobody
//! knows, drops and renumbers them: whoever has another table reads the whole value again.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ReplayError;
use super::entry::Named;
use super::policy_set::PolicySet;
use super::policy_sets::PolicySets;
use super::text::Cursor;
use crate::growth::{OutOfMemory, push};

/// How long after its last use a new beginning keeps a set, in milliseconds.
const KEPT_FOR: u64 = 60_000;

/// Policies, and the time of the last entry that used them, as far as is known.
#[derive(Clone, Debug)]
struct Used {
    set: Arc<PolicySet>,
    at: u64,
}

impl Used {
    fn is_recent(&self, now: u64) -> bool {
        self.at + KEPT_FOR > now
    }
}

/// The policies that a value names.
#[derive(Clone, Debug)]
pub(super) struct ValueSets {
    /// The policies of entries that name none.
    default: Used,
    /// The others. That with the number 1 is the first.
    numbered: Vec<Used>,
}

impl ValueSets {
    pub(super) fn new(default: &Arc<PolicySet>, now: u64) -> Self {
        Self { default: Used { set: Arc::clone(default), at: now }, numbered: Vec::new() }
    }

    /// Returns the policies of entries that name none.
    pub(super) fn default(&self) -> &Arc<PolicySet> {
        &self.default.set
    }

    /// Returns all policies that the value names.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<PolicySet>> {
        [&self.default].into_iter().chain(&self.numbered).map(|used| &used.set)
    }

    /// Returns the policies of an entry at a time, and adds them if they are new.
    pub(super) fn of_entry(
        &mut self,
        named: Option<Named<'_>>,
        sets: &mut PolicySets,
        now: u64,
    ) -> Result<Arc<PolicySet>, ReplayError> {
        let Some(named) = named else {
            self.default.at = now;
            return Ok(Arc::clone(&self.default.set));
        };
        self.named(named, sets, now)
    }

    /// Returns policies by their name, and adds them if they are new.
    pub(super) fn named(
        &mut self,
        named: Named<'_>,
        sets: &mut PolicySets,
        now: u64,
    ) -> Result<Arc<PolicySet>, ReplayError> {
        let number = match named {
            Named::Text(text) => return sets.get(text),
            Named::Number(number) => number,
            Named::New { text, number } => {
                let set = sets.get(text)?;
                push(&mut self.numbered, Used { set, at: now })?;
                if number != self.numbered.len() as u64 {
                    return Err(ReplayError::Malformed);
                }
                number
            }
        };
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let used = index.and_then(|index| self.numbered.get_mut(index)).ok_or(ReplayError::Malformed)?;
        used.at = now;
        Ok(Arc::clone(&used.set))
    }

    /// Returns the sets of a new beginning at a time, if at least half of these have not been used recently. `own` is the
    /// caller's set, which will be.
    pub(super) fn renewed(&self, own: &Arc<PolicySet>, now: u64) -> Result<Option<Self>, OutOfMemory> {
        if self.numbered.is_empty() {
            return Ok(None);
        }
        let is_used = |used: &Used| used.is_recent(now) || used.set.text == own.text;
        let recent = self.numbered.iter().filter(|used| is_used(used)).count() + usize::from(is_used(&self.default));
        if 2 * recent > self.numbered.len() + 1 {
            return Ok(None);
        }
        let own = Used { set: Arc::clone(own), at: now };
        let default = if is_used(&self.default) { self.default.clone() } else { own };
        let mut numbered = Vec::new();
        for used in self.numbered.iter().filter(|used| is_used(used) && used.set.text != default.set.text) {
            push(&mut numbered, used.clone())?;
        }
        Ok(Some(Self { default, numbered }))
    }

    /// Appends the numbered policies, those of the states if they are not the default, and those of the last call after `&`
    /// if it had its own.
    pub(super) fn push_to(&self, text: &mut String, states: &PolicySet, call: Option<&PolicySet>) {
        let before = text.len();
        for (index, used) in self.numbered.iter().enumerate() {
            text.push_str(&format!("{{{}}}{}", used.set.text, index + 1));
        }
        if self.default.set.text != states.text {
            // States that were joined with others may be under policies that the value does not name.
            match self.number_of(states) {
                Some(number) => text.push_str(&format!("${number}")),
                None => text.push_str(&format!("@{}", states.text)),
            }
        }
        // A new beginning may have dropped them.
        if let Some(number) = call.and_then(|call| self.number_of(call)) {
            text.push_str(&format!("&${number}"));
        }
        if text.len() > before {
            text.push(';');
        }
    }

    /// Returns the number of policies; `None` if they have none.
    fn number_of(&self, set: &PolicySet) -> Option<usize> {
        self.numbered.iter().position(|used| used.set.text == set.text).map(|index| index + 1)
    }

    /// Reads what [`push_to`](Self::push_to) appended for a base of time `stamp`, and returns the policies of the states and
    /// those of the last call.
    pub(super) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        sets: &mut PolicySets,
        stamp: u64,
    ) -> Result<(Arc<PolicySet>, Option<Arc<PolicySet>>), ReplayError> {
        let (mut states, mut call) = (None, None);
        let mut is_any = false;
        while let Some(named) = Named::read(cursor)? {
            is_any = true;
            let set = self.named(named, sets, stamp)?;
            if !matches!(named, Named::New { .. }) {
                states = Some(set);
                break;
            }
        }
        if cursor.take(b'&') {
            is_any = true;
            let named = Named::read(cursor)?.ok_or(ReplayError::Malformed)?;
            call = Some(self.named(named, sets, stamp)?);
        }
        if is_any {
            cursor.expect(b';')?;
        }
        Ok((states.unwrap_or_else(|| Arc::clone(&self.default.set)), call))
    }
}
