//! Data that only some keys have beside their states: states under other scales, and open reservations.

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

/// The data of one key beside its states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// The states of policies whose scale changed.
    pub(crate) earlier: Vec<Earlier>,
    pub(crate) open: Open,
}

impl Extra {
    /// Returns whether there are no earlier states and no open reservations.
    pub(crate) fn is_empty(&self) -> bool {
        self.earlier.is_empty() && self.open.is_empty()
    }

    /// Returns when the states, the earlier states and the reservations have all ended; `now` or earlier if they have.
    pub(crate) fn end_at(&self, policy_states: &PolicyStates, entry: Entry<'_>, now: u64) -> u64 {
        let ends_at = policy_states.all_end_at(entry, now).max(last_until(&self.earlier));
        if self.open.is_empty() {
            return ends_at;
        }
        // A key with an open reservation has not ended, even if the reservation is due.
        ends_at.max(policy_states.open_ends_at(entry, &self.open, now)).max(now + 1)
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

/// Mutable access to a key's states and its [`Extra`].
pub(crate) struct KeyMut<'a> {
    pub(crate) policy_states: &'a PolicyStates,
    /// The rules that decide: those of the call, or the limiter's own.
    pub(crate) rules: &'a [Rule],
    pub(crate) entry: EntryMut<'a>,
    pub(crate) extra: &'a mut Extra,
}

impl KeyMut<'_> {
    /// Decides a hit, and charges all policies if all allow it.
    pub(crate) fn hit(&mut self, costs: &PositionCosts, now: u64, outcome: &mut Outcome) -> Decision {
        self.hit_or_reserve(costs, None, now, outcome)
    }

    /// Decides a reservation, and opens it if all policies allow it and fewer than `most` are open.
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

    /// Decides a hit under a single policy when no reservation is due: the most common case.
    fn hit_single(&mut self, rule: &Rule, cost: u64, now: u64, outcome: &mut Outcome) -> Decision {
        let act = self.policy_states.hit_of(cost);
        let decision = rule.peek_beside(self.entry.as_read(), act, self.extra.open.of(0), now);
        let act = if act.charges(decision.allowed) { Act::charged(cost, decision.allowed) } else { Act::LOOK };
        rule.act(self.entry.reborrow(), act, now, outcome);
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
        // No state was charged: the decision's numbers are those with the new reservation.
        Ok(self.look(now))
    }

    /// Returns the decision of a hit of cost 0. No reservation may be due.
    fn look(&self, now: u64) -> Decision {
        let (entry, no_cost) = (self.entry.as_read(), PositionCosts::All(0));
        self.policy_states.peek_beside(self.rules, entry, &self.extra.open, &no_cost, now)
    }

    /// Changes one policy's state unconditionally, and returns the count, open amounts included.
    pub(crate) fn change(&mut self, position: usize, act: Act, now: u64) -> Result<u64, OutOfMemory> {
        self.expire(now)?;
        let Self { policy_states, entry, extra, .. } = self;
        earlier::change(policy_states, position, entry.reborrow(), &mut extra.earlier, act, now)?;
        self.shorten_earlier(now);
        self.note_windows(now);
        Ok(self.policy_states.look(position, self.entry.as_read(), &self.extra.open, now).count)
    }

    /// Closes a reservation and charges the used amounts; `None` if it is not open.
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

    /// Moves the end of a reservation; `None` if it is not open.
    pub(crate) fn extend(&mut self, bits: Bits, ttl: u64, now: u64) -> Result<Option<Settlement>, OutOfMemory> {
        self.expire(now)?;
        let Some(index) = self.extra.open.find(bits) else { return Ok(None) };
        self.extra.open.extend(index, now, ttl);
        let Extra { earlier, open } = &mut *self.extra;
        for earlier in earlier {
            earlier.keep_beside(open.of(earlier.position).last_end(), now);
        }
        self.refresh(now);
        Ok(Some(Settlement::Extended))
    }

    /// Clears the states. Open reservations stay.
    pub(crate) fn reset_used(&mut self, now: u64) -> Result<(), OutOfMemory> {
        self.expire(now)?;
        self.policy_states.clear(self.entry.reborrow(), now);
        self.extra.earlier.clear();
        self.refresh(now);
        Ok(())
    }

    /// Drops the earlier states that are no longer kept, and charges the reservations that have expired, each at its end.
    /// Returns whether a reservation changed.
    pub(crate) fn expire(&mut self, now: u64) -> Result<bool, OutOfMemory> {
        drop_ended(&mut self.extra.earlier, now);
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

    /// Charges the used amounts of a reservation that is closed at `closed_at`, which may be in the past.
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
                let mut own = self.entry.from(self.policy_states.place(position));
                let amount = self.extra.open.amount(index, position);
                let rule = self.extra.open.rule(index, position, rule).keeping(own.as_read(), amount);
                let cost = match used.at(position) {
                    AS_RESERVED => amount,
                    used => used,
                };
                let period = rule.period();
                // Not before the latest time in the state, unless that was a wrong reading of the clock.
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
                earlier::charge(&mut self.extra.earlier, position, cost, amount, at, prepares)?;
            }
        }
        Ok(())
    }

    /// Applies an act to the state of each policy; on an error to none. Costs are charged to the earlier states too.
    fn act_on_all(&mut self, act: &dyn Fn(usize) -> Act, now: u64, outcome: &mut Outcome) -> Result<(), OutOfMemory> {
        let own = self.policy_states.rules();
        let mut charges = false;
        for prepares in [true, false] {
            // The rules of a call are adjusted to the own rules, so the states stay valid for those.
            for (position, rule) in self.rules.iter().enumerate().take(own.len()) {
                let (act, mut own) = (act(position), self.entry.from(self.policy_states.place(position)));
                if prepares {
                    rule.prepare(own.reborrow(), act, now)?;
                } else {
                    rule.act(own.reborrow(), act, now, outcome);
                }
                if let Act::Inc(cost @ 1..) | Act::Count(cost @ 1..) = act {
                    earlier::charge(&mut self.extra.earlier, position, cost, 0, now, prepares)?;
                    charges = true;
                }
            }
        }
        if charges {
            self.shorten_earlier(now);
        }
        self.note_windows(now);
        Ok(())
    }

    /// Keeps the earlier states no longer than is needed, also if the clock was far ahead. Those beside open reservations are
    /// needed for their charges.
    fn shorten_earlier(&mut self, now: u64) {
        let Extra { earlier, open } = &mut *self.extra;
        for earlier in earlier {
            earlier.shorten(open.of(earlier.position).last_end().unwrap_or(0).max(now));
        }
    }

    /// Updates the sums of the open amounts and when they drain.
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

    /// Updates when open amounts drain after a hit, which may have started a window that they are charged to.
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
