// What a key decides, as the guides say it: rows by shape, reservations, exceptions, bans, and waits found by trying every
// millisecond. Nothing here is taken from the source.

import { kinds, limitOf } from "./oracle-kinds.mjs";

/** Beyond every wait in the tests, in milliseconds. */
const horizon = 20_000;

const scaleOf = ({ algorithm, scale, per }) => (algorithm === "ban" ? undefined : (scale ?? per));
const shapeOf = (policy) => `${policy.name} ${policy.algorithm} ${scaleOf(policy)}`;

const exceptionFields = ["limit", "capacity", "refillRate", "leakRate", "after", "for", "factor", "most"];

/** One key, and the operations on it under lists of policies. */
export class OracleKey {
  #rows = new Map();
  #bans = new Map();
  #open = [];
  #exception;

  #copy() {
    const copy = new OracleKey();
    copy.#rows = new Map(this.#rows);
    copy.#bans = new Map(this.#bans);
    copy.#open = [...this.#open];
    copy.#exception = this.#exception;
    return copy;
  }

  /** Returns the numbers of a policy at a time: the exception's, then the call's. */
  #inForce(policy, time) {
    const own = time < (this.#exception?.until ?? 0) ? this.#exception.policies?.[policy.name] : undefined;
    if (own === undefined) return policy;
    const numbers = Object.fromEntries(
      exceptionFields.filter((field) => field in policy && field in own).map((field) => [field, own[field]]),
    );
    return { ...policy, ...numbers };
  }

  #isAllow = (time) => time < (this.#exception?.until ?? 0) && this.#exception.allow === true;
  #isDeny = (time) => time < (this.#exception?.until ?? 0) && this.#exception.deny === true;

  /** Returns a row's state as it is charged at a time, by the reservations that have ended by then. */
  #charged(shape, time) {
    let state = this.#rows.get(shape);
    for (const { end, parts } of this.#open) {
      if (end > time) continue;
      for (const part of parts)
        if (part.shape === shape && part.cost > 0) {
          const kind = kinds[part.policy.algorithm];
          if (kind !== undefined)
            state = kind.add(kind.at(state ?? kind.fresh(), end, part.policy), part.cost, end, part.policy);
        }
    }
    return state;
  }

  #reserved(shape, time) {
    let sum = 0;
    for (const { end, parts } of this.#open)
      if (end > time) for (const part of parts) if (part.shape === shape) sum += part.cost;
    return sum;
  }

  /** Returns what is used of a policy at a time, in its unit. */
  #used(policy, time) {
    const kind = kinds[policy.algorithm];
    if (kind === undefined) return 0;
    const state = this.#charged(shapeOf(policy), time) ?? kind.fresh();
    return kind.used(kind.at(state, time, policy), policy);
  }

  #fits(policy, cost, time, besideOpen = true) {
    const numbers = this.#inForce(policy, time);
    const unit = kinds[policy.algorithm]?.unit(numbers) ?? 1;
    const open = besideOpen ? this.#reserved(shapeOf(policy), time) : 0;
    return this.#used(numbers, time) + (open + cost) * unit <= limitOf(numbers) * unit;
  }

  #remaining(policy, time) {
    const numbers = this.#inForce(policy, time);
    const unit = kinds[policy.algorithm]?.unit(numbers) ?? 1;
    const left = Math.floor((limitOf(numbers) * unit - this.#used(numbers, time)) / unit);
    return Math.max(0, left - this.#reserved(shapeOf(policy), time));
  }

  /** Returns until when a ban holds; 0 if none does. */
  #bannedUntil(bans, time) {
    const ends = bans.map((ban) => this.#bans.get(ban.name)?.end ?? 0).filter((end) => end > time);
    return Math.max(0, ...ends);
  }

  #isAllowed(list, cost, time) {
    if (this.#isAllow(time)) return true;
    if (this.#isDeny(time)) return false;
    const bans = list.filter(({ algorithm }) => algorithm === "ban");
    if (this.#bannedUntil(bans, time) > 0) return false;
    return list.every((policy) => policy.algorithm === "ban" || this.#fits(policy, cost(policy), time));
  }

  /** Returns the first time from `from` on at which something holds; infinity if it never does. */
  #first(from, holds) {
    for (let time = from; time < from + horizon; time++) if (holds(time)) return time;
    return Number.POSITIVE_INFINITY;
  }

  /** Charges the reservations that have ended. */
  #expire(now) {
    const ended = this.#open.filter(({ end }) => end <= now);
    if (ended.length === 0) return;
    for (const shape of new Set(ended.flatMap(({ parts }) => parts.map((part) => part.shape)))) {
      const state = this.#charged(shape, now);
      if (state !== undefined) this.#rows.set(shape, state);
    }
    this.#open = this.#open.filter(({ end }) => end > now);
  }

  /** Charges a cost. With `"count"` it is a hit, which counts under `denied: "count"` even if it is denied. */
  #add(policy, cost, now, how = "add") {
    const kind = kinds[policy.algorithm];
    if (kind === undefined || cost === 0) return;
    const numbers = this.#inForce(policy, now);
    const shape = shapeOf(policy);
    const state = kind.at(this.#rows.get(shape) ?? kind.fresh(), now, numbers);
    const charge = policy.denied === "count" && how in kind ? how : "add";
    this.#rows.set(shape, kind[charge](state, cost, now, numbers));
  }

  /** Counts a denial toward the bans, and begins those that it completes. */
  #violate(bans, now) {
    for (const policy of bans) {
      const ban = this.#inForce(policy, now);
      const most = ban.most === undefined ? Number.POSITIVE_INFINITY : Math.max(ban.most, ban.for);
      let { count = 0, until = 0, latest = 0, end = 0, length = 0 } = this.#bans.get(ban.name) ?? {};
      // It stands still while the clock is behind it.
      latest = Math.max(latest, now);
      if (count === 0 || latest >= until) [count, until] = [0, latest + ban.scale];
      count += 1;
      if (count >= ban.after) {
        const isAgain = length > 0 && latest < end + length;
        length = isAgain ? Math.min(length * (ban.factor ?? 1), most) : ban.for;
        [end, count] = [latest + length, 0];
      }
      this.#bans.set(ban.name, { count, until, latest, end, length });
    }
  }

  /** Returns a decision, and the key as it is afterwards. */
  #decide(list, costs, now, ttl) {
    const cost = (policy) => (typeof costs === "number" ? costs : (costs[policy.name] ?? 1));
    const counted = list.filter(({ algorithm }) => algorithm !== "ban");
    const bans = list.filter(({ algorithm }) => algorithm === "ban");
    const after = this.#copy();
    const allowed = this.#isAllowed(list, cost, now);
    let id;
    if (allowed && ttl !== undefined) {
      id = `${now} ${Math.random()}`;
      const parts = counted.map((policy) => ({
        shape: shapeOf(policy),
        policy: this.#inForce(policy, now),
        cost: cost(policy),
      }));
      // What an exception allows is free, also when it is settled.
      const own = this.#isAllow(now) ? [] : parts;
      after.#open = [...after.#open, { id, end: now + ttl, parts: own }].sort(
        (one, other) => one.end - other.end,
      );
    } else if ((allowed || list[0].denied === "count") && !this.#isAllow(now) && !this.#isDeny(now))
      for (const policy of counted) after.#add(policy, cost(policy), now, "count");
    const byReserved =
      !this.#isDeny(now) &&
      !allowed &&
      counted.every((policy) => this.#fits(policy, cost(policy), now, false));
    const held = this.#bannedUntil(bans, now);
    if (!allowed && !this.#isDeny(now) && held === 0 && !byReserved) after.#violate(bans, now);
    const bannedUntil = after.#bannedUntil(bans, now);
    const decision = {
      allowed,
      retryAfter: allowed ? 0 : after.#first(now, (time) => after.#isAllowed(list, cost, time)) - now,
    };
    if (!this.#isAllow(now) && !this.#isDeny(now))
      decision.numbers = (name) => after.#numbers(list, cost, allowed, bannedUntil, name, now);
    return { decision, after, id };
  }

  /**
   * Returns the numbers of a decision that belong to the policy of a name: the one that has least left, or one that denied.
   */
  #numbers(list, cost, allowed, bannedUntil, name, now) {
    const counted = list.filter(({ algorithm }) => algorithm !== "ban");
    const left = counted.map((policy) => this.#remaining(policy, now));
    const at = counted.findIndex((policy) => policy.name === name);
    if (at < 0) return { policy: bannedUntil > now ? name : "one that counts" };
    const denies = counted.filter((policy) => !this.#fits(policy, cost(policy), now));
    const mayBe = allowed ? counted.filter((_, at) => left[at] === Math.min(...left)) : denies;
    const remaining = left[at];
    const hasMore = (policy, time) => {
      const own = this.#remaining(policy, time);
      return own > remaining || own === limitOf(this.#inForce(policy, time));
    };
    const from = Math.max(now, bannedUntil);
    const moreAfter = this.#first(from, (time) => counted.every((policy) => hasMore(policy, time))) - now;
    return { policy: mayBe.some((own) => own.name === name) ? name : mayBe[0]?.name, remaining, moreAfter };
  }

  #become(other) {
    this.#rows = other.#rows;
    this.#bans = other.#bans;
    this.#open = other.#open;
  }

  peek(list, costs, now) {
    this.#expire(now);
    return this.#decide(list, costs, now).decision;
  }

  hit(list, costs, now) {
    this.#expire(now);
    const { decision, after } = this.#decide(list, costs, now);
    this.#become(after);
    return decision;
  }

  /** Undoes a hit of these costs that was just made. */
  undo(list, costs, now) {
    if (this.#isAllow(now)) return;
    for (const policy of list) {
      const kind = kinds[policy.algorithm];
      if (kind === undefined) continue;
      const cost = typeof costs === "number" ? costs : (costs[policy.name] ?? 1);
      const state = this.#rows.get(shapeOf(policy));
      const numbers = this.#inForce(policy, now);
      if (state !== undefined)
        this.#rows.set(
          shapeOf(policy),
          (kind.undo ?? kind.add)(state, kind.undo ? cost : -cost, now, numbers),
        );
    }
  }

  reserve(list, costs, now, ttl) {
    this.#expire(now);
    const { decision, after, id } = this.#decide(list, costs, now, ttl);
    this.#become(after);
    return { decision, id };
  }

  /** Charges what a reservation used, by default all of it, under the numbers that it was opened under. */
  settle(id, used, now) {
    const reservation = this.#open.find((own) => own.id === id);
    this.#expire(now);
    if (!this.#open.includes(reservation)) return;
    this.#open = this.#open.filter((own) => own !== reservation);
    for (const { shape, policy, cost } of reservation.parts) {
      const kind = kinds[policy.algorithm];
      const amount = used ?? cost;
      if (kind === undefined || amount === 0) continue;
      const state = kind.at(this.#rows.get(shape) ?? kind.fresh(), now, policy);
      this.#rows.set(shape, kind.add(state, amount, now, policy));
    }
  }

  extend(id, ttl, now) {
    this.#expire(now);
    this.#open = this.#open
      .map((own) => (own.id === id ? { ...own, end: Math.max(own.end, now + ttl) } : own))
      .sort((one, other) => one.end - other.end);
  }

  inc(policy, cost, now) {
    this.#expire(now);
    this.#add(policy, cost, now);
  }

  set(policy, count, now) {
    this.#expire(now);
    const numbers = this.#inForce(policy, now);
    const kind = kinds[policy.algorithm];
    const state = kind.at(this.#rows.get(shapeOf(policy)) ?? kind.fresh(), now, numbers);
    this.#rows.set(shapeOf(policy), kind.set(state, count, now, numbers));
  }

  /** Forgets the states of the names of these policies, and their parts of reservations if `reservations` is true. */
  reset(list, now, { reservations }) {
    this.#expire(now);
    const own = new Set(list.map(({ name }) => name));
    for (const shape of this.#rows.keys()) if (own.has(shape.split(" ")[0])) this.#rows.delete(shape);
    for (const name of own) this.#bans.delete(name);
    if (!reservations) return;
    this.#open = this.#open.map(({ parts, ...reservation }) => ({
      ...reservation,
      parts: parts.filter(({ policy }) => !own.has(policy.name)),
    }));
  }

  ban(policy, length, now) {
    this.#expire(now);
    const { end = 0, length: last = 0 } = this.#bans.get(policy.name) ?? {};
    this.#bans.set(policy.name, {
      count: 0,
      until: 0,
      latest: now,
      end: now + length,
      length: end === 0 ? 0 : last,
    });
  }

  unban(policy) {
    this.#bans.delete(policy.name);
  }

  except(exception, now) {
    this.#expire(now);
    this.#exception = exception;
  }
}
