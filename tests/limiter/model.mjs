// The six algorithms as naively as they can be written: BigInt throughout, and every wait found by trying times.
// Each works on plain states that are never changed in place, so that what is not kept did not happen.

const max = 2n ** 53n - 1n;
const smaller = (a, b) => (a < b ? a : b);
const larger = (a, b) => (a > b ? a : b);
const divideUp = (a, b) => (a + b - 1n) / b;

const units = { ms: 1n, s: 1_000n, m: 60_000n, h: 3_600_000n, d: 86_400_000n };

function milliseconds(duration) {
  if (typeof duration === "number") return BigInt(duration);
  const [, digits, unit] = duration.match(/^(\d+)(ms|s|m|h|d)$/);
  return BigInt(digits) * units[unit];
}

/** The first time from `now` on at which something holds that goes on to hold. */
function firstTime(now, holds) {
  if (holds(now)) return now;
  let step = 1n;
  while (!holds(now + step)) step *= 2n;
  let [before, after] = [now, now + step];
  while (after - before > 1n) {
    const middle = (before + after) / 2n;
    if (holds(middle)) after = middle;
    else before = middle;
  }
  return after;
}

function fixWindow({ limit, scale }) {
  return {
    period: scale,
    fresh: () => ({ window: -1n, count: 0n }),
    at: (state, now) => (now / scale > state.window ? { window: now / scale, count: 0n } : state),
    fits: (state, cost) => state.count + cost <= limit,
    add: (state, cost) => ({ ...state, count: smaller(max, state.count + cost) }),
    set: (state, count) => ({ ...state, count }),
    count: (state) => state.count,
    remaining: (state) => limit - state.count,
    isUnused: (state) => state.count === 0n,
    expiresAt: (state, now) => (state.window >= now / scale ? (state.window + 1n) * scale : 0n),
  };
}

function fixWindowPerKey({ limit, scale }) {
  const none = { end: 0n, count: 0n };
  return {
    period: scale,
    fresh: () => none,
    at: (state, now) => (state.end > now ? state : none),
    fits: (state, cost) => state.count + cost <= limit,
    add: (state, cost, now) => ({
      end: state.end || now + scale,
      count: smaller(max, state.count + cost),
    }),
    set: (_, count, now) => ({ end: now + scale, count }),
    count: (state) => state.count,
    remaining: (state) => limit - state.count,
    isUnused: (state) => state.end === 0n,
  };
}

/** What a log counts up to, if its limit is lower: another process may have a higher one. */
const longest = 1_000n;

function slidingWindow({ limit, scale, most = limit }) {
  const sum = (hits) =>
    smaller(
      max,
      hits.reduce((total, { cost }) => total + cost, 0n),
    );
  const latest = (hits, now) => larger(now, hits.at(-1)?.time ?? 0n);
  const longer = smaller(max, larger(most, longest) + 1n);
  /** The newest hits, up to a sum. */
  const newest = (hits, upTo) => {
    let excess = hits.reduce((total, { cost }) => total + cost, 0n) - smaller(upTo, max);
    return hits.flatMap(({ time, cost }) => {
      const kept = cost - smaller(cost, larger(0n, excess));
      excess -= cost;
      return kept > 0n ? [{ time, cost: kept }] : [];
    });
  };
  return {
    period: scale,
    fresh: () => [],
    at: (hits, now) => hits.filter(({ time }) => time + scale > latest(hits, now)),
    fits: (hits, cost) => sum(hits) + cost <= limit,
    add: (hits, cost, now) => newest([...hits, { time: latest(hits, now), cost }], longer),
    // In a full log it takes the place of the oldest.
    addHit: (hits, cost, now) =>
      newest([...hits, { time: latest(hits, now), cost }], larger(most + 1n, sum(hits))),
    set: (hits, count, now) =>
      count === 0n ? [] : [{ time: latest(hits, now), cost: smaller(count, longer) }],
    count: sum,
    remaining: (hits) => limit - sum(hits),
    isUnused: (hits) => hits.length === 0,
  };
}

