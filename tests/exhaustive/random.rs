//! Random cases that are the same on every run, and the shortest form of one that fails.

use crate::oracle::{Algorithm, Key, Op, Spec, TokenBucket};

/// A generator of random numbers (splitmix64).
pub(crate) struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`.
    pub(crate) fn within(&mut self, least: i64, most: i64) -> i64 {
        least + (self.next() % (most - least + 1) as u64) as i64
    }

    /// Whether something happens that does so once in `times`.
    pub(crate) fn once_in(&mut self, times: i64) -> bool {
        self.within(1, times) == 1
    }

    pub(crate) fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.within(0, list.len() as i64 - 1) as usize]
    }
}

/// One step of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) elapsed: i64,
    /// Which of the case's lists of policies the operation is done under.
    pub(crate) version: usize,
    pub(crate) op: Op,
    /// What happens around it, for properties that disturb a key.
    pub(crate) noise: i64,
}

/// Lists of policies, and what is done to one key under them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) versions: Vec<Vec<Spec>>,
    pub(crate) start: i64,
    pub(crate) steps: Vec<Step>,
}

impl Case {
    pub(crate) fn key(&self) -> Key {
        Key::new(self.versions.iter().flatten())
    }
}

/// Gives policies of one shape its number.
pub(crate) fn number_shapes(versions: &mut [Vec<Spec>]) {
    let mut known: Vec<Spec> = Vec::new();
    for spec in versions.iter_mut().flatten() {
        spec.shape = known.iter().position(|other| other.has_shape_of(spec)).unwrap_or(known.len());
        if spec.shape == known.len() {
            known.push(*spec);
        }
    }
}

/// A policy with numbers so small that limits are reached.
pub(crate) fn spec(rng: &mut Rng, algorithm: Algorithm, name: usize) -> Spec {
    let limit = if rng.once_in(5) { rng.within(10, 60) } else { rng.within(1, 8) };
    let scale = if rng.once_in(5) { rng.within(100, 5_000) } else { rng.within(2, 60) };
    let rate = if algorithm.is_bucket() { rng.within(1, 6) } else { 1 };
    Spec { algorithm, limit, scale, rate, counts: false, name, shape: 0 }
}

/// The same with another limit and rate.
pub(crate) fn other_numbers(rng: &mut Rng, spec: Spec) -> Spec {
    let limit = if rng.once_in(3) { spec.limit } else { rng.within(1, 12) };
    let rate = if spec.algorithm.is_bucket() && !rng.once_in(3) { rng.within(1, 12) } else { spec.rate };
    Spec { limit, rate, ..spec }
}

/// What is done, on average: mostly hits, and time steps of any length up to one and a half periods.
pub(crate) fn steps(rng: &mut Rng, versions: &[Vec<Spec>], most: i64, reserves: bool) -> Vec<Step> {
    let (any, length) = (versions[0][0], rng.within(1, most));
    let step = |_| {
        let period = any.period().max(2);
        let elapsed = match rng.within(0, 5) {
            0 | 1 => 0,
            2 => rng.within(1, 3),
            3 | 4 => rng.within(1, period / 2 + 1),
            _ => rng.within(1, period * 3 / 2),
        };
        let version = rng.within(0, versions.len() as i64 - 1) as usize;
        let specs = &versions[version];
        let position = rng.within(0, specs.len() as i64 - 1) as usize;
        let spec = specs[position];
        let cost = if rng.once_in(4) { rng.within(0, spec.limit + 1) } else { rng.within(0, 3) };
        let ttl = rng.within(1, period * 2);
        let op = match rng.within(0, if reserves { 19 } else { 11 }) {
            0..=5 => Op::Hit(cost),
            6 => Op::Peek(cost),
            7 => Op::Inc(position, cost.max(1)),
            8 => Op::Inc(position, -cost.max(1)),
            9 if spec.algorithm == TokenBucket => Op::Set(position, cost.min(spec.limit)),
            9 => Op::Set(position, cost),
            10 if rng.once_in(3) => Op::Reset,
            10 | 11 => Op::Hit(1),
            12..=15 => Op::Reserve(cost, ttl),
            16 | 17 => Op::Settle(rng.within(0, 2) as usize, None),
            18 => Op::Settle(rng.within(0, 2) as usize, Some(cost)),
            _ => Op::Extend(rng.within(0, 2) as usize, ttl),
        };
        Step { elapsed, version, op, noise: rng.within(0, 1 << 20) }
    };
    (0..length).map(step).collect()
}

/// The seed of all cases; `TOLLGATE_SEED=7 npm test` tries others.
fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260_101)
}

/// The same case with one step less, or with less around a step.
fn shorter(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    for index in 0..case.steps.len() {
        let mut shorter = case.clone();
        let gone = shorter.steps.remove(index);
        all.push(shorter.clone());
        if let Some(next) = shorter.steps.get_mut(index) {
            next.elapsed += gone.elapsed;
            all.push(shorter);
        }
    }
    for index in 0..case.steps.len() {
        for bit in (0..20).filter(|bit| case.steps[index].noise >> bit & 1 == 1) {
            let mut calmer = case.clone();
            calmer.steps[index].noise &= !(1 << bit);
            all.push(calmer);
        }
    }
    all
}

/// Runs a property over random cases. One that fails is shortened as long as it fails.
pub(crate) fn check(
    title: &str,
    cases: u64,
    mut make: impl FnMut(&mut Rng) -> Case,
    mut property: impl FnMut(&Case) -> Result<u64, String>,
) {
    let mut operations = 0;
    for number in 0..cases {
        let mut case = make(&mut Rng(seed().wrapping_mul(1_000_003).wrapping_add(number)));
        match property(&case) {
            Ok(done) => operations += done,
            Err(mut reason) => {
                let mut tries = true;
                while tries {
                    tries = false;
                    for shorter in shorter(&case) {
                        if let Err(shorter_reason) = property(&shorter) {
                            (case, reason, tries) = (shorter, shorter_reason, true);
                            break;
                        }
                    }
                }
                let steps: Vec<_> = case.steps.iter().map(|step| format!("  {step:?}")).collect();
                let versions: Vec<_> = case.versions.iter().map(|specs| format!("  {specs:?}")).collect();
                panic!(
                    "{title}, case {number}: {reason}\nversions\n{}\nfrom {}\n{}",
                    versions.join("\n"),
                    case.start,
                    steps.join("\n")
                );
            }
        }
    }
    println!("{title}: {operations} operations in {cases} cases");
}
