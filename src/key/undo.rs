//! Undoing a hit: what of it still counts is given back, at most once.
//!
//! A decision over several keys hits each of them at once. If one denies, the hits on the others are undone. An undone hit
//! leaves a mark in its key, a reservation of nothing, until its undo is not accepted any more; so a repeated undo gives
//! nothing back. A key keeps a bounded number of marks: beyond it, the oldest is replaced by the time of its hit, and no hit
//! up to that time can be undone. So what a flood of undone hits costs is borne by undos that come late.

use alloc::string::String;
use core::fmt::{self, Display, Formatter};
use core::str::FromStr;

use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::{Charge, Outcome};
use crate::growth::OutOfMemory;
use crate::key::open_reservations::{Bits, FREE, Open, Reserved};
use crate::key::operate::KeyMut;
use crate::number::{MAX, from_base_36, push_base_36};
use crate::policy::costs::PositionCosts;
use crate::{Error, Expected};

/// How long after a hit it can be undone, in milliseconds.
pub const MAX_UNDO: u64 = 10_000;

/// The most undone hits that a key remembers.
const MAX_MARKS: usize = 256;

/// The first bits of a mark's id. A reservation has them with a probability of 1 in 2^64.
const MARK: [u32; 2] = [u32::MAX, 0];

/// The id of the mark that has the time up to which no hit can be undone.
const FLOOR: Bits = [u32::MAX, 0, 0, 0];

/// Returns whether a reservation with these bits is the mark of an undone hit.
pub(crate) fn is_mark(bits: Bits) -> bool {
    bits[..2] == MARK
}

/// The id of a hit that can be undone: 64 random bits, and when and beside what the hit was charged.
///
/// ```
/// use tollgate::HitId;
///
/// let id: HitId = "000000000000002a.lw.3".parse().unwrap();
/// assert_eq!((id.at(), id.to_string().as_str()), (788, "000000000000002a.lw.3"));
/// assert!("lost".parse::<HitId>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitId {
    random: u64,
    charge: Charge,
}

impl HitId {
    /// Returns the id of a hit, from its parts; `None` if a number is out of range.
    pub(crate) fn new(random: u64, at: u64, beside: u64) -> Option<Self> {
        let in_range = at <= MAX && beside <= MAX;
        in_range.then_some(Self { random, charge: Charge { at, beside } })
    }

    /// Returns the time of the hit, in milliseconds since the epoch.
    pub fn at(&self) -> u64 {
        self.charge.at
    }

    /// Returns how much a bucket held beside the hit.
    pub(crate) fn beside(&self) -> u64 {
        self.charge.beside
    }

    fn bits(&self) -> Bits {
        [MARK[0], MARK[1], (self.random >> 32) as u32, self.random as u32]
    }
}

impl Display for HitId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for number in [self.charge.at, self.charge.beside] {
            text.push('.');
            push_base_36(&mut text, number);
        }
        write!(f, "{:016x}{text}", self.random)
    }
}

impl FromStr for HitId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parse = || {
            let (random, rest) = text.split_once('.')?;
            let (at, beside) = rest.split_once('.')?;
            let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            let random = Some(random).filter(|random| random.len() == 16 && random.bytes().all(is_hex))?;
            Self::new(u64::from_str_radix(random, 16).ok()?, from_base_36(at)?, from_base_36(beside)?)
        };
        parse().ok_or_else(|| Error::InvalidOption {
            option: "id".into(),
            found: text.into(),
            expected: Expected::Described("the id of a hit, as its decision came with"),
        })
    }
}

impl Open {
    /// Returns whether a hit may be undone at `now`.
    fn accepts(&self, id: &HitId, now: u64) -> bool {
        let floor = self.find(FLOOR).and_then(|index| self.get(index)).map(|floor| floor.start());
        // A hit of the future was made before the clock stepped back.
        let in_time = id.at() <= now && now - id.at() <= MAX_UNDO && floor.is_none_or(|floor| floor < id.at());
        in_time && self.find(id.bits()).is_none()
    }

    /// Returns how a hit was charged, without what was beside it if some of that may have been given back since: a hit that was made
    /// by then and undone later.
    fn charge_of(&self, id: &HitId) -> Charge {
        let is_beside = |mark: Reserved| mark.start() <= id.at() && mark.made_at() >= id.at();
        let mut marks = (0..self.len()).filter_map(|index| self.get(index)).filter(|row| is_mark(row.bits()));
        let beside = if marks.any(is_beside) { 0 } else { id.beside() };
        Charge { beside, ..id.charge }
    }

    /// Remembers an undone hit. There must be room for two rows; [`Open::refresh`] must follow.
    fn remember(&mut self, id: &HitId, now: u64, policies: usize) {
        if self.marks() >= MAX_MARKS {
            self.raise_floor(now, policies);
        }
        self.mark(id.bits(), id.at(), now, policies);
    }

    /// Replaces the oldest mark by the time of its hit.
    fn raise_floor(&mut self, now: u64, policies: usize) {
        let is_oldest = |index: &usize| self.get(*index).is_some_and(|row| is_mark(row.bits()) && row.bits() != FLOOR);
        let Some(oldest) = (0..self.len()).find(is_oldest) else { return };
        let mut floor = self.get(oldest).map_or(0, |mark| mark.start());
        self.remove(oldest, 1);
        if let Some(index) = self.find(FLOOR) {
            floor = floor.max(self.get(index).map_or(0, |floor| floor.start()));
            self.remove(index, 1);
        }
        self.mark(FLOOR, floor, now, policies);
    }

    fn mark(&mut self, bits: Bits, at: u64, now: u64, policies: usize) {
        self.insert(Reserved::mark(bits, at, now, MAX_UNDO), core::iter::repeat_n(FREE, policies));
    }
}

impl KeyMut<'_> {
    /// Returns the id of a hit that was just allowed; `None` if it charged nothing, so that nothing can be undone.
    pub(crate) fn hit_id(&self, costs: &PositionCosts, random: u64, now: u64) -> Option<HitId> {
        if self.policy_states.are_zero(costs) || self.extra.exceptions.is_decision(now) {
            return None;
        }
        let beside = |(position, algorithm): (usize, &AnyAlgorithm)| {
            let level = algorithm.bucket_level(self.entry.as_read().from(self.policy_states.place(position)), now)?;
            Some(level.saturating_sub(costs.at(position)))
        };
        let beside = self.algorithms.iter().enumerate().filter_map(beside).min().unwrap_or(0);
        Some(HitId { random, charge: Charge { at: now, beside: beside.min(MAX) } })
    }

    /// Undoes a hit. Returns the most that was given back under a policy; 0 if it is too late, or was done before.
    pub(crate) fn undo(
        &mut self,
        id: &HitId,
        costs: &PositionCosts,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<u64, OutOfMemory> {
        outcome.changed |= self.expire(now)?;
        if !self.extra.open.accepts(id, now) {
            return Ok(0);
        }
        let policies = self.policy_states.algorithms().len();
        self.extra.open.make_room(policies)?;
        let charge = self.extra.open.charge_of(id);
        let mut most = 0;
        for (position, algorithm) in self.algorithms.iter().enumerate() {
            let own = self.entry.from(self.policy_states.place(position));
            most = most.max(algorithm.undo(own, costs.at(position), charge, now));
        }
        if most > 0 {
            self.extra.open.remember(id, now, policies);
            outcome.changed = true;
        }
        self.refresh(now);
        Ok(most)
    }
}

#[cfg(test)]
mod tests;
