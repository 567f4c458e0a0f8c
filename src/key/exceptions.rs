//! A key's exception: other numbers for it until a time, or a decision without numbers. It is resolved where the numbers of
//! a call are, so that a hit on a key without one does nothing for it.

use alloc::string::String;
use alloc::vec::Vec;
use core::iter::repeat_n;

use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::{Act, Outcome, Push};
use crate::growth::{OutOfMemory, copied, push};
use crate::key::open_reservations::{FREE, Open, Reserved};
use crate::key::operate::KeyMut;
use crate::key::policy_states::{Entry, PolicyStates};
use crate::key::shapes::{Names, Shape, Shaped};
use crate::number::{MAX, in_range};
use crate::policy::costs::PositionCosts;
use crate::policy::exception::{Exception, Numbers};
use crate::policy::scale::Scale;
use crate::policy::schema::{ALLOW, DENY, EXCEPTED_LIMIT, EXCEPTION, EXCEPTION_FIELDS};
use crate::{Decision, Error, Expected, Policies, Reason, Violated};

/// The numbers of a stored part before its fields: when it ends, and when it was set.
const HEAD: usize = 2;

/// The numbers of a key's exception under one policy, or its decision, under a name that no policy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The number of the policy's name: its position, if the limiter has the policy.
    name: usize,
    until: u64,
    /// When it was set.
    since: u64,
    /// The fields in the order of the schema; 0 for one that the exception does not have.
    fields: Numbers,
}

impl Part {
    fn is_in_force(&self, now: u64) -> bool {
        now < self.until
    }

    /// Returns the fields that the part has, with their positions.
    fn fields(&self) -> impl Iterator<Item = (usize, u64)> {
        self.fields.into_iter().enumerate().filter(|(_, number)| *number > 0)
    }

    fn shape(&self) -> Shape {
        Shape { name: self.name, algorithm: EXCEPTION, scale: Scale::of_time(1) }
    }

    /// Passes the part to `push` as it is stored: its end, when it was set, and each field's position and number.
    fn export(&self, push: Push<'_>) -> Result<(), OutOfMemory> {
        [self.until, self.since].into_iter().try_for_each(|time| push(time as i64))?;
        self.fields().try_for_each(|(field, number)| {
            push(field as i64)?;
            push(number as i64)
        })
    }

    /// Reads a part as it was stored; `None` if its numbers are invalid.
    fn import(name: usize, numbers: &[i64]) -> Option<Self> {
        let (&[until, since], rest) = numbers.split_first_chunk::<HEAD>()?;
        let (pairs, []) = rest.as_chunks::<2>() else { return None };
        let mut part = Self { name, until: until as u64, since: since as u64, fields: [0; EXCEPTION_FIELDS.len()] };
        for &[field, number] in pairs {
            let own = part.fields.get_mut(usize::try_from(field).ok()?).filter(|own| **own == 0)?;
            *own = u64::try_from(number).ok().filter(|number| (1..=MAX).contains(number))?;
        }
        let is_decision = [ALLOW, DENY].into_iter().any(|field| part.fields[field] > 0);
        let has_fields = !pairs.is_empty() && (!is_decision || pairs.len() == 1);
        (in_range(until) && in_range(since) && has_fields).then_some(part)
    }
}

/// What an exception makes of a hit.
#[derive(Clone, Debug)]
enum Ruling {
    Allow,
    DenyUntil(u64),
    /// Other numbers for some policies.
    Under(Vec<AnyAlgorithm>),
}

/// The parts of a key's exception. Almost every key has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exceptions(Vec<Part>);

/// A number of an exception that a policy cannot take: at a position, in a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfit {
    pub(crate) position: usize,
    field: usize,
    number: u64,
}

impl Unfit {
    pub(crate) fn error(self, policies: &Policies) -> Error {
        let expected = match self.field {
            EXCEPTED_LIMIT => Expected::StoredLimit,
            _ => Expected::FillableCapacity,
        };
        let field = EXCEPTION_FIELDS[self.field];
        let option = alloc::format!("{}.{field}", policies.name(self.position)).into();
        Error::InvalidOption { option, found: self.number.into(), expected }
    }
}

