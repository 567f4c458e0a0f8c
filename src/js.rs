//! The wasm exports behind the npm package: they convert and delegate, and decide nothing.
//!
//! Only numbers cross, so that neither side needs machinery for anything else. JavaScript maps keys
//! to slots and holds policies and slabs by number. What is longer than a number lies in the memory,
//! where the area says (`js/core/area.ts`).

// What is exported to JavaScript must be `pub`, though no Rust crate can reach it. That no two exports have one name,
// which is all that could be unsafe about them, the linker sees to.
#![allow(unreachable_pub, unsafe_code)]

mod area;
mod convert;
mod desk;
mod shelf;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use crate::algorithm::Act;
use crate::algorithm::rule::Rule;
use crate::ledger::check_stored;
use crate::store::slots::Slots;
use area::Area;
use convert::{cost, joined, made_by_from, options_from, origins_to, policies_from, states_from, time, whole_from};
use desk::{Desk, desk};

/// Why an operation did nothing, as a negative status; `js/core/failure.ts` knows the same.
const BAD_COST: i32 = -1;
const BAD_TIME: i32 = -2;
/// Something else: the text tells, first the code, then on the next line what was wrong.
const FAILED: i32 = -3;

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

/// Makes room for a text of that many bytes, and says where: JavaScript writes it there.
#[unsafe(no_mangle)]
pub extern "C" fn text(bytes: usize) -> u32 {
    desk(|desk| desk.room_for_text(bytes))
}

/// Makes room for that many numbers, and says where.
#[unsafe(no_mangle)]
pub extern "C" fn numbers(count: usize) -> u32 {
    desk(|desk| desk.room_for_numbers(count))
}

/// Policies from the text. The text is then what states are made by: for each policy its name, algorithm and scale.
#[unsafe(no_mangle)]
pub extern "C" fn policies() -> i32 {
    desk(|desk| {
        let policies = or_status!(desk.take(policies_from(desk.text.as_str())), FAILED);
        desk.answer(origins_to(&policies));
        desk.policies.put(policies)
    })
}

/// Forgets policies.
#[unsafe(no_mangle)]
pub extern "C" fn drop_policies(policies: usize) {
    desk(|desk| desk.policies.remove(policies));
}

/// A slab for these policies. The text holds the options; each may be left out. What is stored outside the process has
/// narrower limits.
#[unsafe(no_mangle)]
pub extern "C" fn slab(policies: usize, reports: bool, stored: bool) -> i32 {
    desk(|desk| {
        let policies = or_status!(desk.policies.get(policies), FAILED).clone();
        if stored && let Err(error) = check_stored(&policies) {
            return desk.fail(&error);
        }
        let options = or_status!(desk.take(options_from(desk.text.as_str())), FAILED);
        let mut slots = Slots::new(policies, options);
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
            None => hit_any(slots, area, slot, None, cost, now),
        }
    })
}

/// A hit of any other kind: a function of its own, so that the commonest needs no stack.
#[inline(never)]
fn hit_any(slots: &mut Slots, area: &mut Area, slot: i32, rules: Option<&[Rule]>, cost: u64, now: u64) -> i32 {
    let decision = slots.hit(u32::try_from(slot).ok(), rules, cost, now);
    area.decide(&decision) | area.moved(slots)
}

/// The same with other numbers for this call only, if there are any (a call that is not negative); or what it would answer.
#[unsafe(no_mangle)]
pub extern "C" fn hit_with(slab: usize, slot: i32, cost: f64, now: f64, call: i32, takes: bool) -> i32 {
    desk(|desk| {
        let cost = or_status!(convert::cost(cost), BAD_COST);
        let now = or_status!(time(now), BAD_TIME);
        let slots = or_status!(desk.slabs.get_mut(slab), FAILED);
        let rules = desk.policies.get(call as usize).map(|call| slots.adjusted(call));
        let rules = match rules.transpose() {
            Ok(rules) => rules,
            Err(error) => return desk.fail(&error),
        };
        if takes {
            return hit_any(slots, &mut desk.area, slot, rules.as_deref(), cost, now);
        }
        desk.area.decide(&slots.peek(u32::try_from(slot).ok(), rules.as_deref(), cost, now))
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

/// Makes it as if `count` had just been used, or leaves `count` tokens.
#[unsafe(no_mangle)]
pub extern "C" fn set(slab: usize, slot: i32, count: f64, now: f64, position: usize) -> i32 {
    // What is no count at all is past every range, and is told as such.
    change(slab, slot, cost(count).unwrap_or(u64::MAX), now, position, true)
}

fn change(slab: usize, slot: i32, amount: u64, now: f64, position: usize, sets: bool) -> i32 {
    desk(|desk| {
        let slots = or_status!(desk.slabs.get_mut(slab), FAILED);
        if sets && let Err(error) = slots.lanes().check_count(position, amount) {
            return desk.fail(&error);
        }
        let now = or_status!(time(now), BAD_TIME);
        let act = if sets { Act::Set(amount) } else { Act::Inc(amount) };
        let changed = slots.change(u32::try_from(slot).ok(), position, act, now);
        match changed {
            Ok(count) => desk.area.number(count) | desk.area.moved(slots),
            Err(error) => desk.fail(&error),
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
    desk(|desk| {
        let Some(slots) = desk.slabs.get_mut(slab) else { return };
        let mut numbers = desk::cleared(&mut desk.numbers);
        numbers.push(slots.freed.len() as f64);
        for slot in &slots.freed {
            numbers.push(f64::from(*slot));
        }
        for state in &slots.expired {
            for number in [state.slot.into(), state.policy as u64, state.value, state.expired_at] {
                numbers.push(number as f64);
            }
        }
        slots.freed.clear();
        slots.expired.clear();
        desk.answer_numbers(numbers);
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
    desk(|desk| {
        let mut states = desk::cleared(&mut desk.numbers);
        desk.area.number(0);
        if let (Some(slots), Some(now), Ok(slot)) = (desk.slabs.get_mut(slab), time(now), u32::try_from(slot)) {
            let ends_at = slots.ends_at(slot, now);
            if ends_at > now {
                desk.area.number(ends_at);
                for number in slots.export_flat(slot) {
                    states.push(number as f64);
                }
            }
        }
        desk.answer_numbers(states);
    });
}

/// Puts the states that the numbers are, made by what the text says, into a key's slot, unless they have ended; or only
/// says whether that could be done. The text is then the names of the policies that start afresh.
#[unsafe(no_mangle)]
pub extern "C" fn load(slab: usize, slot: i32, now: f64, puts: bool) -> i32 {
    desk(|desk| {
        let now = or_status!(time(now), BAD_TIME);
        let slots = or_status!(desk.slabs.get_mut(slab), FAILED);
        let mut read = || {
            let numbers = whole_from(&desk.numbers)?;
            slots.read(&made_by_from(desk.text.as_str()), &states_from(&numbers)?, now)
        };
        let states = match read() {
            Ok(states) => states,
            Err(error) => return desk.fail(&error),
        };
        let afresh = joined(&states.afresh);
        let put = if puts && !states.ended { slots.import(u32::try_from(slot).ok(), states, now) } else { Ok(()) };
        match put {
            Ok(()) => {
                let status = desk.area.moved(slots);
                desk.answer(afresh);
                status
            }
            Err(error) => desk.fail(&error),
        }
    })
}
