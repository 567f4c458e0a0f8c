//! A limit on the work in progress: only reservations count, and a reservation that ends is released.

use super::{Algorithm, Charge, Push};
use crate::growth::OutOfMemory;

/// The numbers of a `concurrency` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Concurrency {
    pub(crate) limit: u64,
    /// How long a reservation lasts that has no `ttl` of its own.
    pub(crate) ttl: u64,
}

/// The amount of one operation, for its decision only: it is never committed. A decision is that of a reservation which lasts
/// for the policy's ttl.
pub(crate) struct View {
    used: u64,
    now: u64,
}

impl Algorithm for Concurrency {
    type State = [u64];
    type View = View;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        self.ttl
    }

    fn view(&self, _state: &[u64], now: u64) -> View {
        View { used: 0, now }
    }

    fn followed(&self, _view: &View) -> bool {
        false
    }

    fn used(&self, view: &View) -> u64 {
        view.used
    }

    fn charge(&self, view: &mut View, cost: u64, _now: u64) {
        view.used += cost;
    }

    fn refund(&self, _view: &mut View, _cost: u64, _now: u64) {}

    fn undo(&self, _state: &mut [u64], _cost: u64, _charge: Charge, _now: u64) -> u64 {
        0
    }

    fn wipe(&self, _view: &mut View, _count: u64) -> u64 {
        0
    }

    fn commit(&self, _state: &mut [u64], _view: View) {}

    fn fits_at(&self, _state: &[u64], _view: &View, _cost: u64) -> u64 {
        0
    }

    fn more_at(&self, _state: &[u64], view: &View, _used: u64) -> u64 {
        view.now + self.ttl
    }

    fn unused_at(&self, view: &View) -> u64 {
        if view.used == 0 { 0 } else { view.now + self.ttl }
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

    fn import(&self, _state: &mut [u64], numbers: &[i64]) -> Result<bool, OutOfMemory> {
        Ok(numbers.is_empty())
    }
}
