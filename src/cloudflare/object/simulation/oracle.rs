//! The definitions of the policies, against which the uses are checked.

use std::collections::BTreeSet;

use super::START;
use super::random::Random;
use super::scenario::Load;
use super::world::{Use, World};
use crate::{Answer, Ledger, Operation, Policy};

/// Asserts that the uses are no more than the definition of the policy allows.
pub(super) fn check(policy: &Policy, world: &World) {
    check_at(0, policy, world);
}

/// Asserts the same for the policy at a position, of the uses under plans with that policy.
pub(super) fn check_at(position: usize, policy: &Policy, world: &World) {
    let is_counted = |used: &&Use| world.plans[used.plan].positions.contains(&position);
    let mut uses: Vec<(u64, u64)> = world.uses.iter().filter(is_counted).map(|used| (used.at, used.cost)).collect();
    uses.sort_unstable();
    let (limit, scale) = (u128::from(policy.limit()), policy.scale());
    let within = |from: u64, to: u64| {
        let (first, last) = (uses.partition_point(|&(at, _)| at < from), uses.partition_point(|&(at, _)| at < to));
        uses[first..last.max(first)].iter().map(|&(_, cost)| u128::from(cost)).sum::<u128>()
    };
    match policy.algorithm() {
        "fix_window" => {
            let windows: BTreeSet<u64> = uses.iter().map(|(at, _)| at - at % scale).collect();
            for start in windows {
                assert!(within(start, start + scale) <= limit, "{policy:?} from {start}");
            }
        }
        "fix_window_per_key" => {
            let mut edges = vec![0];
            edges.extend(world.window_starts.iter().flat_map(|&start| [start, start + scale]));
            edges.push(u64::MAX);
            for edge in edges.windows(2).filter(|edge| edge[0] < edge[1]) {
                assert!(within(edge[0], edge[1]) <= limit, "{policy:?} from {edge:?}");
            }
        }
        "sliding_window" => {
            let (mut first, mut sum) = (0, 0);
            for &(at, cost) in &uses {
                sum += u128::from(cost);
                while uses[first].0 + scale <= at {
                    sum -= u128::from(uses[first].1);
                    first += 1;
                }
                assert!(sum <= limit, "{policy:?} at {at}: {sum}");
            }
        }
        "sliding_counter" => {
            let (mut start, mut previous, mut current) = (0, 0_u128, 0_u128);
            for &(at, cost) in &uses {
                let window = at - at % scale;
                if window != start {
                    previous = if window == start + scale { current } else { 0 };
                    (start, current) = (window, 0);
                }
                current += u128::from(cost);
                let weighted = previous * u128::from(scale - (at - window)) + current * u128::from(scale);
                assert!(weighted <= limit * u128::from(scale), "{policy:?} at {at}");
            }
        }
        _ => {
            // The level of a bucket, in parts of a hit.
            let (rate, mut level, mut last) = (u128::from(policy.algorithm.rate()), 0_u128, 0);
            for &(at, cost) in &uses {
                level = level.saturating_sub(rate * u128::from(at - last)) + u128::from(cost) * u128::from(scale);
                last = at;
                assert!(level <= limit * u128::from(scale), "{policy:?} at {at}: {level}");
            }
        }
    }
}

/// Returns the amount that one exact limiter admits of the same traffic without delays.
pub(super) fn admitted_at_once(policy: &Policy, load: Load, seed: u64) -> u64 {
    let mut ledger = Ledger::new(policy.clone()).unwrap();
    let mut random = Random(seed);
    let (mut next, mut admitted) = (START, 0);
    for _ in 0..load.hits {
        if let (Answer::Decision(decision), _) = ledger.apply(Operation::Hit { cost: 1 }, next).unwrap() {
            admitted += u64::from(decision.allowed);
        }
        next += load.gap(&mut random);
    }
    admitted
}