function slidingCounter({ limit, scale }) {
  const overlap = ({ window, time }) => scale - larger(0n, time - window * scale);
  const weight = (state) => state.previous * overlap(state) + state.current * scale;
  return {
    period: scale,
    fresh: (now) => ({ window: now / scale, previous: 0n, current: 0n, time: now }),
    at({ window, previous, current }, time) {
      const now = time / scale;
      // Counters of nothing are as ones never used, also while the clock is behind them.
      if (previous === 0n && current === 0n) return { window: now, previous, current, time };
      if (now <= window) return { window, previous, current, time };
      return { window: now, previous: now === window + 1n ? current : 0n, current: 0n, time };
    },
    fits: (state, cost) => weight(state) + cost * scale <= limit * scale,
    add: (state, cost) => ({ ...state, current: smaller(max, state.current + cost) }),
    set: (state, count) => ({ ...state, previous: 0n, current: count }),
    count: (state) => smaller(max, divideUp(weight(state), scale)),
    remaining: (state) => larger(0n, limit * scale - weight(state)) / scale,
    isUnused: ({ previous, current }) => previous === 0n && current === 0n,
  };
}

/** Both buckets: charges fill them. A state has the rate of its last one, and flows at that or the call's, if faster. */
function bucket({ capacity, rate, per }, counted) {
  const remaining = ({ level }) => larger(0n, capacity * per - level) / per;
  return {
    period: divideUp(capacity * per, rate),
    fresh: (now) => ({ time: now, level: 0n, rate }),
    at(state, now) {
      const time = larger(now, state.time);
      const level = larger(0n, state.level - (time - state.time) * larger(rate, state.rate));
      // An empty bucket is as one never used, also while the clock is behind it.
      return level === 0n ? this.fresh(now) : { time, level, rate: state.rate };
    },
    fits: ({ level }, cost) => level + cost * per <= capacity * per,
    add: (state, cost) => ({ ...state, level: smaller(max * per, state.level + cost * per), rate }),
    set: ({ time }, count) => ({
      time,
      level: (counted === "tokens" ? capacity - count : count) * per,
      rate,
    }),
    count: (state) => (counted === "tokens" ? remaining(state) : smaller(max, divideUp(state.level, per))),
    remaining,
    isUnused: ({ level }) => level === 0n,
    expiresAt(state, now) {
      const end = state.time + divideUp(state.level, state.rate);
      return state.level > 0n && end > now ? end : 0n;
    },
  };
}

const tokenBucket = ({ refillRate, ...numbers }) => bucket({ ...numbers, rate: refillRate }, "tokens");
const leakyBucket = ({ leakRate, ...numbers }) => bucket({ ...numbers, rate: leakRate }, "level");

const algorithms = {
  fix_window: fixWindow,
  fix_window_per_key: fixWindowPerKey,
  sliding_window: slidingWindow,
  sliding_counter: slidingCounter,
  token_bucket: tokenBucket,
  leaky_bucket: leakyBucket,
};

/** A policy's numbers, and its algorithm with them. `own` is the limiter's policy, where this is a call's. */
function ruleOf(policy, own = policy) {
  const numbers = {};
  for (const name of ["limit", "capacity", "refillRate", "leakRate"]) {
    if (policy[name] !== undefined) numbers[name] = BigInt(policy[name]);
  }
  if (own.limit !== undefined) numbers.most = larger(BigInt(own.limit), numbers.limit);
  if (policy.scale !== undefined) numbers.scale = milliseconds(policy.scale);
  numbers.per = milliseconds(policy.per ?? "1s");
  const limit = numbers.limit ?? numbers.capacity;
  return { limit, ...algorithms[policy.algorithm](numbers) };
}

/** One full period of a policy, in milliseconds. */
export const periodOf = (policy) => Number(ruleOf(policy).period);

/** What one policy answers to a hit on a state, and the state that a hit would leave. */
function ask(rule, state, cost, now, countsDenied) {
  const before = rule.at(state, now);
  const allowed = rule.fits(before, cost);
  const charged = cost > 0n && (allowed || countsDenied);
  const after = charged
    ? rule.addHit
      ? rule.addHit(before, cost, now)
      : rule.add(before, cost, now)
    : before;
  const wait = (holds) => Number(firstTime(now, (time) => holds(rule.at(after, time))) - now);
  const never = Number.POSITIVE_INFINITY;
  const retryAfter = cost > rule.limit ? never : wait((later) => allowed || rule.fits(later, cost));
  const remaining = larger(0n, rule.remaining(after));
  const decision = {
    allowed,
    count: Number(rule.count(after)),
    limit: Number(rule.limit),
    remaining: Number(remaining),
    retryAfter,
    resetAfter: wait(rule.isUnused),
    moreAfter: remaining === rule.limit ? 0 : wait((later) => rule.fits(later, remaining + 1n)),
  };
  return { decision, charged, after };
}

