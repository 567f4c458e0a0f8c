//! The events at the object: messages, reservations, and the alarm of its credit.

use super::{Use, World};
use crate::cloudflare::object::account::Request;
use crate::cloudflare::object::simulation::event::{Event, Message};
use crate::cloudflare::protocol::wire::Reply;
use crate::cloudflare::thrown::ThrownError;
use crate::lease::holder::{Reply as HolderReply, Report};
use crate::{Costs, Operation, Renewal, ReservationId, Settlement};

impl World {
    /// Applies an operation at the object; `None` if the storage failed.
    pub(super) fn apply(&mut self, plan: usize, operation: Operation<'_>, now: u64) -> Option<Reply> {
        let policies = &self.plans[plan].json;
        let request = Request { operation, policies, credit: self.features.credit };
        let reply = self.account.apply(request, now - self.clock_behind);
        self.follow_alarm(now);
        match reply {
            Ok(reply) => Some(reply),
            Err(ThrownError::Platform(_)) => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Makes a reservation. A part of it is used, and settled before its end or after it.
    pub(super) fn reserve(&mut self, now: u64) {
        let plan = self.random.below(self.plans.len() as u64) as usize;
        let (cost, ttl) = (1 + self.random.below(20), 1 + self.random.below(3_000));
        let random = u128::from(self.random.next());
        let operation = Operation::Reserve { costs: Costs::All(cost), ttl: Some(ttl), random };
        let Some(Reply::Reserved { id: Some(id), .. }) = self.apply(plan, operation, now) else { return };
        let (used, after) = (self.random.below(cost + 1), self.random.below(ttl));
        let late = if self.random.once_in(4) { 2 * ttl } else { 0 };
        self.uses.push(Use { at: now + after, cost: used, plan });
        self.events.push(now + after + late, Event::Settle { plan, id, used });
    }

    pub(super) fn settle(&mut self, plan: usize, id: ReservationId, used: u64, now: u64) {
        let operation = Operation::Settle { id, used: Some(Costs::All(used)) };
        match self.apply(plan, operation, now) {
            None | Some(Reply::Settled { settlement: Settlement::Settled | Settlement::Expired, .. }) => {}
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn receive_message(&mut self, message: Message, now: u64) {
        let Some(reply) = self.apply(message.plan, operation_of(&message), now) else {
            // The isolate gets the error at once.
            let delay = 1 + self.random.below(15);
            self.events.push(now + delay, Event::Timeout(message));
            return;
        };
        self.record_window_start(now - self.clock_behind);
        let (decision, open, lease) = match reply {
            Reply::Decision { decision, open } => (decision, open, None),
            Reply::Leased { decision, open, lease } => (decision, open, lease),
            other => panic!("{other:?}"),
        };
        // The object counted the hit, whether or not its reply arrives.
        if decision.allowed && message.cost > 0 {
            self.uses.push(Use { at: now, cost: message.cost, plan: message.plan });
        }
        assert!(decision.remaining <= decision.limit);
        if !message.is_repeated && self.random.once_in(self.faults.repeated) {
            // The first reply was lost.
            let after = 1 + self.random.below(if self.random.clone().once_in(2) { 20 } else { 3_000 });
            self.events.push(now + after, Event::Message(Message { is_repeated: true, ..message }));
            return;
        }
        if self.random.once_in(self.faults.lost) || self.random.once_in(self.faults.cancelled) {
            return;
        }
        let reply = HolderReply { cost: message.cost, decision, certain: open.lasts(), lease };
        let delay = self.delay();
        self.events.push(now + delay, Event::Reply { message, reply });
    }

    /// Records the start of the key's own window.
    pub(super) fn record_window_start(&mut self, now: u64) {
        if let Some(start) = self.account.first_number().map(|start| start as u64)
            && (start..start + self.scale).contains(&now)
            && self.window_starts.last() != Some(&start)
        {
            self.window_starts.push(start);
        }
    }

    /// Rings the alarm. If that fails, the credit is lost, as after a crash.
    pub(super) fn ring(&mut self, now: u64) {
        self.alarm = None;
        if self.account.expire(now - self.clock_behind).is_ok_and(|expired| expired.empty) {
            self.account.row.row = None;
        }
        self.follow_alarm(now);
    }

    /// Schedules the alarm that the object has set by its own clock.
    fn follow_alarm(&mut self, now: u64) {
        if let Some(time) = self.account.row.alarm.take() {
            let time = (time + self.clock_behind).max(now);
            self.alarm = Some(time);
            self.events.push(time, Event::Alarm);
        }
    }
}

fn operation_of(message: &Message) -> Operation<'static> {
    let Some(Report { id, used, size, ttl }) = message.report else {
        return Operation::Hit { cost: message.cost };
    };
    // For a repeated message the object draws other random bits.
    let random = u128::from(message.number) << 1 | u128::from(!message.is_repeated);
    Operation::Lease { cost: message.cost, renewal: Renewal { id, used, size, ttl, random } }
}