impl Exceptions {
    /// Returns the parts of an exception that an operator gave.
    pub(crate) fn new(
        exception: &Exception,
        names: &mut Names,
        policies: &Policies,
        (until, since): (u64, u64),
    ) -> Result<Self, Error> {
        exception.check()?;
        let mut parts = Self::default();
        for (name, fields) in exception.parts() {
            let name = match name {
                "" if !exception.is_decision() => policies.position(None)?,
                "" => names.number("")?,
                name => policies.position(Some(name))?,
            };
            parts.add(Part { name, until, since, fields: *fields })?;
        }
        Ok(parts)
    }

    /// Reads parts from numbers: for each the number of its name, how many numbers follow, and these as it is stored. `None` if
    /// they are invalid.
    pub(crate) fn from_flat(mut rest: &[i64]) -> Result<Option<Self>, OutOfMemory> {
        let mut parts = Self::default();
        while let [name, count, after @ ..] = rest {
            let Some((numbers, after)) = after.split_at_checked(*count as usize) else { return Ok(None) };
            match Part::import(*name as usize, numbers) {
                Some(part) if parts.add(part)? => rest = after,
                Some(_) | None => return Ok(None),
            }
        }
        Ok(rest.is_empty().then_some(parts))
    }

    /// Adds a part. Returns false if there is one of its name.
    fn add(&mut self, part: Part) -> Result<bool, OutOfMemory> {
        if self.0.iter().any(|known| known.name == part.name) {
            return Ok(false);
        }
        push(&mut self.0, part)?;
        Ok(true)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a copy whose names have the numbers of other names.
    pub(crate) fn renamed(&self, from: &Names, to: &mut Names) -> Result<Self, OutOfMemory> {
        let mut parts = copied(&self.0)?;
        for part in &mut parts {
            part.name = to.number(from.name(part.name))?;
        }
        Ok(Self(parts))
    }

    /// Returns when the exception ends; 0 if there is none.
    pub(crate) fn ends_at(&self) -> u64 {
        self.0.iter().map(|part| part.until).max().unwrap_or(0)
    }

    /// Returns whether a part is in force.
    pub(crate) fn are_in_force(&self, now: u64) -> bool {
        now < self.ends_at()
    }

    /// Returns whether an exception is in force that decides without numbers.
    pub(crate) fn is_decision(&self, now: u64) -> bool {
        let decides = |part: &Part| part.fields[ALLOW] > 0 || part.fields[DENY] > 0;
        self.0.iter().any(|part| part.is_in_force(now) && decides(part))
    }

    /// Returns when the exception was set; 0 if there is none.
    pub(crate) fn since(&self) -> u64 {
        self.0.iter().map(|part| part.since).max().unwrap_or(0)
    }

    /// Drops the parts that have ended. Returns whether there were any.
    pub(crate) fn drop_ended(&mut self, now: u64) -> bool {
        let before = self.0.len();
        self.0.retain(|part| part.is_in_force(now));
        self.0.len() < before
    }

    /// Returns the first number that a policy cannot take.
    pub(crate) fn unfit(&self, policy_states: &PolicyStates) -> Option<Unfit> {
        self.0.iter().find_map(|part| {
            let own = policy_states.algorithms().get(part.name)?;
            let field = own.unfit_field(&part.fields, policy_states.are_stored())?;
            Some(Unfit { position: part.name, field, number: part.fields[field] })
        })
    }

    /// Returns the exception in force, with its end.
    pub(crate) fn exception(&self, names: &Names, now: u64) -> Option<(Exception, u64)> {
        let parts = || self.0.iter().filter(|part| part.is_in_force(now));
        let until = parts().map(|part| part.until).max()?;
        let parts = parts().map(|part| (String::from(names.name(part.name)), part.fields));
        Some((Exception::of_parts(parts.collect()), until))
    }

    /// Returns an algorithm with the numbers for the policy at a position.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(crate) fn applied(
        &self,
        position: usize,
        algorithm: &AnyAlgorithm,
        policy_states: &PolicyStates,
        now: u64,
    ) -> AnyAlgorithm {
        let part = self.0.iter().find(|part| part.name == position && part.is_in_force(now));
        part.map_or(*algorithm, |part| {
            let excepted = algorithm.excepted(&part.fields, policy_states.are_stored());
            let own = policy_states.algorithms().get(position);
            own.and_then(|own| own.for_call(&excepted)).unwrap_or(excepted)
        })
    }

