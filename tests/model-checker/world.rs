//! Two isolates, an object, and the messages between them.

use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};

use tollgate::cloudflare::ObjectInMemory;
use tollgate::cloudflare::wire::{self, Reply as Answer};
use tollgate::lease::holder::{Reply, Report};
use tollgate::{Operation, Policies, Policy, Renewal};

use crate::isolate::{Effect, Isolate};
use crate::{LARGE, SCALE, SMALL, WARM_UP};

/// The steps of time: two of the short one come to the timer of a lease, and three to its end; two of the long one come
/// to the end of a window.
const STEPS: [u64; 2] = [400, 3_200];

/// The policy of the object.
pub(crate) struct Setting {
    json: String,
    has_windows: bool,
}

impl Setting {
    pub(crate) fn new(policy: Policy) -> Self {
        let has_windows = policy.algorithm() == "fix_window";
        Self { json: wire::json_of(&Policies::from(policy)).unwrap().get().into(), has_windows }
    }
}

/// An event. Numbers are those of isolates, messages and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Hit(usize, u64),
    /// A message reaches the object, for the first time or again.
    Deliver(usize),
    /// A reply reaches its isolate. One that never does is lost.
    Reply(usize),
    /// The isolate takes a message for lost, whatever became of it.
    Fail(usize),
    /// The hits that wait for a renewal no longer do.
    StopWaiting(usize),
    /// The timer of a lease rings.
    GiveBack(usize),
    CrashIsolate(usize),
    /// The object loses its memory, by a crash or an eviction.
    CrashObject,
    Alarm,
    Pass(u64),
}

/// A message to the object.
#[derive(Clone, Debug)]
struct Message {
    isolate: usize,
    cost: u64,
    report: Option<Report>,
    gives_back: bool,
    sent_at: u64,
    /// How often the object has applied it.
    applied: u8,
    /// The reply to the first time, until it arrives.
    reply: Option<Reply>,
    /// Whether the isolate still waits for the reply.
    is_awaited: bool,
}

/// What has happened, so that the model is known to have it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) leased: bool,
    pub(crate) waited: bool,
    pub(crate) repeated: bool,
    pub(crate) credited: bool,
    pub(crate) lost_credit: bool,
    pub(crate) given_back: bool,
    pub(crate) denied: bool,
}

/// A state of the model.
#[derive(Clone, Debug)]
pub(crate) struct World {
    now: u64,
    isolates: [Isolate; 2],
    object: ObjectInMemory,
    messages: Vec<Message>,
    /// The random bits of the last lease.
    drawn: u128,
    /// Whether the object has hits in memory that the row has not.
    has_unwritten: bool,
    /// The amount that was admitted in the current window.
    pub(crate) used: u64,
    pub(crate) seen: Seen,
    /// The number of events since the start.
    pub(crate) events: usize,
}

impl World {
    /// Returns this world with a lease at each isolate that has one use left, after a large hit.
    pub(crate) fn leased(&self, setting: &Setting) -> Self {
        let mut world = self.clone();
        for isolate in 0..2 {
            let actions = [Action::Hit(isolate, SMALL), Action::Deliver(0), Action::Reply(0)];
            for action in actions.into_iter().chain([Action::Hit(isolate, SMALL)]) {
                world = world.after(setting, action).unwrap();
            }
            world.messages.clear();
        }
        for action in [Action::Hit(0, LARGE), Action::Deliver(0)] {
            world = world.after(setting, action).unwrap();
        }
        world.messages.clear();
        world.events = 0;
        world
    }

    /// Returns the world after the warm-up.
    pub(crate) fn warm(setting: &Setting, now: u64) -> Self {
        let isolates = [Isolate::new(), Isolate::new()];
        let object = ObjectInMemory::new(None);
        let mut world = Self {
            now,
            isolates,
            object,
            messages: Vec::new(),
            drawn: 1 << 64,
            has_unwritten: false,
            used: 0,
            seen: Seen::default(),
            events: 0,
        };
        for isolate in 0..2 {
            for _ in 0..WARM_UP {
                for action in [Action::Hit(isolate, SMALL), Action::Deliver(0), Action::Reply(0)] {
                    world = world.after(setting, action).unwrap();
                }
                world.messages.clear();
            }
        }
        world.events = 0;
        world
    }

    pub(crate) fn actions(&self, actions: &mut Vec<Action>) {
        for (number, isolate) in self.isolates.iter().enumerate() {
            actions.extend([SMALL, LARGE].map(|cost| Action::Hit(number, cost)));
            actions.push(Action::CrashIsolate(number));
            if !isolate.waiting.is_empty() {
                actions.push(Action::StopWaiting(number));
            }
            if isolate.lease.is_some_and(|(_, rings)| rings <= self.now) {
                actions.push(Action::GiveBack(number));
            }
        }
        for (number, message) in self.messages.iter().enumerate() {
            if message.applied < 2 {
                actions.push(Action::Deliver(number));
            }
            if message.reply.is_some() {
                actions.push(Action::Reply(number));
            }
            // Without a report nothing depends on it.
            if message.is_awaited && message.report.is_some() {
                actions.push(Action::Fail(number));
            }
        }
        actions.extend([Action::CrashObject, Action::Alarm]);
        actions.extend(STEPS.map(Action::Pass));
    }

