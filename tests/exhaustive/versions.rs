//! Two versions of a policy that alternate on one key, as in a gradual deploy: each shape has its own state, and limits and
//! rates of one shape hold jointly. By records that each version loads in turn, and by snapshots.

use std::collections::BTreeMap;

use tollgate::{Costs, Limiter, ManualClock, Policies, Record, Reservation, Reserve, step};

use crate::driver::{compared, id_of, operation, outcome, policies, settled, verdict};
use crate::oracle::*;
use crate::random::{Case, Rng, Step, check, number_shapes, spec, steps};

type Memory<'a> = Limiter<u8, &'a ManualClock>;

const KEY: u8 = 7;

/// A key as versions in turn find it.
trait Kept {
    fn apply(&mut self, version: usize, specs: &[Spec], op: Op, key: &Key, now: i64) -> Option<Outcome>;
}

/// A record as text, loaded for each operation.
struct Records {
    versions: Vec<Policies>,
    stored: Option<String>,
}

impl Kept for Records {
    fn apply(&mut self, version: usize, specs: &[Spec], op: Op, key: &Key, now: i64) -> Option<Outcome> {
        let record: Option<Record> = self.stored.as_deref().map(|text| serde_json::from_str(text).unwrap());
        let operation = operation(op, specs, key, now)?;
        let stepped = step(&self.versions[version], record.as_ref(), operation, now as u64).unwrap();
        if stepped.changed {
            self.stored = stepped.record.map(|record| serde_json::to_string(&record).unwrap());
        }
        Some(outcome(&stepped.answer))
    }
}

/// A limiter that is restored under the other version's policies whenever the version changes.
struct Snapshots<'a> {
    versions: Vec<Policies>,
    clock: &'a ManualClock,
    version: usize,
    limiter: Memory<'a>,
}

impl Kept for Snapshots<'_> {
    fn apply(&mut self, version: usize, specs: &[Spec], op: Op, key: &Key, now: i64) -> Option<Outcome> {
        self.clock.set(now as u64);
        if version != self.version {
            let json = serde_json::to_string(&self.limiter.snapshot().unwrap()).unwrap();
            self.limiter = Limiter::new(self.versions[version].clone(), self.clock).unwrap();
            self.limiter.restore(&serde_json::from_str(&json).unwrap()).unwrap();
            self.version = version;
        }
        let (limiter, name) = (&mut self.limiter, |position: usize| Some(NAMES[specs[position].name]));
        Some(match op {
            Op::Hit(cost) => Outcome::Decided(verdict(&limiter.hit(&KEY, cost as u64).unwrap())),
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
                Outcome::Decided(verdict(&limiter.reserve(&KEY, reserve).unwrap().decision))
            }
            Op::Settle(which, used) => {
                let used = used.map(|used| Costs::All(used as u64));
                settled(limiter.settle_by_id(&KEY, &id_of(key.named(which)?), used).unwrap())
            }
            Op::Except(..) | Op::Lift => panic!("{op:?} is not of this test"),
            Op::Extend(which, ttl) => {
                let mut reservation = Reservation { key: KEY, id: id_of(key.named(which)?) };
                settled(limiter.extend(&mut reservation, ttl as u64).unwrap())
            }
        })
    }
}

fn in_both(case: &Case, mut property: impl FnMut(&str, &mut dyn Kept) -> Result<u64, String>) -> Result<u64, String> {
    let versions: Vec<_> = case.versions.iter().map(|specs| policies(specs)).collect();
    let clock = ManualClock::new(case.start as u64);
    let limiter = Limiter::new(versions[0].clone(), &clock).unwrap();
    let by_records = property("records", &mut Records { versions: versions.clone(), stored: None })?;
    Ok(by_records + property("snapshots", &mut Snapshots { versions, clock: &clock, version: 0, limiter })?)
}

/// The decisions are those of the oracle, in which a shape sees its own versions' operations alone.
fn tell(case: &Case) -> Result<u64, String> {
    in_both(case, |by, kept| {
        let (mut key, mut now, mut done) = (case.key(), case.start, 0);
        for step in &case.steps {
            now += step.elapsed;
            let (specs, before) = (&case.versions[step.version], key.clone());
            let Some(expected) = key.apply(specs, step.op, now) else { continue };
            let Some(actual) = kept.apply(step.version, specs, step.op, &before, now) else { continue };
            let expected = compared(expected, &actual, step.op, specs);
            if actual != expected {
                return Err(format!(
                    "by {by}: {step:?} at {now}\n  expected {expected:?}\n  actual   {actual:?}\n  oracle before {before:?}"
                ));
            }
            done += 1;
        }
        Ok(done)
    })
}

