//! Events, in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::isolate::WaitingHit;
use crate::ReservationId;
use crate::lease::holder::{Reply, Report};

pub(super) enum Event {
    /// A request reaches an isolate.
    Hit { cost: u64 },
    /// The caller of a reservation settles it.
    Settle { plan: usize, id: ReservationId, used: u64 },
    /// A message reaches the object.
    Message(Message),
    /// The object's reply to a message reaches the isolate.
    Reply { message: Message, reply: Reply },
    /// A message failed, or its timeout has passed.
    Timeout(Message),
    /// A hit stops waiting for another hit's renewal.
    WaitTimeout { isolate: usize, generation: u64, hit: WaitingHit },
    /// The timer of a lease fires: the isolate gives back the unspent part.
    GiveBack { isolate: usize, generation: u64, plan: usize, sent_at: u64 },
    /// The alarm that looks for credit fires: the object returns it if its key is quiet.
    Alarm,
}

/// A message from an isolate to the object.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) number: u64,
    pub(super) isolate: usize,
    /// The generation of the isolate that sent it.
    pub(super) generation: u64,
    pub(super) plan: usize,
    pub(super) cost: u64,
    pub(super) report: Option<Report>,
    /// When it was sent, by the isolate's clock.
    pub(super) sent_at: u64,
    /// Whether it gives a lease back, so that its reply does not matter.
    pub(super) gives_back: bool,
    /// Whether the platform has sent it again.
    pub(super) is_repeated: bool,
}

/// The events to come.
#[derive(Default)]
pub(super) struct Events {
    /// Times and numbers of events, each with its position in `events`.
    order: BinaryHeap<(Reverse<(u64, u64)>, usize)>,
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    last_number: u64,
}

impl Events {
    /// Returns a number for an event or a message. Events of the same time happen in the order of their numbers.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn push(&mut self, time: u64, event: Event) {
        let number = self.next_number();
        let position = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[position] = Some(event);
        self.order.push((Reverse((time, number)), position));
    }

    /// Returns the next event and its time; `None` at the end.
    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        let (Reverse((time, _)), position) = self.order.pop()?;
        self.free.push(position);
        self.events[position].take().map(|event| (time, event))
    }
}
