//! One key's states under all of a limiter's policies, side by side, and every operation on them.

use crate::algorithm::bucket::{Bucket, Kind};
use crate::algorithm::rule::{Rule, dispatch};
use crate::algorithm::sliding_window::Log;
use crate::algorithm::{Act, Algorithm, Cell, Held};
use crate::number::MAX;
use crate::{Decision, Denied, Violated};
use alloc::vec::Vec;

/// Where each policy's state lies within an entry, and what is asked of it.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    rules: Vec<Rule>,
    /// The rules by which states end: widened by the numbers that calls brought along.
    widest: Vec<Rule>,
    places: Vec<Place>,
    denied: Denied,
    words: usize,
    logs: usize,
}

/// Where one policy's state lies within an entry.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: usize,
    width: usize,
    /// Which of the logs is its own; none has so high a number if it keeps none.
    log: usize,
}

/// All states of one key.
pub(crate) enum Entry<'a> {
    /// To be read only.
    Read(&'a [u64], &'a [Log]),
    /// To be changed too.
    Write(&'a mut [u64], &'a mut [Log]),
}

impl Entry<'_> {
    /// The same states, only to be read.
    pub(crate) fn as_read(&self) -> Entry<'_> {
        match self {
            Self::Read(words, logs) => Entry::Read(words, logs),
            Self::Write(words, logs) => Entry::Read(words, logs),
        }
    }

    /// Where one policy's state lies.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn cell(&mut self, Place { offset, width, log }: Place) -> Cell<'_> {
        // Two short slices are checked in fewer steps than a range, whose ends could be in the wrong order.
        match self {
            Self::Read(words, logs) => {
                let words = words.get(offset..).unwrap_or(&[]).get(..width).unwrap_or(&[]);
                Cell::Read(words, logs.get(log))
            }
            Self::Write(words, logs) => {
                let words = words.get_mut(offset..).unwrap_or(&mut []).get_mut(..width).unwrap_or(&mut []);
                Cell::Write(words, logs.get_mut(log))
            }
        }
    }
}

impl Lanes {
    pub(crate) fn new(rules: Vec<Rule>, denied: Denied) -> Self {
        let (mut words, mut logs) = (0, 0);
        let place = |rule: &Rule| {
            let width = dispatch!(rule, algorithm => algorithm.width());
            let keeps_log = matches!(rule, Rule::SlidingWindow(_));
            let place = Place { offset: words, width, log: if keeps_log { logs } else { usize::MAX } };
            words += width;
            logs += usize::from(keeps_log);
            place
        };
        let places = rules.iter().map(place).collect();
        Self { denied, widest: rules.clone(), rules, places, words, logs }
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn place(&self, position: usize) -> Place {
        self.places.get(position).copied().unwrap_or(Place { offset: 0, width: 0, log: usize::MAX })
    }

    /// How many words an entry takes.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// How many logs an entry takes.
    pub(crate) fn logs(&self) -> usize {
        self.logs
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
        let mut rules = Vec::with_capacity(call.len());
        for (rule, call) in self.rules.iter().zip(call) {
            rules.push(rule.adjusted(call)?);
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
        for (rule, place) in self.rules.iter().zip(&self.places) {
            dispatch!(rule, algorithm => algorithm.fresh(now).put(entry.cell(*place)));
        }
    }

    /// A hit where the only policy is a fixed window. Nothing if it is not.
    #[cfg(all(feature = "js", target_arch = "wasm32"))]
    #[inline(always)]
    pub(crate) fn hit_window(&self, words: &mut [u64], cost: u64, now: u64) -> Option<Decision> {
        let [Rule::FixWindow(window)] = self.rules() else { return None };
        Some(window.act(Cell::Write(words, None), Act::Hit(cost, self.denied), now, &mut false))
    }

    /// Asks all policies, and takes from all of them if all allow it. Notes if anything changed.
    ///
    /// On an entry that is only to be read this is a peek.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn hit(
        &self,
        rules: &[Rule],
        entry: &mut Entry<'_>,
        cost: u64,
        now: u64,
        changed: &mut bool,
    ) -> Decision {
        match rules {
            [rule] => self.act(rule, 0, entry, Act::Hit(cost, self.denied), now, changed),
            _ => self.hit_all(rules, entry, cost, now, changed),
        }
    }

    #[inline(never)]
    fn hit_all(&self, rules: &[Rule], entry: &mut Entry<'_>, cost: u64, now: u64, changed: &mut bool) -> Decision {
        let decision = self.ask_all(rules, entry, cost, now);
        // A denial by one takes from none; a look lets each state that is too far ahead follow the clock.
        let act = if decision.allowed { Act::Hit(cost, Denied::Free) } else { Act::LOOK };
        for (position, rule) in rules.iter().enumerate() {
            self.act(rule, position, entry, act, now, changed);
        }
        decision
    }

    /// What several policies say together.
    fn ask_all(&self, rules: &[Rule], entry: &mut Entry<'_>, cost: u64, now: u64) -> Decision {
        let mut binding: Option<Decision> = None;
        let mut violated = Violated::default();
        for (position, rule) in rules.iter().enumerate() {
            let mut decision =
                self.act(rule, position, &mut entry.as_read(), Act::Hit(cost, self.denied), now, &mut false);
            decision.policy = position;
            if !decision.allowed {
                violated.add(position);
            }
            if binding.as_ref().is_none_or(|other| decision.binds_more_than(other)) {
                binding = Some(decision);
            }
        }
        let mut decision = binding.unwrap_or(Decision::NOTHING);
        decision.violated = violated;
        decision
    }

    /// Whether a hit that got this decision leaves something behind.
    pub(crate) fn records(&self, decision: &Decision, cost: u64) -> bool {
        cost > 0 && (decision.allowed || self.denied == Denied::Count)
    }

    /// Changes one policy's state without asking, and answers the count.
    pub(crate) fn change(&self, position: usize, entry: &mut Entry<'_>, act: Act, now: u64) -> u64 {
        self.act(&self.rules[position], position, entry, act, now, &mut false).count
    }

    // In wasm once, for its size; elsewhere wherever it is used, for its speed.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn act(
        &self,
        rule: &Rule,
        position: usize,
        entry: &mut Entry<'_>,
        act: Act,
        now: u64,
        changed: &mut bool,
    ) -> Decision {
        let cell = entry.cell(self.place(position));
        dispatch!(rule, algorithm => algorithm.act(cell, act, now, changed))
    }