/// Removes what a version cannot do.
fn possible(versions: &[Vec<Spec>], step: &Step) -> bool {
    let specs = &versions[step.version];
    let slots = |position: usize| specs[position].algorithm == Concurrency;
    match step.op {
        Op::Hit(_) => (0..specs.len()).all(|position| !slots(position)),
        Op::Inc(position, _) | Op::Set(position, _) => !slots(position),
        _ => true,
    }
}

fn with_steps(rng: &mut Rng, mut versions: Vec<Vec<Spec>>, most: i64, reserves: bool) -> Case {
    number_shapes(&mut versions);
    let mut steps = steps(rng, &versions, most, reserves);
    steps.retain(|step| possible(&versions, step));
    Case { versions, start: 1_767_225_600_000 + rng.within(0, 5_000), steps }
}

/// Every pair of algorithms, scales, limits, rates and of what becomes of denied hits.
fn pairs() -> Vec<[Spec; 2]> {
    let mut all = Vec::new();
    for algorithm in ALGORITHMS {
        for (limit, scale) in [(5, 20), (5, 30), (8, 20)] {
            let rates: &[i64] = if algorithm.is_bucket() { &[1, 3] } else { &[1] };
            let counts: &[bool] =
                if algorithm.is_bucket() || algorithm == Concurrency { &[false] } else { &[false, true] };
            for &rate in rates {
                for &counts in counts {
                    all.push(Spec { algorithm, limit, scale, rate, counts, name: 0, shape: 0 });
                }
            }
        }
    }
    all.iter().flat_map(|one| all.iter().map(|other| [*one, *other])).collect()
}

#[test]
fn alternating_versions_decide_each_by_its_own_shape() {
    let pairs = pairs();
    let mut number = 0;
    check(
        "alternating versions",
        pairs.len() as u64 * 4,
        |rng| {
            let [one, other] = pairs[number % pairs.len()];
            number += 1;
            let reserves = rng.once_in(2);
            with_steps(rng, vec![vec![one], vec![other]], 40, reserves)
        },
        tell,
    );
}

/// Lists that name other policies, more of them or fewer: those that a call does not name stay.
#[test]
fn alternating_lists_find_each_policy_again() {
    check(
        "alternating lists",
        6_000,
        |rng| {
            let any = |rng: &mut Rng, name| {
                let algorithm = rng.one_of(&ALGORITHMS);
                spec(rng, algorithm, name)
            };
            let (a, b, other_a) = (any(rng, 0), any(rng, 1), any(rng, 0));
            let lists = [vec![a], vec![a, b], vec![b], vec![b, other_a], vec![other_a]];
            let versions =
                (0..3).map(|_| rng.one_of(&[0, 1, 2, 3, 4])).map(|index: usize| lists[index].clone()).collect();
            let reserves = rng.once_in(2);
            with_steps(rng, versions, 40, reserves)
        },
        tell,
    );
}

/// Fails if a shape admitted more than the largest of its numbers allows. Checked on what was admitted, not on states.
fn check_admitted(specs: &[&Spec], admitted: &[(i64, i64)]) -> Result<(), String> {
    let (algorithm, scale) = (specs[0].algorithm, specs[0].scale);
    let most = |number: fn(&Spec) -> i64| specs.iter().map(|spec| number(spec)).max().unwrap_or(0);
    let (limit, rate) = (most(|spec| spec.limit), most(|spec| spec.rate));
    let fail = |what: String| Err(format!("{what} admitted under {specs:?}: {admitted:?}"));
    let sum = |counts: &dyn Fn(i64) -> bool| admitted.iter().filter(|hit| counts(hit.0)).map(|hit| hit.1).sum::<i64>();
    let window = |time: i64| time - time % scale;
    let mut own_start = i64::MIN;
    for &(time, _) in admitted {
        let used = match algorithm {
            FixWindow => sum(&|other| window(other) == window(time)),
            FixWindowPerKey => {
                if time >= own_start.saturating_add(scale) {
                    own_start = time;
                }
                sum(&|other| other >= own_start && other < own_start + scale)
            }
            SlidingWindow => sum(&|other| other <= time && other > time - scale),
            SlidingCounter => {
                let previous = sum(&|other| window(other) == window(time) - scale);
                let current = sum(&|other| window(other) == window(time) && other <= time);
                let parts = previous * (scale - time % scale) + current * scale;
                (parts + scale - 1) / scale
            }
            TokenBucket | LeakyBucket => {
                for &(since, _) in admitted.iter().filter(|hit| hit.0 <= time) {
                    let used = sum(&|other| other >= since && other <= time);
                    if used * scale > limit * scale + rate * (time - since) {
                        return fail(format!("{used} from {since} to {time}"));
                    }
                }
                0
            }
            Concurrency => 0,
        };
        if used > limit {
            return fail(format!("{used} at {time}"));
        }
    }
    Ok(())
}

