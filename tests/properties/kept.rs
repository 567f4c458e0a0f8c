//! Keeps a key between operations: as a record, or in a limiter that is cleaned and restored.

use tollgate::{Answer, Limiter, ManualClock, Operation, Policies, Record, Snapshot, step};

/// Loads and stores the record at each operation.
pub(crate) struct Stepping(pub(crate) Policies, pub(crate) Option<Record>);

impl Stepping {
    pub(crate) fn step(&mut self, operation: Operation<'_>, now: u64) -> Answer {
        let done = step(&self.0, self.1.as_ref(), operation, now).unwrap();
        if done.changed {
            let json = serde_json::to_string(&done.record).unwrap();
            self.1 = serde_json::from_str(&json).unwrap();
        }
        done.answer
    }
}

/// A limiter that is cleaned or restored before each operation, as the bits of `sweeps` say.
pub(crate) struct InMemory<'a> {
    policies: Policies,
    pub(crate) limiter: Limiter<u8, &'a ManualClock>,
    pub(crate) clock: &'a ManualClock,
    sweeps: u64,
    count: u32,
}

impl<'a> InMemory<'a> {
    pub(crate) fn new(policies: Policies, clock: &'a ManualClock, sweeps: u64) -> Self {
        let limiter = Limiter::new(policies.clone(), clock).unwrap();
        Self { policies, limiter, clock, sweeps, count: 0 }
    }

    /// Returns the limiter at the time of the next operation.
    pub(crate) fn next(&mut self, now: u64) -> &mut Limiter<u8, &'a ManualClock> {
        self.clock.set(now);
        self.count += 1;
        match self.sweeps.rotate_right(self.count) % 4 {
            0 => drop(self.limiter.clean()),
            1 => {
                let json = serde_json::to_string(&self.limiter.snapshot().unwrap()).unwrap();
                let snapshot: Snapshot<u8> = serde_json::from_str(&json).unwrap();
                self.limiter = Limiter::new(self.policies.clone(), self.clock).unwrap();
                assert!(self.limiter.restore(&snapshot).unwrap().is_empty());
            }
            _ => {}
        }
        &mut self.limiter
    }
}
