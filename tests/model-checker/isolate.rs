//! An isolate: the real holder, with the messages that it waits for.

use tollgate::lease::holder::{Holder, Reply, Report, Step};

/// The only key.
const KEY: &str = "key";

/// The duration of the leases.
const TTL: u64 = 1_000;

/// An isolate.
#[derive(Clone, Debug)]
pub(crate) struct Isolate {
    pub(crate) holder: Holder,
    /// When it was last hit. The holder knows that of keys too of which it knows nothing else.
    last_hit: u64,
    /// The costs of the hits that wait for a renewal.
    pub(crate) waiting: Vec<u64>,
    /// When the lease was requested, and when its timer rings.
    pub(crate) lease: Option<(u64, u64)>,
}

/// What an isolate does: it uses an amount, or sends a message.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    Use(u64),
    Send(u64, Option<Report>),
    Wait,
}

impl Isolate {
    pub(crate) fn new() -> Self {
        Self { holder: Holder::new(2, TTL, true), last_hit: 0, waiting: Vec::new(), lease: None }
    }

    pub(crate) fn hit(&mut self, cost: u64, now: u64) -> Vec<Effect> {
        self.last_hit = now;
        match self.holder.hit(KEY, cost, now) {
            Step::Decided { decision, renewal } => {
                let used = decision.allowed.then_some(Effect::Use(cost));
                used.into_iter().chain(renewal.map(|report| Effect::Send(0, Some(report)))).collect()
            }
            Step::Ask => vec![Effect::Send(cost, None)],
            Step::Renew(report) => vec![Effect::Send(cost, Some(report))],
            Step::Wait => {
                self.waiting.push(cost);
                vec![Effect::Wait]
            }
        }
    }

    /// Handles a reply to a message with a hit of that cost, unless it is 0.
    pub(crate) fn replied(&mut self, reply: Reply, renews: bool, sent_at: u64, now: u64) -> Vec<Effect> {
        self.holder.replied(KEY, reply, renews, sent_at, now);
        let mut effects = Vec::new();
        if reply.cost > 0 && !reply.decision.allowed && self.holder.spend(KEY, reply.cost, now).is_some() {
            effects.push(Effect::Use(reply.cost));
        }
        if renews {
            self.lease = reply.lease.map(|lease| (sent_at, sent_at + lease.life * 9 / 10)).or(self.lease);
            effects.extend(self.wake(now));
        }
        effects
    }

    /// Handles the failure of a renewal.
    pub(crate) fn failed(&mut self, now: u64) -> Vec<Effect> {
        self.holder.failed(KEY);
        self.wake(now)
    }

    /// Decides the hits that wait.
    pub(crate) fn wake(&mut self, now: u64) -> Vec<Effect> {
        let waiting = core::mem::take(&mut self.waiting);
        let decided = waiting.into_iter().map(|cost| match self.holder.spend(KEY, cost, now) {
            Some(_) => Effect::Use(cost),
            None => Effect::Send(cost, None),
        });
        decided.collect()
    }

    /// Handles the timer of the lease.
    pub(crate) fn give_back(&mut self, now: u64) -> Option<Report> {
        let (sent_at, _) = self.lease.take()?;
        self.holder.give_back(KEY, sent_at, now)
    }
}