/// Greedy traffic under versions in turn.
fn admit(case: &Case) -> Result<u64, String> {
    in_both(case, |by, kept| {
        let (mut now, mut key, mut done) = (case.start, case.key(), 0);
        let mut admitted: BTreeMap<usize, Vec<(i64, i64)>> = BTreeMap::new();
        let mut open: Vec<i64> = Vec::new();
        for step in &case.steps {
            now += step.elapsed;
            let specs = &case.versions[step.version];
            let spec = specs[0];
            let slots = spec.algorithm == Concurrency;
            let (cost, ttl) = (1 + step.noise % 2, 1 + step.noise % 37);
            let op = if slots { Op::Reserve(cost, ttl) } else { Op::Hit(cost) };
            for _ in 0..12 {
                // Only the ids of reservations are the oracle's here.
                let decided = kept.apply(step.version, specs, op, &key, now);
                let Some(Outcome::Decided(verdict)) = decided else { return Err(format!("{decided:?}")) };
                done += 1;
                if !verdict.allowed {
                    break;
                }
                if slots {
                    key.made.push(Made { id: key.next_id(), end: now + ttl });
                    open.retain(|end| *end > now);
                    open.extend((0..cost).map(|_| now + ttl));
                    let limits = case.versions.iter().map(|specs| specs[0]).filter(|own| own.algorithm == Concurrency);
                    let most = limits.map(|own| own.limit).max().unwrap_or(0);
                    if open.len() as i64 > most {
                        return Err(format!("by {by}: {} slots at {now}", open.len()));
                    }
                } else {
                    admitted.entry(spec.shape).or_default().push((now, cost));
                }
            }
        }
        for (shape, hits) in &admitted {
            let specs: Vec<_> = case.versions.iter().flatten().filter(|spec| spec.shape == *shape).collect();
            check_admitted(&specs, hits).map_err(|text| format!("by {by}: {text}"))?;
        }
        Ok(done)
    })
}

#[test]
fn alternating_versions_admit_no_more_than_each_shape_allows() {
    // A denied hit that counts may start a window of a key, which the list of admitted hits does not show.
    let pairs: Vec<_> = pairs().into_iter().filter(|pair| pair.iter().all(|spec| !spec.counts)).collect();
    let mut number = 0;
    check(
        "greedy traffic under alternating versions",
        pairs.len() as u64 * 4,
        |rng| {
            let [one, other] = pairs[number % pairs.len()];
            number += 1;
            let mut versions = vec![vec![one], vec![other]];
            number_shapes(&mut versions);
            let steps = (0..rng.within(5, 60)).map(|_| Step {
                elapsed: if rng.once_in(8) { rng.within(0, 70) } else { rng.within(0, 12) },
                version: rng.within(0, 1) as usize,
                op: Op::Hit(1),
                noise: rng.within(0, 1 << 20),
            });
            let steps = steps.collect();
            Case { versions, start: 1_767_225_600_000 + rng.within(0, 5_000), steps }
        },
        admit,
    );
}

/// No number of shapes pushes out one that a call does not name.
#[test]
fn each_of_many_shapes_is_kept() {
    // In an order that is not that of their ends.
    let scales: Vec<i64> = (0..40).map(|number| 100 + number * 7 % 40 * 30).collect();
    let mut versions: Vec<_> = scales
        .iter()
        .map(|&scale| {
            vec![Spec { algorithm: FixWindowPerKey, limit: 1, scale, rate: 1, counts: false, name: 0, shape: 0 }]
        })
        .collect();
    number_shapes(&mut versions);
    let case = Case { versions, start: 5_000, steps: Vec::new() };
    in_both(&case, |by, kept| {
        let hit = |kept: &mut dyn Kept, version: usize, op| match kept.apply(
            version,
            &case.versions[version],
            op,
            &case.key(),
            case.start,
        ) {
            Some(Outcome::Decided(verdict)) => verdict.allowed,
            other => panic!("{other:?}"),
        };
        for version in 0..scales.len() {
            assert!(hit(kept, version, Op::Hit(1)), "by {by}: {version} starts unused");
        }
        for version in 0..scales.len() {
            assert!(!hit(kept, version, Op::Hit(1)), "by {by}: {version} is kept");
        }
        Ok(0)
    })
    .unwrap();
}
