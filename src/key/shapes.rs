//! The shapes of a key's rows.
//!
//! A shape is the part of a policy that a state depends on: its name, its algorithm, and its `scale` or `per`. A policy
//! whose shape changes starts unused. The row of the shape that it had stays as it is until its own end, so that a gradual
//! deploy, a rollback or two versions side by side each find theirs.

use alloc::vec::Vec;

use crate::Policies;
use crate::algorithm::any::AnyAlgorithm;
use crate::growth::{OutOfMemory, push};
use crate::policy::scale::Scale;
use crate::policy::schema::EXCEPTION;

/// A shape, with its name as a number: that of a policy is its position, others follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: usize,
    /// The algorithm's position in the schema.
    pub(crate) algorithm: usize,
    pub(crate) scale: Scale,
}

impl Shape {
    /// Returns the shape of the policy at a position.
    pub(crate) fn of(position: usize, algorithm: &AnyAlgorithm) -> Self {
        Self { name: position, algorithm: algorithm.position(), scale: algorithm.stored_scale() }
    }

    /// Parses a shape; `None` if the algorithm is unknown or the scale is not valid for it.
    pub(crate) fn parse(name: usize, algorithm: usize, scale: i64) -> Option<Self> {
        Some(Self { name, algorithm, scale: Scale::from_number(scale, algorithm)? })
    }

    /// Returns as much of a policy of this shape as is needed to charge a state and to know when it ends.
    pub(crate) fn algorithm(&self) -> Option<AnyAlgorithm> {
        AnyAlgorithm::of_shape(self.algorithm, self.scale)
    }

    /// Returns whether it is that of a part of an exception.
    pub(crate) fn is_exception(&self) -> bool {
        self.algorithm == EXCEPTION
    }

    /// Returns whether the policy of this name, of which this is the algorithm, has this shape.
    pub(crate) fn is_of(&self, algorithm: &AnyAlgorithm) -> bool {
        self.algorithm().is_some_and(|own| own.has_shape_of(algorithm))
    }
}

/// The names of shapes: those of the policies by their positions, and others that stored states have.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    policies: Policies,
    others: Vec<alloc::string::String>,
}

impl Names {
    pub(crate) fn new(policies: Policies) -> Self {
        Self { policies, others: Vec::new() }
    }

    /// Returns the number of a name.
    pub(crate) fn number(&mut self, name: &str) -> Result<usize, OutOfMemory> {
        let known = self.policies.names().chain(self.others.iter().map(|other| &other[..]));
        if let Some(number) = known.into_iter().position(|known| known == name) {
            return Ok(number);
        }
        let mut copy = alloc::string::String::new();
        copy.try_reserve_exact(name.len())?;
        copy.push_str(name);
        push(&mut self.others, copy)?;
        Ok(self.policies.len() + self.others.len() - 1)
    }

    /// Returns the names that no policy has, in the order of their numbers.
    pub(crate) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(|name| &name[..])
    }

    /// Returns the name with a number; empty if there is none.
    pub(crate) fn name(&self, number: usize) -> &str {
        match number.checked_sub(self.policies.len()) {
            None => self.policies.name(number),
            Some(other) => self.others.get(other).map_or("", |name| name),
        }
    }
}
