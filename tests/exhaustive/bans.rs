//! Bans over all short sequences: hits, bans by hand, lifted ones and resets, at all small steps of the clock.

use std::collections::HashSet;

use tollgate::{Answer, Decision, Ledger, Operation, Policies, Policy};

use self::ban_oracle::{Numbers, Oracle};
use crate::driver::fingerprint;

#[path = "../properties/ban_oracle.rs"]
mod ban_oracle;

const START: u64 = 1_000;

/// How many deeds a sequence has: more with `TOLLGATE_WIDE` set.
fn depth() -> usize {
    if std::env::var_os("TOLLGATE_WIDE").is_some() { 6 } else { 5 }
}

/// A cost of the last one never fits.
const DEEDS: [Deed; 5] = [Deed::Hit(1), Deed::Hit(9), Deed::Ban(2), Deed::Unban, Deed::Reset];
const STEPS: [i64; 6] = [0, 1, 2, 5, -1, -9];

#[derive(Clone, Copy, Debug)]
enum Deed {
    Hit(u64),
    Ban(u64),
    Unban,
    Reset,
}

/// A key with a ban, its oracle, and the policy beside the ban by itself.
#[derive(Clone)]
struct Node {
    ledger: Ledger,
    oracle: Oracle,
    alone: Ledger,
    now: u64,
}

fn decided(ledger: &mut Ledger, operation: Operation<'_>, now: u64) -> Decision {
    match ledger.apply(operation, now).unwrap().0 {
        Answer::Decision(decision) => decision,
        other => panic!("{other:?}"),
    }
}

impl Node {
    /// Does a deed after a step of the clock. Returns where it differs from the oracle.
    fn turn(&mut self, numbers: &Numbers, deed: Deed, step: i64) -> Option<String> {
        self.now = self.now.saturating_add_signed(step);
        let now = self.now;
        let Self { ledger, oracle, alone, .. } = self;
        match deed {
            Deed::Hit(cost) => {
                let at = oracle.time(now);
                let is_held = oracle.held_until(at).is_some();
                let peeked = decided(alone, Operation::Peek { cost }, now);
                // A ban charges nothing, but a state that is far ahead follows the clock.
                let other = match is_held {
                    true => decided(alone, Operation::Hit { cost: 0 }, now),
                    false => decided(alone, Operation::Hit { cost }, now),
                };
                let other = if is_held { peeked } else { other };
                if !is_held && !other.allowed {
                    oracle.deny(at, numbers);
                }
                let own = decided(ledger, Operation::Hit { cost }, now);
                let unchanged = decided(alone, Operation::Peek { cost: 0 }, now);
                if let Some(difference) = oracle.difference(&own, (&other, &unchanged), at, now) {
                    return Some(difference);
                }
            }
            Deed::Ban(length) => {
                let at = oracle.time(now);
                oracle.begin(at, length as i64);
                ledger.apply(Operation::Ban { policy: Some("ban"), length }, now).unwrap();
            }
            Deed::Unban => {
                *oracle = Oracle::default();
                ledger.apply(Operation::Unban { policy: None }, now).unwrap();
            }
            Deed::Reset => {
                *oracle = Oracle::default();
                alone.apply(Operation::Reset, now).unwrap();
                ledger.apply(Operation::Reset, now).unwrap();
            }
        }
        let mut read = oracle.clone();
        let at = read.time(now);
        let expected = (read.violations(at), Some(read.ends_at() as u64).filter(|&ends| ends > now).unwrap_or(0));
        let mut number = |operation| match ledger.apply(operation, now).unwrap().0 {
            Answer::Number(number) => number,
            other => panic!("{other:?}"),
        };
        let policy = Some("ban");
        let found = (number(Operation::Get { policy }), number(Operation::ExpiresAt { policy }));
        (found != expected).then(|| format!("expected {expected:?}, found {found:?}"))
    }
}

#[test]
fn all_short_sequences_are_as_the_definition_says() {
    let mut cases = 0_u64;
    for (after, factor, most) in [(1, 1, 3), (2, 1, 3), (2, 2, 8), (1, 2, 8)] {
        let numbers = Numbers { after, scale: 4, length: 3, factor, most };
        let window = Policy::fix_window_per_key(1, 2).unwrap();
        let policies = Policies::new([window.clone(), numbers.policy()]).unwrap();
        let ledger = Ledger::new(policies).unwrap();
        let alone = Ledger::new(window.denied(tollgate::Denied::Free).unwrap()).unwrap();
        let mut level = vec![(Node { ledger, oracle: Oracle::default(), alone, now: START }, Vec::new())];
        for _ in 0..depth() {
            let (mut next, mut seen) = (Vec::new(), HashSet::new());
            for (node, told) in &level {
                for deed in DEEDS {
                    for step in STEPS {
                        let (mut node, mut told) = (node.clone(), told.clone());
                        told.push((step, deed));
                        let difference = node.turn(&numbers, deed, step);
                        assert_eq!(difference, None, "{numbers:?}, from {START}: {told:?}");
                        cases += 1;
                        // Another sequence that has come to the same goes on alike.
                        if seen.insert((
                            node.oracle.clone(),
                            node.now,
                            fingerprint(&node.ledger),
                            fingerprint(&node.alone),
                        )) {
                            next.push((node, told));
                        }
                    }
                }
            }
            level = next;
        }
    }
    println!("bans: {cases} cases");
}
