//! A limiter, a ledger and the pure step all equal the plain model.

use std::collections::HashMap;

use proptest::prelude::*;
use tollgate::{Answer, ManualClock, Operation, Options, Policies, Record, step};

use crate::model::{Model, Verdict};
use crate::support::*;

fn verdict(answer: Answer) -> Result<Verdict, u64> {
    match answer {
        Answer::Decision(decision) => Ok(decision.into()),
        Answer::Number(number) => Err(number),
        Answer::Done => Err(0),
        other => panic!("{other:?} is no answer to this"),
    }
}

/// Every operation there is, and the clock wherever it likes.
fn a_ledger_equals_the_model(kind: Kind) {
    let acts = prop::collection::vec((anywhere(), acts()), 1..40);
    check((specs(kind), starts(), acts), |(spec, mut now, acts)| {
        let policies = Policies::from(spec.policy());
        let (mut ledger, mut model) = (spec.ledger(), Model::new(spec.clone()));
        let mut stored: Option<String> = None;
        for (move_, act) in acts {
            now = move_.from(now, spec.period());
            let operation = act.operation(&spec);
            let expected = model.apply(operation, now);
            prop_assert_eq!(verdict(ledger.apply(operation, now).unwrap().0), expected.clone());
            prop_assert_eq!(ledger.expires_at(now).unwrap(), model.expires_at(now));

            // The same through what a store would hold.
            let record = stored.as_deref().map(|json| serde_json::from_str::<Record>(json).unwrap());
            let stepped = step(&policies, record.as_ref(), operation, now).unwrap();
            prop_assert_eq!(verdict(stepped.answer), expected);
            prop_assert!(stepped.changed || stepped.record == record || stepped.record.is_none());
            if stepped.changed {
                stored = stepped.record.map(|record| serde_json::to_string(&record).unwrap());
            }
        }
        Ok(())
    });
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Act(Act),
    Peek(u64),
    Get,
    ExpiresAt,
    Reset,
    Clean,
}

fn calls() -> impl Strategy<Value = Call> + Clone {
    prop_oneof![
        12 => acts().prop_map(Call::Act),
        2 => weights().prop_map(Call::Peek),
        1 => Just(Call::Get),
        1 => Just(Call::ExpiresAt),
        1 => Just(Call::Reset),
        1 => Just(Call::Clean),
    ]
}

/// A key of the model, and when it was last changed.
#[derive(Clone)]
struct Held {
    model: Model,
    touched: u64,
}

/// Few keys, so that there is always room, and everything that cleans: nothing of it may show.
fn a_limiter_equals_the_model(kind: Kind) {
    let clean_period = prop_oneof![Just(1_u64), 2..=2_000_u64, Just(60_000)];
    let key_older_than = prop_oneof![3 => Just(None), 1 => (1..=3_000_u64).prop_map(Some)];
    let calls = prop::collection::vec((forward(), 0..6_u8, calls()), 1..80);
    check((specs(kind), starts(), clean_period, key_older_than, calls), |(spec, start, period, older, calls)| {
        let mut options = Options::new().max_keys(6).unwrap().clean_period(period).unwrap();
        if let Some(older) = older {
            options = options.key_older_than(older).unwrap();
        }
        same_as_models(&spec, start, options, older, &calls, true)
    });
}

/// The clock may go anywhere when nothing is cleaned: a state swept away cannot come back when the clock does.
fn a_limiter_equals_the_model_wherever_the_clock_goes(kind: Kind) {
    let calls = prop::collection::vec((anywhere(), 0..3_u8, calls()), 1..40);
    check((specs(kind), starts(), calls), |(spec, start, calls)| {
        let options = Options::new().max_keys(3).unwrap().clean_period(tollgate::MAX).unwrap();
        same_as_models(&spec, start, options, None, &calls, false)
    });
}

fn same_as_models(
    spec: &Spec,
    start: u64,
    options: Options,
    older: Option<u64>,
    calls: &[(Move, u8, Call)],
    cleans: bool,
) -> Result<(), TestCaseError> {
    let clock = ManualClock::new(start);
    let mut limiter = limiter(spec, &clock, options);
    let mut held: HashMap<u8, Held> = HashMap::new();
    let mut now = start;
    for &(step, key, call) in calls {
        now = step.from(now, spec.period());
        clock.set(now);
        let stale = |held: &Held| older.is_some_and(|older| held.touched + older <= now);
        let before = held.get(&key).filter(|held| !stale(held)).cloned();
        let mut entry = before.clone().unwrap_or(Held { model: Model::new(spec.clone()), touched: now });
        let model = &mut entry.model;
        match call {
            Call::Act(act) => {
                let operation = act.operation(spec);
                let expected = model.apply(operation, now);
                let answer = match operation {
                    Operation::Hit { cost } => Ok(Verdict::from(limiter.hit(&key, cost).unwrap())),
                    Operation::Inc { cost, .. } => Err(limiter.inc(&key, cost).unwrap()),
                    Operation::Set { count, .. } => Err(limiter.set(&key, count).unwrap()),
                    _ => unreachable!("acts are hits, incs and sets"),
                };
                let changes = match (operation, &expected) {
                    (Operation::Hit { cost }, Ok(verdict)) => {
                        cost > 0 && (verdict.allowed || spec.denied == tollgate::Denied::Count)
                    }
                    // There is nothing to give back to a key that was never used.
                    (Operation::Inc { cost, .. }, _) => cost > 0 || (cost < 0 && before.is_some()),
                    _ => true,
                };
                prop_assert_eq!(answer, expected, "{:?} of {} at {}", operation, key, now);
                if changes {
                    entry.touched = now;
                }
                if changes || before.is_some() {
                    held.insert(key, entry);
                }
            }
            Call::Peek(weight) => {
                let cost = fit(weight, spec.limit);
                prop_assert_eq!(Verdict::from(limiter.peek(&key, cost).unwrap()), model.clone().hit(cost, now));
            }
            Call::Get => prop_assert_eq!(limiter.get(&key).unwrap(), model.count(now)),
            Call::ExpiresAt => {
                let stale_at = older.map_or(u64::MAX, |older| entry.touched + older);
                prop_assert_eq!(limiter.expires_at(&key).unwrap(), entry.model.expires_at(now).min(stale_at));
            }
            Call::Reset => {
                limiter.reset(&key).unwrap();
                held.remove(&key);
            }
            Call::Clean if cleans => {
                limiter.clean().unwrap();
                held.retain(|_, held| !stale(held) && held.model.expires_at(now) > 0);
                prop_assert_eq!(limiter.len() as usize, held.len());
            }
            Call::Clean => {}
        }
        prop_assert!(limiter.len() <= 6);
        prop_assert_eq!(limiter.evicted(), 0);
        let live = held.iter().filter(|(_, held)| !stale(held) && held.model.expires_at(now) > 0);
        prop_assert_eq!(limiter.snapshot().unwrap().len(), live.count());
    }
    Ok(())
}

each_counting_algorithm!(
    a_ledger_equals_the_model
    a_limiter_equals_the_model
    a_limiter_equals_the_model_wherever_the_clock_goes
);
