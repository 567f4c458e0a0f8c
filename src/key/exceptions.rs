//! A key's exception: other numbers for it until a time, or a decision without numbers. It is resolved where the numbers of
//! a call are, so that a hit on a key without one does nothing for it.

use alloc::string::String;
use alloc::vec::Vec;
use core::iter::repeat_n;

use crate::algorithm::any::AnyAlgorithm;
use crate::algorithm::{Act, Outcome, Push};
use crate::growth::{OutOfMemory, copied, push};
use crate::key::decide::{Charged, KeyAt};
use crate::key::open_reservations::{FREE, Open, Reserved};
use crate::key::operate::KeyMut;
use crate::key::policy_states::{Entry, PolicyStates};
use crate::key::rows::RowRef;
use crate::key::shapes::{Names, Shape};
use crate::key::states::KeyStates;
use crate::number::{MAX, in_range};
use crate::policy::costs::PositionCosts;
use crate::policy::exception::{Exception, Numbers};
use crate::policy::scale::Scale;
use crate::policy::schema::{ALLOW, DENY, EXCEPTION, EXCEPTION_FIELDS};
use crate::{Decision, Error, Policies, Reason, Violated};

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

    /// Reads a part from its end, and the numbers of its row: when it was set, and each field's position and number. `None` if
    /// they are invalid.
    fn import(name: usize, until: u64, numbers: &[i64]) -> Option<Self> {
        let (&since, rest) = numbers.split_first()?;
        let (pairs, []) = rest.as_chunks::<2>() else { return None };
        let mut part = Self { name, until, since: since as u64, fields: [0; EXCEPTION_FIELDS.len()] };
        for &[field, number] in pairs {
            let own = part.fields.get_mut(usize::try_from(field).ok()?).filter(|own| **own == 0)?;
            *own = u64::try_from(number).ok().filter(|number| (1..=MAX).contains(number))?;
        }
        let is_decision = [ALLOW, DENY].into_iter().any(|field| part.fields[field] > 0);
        let is_valid = until <= MAX && in_range(since) && (!is_decision || pairs.len() == 1);
        is_valid.then_some(part)
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
    algorithm: AnyAlgorithm,
    are_stored: bool,
    field: usize,
    number: u64,
}

impl Unfit {
    pub(crate) fn error(self, policies: &Policies) -> Error {
        let expected = self.algorithm.limit_expected(self.are_stored);
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

    /// Reads parts from numbers: for each the number of its name, how many numbers follow, and these: its end, when it was set, and
    /// each field's position and number. `None` if they are invalid.
    pub(crate) fn from_flat(mut rest: &[i64]) -> Result<Option<Self>, OutOfMemory> {
        let mut parts = Self::default();
        while let [name, count, after @ ..] = rest {
            let Some(([until, numbers @ ..], after)) = after.split_at_checked(*count as usize) else { return Ok(None) };
            match Part::import(*name as usize, *until as u64, numbers) {
                Some(part) if parts.add(part)? && part.fields().next().is_some() => rest = after,
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

    /// Returns parts in which nothing is in force until these would have ended: so that no process with an older memory brings
    /// back what was lifted `now`. Empty if nothing was in force.
    pub(crate) fn lifted(&self, now: u64) -> Result<Self, OutOfMemory> {
        let mut lifted = Self::default();
        if let Some(part) = self.0.first().filter(|_| self.are_in_force(now)) {
            let fields = [0; EXCEPTION_FIELDS.len()];
            lifted.add(Part { until: self.ends_at(), since: now, fields, ..*part })?;
        }
        Ok(lifted)
    }

    /// Returns when the exception ends, or would have ended if it was lifted; 0 if there is none.
    pub(crate) fn ends_at(&self) -> u64 {
        self.0.iter().map(|part| part.until).max().unwrap_or(0)
    }

    /// Returns whether they only say until when an exception that was lifted would have lasted.
    pub(crate) fn are_lifted(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|part| part.fields().next().is_none())
    }

    /// Returns whether a part is in force.
    pub(crate) fn are_in_force(&self, now: u64) -> bool {
        self.0.iter().any(|part| part.is_in_force(now) && part.fields().next().is_some())
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
            let are_stored = policy_states.are_stored();
            let field = own.unfit_field(&part.fields, are_stored)?;
            Some(Unfit { position: part.name, algorithm: *own, are_stored, field, number: part.fields[field] })
        })
    }

    /// Returns the exception in force, with its end.
    pub(crate) fn exception(&self, names: &Names, now: u64) -> Option<(Exception, u64)> {
        let parts = || self.0.iter().filter(|part| part.is_in_force(now) && part.fields().next().is_some());
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
        let Some(ruling) = exceptions.ruling(self, algorithms, now)? else {
            return Ok(self.peek_beside(algorithms, entry, open, costs, now));
        };
        // After the exception's end, a hit has been charged or counted by its numbers.
        let mut copy = KeyStates::copied(entry, open)?;
        let ruling = (&ruling, exceptions.ends_at());
        copy.key_mut(self, algorithms).hit_ruled(ruling, costs, None, true, now, &mut Outcome::default())
    }
}

impl KeyAt<'_> {
    /// Returns the decision of a hit that an exception allows, or denies until a time, whatever the policies say.
    fn ruled(&self, ruling: &Ruling, costs: &PositionCosts) -> Decision {
        let unchanged = self.combined(&PositionCosts::All(0));
        let bans = self.bans(false);
        let decision = match ruling {
            Ruling::DenyUntil(until) => self.denied_until(*until, Reason::Denied, unchanged, costs, &bans),
            Ruling::Allow | Ruling::Under(_) => Decision {
                allowed: true,
                limit: MAX,
                remaining: MAX,
                retry_after: Some(0),
                more_after: 0,
                reason: None,
                ..unchanged
            },
        };
        let reset_after = unchanged.reset_after.max(bans.ends_at.saturating_sub(self.now));
        Decision { reset_after, violated: Violated::default(), ..decision }
    }
}

