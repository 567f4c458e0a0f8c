//! One key's states under all of a limiter's policies, side by side, and every operation on them.

pub(crate) use crate::algorithm::entry::{Entry, EntryMut};

use crate::algorithm::any::{AnyAlgorithm, dispatch};
use crate::algorithm::entry::Place;
use crate::algorithm::forecast::Beside;
use crate::algorithm::{Act, Algorithm, Outcome, Push};
use crate::growth::{OutOfMemory, push};
use crate::key::bans::Bans;
use crate::key::decide::{KeyAt, Verdict, combined, shared};
use crate::key::open_reservations::{NONE_OPEN, OPEN_END, Open};
use crate::policy::costs::PositionCosts;
use crate::policy::schema::{DEFAULT_TTL, MAX_RESERVATIONS, MAX_STORED_RESERVATIONS};
use crate::{Decision, Denied, Error, Policies};
use alloc::vec::Vec;

/// The algorithms of all policies, and where each policy's state begins within an entry.
#[derive(Clone, Debug)]
pub(crate) struct PolicyStates {
    algorithms: Vec<AnyAlgorithm>,
    /// Where the state of each policy begins within an entry; after the last, where the entry ends.
    places: Vec<Place>,
    denied: Denied,
    bans: Bans,
    /// Whether the states are stored outside the process, where logs are short.
    are_stored: bool,
}

/// The policy at this position counts reservations alone, or denials: no `set` or `inc` can change it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncountable(pub(crate) usize);

impl Uncountable {
    /// Returns the error of an operation.
    pub(crate) fn error(self, policies: &Policies, operation: &'static str) -> Error {
        let policy = policies.name(self.0).into();
        match policies.iter().nth(self.0) {
            Some(counts_denials) if counts_denials.algorithm.is_ban() => Error::BanOnly { policy, operation },
            _ => Error::ReserveOnly { policy, operation },
        }
    }
}

/// Returns the most reservations of a key that may be open, in memory or outside the process.
pub(crate) fn most_open(are_stored: bool) -> usize {
    if are_stored { MAX_STORED_RESERVATIONS } else { MAX_RESERVATIONS }
}

/// Returns the default duration of a reservation: the longest `ttl` of a concurrency policy, or a minute.
pub(crate) fn default_ttl<'a>(algorithms: impl Iterator<Item = &'a AnyAlgorithm>) -> u64 {
    let concurrent = algorithms.filter(|algorithm| algorithm.is_concurrency());
    concurrent.map(AnyAlgorithm::scale).max().unwrap_or(DEFAULT_TTL)
}

impl PolicyStates {
    pub(crate) fn new(algorithms: Vec<AnyAlgorithm>, denied: Denied) -> Result<Self, OutOfMemory> {
        let mut places = Vec::new();
        let mut place = Place { word: 0, log: 0 };
        push(&mut places, place)?;
        for algorithm in &algorithms {
            place.word += dispatch!(algorithm, algorithm => algorithm.width());
            place.log += usize::from(matches!(algorithm, AnyAlgorithm::SlidingWindow(_)));
            push(&mut places, place)?;
        }
        Ok(Self { denied, places, bans: Bans::of(&algorithms), algorithms, are_stored: false })
    }

    /// Records that the states are stored outside the process.
    pub(crate) fn store(&mut self) {
        self.are_stored = true;
    }

    pub(crate) fn are_stored(&self) -> bool {
        self.are_stored
    }

    /// Returns the most reservations that may be open.
    pub(crate) fn most_open(&self) -> usize {
        most_open(self.are_stored)
    }

    /// Checks that a hit can be charged to every policy.
    #[inline]
    pub(crate) fn check_hit(&self) -> Result<(), Uncountable> {
        match self.algorithms.iter().position(AnyAlgorithm::is_concurrency) {
            Some(position) => Err(Uncountable(position)),
            None => Ok(()),
        }
    }

    /// Checks that the count of the policy at a position can be changed.
    pub(crate) fn check_countable(&self, position: usize) -> Result<(), Uncountable> {
        let algorithm = &self.algorithms[position];
        if algorithm.is_concurrency() || algorithm.is_ban() { Err(Uncountable(position)) } else { Ok(()) }
    }

    /// Returns the default duration of a reservation.
    pub(crate) fn default_ttl(&self) -> u64 {
        default_ttl(self.algorithms.iter())
    }

    /// Returns where the state of the policy at a position begins within an entry; after the last, where the entry
    /// ends.
    #[inline(always)]
    pub(crate) fn place(&self, position: usize) -> Place {
        self.places.get(position).copied().unwrap_or(Place { word: 0, log: 0 })
    }

