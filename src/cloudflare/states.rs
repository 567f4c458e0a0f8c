//! All that an object holds of its key: the state of every policy that was ever asked about it, by the policy's name.

use crate::record::MadeBy;
use crate::{Error, Ledger, Record};
use serde_json::json;

/// The states of one key, each under a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct States(pub(super) Vec<Kept>);

/// One policy's state, and what can be told of it when the policy is not at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) made_by: MadeBy,
    pub(super) state: Vec<i64>,
    /// Its state under another scale: the scale, when it is no longer kept, the numbers. Empty if there is none.
    pub(super) earlier: Vec<i64>,
    /// What it held when it was last touched.
    pub(super) count: u64,
    /// When it ends.
    pub(super) ends: u64,
}

impl Kept {
    /// Returns the fields of a log line about it, in JSON.
    fn fields(&self) -> String {
        let (name, algorithm) = (json!(self.made_by.name), json!(self.made_by.algorithm));
        let Self { count, ends, .. } = self;
        format!(r#""policy":{name},"algorithm":{algorithm},"count":{count},"expiredAt":{ends}"#)
    }
}

/// What came of loading states under policies that may have changed since they were kept.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// The policies that start afresh, because another algorithm made what was kept.
    pub(super) afresh: Vec<String>,
    /// Whether what is kept is no longer what it means, and so must be kept anew.
    pub(super) changed: bool,
}

impl States {
    /// Puts the states of a ledger's policies into it.
    pub(super) fn load(&self, ledger: &mut Ledger, now: u64) -> Result<Loaded, Error> {
        let found: Vec<&Kept> = ledger.policies().names().filter_map(|name| self.find(name)).collect();
        let made_by = found.iter().map(|kept| kept.made_by.clone()).collect();
        let states = found.iter().map(|kept| kept.state.clone()).collect();
        let of_another_scale = found.iter().enumerate().filter(|(_, kept)| !kept.earlier.is_empty());
        let earlier = of_another_scale.map(|(number, kept)| [&[number as i64], &kept.earlier[..]].concat()).collect();
        let record =
            Record { version: crate::record::VERSION, policies: made_by, states, earlier, reservations: Vec::new() };
        let mut loaded = Loaded { afresh: ledger.load(&record, now)?, changed: false };
        let policies = ledger.policies();
        for ((name, policy), (_, ends)) in policies.names().zip(policies.iter()).zip(ledger.last_values()) {
            let Some(kept) = self.find(name) else { continue };
            // Converted once more at a later time, it would come to something else; and a state that now lives longer
            // must not be deleted at its old end.
            loaded.changed |= !kept.made_by.suits(policy) || ends > kept.ends;
        }
        Ok(loaded)
    }

    /// Keeps the states of a ledger, and leaves those of other policies as they are.
    pub(super) fn keep(&mut self, ledger: &Ledger, now: u64) {
        let policies = ledger.policies();
        let facts = policies.names().zip(policies.iter()).zip(ledger.last_values());
        let mut of_another_scale = ledger.earlier(now);
        for (position, (((name, policy), (count, ends)), state)) in facts.zip(ledger.states()).enumerate() {
            let row = of_another_scale.iter().position(|row| row.first() == Some(&(position as i64)));
            let earlier = row.map(|row| of_another_scale.swap_remove(row).split_off(1)).unwrap_or_default();
            let known = self.0.iter().position(|kept| kept.made_by.name == name);
            if ends > now {
                let kept = Kept { made_by: MadeBy::of(name, policy), state, earlier, count, ends };
                match known {
                    Some(at) => self.0[at] = kept,
                    None => self.0.push(kept),
                }
            } else if let Some(at) = known.filter(|&at| self.0[at].ends > now) {
                // It is as if never used. One that ended by itself stays until that was told.
                self.0.remove(at);
            }
        }
    }

    /// Takes out what has ended.
    pub(super) fn take_ended(&mut self, now: u64) -> Self {
        Self(self.0.extract_if(.., |kept| kept.ends <= now).collect())
    }

    /// When the last of them ends.
    pub(super) fn ends(&self) -> u64 {
        self.0.iter().map(|kept| kept.ends).max().unwrap_or_default()
    }

    /// Returns the states as JSON, in the words of a log.
    pub(super) fn to_json(&self) -> String {
        format!("[{}]", self.0.iter().map(|kept| format!("{{{}}}", kept.fields())).collect::<Vec<_>>().join(","))
    }

