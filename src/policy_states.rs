//! One key's states under all of a limiter's policies, side by side, and every operation on them.

pub(crate) use crate::algorithm::entry::Entry;

use crate::algorithm::bucket::{Bucket, Kind};
use crate::algorithm::entry::{EntryState, Place};
use crate::algorithm::rule::{Rule, dispatch};
use crate::algorithm::window::Window;
use crate::algorithm::{Act, Algorithm};
use crate::number::MAX;
use crate::{Decision, Denied, Violated};
use alloc::vec::Vec;

/// Where each policy's state lies within an entry, and what is asked of it.
#[derive(Clone, Debug)]
pub(crate) struct PolicyStates {
    rules: Vec<Rule>,
    /// The rules by which states end: widened by the numbers that calls brought along.
    widest: Vec<Rule>,
    denied: Denied,
}

impl PolicyStates {
    pub(crate) fn new(rules: Vec<Rule>, denied: Denied) -> Self {
        Self { denied, widest: rules.clone(), rules }
    }

    /// Where the state of the policy at a position begins within an entry, or after the last where the entry ends.
    pub(crate) fn place(&self, position: usize) -> Place {
        let mut place = Place { word: 0, log: 0 };
        for rule in self.rules.iter().take(position) {
            place.word += dispatch!(rule, algorithm => algorithm.width());
            place.log += usize::from(matches!(rule, Rule::SlidingWindow(_)));
        }
        place
    }

    /// The entry from one policy's state on.
    fn from<'a>(&self, position: usize, entry: &'a mut Entry<'_>) -> Entry<'a> {
        entry.from(self.place(position))
    }

    /// How many words and logs an entry takes.
    pub(crate) fn size(&self) -> Place {
        self.place(self.rules.len())
    }

    /// The limiter's own rules.
    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rules for one call that brings its own numbers. What is stored then lives by the longer of the two.
    pub(crate) fn adjusted(&mut self, call: &[Rule]) -> Option<Vec<Rule>> {
        if call.len() != self.rules.len() {
            return None;
        }
        let mut rules = self.rules.clone();
        for (rule, call) in rules.iter_mut().zip(call) {
            *rule = rule.adjusted(call)?;
        }
        for (widest, rule) in self.widest.iter_mut().zip(&rules) {
            *widest = widest.widest(rule);
        }
        Some(rules)
    }

    /// From now on a key without a state may have been used: one that was restored from elsewhere, under numbers that
    /// a call brought along there, and has ended by ours. It starts with our own capacity at the most.
    pub(crate) fn start_within_capacity(&mut self) {
        for rule in &mut self.rules {
            if let Rule::Bucket(bucket) = rule {
                bucket.bounded = true;
            }
        }
    }

    /// Makes an entry that of a key never used.
    pub(crate) fn clear(&self, entry: &mut Entry<'_>, now: u64) {
        for position in 0..self.rules.len() {
            self.clear_one(position, entry, now);
        }
    }

    fn clear_one(&self, position: usize, entry: &mut Entry<'_>, now: u64) {
        let mut entry = self.from(position, entry);
        dispatch!(&self.rules[position], algorithm => {
            if let Some(state) = EntryState::write(&mut entry) {
                algorithm.clear(state, now);
            }
        });
    }

    /// What a hit of that cost does.
    #[inline(always)]
    pub(crate) fn hit_of(&self, cost: u64) -> Act {
        match self.denied {
            Denied::Free => Act::Hit(cost),
            Denied::Count => Act::Count(cost),
        }
    }

    /// Asks all policies, and takes from all of them if all allow it. Notes if anything changed.
    ///
    /// On an entry that is only to be read this is a peek.
    #[inline(always)]
    pub(crate) fn hit(
        &self,
        rules: &[Rule],
        entry: &mut Entry<'_>,
        cost: u64,
        now: u64,
        changed: &mut bool,
    ) -> Decision {
        match rules {
            [rule] => rule.act(entry, self.hit_of(cost), now, changed),
            _ => self.hit_all(rules, entry, cost, now, changed),
        }
    }

    #[inline(never)]
    fn hit_all(&self, rules: &[Rule], entry: &mut Entry<'_>, cost: u64, now: u64, changed: &mut bool) -> Decision {
        let decision = self.act_all(rules, &mut entry.as_read(), self.hit_of(cost), now, &mut false);
        // A denial by one takes from none; a look lets each state that is too far ahead follow the clock.
        let act = if decision.allowed { Act::Hit(cost) } else { Act::LOOK };
        self.act_all(rules, entry, act, now, changed);
        decision
    }

