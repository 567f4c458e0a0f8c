//! Undone hits: the key never admits more than one that was never hit by them, and an undo that comes at once gives back all.

use proptest::prelude::*;
use tollgate::{Answer, Costs, Denied, HitId, Ledger, MAX_UNDO, Operation};

use crate::support::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A hit by somebody else, or a cost that is charged whether it fits or not.
    Hit(u64),
    Inc(u64),
    /// A hit that can be undone.
    HitUndoable(u64),
    /// The undo of one of them, which may have been undone already.
    Undo(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<(Move, Step)>> {
    let step = prop_oneof![
        3 => weights().prop_map(Step::Hit),
        1 => weights().prop_map(Step::Inc),
        4 => weights().prop_map(Step::HitUndoable),
        4 => any::<prop::sample::Index>().prop_map(Step::Undo),
    ];
    let moves = prop_oneof![3 => Just(Move::Stay), 3 => (1..=50_u64).prop_map(Move::Tick), 1 => forward()];
    prop::collection::vec((moves, step), 1..40)
}

/// A cost that was charged at a time. The id of an undone one is dropped with it.
#[derive(Clone, Debug)]
struct Charged {
    at: u64,
    cost: u64,
    id: Option<HitId>,
}

/// Two worlds: one in which hits are undone, and one in which these were never made.
struct Worlds {
    spec: Spec,
    ledger: Ledger,
    charged: Vec<Charged>,
    /// All hits that could ever be undone.
    ids: Vec<(HitId, u64)>,
}

impl Worlds {
    fn new(spec: &Spec) -> Self {
        Self { ledger: spec.ledger(), spec: spec.clone(), charged: Vec::new(), ids: Vec::new() }
    }

    fn charge(&mut self, at: u64, cost: u64, id: Option<HitId>) {
        self.charged.push(Charged { at, cost, id });
        self.ids.extend(id.map(|id| (id, cost)));
    }

    fn perform(&mut self, step: Step, now: u64) {
        match step {
            Step::Hit(weight) => {
                let cost = fit(weight, self.spec.limit);
                if hit(&mut self.ledger, cost, now).allowed || self.spec.denied == Denied::Count {
                    self.charge(now, cost, None);
                }
            }
            Step::Inc(weight) => {
                let cost = fit(weight, self.spec.limit);
                self.ledger.apply(Operation::Inc { policy: None, cost: cost as i64 }, now).unwrap();
                self.charge(now, cost, None);
            }
            Step::HitUndoable(weight) => {
                let cost = fit(weight, self.spec.limit);
                match hit_undoable(&mut self.ledger, cost, now) {
                    (_, Some(id)) => self.charge(now, cost, Some(id)),
                    (false, None) if self.spec.denied == Denied::Count => self.charge(now, cost, None),
                    (_, None) => {}
                }
            }
            Step::Undo(index) => {
                let Some(&(id, cost)) = self.ids.get(index.index(self.ids.len().max(1))) else { return };
                let given = undo(&mut self.ledger, id, cost, now);
                assert!(given <= cost);
                let known = self.charged.iter().position(|charged| charged.id == Some(id));
                assert!(given == 0 || known.is_some(), "given back twice");
                if given > 0 {
                    known.map(|index| self.charged.remove(index));
                }
            }
        }
    }

    /// The key as it would be without the hits that were undone.
    fn without_undone(&self) -> Ledger {
        let mut ledger = self.spec.ledger();
        for &Charged { at, cost, .. } in &self.charged {
            ledger.apply(Operation::Inc { policy: None, cost: cost as i64 }, at).unwrap();
        }
        ledger
    }
}

fn hit_undoable(ledger: &mut Ledger, cost: u64, now: u64) -> (bool, Option<HitId>) {
    let operation = Operation::HitUndoable { costs: Costs::All(cost), random: next_random() as u64 };
    match ledger.apply(operation, now).expect("a hit").0 {
        Answer::Undoable { decision, id } => (decision.allowed, id),
        other => panic!("{other:?}"),
    }
}

fn number(ledger: &mut Ledger, operation: Operation<'_>, now: u64) -> u64 {
    match ledger.apply(operation, now).expect("an operation").0 {
        Answer::Number(number) => number,
        other => panic!("{other:?}"),
    }
}

fn undo(ledger: &mut Ledger, id: HitId, cost: u64, now: u64) -> u64 {
    match ledger.apply(Operation::Undo { id, costs: Costs::All(cost) }, now).expect("an undo") {
        (Answer::Number(given), changed) => {
            assert!(changed || given == 0);
            given
        }
        (other, _) => panic!("{other:?}"),
    }
}

/// Whatever fits in the key now or later fits in the one without the undone hits.
fn a_key_with_undone_hits_never_admits_more(kind: Kind) {
    check((specs(kind), starts(), steps()), |(spec, start, steps)| {
        let (mut worlds, mut now) = (Worlds::new(&spec), start);
        for (step, act) in steps {
            now = step.from(now, spec.period());
            worlds.perform(act, now);
            let mut without = worlds.without_undone();
            for later in [0, 1, 7, spec.scale / 3, spec.scale, spec.period() / 2, spec.period()] {
                let at = now + later;
                for cost in (1..=spec.limit).step_by((spec.limit as usize / 8).max(1)) {
                    let (with, without) = (peek(&mut worlds.ledger, cost, at), peek(&mut without, cost, at));
                    prop_assert!(!with.allowed || without.allowed, "{cost} at {at}: {with:?} {without:?}");
                }
            }
        }
        Ok(())
    });
}

/// A window of a key's own may begin with a hit that was undone: until it ends, it counts all others' hits in it.
#[test]
fn a_window_of_a_key_counts_all_hits_but_the_undone_ones() {
    check((specs(FixWindowPerKey), starts(), steps()), |(spec, start, steps)| {
        let (mut worlds, mut now) = (Worlds::new(&spec), start);
        let mut window = 0;
        for (step, act) in steps {
            now = step.from(now, spec.period());
            worlds.perform(act, now);
            let end = number(&mut worlds.ledger, Operation::ExpiresAt { policy: None }, now);
            window = if end > 0 { end - spec.scale } else { window };
            let counts = |charged: &&Charged| charged.at >= window && charged.at + spec.scale > now;
            let in_window = worlds.charged.iter().filter(counts).filter(|_| window + spec.scale > now);
            let used: u64 = in_window.map(|charged| charged.cost).sum();
            let count = number(&mut worlds.ledger, Operation::Get { policy: None }, now);
            prop_assert!(count >= used, "{count} of {used} in the window of {window} at {now}");
        }
        Ok(())
    });
}

/// An undo at once gives back everything, beside whatever was used before.
fn an_undo_at_once_leaves_the_key_as_it_was(kind: Kind) {
    let history = prop::collection::vec((forward(), acts()), 0..12);
    check((specs(kind), starts(), history, weights()), |(spec, start, history, weight)| {
        prop_assume!(spec.denied == Denied::Free);
        let (mut ledger, now) = after(&spec, start, &history);
        let (before, cost) = (ledger.record(now).unwrap(), fit(weight, spec.limit));
        let (count, used) = (Operation::Get { policy: None }, ledger.expires_at(now).unwrap() > 0);
        let count_before = ledger.apply(count, now).unwrap().0;
        if let (true, Some(id)) = hit_undoable(&mut ledger, cost, now) {
            prop_assert_eq!(undo(&mut ledger, id, cost, now), cost);
            prop_assert_eq!(undo(&mut ledger, id, cost, now), 0);
            prop_assert_eq!(ledger.apply(count, now).unwrap().0, count_before);
            // Its mark is gone when it cannot be undone any more.
            let later = now + MAX_UNDO + 1;
            prop_assert_eq!(undo(&mut ledger, id, cost, later), 0);
            let mut untouched = spec.ledger();
            if let Some(before) = &before {
                untouched.load(before, now).unwrap();
            }
            if used {
                for cost in 1..=spec.limit.min(20) {
                    let (one, other) = (peek(&mut ledger, cost, later), peek(&mut untouched, cost, later));
                    prop_assert_eq!(one.allowed, other.allowed, "{}", cost);
                }
            } else {
                prop_assert_eq!(ledger.record(later).unwrap(), None);
            }
        }
        Ok(())
    });
}

each_kind! { {
    fix_window: FixWindow,
    calendar_window: CalendarWindow,
    sliding_window: SlidingWindow,
    sliding_counter: SlidingCounter,
    token_bucket: TokenBucket,
    leaky_bucket: LeakyBucket,
} a_key_with_undone_hits_never_admits_more }
each_counting_algorithm!(an_undo_at_once_leaves_the_key_as_it_was);
