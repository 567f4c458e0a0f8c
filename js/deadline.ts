// Deadlines by how often the event loop turned. A blocked event loop reads no reply, so time in which it did not turn does
// not count: a timeout is divided into ticks, and a tick that comes late counts once.

/** How many ticks a timeout has, unless it has fewer milliseconds. */
const mostTicks = 16;

/** Returns the length of a tick of a timeout, in milliseconds, and how many ticks it has. */
export function ticksOf(timeout: number): [length: number, count: number] {
  const length = Math.max(1, Math.ceil(timeout / mostTicks));
  return [length, Math.max(1, Math.ceil(timeout / length))];
}

/**
 * Calls back once the replies that have arrived are read: in a process that was blocked, timers fire before. Only Node and
 * compatible runtimes have `setImmediate`.
 */
export function afterReading(work: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?(work: () => void): unknown };
  if (setImmediate === undefined) setTimeout(work, 0);
  else setImmediate(work);
}

/** Calls `late` after `timeout` milliseconds in which the event loop turned. Returns a function that prevents it. */
export function deadline(timeout: number, late: () => void): () => void {
  const [length, count] = ticksOf(timeout);
  let left = count;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const check = () => {
    if (left <= 0) return;
    left--;
    if (left > 0) timer = setTimeout(() => afterReading(check), length);
    else late();
  };
  timer = setTimeout(() => afterReading(check), length);
  return () => {
    left = 0;
    clearTimeout(timer);
  };
}

/**
 * Returns the promise; rejects with what `late` returns if it takes longer than `timeout` milliseconds. `afterwards` is then
 * called with the value when it arrives after all.
 */
export const before = <Value>(
  promise: PromiseLike<Value>,
  timeout: number,
  late: () => unknown,
  afterwards: (value: Value) => void = () => {},
): Promise<Value> =>
  new Promise((resolve, reject) => {
    let isLate = false;
    const prevent = deadline(timeout, () => {
      isLate = true;
      reject(late());
    });
    promise.then(
      (value) => {
        prevent();
        if (isLate) afterwards(value);
        resolve(value);
      },
      (error) => {
        prevent();
        reject(error);
      },
    );
  });
