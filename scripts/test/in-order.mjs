import { bold, say } from "../lib/say.mjs";

/** Runs one suite after the other, and prints their output as it comes. Returns the times. */
export async function inOrder(suites, found) {
  const times = [];
  for (const [index, suite] of ordered(suites).entries()) {
    say(bold(`\n[${index + 1}/${suites.length}] ${suite.name}`));
    const started = performance.now();
    await suite.run(found);
    times.push({ name: suite.name, took: performance.now() - started });
  }
  return times;
}

/** Returns the suites in an order in which each comes after the one that it waits for. */
function ordered(suites) {
  const left = [...suites];
  return suites.map(() => {
    const isReady = ({ after }) => !left.some(({ name }) => name === after);
    return left.splice(left.findIndex(isReady), 1)[0];
  });
}
