//! Does an operation of the oracle on the crate's own types, and turns the answer into the oracle's.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};

use tollgate::{Answer, Costs, Decision, Ledger, Operation, Policies, ReservationId, Settlement};

use crate::oracle::{Concurrency, Key, Made, NAMES, Op, Outcome, Spec, Verdict};

/// The policies of specs.
pub(crate) fn policies(specs: &[Spec]) -> Policies {
    Policies::new(specs.iter().map(Spec::policy)).expect("policies")
}

/// The id of a reservation as its holder has it.
pub(crate) fn id_of(made: Made) -> ReservationId {
    let (mut end, mut digits) = (made.end, Vec::new());
    while end > 0 || digits.is_empty() {
        digits.push(char::from_digit((end % 36) as u32, 36).expect("a digit"));
        end /= 36;
    }
    let digits: String = digits.iter().rev().collect();
    format!("{:032x}.{digits}.a", made.id).parse().expect("an id")
}

/// The crate's operation; `None` if there is no such reservation. `key` is the oracle before the operation.
pub(crate) fn operation(op: Op, specs: &[Spec], key: &Key) -> Option<Operation<'static>> {
    Some(match op {
        Op::Hit(cost) => Operation::Hit { cost: cost as u64 },
        Op::Peek(cost) => Operation::Peek { cost: cost as u64 },
        Op::Inc(position, cost) => Operation::Inc { policy: Some(NAMES[specs[position].name]), cost },
        Op::Set(position, count) => Operation::Set { policy: Some(NAMES[specs[position].name]), count: count as u64 },
        Op::Reset => Operation::Reset,
        Op::Reserve(cost, ttl) => {
            let (costs, random) = (Costs::All(cost as u64), key.next_id());
            Operation::Reserve { costs, ttl: Some(ttl as u64), random }
        }
        Op::Settle(which, used) => {
            Operation::Settle { id: id_of(key.named(which)?), used: used.map(|used| Costs::All(used as u64)) }
        }
        Op::Extend(which, ttl) => Operation::Extend { id: id_of(key.named(which)?), ttl: ttl as u64 },
    })
}

/// A decision in the oracle's words.
pub(crate) fn verdict(decision: &Decision) -> Verdict {
    Verdict {
        allowed: decision.allowed,
        count: decision.count as i64,
        limit: decision.limit as i64,
        remaining: decision.remaining as i64,
        retry_after: decision.retry_after.map(|wait| wait as i64),
        reset_after: decision.reset_after as i64,
        more_after: decision.more_after as i64,
        policy: decision.policy,
        violated: decision.violated.iter().map(|position| 1 << position).sum(),
    }
}

/// An answer in the oracle's words.
pub(crate) fn outcome(answer: &Answer) -> Outcome {
    match answer {
        Answer::Decision(decision) | Answer::Reserved { decision, .. } => Outcome::Decided(verdict(decision)),
        Answer::Number(number) => Outcome::Number(*number as i64),
        Answer::Done => Outcome::Done,
        Answer::Settled(settlement) => settled(*settlement),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn settled(settlement: Settlement) -> Outcome {
    match settlement {
        Settlement::Settled => Outcome::Settled,
        Settlement::Extended => Outcome::Extended,
        Settlement::Expired => Outcome::Expired,
        Settlement::Closed => Outcome::Closed,
        other => panic!("{other:?}"),
    }
}

/// What the oracle expects, without what is not compared.
pub(crate) fn compared(expected: Outcome, actual: &Outcome, op: Op, specs: &[Spec]) -> Outcome {
    let (expected, actual) = match (expected, actual) {
        (Outcome::Decided(expected), Outcome::Decided(actual)) => (expected, actual),
        (expected, _) => return expected,
    };
    let slots = specs.len() > 1 && specs.iter().any(|spec| spec.algorithm == Concurrency);
    if slots && matches!(op, Op::Peek(1..)) {
        // Slots are only reserved, and a peek has no ttl: beside other policies only whether and when it fits is certain.
        let Verdict { allowed, retry_after, violated, .. } = expected;
        return Outcome::Decided(Verdict { allowed, retry_after, violated, ..actual.clone() });
    }
    Outcome::Decided(expected)
}

/// Everything that a ledger holds, also what it only caches, as one number.
pub(crate) fn fingerprint(ledger: &Ledger) -> u64 {
    struct Text(DefaultHasher);
    impl std::fmt::Write for Text {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut text = Text(DefaultHasher::new());
    write!(text, "{ledger:?}").expect("a text");
    text.0.finish()
}
