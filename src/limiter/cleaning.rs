//! What becomes of expired keys: they are forgotten, and whoever asked is told.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::Hash;

use super::Limiter;
use crate::number::check_time;
use crate::store::slots::Expired;
use crate::{Clock, Error, Policies};

pub(super) type BeforeClean<K> = Box<dyn FnMut(&Policies, &[(u32, K)], &[Expired]) + Send>;

/// An expired state, as [`Limiter::before_clean`] is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned<K> {
    /// The key.
    pub key: K,
    /// The name of the policy.
    pub policy: String,
    /// What the state held when it was last touched.
    pub value: u64,
    /// When it expired, in milliseconds since the epoch.
    pub expired_at: u64,
}

impl<K: Hash + Eq, C: Clock> Limiter<K, C> {
    /// Calls `tell` with what has expired, algorithm by algorithm, each time some keys are cleaned away.
    /// They are gone by then, so nothing that `tell` does can keep them.
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
    pub fn before_clean(mut self, mut tell: impl FnMut(&'static str, &[Cleaned<K>]) + Send + 'static) -> Self
    where
        K: Clone,
    {
        self.before_clean = Some(Box::new(move |policies, keys, expired| {
            for (position, (policy, name)) in policies.iter().zip(policies.names()).enumerate() {
                let entries = cleaned(position, name, keys, expired);
                if !entries.is_empty() {
                    tell(policy.algorithm(), &entries);
                }
            }
        }));
        self.slots.reports = true;
        self
    }

    /// Removes every expired key now, and answers how many there were. The only operation that looks at all keys.
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
        let removed = self.slots.clean(check_time(self.clock.now())?);
        self.forget();
        Ok(removed)
    }

    #[cold]
    pub(super) fn forget(&mut self) {
        let Some(tell) = &mut self.before_clean else {
            for slot in self.slots.freed.drain(..) {
                self.index.remove(slot);
            }
            return;
        };
        let mut keys = Vec::with_capacity(self.slots.freed.len());
        for slot in self.slots.freed.drain(..) {
            if let Some(key) = self.index.remove(slot) {
                keys.push((slot, key));
            }
        }
        let expired = core::mem::take(&mut self.slots.expired);
        tell(&self.policies, &keys, &expired);
    }
}

/// The expired states of one policy, with the keys of their slots.
fn cleaned<K: Clone>(position: usize, name: &str, keys: &[(u32, K)], expired: &[Expired]) -> Vec<Cleaned<K>> {
    // Both lists are in the order in which slots were freed; evicted ones are only among the keys.
    let mut keys = keys.iter();
    let of_policy = expired.iter().filter(|state| state.policy == position);
    let cleaned = of_policy.filter_map(|state| {
        let (_, key) = keys.find(|(slot, _)| *slot == state.slot)?;
        Some(Cleaned { key: key.clone(), policy: name.into(), value: state.value, expired_at: state.expired_at })
    });
    cleaned.collect()
}
