//! One operation on a key's rows, with policies by position: names are resolved where it is made.

use crate::algorithm::{Act, Outcome};
use crate::key::open_reservations::{Bits, Reserved};
use crate::key::operate::KeyMut;
use crate::key::reservation::bits_of;
use crate::number::{check_cost, check_count};
use crate::policy::costs::PositionCosts;
use crate::{Answer, Error, HitId, Renewal, ReservationId};

/// An operation that may change a key. Reading is a function of its own, which borrows the key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyOp<'a> {
    Hit {
        costs: &'a PositionCosts,
    },
    /// A hit that can be undone, with the random bits of its id.
    HitUndoable {
        costs: &'a PositionCosts,
        random: u64,
    },
    Undo {
        id: HitId,
        costs: &'a PositionCosts,
    },
    /// Charges a cost, or gives it back. That of 0 is a reading.
    Inc {
        position: usize,
        cost: i64,
    },
    Set {
        position: usize,
        count: u64,
    },
    /// Begins a ban; without a length, lifts it.
    Ban {
        position: usize,
        length: Option<u64>,
    },
    Reset {
        reservations: bool,
    },
    Reserve {
        costs: &'a PositionCosts,
        /// By default that of the policies.
        ttl: Option<u64>,
        random: u128,
    },
    Settle {
        id: ReservationId,
        used: &'a PositionCosts,
    },
    Extend {
        id: ReservationId,
        ttl: u64,
    },
    Lease {
        cost: u64,
        renewal: &'a Renewal,
    },
}

/// What an operation counts on, which some policies reject: those that count reservations or denials alone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counts {
    Nothing,
    Hit,
    /// The policy at a position, by an operation of this name.
    One(usize, &'static str),
}

impl KeyOp<'_> {
    /// Returns what of the policies the operation counts on.
    pub(crate) fn counts(&self) -> Counts {
        match self {
            Self::Hit { .. } | Self::HitUndoable { .. } | Self::Lease { .. } => Counts::Hit,
            Self::Inc { position, .. } => Counts::One(*position, "inc"),
            Self::Set { position, .. } => Counts::One(*position, "set"),
            Self::Undo { .. }
            | Self::Ban { .. }
            | Self::Reset { .. }
            | Self::Reserve { .. }
            | Self::Settle { .. }
            | Self::Extend { .. } => Counts::Nothing,
        }
    }

    /// Returns whether the operation may make rows.
    pub(crate) fn can_make_rows(&self) -> bool {
        match self {
            Self::Inc { cost, .. } => *cost > 0,
            Self::Ban { length, .. } => length.is_some(),
            Self::Hit { .. }
            | Self::HitUndoable { .. }
            | Self::Set { .. }
            | Self::Reserve { .. }
            | Self::Lease { .. } => true,
            Self::Undo { .. } | Self::Reset { .. } | Self::Settle { .. } | Self::Extend { .. } => false,
        }
    }

    /// Returns the bits of the reservation that the operation is on.
    pub(crate) fn reservation(&self) -> Option<Bits> {
        match self {
            Self::Settle { id, .. } | Self::Extend { id, .. } => Some(id.bits()),
            Self::Lease { renewal, .. } => renewal.id.map(|id| id.bits()),
            Self::Hit { .. }
            | Self::HitUndoable { .. }
            | Self::Undo { .. }
            | Self::Inc { .. }
            | Self::Set { .. }
            | Self::Ban { .. }
            | Self::Reset { .. }
            | Self::Reserve { .. } => None,
        }
    }
}

impl KeyMut<'_> {
    /// Performs an operation. On an error nothing has changed.
    pub(crate) fn perform(&mut self, op: &KeyOp<'_>, now: u64, outcome: &mut Outcome) -> Result<Answer, Error> {
        Ok(match *op {
            KeyOp::Hit { costs } => Answer::Decision(self.hit(costs, now, outcome)),
            KeyOp::HitUndoable { costs, random } => {
                let decision = self.hit(costs, now, outcome);
                let id = if decision.allowed { self.hit_id(costs, random, now) } else { None };
                Answer::Undoable { decision, id }
            }
            KeyOp::Undo { id, costs } => Answer::Number(self.undo(&id, costs, now, outcome)?),
            KeyOp::Inc { position, cost } => {
                Answer::Number(self.charge_one(position, Act::inc(cost)?, now, outcome)?)
            }
            KeyOp::Set { position, count } => {
                check_count(count, self.own_at(position, now).most_to_set())?;
                Answer::Number(self.charge_one(position, Act::Set(count), now, outcome)?)
            }
            KeyOp::Ban { position, length } => {
                outcome.changed = true;
                Answer::Number(self.hold(position, length, now))
            }
            KeyOp::Reset { reservations: false } => {
                self.reset_used(now)?;
                Answer::Done
            }
            KeyOp::Reset { reservations: true } => {
                self.reset_all(now);
                Answer::Done
            }
            KeyOp::Reserve { costs, ttl, random } => {
                let ttl = ttl.unwrap_or_else(|| self.policy_states.default_ttl());
                let reserved = Reserved::new(bits_of(random), now, ttl);
                let decision = self.reserve(costs, reserved, now, outcome);
                let by_policy = matches!(costs, PositionCosts::Each(_));
                let id = ReservationId { random, end: reserved.end(), by_policy };
                Answer::Reserved { decision, id: decision.allowed.then_some(id) }
            }
            KeyOp::Settle { id, used } => {
                outcome.changed = self.expire(now)?;
                let settlement = self.settle(id.bits(), used, now)?;
                outcome.changed |= settlement.is_some();
                Answer::Settled(settlement.unwrap_or(id.missing(now)))
            }
            KeyOp::Extend { id, ttl } => {
                outcome.changed = self.expire(now)?;
                let settlement = self.extend(id.bits(), ttl, now)?;
                outcome.changed |= settlement.is_some();
                Answer::Settled(settlement.unwrap_or(id.missing(now)))
            }
            KeyOp::Lease { cost, renewal } => {
                renewal.check()?;
                let (decision, lease) = self.renew(check_cost(cost)?, renewal, now, outcome)?;
                Answer::Leased { decision, lease }
            }
        })
    }

    /// Changes one policy's state unconditionally, and returns the count.
    fn charge_one(&mut self, position: usize, act: Act, now: u64, outcome: &mut Outcome) -> Result<u64, Error> {
        outcome.changed = true;
        Ok(self.change(position, act, now)?)
    }
}
