//! Policies with their text in a log.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::ReplayError;
use super::text::Cursor;
use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::ban::Ban;
use crate::algorithm::window::{self, Window};
use crate::policy::scale::Scale;
use crate::policy::schema::{ALGORITHM_SCHEMAS, BAN};
use crate::store::ledger::check_stored;
use crate::{Denied, Error, MAX, Policies, Policy};

/// What a state depends on: the name of its policy, the algorithm and the scale.
type Shape<'a> = (&'a str, &'a str, i64);

/// Policies with their text.
#[derive(Debug)]
pub(super) struct PolicySet {
    pub(super) policies: Policies,
    pub(super) text: String,
    /// Whether denied hits are free, so that they change no state.
    pub(super) denied_free: bool,
}

impl PolicySet {
    pub(super) fn new(policies: Policies) -> Result<Self, Error> {
        check_stored(&policies)?;
        let text = format_policies(&policies);
        let denied_free = policies.denied() == Denied::Free;
        Ok(Self { policies, text, denied_free })
    }

    /// Parses the text of policies.
    pub(super) fn parse(text: &str) -> Result<Self, ReplayError> {
        let set = Self::new(parse_policies(text)?)?;
        // The same policies always have the same text.
        if set.text == text { Ok(set) } else { Err(ReplayError::Malformed) }
    }

    /// Returns the limit of the policy at a position, and what its state depends on.
    pub(super) fn limit_and_shape(&self, position: usize) -> Option<(u64, Shape<'_>)> {
        let (name, policy) = self.policies.names().zip(self.policies.iter()).nth(position)?;
        let algorithm = &policy.algorithm;
        Some((algorithm.limit(), (name, policy.algorithm(), algorithm.stored_scale().number())))
    }

    /// Returns the limit of the policy with a shape, if there is one.
    pub(super) fn limit_of(&self, shape: Shape<'_>) -> Option<u64> {
        let all = (0..self.policies.len()).filter_map(|position| self.limit_and_shape(position));
        all.filter(|(_, own)| *own == shape).map(|(limit, _)| limit).next()
    }

    /// Returns how long a state lasts at most after a hit, in milliseconds, if there is no debt.
    pub(super) fn max_lifetime(&self) -> u64 {
        let lifetime = |policy: &Policy| match &policy.algorithm {
            // A sliding counter weighs the hits of one window in the next one.
            AnyAlgorithm::Window(Window { kind: window::Kind::Sliding, scale, .. }) => 2 * scale,
            // With a factor, a ban is remembered for as long as it lasted.
            AnyAlgorithm::Ban(ban) => ban.scale.max(if ban.factor > 1 { 2 * ban.most } else { ban.most }),
            algorithm @ (AnyAlgorithm::Window(_)
            | AnyAlgorithm::SlidingWindow(_)
            | AnyAlgorithm::Bucket(_)
            | AnyAlgorithm::Concurrency(_)) => algorithm.period(),
        };
        self.policies.iter().map(lifetime).max().unwrap_or(0).min(MAX)
    }
}

/// Returns the text of policies, in letters, digits and `.,'%_-`: for each the position of the algorithm, limit, rate and
/// scale, and of a ban how many denials begin it, factor, scale, length and `most`; `c` or `f` if `denied` is set; and the
/// name if there is one.
fn format_policies(policies: &Policies) -> String {
    let mut text = String::new();
    for (position, policy) in policies.iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        let algorithm = &policy.algorithm;
        let scale = algorithm.stored_scale().number();
        if let AnyAlgorithm::Ban(Ban { after, factor, length, most, .. }) = algorithm {
            text.push_str(&format!("{BAN}.{after}.{factor}.{scale}.{length}.{most}"));
        } else {
            text.push_str(&format!("{}.{}.{}.{scale}", algorithm.position(), algorithm.limit(), algorithm.rate()));
        }
        match policy.denied {
            None => {}
            Some(Denied::Count) => text.push('c'),
            Some(Denied::Free) => text.push('f'),
        }
        if let Some(name) = policy.name() {
            text.push('\'');
            push_escaped(&mut text, name);
        }
    }
    text
}

