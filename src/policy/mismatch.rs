//! The difference between the policies of one call and those of a limiter.

use crate::algorithm::any::AnyAlgorithm;
use crate::error::Mismatch;

/// Returns the first difference between a limiter's own algorithms and those of a call that was rejected.
pub(crate) fn mismatch(own: &[AnyAlgorithm], call: &[AnyAlgorithm]) -> Mismatch {
    let differ = own.iter().zip(call).find(|(one, other)| own.len() == call.len() && !one.has_shape_of(other));
    let Some((own, call)) = differ else { return Mismatch::Policies { found: call.len(), expected: own.len() } };
    if own.name() != call.name() {
        return Mismatch::Algorithm { found: call.name(), expected: own.name() };
    }
    if [own, call].iter().any(|algorithm| algorithm.stored_scale().calendar().is_some()) {
        return Mismatch::Calendar;
    }
    let field = if matches!(own, AnyAlgorithm::Bucket(_)) { "per" } else { "scale" };
    Mismatch::Scale { field, found: call.scale(), expected: own.scale() }
}
