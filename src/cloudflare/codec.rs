//! States as bytes: what an object's row holds. Small numbers take one byte each.

use super::states::{Kept, States};
use crate::Error;
use crate::record::{MadeBy, check_version};

/// The version of these bytes.
const VERSION: u64 = crate::record::VERSION;

/// States in bytes.
pub(super) fn encode(states: &States) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, VERSION);
    put(&mut bytes, states.0.len() as u64);
    for Kept { made_by, state, earlier, count, ends } in &states.0 {
        put_text(&mut bytes, &made_by.name);
        put_text(&mut bytes, &made_by.algorithm);
        for number in [made_by.scale, *count, *ends] {
            put(&mut bytes, number);
        }
        put_list(&mut bytes, state);
        put_list(&mut bytes, earlier);
    }
    bytes
}

/// The states in these bytes, which may be anything at all.
pub(super) fn decode(bytes: &[u8]) -> Result<States, Error> {
    let mut rest = Rest(bytes);
    if let Some(version) = rest.number() {
        check_version(version)?;
    }
    rest.states().filter(|_| rest.0.is_empty()).ok_or_else(|| Error::state("its bytes are not those of states"))
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_list(bytes: &mut Vec<u8>, numbers: &[i64]) {
    put(bytes, numbers.len() as u64);
    for &number in numbers {
        // The sign goes to the lowest bit, so that numbers near zero stay short.
        put(bytes, (number << 1 ^ number >> 63) as u64);
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// What has not been read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn states(&mut self) -> Option<States> {
        let mut states = States::default();
        for _ in 0..self.number()? {
            let made_by = MadeBy { name: self.text()?, algorithm: self.text()?, scale: self.number()? };
            let (count, ends) = (self.number()?, self.number()?);
            let (state, earlier) = (self.list()?, self.list()?);
            states.0.push(Kept { made_by, state, earlier, count, ends });
        }
        Some(states)
    }

    fn list(&mut self) -> Option<Vec<i64>> {
        let mut list = Vec::new();
        for _ in 0..self.number()? {
            let number = self.number()?;
            list.push((number >> 1) as i64 ^ -((number & 1) as i64));
        }
        Some(list)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ledger, Operation, Policies, Policy};

    fn states() -> States {
        let policies = [Policy::token_bucket(5, 1, "1s").unwrap(), Policy::sliding_window(9, "1d").unwrap()];
        let mut ledger = Ledger::new(Policies::new(policies).unwrap()).unwrap();
        ledger.apply(Operation::Hit { cost: 3 }, 1_767_225_600_123).unwrap();
        let mut states = States::default();
        states.keep(&ledger, 1_767_225_600_123);
        states
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut states = states();
        assert_eq!((states.0.len(), decode(&encode(&states)).unwrap()), (2, states.clone()));
        states.0[0].state = vec![i64::MIN, i64::MAX, 0, -1, 63, 64, -64, -65];
        (states.0[0].count, states.0[0].ends) = (u64::MAX, 0);
        states.0[1].state.clear();
        states.0[1].earlier = vec![86_400_000, 1_767_225_600_123, 0, -1];
        assert_eq!(decode(&encode(&states)).unwrap(), states);
    }

    #[test]
    fn anything_else_is_an_error_and_no_panic() {
        let bytes = encode(&states());
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err());
        }
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                let _ = decode(&wrong);
            }
        }
        assert!(decode(&[2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).is_err());
        assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
        assert_eq!(decode(&[1, 0]).unwrap_err().code(), "unsupported_version");
    }
}
