//! The wasm exports behind the npm package: they convert and delegate, and decide nothing.
//!
//! Only numbers cross: words, be they names or what is wrong with something, are JavaScript's. It maps
//! keys to slots, and holds policies and slabs by where they lie. More numbers than a call takes lie
//! in the memory, where the area says (`js/core/area.ts`).

// What is exported to JavaScript must be `pub`, though no Rust crate can reach it. That no two exports have one name
// the linker sees to; that what JavaScript says lies somewhere does, `js/core/held.ts` and `js/limiter.ts` see to.
#![allow(unreachable_pub, unsafe_code)]

mod area;
mod convert;
mod desk;
mod numbers;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::algorithm::Act;
use crate::algorithm::rule::Rule;
use crate::ledger::is_storable;
use crate::policy::{denied, rule};
use crate::store::slots::{SlotError, Slots};
use crate::{Decision, Denied, OnFull, Options};
use convert::{cost, load_all, time};
use desk::{Desk, desk};

/// Why an operation did nothing, as a negative status; `js/core/failure.ts` knows the same.
const BAD_COST: i32 = -1;
const BAD_TIME: i32 = -2;
/// What was given does not go with what is there. Which of it, or how much would, is in the area.
const FAILED: i32 = -3;
/// There is no room for another key.
const NO_ROOM: i32 = -4;
/// Memory ran out.
const OUT_OF_MEMORY: i32 = -5;

/// Gives up with a status that says why.
macro_rules! or_status {
    ($number:expr, $status:expr) => {
        match $number {
            Some(number) => number,
            None => return $status,
        }
    };
}

/// Policies that JavaScript holds.
pub struct Held {
    rules: Vec<Rule>,
    denied: Denied,
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
/// 1: counts, 2: is free). All are in range. Nothing if one does not go; the area says which.
#[unsafe(no_mangle)]
pub extern "C" fn policies() -> Option<Box<Held>> {
    desk(|Desk { area, numbers, .. }| {
        let (mut rules, mut said) = (Vec::new(), None);
        for &[algorithm, limit, rate, scale, denied] in numbers.given().as_chunks().0 {
            area.number(rules.len() as u64);
            rules.push(rule(algorithm as usize, limit as u64, rate as u64, scale as u64)?);
            said = match denied {
                0 => None,
                1 => Some(Denied::Count),
                _ => Some(Denied::Free),
            };
        }
        Some(Box::new(Held { denied: denied(&rules, said), rules }))
    })
}

/// Forgets policies.
#[unsafe(no_mangle)]
pub extern "C" fn drop_policies(_policies: Box<Held>) {}

/// A slab for these policies. An age of 0 is none. What is stored outside the process has narrower limits: nothing if
/// one of the policies is past them; the area says which.
#[unsafe(no_mangle)]
pub extern "C" fn slab(
    policies: &Held,
    reports: bool,
    stored: bool,
    max_keys: u32,
    denies: bool,
    clean_period: f64,
    key_older_than: f64,
) -> Option<Box<Slots>> {
    if stored && let Some(position) = policies.rules.iter().position(|rule| !is_storable(rule)) {
        desk(|desk| desk.area.number(position as u64));
        return None;
    }
    let options = Options {
        max_keys,
        on_full: if denies { OnFull::Deny } else { OnFull::Evict },
        clean_period: clean_period as u64,
        key_older_than: Some(key_older_than as u64).filter(|&age| age > 0),
    };
    let mut slots = Box::new(Slots::new(policies.rules.clone(), policies.denied, options).ok()?);
    slots.reports = reports;
    Some(slots)
}

/// Forgets a slab.
#[unsafe(no_mangle)]
pub extern "C" fn drop_slab(_slab: Box<Slots>) {}

/// Asks, and takes if it fits. A negative slot is a key that has none.
#[unsafe(no_mangle)]
pub extern "C" fn hit(slab: &mut Slots, slot: i32, cost: f64, now: f64) -> i32 {
    let cost = or_status!(convert::cost(cost), BAD_COST);
    let now = or_status!(time(now), BAD_TIME);
    if !slab.is_plain(slot, now) {
        return ask(slab, slot, None, cost, now, true);
    }
    match slab.hit_window(slot as u32, cost, now) {
        Some(decision) => desk(|desk| desk.area.decide(&decision)),
        None => hit_plain(slab, slot as u32, cost, now),
    }
}

/// A hit of any other kind that has nothing else to do: a function of its own, so that the commonest needs no stack.
#[inline(never)]
fn hit_plain(slab: &mut Slots, slot: u32, cost: u64, now: u64) -> i32 {
    answer(&or_status!(slab.hit_plain(slot, cost, now).ok(), OUT_OF_MEMORY))
}

/// Writes a decision, and answers its status.
#[inline(never)]
fn answer(decision: &Decision) -> i32 {
    desk(|desk| desk.area.decide(decision))
}

/// Any hit, or what it would answer.
#[inline(never)]
fn ask(slab: &mut Slots, slot: i32, rules: Option<&[Rule]>, cost: u64, now: u64, takes: bool) -> i32 {
    let slot = u32::try_from(slot).ok();
    let decision = match takes {
        true => or_status!(slab.hit(slot, rules, cost, now).ok(), OUT_OF_MEMORY),
        false => slab.peek(slot, rules, cost, now),
    };
    answer(&decision) | desk(|desk| desk.area.moved(slab))
}

/// The same with other numbers for this call only, if there are any; or what it would answer.
#[unsafe(no_mangle)]
pub extern "C" fn hit_with(slab: &mut Slots, slot: i32, cost: f64, now: f64, call: Option<&Held>, takes: bool) -> i32 {
    let cost = or_status!(convert::cost(cost), BAD_COST);
    let now = or_status!(time(now), BAD_TIME);
    let rules = match call {
        Some(call) => {
            let adjusted = or_status!(slab.adjusted(&call.rules).ok(), OUT_OF_MEMORY);
            Some(or_status!(adjusted, FAILED))
        }
        None => None,
    };
    ask(slab, slot, rules.as_deref(), cost, now, takes)
}

/// Adds to one policy without asking.
#[unsafe(no_mangle)]
pub extern "C" fn inc(slab: &mut Slots, slot: i32, cost: f64, now: f64, position: usize) -> i32 {
    match or_status!(convert::cost(cost), BAD_COST) {
        0 => get(slab, slot, now, position, false),
        cost => change(slab, slot, Act::Inc(cost), now, position),
    }
}

/// Makes it as if `count` had just been used, or leaves `count` tokens. If that is more than fits, the area says how much does.
#[unsafe(no_mangle)]
pub extern "C" fn set(slab: &mut Slots, slot: i32, count: f64, now: f64, position: usize) -> i32 {
    let most = slab.policy_states().most_to_set(position);
    match cost(count) {
        Some(count) if count <= most => change(slab, slot, Act::Set(count), now, position),
        _ => desk(|desk| desk.area.number(most) | FAILED),
    }
}

fn change(slab: &mut Slots, slot: i32, act: Act, now: f64, position: usize) -> i32 {
    let now = or_status!(time(now), BAD_TIME);
    desk(|Desk { area, .. }| match slab.change(u32::try_from(slot).ok(), position, act, now) {
        Ok(count) => area.number(count) | area.moved(slab),
        Err(SlotError::Full) => NO_ROOM,
        Err(SlotError::OutOfMemory) => OUT_OF_MEMORY,
    })
}

/// The count; or when the state ends, 0 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn get(slab: &mut Slots, slot: i32, now: f64, position: usize, expiry: bool) -> i32 {
    let now = or_status!(time(now), BAD_TIME);
    let slot = u32::try_from(slot).ok();
    let number = if expiry { slab.expires_at(slot, position, now) } else { slab.get(slot, position, now) };
    desk(|desk| desk.area.number(number))
}

