//! A state stands by itself: whatever happens around a key, its decisions are the same to the millisecond.
//!
//! One story of a key, with numbers for single calls, is told to the oracle, to a limiter that is left alone, to one that is
//! swept, cleaned, used by others and restored from snapshots in between, and to records that are loaded for each operation.

use tollgate::{Costs, Limiter, ManualClock, Options, Policies, Record, Reservation, Reserve, step};

use crate::driver::{compared, id_of, operation, outcome, policies, settled, verdict};
use crate::oracle::*;
use crate::random::{Case, Rng, Step, check, number_shapes, other_numbers, spec, steps};

type Memory<'a> = Limiter<u8, &'a ManualClock>;

/// The key that the story is about.
const KEY: u8 = 0;

/// Does an operation on a limiter. Only hits and reservations take numbers of their own.
fn on_limiter(limiter: &mut Memory<'_>, versions: &[Vec<Spec>], call: &[Policies], step: Step, key: &Key) -> Outcome {
    let numbers = (step.version > 0).then(|| &call[step.version]);
    let name = |position: usize| Some(NAMES[versions[0][position].name]);
    match step.op {
        Op::Hit(cost) => {
            let decision = match numbers {
                Some(numbers) => limiter.hit_with(&KEY, cost as u64, numbers),
                None => limiter.hit(&KEY, cost as u64),
            };
            Outcome::Decided(verdict(&decision.unwrap()))
        }
        Op::Peek(cost) => Outcome::Decided(verdict(&limiter.peek(&KEY, cost as u64).unwrap())),
        Op::Inc(position, cost) => Outcome::Number(limiter.inc_policy(&KEY, cost, name(position)).unwrap() as i64),
        Op::Set(position, count) => {
            Outcome::Number(limiter.set_policy(&KEY, count as u64, name(position)).unwrap() as i64)
        }
        Op::Reset => {
            limiter.reset(&KEY).unwrap();
            Outcome::Done
        }
        Op::Reserve(cost, ttl) => {
            let reserve = Reserve::new(key.next_id()).cost(cost as u64).ttl(ttl as u64);
            let reserve = if let Some(numbers) = numbers { reserve.policies(numbers) } else { reserve };
            Outcome::Decided(verdict(&limiter.reserve(&KEY, reserve).unwrap().decision))
        }
        Op::Settle(which, used) => {
            let id = id_of(key.named(which).unwrap());
            settled(limiter.settle_by_id(&KEY, &id, used.map(|used| Costs::All(used as u64))).unwrap())
        }
        Op::Except(..) | Op::Lift => panic!("{step:?} is not of this test"),
        Op::Extend(which, ttl) => {
            let id = id_of(key.named(which).unwrap());
            settled(limiter.extend(&mut Reservation { key: KEY, id }, ttl as u64).unwrap())
        }
    }
}

/// What happens to the limiter and to other keys before an operation.
fn disturb<'a>(
    limiter: &mut Memory<'a>,
    clock: &'a ManualClock,
    versions: &[Vec<Spec>],
    call: &[Policies],
    noise: i64,
) {
    let reserves_only = versions[0].iter().any(|spec| spec.algorithm == Concurrency);
    let others = 1 + (noise % 5) as u8;
    if noise & 64 > 0 && !reserves_only {
        for other in 1..=others {
            let numbers = &call[(noise as usize + usize::from(other)) % call.len()];
            limiter.hit_with(&other, 1, numbers).unwrap();
        }
    }
    if noise & 128 > 0 {
        limiter.peek(&others, 1).unwrap();
        let numbers = &call[noise as usize % call.len()];
        let reserve = Reserve::new(u128::from(noise as u64) << 8 | 0xff).ttl(1 + noise as u64 % 9).policies(numbers);
        let _ = limiter.reserve(&others, reserve).unwrap();
    }
    if noise & 256 > 0 {
        limiter.clean().unwrap();
    }
    if noise & 512 > 0 {
        let json = serde_json::to_string(&limiter.snapshot().unwrap()).unwrap();
        *limiter = swept(&call[0], clock);
        limiter.restore(&serde_json::from_str(&json).unwrap()).unwrap();
    }
}

/// A limiter that always sweeps.
fn swept<'a>(policies: &Policies, clock: &'a ManualClock) -> Memory<'a> {
    Limiter::with_options(policies.clone(), clock, Options::new().clean_period(1).unwrap()).unwrap()
}

fn calm<'a>(policies: &Policies, clock: &'a ManualClock) -> Memory<'a> {
    let options = Options::new().clean_period(1 << 50).unwrap();
    Limiter::with_options(policies.clone(), clock, options).unwrap()
}