/** A limiter that is never full and cleans only when it is told to. */
export class Model {
  /** Each key's states, policy by policy, from its first use on. */
  #keys = new Map();
  #policies;
  #rules;
  #names;
  #countsDenied;

  constructor(policies) {
    this.#policies = policies;
    this.#rules = policies.map((policy) => ruleOf(policy));
    this.#names = policies.map(({ name }) => name);
    this.#countsDenied = policies.length === 1 && policies[0].denied === "count";
  }

  get size() {
    return this.#keys.size;
  }

  hit(now, key, cost, call) {
    const { decision, kept } = this.#decide(now, key, cost, call);
    if (kept) this.#keys.set(key, kept);
    return decision;
  }

  peek(now, key, cost, call) {
    return this.#decide(now, key, cost, call).decision;
  }

  inc(now, key, cost, position) {
    const rule = this.#rules[position];
    const states = this.#states(now, key);
    const before = rule.at(states[position], BigInt(now));
    if (cost === 0) return Number(rule.count(before));
    const after = rule.add(before, BigInt(cost), BigInt(now));
    this.#keys.set(key, states.with(position, after));
    return Number(rule.count(after));
  }

  set(now, key, count, position) {
    const rule = this.#rules[position];
    const states = this.#states(now, key);
    const after = rule.set(rule.at(states[position], BigInt(now)), BigInt(count), BigInt(now));
    this.#keys.set(key, states.with(position, after));
    return Number(rule.count(after));
  }

  get(now, key, position) {
    const rule = this.#rules[position];
    return Number(rule.count(rule.at(this.#states(now, key)[position], BigInt(now))));
  }

  expiresAt(now, key, position) {
    return Number(this.#endOf(this.#rules[position], this.#states(now, key)[position], BigInt(now)));
  }

  reset(_now, key) {
    return this.#keys.delete(key);
  }

  /** Forgets the keys whose states have all ended, and answers how many there were. */
  clean(now) {
    const before = this.#keys.size;
    for (const [key, states] of this.#keys) {
      const ends = states.map((state, position) => this.#endOf(this.#rules[position], state, BigInt(now)));
      if (ends.every((end) => end === 0n)) this.#keys.delete(key);
    }
    return before - this.#keys.size;
  }

  #states(now, key) {
    return this.#keys.get(key) ?? this.#rules.map((rule) => rule.fresh(BigInt(now)));
  }

  #endOf(rule, state, now) {
    if (rule.expiresAt) return rule.expiresAt(state, now);
    const end = firstTime(now, (time) => rule.isUnused(rule.at(state, time)));
    return end === now ? 0n : end;
  }

  #decide(now, key, cost, call) {
    const rules = call
      ? call.map((policy, position) => ruleOf(policy, this.#policies[position]))
      : this.#rules;
    const states = this.#states(now, key);
    const asked = rules.map((rule, position) =>
      ask(rule, states[position], BigInt(cost), BigInt(now), this.#countsDenied),
    );
    const named = asked.map(({ decision }, position) => ({ ...decision, policy: this.#names[position] }));
    const denied = named.filter(({ allowed }) => !allowed);
    const binding =
      denied.length === 0
        ? named.reduce((least, other) => (other.remaining < least.remaining ? other : least))
        : denied.reduce((longest, other) => (other.retryAfter > longest.retryAfter ? other : longest));
    const charged = asked.every((each) => each.charged);
    // What one of several policies denies, none of them is charged.
    const isNoneCharged = rules.length > 1 && denied.length > 0;
    const ends = rules.map((rule, position) =>
      isNoneCharged
        ? ask(rule, states[position], 0n, BigInt(now), false).decision.resetAfter
        : named[position].resetAfter,
    );
    // More is allowed when each policy allows it, or all of a limit that is no more.
    const mores = rules.map((rule, position) => {
      const state = isNoneCharged ? states[position] : asked[position].after;
      const more = BigInt(binding.remaining) + 1n;
      return ask(rule, state, more < rule.limit ? more : rule.limit, BigInt(now), false).decision.retryAfter;
    });
    return {
      decision: {
        ...binding,
        moreAfter: Math.max(...mores),
        resetAfter: Math.max(...ends),
        violated: denied.map(({ policy }) => policy),
      },
      kept: charged ? asked.map(({ after }) => after) : undefined,
    };
  }
}
