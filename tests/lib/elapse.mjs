// Time that passes while the event loop turns, as deadlines count it.

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Lets mocked timers run for so many milliseconds, with a turn of the event loop after each. */
export async function elapse(timers, milliseconds) {
  for (let passed = 0; passed < milliseconds; passed++) {
    timers.tick(1);
    await turn();
  }
}
