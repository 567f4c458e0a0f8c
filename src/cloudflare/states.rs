//! The states of an object's key under all policies of its past operations, by the policy's name.

use crate::policy::schema::RESERVATION_HEAD as HEAD;
use crate::record::MadeBy;
use crate::{Error, Ledger, Policies, Record};
use serde_json::json;

/// The states of one key, each under a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct States(pub(super) Vec<Kept>);

/// One policy's stored state, with its count and end, which are logged without the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) made_by: MadeBy,
    pub(super) state: Vec<i64>,
    /// Its state under another scale: the scale, the time until which it is kept, the numbers. Empty if there is none.
    pub(super) earlier: Vec<i64>,
    pub(super) open: Vec<OpenAmount>,
    /// The count when the state was last changed.
    pub(super) count: u64,
    /// When it ends.
    pub(super) ends: u64,
}

/// One policy's amount of an open reservation: four numbers of the id, start, end and ttl, and the amount.
///
/// Each policy has its own amounts, since operations are under different sets of policies: a reservation that is settled
/// or extended under some of its policies stays as it is under the others.
pub(super) type OpenAmount = [i64; HEAD + 1];

/// The number of numbers of the id.
const BITS: usize = 4;

/// The index of the end in an [`OpenAmount`] and in a row of a reservation.
const END: usize = 5;

impl Kept {
    /// Returns the fields of a log line about the state, in JSON.
    fn fields(&self) -> String {
        let (name, algorithm) = (json!(self.made_by.name), json!(self.made_by.algorithm));
        let Self { count, ends, .. } = self;
        format!(r#""policy":{name},"algorithm":{algorithm},"count":{count},"expiredAt":{ends}"#)
    }

    /// Returns whether the state has an amount of the reservation in `row`.
    fn has_open(&self, row: &[i64]) -> bool {
        self.open.iter().any(|open| open[..BITS] == row[..BITS])
    }
}

/// Joins the amounts of some states to reservations: rows of numbers as in a record, with an amount for each state.
fn joined(states: &[&Kept]) -> Vec<Vec<i64>> {
    let mut rows: Vec<Vec<i64>> = Vec::new();
    for (number, kept) in states.iter().enumerate() {
        for open in &kept.open {
            let at = rows.iter().position(|row| row[..BITS] == open[..BITS]).unwrap_or_else(|| {
                rows.push([&open[..HEAD], &vec![0; states.len()]].concat());
                rows.len() - 1
            });
            // A reservation that was extended under some policies only is open until the latest end.
            if open[END] > rows[at][END] {
                rows[at][BITS..HEAD].copy_from_slice(&open[BITS..HEAD]);
            }
            rows[at][HEAD + number] = open[HEAD];
        }
    }
    rows
}

/// Returns the amounts of reservations under the policy at a position. A reservation whose amounts are all 0 is kept under
/// the first policy.
fn amounts_of(position: usize, reservations: &[Vec<i64>]) -> Vec<OpenAmount> {
    let own = |row: &Vec<i64>| {
        let (head, amounts) = row.split_first_chunk::<HEAD>()?;
        let are_zero = amounts.iter().all(|&amount| amount == 0);
        let amount = amounts.get(position).copied().filter(|&amount| amount > 0 || are_zero && position == 0)?;
        let mut own = [amount; HEAD + 1];
        own[..HEAD].copy_from_slice(head);
        Some(own)
    };
    reservations.iter().filter_map(own).collect()
}

/// The result of loading states under policies that may have changed since they were saved.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// The policies that start afresh, because their stored states are of another algorithm.
    pub(super) afresh: Vec<String>,
    /// Whether a state was converted or ends later than before, and so must be saved again.
    pub(super) changed: bool,
}

impl States {
    /// Loads the states of a ledger's policies into it.
    pub(super) fn load(&self, ledger: &mut Ledger, now: u64) -> Result<Loaded, Error> {
        let found: Vec<&Kept> = ledger.policies().names().filter_map(|name| self.find(name)).collect();
        let made_by = found.iter().map(|kept| kept.made_by.clone()).collect();
        let states = found.iter().map(|kept| kept.state.clone()).collect();
        let of_another_scale = found.iter().enumerate().filter(|(_, kept)| !kept.earlier.is_empty());
        let earlier = of_another_scale.map(|(number, kept)| [&[number as i64], &kept.earlier[..]].concat()).collect();
        let reservations = joined(&found);
        let record = Record { version: crate::record::VERSION, policies: made_by, states, earlier, reservations };
        let mut loaded = Loaded { afresh: ledger.load(&record, now)?, changed: false };
        let policies = ledger.policies();
        for ((name, policy), (_, ends)) in policies.names().zip(policies.iter()).zip(ledger.last_values()) {
            let Some(kept) = self.find(name) else { continue };
            // A conversion at a later time would have another result, so this one is saved. A state that now lasts longer
            // must not be deleted at its old end.
            loaded.changed |= !kept.made_by.matches(policy) || ends > kept.ends;
        }
        Ok(loaded)
    }

