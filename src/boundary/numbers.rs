//! Conversion of JavaScript's numbers into those of the core.

use super::{AS_RESERVED, Algorithms, Failure, PolicyNumbers, PositionCosts, schema};
use crate::MAX;

/// Converts a cost or count; `None` if invalid.
#[inline(always)]
pub fn integer(number: f64) -> Option<u64> {
    // A fraction or NaN does not equal its integer. Machines convert signed numbers in fewer steps.
    let integer = number as i64;
    (integer as f64 == number && integer as u64 <= MAX).then_some(integer as u64)
}

/// Converts a cost that may be negative; `None` if invalid.
pub fn signed(number: f64) -> Option<i64> {
    let magnitude = integer(number.abs())? as i64;
    Some(if number < 0.0 { -magnitude } else { magnitude })
}

/// Converts costs by position; `None` if invalid. A cost of -1 is as much as was reserved.
pub fn costs(numbers: &[f64]) -> Option<PositionCosts> {
    let mut costs = [AS_RESERVED; schema::MAX_POLICIES];
    for (cost, number) in costs.iter_mut().zip(numbers) {
        if *number != -1.0 {
            *cost = integer(*number)?;
        }
    }
    Some(PositionCosts::Each(costs))
}

/// Converts a time; `None` if invalid. A fraction is rounded down.
#[inline(always)]
pub fn time(now: f64) -> Option<u64> {
    (now >= 0.0 && now <= MAX as f64).then_some(now as i64 as u64)
}

/// The numbers of a policy: algorithm, limit, rate, scale, and the length and `most` of a ban.
pub const PER_POLICY: usize = 6;

/// Converts the numbers of policies.
///
/// # Errors
///
/// At the position of the first invalid policy.
pub fn policies(numbers: &[f64]) -> Result<Algorithms, Failure> {
    let mut algorithms = Algorithms::default();
    for numbers in numbers.as_chunks::<PER_POLICY>().0 {
        let &[.., scale, _, _] = numbers;
        let [algorithm, limit, rate, _, length, most] = numbers.map(|number| integer(number).unwrap_or(0));
        if algorithm as usize >= schema::ALGORITHMS.len() || limit == 0 || rate == 0 || scale as i64 as f64 != scale {
            return Err(Failure::At(algorithms.len()));
        }
        let (algorithm, scale) = (algorithm as usize, scale as i64);
        algorithms.add(&PolicyNumbers { algorithm, limit, rate, scale, length, most })?;
    }
    Ok(algorithms)
}
