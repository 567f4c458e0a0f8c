import { dim, green, say, seconds } from "./say.mjs";

/**
 * Runs set-up steps in order. A step is `{ name, check, make }`: `check` answers at once,
 * with what is there or null; `make` does the work, after which `check` must succeed.
 */
export async function setUp(steps, total = steps.length) {
  const found = {};
  for (const [index, step] of steps.entries()) {
    const place = `[set-up ${index + 1}/${total}]`;
    const started = performance.now();
    let have = await step.check();
    if (have === null) {
      say(`${place} ${step.name}: ${step.what}`);
      await step.make();
      have = await step.check();
      if (have === null) throw new Error(`${step.name} was set up, but cannot be found`);
      say(`${place} ${step.name}: ${green("ready")} after ${seconds(performance.now() - started)}`);
    } else {
      say(dim(`${place} ${step.name}: ready (${seconds(performance.now() - started)})`));
    }
    found[step.id] = have;
  }
  return found;
}