    /// Returns what the exception makes of a hit under the algorithms of a call; `None` if no part is in force.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    fn ruling(
        &self,
        policy_states: &PolicyStates,
        algorithms: &[AnyAlgorithm],
        now: u64,
    ) -> Result<Option<Ruling>, OutOfMemory> {
        if !self.are_in_force(now) {
            return Ok(None);
        }
        for part in self.0.iter().filter(|part| part.is_in_force(now)) {
            if part.fields[ALLOW] > 0 {
                return Ok(Some(Ruling::Allow));
            }
            if part.fields[DENY] > 0 {
                return Ok(Some(Ruling::DenyUntil(part.until)));
            }
        }
        let mut list = copied(algorithms)?;
        for (position, algorithm) in list.iter_mut().enumerate() {
            *algorithm = self.applied(position, algorithm, policy_states, now);
        }
        Ok(Some(Ruling::Under(list)))
    }
}

impl PolicyStates {
    /// Returns what a hit would return beside open amounts, none of which is due, under a key's exception.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(crate) fn peek_excepted(
        &self,
        algorithms: &[AnyAlgorithm],
        exceptions: &Exceptions,
        (entry, open): (Entry<'_>, &Open),
        costs: &PositionCosts,
        now: u64,
    ) -> Result<Decision, OutOfMemory> {
        Ok(match exceptions.ruling(self, algorithms, now)? {
            None => self.peek_beside(algorithms, entry, open, costs, now),
            Some(Ruling::Under(algorithms)) => self.peek_beside(&algorithms, entry, open, costs, now),
            Some(Ruling::Allow) => self.allowed(algorithms, entry, open, now),
            Some(Ruling::DenyUntil(until)) => self.denied_until(until, algorithms, (entry, open), costs, now),
        })
    }

    /// Returns the decision of a hit that is allowed without a charge: nothing limits it.
    fn allowed(&self, algorithms: &[AnyAlgorithm], entry: Entry<'_>, open: &Open, now: u64) -> Decision {
        let unchanged = self.combined(algorithms, entry, open, &PositionCosts::All(0), now);
        let bans_end_at = self.together(algorithms, entry, now, false).ends_at;
        Decision {
            allowed: true,
            limit: MAX,
            remaining: MAX,
            retry_after: Some(0),
            reset_after: unchanged.reset_after.max(bans_end_at.saturating_sub(now)),
            more_after: 0,
            violated: Violated::default(),
            reason: None,
            ..unchanged
        }
    }

