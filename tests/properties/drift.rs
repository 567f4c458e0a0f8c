//! Buckets never drift: after 100,000 steps they are where fractions of any size say they are.

use num_bigint::BigInt;
use num_rational::BigRational;

use crate::support::*;

const STEPS: u32 = 100_000;

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn whole(number: u64) -> BigRational {
    BigRational::from_integer(number.into())
}

fn ratio(numerator: u64, denominator: u64) -> BigRational {
    BigRational::new(numerator.into(), denominator.into())
}

/// Costs up to `capacity`, at intervals that refill about as much as is asked for.
fn never_drifts(kind: Kind, capacity: u64, rate: u64, per: u64) {
    let spec = Spec { kind, limit: capacity, rate, scale: per, denied: tollgate::Denied::Free };
    let (mut ledger, mut random) = (spec.ledger(), Random(capacity ^ rate << 20 ^ per << 40));
    let (full, empty) = (whole(capacity), whole(0));
    let mut room: BigRational = full.clone();
    let (mut now, mut last, mut allowed) = (1_767_225_600_000, 1_767_225_600_000, 0);
    let most_cost = capacity.min(4);
    let interval = (most_cost * per / rate).max(2);
    for step in 0..STEPS {
        now += random.below(interval);
        let cost = 1 + random.below(most_cost);
        // The oracle adds up what flowed since the last step, as fractions.
        room = (room + ratio((now - last) * rate, per)).min(full.clone());
        last = now;
        let fits = room >= whole(cost);
        if fits {
            room -= whole(cost);
            allowed += 1;
        }
        let decision = hit(&mut ledger, cost, now);
        assert_eq!(decision.allowed, fits, "step {step}");
        assert_eq!(room.to_integer(), BigInt::from(decision.remaining), "step {step}: {decision:?}, {room}");
        if step % 100 == 0 {
            let missing = &full - &room;
            let wait: u64 = (missing * ratio(per, rate)).ceil().to_integer().try_into().unwrap();
            assert_eq!(decision.reset_after, wait, "step {step}");
        }
    }
    assert!(room >= empty && (STEPS / 10..STEPS * 9 / 10 + 1).contains(&allowed), "{allowed} of {STEPS} allowed");
}

#[test]
fn a_token_bucket_with_an_odd_rate() {
    never_drifts(TokenBucket, 10, 3, 1_000);
}

#[test]
fn a_leaky_bucket_with_an_odd_rate() {
    never_drifts(LeakyBucket, 7, 13, 997);
}

#[test]
fn a_token_bucket_whose_rate_is_above_its_capacity() {
    never_drifts(TokenBucket, 2, 1_009, 1_000_003);
}

#[test]
fn a_token_bucket_with_a_long_per() {
    never_drifts(TokenBucket, 11, 7, (1 << 21) + 9);
}

#[test]
fn a_leaky_bucket_over_a_day() {
    never_drifts(LeakyBucket, 100, 86_399, 86_400_000);
}
