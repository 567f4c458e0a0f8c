const before = (one, other) => one.at < other.at || (one.at === other.at && one.order < other.order);

/** Timers, the soonest first: peers set one for each call, so there are as many as calls. */
class Timers {
  #items = [];

  push(item) {
    const items = this.#items;
    let at = items.push(item) - 1;
    for (let parent = (at - 1) >> 1; at > 0 && before(item, items[parent]); parent = (at - 1) >> 1) {
      items[at] = items[parent];
      at = parent;
    }
    items[at] = item;
  }

  pop() {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (items.length === 0) return first;
    let at = 0;
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      if (child + 1 < items.length && before(items[child + 1], items[child])) child += 1;
      if (!before(items[child], last)) break;
      items[at] = items[child];
      at = child;
    }
    items[at] = last;
    return first;
  }
}

const settled = setImmediate;
const timers = new Timers();
let order = 0;

/** Time as every subject sees it: all of them ask the platform, so it is the platform's that is replaced. */
export const time = { now: 1_800_000_000_000 };

class FakeTimer {
  constructor(at, callback) {
    this.at = at;
    this.order = order++;
    this.callback = callback;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
}

Date.now = () => time.now;
performance.now = () => time.now - 1_800_000_000_000;
globalThis.setTimeout = (callback, wait = 0, ...args) => {
  const timer = new FakeTimer(time.now + Math.max(wait, 1), () => callback(...args));
  timers.push(timer);
  return timer;
};
globalThis.clearTimeout = (timer) => {
  if (timer) timer.callback = undefined;
};

/** Goes from timer to timer until it is said to be done. */
export async function run(isDone) {
  while (!isDone()) {
    await new Promise((resolve) => settled(resolve));
    const timer = isDone() ? undefined : timers.pop();
    if (!timer?.callback) continue;
    time.now = Math.max(time.now, timer.at);
    timer.callback();
  }
}
