//! The storage of an object: a row that outlives crashes, and that can fail.

use wasm_bindgen::JsValue;

use super::random::Random;
use crate::cloudflare::object::codec;
use crate::cloudflare::object::row::{LoadError, Storage};
use crate::cloudflare::object::states::States;
use crate::cloudflare::thrown::ThrownError;

/// A row in memory.
pub(super) struct Disk {
    pub(super) row: Option<Vec<u8>>,
    /// The number of writes.
    pub(super) writes: u64,
    /// The early alarm that was set last, until it is taken, and the number of them.
    pub(super) alarm: Option<u64>,
    pub(super) alarms: u64,
    random: Random,
    /// It fails once in so many times, or never if 0.
    pub(super) failing: u64,
}

impl Disk {
    pub(super) fn new(row: Option<Vec<u8>>, random: Random, failing: u64) -> Self {
        Self { row, writes: 0, alarm: None, alarms: 0, random, failing }
    }

    fn fails(&mut self) -> bool {
        self.random.once_in(self.failing)
    }
}

impl Storage for Disk {
    fn load(&mut self) -> Result<States, LoadError> {
        if self.fails() {
            return Err(LoadError::Platform(JsValue::NULL));
        }
        let states = |bytes: &Vec<u8>| codec::decode(bytes).map(|stored| stored.states);
        self.row.as_ref().map_or(Ok(States::default()), states).map_err(LoadError::Unreadable)
    }

    fn keep_for(&mut self, _: u64) {}

    fn save(&mut self, states: &States, _: u64) -> Result<(), ThrownError> {
        let (fails_before_writing, fails_after_writing) = (self.fails(), self.fails());
        if !fails_before_writing {
            self.row = if states.0.is_empty() { None } else { Some(codec::encode(1, states)) };
            self.writes += 1;
        }
        if fails_before_writing || fails_after_writing { Err(ThrownError::Platform(JsValue::NULL)) } else { Ok(()) }
    }

    fn renew_alarm(&mut self, _: &States, _: u64) -> Result<(), ThrownError> {
        Ok(())
    }

    fn clear_alarm(&mut self) {}

    fn wake_at(&mut self, time: u64) -> Result<(), ThrownError> {
        self.alarm = Some(time);
        self.alarms += 1;
        Ok(())
    }

    /// The other alarm is due now and then.
    fn is_due(&self, now: u64) -> bool {
        now % 5 == 1
    }

    fn clear(&mut self) {}

    fn quarantine(&mut self, _: u64) -> Result<Vec<u8>, ThrownError> {
        Ok(self.row.take().unwrap_or_default())
    }

    fn random(&mut self) -> Result<u128, ThrownError> {
        Ok(u128::from(self.random.next()) << 64 | u128::from(self.random.next()))
    }
}
