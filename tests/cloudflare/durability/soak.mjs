import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seeded } from "../../lib/random.mjs";
import { bundle, killUnderLoad, start } from "./workerd.mjs";

const connections = 16;

/** So long that no window ends in the meantime, and no bucket gives anything back. */
const scale = "365d";
const policiesOf = (limit) => ({
  window: { algorithm: "fix_window_per_key", limit, scale },
  counter: { algorithm: "sliding_counter", limit, scale },
  log: { algorithm: "sliding_window", limit, scale },
  level: { algorithm: "leaky_bucket", capacity: limit, leakRate: 1, per: scale },
  bucket: { algorithm: "token_bucket", capacity: limit, refillRate: 1, per: scale },
});
const names = Object.keys(policiesOf(1));

/** What is deployed in turn: limits that rise and fall, with and without leases and credit. */
const deployments = [
  { limit: 800, leases: true, credit: true },
  { limit: 400, leases: true, credit: true },
  { limit: 800, leases: { ttl: "5s" }, credit: false },
  { limit: 600, leases: false, credit: true },
  { limit: 800, leases: false, credit: false },
];
const largest = Math.max(...deployments.map(({ limit }) => limit));

/** The denials of a key after which it is checked for the last time, and another one takes its place. */
const enough = 100;

/**
 * Kills workerd under load, again and again, until the time is up: hot keys, floods of new keys, and another
 * configuration at every start. Calls `say` with the counts once a minute. Throws if a hit was forgotten, or one was
 * allowed over the limit.
 */
export async function soak({ minutes, seed, say }) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-soak-"));
  const counts = { kills: 0, allowed: 0, denied: 0, flooded: 0, keys: 0, checks: 0 };
  const below = seeded(seed);
  const keys = [];
  const addKey = () => {
    counts.keys += 1;
    keys.push({
      policy: names[counts.keys % names.length],
      key: `hot:${counts.keys}`,
      allowed: 0,
      denied: 0,
    });
  };
  while (keys.length < 10) addKey();
  const began = performance.now();
  const minutesPassed = () => (performance.now() - began) / 60_000;
  let said = 0;
  let place;
  let workerd;
  try {
    await Promise.all(
      deployments.map((deployment, number) => deploy(join(folder, String(number)), deployment)),
    );
    while (minutesPassed() < minutes) {
      const number = below(deployments.length);
      place = moved(folder, place, number);
      workerd = await start(join(folder, String(number)));
      await checkAll(workerd, keys, deployments[number].limit, counts);
      for (const key of keys.filter(({ denied }) => denied >= enough)) {
        keys.splice(keys.indexOf(key), 1);
        addKey();
      }
      const loads = Array.from({ length: connections }, () => (ask) => load(ask, keys, below, counts));
      await killUnderLoad(workerd, 10 + below(400), loads);
      counts.kills += 1;
      if (/panic|unreachable/.test(workerd.said())) throw new Error(workerd.said());
      if (minutesPassed() - said < 1) continue;
      said = Math.floor(minutesPassed());
      say(said, counts);
    }
    workerd = await start(join(folder, String(place)));
    await checkAll(workerd, keys, deployments[place].limit, counts);
    return counts;
  } finally {
    await workerd?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function deploy(folder, { limit, leases, credit }) {
  mkdirSync(folder);
  await bundle(folder, { policies: policiesOf(limit), timeout: "1m", leases, credit });
}

/** Moves the objects to the deployment that is started next. Returns its number. */
function moved(folder, from, to) {
  if (from === undefined || from === to) return to;
  const objects = (number) => join(folder, String(number), "objects");
  rmSync(objects(to), { recursive: true });
  renameSync(objects(from), objects(to));
  mkdirSync(objects(from));
  return to;
}

/** Hits hot keys, and now and then a new one, until workerd is gone. */
async function load(ask, keys, below, counts) {
  // A few at a time are hot.
  const first = below(keys.length);
  for (;;) {
    if (below(8) === 0) {
      const { allowed } = await ask("hit", { policy: names[below(names.length)], key: `cold:${below(1e9)}` });
      if (!allowed) throw new Error("the first hit of a key was denied");
      counts.flooded += 1;
      continue;
    }
    const key = keys[(first + below(3)) % keys.length];
    const { allowed } = await ask("hit", { policy: key.policy, key: key.key });
    if (allowed) {
      key.allowed += 1;
      counts.allowed += 1;
    } else {
      key.denied += 1;
      counts.denied += 1;
    }
  }
}

/** Checks that each key has counted all hits that it allowed, and allowed no more than the highest limit. */
async function checkAll(workerd, keys, limit, counts) {
  for (const key of keys) {
    const { count } = await workerd.ask("get", { policy: key.policy, key: key.key });
    // A token bucket counts what is left, which is nothing if a higher limit was used.
    const counted = key.policy === "bucket" ? limit - count : count;
    const words = JSON.stringify({ ...key, counted, limit });
    const isFull = key.policy === "bucket" && count === 0;
    if (counted < key.allowed && !isFull) throw new Error(`a hit was forgotten: ${words}`);
    if (key.allowed > largest) throw new Error(`a hit was allowed over the limit: ${words}`);
    counts.checks += 1;
  }
}
