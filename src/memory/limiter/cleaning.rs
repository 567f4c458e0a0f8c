//! Removal of expired keys, and the report of them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::Hash;

use super::Limiter;
use crate::memory::slots::{Expired, FREED_AT_MOST};
use crate::number::check_time;
use crate::{Clock, Error, Policies};

/// The most keys that are removed before they are reported. Bounds the memory of a cleaning.
const REPORTED_AT_ONCE: u32 = 64;
const _: () = assert!(REPORTED_AT_ONCE as usize >= FREED_AT_MOST);

/// The caller's function, and buffers for its arguments.
pub(super) struct BeforeClean<K> {
    /// Has room for all keys that are removed at once.
    removed: Vec<(u32, K)>,
    /// Has room for one policy's states of these keys.
    cleaned: Vec<Cleaned<K>>,
    report: Report<K>,
}

type Report<K> = Box<dyn FnMut(&Policies, &[(u32, K)], &[Expired], &mut Vec<Cleaned<K>>) + Send>;

/// An expired state, as [`Limiter::before_clean`] reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned<K> {
    /// The key.
    pub key: K,
    /// The name of the policy.
    pub policy: Arc<str>,
    /// The count when the state was last changed.
    pub value: u64,
    /// When it expired, in milliseconds since the epoch.
    pub expired_at: u64,
}

impl<K: Hash + Eq, C: Clock> Limiter<K, C> {
    /// Calls `report` with the expired states, policy by policy, each time some keys are removed: at most 64 keys a
    /// call. The keys are removed before the call, so `report` cannot keep them.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use tollgate::{Limiter, ManualClock, Policy};
    ///
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let log = Arc::clone(&seen);
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(9, "1s")?, &clock)?
    ///     .before_clean(move |algorithm, entries| log.lock().unwrap().push((algorithm, entries.to_vec())));
    ///
    /// limiter.hit("login:42", 3)?;
    /// clock.advance(5_000);
    /// assert_eq!(limiter.clean()?, 1);
    ///
    /// let seen = seen.lock().unwrap();
    /// let (algorithm, entries) = &seen[0];
    /// assert_eq!((*algorithm, entries[0].key.as_str()), ("fix_window", "login:42"));
    /// assert_eq!((entries[0].value, entries[0].expired_at), (3, 1_000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn before_clean(mut self, mut report: impl FnMut(&'static str, &[Cleaned<K>]) + Send + 'static) -> Self
    where
        K: Clone,
    {
        let names: Vec<Arc<str>> = self.policies.names().map(Arc::from).collect();
        let by_policy: Report<K> = Box::new(move |policies, keys, expired, cleaned| {
            for (position, (policy, name)) in policies.iter().zip(&names).enumerate() {
                cleaned.clear();
                cleaned.extend(of_policy(position, name, keys, expired));
                if !cleaned.is_empty() {
                    report(policy.algorithm(), cleaned);
                }
            }
            cleaned.clear();
        });
        let room = REPORTED_AT_ONCE as usize;
        let (removed, cleaned) = (Vec::with_capacity(room), Vec::with_capacity(room));
        self.before_clean = Some(BeforeClean { removed, cleaned, report: by_policy });
        self.slots.reports = true;
        self
    }

    /// Removes every expired key now, and returns how many there were. It is the only operation that examines all keys.
    ///
    /// # Errors
    ///
    /// `out_of_memory` if expired keys cannot be reported; those before them are already removed.
    ///
    /// ```
    /// # use tollgate::{Limiter, ManualClock, Policy};
    /// # fn main() -> Result<(), tollgate::Error> {
    /// let clock = ManualClock::new(0);
    /// let mut limiter = Limiter::<String, _>::new(Policy::fix_window(2, "1s")?, &clock)?;
    /// limiter.hit("user:42", 1)?;
    /// clock.advance(1_000);
    /// assert_eq!((limiter.clean()?, limiter.len()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn clean(&mut self) -> Result<u32, Error> {
        let now = check_time(self.clock.now())?;
        let before = self.slots.len();
        let mut from = Some(0);
        while let Some(slot) = from {
            let cleaned = self.slots.clean(slot, REPORTED_AT_ONCE, now);
            self.forget();
            from = cleaned?;
        }
        Ok(before - self.slots.len())
    }

    /// Removes the keys of freed slots, and reports the expired ones. Does not allocate.
    #[cold]
    pub(super) fn forget(&mut self) {
        self.remove_freed();
        self.report_removed();
    }

    /// Removes the keys of freed slots.
    #[cold]
    pub(super) fn remove_freed(&mut self) {
        let Some(BeforeClean { removed, .. }) = &mut self.before_clean else {
            for slot in self.slots.freed.drain(..) {
                self.index.remove(slot);
            }
            return;
        };
        removed.clear();
        for slot in self.slots.freed.drain(..) {
            removed.extend(self.index.remove(slot).map(|key| (slot, key)));
        }
    }

    /// Reports the expired states of the keys that were removed.
    #[cold]
    pub(super) fn report_removed(&mut self) {
        let Some(BeforeClean { removed, cleaned, report }) = &mut self.before_clean else { return };
        // Taken out, so that a report that panics is not repeated.
        let mut expired = core::mem::take(&mut self.slots.expired);
        report(&self.policies, removed, &expired, cleaned);
        removed.clear();
        expired.clear();
        self.slots.expired = expired;
    }
}

/// Returns the expired states of one policy, with the keys of their slots.
fn of_policy<K: Clone>(
    position: usize,
    name: &Arc<str>,
    keys: &[(u32, K)],
    expired: &[Expired],
) -> impl Iterator<Item = Cleaned<K>> {
    // Both lists are in the order in which slots were freed; evicted ones are only among the keys.
    let mut keys = keys.iter();
    let of_policy = expired.iter().filter(move |state| state.policy == position);
    of_policy.filter_map(move |state| {
        let (_, key) = keys.find(|(slot, _)| *slot == state.slot)?;
        let Expired { value, expired_at, .. } = *state;
        Some(Cleaned { key: key.clone(), policy: Arc::clone(name), value, expired_at })
    })
}
