import { setTimeout } from "node:timers/promises";
import { table } from "../results.mjs";
import { price, prices, pricesAsOf } from "./prices.mjs";
import { gateway, running, upstream, worker } from "./subjects.mjs";
import { policies } from "./workers/policies.js";

const keys = 10;
const hits = 100;

const counted = {
  "by hand": { entry: worker("counted-by-hand.js"), upstream },
  "Tollgate, deny cache off": {
    entry: worker("counted-own.js"),
    upstream,
    bindings: gateway({ denyCache: false }),
  },
  Tollgate: { entry: worker("counted-own.js"), upstream, bindings: gateway({}) },
};

/** The subjects of a hot key: one for each mode of the configuration. */
const modes = {
  "by hand": { entry: worker("counted-by-hand.js"), upstream },
  "Tollgate, by default": { entry: worker("counted-own.js"), upstream, bindings: gateway({}) },
  "with `credit`": { entry: worker("counted-own.js"), upstream, bindings: gateway({ credit: true }) },
  "with `leases`": { entry: worker("counted-own.js"), upstream, bindings: gateway({ leases: true }) },
  "with `leases` and `credit`": {
    entry: worker("counted-own.js"),
    upstream,
    bindings: gateway({ leases: true, credit: true }),
  },
};

/** How often and for how long a hot key is hit. */
const hot = { warmUp: 500, hits: 2_000, pause: 10 };

/** How much comes in for the live page: requests a second, or as many as can be, which are denied. */
const traffic = { "1 a second": 1, "100 a second": 100, "a flood, denied": Number.POSITIVE_INFINITY };

/** The first minute sets the alarm, the second one is counted. */
const minute = 60_000;

/** Each by clients of its own: an object holds all that there is of one. */
const scenarios = [
  { name: "all allowed", path: "/open", clients: "10.1.0", denied: 0 },
  { name: "half denied", path: "/half", clients: "10.1.1", denied: hits / 2 },
  { name: "a flood of denials", path: "/shut", clients: "10.1.2", denied: hits },
];

