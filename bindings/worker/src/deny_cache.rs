//! The denials that an isolate remembers, so that a flood of them costs no calls to the object.

use std::collections::VecDeque;
use std::rc::Rc;

use hashbrown::{Equivalent, HashMap};

use tollgate::Decision;
use tollgate::cloudflare::wire::later;

/// The longest that a denial is remembered, in milliseconds: how late a `set` or `reset` may be seen.
const LONGEST: u64 = 2_000;

/// The key of a denial: the name of the object, and the hash of the policies with all their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Who<'a> {
    pub(crate) object: &'a str,
    pub(crate) policies: u64,
}

/// Denials of hits at a cost or more, each for a while. At most `capacity` of them.
#[derive(Debug)]
pub(crate) struct DenyCache {
    capacity: usize,
    denials: HashMap<Owned, Denial>,
    /// In the order in which they came, which is about the order in which they end.
    order: VecDeque<(Owned, u64)>,
}

/// An owned [`Who`]. The fields have the same order, so that both have the same hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Owned {
    object: Rc<str>,
    policies: u64,
}

impl Equivalent<Owned> for Who<'_> {
    fn equivalent(&self, owned: &Owned) -> bool {
        self.policies == owned.policies && *self.object == *owned.object
    }
}

#[derive(Debug)]
struct Denial {
    cost: u64,
    since: u64,
    until: u64,
    decision: Decision,
}

impl DenyCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, denials: HashMap::new(), order: VecDeque::new() }
    }

    /// Remembers a denial for as long as it is certain to last.
    pub(crate) fn remember(&mut self, who: Who<'_>, cost: u64, decision: Decision, now: u64) {
        let lasts = decision.retry_after.unwrap_or(LONGEST).min(LONGEST);
        if decision.allowed || lasts == 0 || self.capacity == 0 {
            return;
        }
        self.make_room(now);
        let owned = Owned { object: who.object.into(), policies: who.policies };
        self.denials.insert(owned.clone(), Denial { cost, since: now, until: now + lasts, decision });
        self.order.push_back((owned, now));
    }

    /// Returns the denial of a hit that is certain to be denied, with its waits counted from now. A higher cost gets
    /// the waits of the lower one.
    pub(crate) fn recall(&self, who: Who<'_>, cost: u64, now: u64) -> Option<Decision> {
        let denial = self.denials.get(&who)?;
        // A clock that stepped back says nothing about how long ago that was.
        if cost < denial.cost || !(denial.since..denial.until).contains(&now) {
            return None;
        }
        Some(later(denial.decision, now - denial.since))
    }

    /// Drops denials that have ended, and then the oldest if there are still too many.
    fn make_room(&mut self, now: u64) {
        while let Some((who, since)) = self.order.front() {
            if self.order.len() < self.capacity && now.abs_diff(*since) < LONGEST {
                break;
            }
            // The same key may have been denied again since.
            if self.denials.get(who).is_some_and(|denial| denial.since == *since) {
                self.denials.remove(who);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::{PolicySet, named_policies};
    use tollgate::cloudflare::wire::to_decision;

    fn who(object: &str) -> Who<'_> {
        Who { object, policies: 7 }
    }

    fn denied(retry_after: Option<u64>) -> Decision {
        Decision { retry_after, ..to_decision("0 0 0 0 0 60000 0 1").unwrap() }
    }

    #[test]
    fn remembers_until_the_hit_would_be_allowed() {
        let mut cache = DenyCache::new(10);
        cache.remember(who("a"), 1, denied(Some(500)), 1_000);
        let later = cache.recall(who("a"), 1, 1_499).unwrap();
        assert_eq!((later.retry_after, later.reset_after), (Some(1), 59_501));
        assert_eq!(cache.recall(who("a"), 1, 1_500), None);
        assert_eq!(cache.recall(who("a"), 1, 999), None);
        assert_eq!(cache.recall(who("b"), 1, 1_000), None);
    }

    #[test]
    fn remembers_two_seconds_at_most() {
        let mut cache = DenyCache::new(10);
        for retry_after in [Some(60_000), None] {
            cache.remember(who("a"), 1, denied(retry_after), 1_000);
            assert!(cache.recall(who("a"), 1, 2_999).is_some());
            assert_eq!(cache.recall(who("a"), 1, 3_000), None);
        }
    }

    #[test]
    fn a_lower_cost_is_asked_about() {
        let mut cache = DenyCache::new(10);
        cache.remember(who("a"), 5, denied(None), 0);
        assert_eq!(cache.recall(who("a"), 4, 0), None);
        assert!(cache.recall(who("a"), 5, 0).is_some() && cache.recall(who("a"), 6, 0).is_some());
    }

    #[test]
    fn other_policies_are_asked_even_if_they_have_the_same_name() {
        let hash = |limit: u64| {
            let written = format!("api = {{ algorithm = \"fix_window\", limit = {limit}, scale = \"1m\" }}");
            let named = named_policies(toml::from_str(&written).unwrap(), &mut Vec::new());
            PolicySet::of(&["api".into()], &named).unwrap().hash
        };
        let mut cache = DenyCache::new(10);
        let (two, three) = (Who { object: "a", policies: hash(2) }, Who { object: "a", policies: hash(3) });
        cache.remember(two, 1, denied(None), 0);
        assert!(cache.recall(two, 1, 0).is_some() && cache.recall(three, 1, 0).is_none());
        assert_eq!(hash(2), hash(2));
    }

    #[test]
    fn allowed_hits_are_not_remembered() {
        let mut cache = DenyCache::new(10);
        cache.remember(who("a"), 1, Decision { allowed: true, ..denied(Some(0)) }, 0);
        assert_eq!(cache.recall(who("a"), 1, 0), None);
    }

    #[test]
    fn is_bounded() {
        let mut cache = DenyCache::new(100);
        for number in 0..10_000_u64 {
            cache.remember(who(&number.to_string()), 1, denied(Some(9_000)), number / 100);
            cache.remember(who("again"), 1, denied(Some(9_000)), number / 100);
            assert!(cache.denials.len() <= 100 && cache.order.len() <= 100);
        }
        assert!(cache.recall(who("9999"), 1, 99).is_some() && cache.recall(who("0"), 1, 99).is_none());
        assert!(cache.recall(who("again"), 1, 99).is_some());
    }
}
