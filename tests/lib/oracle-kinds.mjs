// What one state counts under each algorithm, as the guides say it. Amounts are integers: of a bucket in parts of `per`, of a
// sliding counter in parts of `scale`.

export const limitOf = ({ limit, capacity }) => limit ?? capacity;
const rateOf = ({ refillRate, leakRate }) => refillRate ?? leakRate;

/** Both windows that begin by the clock. A clock that steps back stays in the later window. */
const clockWindow = {
  unit: () => 1,
  fresh: () => ({ window: -1, count: 0 }),
  at(state, time, { scale }) {
    const window = Math.floor(time / scale);
    return window > state.window ? { window, count: 0 } : state;
  },
  used: ({ count }) => count,
  add: (state, cost) => ({ ...state, count: Math.max(0, state.count + cost) }),
  set: (state, count) => ({ ...state, count }),
};

/** The time of a hit: a log's clock does not step back. */
const newest = (hits, time) => Math.max(time, hits.at(-1)?.time ?? 0);

/**
 * The algorithms, by name. `at` is a state as of a time, `used` what is used then in its unit, and `add`, `set` and `undo` change
 * a state as of that time.
 */
export const kinds = {
  fix_window: clockWindow,
  fix_window_per_key: {
    unit: () => 1,
    fresh: () => ({ start: undefined, count: 0 }),
    at: (state, time, { scale }) =>
      state.start !== undefined && time < state.start + scale ? state : { start: undefined, count: 0 },
    used: ({ count }) => count,
    // A refund begins no window.
    add: ({ start, count }, cost, time) => ({
      start: start ?? (cost > 0 ? time : undefined),
      count: Math.max(0, count + cost),
    }),
    set: (_, count, time) => ({ start: time, count }),
    // A window that only the hit began is not begun.
    undo: ({ start, count }, cost) =>
      count > cost ? { start, count: count - cost } : { start: undefined, count: 0 },
  },
  sliding_window: {
    unit: () => 1,
    fresh: () => ({ hits: [], lost: -Infinity }),
    at({ hits, lost }, time, { scale }) {
      const now = newest(hits, time);
      return { hits: hits.filter((hit) => hit.time + scale > now), lost };
    },
    used: ({ hits }) => hits.reduce((sum, { cost }) => sum + cost, 0),
    add: ({ hits, lost }, cost, time) => ({ hits: [...hits, { time: newest(hits, time), cost }], lost }),
    /** A hit that counts even if it is denied takes the place of the oldest ones, beyond one more than the limit. */
    count(state, cost, time, { limit }) {
      const most = Math.max(limit + 1, this.used(state));
      const { hits, lost } = this.add(state, Math.min(cost, most), time);
      let excess = Math.max(0, this.used({ hits }) - most);
      let newestLost = lost;
      const kept = hits.flatMap((hit) => {
        const dropped = Math.min(hit.cost, excess);
        excess -= dropped;
        if (dropped > 0) newestLost = hit.time;
        return dropped < hit.cost ? [{ ...hit, cost: hit.cost - dropped }] : [];
      });
      return { hits: kept, lost: newestLost };
    },
    set: ({ hits }, cost, time) => ({
      hits: cost === 0 ? [] : [{ time: newest(hits, time), cost }],
      lost: -Infinity,
    }),
    undo(state, cost, time, { scale }) {
      const { hits, lost } = state;
      const at = newest(hits, time);
      if (lost + scale > at) return state;
      const own = hits.findLastIndex((hit) => hit.time === at);
      const left = hits.map((hit, index) => (index === own ? { ...hit, cost: hit.cost - cost } : hit));
      return { hits: left.filter((hit) => hit.cost > 0), lost };
    },
  },
  sliding_counter: {
    unit: ({ scale }) => scale,
    fresh: () => ({ window: -2, before: 0, count: 0, elapsed: 0 }),
    at({ window, before, count }, time, { scale }) {
      const now = Math.floor(time / scale);
      const elapsed = Math.max(0, time - Math.max(window, now) * scale);
      if (before === 0 && count === 0)
        return { window: now, before: 0, count: 0, elapsed: time - now * scale };
      if (now <= window) return { window, before, count, elapsed };
      return { window: now, before: now === window + 1 ? count : 0, count: 0, elapsed };
    },
    used: ({ before, count, elapsed }, { scale }) => before * (scale - elapsed) + count * scale,
    add: (state, cost) => ({ ...state, count: state.count + cost }),
    set: (state, count) => ({ ...state, before: 0, count }),
  },
};

/** Charges fill a bucket. It flows at the rate of its last charge, or at that of the call if this is faster. */
const bucket = {
  unit: ({ per }) => per,
  fresh: () => ({ time: 0, level: 0, rate: 0 }),
  at({ time, level, rate }, now, policy) {
    const flowed = Math.max(0, now - time) * Math.max(rate, rateOf(policy));
    const left = Math.max(0, level - flowed);
    // An empty bucket is as one that was never used.
    return { time: left === 0 ? now : Math.max(time, now), level: left, rate };
  },
  used: ({ level }) => level,
  add: ({ time, level, rate }, cost, _, policy) => ({
    time,
    level: Math.max(0, level + cost * policy.per),
    rate: cost > 0 ? rateOf(policy) : rate,
  }),
  set: ({ time }, count, _, policy) => ({ time, level: count * policy.per, rate: rateOf(policy) }),
};
kinds.leaky_bucket = bucket;
kinds.token_bucket = {
  ...bucket,
  set: (state, tokens, time, policy) => bucket.set(state, policy.capacity - tokens, time, policy),
};
