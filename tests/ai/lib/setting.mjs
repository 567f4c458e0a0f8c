// A limiter under every kind of policy, time that tests move, and prices.

import { RateLimiter } from "tollgate";

export const day = 86_400_000;

/** Policies of every name, none of which denies by itself. */
export const policies = (more = {}) => [
  { name: "requests", algorithm: "fix_window", limit: 1_000, scale: "30d" },
  { name: "tokens", algorithm: "fix_window", limit: 10_000_000, scale: "30d" },
  { name: "inputTokens", algorithm: "fix_window", limit: 10_000_000, scale: "30d" },
  { name: "outputTokens", algorithm: "fix_window", limit: 10_000_000, scale: "30d" },
  { name: "usd", algorithm: "fix_window", limit: 1_000_000_000, scale: "30d" },
  { name: "running", algorithm: "concurrency", limit: 100, ttl: "1h" },
  ...(more.policies ?? []),
];

export const prices = {
  "gpt-5": { input: "1.25", cachedInput: "0.125", output: "10" },
  "claude-5": { input: "3", cachedInput: "0.3", cacheWrite: "3.75", output: "15" },
  embedder: { input: "0.02", output: "0" },
};

/** Time that stands still until a test moves it: a clock and a timer for limiters and budgets. */
export class MovedTime {
  now = 1_800_000_000_000;
  #timers = new Set();
  clock = () => this.now;
  timer = (callback, milliseconds) => {
    const entry = { at: this.now + milliseconds, callback };
    this.#timers.add(entry);
    return () => this.#timers.delete(entry);
  };

  /** How many timers run. */
  get timers() {
    return this.#timers.size;
  }

  /** Moves time, and rings each timer at its own time. */
  async move(milliseconds) {
    const end = this.now + milliseconds;
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.now = Math.max(due.at, this.now);
      this.#timers.delete(due);
      due.callback();
      await settled();
    }
    this.now = end;
  }
}

/** Waits until all that is under way without a socket or a timer is done. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Waits until a condition holds, which another process or a socket brings about. */
export async function until(condition, what) {
  const end = performance.now() + 60_000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`waited a minute for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A limiter in memory whose time the test moves, and the options of budgets over it. */
export function setting(more = {}) {
  const time = new MovedTime();
  const limiter = new RateLimiter(more.policies ?? policies(), { clock: time.clock });
  const options = { limiter, key: "user:42", prices, clock: time.clock, timer: time.timer };
  return { time, limiter, options };
}

/** The counts of a key by the names of its policies. */
export function countsOf(limiter, key = "user:42") {
  return Object.fromEntries(limiter.policies.map(({ name }) => [name, limiter.get(key, name)]));
}

/** The exact price of a call in millionths, rounded up, from a price list in hundred-millionths per token. */
export function priceOf(model, { input, cached = 0, output }) {
  const units = (price) => BigInt(Math.round(Number(price) * 1e8));
  const { input: perInput, cachedInput = perInput, output: perOutput } = prices[model];
  const sum =
    BigInt(input - cached) * units(perInput) +
    BigInt(cached) * units(cachedInput) +
    BigInt(output) * units(perOutput);
  return Number((sum + 99_999_999n) / 100_000_000n);
}
