import { RateLimiter } from "tollgate";
import { firstFrom } from "./paint/visible.js";
import { OpenReservations } from "./reservations.js";
import { origin } from "./state.js";

const key = "visitor";
/** The number of levels from which on those out of view are removed. */
const fewLevels = 4_096;
/** More than any run can let through, so that the meter denies no hit. */
const unbounded = 1_000_000;

/** One policy under the page's clock, perhaps with a ban beside it: its decisions, and the levels between them. */
export class Simulation {
  hits = [];
  levels = [];
  allowed = 0;
  denied = 0;
  /** The visitor's reservations, in order, denied ones included. */
  reservations = [];
  /** The changes of the level without a decision: settled, cancelled, extended, expired, refunded. */
  changes = [];
  /** The times in which the visitor was banned. */
  bans = [];
  /** The most that was let through in any span of one `scale`, and when that span ended. */
  busiest = { count: 0, at: 0 };
  #now = 0;
  #sampled = 0;
  #every;
  #from;
  #span;
  #mostLevels = fewLevels;
  #limiter;
  #name;
  #charged;
  #meter;
  #open = new OpenReservations();
  #cost;
  #slots;
  #countsDenied;
  #isBounded;

  /** Levels are sampled every `every` milliseconds from `from` on: earlier ones are never drawn. */
  constructor([policy, ban], { cost, scale }, { every, from, span }) {
    const clock = () => origin + this.#now;
    this.#limiter = new RateLimiter(ban ? [policy, ban] : policy, { clock });
    this.#name = policy.algorithm;
    this.#slots = policy.algorithm === "concurrency";
    this.#countsDenied = policy.denied === "count";
    this.#isBounded = "limit" in policy;
    // Without reservations, for the end of a window: the limiter's own state lasts until its reservations end.
    this.#charged = this.#slots ? undefined : new RateLimiter(policy, { clock });
    this.#meter = new RateLimiter({ algorithm: "sliding_window", limit: unbounded, scale }, { clock });
    this.#cost = cost;
    this.#every = every;
    this.#from = from;
    this.#span = span;
    this.#sampled = Math.max(0, Math.floor(from / every) * every);
    this.limit = this.#limiter.peek(key).limit;
    this.#sample(0);
  }

  /** Whether a period had more than the policy promises. A bucket promises no such bound: its bursts are allowed. */
  get isOver() {
    return this.#isBounded && this.busiest.count > this.limit;
  }

  /** The amount of the open reservations. */
  get open() {
    return this.#open.amount;
  }

  /** Performs an action of the visitor. Returns the decision or the change; `undefined` if the action has no effect. */
  act({ at, act, ...rest }) {
    return this[act](at, rest);
  }

