//! All sequences of up to six operations over tiny policies, each algorithm alone and in pairs, against the oracle.
//!
//! Sequences share their prefixes, and prefixes that lead to the same state of both the oracle and the ledger are
//! continued once. So a case here, an operation on a state, stands for all sequences that come to that state.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

use tollgate::Ledger;

use crate::driver::{compared, fingerprint, operation, outcome, policies};
use crate::oracle::*;

/// An odd time, so that windows of 2, 3 and 4 ms do not all begin with it.
const START: i64 = 1_001;

/// Where a sequence has come to.
struct Node {
    key: Key,
    ledger: Ledger,
    now: i64,
    /// The last step, in `Scope::steps`.
    step: usize,
    /// How many sequences come here.
    ways: f64,
}

/// How much was compared.
#[derive(Clone, Copy, Default)]
struct Tally {
    cases: u64,
    sequences: f64,
}

/// How many differences are told of one scope, and then of all.
const ENOUGH: usize = 3;

/// A clock step and an operation.
type Turn = (i64, Op);

struct Scope<'a> {
    specs: &'a [Spec],
    turns: Vec<Turn>,
    depth: usize,
    /// Each step with the one before it, so that a sequence can be told.
    steps: Vec<(usize, Turn)>,
    tally: Tally,
    differences: Vec<String>,
}

impl Scope<'_> {
    fn run(mut self) -> (Tally, Vec<String>) {
        let ledger = Ledger::new(policies(self.specs)).expect("a ledger");
        let key = Key::new(self.specs);
        let mut level = vec![Node { key, ledger, now: START, step: 0, ways: 1.0 }];
        self.steps.push((0, (0, Op::Reset)));
        for depth in 1..=self.depth {
            let mut next = HashMap::new();
            for node in &level {
                if self.differences.len() >= ENOUGH {
                    break;
                }
                for turn in self.turns.clone() {
                    let Some(reached) = self.turn(node, turn) else { continue };
                    if depth < self.depth {
                        self.keep(&mut next, reached, node.step, turn);
                    }
                }
            }
            level = next.into_values().collect();
        }
        (self.tally, self.differences)
    }

    /// Does one operation on both, and compares. Returns where it led; `None` if it cannot be done or differs.
    fn turn(&mut self, node: &Node, (elapsed, op): Turn) -> Option<Node> {
        let now = node.now + elapsed;
        let operation = operation(op, self.specs, &node.key, now)?;
        let (mut key, mut ledger) = (node.key.clone(), node.ledger.clone());
        let expected = key.apply(self.specs, op, now)?;
        let actual = outcome(&ledger.apply(operation, now as u64).expect("an operation").0);
        self.tally.cases += 1;
        self.tally.sequences += node.ways;
        let expected = compared(expected, &actual, op, self.specs);
        if actual != expected {
            let mut text = format!("{:?}\n", self.specs);
            for (elapsed, op) in self.told(node.step) {
                text += &format!("  {elapsed:+} ms {op:?}\n");
            }
            text += &format!("  {elapsed:+} ms {op:?} (at {now}, from {START})\n");
            text += &format!("  expected {expected:?}\n  actual   {actual:?}\n  oracle before {:?}", node.key);
            self.differences.push(text);
            return None;
        }
        Some(Node { key, ledger, now, step: 0, ways: node.ways })
    }

    /// Keeps a node to continue from, unless another sequence has come to the same.
    fn keep(&mut self, next: &mut HashMap<u64, Node>, mut reached: Node, before: usize, turn: Turn) {
        let mut hasher = DefaultHasher::new();
        (&reached.key, reached.now, fingerprint(&reached.ledger)).hash(&mut hasher);
        match next.entry(hasher.finish()) {
            Entry::Occupied(mut same) => same.get_mut().ways += reached.ways,
            Entry::Vacant(vacant) => {
                self.steps.push((before, turn));
                reached.step = self.steps.len() - 1;
                vacant.insert(reached);
            }
        }
    }

    /// The turns that led to a step.
    fn told(&self, mut step: usize) -> Vec<Turn> {
        let mut turns = Vec::new();
        while step > 0 {
            turns.push(self.steps[step].1);
            step = self.steps[step].0;
        }
        turns.reverse();
        turns
    }
}

