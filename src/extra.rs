//! What a few keys have beside their states: states under other scales, and open reservations.

use alloc::vec::Vec;

use crate::algorithm::rule::Rule;
use crate::algorithm::window::{Kind, Window};
use crate::algorithm::{Act, Outcome};
use crate::costs::{AS_RESERVED, PositionCosts};
use crate::earlier::{self, Earlier, drop_ended, last_until};
use crate::memory::OutOfMemory;
use crate::open::{Bits, Open, Reserved};
use crate::policy::schema::MAX_POLICIES;
use crate::policy_states::{Entry, EntryMut, PolicyStates};
use crate::reservation::Settlement;
use crate::{Decision, Reason};

/// What one key has beside its states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// The states of policies whose scale changed.
    pub(crate) earlier: Vec<Earlier>,
    pub(crate) open: Open,
}

impl Extra {
    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.earlier.is_empty() && self.open.is_empty()
    }

    /// Returns when the states end with what is beside them; `now` or earlier if they have.
    pub(crate) fn end_at(&self, policy_states: &PolicyStates, entry: Entry<'_>, now: u64) -> u64 {
        let ends_at = policy_states.all_end_at(entry, now).max(last_until(&self.earlier));
        if self.open.is_empty() {
            return ends_at;
        }
        // A key with something open has not ended, even if it is due.
        ends_at.max(policy_states.open_ends_at(entry, &self.open, now)).max(now + 1)
    }
}

/// Returns a list of an extra, or of none if there is nothing in it.
pub(crate) fn listed(extra: &mut Extra) -> Result<Vec<Extra>, OutOfMemory> {
    let mut list = Vec::new();
    if !extra.is_empty() {
        list.try_reserve_exact(1)?;
        list.push(core::mem::take(extra));
    }
    Ok(list)
}

/// A key's states to be changed, with what is beside them.
pub(crate) struct KeyMut<'a> {
    pub(crate) policy_states: &'a PolicyStates,
    /// The rules of the call, or the limiter's own.
    pub(crate) rules: &'a [Rule],
    pub(crate) entry: EntryMut<'a>,
    pub(crate) extra: &'a mut Extra,
}

