//! Does an operation of the oracle on the crate's own types, and turns the answer into the oracle's.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Mutex;

use tollgate::{Answer, Costs, Decision, Exception, Ledger, Operation, Policies, Reason, ReservationId, Settlement};

use crate::oracle::*;

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
pub(crate) fn operation(op: Op, specs: &[Spec], key: &Key, now: i64) -> Option<Operation<'static>> {
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
        Op::Except(excepted, length) => {
            let (exception, until) = (exception(excepted, specs), (now + length) as u64);
            Operation::Except { exception: Some(exception), until }
        }
        Op::Lift => Operation::Except { exception: None, until: 0 },
        Op::Extend(which, ttl) => Operation::Extend { id: id_of(key.named(which)?), ttl: ttl as u64 },
    })
}

/// Returns an exception of the first policy. There are few, and each is made once.
fn exception(excepted: Excepted, specs: &[Spec]) -> &'static Exception {
    static MADE: Mutex<BTreeMap<(String, Algorithm), &'static Exception>> = Mutex::new(BTreeMap::new());
    let Some(&Spec { algorithm, name, .. }) = specs.first() else { panic!("no policy") };
    let mut made = MADE.lock().expect("no panic");
    let (name, key) = (NAMES[name], (format!("{excepted:?} {name}"), algorithm));
    let make = || match excepted {
        Excepted::Deny => Exception::deny(),
        Excepted::Numbers(limit, rate) => {
            let (limit_field, rate_field) = match algorithm {
                TokenBucket => ("capacity", Some("refillRate")),
                LeakyBucket => ("capacity", Some("leakRate")),
                _ => ("limit", None),
            };
            let exception = Exception::new().with(name, limit_field, limit as u64).expect("a limit");
            match rate_field.filter(|_| rate > 0) {
                Some(field) => exception.with(name, field, rate as u64).expect("a rate"),
                None => exception,
            }
        }
    };
    made.entry(key).or_insert_with(|| Box::leak(Box::new(make())))
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
        reserved: decision.reason == Some(Reason::Reserved),
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
        let Verdict { allowed, retry_after, violated, reserved, .. } = expected;
        return Outcome::Decided(Verdict { allowed, retry_after, violated, reserved, ..actual.clone() });
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
