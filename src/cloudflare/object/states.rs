//! The rows of an object's key, as they are stored.

use crate::policy::schema;
use crate::store::record::StoredRow;
use crate::{Error, Ledger, Record};
use serde_json::json;

/// The rows of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct States(pub(crate) Vec<Kept>);

/// A stored row, with its count, which is logged without the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) stored: StoredRow,
    /// The count when the row was last changed.
    pub(crate) count: u64,
}

impl Kept {
    /// Returns when the row ends.
    fn ends(&self) -> u64 {
        self.stored.ends_at()
    }

    /// Returns the fields of a log line about the row, in JSON.
    fn fields(&self) -> String {
        let (name, algorithm) = (json!(self.stored.0), json!(schema::state_name(self.stored.algorithm())));
        let (count, ends) = (self.count, self.ends());
        format!(r#""policy":{name},"algorithm":{algorithm},"count":{count},"expiredAt":{ends}"#)
    }
}

impl States {
    /// Loads the rows into a ledger. Returns the names of the policies that start unused because their shape changed.
    pub(crate) fn load(&self, ledger: &mut Ledger, now: u64) -> Result<Vec<String>, Error> {
        ledger.load(&Record::new(self.0.iter().map(|kept| kept.stored.clone()).collect()), now)
    }

    /// Replaces the rows of a ledger's policies, and its exception. Rows that have ended stay until the alarm logs them.
    pub(crate) fn keep(&mut self, ledger: &Ledger, now: u64) {
        for (row, count) in ledger.stored_named() {
            self.put(row, Some(count), now);
        }
        self.0.retain(|kept| !kept.stored.is_exception());
        for row in ledger.stored_exceptions() {
            self.put(row, Some(0), now);
        }
    }

    /// Replaces all rows but those of the ledger's policies and of the lists of policies before, which stay.
    pub(crate) fn keep_others(&mut self, ledger: &Ledger, now: u64) {
        let others: Vec<StoredRow> = ledger.stored_others().collect();
        let stay: Vec<StoredRow> = ledger.stored_named().map(|(row, _)| row).chain(ledger.stored_parked(0)).collect();
        let is_among = |rows: &[StoredRow], kept: &Kept| rows.iter().any(|row| row.has_shape_of(&kept.stored));
        self.0.retain(|kept| {
            kept.ends() <= now || kept.stored.is_exception() || is_among(&stay, kept) || is_among(&others, kept)
        });
        others.into_iter().for_each(|row| self.put(row, None, now));
    }

    /// Replaces all rows by those of a ledger.
    pub(crate) fn keep_all(&mut self, ledger: &Ledger, now: u64) {
        self.keep(ledger, now);
        self.keep_others(ledger, now);
        ledger.stored_parked(0).for_each(|row| self.put(row, None, now));
    }

    /// Replaces the row of a shape. Its count stays if it is not known.
    fn put(&mut self, stored: StoredRow, count: Option<u64>, now: u64) {
        let known = self.0.iter().position(|known| known.stored.has_shape_of(&stored));
        let is_live = stored.ends_at() > now;
        match known {
            Some(at) if is_live => {
                let known = &mut self.0[at];
                *known = Kept { count: count.unwrap_or(known.count), stored };
            }
            // A row that is as if never used is dropped, but one that has ended is to be logged.
            Some(at) if self.0[at].ends() > now => drop(self.0.remove(at)),
            None if is_live => self.0.push(Kept { count: count.unwrap_or_default(), stored }),
            Some(_) | None => {}
        }
    }

    /// Removes and returns the rows that have ended.
    pub(crate) fn take_ended(&mut self, now: u64) -> Self {
        Self(self.0.extract_if(.., |kept| kept.ends() <= now).collect())
    }

    /// Returns when the last row ends; 0 if there is none.
    pub(crate) fn ends(&self) -> u64 {
        self.0.iter().map(Kept::ends).max().unwrap_or_default()
    }

    /// Returns the rows as JSON, with the fields of a log line.
    pub(crate) fn to_json(&self) -> String {
        format!("[{}]", self.0.iter().map(|kept| format!("{{{}}}", kept.fields())).collect::<Vec<_>>().join(","))
    }

