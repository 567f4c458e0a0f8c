//! Tests of an account with credit.

use super::START;
use super::disk::Disk;
use super::random::Random;
use crate::cloudflare::object::account::{Account, Request};
use crate::cloudflare::object::credit::WAKE;
use crate::cloudflare::protocol::wire::{Reply, json_of};
use crate::cloudflare::thrown::ThrownError;
use crate::{Lease, Operation, Policies, Policy, Renewal, ReservationId};

/// An account with credit, and the policies of its operations.
struct AccountWithCredit {
    account: Account<Disk>,
    policies: String,
}

impl AccountWithCredit {
    /// Returns an account that has credit at [`START`].
    fn new(policy: Policy) -> Self {
        let policies = json_of(&Policies::from(policy)).unwrap().get().to_string();
        let disk = Disk::new(None, Random(7), 0);
        let mut own = Self { account: Account::stored_in(disk, String::new()), policies };
        while own.account.row.writes < 8 {
            own.hit(START);
        }
        own
    }

    fn apply(&mut self, operation: Operation<'_>, now: u64) -> Reply {
        let request = Request { operation, policies: &self.policies, credit: true };
        self.account.apply(request, now).unwrap()
    }

    fn hit(&mut self, now: u64) {
        assert!(
            matches!(self.apply(Operation::Hit { cost: 1 }, now), Reply::Decision { decision, .. } if decision.allowed)
        );
    }

    fn lease(&mut self, id: Option<ReservationId>, used: u64, size: u64, now: u64) -> Lease {
        let renewal = Renewal { id, used, size, ttl: 1_000, random: 42 };
        match self.apply(Operation::Lease { cost: 0, renewal }, now) {
            Reply::Leased { lease: Some(lease), .. } => lease,
            other => panic!("{other:?}"),
        }
    }

    fn count(&mut self, now: u64) -> u64 {
        match self.apply(Operation::Get { policy: None }, now) {
            Reply::Number(count) => count,
            other => panic!("{other:?}"),
        }
    }

    fn crash(&mut self) {
        let row = self.account.row.row.take();
        self.account = Account::stored_in(Disk::new(row, Random(8), 0), String::new());
    }

    /// Returns the number of rows that an operation writes.
    fn rows(&mut self, operation: impl FnOnce(&mut Self)) -> u64 {
        let before = self.account.row.writes;
        operation(self);
        self.account.row.writes - before
    }
}

#[test]
fn a_report_is_taken_out_of_the_credit() {
    let mut own = AccountWithCredit::new(Policy::fix_window(10_000, "1h").unwrap());
    let hits = own.count(START);
    let lease = own.lease(None, 0, 600, START);
    // Most of it was spent, and little is left: the row must not have it whole.
    own.lease(Some(lease.id), 590, 1, START);
    own.crash();
    let left = own.lease(Some(lease.id), 5, 1, START).amount;
    assert!(own.count(START) >= hits + 595 + left, "{left}");
}

#[test]
fn a_credit_does_not_cover_what_may_be_used_after_its_end() {
    let second = 1_000;
    let mut own = AccountWithCredit::new(Policy::sliding_counter(100_000, "1h").unwrap());
    assert_eq!(own.rows(|own| own.hit(START + 29 * second)), 0);
    assert_eq!(own.rows(|own| assert!(own.lease(None, 0, 3, START + 29 * second + 500).amount > 0)), 1);
    // Now there is a credit from then on.
    assert_eq!(own.rows(|own| own.hit(START + 59 * second)), 0);
    assert_eq!(own.rows(|own| own.hit(START + 60 * second)), 1);
}

#[test]
fn a_clock_that_steps_back_ends_a_credit() {
    let mut own = AccountWithCredit::new(Policy::fix_window(10_000, "1h").unwrap());
    assert_eq!(own.rows(|own| own.hit(START + 5)), 0);
    assert_eq!(own.rows(|own| own.hit(START + 4)), 1);
}

#[test]
fn a_credit_that_was_not_saved_covers_nothing() {
    let mut own = AccountWithCredit::new(Policy::fix_window(10_000, "1h").unwrap());
    own.account.row.failing = 1;
    let operation = Operation::Inc { policy: None, cost: 1 };
    let request = Request { operation, policies: &own.policies, credit: true };
    assert!(matches!(own.account.apply(request, START), Err(ThrownError::Platform(_))));
    own.account.row.failing = 0;
    assert_eq!(own.rows(|own| own.hit(START)), 1);
}

#[test]
fn a_credit_that_was_written_back_covers_nothing() {
    let mut own = AccountWithCredit::new(Policy::fix_window(10_000, "1h").unwrap());
    assert_eq!(own.rows(|own| (0..20).for_each(|_| own.hit(START))), 0);
    // The alarm was set once, and finds the key in use, and then quiet.
    assert_eq!((own.account.row.alarms, own.account.row.alarm.take()), (1, Some(START + WAKE)));
    own.hit(START + WAKE - 1);
    assert_eq!(own.rows(|own| assert!(!own.account.expire(START + WAKE).unwrap().empty)), 0);
    assert_eq!(own.account.row.alarm.take(), Some(START + 2 * WAKE));
    assert_eq!(own.rows(|own| assert!(!own.account.expire(START + 2 * WAKE).unwrap().empty)), 1);
    assert_eq!(own.account.row.alarm, None);
    let count = own.count(START + 2 * WAKE);
    own.crash();
    assert_eq!(own.count(START + 60_000), count);
    assert_eq!(own.rows(|own| own.hit(START + 60_000)), 1);
}