  /** Hits. Under a concurrency limit it takes a slot for the policy's `ttl`. */
  hit(at) {
    this.#reach(at);
    if (this.#slots) return this.#reserve(at, this.#cost, {}).hit;
    const decision = this.#limiter.hit(key, this.#cost);
    if (decision.allowed || this.#countsDenied) this.#charge(this.#cost);
    if (decision.allowed) this.#measure(at, this.#cost);
    return this.#record(at, decision);
  }

  reserve(at, { amount, ttl }) {
    this.#reach(at);
    const number = this.reservations.length;
    const { hit, entry } = this.#reserve(at, amount, { ttl }, number);
    this.reservations.push(entry);
    return hit;
  }

  settle(at, { number, used }) {
    return this.#close(at, number, "settled", used);
  }

  cancel(at, { number }) {
    return this.#close(at, number, "cancelled", 0);
  }

  extend(at, { number, ttl }) {
    const entry = this.#opened(at, number);
    if (entry?.reservation.extend(ttl) !== "extended") return undefined;
    entry.ends = entry.reservation.expiresAt - origin;
    return this.#change({ at, what: "extended", number, ttl });
  }

  /** Gives back a used amount. Under a concurrency limit there is none. */
  refund(at, { amount }) {
    if (this.#slots) return undefined;
    this.#reach(at);
    const from = this.level();
    const to = this.#limiter.inc(key, -amount, this.#name);
    const back = Math.abs(from - to);
    this.#charge(-back);
    this.#meter.inc(key, -back);
    return this.#change({ at, what: "refunded", charged: 0, back, from, to });
  }

  /** Returns what a hit would return now. */
  peek(at) {
    this.advance(at);
    return this.#limiter.peek(key, this.#cost);
  }

  /** Returns how much can still be used or reserved now. */
  left() {
    return this.#limiter.peek(key, 0).remaining;
  }

  /** Moves the time on; reservations that end on the way expire. */
  advance(to) {
    for (let ends = this.#open.firstEnd; ends <= to; ends = this.#open.firstEnd) this.#expire(ends);
    this.#pass(to);
  }

  level() {
    return this.#limiter.get(key, this.#name);
  }

  /** Moves the time on and samples the level: at even steps, and on both sides of an end. */
  #pass(to) {
    const ends = this.hits.at(-1)?.ends ?? 0;
    while (this.#sampled + this.#every <= to) {
      const next = this.#sampled + this.#every;
      if (ends > this.#now && ends <= next) {
        this.#sample(ends - 1);
        this.#sample(ends);
      }
      this.#sampled = next;
      this.#sample(next);
    }
    this.#now = Math.max(this.#now, to);
  }

  #reach(at) {
    this.advance(at);
    this.#sample(at);
  }

  /** Reserves an amount. A reservation with a number is the visitor's. */
  #reserve(at, amount, options, number) {
    const reservation = this.#limiter.reserve(key, amount, options);
    const { allowed, decision, expiresAt } = reservation;
    const entry = {
      reservation,
      number,
      at,
      amount,
      ends: expiresAt - origin,
      what: allowed ? "open" : "denied",
    };
    if (!allowed) entry.ends = at;
    else this.#open.add(entry);
    if (this.#slots && allowed) this.#most(at, this.level());
    return {
      entry,
      hit: this.#record(at, decision, number === undefined ? {} : { number, reserved: amount }),
    };
  }

  #opened(at, number) {
    this.#reach(at);
    const entry = this.reservations[number];
    return this.#open.has(entry) ? entry : undefined;
  }

  #close(at, number, what, used) {
    const entry = this.#opened(at, number);
    const from = this.level();
    if (entry?.reservation.settle(used) !== "settled") return undefined;
    return this.#closed(entry, { at, what, charged: this.#slots ? 0 : used, from });
  }

  /** Expires the reservations that end at a time. A slot is released; any other amount is charged in full. */
  #expire(at) {
    this.#pass(at - 1);
    this.#sample(at - 1);
    const from = this.level();
    const ending = this.#open.takeEnding(at);
    this.#pass(at);
    for (const entry of ending) {
      // The limiter has charged it already: this only returns the settlement.
      const what = entry.reservation.settle();
      this.#closed(entry, { at, what, charged: this.#slots ? 0 : entry.amount, from });
    }
  }

  #closed(entry, change) {
    const { at, what, charged } = change;
    const back = Math.max(entry.amount - charged, 0);
    this.#open.delete(entry);
    this.#charge(charged);
    if (charged > 0) this.#measure(at, charged);
    Object.assign(entry, { what, charged, back, closed: at });
    if (entry.number === undefined) return this.#sample(at);
    return this.#change({ ...change, number: entry.number, amount: entry.amount, back, to: this.level() });
  }

  #change(change) {
    this.changes.push(change);
    this.#sample(change.at);
    return change;
  }

  #record(at, { allowed, count, remaining, retryAfter, reason }, more = {}) {
    const ends = this.#charged?.expiresAt(key);
    const hit = { at, allowed, count, remaining, retryAfter, ends: ends && ends - origin, ...more };
    if (reason === "banned") {
      hit.isBanned = true;
      this.#noteBan(at);
    }
    this.hits.push(hit);
    this.#sample(at);
    this[allowed ? "allowed" : "denied"] += 1;
    return hit;
  }

  /** Notes the ban of a denial, unless it is the last one. */
  #noteBan(at) {
    const until = this.#limiter.expiresAt(key, "ban") - origin;
    if (this.bans.at(-1)?.until !== until) this.bans.push({ from: at, until });
  }

  #charge(amount) {
    this.#charged?.inc(key, amount);
  }

  #sample(at) {
    this.#now = Math.max(this.#now, at);
    if (this.#now < this.#from) return;
    this.levels.push({ at: this.#now, level: this.level(), open: this.open });
    if (this.levels.length > this.#mostLevels) this.#forgetLevels();
  }

  /** Removes the levels out of view, except the last of them, from which a line goes on into the view. */
  #forgetLevels() {
    this.levels.splice(0, Math.max(firstFrom(this.levels, this.#now - this.#span) - 1, 0));
    this.#mostLevels = Math.max(fewLevels, 2 * this.levels.length);
  }

  #measure(at, amount) {
    this.#most(at, this.#meter.inc(key, amount));
  }

  #most(at, count) {
    if (count >= this.busiest.count) this.busiest = { count, at };
  }
}