    /// Returns the world after an action; `None` if it changes nothing.
    pub(crate) fn after(&self, setting: &Setting, action: Action) -> Option<Self> {
        let mut world = self.clone();
        let now = self.now;
        world.events += 1;
        match action {
            Action::Hit(isolate, cost) => {
                let effects = world.isolates[isolate].hit(cost, now);
                world.seen.leased |= matches!(effects[..], [Effect::Use(_), ..]);
                world.perform(isolate, effects);
            }
            Action::Deliver(number) => world.deliver(setting, number),
            Action::Reply(number) => {
                let message = &mut world.messages[number];
                message.is_awaited = false;
                let Message { isolate, ref report, gives_back, sent_at, .. } = *message;
                let (renews, reply) = (report.is_some(), message.reply.take()?);
                if !gives_back {
                    let effects = world.isolates[isolate].replied(reply, renews, sent_at, now);
                    world.perform(isolate, effects);
                }
            }
            Action::Fail(number) => {
                let message = &mut world.messages[number];
                (message.is_awaited, message.reply) = (false, None);
                if !message.gives_back {
                    let isolate = message.isolate;
                    let effects = world.isolates[isolate].failed(now);
                    world.perform(isolate, effects);
                }
            }
            Action::StopWaiting(isolate) => {
                let effects = world.isolates[isolate].wake(now);
                world.perform(isolate, effects);
            }
            Action::GiveBack(isolate) => {
                if let Some(report) = world.isolates[isolate].give_back(now) {
                    world.seen.given_back = true;
                    world.send(isolate, 0, Some(report), true);
                }
            }
            Action::CrashIsolate(isolate) => {
                world.isolates[isolate] = Isolate::new();
                for message in world.messages.iter_mut().filter(|message| message.isolate == isolate) {
                    (message.is_awaited, message.reply) = (false, None);
                }
            }
            Action::CrashObject => {
                world.seen.lost_credit |= self.has_unwritten;
                world.has_unwritten = false;
                world.object = ObjectInMemory::new(self.object.row().cloned());
            }
            Action::Alarm => world.object.expire(now).unwrap(),
            Action::Pass(step) => {
                world.now += step;
                if setting.has_windows && world.now / SCALE != now / SCALE {
                    world.used = 0;
                }
            }
        }
        world.messages.retain(|message| message.applied < 2 || message.reply.is_some() || message.is_awaited);
        Some(world)
    }

    fn perform(&mut self, isolate: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Use(cost) => self.used += cost,
                Effect::Send(cost, report) => self.send(isolate, cost, report, false),
                Effect::Wait => self.seen.waited = true,
            }
        }
    }

    fn send(&mut self, isolate: usize, cost: u64, report: Option<Report>, gives_back: bool) {
        let sent_at = self.now;
        let message = Message { isolate, cost, report, gives_back, sent_at, applied: 0, reply: None, is_awaited: true };
        self.messages.push(message);
    }

    /// Lets the object apply a message. The reply to a repeated one arrives nowhere.
    fn deliver(&mut self, setting: &Setting, number: usize) {
        let Message { cost, ref report, .. } = self.messages[number];
        let operation = match *report {
            None => Operation::Hit { cost },
            Some(Report { id, used, size, ttl }) => {
                self.drawn += 1;
                Operation::Lease { cost, renewal: Renewal { id, used, size, ttl, random: self.drawn } }
            }
        };
        let row = self.object.row().cloned();
        let answer = self.object.apply(operation, &setting.json, true, self.now).unwrap();
        let (decision, open, lease) = match answer {
            Answer::Decision { decision, open } => (decision, open, None),
            Answer::Leased { decision, open, lease } => (decision, open, lease),
            other => panic!("{other:?}"),
        };
        if decision.allowed {
            self.used += cost;
            self.has_unwritten = self.object.row() == row.as_ref();
            self.seen.credited |= cost > 0 && self.has_unwritten;
        }
        self.seen.denied |= !decision.allowed;
        let message = &mut self.messages[number];
        message.applied += 1;
        if message.applied > 1 {
            self.seen.repeated = true;
        } else if message.is_awaited {
            message.reply = Some(Reply { cost, decision, certain: open.lasts(), lease });
        }
    }
}

impl World {
    /// Returns a number of all that the future depends on, the same for both isolates: which of them is which does not
    /// matter.
    fn identity(&self) -> u64 {
        // The number of events is the least that leads here.
        let Self { now, isolates, object, messages, drawn, has_unwritten, used, seen, events: _ } = self;
        let own = |number: usize| {
            let messages = messages.iter().filter(|message| message.isolate == number).map(|message| {
                let Message { isolate: _, cost, report, gives_back, sent_at, applied, reply, is_awaited } = message;
                (cost, report, gives_back, sent_at, applied, reply, is_awaited)
            });
            digest(&(&isolates[number], messages.collect::<Vec<_>>()))
        };
        let mut isolates = [own(0), own(1)];
        isolates.sort_unstable();
        digest(&(now, isolates, object, drawn, has_unwritten, used, seen))
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

/// Returns a hash of all that a value shows for debugging.
fn digest(value: &impl fmt::Debug) -> u64 {
    struct Hashing(std::hash::DefaultHasher);
    impl Write for Hashing {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut hashing = Hashing(std::hash::DefaultHasher::new());
    write!(hashing, "{value:?}").unwrap();
    hashing.0.finish()
}