    /// Returns a line for the log of each state, which has ended, of an object.
    pub(super) fn log_lines(&self, object: &str) -> impl Iterator<Item = String> {
        self.0.iter().map(move |kept| format!(r#"{{"event":"expired","object":"{object}",{}}}"#, kept.fields()))
    }

    fn find(&self, name: &str) -> Option<&Kept> {
        self.0.iter().find(|kept| kept.made_by.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Operation, Policies, Policy};

    const HOUR: u64 = 3_600_000;

    fn named(name: &str, policy: Policy) -> Policy {
        policy.named(name).unwrap().denied(crate::Denied::Free).unwrap()
    }

    fn window(name: &str, limit: u64, scale: u64) -> Policy {
        named(name, Policy::fix_window_per_key(limit, scale).unwrap())
    }

    /// Does an operation on what is kept, as an object does it that has no memory.
    fn apply(states: &mut States, policies: &[Policy], operation: Operation<'_>, now: u64) -> Answer {
        let mut ledger = Ledger::new(Policies::new(policies.to_vec()).unwrap()).unwrap();
        let loaded = states.load(&mut ledger, now).unwrap();
        let (answer, changed) = ledger.apply(operation, now).unwrap();
        if changed || loaded.changed {
            states.keep(&ledger, now);
        }
        answer
    }

    fn allowed(states: &mut States, policies: &[Policy], cost: u64, now: u64) -> bool {
        matches!(apply(states, policies, Operation::Hit { cost }, now), Answer::Decision(decision) if decision.allowed)
    }

    #[test]
    fn each_policy_has_one_state_with_whomever_it_is_asked() {
        let api = [window("api", 3, HOUR)];
        let day = [named("day", Policy::token_bucket(9, 1, "1d").unwrap())];
        let get = |states: &mut States, policies| apply(states, policies, Operation::Get { policy: None }, 0);
        let mut states = States::default();
        assert!(allowed(&mut states, &api, 2, 0));
        assert!(allowed(&mut states, &day, 1, 0));
        assert!(allowed(&mut states, &[&day[..], &api[..]].concat(), 1, 0));
        assert!(!allowed(&mut states, &[&api[..], &day[..]].concat(), 1, 0));
        assert_eq!(get(&mut states, &day), Answer::Number(7));
        apply(&mut states, &api, Operation::Reset, 0);
        assert_eq!((get(&mut states, &api), get(&mut states, &day)), (Answer::Number(0), Answer::Number(7)));
    }

    #[test]
    fn a_converted_state_is_kept_so_that_it_is_converted_once() {
        let mut states = States::default();
        assert!(allowed(&mut states, &[window("api", 2, HOUR)], 2, 0));
        // The whole count starts a window of two hours, at the first look under the new policy and not again later.
        let longer = [window("api", 2, 2 * HOUR)];
        let expires = |states: &mut States, now| apply(states, &longer, Operation::ExpiresAt { policy: None }, now);
        assert!(!allowed(&mut states, &longer, 1, HOUR / 2));
        assert_eq!(expires(&mut states, HOUR / 2), Answer::Number(HOUR / 2 + 2 * HOUR));
        assert_eq!(expires(&mut states, HOUR), Answer::Number(HOUR / 2 + 2 * HOUR));
        assert!(!allowed(&mut states, &longer, 1, HOUR / 2 + 2 * HOUR - 1));
        assert!(allowed(&mut states, &longer, 1, HOUR / 2 + 2 * HOUR));
    }

    #[test]
    fn a_state_that_lives_longer_by_a_slower_rate_is_kept_for_longer() {
        let bucket = |per| [named("api", Policy::token_bucket(2, 1, per).unwrap())];
        let mut states = States::default();
        assert!(allowed(&mut states, &bucket("1h"), 2, 0));
        assert_eq!(states.ends(), 2 * HOUR);
        let slower = [named("api", Policy::token_bucket(9, 1, "1h").unwrap())];
        assert!(!allowed(&mut states, &slower, 1, 1));
        assert_eq!(states.ends(), 9 * HOUR);
    }

    #[test]
    fn what_has_ended_is_told_with_its_count() {
        let mut states = States::default();
        allowed(&mut states, &[window("a", 5, HOUR)], 3, 7);
        allowed(&mut states, &[window("b", 5, 2 * HOUR)], 4, 7);
        assert_eq!(states.take_ended(HOUR + 6), States::default());
        let told = states.take_ended(HOUR + 7).to_json();
        assert_eq!(told, "[{\"policy\":\"a\",\"algorithm\":\"fix_window_per_key\",\"count\":3,\"expiredAt\":3600007}]");
        assert_eq!((states.0.len(), states.ends()), (1, 2 * HOUR + 7));
    }

    #[test]
    fn what_is_unused_again_is_not_kept_and_what_ended_is_kept_until_told() {
        let bucket = [named("a", Policy::token_bucket(2, 1, "1h").unwrap())];
        let mut states = States::default();
        allowed(&mut states, &bucket, 1, 0);
        apply(&mut states, &bucket, Operation::Set { policy: None, count: 2 }, 1);
        assert_eq!(states, States::default());
        allowed(&mut states, &bucket, 1, 0);
        let both = [bucket[0].clone(), window("b", 1, HOUR)];
        apply(&mut states, &both, Operation::Inc { policy: Some("b"), cost: 1 }, 5 * HOUR);
        assert_eq!(states.take_ended(5 * HOUR).0.len(), 1);
    }
}
