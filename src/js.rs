//! The wasm exports behind the npm package: they convert and delegate, and decide nothing.
//!
//! Only numbers cross: words, be they names or what is wrong with something, are JavaScript's. It maps
//! keys to slots, and holds policies and slabs by number. More numbers than a call takes lie in the
//! memory, where the area says (`js/core/area.ts`).

// What is exported to JavaScript must be `pub`, though no Rust crate can reach it. That no two exports have one name,
// which is all that could be unsafe about them, the linker sees to.
#![allow(unreachable_pub, unsafe_code)]

mod area;
mod convert;
mod desk;
mod numbers;
mod shelf;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::algorithm::Act;
use crate::algorithm::rule::Rule;
use crate::ledger::is_storable;
use crate::policy::{denied, rule};
use crate::store::slots::{Full, Slots};
use crate::{OnFull, Options};
use area::Area;
use convert::{cost, load_all, time};
use desk::{Desk, desk};

/// Why an operation did nothing, as a negative status; `js/core/failure.ts` knows the same.
const BAD_COST: i32 = -1;
const BAD_TIME: i32 = -2;
/// What was given does not go with what is there. Which of it, or how much would, is in the area.
const FAILED: i32 = -3;
/// There is no room for another key.
const NO_ROOM: i32 = -4;

/// Gives up with a status that says why.
macro_rules! or_status {
    ($number:expr, $status:expr) => {
        match $number {
            Some(number) => number,
            None => return $status,
        }
    };
}

/// Where the area lies in the memory.
#[unsafe(no_mangle)]
pub extern "C" fn area() -> u32 {
    desk(|desk| desk.area.address())
}

/// Makes room for that many numbers, and says where: JavaScript writes them there.
#[unsafe(no_mangle)]
pub extern "C" fn numbers(count: usize) -> u32 {
    desk(|desk| desk.numbers.make_room(count))
}

/// Policies from the numbers: for each its algorithm, limit, rate, scale, and what a denied hit does (0: nothing said,
/// 1: counts, 2: is free). All are in range.
#[unsafe(no_mangle)]
pub extern "C" fn policies() -> i32 {
    desk(|Desk { policies, area, numbers, .. }| {
        let (mut rules, mut said) = (Vec::new(), 0);
        for &[algorithm, limit, rate, scale, denied] in numbers.given().as_chunks().0 {
            let rule = rule(algorithm as usize, limit as u64, rate as u64, scale as u64);
            let failed = area.fail(rules.len() as u64);
            rules.push(or_status!(rule, failed));
            said = denied;
        }
        let said = match said {
            1 => Some(crate::Denied::Count),
            2 => Some(crate::Denied::Free),
            _ => None,
        };
        policies.put((denied(&rules, said), rules))
    })
}

/// Forgets policies.
#[unsafe(no_mangle)]
pub extern "C" fn drop_policies(policies: usize) {
    desk(|desk| desk.policies.remove(policies));
}

/// A slab for these policies. What is stored outside the process has narrower limits. An age of 0 is none.
#[unsafe(no_mangle)]
pub extern "C" fn slab(
    policies: usize,
    reports: bool,
    stored: bool,
    max_keys: u32,
    denies: bool,
    clean_period: f64,
    key_older_than: f64,
) -> i32 {
    desk(|desk| {
        let (denied, rules) = or_status!(desk.policies.get(policies), FAILED);
        if stored && let Some(position) = rules.iter().position(|rule| !is_storable(rule)) {
            return desk.area.fail(position as u64);
        }
        let options = Options {
            max_keys,
            on_full: if denies { OnFull::Deny } else { OnFull::Evict },
            clean_period: clean_period as u64,
            key_older_than: Some(key_older_than as u64).filter(|&age| age > 0),
        };
        let mut slots = Slots::new(rules.clone(), *denied, options);
        slots.reports = reports;
        desk.slabs.put(Box::new(slots))
    })
}

/// Forgets a slab.
#[unsafe(no_mangle)]
pub extern "C" fn drop_slab(slab: usize) {
    desk(|desk| desk.slabs.remove(slab));
}

/// Asks, and takes if it fits. A negative slot is a key that has none.
#[unsafe(no_mangle)]
pub extern "C" fn hit(slab: usize, slot: i32, cost: f64, now: f64) -> i32 {
    desk(|Desk { slabs, area, .. }| {
        let cost = or_status!(convert::cost(cost), BAD_COST);
        let now = or_status!(time(now), BAD_TIME);
        let slots = or_status!(slabs.get_mut(slab), FAILED);
        match slots.hit_window(slot, cost, now) {
            Some(decision) => area.decide(&decision),
            None => ask(slots, area, slot, None, cost, now, true),
        }
    })
}

/// A hit of any other kind, or what it would answer: a function of its own, so that the commonest needs no stack.
#[inline(never)]
fn ask(slots: &mut Slots, area: &mut Area, slot: i32, rules: Option<&[Rule]>, cost: u64, now: u64, takes: bool) -> i32 {
    let slot = u32::try_from(slot).ok();
    let decision = if takes { slots.hit(slot, rules, cost, now) } else { slots.peek(slot, rules, cost, now) };
    area.decide(&decision) | area.moved(slots)
}

/// The same with other numbers for this call only, if there are any (a call that is not negative); or what it would answer.
#[unsafe(no_mangle)]
pub extern "C" fn hit_with(slab: usize, slot: i32, cost: f64, now: f64, call: i32, takes: bool) -> i32 {
    desk(|Desk { policies, slabs, area, .. }| {
        let cost = or_status!(convert::cost(cost), BAD_COST);
        let now = or_status!(time(now), BAD_TIME);
        let slots = or_status!(slabs.get_mut(slab), FAILED);
        let rules = match policies.get(call as usize) {
            Some((_, call)) => Some(or_status!(slots.adjusted(call), FAILED)),
            None => None,
        };
        ask(slots, area, slot, rules.as_deref(), cost, now, takes)
    })
}

