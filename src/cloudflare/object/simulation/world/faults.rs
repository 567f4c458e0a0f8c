//! The faults that happen between events.

use super::World;
use crate::cloudflare::object::account::Account;
use crate::cloudflare::object::simulation::disk::Disk;
use crate::cloudflare::object::simulation::random::Random;

/// How far the object's clock steps back at most, in all.
const MAX_CLOCK_BEHIND: u64 = 3_000;

impl World {
    pub(super) fn inject_faults(&mut self, now: u64) {
        if self.random.once_in(self.faults.crashed_object) {
            self.crash_object();
        }
        self.latest_clock = self.latest_clock.max(now - self.clock_behind);
        if self.random.once_in(self.faults.stepped) {
            let step = self.random.below(300);
            // A clock that steps back by more than a period is not supported: a key need not follow it.
            let is_bounded = now - self.clock_behind + MAX_CLOCK_BEHIND > self.latest_clock + step;
            self.clock_behind += if is_bounded { step } else { 0 };
        }
        if self.random.once_in(self.faults.alarm) {
            self.ring(now);
        }
        if self.random.once_in(self.faults.reserved) {
            self.reserve(now);
        }
        if self.random.once_in(self.faults.changed) {
            self.change(now);
        }
        if self.random.once_in(self.faults.excepted) {
            self.except(now);
        }
        if self.random.once_in(self.faults.crashed_isolate) {
            let isolate = self.random_isolate();
            self.isolates[isolate].crash();
        }
        if self.faults.skewed && self.random.once_in(20_000) {
            let step = self.random.below(20_000) as i64;
            let isolate = self.random_isolate();
            // A step back ends every lease of the isolate; a step forward makes them older.
            let steps_back = self.random.once_in(2);
            self.isolates[isolate].skew += if steps_back { -step - 11_000 } else { step };
        }
    }

    /// Replaces the object by one that has only the row.
    fn crash_object(&mut self) {
        let row = self.account.row.row.take();
        let random = Random(self.random.next());
        self.earlier_writes += self.account.row.writes + self.account.row.alarms;
        self.account = Account::stored_in(Disk::new(row, random, self.faults.failing_storage), String::new());
    }
}
