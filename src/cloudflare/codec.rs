//! A record as bytes: what an object's row holds. Small numbers take one byte each.

use crate::record::MadeBy;
use crate::{Error, Record};

/// A record in bytes.
pub(super) fn encode(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, record.version);
    put(&mut bytes, record.states.len() as u64);
    for (made_by, state) in record.policies.iter().zip(&record.states) {
        put_text(&mut bytes, &made_by.name);
        put_text(&mut bytes, &made_by.algorithm);
        put(&mut bytes, made_by.scale);
        put(&mut bytes, state.len() as u64);
        for &number in state {
            // The sign goes to the lowest bit, so that numbers near zero stay short.
            put(&mut bytes, (number << 1 ^ number >> 63) as u64);
        }
    }
    bytes
}

/// The record in these bytes, which may be anything at all.
pub(super) fn decode(bytes: &[u8]) -> Result<Record, Error> {
    let mut rest = Rest(bytes);
    rest.record().filter(|_| rest.0.is_empty()).ok_or_else(|| Error::state("its bytes are not those of a record"))
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// What has not been read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn record(&mut self) -> Option<Record> {
        let version = self.number()?;
        let mut record = Record { version, policies: Vec::new(), states: Vec::new() };
        for _ in 0..self.number()? {
            let (name, algorithm, scale) = (self.text()?, self.text()?, self.number()?);
            record.policies.push(MadeBy { name, algorithm, scale });
            let mut state = Vec::new();
            for _ in 0..self.number()? {
                let number = self.number()?;
                state.push((number >> 1) as i64 ^ -((number & 1) as i64));
            }
            record.states.push(state);
        }
        Some(record)
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
    use crate::{Operation, Policies, Policy, step};

    #[test]
    fn what_is_written_is_read_again() {
        let policies =
            Policies::new([Policy::token_bucket(5, 1, "1s").unwrap(), Policy::sliding_window(9, "1d").unwrap()]);
        let policies = policies.unwrap();
        let hit = Operation::Hit { cost: 3 };
        let record = step(&policies, None, hit, 1_767_225_600_123).unwrap().record.unwrap();
        assert_eq!(decode(&encode(&record)).unwrap(), record);
        let mut extreme = record;
        extreme.states = vec![vec![i64::MIN, i64::MAX, 0, -1, 63, 64, -64, -65], vec![]];
        assert_eq!(decode(&encode(&extreme)).unwrap(), extreme);
    }

    #[test]
    fn anything_else_is_an_error_and_no_panic() {
        let policy = Policies::from(Policy::fix_window(5, "1s").unwrap());
        let bytes = encode(&step(&policy, None, Operation::Hit { cost: 1 }, 7_000).unwrap().record.unwrap());
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
        assert!(decode(&[1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).is_err());
        assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
    }
}