/// Adds to one policy without asking.
#[unsafe(no_mangle)]
pub extern "C" fn inc(slab: usize, slot: i32, cost: f64, now: f64, position: usize) -> i32 {
    let cost = or_status!(convert::cost(cost), BAD_COST);
    if cost == 0 {
        return get(slab, slot, now, position, false);
    }
    change(slab, slot, cost, now, position, false)
}

/// Makes it as if `count` had just been used, or leaves `count` tokens. If that is more than it can hold, the area says how much is.
#[unsafe(no_mangle)]
pub extern "C" fn set(slab: usize, slot: i32, count: f64, now: f64, position: usize) -> i32 {
    change(slab, slot, or_status!(cost(count), FAILED), now, position, true)
}

fn change(slab: usize, slot: i32, amount: u64, now: f64, position: usize, sets: bool) -> i32 {
    desk(|Desk { slabs, area, .. }| {
        let slots = or_status!(slabs.get_mut(slab), FAILED);
        let most = slots.lanes().most_to_set(position);
        if sets && amount > most {
            return area.fail(most);
        }
        let now = or_status!(time(now), BAD_TIME);
        let act = if sets { Act::Set(amount) } else { Act::Inc(amount) };
        match slots.change(u32::try_from(slot).ok(), position, act, now) {
            Ok(count) => area.number(count) | area.moved(slots),
            Err(Full) => NO_ROOM,
        }
    })
}

/// The count; or when the state ends, 0 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn get(slab: usize, slot: i32, now: f64, position: usize, expiry: bool) -> i32 {
    desk(|Desk { slabs, area, .. }| {
        let now = or_status!(time(now), BAD_TIME);
        let slots = or_status!(slabs.get_mut(slab), FAILED);
        let slot = u32::try_from(slot).ok();
        area.number(match expiry {
            true => slots.expires_at(slot, position, now),
            false => slots.get(slot, position, now),
        })
    })
}

/// Frees the slot of a key that JavaScript has forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn release(slab: usize, slot: u32) {
    desk(|desk| {
        if let Some(slots) = desk.slabs.get_mut(slab) {
            slots.release(slot);
        }
    });
}

/// Frees every slot whose states have ended. How many is in the area.
#[unsafe(no_mangle)]
pub extern "C" fn clean(slab: usize, now: f64) -> i32 {
    desk(|Desk { slabs, area, .. }| {
        let now = or_status!(time(now), BAD_TIME);
        let slots = or_status!(slabs.get_mut(slab), FAILED);
        area.number(slots.clean(now).into()) | area.moved(slots)
    })
}

/// The numbers are then how many slots have been freed, which they are, and what the expired ones held if anyone asks:
/// slot, policy, value and time of each. JavaScript forgets their keys before anything else.
#[unsafe(no_mangle)]
pub extern "C" fn take_freed(slab: usize) {
    desk(|Desk { slabs, area, numbers, .. }| {
        let Some(slots) = slabs.get_mut(slab) else { return };
        let list = numbers.emptied();
        list.push(slots.freed.len() as i64);
        for slot in &slots.freed {
            list.push(i64::from(*slot));
        }
        for state in &slots.expired {
            for number in [state.slot.into(), state.policy as u64, state.value, state.expired_at] {
                list.push(number as i64);
            }
        }
        slots.freed.clear();
        slots.expired.clear();
        numbers.answer(area);
    });
}

/// How many live keys were pushed out.
#[unsafe(no_mangle)]
pub extern "C" fn evicted(slab: usize) -> f64 {
    desk(|desk| desk.slabs.get_mut(slab).map_or(0.0, |slots| slots.evicted() as f64))
}

/// The numbers are then the states of a slot; none if they have ended, or if there is no slot. When they end is in the area.
#[unsafe(no_mangle)]
pub extern "C" fn save(slab: usize, slot: i32, now: f64) {
    desk(|Desk { slabs, area, numbers, .. }| {
        let list = numbers.emptied();
        area.number(0);
        if let (Some(slots), Some(now), Ok(slot)) = (slabs.get_mut(slab), time(now), u32::try_from(slot)) {
            let ends_at = slots.ends_at(slot, now);
            if ends_at > now {
                area.number(ends_at);
                slots.export_flat(slot, list);
            }
        }
        numbers.answer(area);
    });
}

/// Puts the states that the numbers are into a key's slot, unless they have ended; or only says whether that could be
/// done. For each policy the numbers are the scale by which its state was made, 0 for none, how many there are, then they.
#[unsafe(no_mangle)]
pub extern "C" fn load(slab: usize, slot: i32, now: f64, puts: bool) -> i32 {
    desk(|Desk { slabs, area, numbers, .. }| {
        let now = or_status!(time(now), BAD_TIME);
        let slots = or_status!(slabs.get_mut(slab), FAILED);
        let numbers = numbers.given();
        let ended = match slots.read(now, |lanes, entry| load_all(lanes, entry, numbers, now)) {
            Ok((ended, ())) => ended,
            Err(position) => return area.fail(position as u64),
        };
        if ended || !puts {
            return 0;
        }
        match slots.import(u32::try_from(slot).ok(), now) {
            Ok(()) => area.moved(slots),
            Err(Full) => NO_ROOM,
        }
    })
}
