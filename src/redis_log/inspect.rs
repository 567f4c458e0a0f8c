//! What an operator sees of a key: its policies and states, read from its value alone.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::entry::{Entry, read_stamp};
use super::policy_set::PolicySet;
use super::policy_sets::PolicySets;
use super::replica::Replica;
use super::result::{NUMBERS_PER_RESULT, Results};
use super::text::Cursor;
use super::{FORMAT, ReplayError};
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::push;
use crate::key::open_reservations::is_lease;
use crate::key::states::KeyStates;
use crate::key::undo::is_mark;
use crate::policy::costs::PositionCosts;
use crate::policy::schema::MAX_POLICIES;
use crate::{Decision, Exception, Ledger, MAX, Policies, Policy, verdict};

/// A key as an operator sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// The policies of the last operation, or those that the caller gave.
    policies: Vec<Policy>,
    /// The state under each of them.
    states: Vec<StateView>,
    /// When the key becomes unused; 0 if it is.
    ends_at: u64,
    /// Whether a hit of cost 1 would be allowed.
    allowed: bool,
    /// How long such a hit has to wait, in milliseconds; `None` for never.
    retry_after: Option<u64>,
    /// The count of the policy that binds most. A ban binds only where there is no other policy: its count is that of denials.
    count: u64,
    /// The limit of that policy; of a ban how many denials begin it.
    limit: u64,
    /// How many hits of cost 1 are left.
    remaining: u64,
    /// How long until more is left, in milliseconds; 0 if all is.
    more_after: u64,
    /// The position of that policy.
    binding: usize,
    /// For how long a ban still holds, in milliseconds: the longest of several; 0 if none does.
    banned_for: u64,
    /// The exception that the key has, and when it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    exception: Option<(Exception, u64)>,
    /// How many reservations are open, other than leases.
    reservations: u64,
    /// How many leases are open.
    leases: u64,
    /// What was charged since the line of the value began, under the policy that was charged most.
    charged: u64,
    /// When the line of the value began, which identifies what `charged` counts from.
    line: u64,
    /// The time of the last entry.
    last: u64,
    /// Hits and reservations in entries since the time that the caller gave, as far as the value still has these entries.
    hits: u64,
    /// Those of them that were denied.
    denied: u64,
}

/// A state as an operator sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StateView {
    policy: String,
    /// The count; of a ban that of denials.
    count: u64,
    /// The limit; of a ban how many denials begin it.
    limit: u64,
    /// How much of the limit is used. The count of a token bucket is what is left.
    used: u64,
    /// When the state ends; 0 if it has.
    ends_at: u64,
    /// What reservations and leases hold of the limit.
    open: u64,
    /// For how long this ban still holds, in milliseconds; 0 if it does not, or if the policy is none.
    banned_for: u64,
    is_ban: bool,
}

/// Returns what a value says of its key at a time, under the policies of its last operation unless others are given. `since`
/// is the time from which on entries are counted.
pub fn inspect(value: &str, now: u64, since: u64, policies: Option<&Policies>) -> Result<Inspection, ReplayError> {
    let mut cursor = Cursor::new(value);
    if !cursor.take(FORMAT as u8) {
        return Err(ReplayError::UnsupportedVersion);
    }
    let mut sets = PolicySets::new(default_policies(cursor)?)?;
    let mut replica = Replica::load(&mut cursor, &mut sets)?;
    let (mut hits, mut denied) = (0, 0);
    let mut results = Results::default();
    while !cursor.is_empty() {
        let entry = Entry::read(&mut cursor)?;
        let counted = (entry.at > since).then_some(&mut results);
        replica.replay_entry(entry, &mut sets, counted)?;
        for result in results.numbers.chunks_exact(NUMBERS_PER_RESULT) {
            let verdict = result[0] as u8;
            denied += u64::from(verdict::is_denial(verdict));
            hits += u64::from(verdict::is_denial(verdict) || verdict == verdict::ALLOWED);
        }
        results.clear();
    }
    let seen = Inspection { hits, denied, ..replica.inspect(now, policies)? };
    Ok(seen)
}

/// Returns the policies of entries that name none.
fn default_policies(mut cursor: Cursor<'_>) -> Result<Policies, ReplayError> {
    read_stamp(&mut cursor)?;
    Ok(PolicySet::parse(cursor.until(b"|!")?)?.policies)
}