/// Explores one scope after the other, and fails with the shortest differences.
fn explore(title: &str, scopes: impl IntoIterator<Item = (Vec<Spec>, Vec<Turn>, usize)>) {
    let started = std::time::Instant::now();
    let (mut total, mut differences, mut count) = (Tally::default(), Vec::new(), 0);
    for (specs, turns, depth) in scopes {
        let scope =
            Scope { specs: &specs, turns, depth, steps: Vec::new(), tally: Tally::default(), differences: Vec::new() };
        let (tally, found) = scope.run();
        total.cases += tally.cases;
        total.sequences += tally.sequences;
        count += 1;
        differences.extend(found.into_iter().take(ENOUGH));
        if differences.len() >= 4 * ENOUGH {
            break;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{title} ({seconds:.1} s): {} cases for {:.3e} sequences over {count} scopes",
        total.cases, total.sequences
    );
    differences.sort_by_key(|text| text.lines().count());
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
}

/// All operations at all time steps.
fn turns(elapsed: &[i64], ops: &[Op]) -> Vec<Turn> {
    elapsed.iter().flat_map(|&elapsed| ops.iter().map(move |&op| (elapsed, op))).collect()
}

/// Numbers of an algorithm: limits 1 to 3, scales 2 to 4, rates 1 and 2 of a bucket, denied hits that count or not.
fn numbers(algorithm: Algorithm) -> Vec<Spec> {
    let mut specs = Vec::new();
    for limit in 1..=3 {
        for scale in 2..=4 {
            let variants: &[(i64, bool)] = match algorithm {
                TokenBucket | LeakyBucket => &[(1, false), (2, false)],
                Concurrency => &[(1, false)],
                _ => &[(1, false), (1, true)],
            };
            for &(rate, counts) in variants {
                specs.push(Spec { algorithm, limit, scale, rate, counts, name: 0, shape: 0 });
            }
        }
    }
    specs
}

fn is_set_too_high(specs: &[Spec], op: Op) -> bool {
    matches!(op, Op::Set(position, count) if specs[position].algorithm == TokenBucket && count > specs[position].limit)
}

/// The operations that a scope of these policies may do.
fn possible(specs: &[Spec], ops: &[Op]) -> Vec<Op> {
    let slots = specs.iter().any(|spec| spec.algorithm == Concurrency);
    let is_possible = |op: &Op| match *op {
        Op::Hit(_) => !slots,
        Op::Inc(position, _) | Op::Set(position, _) => {
            position < specs.len() && specs[position].algorithm != Concurrency && !is_set_too_high(specs, *op)
        }
        _ => true,
    };
    ops.iter().copied().filter(is_possible).collect()
}

/// Everything but reservations, at all times.
const COUNTING: [Op; 13] = [
    Op::Hit(0),
    Op::Hit(1),
    Op::Hit(2),
    Op::Hit(3),
    Op::Peek(1),
    Op::Peek(3),
    Op::Inc(0, 1),
    Op::Inc(0, 3),
    Op::Inc(0, -1),
    Op::Inc(0, -2),
    Op::Set(0, 0),
    Op::Set(0, 2),
    Op::Reset,
];

/// Reservations, and what may come between.
const RESERVING: [Op; 14] = [
    Op::Hit(1),
    Op::Hit(2),
    Op::Peek(1),
    Op::Inc(0, 2),
    Op::Inc(0, -1),
    Op::Reset,
    Op::Reserve(0, 2),
    Op::Reserve(1, 3),
    Op::Reserve(2, 2),
    Op::Settle(0, None),
    Op::Settle(0, Some(0)),
    Op::Settle(1, Some(2)),
    Op::Extend(0, 1),
    Op::Extend(1, 4),
];

/// How much of each kind of scope is explored: six operations, with fewer of them the more there are to choose from.
fn alone(
    ops: &[Op],
    elapsed: &[i64],
    depth: usize,
    specs: impl Fn(&Spec) -> bool,
) -> Vec<(Vec<Spec>, Vec<Turn>, usize)> {
    let specs = ALGORITHMS.into_iter().flat_map(numbers).filter(specs);
    let is_busy = |spec: &Spec| possible(&[*spec], ops).iter().any(|op| !matches!(op, Op::Peek(_) | Op::Reset));
    let scope = |spec: Spec| (vec![spec], turns(elapsed, &possible(&[spec], ops)), depth);
    specs.filter(is_busy).map(scope).collect()
}

/// Pairs of algorithms, with numbers of which neither binds always.
fn pairs(ops: &[Op], elapsed: &[i64], depth: usize) -> Vec<(Vec<Spec>, Vec<Turn>, usize)> {
    let mut scopes = Vec::new();
    for (index, &one) in ALGORITHMS.iter().enumerate() {
        for &other in &ALGORITHMS[index..] {
            let first = Spec { algorithm: one, limit: 2, scale: 3, rate: 1, counts: false, name: 0, shape: 0 };
            let second = Spec { algorithm: other, limit: 3, scale: 4, rate: 2, counts: false, name: 1, shape: 1 };
            let specs = vec![first, second];
            let turns = turns(elapsed, &possible(&specs, ops));
            scopes.push((specs, turns, depth));
        }
    }
    scopes
}

/// Whether to explore more than fits into a minute: with `TOLLGATE_WIDE` set.
fn wide() -> bool {
    std::env::var_os("TOLLGATE_WIDE").is_some()
}

/// The numbers of scopes with many sequences, by default.
fn few(spec: &Spec) -> bool {
    wide() || spec.limit == spec.scale - 1
}

/// Those of scopes with very many.
fn fewest(spec: &Spec) -> bool {
    wide() || (spec.limit, spec.scale) == (2, 3)
}

const TIMES: [i64; 8] = [0, 1, 2, 3, 4, 5, -1, -9];

#[test]
fn counting_alone() {
    let depth = if wide() { 4 } else { 3 };
    explore("counting alone", alone(&COUNTING, &TIMES, depth, |_| true));
}

#[test]
fn counting_alone_six() {
    let ops = [Op::Hit(1), Op::Hit(2), Op::Inc(0, 3), Op::Inc(0, -1)];
    explore("six operations alone", alone(&ops, &[0, 1, 3, -2], 6, fewest));
}

#[test]
fn reserving_alone() {
    let times: &[i64] = if wide() { &TIMES } else { &[0, 1, 2, 4, -2, -9] };
    explore("reserving alone", alone(&RESERVING, times, 3, few));
}

#[test]
fn reserving_alone_six() {
    let ops = [Op::Hit(1), Op::Reserve(1, 2), Op::Settle(0, None), Op::Extend(0, 3)];
    explore("six operations with reservations alone", alone(&ops, &[0, 2, -2], 6, fewest));
}

#[test]
fn counting_in_pairs() {
    let ops = [
        Op::Hit(0),
        Op::Hit(1),
        Op::Hit(2),
        Op::Peek(2),
        Op::Inc(0, 2),
        Op::Inc(1, 1),
        Op::Inc(1, -1),
        Op::Set(0, 1),
        Op::Reset,
    ];
    let depth = if wide() { 4 } else { 3 };
    explore("counting in pairs", pairs(&ops, &[0, 1, 3, 5, -2, -9], depth));
}

#[test]
fn reserving_in_pairs() {
    let ops = [
        Op::Hit(1),
        Op::Inc(1, 1),
        Op::Reserve(1, 2),
        Op::Reserve(2, 4),
        Op::Settle(0, None),
        Op::Settle(1, Some(0)),
        Op::Extend(0, 3),
        Op::Reset,
    ];
    explore("reserving in pairs", pairs(&ops, &[0, 1, 2, 4, -2, -9], 3));
}

/// Exceptions with less and with more, that deny, that end, and that are lifted.
const EXCEPTING: [Op; 5] = [
    Op::Except(Excepted::Numbers(1, 3), 2),
    Op::Except(Excepted::Numbers(4, 0), 3),
    Op::Except(Excepted::Numbers(3, 2), 6),
    Op::Except(Excepted::Deny, 2),
    Op::Lift,
];

#[test]
fn excepted_alone() {
    let ops = [
        &EXCEPTING[..],
        &[Op::Hit(1), Op::Hit(2), Op::Hit(4), Op::Peek(2), Op::Inc(0, 3), Op::Reserve(1, 3), Op::Settle(0, None)],
    ]
    .concat();
    // A log of denied hits is bounded by the limiter's own limit as well.
    let is_bounded = |spec: &Spec| spec.algorithm == SlidingWindow && spec.counts;
    let depth = if wide() { 5 } else { 4 };
    explore("excepted alone", alone(&ops, &[0, 1, 3], depth, |spec| fewest(spec) && !is_bounded(spec)));
}

#[test]
fn excepted_in_pairs() {
    let ops = [&EXCEPTING[..], &[Op::Hit(1), Op::Hit(3), Op::Reserve(2, 2), Op::Settle(0, Some(1))]].concat();
    let depth = if wide() { 5 } else { 4 };
    explore("excepted in pairs", pairs(&ops, &[0, 1, 3], depth));
}

#[test]
fn six_in_pairs() {
    let ops = [Op::Hit(1), Op::Inc(1, 2), Op::Reserve(1, 2), Op::Settle(0, Some(1))];
    explore("six operations in pairs", pairs(&ops, &[0, 2], 6));
}