    /// Does the same under each of several policies, and answers what they say together.
    fn act_all(&self, rules: &[Rule], entry: &mut Entry<'_>, act: Act, now: u64, changed: &mut bool) -> Decision {
        let mut binding = Decision::NOTHING;
        let mut violated = Violated::default();
        for (position, rule) in rules.iter().enumerate() {
            let mut decision = rule.act(&mut self.from(position, entry), act, now, changed);
            decision.policy = position;
            if !decision.allowed {
                violated.add(position);
            }
            if position == 0 || decision.binds_more_than(&binding) {
                binding = decision;
            }
        }
        binding.violated = violated;
        binding
    }

    /// Whether a hit that got this decision leaves something behind.
    pub(crate) fn records(&self, decision: &Decision, cost: u64) -> bool {
        cost > 0 && (decision.allowed || self.denied == Denied::Count)
    }

    /// Changes one policy's state without asking, and answers the count.
    pub(crate) fn change(&self, position: usize, entry: &mut Entry<'_>, act: Act, now: u64) -> u64 {
        self.rules[position].act(&mut self.from(position, entry), act, now, &mut false).count
    }

    /// What one policy has counted.
    pub(crate) fn get(&self, position: usize, entry: &mut Entry<'_>, now: u64) -> u64 {
        self.change(position, &mut entry.as_read(), Act::LOOK, now)
    }

    /// When one policy's state ends; 0 if it has ended.
    pub(crate) fn expires_at(&self, position: usize, entry: &mut Entry<'_>, now: u64) -> u64 {
        let ends = self.rules[position].ends_at(&self.from(position, entry), now);
        if ends > now { ends } else { 0 }
    }

    /// When the last of the states ends by the widest rules; `now` or earlier if it has.
    pub(crate) fn all_end_at(&self, entry: &mut Entry<'_>, now: u64) -> u64 {
        let mut last = 0;
        for (position, rule) in self.widest.iter().enumerate() {
            last = last.max(rule.ends_at(&self.from(position, entry), now));
        }
        last
    }

    /// What one policy's state held when it was last touched, and when it ended by that.
    pub(crate) fn last_value(&self, position: usize, entry: &mut Entry<'_>) -> (u64, u64) {
        let (rule, own) = (&self.rules[position], self.from(position, entry));
        let latest = dispatch!(rule, algorithm => algorithm.latest(EntryState::read(&own)));
        let ends_at = rule.ends_at(&own, latest);
        (self.get(position, entry, latest), ends_at)
    }

    /// The states as plain numbers.
    pub(crate) fn export(&self, entry: &mut Entry<'_>) -> Vec<Vec<i64>> {
        (0..self.rules.len())
            .map(|position| {
                let mut numbers = Vec::new();
                self.export_one(position, entry, &mut numbers);
                numbers
            })
            .collect()
    }

    /// Adds one policy's state as plain numbers.
    pub(crate) fn export_one(&self, position: usize, entry: &mut Entry<'_>, numbers: &mut Vec<i64>) {
        let entry = self.from(position, entry);
        dispatch!(&self.rules[position], algorithm => algorithm.export(EntryState::read(&entry), numbers));
    }

    /// One policy's state from plain numbers that were made under `scale`. Says whether they could be read.
    pub(crate) fn import(&self, position: usize, entry: &mut Entry<'_>, scale: u64, numbers: &[i64], now: u64) -> bool {
        let (rule, mut own) = (&self.rules[position], self.from(position, entry));
        let read = dispatch!(rule, algorithm => match EntryState::write(&mut own) {
            Some(state) => algorithm.import(state, scale, numbers),
            None => false,
        });
        if read
            && let Rule::Window(window) = rule
            && window.scale != scale
        {
            self.convert(position, entry, Window { scale, ..*window }, now);
        }
        read
    }

    /// Counts what a window of another scale comes to in a window of now's: when in the old one the hits came is not known.
    fn convert(&self, position: usize, entry: &mut Entry<'_>, made_by: Window, now: u64) {
        let (made_by, mut own) = (Rule::Window(made_by), self.from(position, entry));
        let ended = made_by.ends_at(&own, now) <= now;
        let count = made_by.act(&mut own, Act::LOOK, now, &mut false).count;
        self.clear_one(position, entry, now);
        if !ended {
            self.change(position, entry, Act::Set(count), now);
        }
    }

    /// The most that a policy may be set to: a token bucket holds no more than its capacity.
    pub(crate) fn most_to_set(&self, position: usize) -> u64 {
        match &self.rules[position] {
            Rule::Bucket(Bucket { kind: Kind::Token, capacity, .. }) => *capacity,
            _ => MAX,
        }
    }
}
