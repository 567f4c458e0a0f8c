//! The only source of time. The core never reads the platform's clock.

use alloc::rc::Rc;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// A source of time, in whole milliseconds since the epoch. A limiter reads it once per operation.
///
/// Any `Fn() -> u64` is a clock, and so is a reference to one.
///
/// ```
/// use tollgate::Clock;
///
/// let noon = || 43_200_000;
/// assert_eq!(noon.now(), 43_200_000);
/// ```
pub trait Clock {
    /// Returns the current time.
    fn now(&self) -> u64;
}

impl<F: Fn() -> u64> Clock for F {
    fn now(&self) -> u64 {
        self()
    }
}

impl Clock for Rc<ManualClock> {
    fn now(&self) -> u64 {
        self.as_ref().now()
    }
}

impl Clock for Arc<ManualClock> {
    fn now(&self) -> u64 {
        self.as_ref().now()
    }
}

impl Clock for &ManualClock {
    fn now(&self) -> u64 {
        (*self).now()
    }
}

/// A clock that moves only when it is set or advanced, for tests.
///
/// ```
/// use tollgate::{Clock, ManualClock};
///
/// let clock = ManualClock::new(1_000);
/// clock.advance(500);
/// assert_eq!(clock.now(), 1_500);
/// clock.set(0);
/// assert_eq!(clock.now(), 0);
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Returns a clock that stands at `now`.
    ///
    /// ```
    /// assert_eq!(tollgate::Clock::now(&tollgate::ManualClock::new(1_000)), 1_000);
    /// ```
    pub fn new(now: u64) -> Self {
        Self(AtomicU64::new(now))
    }

    /// Moves the clock to `now`, forwards or back.
    ///
    /// ```
    /// # use tollgate::{Clock, ManualClock};
    /// let clock = ManualClock::new(1_000);
    /// clock.set(500);
    /// assert_eq!(clock.now(), 500);
    /// ```
    pub fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// Moves the clock forwards.
    ///
    /// ```
    /// # use tollgate::{Clock, ManualClock};
    /// let clock = ManualClock::new(1_000);
    /// clock.advance(500);
    /// assert_eq!(clock.now(), 1_500);
    /// ```
    pub fn advance(&self, milliseconds: u64) {
        self.0.fetch_add(milliseconds, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The operating system's clock.
///
/// ```
/// use tollgate::{Clock, SystemClock};
/// assert!(SystemClock.now() > 1_700_000_000_000);
/// ```
#[cfg(feature = "system-clock")]
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[cfg(feature = "system-clock")]
impl Clock for SystemClock {
    fn now(&self) -> u64 {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
