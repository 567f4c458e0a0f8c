// One process of a fleet: hits keys as fast as so many in flight can, or at a given rate.

import { connect, rules, subjects } from "./subjects.mjs";

const client = connect(Number(process.argv[2]));

/** Keys by turns, in an order in which neighbours are far apart. */
const keyOf = (number, keys) => (keys === 1 ? "hot" : `key ${(number * 7_919) % keys}`);

async function flatOut(hit, { keys, inFlight, seconds }, start) {
  const until = performance.now() + 1_000 * seconds;
  let [count, allowed] = [0, 0];
  const on = async () => {
    while (performance.now() < until) if (await hit(keyOf(start + count++, keys))) allowed++;
  };
  await Promise.all(Array.from({ length: inFlight }, on));
  return { count, allowed };
}

/** Hits come when they are due, whether those before them are done or not. */
async function atRate(hit, { keys, rate, seconds }, start) {
  const latencies = [];
  const began = performance.now();
  const pending = [];
  for (let count = 0; count < rate * seconds; ) {
    const due = Math.min(rate * seconds, ((performance.now() - began) * rate) / 1_000);
    for (; count < due; count++) {
      const dueAt = began + (1_000 * count) / rate;
      pending.push(hit(keyOf(start + count, keys)).then(() => latencies.push(performance.now() - dueAt)));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pending);
  return { count: latencies.length, latencies };
}

process.on("disconnect", () => process.exit());
let run;
let end;
process.on("message", async ({ go, subject, limit, start, ...task }) => {
  if (go) {
    const before = process.cpuUsage();
    const result = await run();
    const { user, system } = process.cpuUsage(before);
    end?.();
    process.send({ result: { ...result, cpu: user + system } });
    return;
  }
  const hit = await { ...subjects, ...rules }[subject](client, limit);
  // Every process has met every key before it is measured, as in a server that runs for longer than a second.
  for (let number = 0; number < task.keys; number += 50)
    await Promise.all(
      Array.from({ length: Math.min(50, task.keys) }, (_, at) => hit(keyOf(number + at, task.keys))),
    );
  // And under load for a while: leases grow with what is used.
  if (task.warmUp > 0) await flatOut(hit, { ...task, seconds: task.warmUp }, start);
  end = hit.end;
  run = () => (task.rate ? atRate(hit, task, start) : flatOut(hit, task, start));
  process.send({ ready: true });
});
process.send({ ready: true });
