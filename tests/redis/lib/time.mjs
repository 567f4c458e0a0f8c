// Redis's time under control: the script reads it from a key of its own, and the local clocks move along.

const systemTime = "redis.call('TIME')";

/** The same as a pair of seconds and microseconds, from a key. */
const givenTime = (clock) =>
  `(function() local ms = redis.call('GET', '${clock}'); return { string.sub(ms, 1, -4), string.sub(ms, -3) .. '000' } end)()`;

let clocks = 0;

/** A client whose Redis tells the time that it is given, and what sets it. */
export class ControlledTime {
  now;
  #redis;
  #key = `clock:${process.pid}:${++clocks}`;
  #sha;
  #local = { monotonic: performance.now, wall: Date.now };
  #ahead = 0;
  #suspended = 0;

  constructor(redis, now = 1_800_000_000_000) {
    this.#redis = redis;
    this.now = now;
    const start = now;
    // Milliseconds since the limiter's process began, as far as it knows.
    performance.now = () => this.now - start + this.#ahead - this.#suspended;
    Date.now = () => this.now + this.#ahead;
  }

  /** Lets time pass on all clocks, in which no timer runs. */
  pass(milliseconds) {
    this.now += milliseconds;
  }

  /** Suspends the machine for a time: its monotonic clock stands still, and no timer runs. */
  suspend(milliseconds) {
    this.now += milliseconds;
    this.#suspended += milliseconds;
  }

  /** Sets Redis's clock ahead or back, and leaves the local ones. */
  step(milliseconds) {
    this.now += milliseconds;
    this.#ahead -= milliseconds;
  }

  /** Lets so much time pass on the local clocks alone that every denial is too old to hold. */
  forgetDenials() {
    this.#ahead += 2_001;
  }

  /** Gives the local clocks back. */
  [Symbol.dispose]() {
    performance.now = this.#local.monotonic;
    Date.now = this.#local.wall;
  }

  client = {
    send: async (_key, [command, script, ...args]) => {
      this.#redis.set(this.#key, this.now).catch(() => {});
      if (command === "EVAL") {
        if (!script.includes(systemTime)) throw new Error("the script does not ask for the time");
        this.#sha = await this.#redis.script("LOAD", script.replace(systemTime, givenTime(this.#key)));
      }
      if (this.#sha === undefined) throw new Error("NOSCRIPT");
      return this.#redis.evalsha(this.#sha, ...args);
    },
  };
}
