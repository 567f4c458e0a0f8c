//! `moreAfter` by brute force: before it no more than `remaining` can be used at once, at it more can. Open reservations
//! included. Nothing here knows how it is computed: later times are asked of the ledger itself.

use tollgate::{Answer, Costs, Decision, Ledger, Operation};

use crate::driver::{operation, policies};
use crate::oracle::*;
use crate::random::{Case, Rng, check, number_shapes, spec, steps};

/// Whether one more than remains fits under all policies at a later time, or all of a limit that is no more.
fn more_fits(ledger: &Ledger, specs: &[Spec], decision: &Decision, at: i64) -> bool {
    let cost = |spec: &Spec| (decision.remaining + 1).min(spec.limit as u64);
    let costs: Vec<_> = specs.iter().map(|spec| (NAMES[spec.name], cost(spec))).collect();
    match ledger.clone().apply(Operation::PeekCosts { costs: Costs::ByPolicy(&costs) }, at as u64).unwrap().0 {
        Answer::Decision(later) => later.allowed,
        other => panic!("{other:?}"),
    }
}

fn check_decision(
    (ledger, specs): (&Ledger, &[Spec]),
    decision: &Decision,
    cost: i64,
    now: i64,
    noise: i64,
) -> Result<(), String> {
    let more_after = decision.more_after as i64;
    let fail = |what: &str| Err(format!("{what}: {decision:?} at {now}"));
    if specs.len() == 1 && (decision.remaining == decision.limit) != (more_after == 0) {
        return fail("it is 0 if all remains");
    }
    if cost > 0 && decision.retry_after.is_some_and(|wait| wait > 0 && more_after > wait as i64) {
        return fail("it is later than retryAfter");
    }
    if more_after > decision.reset_after as i64 {
        return fail("it is later than resetAfter");
    }
    if !more_fits(ledger, specs, decision, now + more_after) {
        return fail("no more fits at it");
    }
    for before in [0, 1, more_after / 2, noise % more_after.max(1), more_after - 1] {
        if (0..more_after).contains(&before) && more_fits(ledger, specs, decision, now + before) {
            return fail(&format!("more fits {before} ms after"));
        }
    }
    Ok(())
}

fn tell(case: &Case) -> Result<u64, String> {
    let specs = &case.versions[0];
    let mut ledger = Ledger::new(policies(specs)).unwrap();
    // The oracle only keeps the ids of reservations here.
    let (mut key, mut now, mut done) = (case.key(), case.start, 0);
    for step in &case.steps {
        now += step.elapsed;
        let Some(operation) = operation(step.op, specs, &key, now) else { continue };
        let answer = ledger.apply(operation, now as u64).unwrap().0;
        let (decision, cost) = match (answer, step.op) {
            (Answer::Reserved { decision, id }, Op::Reserve(cost, ttl)) => {
                if id.is_some() {
                    key.made.push(Made { id: key.next_id(), end: now + ttl });
                }
                (decision, cost)
            }
            // A peek is checked by the hit that it foretells: on the state as it is, it was not charged.
            (Answer::Decision(decision), Op::Hit(cost)) => (decision, cost),
            _ => continue,
        };
        done += 1;
        check_decision((&ledger, specs), &decision, cost, now, step.noise)?;
    }
    Ok(done)
}

fn case(rng: &mut Rng, reserves: bool) -> Case {
    let count = if rng.once_in(3) { 2 } else { 1 };
    let mut own = Vec::new();
    for name in 0..count {
        let algorithm = rng.one_of(&ALGORITHMS);
        own.push(spec(rng, algorithm, name));
    }
    own[0].counts = count == 1 && !own[0].algorithm.is_bucket() && own[0].algorithm != Concurrency && rng.once_in(4);
    let mut versions = vec![own.clone()];
    number_shapes(&mut versions);
    let mut steps = steps(rng, &versions, 40, reserves);
    let slots: Vec<_> = own.iter().map(|spec| spec.algorithm == Concurrency).collect();
    steps.retain(|step| match step.op {
        Op::Hit(_) => !slots.contains(&true),
        Op::Inc(position, _) | Op::Set(position, _) => !slots[position],
        _ => true,
    });
    // The clock may step back as well.
    for step in &mut steps {
        if rng.once_in(12) {
            step.elapsed = -rng.within(1, own[0].period() * 2);
        }
    }
    Case { versions, start: 1_767_225_600_000 + rng.within(0, 5_000), steps }
}

#[test]
fn before_it_no_more_can_be_used_and_at_it_more_can() {
    check("moreAfter by brute force", 15_000, |rng| case(rng, false), tell);
}

#[test]
fn before_it_no_more_can_be_used_beside_reservations_and_at_it_more_can() {
    check("moreAfter by brute force, beside reservations", 15_000, |rng| case(rng, true), tell);
}