impl Replica {
    /// Returns the states of the key as an operator sees them.
    fn inspect(&mut self, now: u64, policies: Option<&Policies>) -> Result<Inspection, ReplayError> {
        let call = self.call_set.take();
        if let Some(policies) = policies.or_else(|| call.as_deref().map(|set| &set.policies)) {
            self.ledger.under(policies, now)?;
        }
        let (reservations, leases, amounts) = self.open(now)?;
        let views = self.views(&amounts, now)?;
        let next = self.ledger.peek(&PositionCosts::All(1), None, now)?;
        let none = self.ledger.peek(&PositionCosts::All(0), None, now)?;
        let banned_for = views.iter().map(|view| view.banned_for).max().unwrap_or(0);
        let binding = binding(&views, none.policy);
        let (count, limit, remaining) = match views.get(binding) {
            // An exception may allow everything.
            Some(view) if !view.is_ban && none.limit == MAX => (view.count, MAX, MAX),
            Some(view) if banned_for == 0 => (view.count, view.limit, view.limit.saturating_sub(view.used)),
            Some(view) => (view.count, view.limit, 0),
            None => (none.count, none.limit, none.remaining),
        };
        let charged = (0..views.len()).map(|position| self.lines.charged().at(position)).max().unwrap_or(0);
        Ok(Inspection {
            policies: self.ledger.policies().iter().cloned().collect(),
            states: views,
            ends_at: self.ends_at(now),
            allowed: next.allowed,
            retry_after: next.retry_after,
            count,
            limit,
            remaining,
            more_after: none.more_after,
            binding,
            banned_for,
            exception: self.ledger.exception(now),
            reservations,
            leases,
            charged,
            line: self.lines.start(),
            last: self.stamp,
            hits: 0,
            denied: 0,
        })
    }

    /// Returns how many reservations and leases are open, and what they hold of each policy.
    fn open(&self, now: u64) -> Result<(u64, u64, [u64; MAX_POLICIES]), ReplayError> {
        let (mut reservations, mut leases) = (0, 0);
        let mut amounts = [0; MAX_POLICIES];
        let Ledger { policy_states, states, .. } = &self.ledger;
        KeyStates::read(policy_states, states.entry(), &states.extra, now, |_, open| {
            for (index, (bits, _)) in open.all().enumerate().filter(|(_, (bits, _))| !is_mark(*bits)) {
                *(if is_lease(bits) { &mut leases } else { &mut reservations }) += 1;
                for (position, amount) in amounts.iter_mut().enumerate() {
                    *amount += open.amount(index, position);
                }
            }
        })?;
        Ok((reservations, leases, amounts))
    }

    /// Returns the state under each policy, of which reservations and leases hold these amounts.
    fn views(&self, amounts: &[u64; MAX_POLICIES], now: u64) -> Result<Vec<StateView>, ReplayError> {
        let Ledger { policy_states, states, .. } = &self.ledger;
        let mut views = Vec::new();
        for (position, (name, &open)) in self.ledger.policies().names().zip(amounts).enumerate() {
            let Decision { count, mut limit, remaining, more_after, .. } = states.look(policy_states, position, now)?;
            let (mut used, mut banned_for, mut is_ban) = (limit.saturating_sub(remaining), 0, false);
            if let AnyAlgorithm::Ban(ban) = policy_states.own_at(position, &states.extra.exceptions, now) {
                (limit, used, banned_for, is_ban) = (ban.after.into(), count, more_after, true);
            }
            let ends_at = states.expires_at(policy_states, position, now)?;
            push(&mut views, StateView { policy: name.into(), count, limit, used, ends_at, open, banned_for, is_ban })?;
        }
        Ok(views)
    }
}