/** Hits every key so often, one hit after the other, and answers how many were denied. */
async function hitAll(origin, { path, clients }, times) {
  let denied = 0;
  const hitOne = async (_, number) => {
    for (let count = 0; count < times; count += 1) {
      const response = await fetch(origin + path, {
        headers: { "CF-Connecting-IP": `${clients}.${number}` },
      });
      await response.arrayBuffer();
      if (response.status === 429) denied += 1;
      else if (response.status !== 200) throw new Error(`${path} answered ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: keys }, hitOne));
  return denied;
}

/** What is counted of one Worker: a key's first hit, its hits after that, its alarm when in use, and its end. */
async function count({ url: origin }) {
  const take = async (divisor) => {
    const counts = await (await fetch(`${origin}/counts`)).json();
    return perOne(counts, divisor);
  };
  const ring = (after) => fetch(`${origin}/ring?after=${after}`);
  const results = { steady: {} };
  for (const scenario of scenarios) {
    await hitAll(origin, scenario, 1);
    results.first = await take(keys);
    const found = await hitAll(origin, scenario, hits);
    if (found !== scenario.denied * keys) throw new Error(`${scenario.path} denied ${found}`);
    results.steady[scenario.name] = await take(keys * hits);
  }
  const objects = keys * scenarios.length;
  await ring(0);
  results.inUse = await take(objects);
  await ring(100 * 86_400_000);
  results.end = await take(objects);
  return results;
}

/** Counts the calls and rows of one Worker while one key is hit at a steady rate, after its first seconds. */
async function countHot({ url: origin }) {
  await hitSteadily(origin, hot.warmUp);
  await fetch(`${origin}/counts`);
  await hitSteadily(origin, hot.hits);
  const counts = await (await fetch(`${origin}/counts`)).json();
  return perOne(counts, hot.hits);
}

const perOne = ({ ofWatch, ...counts }, divisor) =>
  Object.fromEntries(Object.entries(counts).map(([name, number]) => [name, number / divisor]));

/** Counts what the live page costs in a minute of traffic: the requests, and the calls and rows of the watch object. */
async function countWatched({ url: origin }, perSecond) {
  const isFlood = perSecond === Number.POSITIVE_INFINITY;
  const hit = async () => {
    const address = `10.1.5.${Math.floor(Math.random() * 250)}`;
    const response = await fetch(`${origin}/${isFlood ? "shut" : "open"}`, {
      headers: { "CF-Connecting-IP": address },
    });
    await response.arrayBuffer();
  };
  const during = async () => {
    const from = performance.now();
    let hits = 0;
    const one = async () => {
      for (; performance.now() - from < minute; hits += 1) {
        const wait = isFlood ? 0 : from + (hits / perSecond) * 1_000 - performance.now();
        if (wait > 0) await setTimeout(wait);
        await hit();
      }
    };
    await Promise.all(Array.from({ length: isFlood ? 8 : 1 }, one));
    return hits;
  };
  await during();
  await fetch(`${origin}/counts`);
  const hits = await during();
  const { ofWatch } = await (await fetch(`${origin}/counts`)).json();
  return { ...ofWatch, hits };
}

async function hitSteadily(origin, times) {
  const answers = [];
  const from = performance.now();
  for (let count = 0; count < times; count += 1) {
    const wait = from + count * hot.pause - performance.now();
    if (wait > 0) await setTimeout(wait);
    answers.push(
      fetch(`${origin}/hot`, { headers: { "CF-Connecting-IP": "10.1.4.1" } }).then(async (response) => {
        await response.arrayBuffer();
        if (response.status !== 200) throw new Error(`/hot answered ${response.status}`);
      }),
    );
  }
  await Promise.all(answers);
}

/** The bytes in a key's row when so many hits are counted in it. */
async function stored({ url }, path, times) {
  await fetch(`${url}/counts`);
  for (let count = 0; count < times; count += 1) {
    const { status } = await fetch(url + path, { headers: { "CF-Connecting-IP": `10.1.3.${path.length}` } });
    if (status !== 200) throw new Error(`${path} answered ${status}`);
  }
  return (await (await fetch(`${url}/counts`)).json()).largest;
}

const dollars = (number) => number.toFixed(number < 0.01 && number > 0 ? 4 : 2);
const million = (number) => (number * 1_000_000).toLocaleString("en", { maximumFractionDigits: 0 });

const columns = ({ objectRequests, rowsWritten, alarmsSet, rowsRead }, show) =>
  [objectRequests, rowsWritten + alarmsSet, rowsRead].map(show);

const head = ["object requests", "rows written", "rows read"];

export async function cost() {
  process.stderr.write("  cost\n");
  const sizes = [];
  const results = await running(counted, async (started) => {
    const all = {};
    for (const [name, one] of Object.entries(started)) all[name] = await count(one);
    for (const path of ["/open", "/counter", "/log"]) {
      const { algorithm } = policies[path.slice(1)];
      sizes.push([
        `${algorithm}`,
        await stored(started.Tollgate, path, 1),
        await stored(started.Tollgate, path, 999),
      ]);
    }
    return all;
  });
  const hotCounts = await running(modes, async (started) => {
    const all = await Promise.all(Object.values(started).map(countHot));
    return Object.keys(started).map((name, at) => [name, all[at]]);
  });
  const watching = { entry: worker("counted-own.js"), upstream, bindings: gateway({ watch: true }) };
  const watchRows = await running(
    Object.fromEntries(Object.keys(traffic).map((name) => [name, watching])),
    (started) =>
      Promise.all(
        Object.entries(traffic).map(async ([name, perSecond]) => {
          const counts = await countWatched(started[name], perSecond);
          const whole = (number) => number.toLocaleString("en");
          const million = price(perOne(counts, counts.hits));
          return [name, whole(counts.hits), ...columns(counts, whole), million.toFixed(4)];
        }),
      ),
  );
  const hotRows = hotCounts.map(([name, counts]) => [
    name,
    ...columns(counts, million),
    price(counts).toFixed(4),
  ]);
  const steady = scenarios.flatMap(({ name }) =>
    Object.entries(results).map(([subject, { steady }]) => [
      `${name}: ${subject}`,
      ...columns(steady[name], million),
      dollars(price(steady[name])),
    ]),
  );
  const moments = { first: "a key's first hit", inUse: "its alarm while it is in use", end: "its end" };
  const rest = Object.entries(moments).flatMap(([moment, words]) =>
    ["by hand", "Tollgate"].map((subject) => [
      `${words}: ${subject}`,
      ...columns(results[subject][moment], (number) => number.toFixed(1)),
      dollars(price(results[subject][moment])),
    ]),
  );
  const { objectRequests, rowsWritten, rowsRead } = prices;
  return [
    "### Cost",
    `Counted in workerd: calls of objects; rows of SQL as workerd tells them, and of the key-value store by its calls, as Cloudflare bills them; an alarm that is set is a row written. Cloudflare's paid plan charged ${objectRequests} USD for a million object requests, ${rowsWritten} for a million rows written and ${rowsRead} for a million rows read in ${pricesAsOf}. ${keys} keys, ${hits} hits each after the first, on one isolate: the deny cache is one for each isolate.`,
    table(["a million hits", ...head, "USD"], steady),
    `A hot key: one key, ${hot.hits} hits after ${hot.warmUp} that are not counted, through one isolate, ${1_000 / hot.pause} a second, all allowed under a limit of 10,000 an hour.`,
    table(["a million hits of a hot key", ...head, "USD"], hotRows),
    `What the live page (\`watch = true\`) adds in a minute, with one isolate.`,
    table(["requests", "in the minute", ...head, "USD a million requests"], watchRows),
    table(["once for a key", ...head, "USD a million keys"], rest),
    table(["bytes in a key's row, after", "one hit", "1,000 hits"], sizes),
  ].join("\n\n");
}
