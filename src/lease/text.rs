//! Decisions and leases as numbers in one string, which crosses the boundaries of wasm and RPC several times as fast as a
//! list or an object.

use alloc::format;
use alloc::string::{String, ToString};

use super::holder::CERTAIN;
use super::{DEFAULT_LEASE_TTL, Lease, MAX_LEASE_TTL};
use crate::{Decision, MAX, Reason, Violated, verdict};

/// Whether a denial can end early, other than by `set` and `reset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It lasts until its `retry_after`.
    Certain,
    /// Leases are open. They may be given back at any time, but the denial may be repeated for a part of their life.
    UntilLeaseEnds,
    /// Reservations are open, and may be settled for less at any time.
    Uncertain,
}

impl Certainty {
    const ALL: [Self; 3] = [Self::Certain, Self::UntilLeaseEnds, Self::Uncertain];

    /// Returns how long a denial may be repeated without a message to the issuer, in milliseconds.
    pub fn lasts(self) -> u64 {
        match self {
            Self::Certain => CERTAIN,
            Self::UntilLeaseEnds => DEFAULT_LEASE_TTL / 2,
            Self::Uncertain => 0,
        }
    }

    /// Returns the first number of a denial.
    fn number(self) -> u8 {
        match self {
            Self::Certain => verdict::DENIED,
            Self::Uncertain => verdict::UNCERTAIN,
            Self::UntilLeaseEnds => verdict::UNTIL_LEASE_ENDS,
        }
    }
}

/// The `retry_after` of a hit that can never be allowed.
const NEVER: &str = "-1";

/// Returns a decision as nine numbers, in the order that `js/wasm/decision-numbers.ts` parses.
pub fn from_decision(decision: &Decision, certainty: Certainty) -> String {
    let never = || NEVER.to_string();
    format!(
        "{} {} {} {} {} {} {} {} {}",
        match verdict::of(decision) {
            verdict::DENIED => certainty.number(),
            verdict => verdict,
        },
        decision.count,
        decision.limit,
        decision.remaining,
        decision.retry_after.map_or_else(never, |wait| wait.to_string()),
        decision.reset_after,
        decision.policy,
        decision.violated.0,
        decision.more_after,
    )
}

/// Parses a decision that [`from_decision`] wrote; `None` if invalid.
pub fn to_decision(written: &str) -> Option<Decision> {
    let mut numbers = written.split(' ');
    let mut next = || numbers.next()?.parse::<i64>().ok();
    let first = next()?;
    let decision = Decision {
        allowed: first == 1,
        count: next()? as u64,
        limit: next()? as u64,
        remaining: next()? as u64,
        retry_after: u64::try_from(next()?).ok(),
        reset_after: next()? as u64,
        policy: next()? as usize,
        violated: Violated(next()? as u32),
        more_after: next()? as u64,
        reason: u8::try_from(first).ok().and_then(verdict::reason),
    };
    numbers.next().is_none().then_some(decision)
}

/// Returns how long a denial that [`from_decision`] wrote may be repeated, in milliseconds.
pub fn certain_for(written: &str) -> u64 {
    let Some(number) = written.split(' ').next().and_then(|number| number.parse().ok()) else { return 0 };
    match verdict::reason(number) {
        Some(Reason::Banned | Reason::Denied) => CERTAIN,
        // What is reserved may be settled at any time.
        Some(_) => 0,
        None => Certainty::ALL.into_iter().find(|own| own.number() == number).map_or(0, Certainty::lasts),
    }
}

/// Appends a lease, if there is one, to a written decision as the tenth field.
pub fn with_lease(decision: String, lease: Option<&Lease>) -> String {
    match lease {
        Some(lease) => format!("{decision} {}", from_lease(lease)),
        None => decision,
    }
}

/// Splits a text that [`with_lease`] wrote into the decision and the lease; `None` if the lease is invalid.
pub fn split_lease(written: &str) -> Option<(&str, Option<Lease>)> {
    match written.match_indices(' ').nth(8) {
        None => Some((written, None)),
        Some((at, _)) => Some((written.get(..at)?, Some(to_lease(written.get(at + 1..)?)?))),
    }
}

/// Returns a lease as one field: id, amount, life, and 1 if the count falls as it is spent, separated by commas.
fn from_lease(&Lease { id, amount, life, counts_down }: &Lease) -> String {
    format!("{id},{amount},{life},{}", u8::from(counts_down))
}

/// Parses a lease that [`from_lease`] wrote; `None` if invalid.
fn to_lease(written: &str) -> Option<Lease> {
    let mut parts = written.split(',');
    let id = parts.next()?.parse().ok()?;
    let mut number = |most: u64| parts.next()?.parse::<u64>().ok().filter(|&number| number <= most);
    let (amount, life, counts_down) = (number(MAX)?, number(MAX_LEASE_TTL)?, number(1)? == 1);
    parts.next().is_none().then_some(Lease { id, amount, life, counts_down })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_cross_and_come_back() {
        let denied = Decision { retry_after: Some(7), violated: Violated(0b101), policy: 2, ..Decision::NOTHING };
        for decision in
            [denied, Decision { retry_after: None, ..denied }, Decision { allowed: true, count: MAX, ..denied }]
        {
            for (certainty, lasts) in Certainty::ALL.into_iter().zip([2_000, 500, 0]) {
                let written = from_decision(&decision, certainty);
                assert_eq!(to_decision(&written), Some(decision));
                assert_eq!(certain_for(&written), if decision.allowed { 0 } else { lasts });
            }
        }
        let never = Decision { retry_after: None, ..denied };
        assert_eq!(from_decision(&never, Certainty::Certain), "0 0 0 0 -1 0 2 5 0");
        for wrong in ["", "1", "1 2 3 4 5 6 7", "1 2 3 4 5 6 7 8 9 9", "1 2 3 4 5 6 7 a", "1  3 4 5 6 7 8"] {
            assert_eq!(to_decision(wrong), None);
        }
    }

    #[test]
    fn leases_cross_and_come_back() {
        let lease = Lease {
            id: "0000000000000000000000000000002a.lw.a".parse().unwrap(),
            amount: MAX,
            life: 875,
            counts_down: true,
        };
        let written = with_lease("1 2 3 4 5 6 7 8 9".into(), Some(&lease));
        assert_eq!(split_lease(&written), Some(("1 2 3 4 5 6 7 8 9", Some(lease))));
        assert_eq!(split_lease("1 2 3 4 5 6 7 8 9"), Some(("1 2 3 4 5 6 7 8 9", None)));
        for wrong in ["", ",1,2,3", "0000000000000000000000000000002a.lw.a,1,2", "x,1,2,0"] {
            assert_eq!(split_lease(&format!("1 2 3 4 5 6 7 8 9 {wrong}")), None);
        }
        // A holder adds to these numbers.
        for wrong in ["9007199254740992,875,0", "5,10001,0", "5,18446744073709551615,0", "5,875,2"] {
            let id = lease.id;
            assert_eq!(split_lease(&format!("1 2 3 4 5 6 7 8 9 {id},{wrong}")), None, "{wrong}");
        }
    }
}
