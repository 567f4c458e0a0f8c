import { AsyncLocalStorage } from "node:async_hooks";

/** The output of the work that is going on, if it is collected. */
const collecting = new AsyncLocalStorage();

/** Does some work, and collects what it and its commands print. */
export const collect = (output, work) => collecting.run(output, work);

/** Returns the output that is being collected; undefined if everything is printed at once. */
export const collected = () => collecting.getStore();

/** Does some work whose commands have the same priority as those of any other suite. */
export const atFullPriority = (work) =>
  collected() ? collecting.run({ ...collected(), niceness: 0 }, work) : work();

/**
 * Returns an output that is printed later as a whole, so that two suites side by side do not mix their lines. Commands
 * with a higher niceness leave the cores to others that want them.
 */
export function newOutput(niceness = 0) {
  const chunks = [];
  return { niceness, write: (chunk) => chunks.push(chunk), text: () => chunks.join("") };
}
