//! Numbers of JavaScript as the core takes them.

use tollgate::MAX;
use tollgate::binding::{AS_RESERVED, Failure, PolicyNumbers, PositionCosts, Rules, schema};

/// Returns the cost or count that JavaScript gave, if it is one.
#[inline(always)]
pub(crate) fn integer(number: f64) -> Option<u64> {
    // A fraction and NaN come back as something else. Machines convert signed numbers in fewer steps.
    let integer = number as i64;
    (integer as f64 == number && integer as u64 <= MAX).then_some(integer as u64)
}

/// Returns the cost that JavaScript gave, if it is one, where it may be negative.
pub(crate) fn signed(number: f64) -> Option<i64> {
    let magnitude = integer(number.abs())? as i64;
    Some(if number < 0.0 { -magnitude } else { magnitude })
}

/// Returns the costs by position that JavaScript wrote; a negative one stands for as much as was reserved.
pub(crate) fn costs(numbers: &[f64]) -> Option<PositionCosts> {
    let mut costs = [AS_RESERVED; schema::MAX_POLICIES];
    for (cost, number) in costs.iter_mut().zip(numbers) {
        if *number != -1.0 {
            *cost = integer(*number)?;
        }
    }
    Some(PositionCosts::Each(costs))
}

/// Returns the time that JavaScript gave, if it is one. A fraction is floored.
#[inline(always)]
pub(crate) fn time(now: f64) -> Option<u64> {
    (now >= 0.0 && now <= MAX as f64).then_some(now as i64 as u64)
}

/// How many numbers of a policy cross: algorithm, limit, rate and scale.
pub(crate) const PER_POLICY: usize = 4;

/// Reads the numbers of policies; the position of the first that is out of range if one is.
pub(crate) fn policies(numbers: &[f64]) -> Result<Rules, Failure> {
    let mut rules = Rules::default();
    for numbers in numbers.as_chunks::<PER_POLICY>().0 {
        let &[.., scale] = numbers;
        let [algorithm, limit, rate, _] = numbers.map(|number| integer(number).unwrap_or(0));
        if algorithm as usize >= schema::ALGORITHMS.len() || limit == 0 || rate == 0 || scale as i64 as f64 != scale {
            return Err(Failure::At(rules.len()));
        }
        rules.add(&PolicyNumbers { algorithm: algorithm as usize, limit, rate, scale: scale as i64 })?;
    }
    Ok(rules)
}