    /// Returns the decision of a hit that is denied until a time, whatever the policies say.
    fn denied_until(
        &self,
        until: u64,
        algorithms: &[AnyAlgorithm],
        (entry, open): (Entry<'_>, &Open),
        costs: &PositionCosts,
        now: u64,
    ) -> Decision {
        let others = self.combined(algorithms, entry, open, costs, now);
        let unchanged = self.combined(algorithms, entry, open, &PositionCosts::All(0), now);
        let bans = self.together(algorithms, entry, now, false);
        let wait = until.max(bans.until) - now;
        // A cost that never fits does not fit after the exception either.
        let retry_after = if others.allowed { Some(wait) } else { others.retry_after.map(|own| own.max(wait)) };
        Decision {
            allowed: false,
            remaining: 0,
            retry_after,
            reset_after: unchanged.reset_after.max(bans.ends_at.saturating_sub(now)),
            more_after: if unchanged.remaining == 0 { unchanged.more_after.max(wait) } else { wait },
            violated: Violated::default(),
            reason: Some(Reason::Denied),
            ..unchanged
        }
    }
}

impl KeyMut<'_> {
    /// Decides a hit or a reservation under the key's exception.
    #[cold]
    #[inline(never)]
    pub(super) fn hit_excepted(
        &mut self,
        costs: &PositionCosts,
        reserve: Option<(Reserved, usize)>,
        counts: bool,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<Decision, OutOfMemory> {
        match self.extra.exceptions.ruling(self.policy_states, self.algorithms, now)? {
            None => Ok(self.hit_or_reserve_under(costs, reserve, counts, now, outcome)),
            Some(Ruling::Under(algorithms)) => {
                let Self { policy_states, entry, extra, .. } = self;
                let mut key = KeyMut { policy_states, algorithms: &algorithms, entry: entry.reborrow(), extra };
                Ok(key.hit_or_reserve_under(costs, reserve, counts, now, outcome))
            }
            Some(Ruling::Allow) => {
                self.follow_clock(now, outcome)?;
                if let Some((reserved, most)) = reserve {
                    self.open_free(reserved, most, now, outcome)?;
                }
                let (entry, open) = (self.entry.as_read(), &self.extra.open);
                Ok(self.policy_states.allowed(self.algorithms, entry, open, now))
            }
            Some(Ruling::DenyUntil(until)) => {
                self.follow_clock(now, outcome)?;
                let states = (self.entry.as_read(), &self.extra.open);
                Ok(self.policy_states.denied_until(until, self.algorithms, states, costs, now))
            }
        }
    }

    /// Charges expired reservations, and moves states that are far ahead of the clock back to it, as any hit does.
    fn follow_clock(&mut self, now: u64, outcome: &mut Outcome) -> Result<(), OutOfMemory> {
        outcome.changed |= self.expire(now)?;
        self.act_on_all(&|_| Act::LOOK, now, outcome)
    }

    /// Opens a reservation that charges nothing. Among too many it is left out: there is nothing to settle.
    fn open_free(
        &mut self,
        reserved: Reserved,
        most: usize,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<(), OutOfMemory> {
        let policies = self.policy_states.algorithms().len();
        if self.extra.open.len() + self.extra.open_elsewhere(now).0 < most {
            self.extra.open.make_room(policies, true)?;
            self.extra.open.insert(reserved, repeat_n(0, policies), repeat_n(FREE, policies));
            self.refresh(now);
            outcome.changed = true;
        }
        Ok(())
    }

    /// Returns the algorithm of the policy at a position, with the numbers of the key's exception.
    pub(crate) fn own_at(&self, position: usize, now: u64) -> AnyAlgorithm {
        self.policy_states.own_at(position, &self.extra.exceptions, now)
    }
}

impl PolicyStates {
    /// Returns the algorithm of the policy at a position, with the numbers of a key's exception.
    pub(crate) fn own_at(&self, position: usize, exceptions: &Exceptions, now: u64) -> AnyAlgorithm {
        exceptions.applied(position, &self.algorithms()[position], self, now)
    }
}

impl Part {
    /// Returns the part as a state that is stored.
    fn shaped(&self) -> Result<Shaped<Vec<i64>>, OutOfMemory> {
        let mut numbers = Vec::new();
        self.export(&mut |number| push(&mut numbers, number))?;
        Ok(Shaped { shape: self.shape(), numbers, open: Vec::new() })
    }
}

impl Exceptions {
    /// Returns the part at an index as a state that is stored.
    pub(crate) fn shaped(&self, index: usize) -> Result<Option<Shaped<Vec<i64>>>, OutOfMemory> {
        self.0.get(index).map(Part::shaped).transpose()
    }

    /// Passes the part at an index to `push` as a state that is stored: its shape, how many numbers it has, and these.
    /// Returns false if there is no such part.
    pub(crate) fn flatten(&self, index: usize, push: Push<'_>) -> Result<bool, OutOfMemory> {
        let Some(part) = self.0.get(index) else { return Ok(false) };
        let Shape { name, algorithm, scale } = part.shape();
        let count = HEAD + 2 * part.fields().count();
        [name as i64, algorithm as i64, scale.number(), count as i64].into_iter().try_for_each(&mut *push)?;
        part.export(push)?;
        Ok(true)
    }

    /// Adds a part that is stored as a state. Returns whether it is valid.
    pub(crate) fn load(&mut self, shaped: &Shaped<&[i64]>) -> Result<bool, OutOfMemory> {
        match Part::import(shaped.shape.name, shaped.numbers).filter(|_| shaped.open.is_empty()) {
            Some(part) => self.add(part),
            None => Ok(false),
        }
    }

    /// Returns the end of each part.
    #[cfg(feature = "cloudflare")]
    pub(crate) fn ends(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|part| part.until)
    }
}

impl Shape {
    /// Returns whether it is that of a part of an exception.
    pub(crate) fn is_exception(&self) -> bool {
        self.algorithm == EXCEPTION
    }
}