/// Returns the position of the policy that binds most, which is a ban only where there is nothing else. `decided` is that of
/// a decision, which may be a ban.
fn binding(views: &[StateView], decided: usize) -> usize {
    if views.get(decided).is_some_and(|view| !view.is_ban) {
        return decided;
    }
    let left = |view: &StateView| view.limit.saturating_sub(view.used);
    let counting = views.iter().enumerate().filter(|(_, view)| !view.is_ban);
    counting.min_by_key(|(_, view)| left(view)).map_or(decided, |(position, _)| position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis_log::Replicas;
    use alloc::format;
    use alloc::string::ToString;

    const START: &str = "J7`IFZK";

    fn value(policies: &Policies, entries: &[&str]) -> String {
        let text = Replicas::new(policies.clone()).unwrap().policies_text().to_string();
        let entries = entries.iter().enumerate().map(|(number, ops)| format!("{START}{ops}!other000{number}"));
        format!("b{START}{text}|{}", entries.collect::<String>())
    }

    fn policies() -> Policies {
        let window = Policy::fix_window(3, "1d").unwrap().named("api").unwrap();
        Policies::new([window, Policy::ban(2, "1h", "2h").unwrap()]).unwrap()
    }

    fn start() -> u64 {
        read_stamp(&mut Cursor::new(START)).unwrap()
    }

    #[test]
    fn a_key_is_seen_as_its_value_has_it() {
        let value = value(&policies(), &["h2", "v1,0:60000:ffffffffffffffffffffffffffffffff", "h"]);
        let seen = inspect(&value, start(), 0, None).unwrap();
        assert_eq!((seen.hits, seen.denied, seen.reservations, seen.leases), (3, 1, 1, 0));
        assert_eq!((seen.count, seen.limit, seen.remaining, seen.allowed), (3, 3, 0, false));
        assert_eq!(seen.policies, policies().iter().cloned().collect::<Vec<_>>());
        let [api, ban] = &seen.states[..] else { panic!("{seen:?}") };
        assert_eq!((&api.policy[..], api.count, api.limit, api.used, api.open), ("api", 3, 3, 3, 1));
        // The reservation alone caused the denial.
        assert_eq!((&ban.policy[..], ban.count, ban.limit, ban.used, ban.open), ("ban", 0, 2, 0, 0));
        // A reservation is no charge before it is settled, but counts as one for what a fleet admitted.
        assert_eq!((seen.charged, seen.line, seen.last), (3, start(), start()));
        assert_eq!(seen.banned_for, 0);
    }

    #[test]
    fn entries_are_counted_from_a_time_on() {
        let value = value(&policies(), &["h*9"]);
        let seen = |since| inspect(&value, start(), since, None).unwrap();
        assert_eq!((seen(start() - 1).hits, seen(start() - 1).denied), (9, 6));
        assert_eq!((seen(start()).hits, seen(start()).denied), (0, 0));
    }

    #[test]
    fn a_ban_is_seen_until_it_ends() {
        let value = value(&policies(), &["h*5"]);
        let seen = |after| inspect(&value, start() + after, 0, None).unwrap();
        assert_eq!((seen(0).banned_for, seen(0).allowed), (7_200_000, false));
        // The limit is that of the window: a ban has none.
        assert_eq!((seen(0).count, seen(0).limit, seen(0).remaining, seen(0).binding), (3, 3, 0, 0));
        assert_eq!((seen(0).states[0].banned_for, seen(0).states[1].banned_for), (0, 7_200_000));
        assert_eq!(seen(7_199_999).banned_for, 1);
        assert_eq!(seen(7_200_000).banned_for, 0);
    }

    #[test]
    fn a_key_under_bans_alone_has_the_number_of_denials_as_its_limit() {
        let value = value(&Policies::new([Policy::ban(2, "1h", "2h").unwrap()]).unwrap(), &["b60000:0"]);
        let seen = inspect(&value, start(), 0, None).unwrap();
        assert_eq!((seen.count, seen.limit, seen.remaining, seen.banned_for), (0, 2, 0, 60_000));
    }

    #[test]
    fn a_key_is_seen_under_the_policies_of_its_last_call_or_those_given() {
        let text = Replicas::new(policies()).unwrap().policies_text().to_string();
        let own = text.replace("0.3.", "0.100.");
        let value = value(&policies(), &["h", &format!("h{{{own}}}1")]);
        let seen = inspect(&value, start(), 0, None).unwrap();
        assert_eq!((seen.count, seen.limit, seen.remaining, seen.states[0].limit), (2, 100, 98, 100));
        let given = Policies::new([Policy::fix_window(7, "1d").unwrap().named("api").unwrap()]).unwrap();
        let seen = inspect(&value, start(), 0, Some(&given)).unwrap();
        assert_eq!((seen.count, seen.limit, seen.remaining, seen.states.len()), (2, 7, 5, 1));
        // A base keeps them, until a call without its own.
        let mut sets = PolicySets::new(policies()).unwrap();
        let mut cursor = Cursor::new(&value[1..]);
        let mut replica = Replica::load(&mut cursor, &mut sets).unwrap();
        replica.replay(&mut cursor, &mut sets, None, &mut Results::default()).unwrap();
        let base = format!("b{START}{}!other0001", replica.base());
        assert_eq!(inspect(&base, start(), 0, None).unwrap().limit, 100);
        let after = format!("{base}{START}h!other0002");
        assert_eq!(inspect(&after, start(), 0, None).unwrap().limit, 3);
    }

    #[test]
    fn a_text_that_is_no_value_is_an_error() {
        for text in ["", "hello", "a", "bJ7`IFZK", "bJ7`IFZKnothing|", "aJ7`IFZK0.5.1.3600000|"] {
            assert!(inspect(text, 0, 0, None).is_err(), "{text}");
        }
    }
}