    /// What one policy has counted.
    pub(crate) fn get(&self, position: usize, entry: &mut Entry<'_>, now: u64) -> u64 {
        self.change(position, &mut entry.as_read(), Act::LOOK, now)
    }

    /// When one policy's state ends; 0 if it has ended.
    pub(crate) fn expires_at(&self, position: usize, entry: &mut Entry<'_>, now: u64) -> u64 {
        let ends = self.ends_at(&self.rules[position], position, entry, now);
        if ends > now { ends } else { 0 }
    }

    /// When the last of the states ends by the widest rules; `now` or earlier if it has.
    pub(crate) fn all_end_at(&self, entry: &mut Entry<'_>, now: u64) -> u64 {
        let mut last = 0;
        for (position, rule) in self.widest.iter().enumerate() {
            last = last.max(self.ends_at(rule, position, entry, now));
        }
        last
    }

    fn ends_at(&self, rule: &Rule, position: usize, entry: &mut Entry<'_>, now: u64) -> u64 {
        let cell = entry.cell(self.place(position));
        dispatch!(rule, algorithm => algorithm.ends_at(&algorithm.read(&cell), now))
    }

    /// What one policy's state held when it was last touched, and when it ended by that.
    pub(crate) fn last_value(&self, position: usize, entry: &mut Entry<'_>) -> (u64, u64) {
        let (cell, rule) = (entry.cell(self.place(position)), &self.rules[position]);
        let latest = dispatch!(rule, algorithm => algorithm.latest(&algorithm.read(&cell)));
        (self.get(position, entry, latest), self.ends_at(rule, position, entry, latest))
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
        let cell = entry.cell(self.place(position));
        dispatch!(&self.rules[position], algorithm => algorithm.export(&algorithm.read(&cell), numbers));
    }

    /// One policy's state from plain numbers that were made under `scale`. Says whether they could be read.
    pub(crate) fn import(&self, position: usize, entry: &mut Entry<'_>, scale: u64, numbers: &[i64], now: u64) -> bool {
        let cell = entry.cell(self.place(position));
        dispatch!(&self.rules[position], algorithm => {
            let made_by = algorithm.with_scale(scale);
            let Some(mut state) = made_by.import(numbers) else { return false };
            if scale != algorithm.scale() {
                state = algorithm.convert(state, &made_by, now);
            }
            state.put(cell);
        });
        true
    }

    /// The most that a policy may be set to: a token bucket holds no more than its capacity.
    pub(crate) fn most_to_set(&self, position: usize) -> u64 {
        match &self.rules[position] {
            Rule::Bucket(Bucket { kind: Kind::Token, capacity, .. }) => *capacity,
            _ => MAX,
        }
    }
}