    /// Replaces the states of a ledger's policies, and keeps those of other policies.
    pub(super) fn keep(&mut self, ledger: &Ledger, now: u64) {
        let policies = ledger.policies();
        let facts = policies.names().zip(policies.iter()).zip(ledger.last_values());
        let mut of_another_scale = ledger.earlier(now);
        let reservations = ledger.reservations();
        for (position, (((name, policy), (count, ends)), state)) in facts.zip(ledger.states()).enumerate() {
            let open = amounts_of(position, &reservations);
            let ends = open.iter().map(|amount| amount[END] as u64).fold(ends, u64::max);
            let row = of_another_scale.iter().position(|row| row.first() == Some(&(position as i64)));
            let earlier = row.map(|row| of_another_scale.swap_remove(row).split_off(1)).unwrap_or_default();
            let known = self.0.iter().position(|kept| kept.made_by.name == name);
            if ends > now {
                let kept = Kept { made_by: MadeBy::of(name, policy), state, earlier, open, count, ends };
                match known {
                    Some(at) => self.0[at] = kept,
                    None => self.0.push(kept),
                }
            } else if let Some(at) = known.filter(|&at| self.0[at].ends > now) {
                // The state is as if never used. One that has ended by time stays until the alarm logs it.
                self.0.remove(at);
            }
        }
    }

    /// Returns the number of reservations that are open under other policies only, and when the first of them ends.
    pub(super) fn open_elsewhere(&self, policies: &Policies, now: u64) -> (usize, u64) {
        let is_own = |kept: &&Kept| policies.names().any(|name| name == kept.made_by.name);
        let (own, others): (Vec<_>, Vec<_>) = self.0.iter().partition(is_own);
        let mut rows = joined(&others);
        rows.retain(|row| row[END] as u64 > now && !own.iter().any(|kept| kept.has_open(row)));
        (rows.len(), rows.iter().map(|row| row[END] as u64).min().unwrap_or(u64::MAX))
    }

    /// Removes and returns the states that have ended.
    pub(super) fn take_ended(&mut self, now: u64) -> Self {
        Self(self.0.extract_if(.., |kept| kept.ends <= now).collect())
    }

    /// Returns when the last state ends; 0 if there is none.
    pub(super) fn ends(&self) -> u64 {
        self.0.iter().map(|kept| kept.ends).max().unwrap_or_default()
    }

    /// Returns the states as JSON, with the fields of a log line.
    pub(super) fn to_json(&self) -> String {
        format!("[{}]", self.0.iter().map(|kept| format!("{{{}}}", kept.fields())).collect::<Vec<_>>().join(","))
    }

    /// Returns a log line for each state, all of which have ended. `object` is the object's id.
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
    use crate::cloudflare::codec;
    use crate::{Answer, Costs, Operation, Policies, Policy, ReservationId, Settlement};

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
    fn a_reservation_is_settled_under_the_policies_of_the_operation() {
        let (api, day) = (window("api", 9, HOUR), named("day", Policy::leaky_bucket(9, 1, "1d").unwrap()));
        let both = [api.clone(), day.clone()];
        let get = |states: &mut States, policy: &Policy, now| {
            apply(states, std::slice::from_ref(policy), Operation::Get { policy: None }, now)
        };
        let mut states = States::default();
        let id = reserve(&mut states, &both, Costs::ByPolicy(&[("api", 2), ("day", 3)]), 7, 0);
        let settle = Operation::Settle { id, used: Some(Costs::ByPolicy(&[("api", 1)])) };
        assert_eq!(apply(&mut states, std::slice::from_ref(&api), settle, 500), Answer::Settled(Settlement::Settled));
        assert_eq!((get(&mut states, &api, 500), get(&mut states, &day, 500)), (Answer::Number(1), Answer::Number(3)));
        assert_eq!(states.open_elsewhere(&api.clone().into(), 500), (1, 1_000));
        assert_eq!(states.open_elsewhere(&day.clone().into(), 500), (0, u64::MAX));
        assert_eq!(states.open_elsewhere(&api.clone().into(), 1_000), (0, u64::MAX));
        // The amount that was not settled was charged at its end.
        assert!(allowed(&mut states, std::slice::from_ref(&day), 6, 1_000));
        assert!(!allowed(&mut states, std::slice::from_ref(&day), 1, 1_000));
        assert_eq!(states.0.iter().map(|kept| kept.open.len()).sum::<usize>(), 0);
    }

    #[test]
    fn a_reservation_extended_under_one_policy_is_extended_under_all_policies_of_an_operation() {
        let (api, day) = (window("api", 9, HOUR), window("day", 9, HOUR));
        let both = [api.clone(), day.clone()];
        let mut states = States::default();
        let id = reserve(&mut states, &both, Costs::All(2), 7, 0);
        let extend = Operation::Extend { id, ttl: 5_000 };
        assert_eq!(apply(&mut states, &[day], extend, 500), Answer::Settled(Settlement::Extended));
        assert_eq!(states.find("api").unwrap().open[0][END], 1_000);
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
        ];
        let mut settlements = [0; 3];
        for round in 0..400 {
            let mut below = numbers(round);
            let mut own = policies.to_vec();
            while own.len() > 1 && below(3) > 0 {
                own.remove(below(own.len() as u64) as usize);
            }
            let own: Vec<Policy> = own.into_iter().map(|policy| named(policy.clone().algorithm(), policy)).collect();
            let mut ledger = Ledger::new(Policies::new(own.clone()).unwrap()).unwrap();
            let (mut states, mut ids, mut now) = (States::default(), Vec::new(), 1_000_000);
            for step in 0..60_u64 {
                now += [0, 1, below(300), below(2_500)][below(4) as usize];
                let costs = Costs::All(below(5));
                let id = ids.get(below(ids.len().max(1) as u64) as usize).copied();
                let operation = match (below(8), id) {
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
