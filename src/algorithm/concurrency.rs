//! A limit on the work in progress: only reservations count, and a reservation that ends is released.

use super::{Algorithm, Push};
use crate::memory::OutOfMemory;

/// The numbers of a `concurrency` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Concurrency {
    pub(crate) limit: u64,
    /// How long a reservation lasts that has no `ttl` of its own.
    pub(crate) ttl: u64,
}

impl Algorithm for Concurrency {
    type State = [u64];
    /// The amount added by one operation, for its decision only: it is never committed.
    type View = u64;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        self.ttl
    }

    fn view(&self, _state: &[u64], _now: u64) -> u64 {
        0
    }

    fn followed(&self, _view: &u64) -> bool {
        false
    }

    fn used(&self, view: &u64) -> u64 {
        *view
    }

    fn charge(&self, view: &mut u64, cost: u64, _now: u64) {
        *view += cost;
    }

    fn refund(&self, _view: &mut u64, _cost: u64, _now: u64) {}

    fn wipe(&self, _view: &mut u64, _count: u64) -> u64 {
        0
    }

    fn commit(&self, _state: &mut [u64], _view: u64) {}

    fn fits_at(&self, _state: &[u64], _view: &u64, _cost: u64) -> u64 {
        0
    }

    fn unused_at(&self, _view: &u64) -> u64 {
        0
    }

    fn width(&self) -> usize {
        0
    }

    fn latest(&self, _state: &[u64]) -> u64 {
        0
    }

    fn clear(&self, _state: &mut [u64], _now: u64) {}

    fn export(&self, _state: &[u64], _push: Push<'_>) -> Result<(), OutOfMemory> {
        Ok(())
    }

    fn import(&self, _state: &mut [u64], _scale: u64, numbers: &[i64]) -> Result<bool, OutOfMemory> {
        Ok(numbers.is_empty())
    }
}
