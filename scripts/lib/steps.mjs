import { dim, green, red, say, seconds } from "./say.mjs";
import { together } from "./together.mjs";

/**
 * Runs set-up steps, and returns their results by id. A step is `{ id, name, what, check, make }`: `check` returns the
 * result at once, or null; then `make` does the work, after which `check` must succeed. All missing steps run at the
 * same time, since some wait for the network while others compile.
 */
export async function setUp(steps) {
  const found = {};
  const missing = [];
  for (const [index, step] of steps.entries()) {
    const heading = `[set-up ${index + 1}/${steps.length}] ${step.name}:`;
    found[step.id] = await step.check();
    if (found[step.id] === null) missing.push({ ...step, heading });
    else say(dim(`${heading} ready`));
  }
  await together(
    missing.map(async (step) => {
      found[step.id] = await made(step);
    }),
  );
  return found;
}

async function made({ name, what, heading, make, check }) {
  const started = performance.now();
  const took = () => seconds(performance.now() - started);
  say(`${heading} ${what}`);
  try {
    await make();
  } catch (error) {
    say(`${heading} ${red("failed")} after ${took()}`);
    throw error;
  }
  const have = await check();
  if (have === null) throw new Error(`${name} was set up, but cannot be found`);
  say(`${heading} ${green("ready")} after ${took()}`);
  return have;
}

/** Returns whether a step has to be made. */
export const isMissing = async (step) => (await step.check()) === null;