    /// Returns a log line for each row, all of which have ended. `object` is the object's id.
    pub(crate) fn log_lines(&self, object: &str) -> impl Iterator<Item = String> {
        self.0.iter().map(move |kept| format!(r#"{{"event":"expired","object":"{object}",{}}}"#, kept.fields()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloudflare::object::codec;
    use crate::{Answer, Costs, Exception, Operation, Policies, Policy, ReservationId, Settlement};

    const HOUR: u64 = 3_600_000;

    fn named(name: &str, policy: Policy) -> Policy {
        policy.named(name).unwrap().denied(crate::Denied::Free).unwrap()
    }

    fn window(name: &str, limit: u64, scale: u64) -> Policy {
        named(name, Policy::fix_window_per_key(limit, scale).unwrap())
    }

    /// Applies an operation as an object without memory does: loads the states, and saves them if they changed.
    fn apply(states: &mut States, policies: &[Policy], operation: Operation<'_>, now: u64) -> Answer {
        let mut ledger = Ledger::new(Policies::new(policies.to_vec()).unwrap()).unwrap();
        states.load(&mut ledger, now).unwrap();
        let (answer, changed) = ledger.apply(operation, now).unwrap();
        if changed {
            states.keep_all(&ledger, now);
        }
        answer
    }

    fn allowed(states: &mut States, policies: &[Policy], cost: u64, now: u64) -> bool {
        matches!(apply(states, policies, Operation::Hit { cost }, now), Answer::Decision(decision) if decision.allowed)
    }

    #[test]
    fn each_policy_has_one_state_in_every_set_of_policies() {
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
    fn a_policy_whose_shape_changes_starts_unused_and_finds_its_state_again() {
        let mut states = States::default();
        let (hour, longer) = ([window("api", 2, HOUR)], [window("api", 2, 2 * HOUR)]);
        assert!(allowed(&mut states, &hour, 2, 0));
        for now in [HOUR / 4, HOUR / 2] {
            assert!(allowed(&mut states, &longer, 1, now));
            assert!(!allowed(&mut states, &hour, 1, now));
        }
        assert!(!allowed(&mut states, &longer, 1, HOUR - 1));
        assert_eq!((states.0.len(), states.ends()), (2, HOUR / 4 + 2 * HOUR));
        assert!(allowed(&mut states, &hour, 2, HOUR));
    }

    #[test]
    fn a_state_ends_by_its_own_rate() {
        let bucket = |rate| [named("api", Policy::token_bucket(2, rate, "1h").unwrap())];
        let mut states = States::default();
        assert!(allowed(&mut states, &bucket(1), 2, 0));
        assert_eq!(states.ends(), 2 * HOUR);
        assert!(!allowed(&mut states, &bucket(2), 2, HOUR / 2));
        assert_eq!(states.ends(), 2 * HOUR);
        assert!(allowed(&mut states, &bucket(2), 1, HOUR / 2));
        assert_eq!(states.ends(), HOUR / 2 + HOUR);
    }

    #[test]
    fn a_reservation_brings_the_rate_of_its_call_whoever_looks_at_its_end() {
        let bucket = |rate| [named("api", Policy::token_bucket(2, rate, "1h").unwrap())];
        for look in [None, Some(1), Some(9)] {
            let mut states = States::default();
            assert!(allowed(&mut states, &bucket(9), 1, 0));
            let reserve = Operation::Reserve { costs: Costs::All(1), ttl: Some(HOUR), random: 1 };
            apply(&mut states, &bucket(1), reserve, 0);
            assert_eq!(states.ends(), 2 * HOUR);
            if let Some(rate) = look {
                assert!(!allowed(&mut states, &bucket(rate), 2, HOUR));
            }
            assert_eq!(states.ends(), 2 * HOUR, "{look:?}");
            assert_eq!(
                apply(&mut states, &bucket(1), Operation::Get { policy: None }, HOUR + HOUR / 2),
                Answer::Number(1)
            );
        }
    }

    #[test]
    fn ended_states_are_logged_with_their_count() {
        let mut states = States::default();
        allowed(&mut states, &[window("a", 5, HOUR)], 3, 7);
        allowed(&mut states, &[window("b", 5, 2 * HOUR)], 4, 7);
        assert_eq!(states.take_ended(HOUR + 6), States::default());
        let logged = states.take_ended(HOUR + 7).to_json();
        assert_eq!(
            logged,
            "[{\"policy\":\"a\",\"algorithm\":\"fix_window_per_key\",\"count\":3,\"expiredAt\":3600007}]"
        );
        assert_eq!((states.0.len(), states.ends()), (1, 2 * HOUR + 7));
    }

    #[test]
    fn an_unused_state_is_removed_and_an_ended_one_is_kept_until_it_is_logged() {
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

    fn reserve(states: &mut States, policies: &[Policy], costs: Costs<'_>, random: u128, now: u64) -> ReservationId {
        let operation = Operation::Reserve { costs, ttl: Some(1_000), random };
        let Answer::Reserved { id: Some(id), .. } = apply(states, policies, operation, now) else { panic!("denied") };
        id
    }

    #[test]
    fn a_reservation_is_settled_under_every_shape_that_it_was_opened_under() {
        let (api, day) = (window("api", 9, HOUR), named("day", Policy::leaky_bucket(9, 1, "1d").unwrap()));
        let both = [api.clone(), day.clone()];
        let get = |states: &mut States, policy: &Policy, now| {
            apply(states, std::slice::from_ref(policy), Operation::Get { policy: None }, now)
        };
        let mut states = States::default();
        let id = reserve(&mut states, &both, Costs::ByPolicy(&[("api", 2), ("day", 3)]), 7, 0);
        // A policy of another shape, and one that came since, have nothing of it.
        let changed = [window("api", 9, 2 * HOUR), window("new", 9, HOUR)];
        let settle = Operation::Settle { id, used: Some(Costs::ByPolicy(&[("api", 1)])) };
        assert_eq!(apply(&mut states, &changed, settle, 500), Answer::Settled(Settlement::Settled));
        assert_eq!((get(&mut states, &api, 500), get(&mut states, &day, 500)), (Answer::Number(1), Answer::Number(3)));
        for policy in &changed {
            assert_eq!(get(&mut states, policy, 500), Answer::Number(0));
        }
        assert_eq!(states.0.iter().map(|kept| kept.stored.1.len() - 4 - kept.stored.1[3] as usize).sum::<usize>(), 0);
    }

    #[test]
    fn a_reservation_is_extended_under_every_shape_that_it_was_opened_under() {
        let (api, day) = (window("api", 9, HOUR), window("day", 9, HOUR));
        let both = [api.clone(), day.clone()];
        let mut states = States::default();
        let id = reserve(&mut states, &both, Costs::All(2), 7, 0);
        let extend = Operation::Extend { id, ttl: 5_000 };
        assert_eq!(apply(&mut states, &[day], extend, 500), Answer::Settled(Settlement::Extended));
        let settle = Operation::Settle { id, used: None };
        assert_eq!(apply(&mut states, &both, settle, 2_000), Answer::Settled(Settlement::Settled));
        assert_eq!(apply(&mut states, &[api], Operation::Get { policy: None }, 2_000), Answer::Number(2));
    }

    /// Numbers at random, the same ones on every run.
    fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        }
    }

    /// An object that loses its memory after every operation, and whose alarm fires at any time, returns the same as a
    /// ledger that was never stored.
    #[test]
    fn an_object_is_a_ledger_that_lasts() {
        let policies = [
            Policy::fix_window(9, "2s").unwrap(),
            Policy::fix_window_per_key(9, "3s").unwrap(),
            Policy::sliding_window(9, "2s").unwrap(),
            Policy::sliding_counter(9, "2s").unwrap(),
            Policy::token_bucket(9, 2, "1s").unwrap(),
            Policy::leaky_bucket(9, 2, "1s").unwrap(),
            Policy::concurrency(9, "1s").unwrap(),
            Policy::ban(3, "2s", "1s").unwrap().growing(2, "5s").unwrap(),
        ];
        let numbers_of = |name: &str, field: &str| Exception::new().with(name, field, 20).unwrap();
        let mut settlements = [0; 3];
        for round in 0..400 {
            let mut below = numbers(round);
            let mut own = policies.to_vec();
            while own.len() > 1 && below(3) > 0 {
                own.remove(below(own.len() as u64) as usize);
            }
            let own: Vec<Policy> = own.into_iter().map(|policy| named(policy.clone().algorithm(), policy)).collect();
            let name = own[0].algorithm();
            let exceptions = [
                Exception::allow(),
                Exception::deny(),
                numbers_of(name, "limit"),
                numbers_of(name, "capacity"),
                numbers_of(name, "after"),
            ];
            let mut ledger = Ledger::new(Policies::new(own.clone()).unwrap()).unwrap();
            let (mut states, mut ids, mut now) = (States::default(), Vec::new(), 1_000_000);
            for step in 0..60_u64 {
                now += [0, 1, below(300), below(2_500)][below(4) as usize];
                let costs = Costs::All(below(5));
                let id = ids.get(below(ids.len().max(1) as u64) as usize).copied();
                let exception = &exceptions[below(exceptions.len() as u64) as usize];
                let operation = match (below(8), id) {
                    _ if below(12) == 0 => {
                        let exception = Some(exception).filter(|_| below(4) > 0);
                        Operation::Except { exception, until: now + 1 + below(4_000) }
                    }
                    (0, _) => Operation::PeekCosts { costs },
                    (1, _) => Operation::HitCosts { costs },
                    (2 | 3, _) | (_, None) => {
                        Operation::Reserve { costs, ttl: Some(1 + below(2_000)), random: u128::from(step + 1) }
                    }
                    (4 | 5, Some(id)) => Operation::Settle { id, used: [None, Some(costs)][below(2) as usize] },
                    (6, Some(id)) => Operation::Extend { id, ttl: 1 + below(3_000) },
                    (_, Some(_)) => [Operation::Reset, Operation::ResetAll][usize::from(below(20) == 0)],
                };
                let Ok((expected, _)) = ledger.apply(operation, now) else { continue };
                if below(3) == 0 {
                    states.take_ended(now);
                }
                states = codec::decode(&codec::encode(0, &states)).unwrap().states;
                let found = apply(&mut states, &own, operation, now);
                assert_eq!(found, expected, "round {round}, step {step}: {operation:?} at {now}");
                match found {
                    Answer::Reserved { id: Some(id), .. } => ids.push(id),
                    Answer::Settled(Settlement::Settled) => settlements[0] += 1,
                    Answer::Settled(Settlement::Expired) => settlements[1] += 1,
                    Answer::Settled(Settlement::Closed) => settlements[2] += 1,
                    _ => {}
                }
            }
        }
        assert!(settlements.iter().all(|&count| count > 300), "{settlements:?}");
    }
}
