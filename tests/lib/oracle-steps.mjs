// Random operations on keys that many policies share, for limiters that are compared with the oracle of `oracle.mjs`.

import assert from "node:assert/strict";
import { OracleKey } from "./oracle.mjs";
import fc from "./properties.mjs";
import { seeded } from "./random.mjs";

const names = 40;
const start = 1_800_000_000_000;

/** The shortest time in which a bucket of the pool fills or drains is 4 ms. */
const farthest = 3;

const windows = ["fix_window", "fix_window_per_key", "sliding_window", "sliding_counter"];

/** Returns one of the policies of a name: with 1 it has another limit, with 2 another shape. */
function policyOf(pool, number, version, alone) {
  const random = seeded(pool * names + number);
  const between = (least, most) => least + random(most - least + 1);
  const name = `p${number}`;
  const [limit, rate] = [between(1, 6), between(1, 5)].map((own) => (version & 1 ? 2 * own + 1 : own));
  const longer = version & 2 ? 17 : 0;
  const scale = between(20, 300) + longer;
  const per = between(20, 100) + longer;
  if (number % 8 === 7) {
    const length = between(5, 150);
    const grows = random(2) === 1 ? { factor: 2, most: length * 3 } : {};
    return { name, algorithm: "ban", after: between(1, 3), scale, for: length, ...grows };
  }
  if (number % 13 === 12) return { name, algorithm: "concurrency", limit, ttl: between(10, 300) };
  const kind = random(6);
  // Among several policies, denied hits are free.
  const denied = alone && random(2) === 1 ? { denied: "count" } : {};
  if (kind < 4) return { name, algorithm: windows[kind], limit, scale, ...denied };
  if (kind === 4) return { name, algorithm: "token_bucket", capacity: limit, refillRate: rate, per };
  return { name, algorithm: "leaky_bucket", capacity: limit, leakRate: rate, per };
}

const hasNumbers = ({ algorithm }) => algorithm !== "ban" && algorithm !== "concurrency";

const costs = fc.oneof(
  { arbitrary: fc.constant(1), weight: 4 },
  { arbitrary: fc.integer({ min: 1, max: 5 }), weight: 2 },
);
const kindsOfSteps = {
  hit: 10,
  hitBy: 2,
  peek: 3,
  reserve: 5,
  settle: 4,
  extend: 1,
  inc: 1,
  refund: 1,
  set: 1,
  reset: 1,
  ban: 1,
  unban: 1,
  except: 3,
  hitAll: 3,
  deploy: 1,
};

const step = fc.record({
  kind: fc.oneof(
    ...Object.entries(kindsOfSteps).map(([kind, weight]) => ({ arbitrary: fc.constant(kind), weight })),
  ),
  after: fc.oneof(
    { arbitrary: fc.constant(0), weight: 4 },
    { arbitrary: fc.integer({ min: 1, max: 30 }), weight: 4 },
    { arbitrary: fc.integer({ min: 31, max: 400 }), weight: 1 },
  ),
  /** How far the clock steps back before. It comes no further behind its latest time than any policy's period. */
  back: fc.oneof(
    { arbitrary: fc.constant(0), weight: 9 },
    { arbitrary: fc.integer({ min: 1, max: farthest }), weight: 1 },
  ),
  /** Which list of policies is named, and which of them where one is. */
  list: fc.nat(9),
  one: fc.nat(7),
  key: fc.constantFrom("a", "a", "a", "b"),
  cost: costs,
  byName: fc.boolean(),
  time: fc.integer({ min: 1, max: 300 }),
  choice: fc.nat(9),
});

/** A pool of policies, the lists that are named at first, and steps. */
export const sequences = (lists, most = 8) =>
  fc.record({
    pool: fc.nat(1_000_000),
    lists: fc.array(fc.uniqueArray(fc.nat(names - 1), { minLength: 1, maxLength: most }), {
      minLength: lists,
      maxLength: lists,
    }),
    steps: fc.array(step, { minLength: 1, maxLength: 60, size: "max" }),
  });

