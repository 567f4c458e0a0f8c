import { RateLimiter } from "tollgate";
import { firstFrom } from "./paint/visible.js";
import { origin } from "./state.js";

const key = "visitor";
/** With fewer, what has left the view is not worth removing. */
const fewLevels = 4_096;
/** More than any run can let through, so that the meter only measures. */
const unbounded = 1_000_000;

/** One policy under the page's clock: what it answered, and how full it was in between. */
export class Simulation {
  hits = [];
  levels = [];
  allowed = 0;
  denied = 0;
  /** The most that was let through in any span of one `scale`, and when that span ended. */
  busiest = { count: 0, at: 0 };
  #now = 0;
  #sampled = 0;
  #every;
  #from;
  #span;
  #mostLevels = fewLevels;
  #limiter;
  #meter;
  #cost;

  /** Levels are noted every so many milliseconds, from a time on: what went before is never drawn. */
  constructor(policy, { cost, scale }, { every, from, span }) {
    const clock = () => origin + this.#now;
    this.#limiter = new RateLimiter(policy, { clock });
    this.#meter = new RateLimiter({ algorithm: "sliding_window", limit: unbounded, scale }, { clock });
    this.#cost = cost;
    this.#every = every;
    this.#from = from;
    this.#span = span;
    this.#sampled = Math.max(0, Math.floor(from / every) * every);
    this.limit = this.#limiter.peek(key).limit;
    this.#sample(0);
  }

  hit(at) {
    this.advance(at);
    this.#sample(at);
    const { allowed, count, remaining, retryAfter } = this.#limiter.hit(key, this.#cost);
    const ends = this.#limiter.expiresAt(key);
    const hit = { at, allowed, count, remaining, retryAfter, ends: ends && ends - origin };
    this.hits.push(hit);
    this.#sample(at);
    this[allowed ? "allowed" : "denied"] += 1;
    if (allowed) this.#measure(at);
    return hit;
  }

  /** What a hit would be answered now. */
  peek(at) {
    this.advance(at);
    return this.#limiter.peek(key, this.#cost);
  }

  /** Lets time pass, and notes the level on the way: at even steps, and on both sides of an end. */
  advance(to) {
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

  level() {
    return this.#limiter.get(key);
  }

  #sample(at) {
    this.#now = Math.max(this.#now, at);
    if (this.#now < this.#from) return;
    this.levels.push({ at: this.#now, level: this.level() });
    if (this.levels.length > this.#mostLevels) this.#forgetLevels();
  }

  /** Forgets what has left the view, but for the last of it, from which a line goes on into the view. */
  #forgetLevels() {
    this.levels.splice(0, Math.max(firstFrom(this.levels, this.#now - this.#span) - 1, 0));
    this.#mostLevels = Math.max(fewLevels, 2 * this.levels.length);
  }

  #measure(at) {
    const count = this.#meter.inc(key, this.#cost);
    if (count >= this.busiest.count) this.busiest = { count, at };
  }
}