impl KeyMut<'_> {
    /// Decides a hit or a reservation under the key's exception.
    #[cold]
    #[inline(never)]
    pub(super) fn hit_excepted(
        &mut self,
        costs: &PositionCosts,
        reserve: Option<Reserved>,
        counts: bool,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<Decision, OutOfMemory> {
        let exceptions = &self.extra.exceptions;
        match exceptions.ruling(self.policy_states, self.algorithms, now)? {
            None => Ok(self.hit_or_reserve_under(costs, reserve, counts, now, outcome)),
            Some(ruling) => {
                let until = exceptions.ends_at();
                self.hit_ruled((&ruling, until), costs, reserve, counts, now, outcome)
            }
        }
    }

    /// The same under what an exception makes of a hit, until it ends.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    fn hit_ruled(
        &mut self,
        (ruling, until): (&Ruling, u64),
        costs: &PositionCosts,
        reserve: Option<Reserved>,
        counts: bool,
        now: u64,
        outcome: &mut Outcome,
    ) -> Result<Decision, OutOfMemory> {
        if let Ruling::Under(algorithms) = ruling {
            let Self { policy_states, entry, extra, .. } = self;
            let mut key = KeyMut { policy_states, algorithms, entry: entry.reborrow(), extra };
            let decision = key.hit_or_reserve_under(costs, reserve, counts, now, outcome);
            // Numbers until its end. A hit on slots opened none.
            let nothing = PositionCosts::All(0);
            let is_peek = decision.allowed && reserve.is_none();
            let charged = Charged { costs: if is_peek { costs } else { &nothing }, only_slots: true };
            let own = self.at(now);
            return Ok(own.after(decision, costs, charged, until, &own.bans(false)));
        }
        self.follow_clock(now, outcome)?;
        if let (Ruling::Allow, Some(reserved)) = (ruling, reserve) {
            self.open_free(reserved, now, outcome)?;
        }
        Ok(self.at(now).ruled(ruling, costs))
    }

    /// Charges expired reservations, and moves states that are far ahead of the clock back to it, as any hit does.
    fn follow_clock(&mut self, now: u64, outcome: &mut Outcome) -> Result<(), OutOfMemory> {
        outcome.changed |= self.expire(now)?;
        self.act_on_all(&|_| Act::LOOK, now, outcome)
    }

    /// Opens a reservation that charges nothing. Among too many it is left out: there is nothing to settle.
    fn open_free(&mut self, reserved: Reserved, now: u64, outcome: &mut Outcome) -> Result<(), OutOfMemory> {
        let policies = self.policy_states.algorithms().len();
        if self.extra.open.reservations() < self.policy_states.most_open() {
            self.extra.open.make_room(policies)?;
            self.extra.open.insert(reserved, repeat_n(FREE, policies));
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

impl Exceptions {
    /// Passes the part at an index to `push` as a row. Returns false if there is no such part.
    pub(crate) fn push_row(&self, index: usize, push: Push<'_>) -> Result<bool, OutOfMemory> {
        let Some(part) = self.0.get(index) else { return Ok(false) };
        let Shape { name, algorithm, scale } = part.shape();
        let count = 1 + 2 * part.fields().count();
        let head = [name as i64, algorithm as i64, scale.number(), part.until as i64, count as i64, part.since as i64];
        head.into_iter().try_for_each(&mut *push)?;
        let mut fields = part.fields().flat_map(|(field, number)| [field as i64, number as i64]);
        fields.try_for_each(push)?;
        Ok(true)
    }

    /// Adds a part that is stored as a row. Returns whether it is valid.
    pub(crate) fn load(&mut self, row: RowRef<'_>) -> Result<bool, OutOfMemory> {
        match Part::import(row.shape.name, row.ends_at, row.state).filter(|_| row.open.is_empty()) {
            Some(part) => self.add(part),
            None => Ok(false),
        }
    }
}