/**
 * A world whose clock steps back. Whether what has ended before a deploy, or an exception that has ended, comes back then, and how
 * a reservation follows the clock, is not in the guides; an undo may then give back nothing.
 */
export const aLittleBack = { stepsBack: true, leaveOut: ["reserve", "hitAll", "except", "deploy"] };

/** The fields of decisions that are compared, without those of which the oracle says nothing. */
const pick = (decision, like) =>
  Object.fromEntries(Object.keys(like).map((field) => [field, decision[field]]));

/**
 * Performs the steps in a world and by the oracle, and compares all decisions. A world has `at(time)`, `limiterOf(policies)` and
 * `hitAll(hits)`, and can `leaveOut` kinds of steps.
 */
export async function compareWithOracle(world, { pool, lists, steps }) {
  const keys = { a: new OracleKey(), b: new OracleKey() };
  const versions = lists.map(() => 0);
  const policiesAt = (index, version = versions[index]) => {
    const own = lists[index].map((number) =>
      policyOf(pool, number, version, !world.isFree && lists[index].length === 1),
    );
    // A ban needs something to count denials of.
    return own.every(({ algorithm }) => algorithm === "ban")
      ? [...own, { name: "other", algorithm: "fix_window_per_key", limit: 2, scale: 100 }]
      : own;
  };
  const reservations = [];
  let [now, latest] = [start, start];
  for (const [index, given] of steps.entries()) {
    latest = Math.max(latest, now + given.after);
    now = Math.max(now + given.after - (world.stepsBack ? given.back : 0), latest - farthest);
    world.at(now);
    const at = given.list % lists.length;
    const list = policiesAt(at);
    const numbered = list.filter(hasNumbers);
    const one = numbered[given.one % numbered.length];
    const { key, time, choice } = given;
    const oracle = keys[key];
    const kind = list.some(({ algorithm }) => algorithm === "concurrency")
      ? ({ hit: "reserve", hitBy: "reserve", hitAll: "reserve" }[given.kind] ?? given.kind)
      : given.kind;
    const counts = list[0].denied === "count";
    const hasSlots = list.some(({ algorithm }) => algorithm === "concurrency");
    const byName = (hasSlots || given.byName) && one !== undefined;
    const cost = byName ? { [one.name]: given.cost } : hasSlots ? 1 : given.cost;
    const limiter = await world.limiterOf(list, at);
    const words = () =>
      `step ${index} at ${now - start}: ${kind} ${key} ${JSON.stringify(cost)} under ${JSON.stringify(list)}`;
    const same = (found, { numbers, ...expected }) => {
      const all = { ...expected, ...numbers?.(found.policy) };
      assert.deepEqual(pick(found, all), all, words());
    };
    if (world.leaveOut?.includes(kind)) continue;
    switch (kind) {
      case "hit":
        same(await limiter.hit(key, cost), oracle.hit(list, cost, now));
        break;
      case "hitBy": {
        // For how many hits a log is kept under several limits, the guides do not say.
        const call = counts ? list : policiesAt(at, versions[at] ^ 1);
        same(await limiter.hit(key, cost, call), oracle.hit(call, cost, now));
        break;
      }
      case "peek": {
        // How long a slot is taken, only `reserve` says.
        const { numbers, ...expected } = oracle.peek(list, cost, now);
        same(await limiter.peek(key, cost), hasSlots ? expected : { ...expected, numbers });
        break;
      }
      case "reserve": {
        const made = await limiter.reserve(key, cost, { ttl: time });
        const { decision, id } = oracle.reserve(list, cost, now, time);
        same(made.decision, decision);
        if (id !== undefined) reservations.push({ list, at, id: made.id, own: id, oracle, byName });
        break;
      }
      case "settle":
      case "extend": {
        const [own] = reservations.splice(choice % Math.max(1, reservations.length), 1);
        if (own === undefined) break;
        const maker = await world.limiterOf(own.list, own.at);
        if (kind === "extend") {
          await maker.extend(own.id, time);
          own.oracle.extend(own.own, time, now);
          reservations.push(own);
        } else {
          const used = choice > 6 ? undefined : choice % 3;
          // As it was reserved: one number, or one for each policy.
          const each = () => Object.fromEntries(own.list.filter(hasNumbers).map(({ name }) => [name, used]));
          await maker.settle(own.id, own.byName && used !== undefined ? each() : used);
          own.oracle.settle(own.own, used, now);
        }
        break;
      }
      case "inc":
        if (one === undefined) break;
        await limiter.inc(key, given.cost, one.name);
        oracle.inc(one, given.cost, now);
        break;
      case "refund":
        // Of a log and of a sliding counter, the guides do not say which hits are given back.
        if (one === undefined || /sliding/.test(one.algorithm)) break;
        await limiter.inc(key, -given.cost, one.name);
        oracle.inc(one, -given.cost, now);
        break;
      case "set": {
        if (one === undefined) break;
        // No exception leaves a bucket less than two tokens.
        const count = Math.min(
          given.cost,
          one.limit ?? one.capacity,
          one.algorithm === "token_bucket" ? 2 : 5,
        );
        await limiter.set(key, count, one.name);
        oracle.set(one, count, now);
        break;
      }
      case "reset":
        await limiter.reset(key, { reservations: choice > 4 });
        oracle.reset(list, now, { reservations: choice > 4 });
        break;
      case "ban":
      case "unban": {
        const ban = list.find(({ algorithm, factor }) => algorithm === "ban" && factor === undefined);
        if (ban === undefined) break;
        if (kind === "ban") {
          await limiter.ban(key, time, ban.name);
          oracle.ban(ban, time, now);
        } else {
          await limiter.unban(key, ban.name);
          oracle.unban(ban, now);
        }
        break;
      }
      case "except": {
        const until = now + time;
        if (choice === 0) {
          await limiter.except(key, null);
          oracle.except(undefined, now);
          break;
        }
        const policies = Object.fromEntries(
          list
            .filter((_, position) => !counts && (choice >> (position % 3)) & 1)
            .map(({ name }) => [
              name,
              { limit: given.cost + 2, capacity: given.cost + 1, refillRate: 1 + (choice % 4) },
            ]),
        );
        const exception =
          choice === 1
            ? { allow: true }
            : choice === 2
              ? { deny: true }
              : Object.keys(policies).length > 0
                ? policies
                : undefined;
        if (exception === undefined) break;
        await limiter.except(key, exception, { for: time });
        oracle.except(choice === 1 || choice === 2 ? { ...exception, until } : { policies, until }, now);
        break;
      }
      case "hitAll": {
        const other = policiesAt((at + 1) % lists.length);
        if (other.some(({ algorithm }) => algorithm === "concurrency")) break;
        const hits = [
          { key: "a", list, cost: given.cost },
          { key: "b", list: other, cost: 1 },
        ];
        const limiters = await Promise.all([limiter, world.limiterOf(other, (at + 1) % lists.length)]);
        const found = await world.hitAll(
          hits.map(({ key, cost }, place) => ({ limiter: limiters[place], key, cost })),
        );
        const decided = hits.map(({ key, list, cost }) => keys[key].peek(list, cost, now));
        const isUndone = !decided.every((decision) => decision.allowed);
        // In memory nothing is charged then, also where denied hits count; a denial counts toward bans.
        const expected = hits.map(({ key, list, cost }, place) =>
          world.isAtomic && isUndone && (decided[place].allowed || list[0].denied === "count")
            ? decided[place]
            : keys[key].hit(list, cost, now),
        );
        const allowed = expected.every((decision) => decision.allowed);
        assert.equal(found.allowed, allowed, words());
        assert.deepEqual(
          found.decisions.map((decision) => decision.allowed),
          expected.map((decision) => decision.allowed),
          words(),
        );
        if (!allowed && !world.isAtomic)
          for (const [place, { key, list, cost }] of hits.entries())
            if (expected[place].allowed) keys[key].undo(list, cost, now);
        break;
      }
      case "deploy":
        versions[at] = (versions[at] + 1 + (choice % 3)) % 4;
        break;
    }
  }
}
