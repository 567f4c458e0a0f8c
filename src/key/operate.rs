//! Data that only some keys have beside their states: open reservations, rows that calls do not name, and an exception.

use alloc::vec::Vec;

use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::window::{Kind, Window};
use crate::algorithm::{Act, Outcome};
use crate::growth::OutOfMemory;
use crate::key::decide::KeyAt;
use crate::key::exceptions::Exceptions;
use crate::key::open_reservations::{Bits, Open, Part, Reserved};
use crate::key::policy_states::{Entry, EntryMut, PolicyStates};
use crate::key::reservation::Settlement;
use crate::key::rows::{Row, RowRef};
use crate::key::undo::is_mark;
use crate::policy::costs::{AS_RESERVED, PositionCosts};
use crate::policy::schema::MAX_POLICIES;
use crate::{Decision, Reason};

/// The data of one key beside its states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    pub(crate) open: Open,
    /// The rows of shapes that no policy has.
    pub(crate) rows: Vec<Row>,
    pub(crate) exceptions: Exceptions,
}

impl Extra {
    /// Returns whether there are no open reservations, no other rows, and no exception.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.rows.is_empty() && self.exceptions.is_empty()
    }

    /// Returns whether decisions depend on more than the states: on reservations or an exception.
    pub(crate) fn decides(&self) -> bool {
        !self.open.is_empty() || !self.exceptions.is_empty()
    }

    /// Returns when the states, the other rows, the reservations and the exception have all ended; `now` or earlier if they
    /// have.
    pub(crate) fn end_at(&self, policy_states: &PolicyStates, entry: Entry<'_>, now: u64) -> u64 {
        let ends_at = policy_states.all_end_at(entry, now).max(self.other_ends_at());
        if self.open.is_empty() {
            return ends_at;
        }
        // A reservation of 0 uses nothing until it is settled for more.
        let open_until = policy_states.all_open_end_at(entry, &self.open, now).max(self.open.last_end());
        // A key with an open reservation has not ended, even if the reservation is due.
        ends_at.max(open_until).max(now + 1)
    }
}

impl Extra {
    /// Returns when the last of the other rows and the exception have ended; 0 if there are none.
    pub(crate) fn other_ends_at(&self) -> u64 {
        self.rows.iter().map(|row| row.ends_at).fold(self.exceptions.ends_at(), u64::max)
    }

    /// Calls `note` with the bits and the end of each reservation that is open under other rows only.
    pub(crate) fn for_each_elsewhere(&self, note: &mut dyn FnMut(Bits, u64)) {
        for (index, row) in self.rows.iter().enumerate() {
            for (bits, end) in row.open().filter(|(bits, _)| !is_mark(*bits)) {
                let is_before = self.rows.iter().take(index).any(|before| before.as_ref().holds(bits));
                if !is_before && self.open.find(bits).is_none() {
                    note(bits, end);
                }
            }
        }
    }
}

/// Takes the extra into a list of one; returns an empty list if the extra is empty.
pub(crate) fn listed(extra: &mut Extra) -> Result<Vec<Extra>, OutOfMemory> {
    let mut list = Vec::new();
    if !extra.is_empty() {
        list.try_reserve_exact(1)?;
        list.push(core::mem::take(extra));
    }
    Ok(list)
}

/// Returns the parts of a reservation that a call under these algorithms opens.
pub(crate) fn parts(
    algorithms: impl Iterator<Item = AnyAlgorithm>,
    costs: &PositionCosts,
) -> impl Iterator<Item = Part> {
    algorithms.enumerate().map(|(position, algorithm)| {
        let [capacity, rate] = algorithm.call_numbers();
        [if algorithm.is_ban() { 0 } else { costs.at(position) }, capacity, rate]
    })
}

/// Mutable access to a key's states and its [`Extra`].
pub(crate) struct KeyMut<'a> {
    pub(crate) policy_states: &'a PolicyStates,
    /// The algorithms that decide: those of the call, or the limiter's own.
    pub(crate) algorithms: &'a [AnyAlgorithm],
    pub(crate) entry: EntryMut<'a>,
    pub(crate) extra: &'a mut Extra,
}