impl KeyMut<'_> {
    /// Asks all policies, and charges all of them if all allow it.
    pub(crate) fn hit(&mut self, costs: &PositionCosts, now: u64, outcome: &mut Outcome) -> Decision {
        self.hit_or_reserve(costs, None, now, outcome)
    }

    /// Asks all policies, and opens a reservation if all allow it and there are fewer than `most`.
    pub(crate) fn reserve(
        &mut self,
        costs: &PositionCosts,
        reserved: Reserved,
        most: usize,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        self.hit_or_reserve(costs, Some((reserved, most)), now, outcome)
    }

    fn hit_or_reserve(
        &mut self,
        costs: &PositionCosts,
        reserve: Option<(Reserved, usize)>,
        now: u64,
        outcome: &mut Outcome,
    ) -> Decision {
        if let ([rule], true, None) = (self.rules, self.extra.earlier.is_empty(), reserve)
            && !self.extra.open.is_due(now)
        {
            return self.hit_single(rule, costs.at(0), now, outcome);
        }
        let result = self.expire(now).and_then(|moved| {
            outcome.changed |= moved;
            let decision =
                self.policy_states.peek_beside(self.rules, self.entry.as_read(), &self.extra.open, costs, now);
            match reserve {
                Some((reserved, most)) if decision.allowed => self.open(costs, reserved, most, now, outcome),
                _ => self.charge(decision, costs, now, outcome),
            }
        });
        result.unwrap_or_else(|OutOfMemory| {
            outcome.out_of_memory = true;
            Decision::NOTHING
        })
    }

    /// Does the most common of hits beside what is open: under a single policy, when nothing is due.
    fn hit_single(&mut self, rule: &Rule, cost: u64, now: u64, outcome: &mut Outcome) -> Decision {
        let act = self.policy_states.hit_of(cost);
        let decision = rule.peek_beside(self.entry.as_read(), act, self.extra.open.of(0), now);
        let act = if act.charges(decision.allowed) { Act::Inc(cost) } else { Act::LOOK };
        rule.act(self.entry.reborrow(), act, now, outcome);
        self.note_windows(now);
        decision
    }

    /// Charges a hit, or lets states that are too far ahead follow the clock.
    fn charge(
        &mut self,
        decision: Decision,
        costs: &PositionCosts,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<Decision, OutOfMemory> {
        let charges = self.policy_states.charges(&decision, costs);
        let act = |position| if charges { Act::Inc(costs.at(position)) } else { Act::LOOK };
        self.act_on_all(&act, now, outcome)?;
        Ok(decision)
    }

    /// Opens a reservation that all policies allow.
    fn open(
        &mut self,
        costs: &PositionCosts,
        reserved: Reserved,
        most: usize,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<Decision, OutOfMemory> {
        let open = &mut self.extra.open;
        if open.len() >= most {
            let room_at = open.first_end().unwrap_or(now);
            let (retry_after, reason) = (Some(room_at - now), Some(Reason::Full));
            return Ok(Decision { allowed: false, retry_after, reason, ..self.look(now) });
        }
        let own = self.policy_states.rules();
        let numbers = own.iter().zip(self.rules).map(|(own, call)| own.call_numbers(call));
        open.reserve(own.len(), numbers.clone().any(|numbers| numbers != [0; 2]))?;
        self.act_on_all(&|_| Act::LOOK, now, outcome)?;
        self.extra.open.insert(reserved, (0..own.len()).map(|position| costs.at(position)), numbers);
        self.refresh(now);
        outcome.changed = true;
        // Nothing was charged: the numbers are those of what is open now.
        Ok(self.look(now))
    }

    /// Returns what a hit of no cost would return. Nothing may be due.
    fn look(&self, now: u64) -> Decision {
        let (entry, nothing) = (self.entry.as_read(), PositionCosts::All(0));
        self.policy_states.peek_beside(self.rules, entry, &self.extra.open, &nothing, now)
    }

    /// Changes one policy's state without asking, and returns the count, open amounts included.
    pub(crate) fn change(&mut self, position: usize, act: Act, now: u64) -> Result<u64, OutOfMemory> {
        self.expire(now)?;
        let Self { policy_states, entry, extra, .. } = self;
        earlier::change(policy_states, position, entry.reborrow(), &mut extra.earlier, act, now)?;
        self.note_windows(now);
        Ok(self.policy_states.look(position, self.entry.as_read(), &self.extra.open, now).count)
    }

    /// Closes a reservation and charges what was used.
    pub(crate) fn settle(
        &mut self,
        bits: Bits,
        used: &PositionCosts,
        now: u64,
    ) -> Result<Option<Settlement>, OutOfMemory> {
        self.expire(now)?;
        let Some(index) = self.extra.open.find(bits) else { return Ok(None) };
        self.charge_closed(index, now, now, used)?;
        self.extra.open.remove(index, 1);
        self.refresh(now);
        Ok(Some(Settlement::Settled))
    }

    /// Moves the end of a reservation.
    pub(crate) fn extend(&mut self, bits: Bits, ttl: u64, now: u64) -> Result<Option<Settlement>, OutOfMemory> {
        self.expire(now)?;
        let Some(index) = self.extra.open.find(bits) else { return Ok(None) };
        self.extra.open.extend(index, now, ttl);
        self.refresh(now);
        Ok(Some(Settlement::Extended))
    }

    /// Makes the key as if never used but for what is open.
    pub(crate) fn reset_used(&mut self, now: u64) -> Result<(), OutOfMemory> {
        self.expire(now)?;
        self.policy_states.clear(self.entry.reborrow(), now);
        self.extra.earlier.clear();
        self.refresh(now);
        Ok(())
    }

    /// Charges the reservations that have expired, each at its end. Returns whether anything changed.
    pub(crate) fn expire(&mut self, now: u64) -> Result<bool, OutOfMemory> {
        if !self.extra.open.is_due(now) {
            return Ok(false);
        }
        let moved = self.extra.open.follow_clock(now);
        let mut expired = 0;
        let mut charged = Ok(());
        while charged.is_ok()
            && let Some(reserved) = self.extra.open.get(expired).filter(|reserved| reserved.end() <= now)
        {
            charged =
                self.charge_closed(expired, reserved.end(), now, &PositionCosts::Each([AS_RESERVED; MAX_POLICIES]));
            expired += usize::from(charged.is_ok());
        }
        self.extra.open.remove(0, expired);
        self.refresh(now);
        charged.map(|()| moved || expired > 0)
    }

    /// Charges what was used of a reservation that is closed at a time, which may be past.
    pub(crate) fn charge_closed(
        &mut self,
        index: usize,
        closed_at: u64,
        now: u64,
        used: &PositionCosts,
    ) -> Result<(), OutOfMemory> {
        let Some(reserved) = self.extra.open.get(index) else { return Ok(()) };
        for prepares in [true, false] {
            for (position, rule) in self.policy_states.rules().iter().enumerate() {
                let rule = self.extra.open.rule(index, position, rule);
                let mut own = self.entry.from(self.policy_states.place(position));
                let cost = match used.at(position) {
                    AS_RESERVED => self.extra.open.amount(index, position),
                    used => used,
                };
                let period = rule.period();
                // Not before what the state has seen, unless that was a wrong reading of the clock.
                let mut at = reserved.charged_at(closed_at, period).max(rule.latest(own.as_read()));
                if at > closed_at + period {
                    at = now;
                }
                let act = if cost > 0 { Act::Inc(cost) } else { Act::LOOK };
                if prepares {
                    rule.prepare(own.reborrow(), act, at)?;
                } else {
                    rule.act(own.reborrow(), act, at, &mut Outcome::default());
                }
                earlier::charge(&mut self.extra.earlier, position, cost, at, prepares)?;
            }
        }
        Ok(())
    }

    /// Does an operation of each policy on its state, or on an error none. What is charged is charged to the earlier states
    /// too.
    fn act_on_all(&mut self, act: &dyn Fn(usize) -> Act, now: u64, outcome: &mut Outcome) -> Result<(), OutOfMemory> {
        drop_ended(&mut self.extra.earlier, now);
        let own = self.policy_states.rules();
        for prepares in [true, false] {
            // The call's rules decided; the own ones keep what a state of theirs must.
            for (position, rule) in self.rules.iter().enumerate().take(own.len()) {
                let (act, mut own) = (act(position), self.entry.from(self.policy_states.place(position)));
                if prepares {
                    rule.prepare(own.reborrow(), act, now)?;
                } else {
                    rule.act(own.reborrow(), act, now, outcome);
                }
                if let Act::Inc(cost @ 1..) = act {
                    earlier::charge(&mut self.extra.earlier, position, cost, now, prepares)?;
                }
            }
        }
        self.note_windows(now);
        Ok(())
    }

    /// Brings what is known of the open amounts up to date.
    pub(crate) fn refresh(&mut self, now: u64) {
        self.extra.open.refresh();
        if self.extra.open.is_empty() {
            return;
        }
        for (position, rule) in self.policy_states.rules().iter().enumerate() {
            let own = self.entry.from(self.policy_states.place(position));
            rule.note_drain(own.as_read(), position, &mut self.extra.open, now);
        }
    }

    /// Notes the windows that a key's own hits began: open amounts are charged to them.
    fn note_windows(&mut self, now: u64) {
        if self.extra.open.is_empty() {
            return;
        }
        for (position, rule) in self.policy_states.rules().iter().enumerate() {
            if let Rule::Window(Window { kind: Kind::Key, .. }) = rule {
                let own = self.entry.from(self.policy_states.place(position));
                rule.note_drain(own.as_read(), position, &mut self.extra.open, now);
            }
        }
    }
}