    /// Returns the number of words and logs of an entry.
    pub(crate) fn size(&self) -> Place {
        self.place(self.algorithms.len())
    }

    /// Returns which of the policies are bans.
    pub(crate) fn bans(&self) -> Bans {
        self.bans
    }

    /// Returns the limiter's own algorithms.
    pub(crate) fn algorithms(&self) -> &[AnyAlgorithm] {
        &self.algorithms
    }

    /// Makes the algorithms of one call those of these states. Returns whether they have the same shapes.
    pub(crate) fn adjust(&self, call: &mut [AnyAlgorithm]) -> bool {
        let adjust = |(own, call): (&AnyAlgorithm, &mut AnyAlgorithm)| {
            own.for_call(call).map(|adjusted| *call = adjusted).is_some()
        };
        call.len() == self.algorithms.len() && self.algorithms.iter().zip(call).all(adjust)
    }

    /// Makes an entry that of a key never used.
    pub(crate) fn clear(&self, mut entry: EntryMut<'_>, now: u64) {
        for position in 0..self.algorithms.len() {
            self.clear_one(position, entry.reborrow(), now);
        }
    }

    pub(crate) fn clear_one(&self, position: usize, mut entry: EntryMut<'_>, now: u64) {
        self.algorithms[position].clear(entry.from(self.place(position)), now);
    }

    /// Changes whether denied hits count. Returns the former choice.
    pub(crate) fn replace_denied(&mut self, denied: Denied) -> Denied {
        core::mem::replace(&mut self.denied, denied)
    }

    /// Returns the operation of a hit.
    #[inline(always)]
    pub(crate) fn hit_of(&self, cost: u64) -> Act {
        match self.denied {
            Denied::Free => Act::Hit(cost),
            Denied::Count => Act::Count(cost),
        }
    }

