import { collect, newOutput } from "../lib/output.mjs";
import { stopChildren } from "../lib/run.mjs";
import { bold, dim, green, red, say, seconds } from "../lib/say.mjs";

/**
 * Runs the suites of each queue in order, and the queues side by side. The output of a suite is printed when it ends.
 * The first failure ends everything. Returns the times.
 */
export async function sideBySide(suites, found) {
  const run = { found, total: suites.length, times: [], running: new Map(), failed: false };
  const ends = new Map(suites.map(({ name }) => [name, Promise.withResolvers()]));
  const queues = Map.groupBy(suites, ({ queue }) => queue);
  const heartbeat = setInterval(() => sayProgress(run), 10_000);
  try {
    await Promise.all([...queues.values()].map((queue) => inOrder(queue, ends, run)));
  } finally {
    clearInterval(heartbeat);
  }
  return run.times;
}

async function inOrder(queue, ends, run) {
  for (const suite of queue) {
    await ends.get(suite.after)?.promise;
    if (run.failed) return;
    try {
      await runOne(suite, run);
    } finally {
      ends.get(suite.name).resolve();
    }
  }
}

async function runOne(suite, run) {
  const started = performance.now();
  const output = newOutput(suite.niceness);
  run.running.set(suite.name, started);
  say(dim(`      ${suite.name}: started`));
  try {
    await collect(output, () => suite.run(run.found));
  } catch (error) {
    // It was stopped because another one has failed, whose error is reported.
    if (run.failed) return;
    run.failed = true;
    stopChildren();
    // Programs that the other suites have started may keep their pipes open.
    setTimeout(() => process.exit(process.exitCode || 1), 2_000).unref();
    sayEnd(suite, started, output, red("failed"), run);
    throw error;
  } finally {
    run.running.delete(suite.name);
  }
  if (run.failed) return;
  run.times.push({ name: suite.name, took: performance.now() - started });
  sayEnd(suite, started, output, green("passed"), run);
}

function sayEnd({ name }, started, output, how, { times, total }) {
  say(`${bold(`\n[${times.length}/${total}] ${name}`)} ${how} after ${seconds(performance.now() - started)}`);
  process.stdout.write(output.text());
}

function sayProgress({ running, times, total }) {
  const each = [...running].map(([name, started]) => `${name} ${seconds(performance.now() - started)}`);
  say(dim(`      … ${times.length} of ${total} done; running: ${each.join(", ")}`));
}
