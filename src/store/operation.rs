//! Operations on a key and their results, as a caller names them.

use crate::key::perform::Counts;
use crate::policy::costs::{AS_RESERVED, PositionCosts};
use crate::{Costs, Decision, Error, Exception, HitId, Lease, Policies, Renewal, ReservationId, Settlement};

/// An operation on a key. With several policies, `policy` names one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation<'a> {
    /// Decides a hit, and charges the cost if it fits.
    Hit {
        /// The cost.
        cost: u64,
    },
    /// Returns the decision of a hit. Changes no state.
    Peek {
        /// The cost.
        cost: u64,
    },
    /// Charges a cost whether it fits or not; a negative cost gives back.
    Inc {
        /// The policy that is charged.
        policy: Option<&'a str>,
        /// The cost.
        cost: i64,
    },
    /// Sets the count, as if `count` had just been used, or the tokens.
    Set {
        /// The policy that is set.
        policy: Option<&'a str>,
        /// The new count.
        count: u64,
    },
    /// Returns the count.
    Get {
        /// The policy that is read.
        policy: Option<&'a str>,
    },
    /// Returns when the state ends, in milliseconds since the epoch; 0 if there is none.
    ExpiresAt {
        /// The policy that is read.
        policy: Option<&'a str>,
    },
    /// Begins a ban that ends after `length`, or changes the end of the one that holds. Its result is the end, in
    /// milliseconds since the epoch.
    Ban {
        /// The policy, whose algorithm is `ban`.
        policy: Option<&'a str>,
        /// How long it lasts from now, in milliseconds.
        length: u64,
    },
    /// Lifts a ban and forgets past ones. Its result is when it would have ended; 0 if none held.
    Unban {
        /// The policy, whose algorithm is `ban`.
        policy: Option<&'a str>,
    },
    /// Sets the exception of the key, in the place of the one that it has; without one, lifts that. Its result is the end of the
    /// exception that was set, or would have ended; 0 if there was none.
    Except {
        /// The exception.
        exception: Option<&'a Exception>,
        /// When it ends, in milliseconds since the epoch: within [`MAX_EXCEPTION`](crate::MAX_EXCEPTION) from now. Without an
        /// exception, it is ignored.
        until: u64,
    },
    /// Removes the states. Reservations and an exception stay.
    Reset,
    /// Removes the states and the reservations. An exception stays.
    ResetAll,
    /// Decides a hit with a cost for each policy, and charges the costs if all fit.
    HitCosts {
        /// The costs.
        costs: Costs<'a>,
    },
    /// Returns the decision of such a hit. Changes no state.
    PeekCosts {
        /// The costs.
        costs: Costs<'a>,
    },
    /// Decides a hit with a cost for each policy that can be undone.
    HitUndoable {
        /// The costs.
        costs: Costs<'a>,
        /// 64 random bits for the id.
        random: u64,
    },
    /// Undoes a hit within [`MAX_UNDO`](crate::MAX_UNDO), once: gives back what of it still counts, as if it had not been
    /// made. Its result is the most that was given back under a policy.
    Undo {
        /// The hit.
        id: HitId,
        /// The costs of the hit.
        costs: Costs<'a>,
    },
    /// Decides a hit, and opens a reservation of the costs if they fit.
    Reserve {
        /// The costs to reserve.
        costs: Costs<'a>,
        /// How long it lasts, in milliseconds; by default the `ttl` of a concurrency policy, or a minute.
        ttl: Option<u64>,
        /// 128 random bits for the id.
        random: u128,
    },
    /// Closes a reservation and charges the used amounts.
    Settle {
        /// The reservation.
        id: ReservationId,
        /// The used amounts; by default the reserved ones.
        used: Option<Costs<'a>>,
    },
    /// Moves the end of a reservation.
    Extend {
        /// The reservation.
        id: ReservationId,
        /// How long it lasts from now, in milliseconds.
        ttl: u64,
    },
    /// Decides a hit of a lease's holder, and renews the lease or takes it back.
    Lease {
        /// The cost of the hit; 0 if there is none.
        cost: u64,
        /// The holder's report and request.
        renewal: Renewal,
    },
}

impl<'a> Operation<'a> {
    /// Returns the position of the policy that the operation names; 0 if it names none.
    pub(super) fn position(&self, policies: &Policies) -> Result<usize, Error> {
        match *self {
            Self::Inc { policy, .. } | Self::Set { policy, .. } | Self::Get { policy } | Self::ExpiresAt { policy } => {
                policies.position(policy)
            }
            Self::Ban { policy, .. } | Self::Unban { policy } => policies.ban_position(policy),
            _ => Ok(0),
        }
    }

    /// Returns the costs of a hit, a peek, an undo or a reservation.
    fn costs(&self) -> Costs<'a> {
        match *self {
            Self::Hit { cost } | Self::Peek { cost } => Costs::All(cost),
            Self::HitCosts { costs }
            | Self::PeekCosts { costs }
            | Self::HitUndoable { costs, .. }
            | Self::Undo { costs, .. }
            | Self::Reserve { costs, .. } => costs,
            _ => Costs::All(0),
        }
    }

    /// Returns the costs by the positions of the policies: of a settlement, the used amounts.
    pub(super) fn position_costs(&self, policies: &Policies) -> Result<PositionCosts, Error> {
        let Self::Settle { id, used } = self else { return self.costs().at_positions(policies, 1) };
        id.check_used(*used)?;
        used.unwrap_or(Costs::ByPolicy(&[])).at_positions(policies, AS_RESERVED)
    }

    /// Returns what of the policies the operation counts on.
    pub(super) fn counts(&self, position: usize) -> Counts {
        match self {
            Self::Hit { .. } | Self::HitCosts { .. } | Self::HitUndoable { .. } | Self::Lease { .. } => Counts::Hit,
            Self::Inc { .. } => Counts::One(position, "inc"),
            Self::Set { .. } => Counts::One(position, "set"),
            _ => Counts::Nothing,
        }
    }
}

/// The result of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Of a hit or a peek.
    Decision(Decision),
    /// Of a hit that can be undone.
    Undoable {
        /// The decision.
        decision: Decision,
        /// The hit's id; `None` if it was denied, or charged nothing.
        id: Option<HitId>,
    },
    /// Of `Inc`, `Set` and `Get`: the count. Of `ExpiresAt`, `Ban`, `Unban` and `Except`: a time. Of `Undo`: a cost.
    Number(u64),
    /// Of a reset.
    Done,
    /// Of a reservation.
    Reserved {
        /// The decision.
        decision: Decision,
        /// The reservation's id; `None` if it was denied.
        id: Option<ReservationId>,
    },
    /// Of settling or extending a reservation.
    Settled(Settlement),
    /// Of a hit with a renewal.
    Leased {
        /// The decision. The unspent part of the lease counts as free, since the holder may spend it.
        decision: Decision,
        /// The lease; `None` if none is open.
        lease: Option<Lease>,
    },
}
