//! An object without a platform: its row is in memory.

use crate::Operation;
use crate::cloudflare::object::account::{Account, Request};
use crate::cloudflare::object::codec;
use crate::cloudflare::object::row::{LoadError, Storage};
use crate::cloudflare::object::states::States;
use crate::cloudflare::protocol::wire::Reply;
use crate::cloudflare::thrown::ThrownError;

/// The account of one key as the Durable Object has it, for tests that copy and lose it.
#[derive(Clone, Debug)]
pub struct ObjectInMemory(Account<RowInMemory>);

impl ObjectInMemory {
    /// Returns an object that has this row, and nothing in memory, as after a crash or an eviction.
    pub fn new(row: Option<Vec<u8>>) -> Self {
        Self(Account::stored_in(RowInMemory { row, drawn: 0 }, String::new()))
    }

    /// Returns the row.
    pub fn row(&self) -> Option<&Vec<u8>> {
        self.0.row.row.as_ref()
    }

    /// Applies one operation under policies in JSON.
    pub fn apply(
        &mut self,
        operation: Operation<'_>,
        policies: &str,
        credit: bool,
        now: u64,
    ) -> Result<Reply, ThrownError> {
        self.0.apply(Request { operation, policies, credit }, now)
    }

    /// Handles the alarm.
    pub fn expire(&mut self, now: u64) -> Result<(), ThrownError> {
        if self.0.expire(now)?.empty {
            self.0.row.row = None;
        }
        Ok(())
    }
}

/// A row in memory, whose object draws numbers in turn.
#[derive(Clone, Debug)]
struct RowInMemory {
    row: Option<Vec<u8>>,
    drawn: u128,
}

impl Storage for RowInMemory {
    fn load(&mut self) -> Result<States, LoadError> {
        let states = |bytes: &Vec<u8>| codec::decode(bytes).map(|stored| stored.states);
        self.row.as_ref().map_or(Ok(States::default()), states).map_err(LoadError::Unreadable)
    }

    fn keep_for(&mut self, _: u64) {}

    fn save(&mut self, states: &States, _: u64) -> Result<(), ThrownError> {
        self.row = if states.0.is_empty() { None } else { Some(codec::encode(1, states)) };
        Ok(())
    }

    fn renew_alarm(&mut self, _: &States, _: u64) -> Result<(), ThrownError> {
        Ok(())
    }

    fn clear_alarm(&mut self) {}

    fn wake_at(&mut self, _: u64) -> Result<(), ThrownError> {
        Ok(())
    }

    fn is_due(&self, _: u64) -> bool {
        true
    }

    fn clear(&mut self) {}

    fn quarantine(&mut self, _: u64) -> Result<Vec<u8>, ThrownError> {
        Ok(self.row.take().unwrap_or_default())
    }

    fn warn(&self, _: &str) {}

    fn random(&mut self) -> Result<u128, ThrownError> {
        self.drawn += 1;
        Ok(self.drawn)
    }
}