impl KeyMut<'_> {
    /// Decides a hit, and charges all policies if all allow it.
    pub(crate) fn hit(&mut self, costs: &PositionCosts, now: u64, outcome: &mut Outcome) -> Decision {
        self.hit_or_reserve(costs, None, true, now, outcome)
    }

    /// Decides a hit within the renewal of a lease. A denial is a violation only if `counts` is set.
    pub(crate) fn hit_in_renewal(
        &mut self,
        costs: &PositionCosts,
        counts: bool,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        self.hit_or_reserve(costs, None, counts, now, outcome)
    }

    /// Decides a reservation, and opens it if all policies allow it and there is room for it.
    pub(crate) fn reserve(
        &mut self,
        costs: &PositionCosts,
        reserved: Reserved,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        self.hit_or_reserve(costs, Some(reserved), true, now, outcome)
    }

    fn hit_or_reserve(
        &mut self,
        costs: &PositionCosts,
        reserve: Option<Reserved>,
        counts: bool,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        if self.extra.exceptions.is_empty() {
            return self.hit_or_reserve_under(costs, reserve, counts, now, outcome);
        }
        self.hit_excepted(costs, reserve, counts, now, outcome).unwrap_or_else(|OutOfMemory| {
            outcome.out_of_memory = true;
            Decision::NOTHING
        })
    }

    /// Decides under the algorithms as they are.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(super) fn hit_or_reserve_under(
        &mut self,
        costs: &PositionCosts,
        reserve: Option<Reserved>,
        counts: bool,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        if let ([algorithm], None) = (self.algorithms, reserve)
            && !self.extra.open.is_due(now)
        {
            return self.hit_single(algorithm, costs.at(0), now, outcome);
        }
        let result = self.expire(now).and_then(|moved| {
            outcome.changed |= moved;
            let (entry, open) = (self.entry.as_read(), &self.extra.open);
            let verdict = self.policy_states.judge_beside(self.algorithms, entry, open, costs, counts, now);
            let decision = verdict.decision;
            match reserve {
                Some(reserved) if decision.allowed => self.open(costs, reserved, now, outcome),
                _ => {
                    self.charge(decision, costs, now, outcome)?;
                    if verdict.is_violation {
                        self.policy_states.count_violation(self.algorithms, self.entry.reborrow(), now);
                        outcome.changed = true;
                    }
                    Ok(decision)
                }
            }
        });
        result.unwrap_or_else(|OutOfMemory| {
            outcome.out_of_memory = true;
            Decision::NOTHING
        })
    }

    /// Decides a hit under a single policy when no reservation is due: the most common case.
    fn hit_single(&mut self, algorithm: &AnyAlgorithm, cost: u64, now: u64, outcome: &mut Outcome) -> Decision {
        let act = self.policy_states.hit_of(cost);
        let decision = self.policy_states.beside(0, algorithm, self.entry.as_read(), &self.extra.open, now).peek(act);
        let act = if act.charges(decision.allowed) { Act::charged(cost, decision.allowed) } else { Act::LOOK };
        algorithm.act(self.entry.reborrow(), act, now, outcome);
        self.note_windows(now);
        decision
    }

    /// Charges a hit if it is to be charged. In any case, states that are ahead of the clock move back to it.
    fn charge(
        &mut self,
        decision: Decision,
        costs: &PositionCosts,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<Decision, OutOfMemory> {
        let charges = self.policy_states.charges(&decision, costs);
        let act = |position| match charges {
            true => Act::charged(costs.at(position), decision.allowed),
            false => Act::LOOK,
        };
        self.act_on_all(&act, now, outcome)?;
        Ok(decision)
    }

    /// Opens a reservation that all policies allow.
    fn open(
        &mut self,
        costs: &PositionCosts,
        reserved: Reserved,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<Decision, OutOfMemory> {
        if self.extra.open.reservations() >= self.policy_states.most_open() {
            let room_at = self.extra.open.first_reservation_end().unwrap_or(now).max(now);
            let (retry_after, reason) = (self.at(now).wait_for(costs, room_at), Some(Reason::Full));
            return Ok(Decision { allowed: false, retry_after, reason, ..self.look(now) });
        }
        self.extra.open.make_room(self.policy_states.algorithms().len())?;
        self.act_on_all(&|_| Act::LOOK, now, outcome)?;
        self.extra.open.insert(reserved, parts(self.algorithms.iter().copied(), costs));
        self.refresh(now);
        outcome.changed = true;
        // No state was charged: the decision's numbers are those with the new reservation.
        Ok(self.look(now))
    }

    /// Returns the states as of a time, at which no reservation is due.
    pub(super) fn at(&self, now: u64) -> KeyAt<'_> {
        self.policy_states.at(self.algorithms, self.entry.as_read(), &self.extra.open, now)
    }

    /// Returns the decision of a hit of cost 0. No reservation may be due.
    fn look(&self, now: u64) -> Decision {
        let (entry, no_cost) = (self.entry.as_read(), PositionCosts::All(0));
        self.policy_states.peek_beside(self.algorithms, entry, &self.extra.open, &no_cost, now)
    }

    /// Begins or lifts a ban, and returns when it ends or would have ended.
    pub(crate) fn hold(&mut self, position: usize, length: Option<u64>, now: u64) -> u64 {
        self.policy_states.hold(position, self.entry.reborrow(), length, now)
    }

    /// Changes one policy's state unconditionally, and returns the count, open amounts included.
    pub(crate) fn change(&mut self, position: usize, act: Act, now: u64) -> Result<u64, OutOfMemory> {
        self.expire(now)?;
        let algorithm = self.own_at(position, now);
        self.policy_states.change(position, &algorithm, self.entry.reborrow(), act, now)?;
        self.note_windows(now);
        Ok(self.policy_states.look(position, &algorithm, self.entry.as_read(), &self.extra.open, now).count)
    }

    /// Closes a reservation under every shape and charges the used amounts; `None` if it is not open.
    pub(crate) fn settle(
        &mut self,
        bits: Bits,
        used: &PositionCosts,
        now: u64,
    ) -> Result<Option<Settlement>, OutOfMemory> {
        let found = self.on_holders(bits, used, now, &mut |key, index, used| {
            key.charge_used(index, used, now)?;
            key.extra.open.remove(index, 1);
            key.refresh(now);
            Ok(())
        })?;
        Ok(found.then_some(Settlement::Settled))
    }

    /// Moves the end of a reservation under every shape; `None` if it is not open.
    pub(crate) fn extend(&mut self, bits: Bits, ttl: u64, now: u64) -> Result<Option<Settlement>, OutOfMemory> {
        let found = self.on_holders(bits, &PositionCosts::All(0), now, &mut |key, index, _| {
            key.extra.open.extend(index, now, ttl);
            key.refresh(now);
            Ok(())
        })?;
        Ok(found.then_some(Settlement::Extended))
    }

    /// Charges used amounts of the reservation at an index.
    pub(crate) fn charge_used(&mut self, index: usize, used: &PositionCosts, now: u64) -> Result<(), OutOfMemory> {
        self.charge_closed(index, now, used, true)?;
        self.charge_closed(index, now, used, false)
    }

    /// Runs `work` on each row in which a reservation is open, with its index there and the used amounts, or on an error on none.
    /// Returns whether it is open.
    pub(crate) fn on_holders(
        &mut self,
        bits: Bits,
        used: &PositionCosts,
        now: u64,
        work: &mut dyn FnMut(&mut KeyMut<'_>, usize, &PositionCosts) -> Result<(), OutOfMemory>,
    ) -> Result<bool, OutOfMemory> {
        let changed = self.extra.changed_rows(&|row| row.holds(bits), &mut |key, shape| {
            key.expire(now)?;
            let Some(index) = key.extra.open.find(bits) else { return Ok(false) };
            work(key, index, &PositionCosts::All(used.settled_at(shape.name)))?;
            Ok(true)
        })?;
        self.expire(now)?;
        let own = self.extra.open.find(bits);
        if let Some(index) = own {
            work(self, index, used)?;
        }
        let found = own.is_some() || !changed.is_empty();
        self.extra.replace_rows(changed);
        Ok(found)
    }

    /// Clears the states of the policies, and the other rows of their names. Open reservations stay.
    pub(crate) fn reset_used(&mut self, now: u64) -> Result<(), OutOfMemory> {
        let names = self.policy_states.algorithms().len();
        let is_chosen = |row: RowRef<'_>| row.shape.name < names && !row.open.is_empty();
        let changed = self.extra.changed_rows(&is_chosen, &mut |key, _| key.reset_used(now).map(|()| true))?;
        self.expire(now)?;
        self.extra.replace_rows(changed);
        self.extra.rows.retain(|row| row.shape.name >= names || row.has_open());
        self.policy_states.clear(self.entry.reborrow(), now);
        self.refresh(now);
        Ok(())
    }

    /// Clears the states and the reservations of the policies, and the other rows of their names.
    pub(crate) fn reset_all(&mut self, now: u64) {
        let names = self.policy_states.algorithms().len();
        self.policy_states.clear(self.entry.reborrow(), now);
        self.extra.open = Open::default();
        self.extra.rows.retain(|row| row.shape.name >= names);
    }

    /// Charges the reservations that have expired, each at its end. Returns whether a reservation changed.
    pub(crate) fn expire(&mut self, now: u64) -> Result<bool, OutOfMemory> {
        if !self.extra.open.is_due(now) {
            return Ok(false);
        }
        let moved = self.extra.open.follow_clock(now);
        let (mut expired, mut is_changed) = (0, moved);
        let mut charged = Ok(());
        let as_reserved = PositionCosts::Each([AS_RESERVED; MAX_POLICIES]);
        while charged.is_ok()
            && let Some(reserved) = self.extra.open.get(expired).filter(|reserved| reserved.end() <= now)
        {
            let mut charge = |prepares| self.charge_closed(expired, reserved.end(), &as_reserved, prepares);
            charged = charge(true).and_then(|()| charge(false));
            expired += usize::from(charged.is_ok());
            // A stored mark that has ended is without effect, so its end alone need not be stored.
            is_changed |= charged.is_ok() && !is_mark(reserved.bits());
        }
        self.extra.open.remove(0, expired);
        self.refresh(now);
        charged.map(|()| is_changed)
    }

    /// Charges the used amounts of a reservation that is closed at `closed_at`, which may be in the past. With `prepares` it
    /// only makes room for them, so that charging them next cannot run out of memory.
    pub(crate) fn charge_closed(
        &mut self,
        index: usize,
        closed_at: u64,
        used: &PositionCosts,
        prepares: bool,
    ) -> Result<(), OutOfMemory> {
        let Some(reserved) = self.extra.open.get(index) else { return Ok(()) };
        let bans = self.policy_states.bans();
        let charged = |(position, _): &(usize, &AnyAlgorithm)| !bans.contains(*position);
        for (position, algorithm) in self.policy_states.algorithms().iter().enumerate().filter(charged) {
            let Some((amount, algorithm)) = self.extra.open.to_charge(index, position, algorithm) else { continue };
            let mut own = self.entry.from(self.policy_states.place(position));
            let cost = match used.at(position) {
                AS_RESERVED => amount,
                used => used,
            };
            let algorithm = algorithm.keeping(own.as_read(), amount);
            let lead = algorithm.lead();
            // Not before the latest time in the state, unless that was a wrong reading of the clock.
            let mut at = reserved.charged_at(closed_at, lead).max(algorithm.latest(own.as_read()));
            if at > closed_at.saturating_add(lead) {
                at = closed_at;
            }
            let act = Act::Charge(cost);
            if prepares {
                algorithm.prepare(own.reborrow(), act, at)?;
            } else {
                algorithm.act(own.reborrow(), act, at, &mut Outcome::default());
            }
        }
        Ok(())
    }

    /// Applies an act to the state of each policy; on an error to none.
    pub(super) fn act_on_all(
        &mut self,
        act: &dyn Fn(usize) -> Act,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<(), OutOfMemory> {
        let own = self.policy_states.algorithms();
        for prepares in [true, false] {
            for (position, algorithm) in self.algorithms.iter().enumerate().take(own.len()) {
                let (act, mut own) = (act(position), self.entry.from(self.policy_states.place(position)));
                if prepares {
                    algorithm.prepare(own.reborrow(), act, now)?;
                } else {
                    algorithm.act(own.reborrow(), act, now, outcome);
                }
            }
        }
        self.note_windows(now);
        Ok(())
    }

    /// Updates the sums of the open amounts and when they drain.
    pub(crate) fn refresh(&mut self, now: u64) {
        self.extra.open.refresh();
        if self.extra.open.is_empty() {
            return;
        }
        for (position, algorithm) in self.policy_states.algorithms().iter().enumerate() {
            let own = self.entry.from(self.policy_states.place(position));
            algorithm.note_drain(own.as_read(), position, &mut self.extra.open, now);
        }
    }

    /// Updates when open amounts drain after a hit, which may have started a window that they are charged to.
    fn note_windows(&mut self, now: u64) {
        if self.extra.open.is_empty() {
            return;
        }
        for (position, algorithm) in self.policy_states.algorithms().iter().enumerate() {
            if let AnyAlgorithm::Window(Window { kind: Kind::Key, .. }) = algorithm {
                let own = self.entry.from(self.policy_states.place(position));
                algorithm.note_drain(own.as_read(), position, &mut self.extra.open, now);
            }
        }
    }
}