    /// The same as [`PolicyStates::hit_inlined`]. In wasm it is compiled once, for its size.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn hit(
        &self,
        algorithms: &[AnyAlgorithm],
        entry: EntryMut<'_>,
        cost: u64,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        self.hit_inlined(algorithms, entry, cost, now, outcome)
    }

    /// Charges all policies if all of them allow it. Notes in `outcome` whether a state changed.
    #[inline(always)]
    pub(crate) fn hit_inlined(
        &self,
        algorithms: &[AnyAlgorithm],
        entry: EntryMut<'_>,
        cost: u64,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        match algorithms {
            [algorithm] => algorithm.act(entry, self.hit_of(cost), now, outcome),
            _ => self.hit_all(algorithms, entry, &PositionCosts::All(cost), now, outcome),
        }
    }

    /// The same with a cost for each policy.
    pub(crate) fn hit_costs(
        &self,
        algorithms: &[AnyAlgorithm],
        entry: EntryMut<'_>,
        costs: &PositionCosts,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        match algorithms {
            [_] => self.hit(algorithms, entry, costs.at(0), now, outcome),
            _ => self.hit_all(algorithms, entry, costs, now, outcome),
        }
    }

    #[inline(never)]
    fn hit_all(
        &self,
        algorithms: &[AnyAlgorithm],
        mut entry: EntryMut<'_>,
        costs: &PositionCosts,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        let Verdict { decision, is_violation } = self.judge_all(algorithms, entry.as_read(), costs, now);
        // A denial by one policy charges none. `LOOK` lets each state that is too far ahead follow the clock.
        let act = |position| if decision.allowed { Act::Hit(costs.at(position)) } else { Act::LOOK };
        for (position, algorithm) in algorithms.iter().enumerate() {
            if algorithm.prepare(entry.from(self.place(position)), act(position), now).is_err() {
                outcome.out_of_memory = true;
                return decision;
            }
        }
        for (position, algorithm) in algorithms.iter().enumerate() {
            algorithm.act(entry.from(self.place(position)), act(position), now, outcome);
        }
        if is_violation {
            self.count_violation(algorithms, entry, now);
            outcome.changed = true;
        }
        decision
    }

    /// Returns what a hit would return.
    pub(crate) fn peek(
        &self,
        algorithms: &[AnyAlgorithm],
        entry: Entry<'_>,
        costs: &PositionCosts,
        now: u64,
    ) -> Decision {
        match algorithms {
            [algorithm] => algorithm.peek(entry, self.hit_of(costs.at(0)), now),
            _ => self.judge_all(algorithms, entry, costs, now).decision,
        }
    }

    /// Returns the verdict on a hit under several policies.
    #[inline(always)]
    fn judge_all(&self, algorithms: &[AnyAlgorithm], entry: Entry<'_>, costs: &PositionCosts, now: u64) -> Verdict {
        if !self.bans.is_empty() {
            return self.at(algorithms, entry, &NONE_OPEN, now).judge(costs, true);
        }
        Verdict { decision: self.peek_all(algorithms, entry, costs, now), is_violation: false }
    }

    #[inline(never)]
    fn peek_all(&self, algorithms: &[AnyAlgorithm], entry: Entry<'_>, costs: &PositionCosts, now: u64) -> Decision {
        let decide = |position: usize, algorithm: &AnyAlgorithm, act: Act| {
            algorithm.peek(entry.from(self.place(position)), act, now)
        };
        combined(algorithms, costs, shared!(decide))
    }

    /// Returns a key's states for decisions under the algorithms of a call.
    pub(super) fn at<'a>(
        &'a self,
        algorithms: &'a [AnyAlgorithm],
        entry: Entry<'a>,
        open: &'a Open,
        now: u64,
    ) -> KeyAt<'a> {
        KeyAt { policy_states: self, algorithms, entry, open, now }
    }

    /// Returns what a hit would return beside open amounts, none of which is due.
    pub(crate) fn peek_beside(
        &self,
        algorithms: &[AnyAlgorithm],
        entry: Entry<'_>,
        open: &Open,
        costs: &PositionCosts,
        now: u64,
    ) -> Decision {
        self.judge_beside(algorithms, entry, open, costs, true, now).decision
    }

    /// The same, and whether the hit is a violation, which it can only be if `counts` is set.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(crate) fn judge_beside(
        &self,
        algorithms: &[AnyAlgorithm],
        entry: Entry<'_>,
        open: &Open,
        costs: &PositionCosts,
        counts: bool,
        now: u64,
    ) -> Verdict {
        match algorithms {
            [algorithm] => {
                let decision = self.beside(0, algorithm, entry, open, now).peek(self.hit_of(costs.at(0)));
                Verdict { decision, is_violation: false }
            }
            _ => self.at(algorithms, entry, open, now).judge(costs, counts),
        }
    }

    /// Returns one policy's state and its open amounts, for a decision under an algorithm.
    #[inline(always)]
    pub(crate) fn beside<'a>(
        &'a self,
        position: usize,
        algorithm: &'a AnyAlgorithm,
        entry: Entry<'a>,
        open: &'a Open,
        now: u64,
    ) -> Beside<'a> {
        Beside { algorithm, entry: entry.from(self.place(position)), open: open.of(position), now }
    }

    /// Returns the decision of one policy under an algorithm beside open amounts, without a charge.
    pub(crate) fn look(
        &self,
        position: usize,
        algorithm: &AnyAlgorithm,
        entry: Entry<'_>,
        open: &Open,
        now: u64,
    ) -> Decision {
        self.beside(position, algorithm, entry, open, now).peek(Act::LOOK)
    }

    /// Returns when one policy's state ends beside open amounts; 0 if it has ended.
    pub(crate) fn expires_beside(&self, position: usize, entry: Entry<'_>, open: &Open, now: u64) -> u64 {
        self.open_ends_at(position, entry, open, now).max(self.expires_at(position, entry, now))
    }

    /// Returns when one policy's open amounts are gone, by the state's own numbers; 0 if none are open.
    fn open_ends_at(&self, position: usize, entry: Entry<'_>, open: &Open, now: u64) -> u64 {
        if open.of(position).sum() == 0 {
            return 0;
        }
        let own = &self.algorithms[position];
        // A bucket flows at its own rate, unless an operation has a faster one.
        let slowest = AnyAlgorithm::of_shape(own.position(), own.stored_scale()).unwrap_or(*own);
        let beside = self.beside(position, own, entry, open, now);
        let algorithm = if beside.flows_alike() { own } else { &slowest };
        now + Beside { algorithm, ..beside }.peek(Act::LOOK).reset_after
    }

    /// Returns when all open amounts are gone.
    pub(crate) fn all_open_end_at(&self, entry: Entry<'_>, open: &Open, now: u64) -> u64 {
        (0..self.algorithms.len()).map(|position| self.open_ends_at(position, entry, open, now)).max().unwrap_or(0)
    }

    /// Whether hits may be leased: not if denied ones count, or where only reservations or denials do.
    pub(crate) fn may_lease(&self) -> bool {
        self.denied == Denied::Free && self.check_hit().is_ok() && !self.algorithms.iter().all(AnyAlgorithm::is_ban)
    }

    /// Returns whether a hit with this decision is charged.
    pub(crate) fn charges(&self, decision: &Decision, costs: &PositionCosts) -> bool {
        (decision.allowed || self.denied == Denied::Count) && !self.are_zero(costs)
    }

    /// Returns whether a hit with this decision changes the states of a key never used. A denial then is a violation.
    pub(crate) fn changes_unused(&self, decision: &Decision, costs: &PositionCosts) -> bool {
        self.charges(decision, costs) || self.algorithms.len() > 1 && !self.bans.is_empty() && !self.are_zero(costs)
    }

    /// Returns whether the costs under all policies are 0. A ban takes no cost.
    pub(crate) fn are_zero(&self, costs: &PositionCosts) -> bool {
        (0..self.algorithms.len()).all(|position| self.bans.contains(position) || costs.at(position) == 0)
    }

    /// Changes one policy's state under an algorithm unconditionally, and returns the count.
    pub(crate) fn change(
        &self,
        position: usize,
        algorithm: &AnyAlgorithm,
        mut entry: EntryMut<'_>,
        act: Act,
        now: u64,
    ) -> Result<u64, OutOfMemory> {
        let mut outcome = Outcome::default();
        let decision = algorithm.act(entry.from(self.place(position)), act, now, &mut outcome);
        outcome.changed()?;
        Ok(decision.count)
    }

    /// Returns the count of one policy.
    pub(crate) fn get(&self, position: usize, entry: Entry<'_>, now: u64) -> u64 {
        self.algorithms[position].peek(entry.from(self.place(position)), Act::LOOK, now).count
    }

    /// Returns when one policy's state ends; 0 if it has ended.
    pub(crate) fn expires_at(&self, position: usize, entry: Entry<'_>, now: u64) -> u64 {
        let ends = self.algorithms[position].ends_at(entry.from(self.place(position)), now);
        if ends > now { ends } else { 0 }
    }

    /// Returns when the last of the states ends; `now` or earlier if it has ended.
    pub(crate) fn all_end_at(&self, entry: Entry<'_>, now: u64) -> u64 {
        let ends =
            |(position, algorithm): (usize, &AnyAlgorithm)| algorithm.ends_at(entry.from(self.place(position)), now);
        self.algorithms.iter().enumerate().map(ends).max().unwrap_or(0)
    }

    /// Returns the count of one policy's state at its last change, beside open amounts.
    pub(crate) fn last_count(&self, position: usize, entry: Entry<'_>, open: &Open) -> u64 {
        let algorithm = &self.algorithms[position];
        let latest = algorithm.latest(entry.from(self.place(position)));
        self.look(position, algorithm, entry, open, latest).count
    }

    /// Returns when one policy's state ends by its own numbers; 0 if it is unused.
    pub(crate) fn state_ends_at(&self, position: usize, entry: Entry<'_>) -> u64 {
        let (algorithm, own) = (&self.algorithms[position], entry.from(self.place(position)));
        algorithm.ends_at(own, algorithm.latest(own))
    }

    /// Returns when one policy's state and its open amounts have ended by their own numbers, whatever the time is now; 0 if it is
    /// unused.
    pub(crate) fn row_ends_at(&self, position: usize, entry: Entry<'_>, open: &Open) -> u64 {
        let ends_at = self.state_ends_at(position, entry);
        if open.is_empty() {
            return ends_at;
        }
        let latest = self.algorithms[position].latest(entry.from(self.place(position)));
        // A reservation of 0 is open until its end, too.
        let last_end = open.parts(position).map(|part| part[OPEN_END] as u64).fold(ends_at, u64::max);
        last_end.max(self.open_ends_at(position, entry, open, latest))
    }

    /// Passes one policy's state to `push` as plain numbers.
    pub(crate) fn export_one(&self, position: usize, entry: Entry<'_>, push: Push<'_>) -> Result<(), OutOfMemory> {
        self.algorithms[position].export(entry.from(self.place(position)), push)
    }

    /// Reads one policy's state from plain numbers of its shape. Returns whether they are valid.
    pub(crate) fn import(
        &self,
        position: usize,
        mut entry: EntryMut<'_>,
        numbers: &[i64],
    ) -> Result<bool, OutOfMemory> {
        self.algorithms[position].import(entry.from(self.place(position)), numbers)
    }

    /// Returns the largest count that a policy may be set to.
    pub(crate) fn most_to_set(&self, position: usize) -> u64 {
        self.algorithms[position].most_to_set()
    }
}
