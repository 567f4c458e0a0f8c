//! The events at isolates: hits, replies, and timers of messages and leases.

use super::{Use, World};
use crate::cloudflare::object::simulation::KEYS;
use crate::cloudflare::object::simulation::event::{Event, Message};
use crate::cloudflare::object::simulation::isolate::WaitingHit;
use crate::lease::holder::{Reply, Report, Step};

/// How long an isolate waits for the object.
const TIMEOUT: u64 = 2_000;

/// How long a hit waits for another hit's renewal.
const WAIT_TIMEOUT: u64 = 50;

impl World {
    pub(super) fn hit(&mut self, isolate: usize, plan: usize, cost: u64, now: u64) {
        let own = &mut self.isolates[isolate];
        let time = own.clock(now);
        let denied = || own.holder.denied(KEYS[plan], cost, time);
        let step = match self.features.leases {
            true => own.holder.hit(KEYS[plan], cost, time),
            false => denied().map_or(Step::Ask, |decision| Step::Decided { decision, renewal: None }),
        };
        match step {
            Step::Decided { decision, renewal } => {
                assert!(decision.remaining <= decision.limit);
                if decision.allowed {
                    self.uses.push(Use { at: now, cost, plan });
                }
                if let Some(report) = renewal {
                    self.send(isolate, plan, 0, Some(report), false, now);
                }
            }
            Step::Ask => self.send(isolate, plan, cost, None, false, now),
            Step::Renew(report) => self.send(isolate, plan, cost, Some(report), false, now),
            Step::Wait => {
                let hit = WaitingHit { number: self.events.next_number(), plan, cost };
                own.waiting.push(hit);
                let event = Event::WaitTimeout { isolate, generation: own.generation, hit };
                self.events.push(now + WAIT_TIMEOUT, event);
            }
        }
    }

    fn send(&mut self, isolate: usize, plan: usize, cost: u64, report: Option<Report>, gives_back: bool, now: u64) {
        self.messages += 1;
        let (number, own) = (self.events.next_number(), &mut self.isolates[isolate]);
        own.pending.push(number);
        let (generation, sent_at) = (own.generation, own.clock(now));
        let message =
            Message { number, isolate, generation, plan, cost, report, sent_at, gives_back, is_repeated: false };
        self.events.push(now + TIMEOUT, Event::Timeout(message.clone()));
        if !self.random.once_in(self.faults.lost) {
            let delay = self.delay();
            self.events.push(now + delay, Event::Message(message));
        }
    }

    pub(super) fn receive_reply(&mut self, message: Message, reply: Reply, now: u64) {
        let Message { number, isolate, generation, plan, cost, ref report, sent_at, gives_back, .. } = message;
        let own = &mut self.isolates[isolate];
        if !own.take_pending(number, generation) || gives_back {
            return;
        }
        let time = own.clock(now);
        own.holder.replied(KEYS[plan], reply, report.is_some(), sent_at, time);
        if cost > 0 && !reply.decision.allowed && own.holder.spend(KEYS[plan], cost, time).is_some() {
            self.uses.push(Use { at: now, cost, plan });
        }
        if report.is_some() {
            if let Some(lease) = reply.lease.filter(|_| !self.random.once_in(10)) {
                let event = Event::GiveBack { isolate, generation, plan, sent_at };
                self.events.push(now + lease.life * 9 / 10, event);
            }
            self.decide_waiting(isolate, plan, now);
        }
    }

    /// Decides the hits that waited for a renewal.
    fn decide_waiting(&mut self, isolate: usize, plan: usize, now: u64) {
        let waiting = &mut self.isolates[isolate].waiting;
        for WaitingHit { cost, .. } in waiting.extract_if(.., |hit| hit.plan == plan).collect::<Vec<_>>() {
            let own = &mut self.isolates[isolate];
            let time = own.clock(now);
            if own.holder.spend(KEYS[plan], cost, time).is_some() {
                self.uses.push(Use { at: now, cost, plan });
            } else {
                self.send(isolate, plan, cost, None, false, now);
            }
        }
    }

    pub(super) fn time_out(&mut self, message: &Message, now: u64) {
        let own = &mut self.isolates[message.isolate];
        if !own.take_pending(message.number, message.generation) {
            return;
        }
        if message.report.is_some() && !message.gives_back {
            own.holder.failed(KEYS[message.plan]);
            self.decide_waiting(message.isolate, message.plan, now);
        }
    }

    /// Sends a hit that has waited for too long.
    pub(super) fn stop_waiting(&mut self, isolate: usize, generation: u64, hit: WaitingHit, now: u64) {
        let own = &mut self.isolates[isolate];
        let position = own.waiting.iter().position(|waiting| waiting.number == hit.number);
        if let Some(position) = position.filter(|_| own.generation == generation) {
            own.waiting.remove(position);
            self.send(isolate, hit.plan, hit.cost, None, false, now);
        }
    }

    /// Gives back the lease that was requested at `sent_at`.
    pub(super) fn give_back(&mut self, isolate: usize, generation: u64, plan: usize, sent_at: u64, now: u64) {
        let own = &mut self.isolates[isolate];
        let time = own.clock(now);
        if own.generation == generation
            && let Some(report) = own.holder.give_back(KEYS[plan], sent_at, time)
        {
            self.send(isolate, plan, 0, Some(report), true, now);
        }
    }
}