/// Appends a name with all bytes escaped that the format reserves.
fn push_escaped(text: &mut String, name: &str) {
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02x}")),
        }
    }
}

fn parse_policies(text: &str) -> Result<Policies, ReplayError> {
    let list: Result<Vec<Policy>, ReplayError> = text.split(',').map(parse_policy).collect();
    Ok(Policies::new(list?)?)
}

fn parse_policy(text: &str) -> Result<Policy, ReplayError> {
    let (numbers, name) = text.split_once('\'').map_or((text, None), |(numbers, name)| (numbers, Some(name)));
    let mut cursor = Cursor::new(numbers);
    let algorithm = cursor.decimal()? as usize;
    let mut number = || {
        cursor.expect(b'.')?;
        cursor.signed()
    };
    let (limit, rate, scale) = (number()?, number()?, number()?);
    if algorithm >= ALGORITHM_SCHEMAS.len() {
        // An algorithm of a later version.
        return Err(ReplayError::UnsupportedVersion);
    }
    let scale = Scale::from_number(scale, algorithm).ok_or(ReplayError::Malformed)?;
    let (limit, rate) = (limit.max(0) as u64, rate.max(0) as u64);
    let mut policy = if algorithm == BAN {
        let (length, most) = (number()?, number()?);
        Policy::of_ban(limit, rate, scale.length(), length.max(0) as u64, most.max(0) as u64)?
    } else {
        Policy::from_numbers(algorithm, limit, rate, scale)?
    };
    if cursor.take(b'c') {
        policy = policy.denied(Denied::Count)?;
    } else if cursor.take(b'f') {
        policy = policy.denied(Denied::Free)?;
    }
    if !cursor.is_empty() {
        return Err(ReplayError::UnsupportedVersion);
    }
    match name {
        Some(name) => Ok(policy.named(&unescape(name)?)?),
        None => Ok(policy),
    }
}

fn unescape(text: &str) -> Result<String, ReplayError> {
    let mut parts = text.split('%');
    let mut name = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (code, rest) = part.split_at_checked(2).ok_or(ReplayError::Malformed)?;
        let byte = u8::from_str_radix(code, 16).map_err(|_| ReplayError::Malformed)?;
        name.push(char::from(byte));
        name.push_str(rest);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(policies: impl IntoIterator<Item = Policy>) -> PolicySet {
        PolicySet::new(Policies::new(policies).unwrap()).unwrap()
    }

    #[test]
    fn policies_are_read_as_they_were_written() {
        let name = "50% off! @home; ~a|b'c,d.e";
        let one = set([Policy::fix_window(100, "1m").unwrap().denied(Denied::Free).unwrap()]);
        assert_eq!(one.text, "0.100.1.60000f");
        let several = set([
            Policy::sliding_window(9, 7).unwrap().named(name).unwrap(),
            Policy::token_bucket(500, 100, "1s").unwrap(),
            Policy::leaky_bucket(5, 3, "1h").unwrap().denied(Denied::Free).unwrap().named("x").unwrap(),
        ]);
        for set in [one, several] {
            let read = PolicySet::parse(&set.text).unwrap();
            assert_eq!(read.policies, set.policies);
            assert!(!set.text.bytes().any(|byte| b"!\"@;|~#* \n".contains(&byte)), "{}", set.text);
        }
    }

    #[test]
    fn an_invalid_text_is_an_error() {
        for text in ["", "0", "0.1.1", "0.0.1.1", "0.1.1.0", "x.1.1.1", "0.1.1.1'%", "0.1.1.1'%zz", "0.1.1.1,"] {
            assert_eq!(PolicySet::parse(text).unwrap_err(), ReplayError::Malformed, "{text}");
        }
        for text in ["99.1.1.1", "0.1.1.1z", "0.1.1.1.5"] {
            assert_eq!(PolicySet::parse(text).unwrap_err(), ReplayError::UnsupportedVersion, "{text}");
        }
    }
}