/// Frees the slot of a key that JavaScript has forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn release(slab: &mut Slots, slot: u32) {
    slab.release(slot);
}

/// Frees every slot whose states have ended. How many is in the area.
#[unsafe(no_mangle)]
pub extern "C" fn clean(slab: &mut Slots, now: f64) -> i32 {
    let now = or_status!(time(now), BAD_TIME);
    let before = slab.len();
    match slab.clean(0, u32::MAX, now) {
        Ok(_) => desk(|Desk { area, .. }| area.number((before - slab.len()).into()) | area.moved(slab)),
        Err(_) => OUT_OF_MEMORY,
    }
}

/// The numbers are then how many slots have been freed, which they are, and what the expired ones held if anyone asks:
/// slot, policy, value and time of each. JavaScript forgets their keys before anything else.
#[unsafe(no_mangle)]
pub extern "C" fn take_freed(slab: &mut Slots) {
    desk(|Desk { area, numbers }| {
        let list = numbers.emptied();
        list.push(slab.freed.len() as i64);
        for slot in &slab.freed {
            list.push(i64::from(*slot));
        }
        for state in &slab.expired {
            for number in [state.slot.into(), state.policy as u64, state.value, state.expired_at] {
                list.push(number as i64);
            }
        }
        slab.freed.clear();
        slab.expired.clear();
        numbers.answer(area);
    });
}

/// How many live keys were pushed out.
#[unsafe(no_mangle)]
pub extern "C" fn evicted(slab: &Slots) -> f64 {
    slab.evicted() as f64
}

/// The numbers are then the states of a slot; none if they have ended, or if there is no slot. When they end is in the area.
#[unsafe(no_mangle)]
pub extern "C" fn save(slab: &Slots, slot: i32, now: f64) {
    desk(|Desk { area, numbers }| {
        let list = numbers.emptied();
        area.number(0);
        if let (Some(now), Ok(slot)) = (time(now), u32::try_from(slot)) {
            let ends_at = slab.ends_at(slot, now);
            if ends_at > now {
                area.number(ends_at);
                let _ = slab.export_flat(slot, list);
            }
        }
        numbers.answer(area);
    });
}

/// Puts the states that the numbers are into a key's slot, unless they have ended; or only says whether that could be
/// done. For each policy the numbers are the scale by which its state was made, 0 for none, how many there are, then they.
#[unsafe(no_mangle)]
pub extern "C" fn load(slab: &mut Slots, slot: i32, now: f64, puts: bool) -> i32 {
    let now = or_status!(time(now), BAD_TIME);
    desk(|Desk { area, numbers }| {
        let numbers = numbers.given();
        let ended = match slab.stage_by(now, |policy_states, key| load_all(policy_states, key, numbers, now)) {
            Ok((ended, ())) => ended,
            Err(position) => return area.number(position as u64) | FAILED,
        };
        if ended || !puts {
            return 0;
        }
        match slab.import(u32::try_from(slot).ok(), now) {
            Ok(()) => area.moved(slab),
            Err(SlotError::Full) => NO_ROOM,
            Err(SlotError::OutOfMemory) => OUT_OF_MEMORY,
        }
    })
}