/// Operations without numbers of their own are done under those of the limiter.
fn with_own_version(step: Step) -> Step {
    match step.op {
        Op::Hit(_) | Op::Reserve(..) => step,
        _ => Step { version: 0, ..step },
    }
}

fn tell(case: &Case) -> Result<u64, String> {
    let call: Vec<_> = case.versions.iter().map(|specs| policies(specs)).collect();
    let clock = ManualClock::new(case.start as u64);
    let (mut alone, mut among) = (calm(&call[0], &clock), swept(&call[0], &clock));
    let (mut key, mut now, mut done) = (case.key(), case.start, 0);
    // Records as a store keeps them: as text, written only if they changed.
    let mut stored: Option<String> = None;
    for &step_ in &case.steps {
        let step_ = with_own_version(step_);
        now += step_.elapsed;
        clock.set(now as u64);
        let specs = &case.versions[step_.version];
        let before = key.clone();
        let Some(expected) = key.apply(specs, step_.op, now) else { continue };
        let told = on_limiter(&mut alone, &case.versions, &call, step_, &before);
        let expected = compared(expected, &told, step_.op, specs);
        let fail = |who: &str, told: &Outcome, expected: &Outcome| {
            format!(
                "{who}: {step_:?} at {now}\n  expected {expected:?}\n  actual   {told:?}\n  oracle before {before:?}"
            )
        };
        if told != expected {
            return Err(fail("left alone, against the oracle", &told, &expected));
        }
        disturb(&mut among, &clock, &case.versions, &call, step_.noise);
        let disturbed = on_limiter(&mut among, &case.versions, &call, step_, &before);
        if disturbed != told {
            return Err(fail("disturbed, against left alone", &disturbed, &told));
        }
        let record: Option<Record> = stored.as_deref().map(|text| serde_json::from_str(text).unwrap());
        let operation = operation(step_.op, specs, &before, now).unwrap();
        let stepped = step(&call[step_.version], record.as_ref(), operation, now as u64).unwrap();
        let recorded = outcome(&stepped.answer);
        if recorded != told {
            return Err(fail("through records, against left alone", &recorded, &told));
        }
        if stepped.changed {
            stored = stepped.record.map(|record| serde_json::to_string(&record).unwrap());
        }
        done += 1;
    }
    Ok(done)
}

/// A limiter's own numbers, and two lists for single calls.
fn case(rng: &mut Rng, reserves: bool, changes: bool) -> Case {
    let count = if rng.once_in(3) { 2 } else { 1 };
    let mut own: Vec<_> = (0..count)
        .map(|name| {
            let algorithm = rng.one_of(&ALGORITHMS);
            spec(rng, algorithm, name)
        })
        .collect();
    // A full log is bounded by the limiter's own limit as well: only there the numbers of a call are not all.
    let is_bounded = own[0].algorithm == SlidingWindow && changes;
    own[0].counts = count == 1 && !own[0].algorithm.is_bucket() && !is_bounded && rng.once_in(3);
    let mut versions = vec![own.clone()];
    if changes {
        for _ in 0..2 {
            versions.push(own.iter().map(|spec| other_numbers(rng, *spec)).collect());
        }
    }
    number_shapes(&mut versions);
    let mut steps = steps(rng, &versions, 40, reserves);
    let slots: Vec<_> = own.iter().map(|spec| spec.algorithm == Concurrency).collect();
    // Slots are only reserved; and tokens cannot be set above the limiter's own capacity.
    steps.retain(|step| match step.op {
        Op::Hit(_) => !slots.contains(&true),
        Op::Inc(position, _) => !slots[position],
        Op::Set(position, count) => {
            !slots[position] && (own[position].algorithm != TokenBucket || count <= own[position].limit)
        }
        _ => true,
    });
    let start = if rng.once_in(4) { rng.within(0, 50) } else { 1_767_225_600_000 + rng.within(0, 5_000) };
    Case { versions, start, steps }
}

#[test]
fn a_state_stands_by_itself() {
    check("a state stands by itself", 6_000, |rng| case(rng, false, false), tell);
}

#[test]
fn a_state_beside_reservations_stands_by_itself() {
    check("a state beside reservations stands by itself", 6_000, |rng| case(rng, true, false), tell);
}

#[test]
fn a_state_under_numbers_of_single_calls_stands_by_itself() {
    check("a state under numbers of single calls stands by itself", 6_000, |rng| case(rng, false, true), tell);
}

#[test]
fn reservations_under_numbers_of_single_calls_stand_by_themselves() {
    check("reservations under numbers of single calls", 6_000, |rng| case(rng, true, true), tell);
}
