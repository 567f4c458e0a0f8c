// A workerd that is killed between the keys of decisions over several keys admits no more than any limit, has counted all that it
// admitted, and keeps charged only hits without a reply and, of the gateway, undos that were still to come.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { hitAll, RemoteLimiter } from "tollgate/client";
import { startOrigin } from "../upstream/origin.mjs";
import { bundle, kills, killUnderLoad, start, token } from "./workerd.mjs";

const rounds = 10;
const connections = 16;
const hour = 3_600_000;

/** What a policy allows of a key that one connection has, and of a key that two have for a few turns. */
const [ample, scarce] = [1_000, 2];

/** So long that no window ends while the test runs, and no bucket gives anything back. */
const algorithms = {
  window: (limit) => ({ algorithm: "fix_window_per_key", limit, scale: "1h" }),
  log: (limit) => ({ algorithm: "sliding_window", limit, scale: "1h" }),
  counter: (limit) => ({ algorithm: "sliding_counter", limit, scale: "365d" }),
  level: (capacity) => ({ algorithm: "leaky_bucket", capacity, leakRate: 1, per: "365d" }),
  bucket: (capacity) => ({ algorithm: "token_bucket", capacity, refillRate: 1, per: "365d" }),
};
const names = Object.keys(algorithms);
const policies = Object.fromEntries(
  names.flatMap((name) => [
    [name, algorithms[name](ample)],
    [`scarce-${name}`, algorithms[name](scarce)],
  ]),
);

/** The keys of a run: what was admitted of each, and what may be charged beyond that. */
class Keys {
  #keys = new Map();
  /** How the API names a key: by itself, or by the part of a rule. */
  #named;

  constructor(named) {
    this.#named = named;
  }

  /** Returns the two keys of a decision: one that only this connection has, and one that another has as well. */
  of(round, number, turn) {
    const pair = number % (connections / 2);
    const name = names[(round + pair) % names.length];
    return [
      this.#key(name, `own:${number}`, ample),
      this.#key(`scarce-${name}`, `pair:${round}:${pair}:${turn >> 2}`, scarce),
    ];
  }

  #key(policy, key, limit) {
    const id = `${policy} ${key}`;
    if (!this.#keys.has(id)) this.#keys.set(id, { policy, key, limit, admitted: 0, uncertain: 0 });
    return this.#keys.get(id);
  }

  get all() {
    return [...this.#keys.values()];
  }

  /** Returns how much of each key is counted. A token bucket counts what is left. */
  async counted({ ask }) {
    const counts = await this.#each(ask, "get");
    return this.all.map(({ policy, limit }, at) =>
      policy.endsWith("bucket") ? limit - counts[at].count : counts[at].count,
    );
  }

  async #each(ask, operation) {
    const items = this.all.map(({ policy, key }) => ({ policy, ...this.#named(policy, key) }));
    const results = [];
    for (let at = 0; at < items.length; at += 100)
      results.push(...(await ask(operation, items.slice(at, at + 100))));
    return results;
  }

  /** Checks that all keys have counted what was admitted, and besides at most what is uncertain, and end as any other. */
  async check(workerd) {
    const counts = await this.counted(workerd);
    const ends = await this.#each(workerd.ask, "expires_at");
    for (const [at, { policy, key, limit, admitted, uncertain }] of this.all.entries()) {
      const words = `${policy} ${key}: ${counts[at]} counted, ${admitted} admitted, ${uncertain} uncertain`;
      assert.ok(admitted <= limit, words);
      assert.ok(counts[at] >= admitted, words);
      assert.ok(counts[at] <= Math.min(limit, admitted + uncertain), words);
      if (/window|log/.test(policy)) assert.ok(ends[at].expiresAt <= Date.now() + hour, words);
    }
    return counts;
  }
}

/** Runs `load` on all connections of a Worker with such a configuration, and kills it in every round. */
async function killed(context, config, keys, load, settled = () => {}) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-several-keys-"));
  let workerd;
  try {
    await bundle(folder, { policies, timeout: "1m", ...config });
    for (const [round, answers] of kills(rounds, [20, 400]).entries()) {
      workerd = await start(folder);
      await settled(workerd);
      await keys.check(workerd);
      const loads = Array.from(
        { length: connections },
        (_, number) => (ask) => load(ask, round, number, workerd),
      );
      await killUnderLoad(workerd, answers, loads);
    }
    workerd = await start(folder);
    await settled(workerd);
    const counts = await keys.check(workerd);
    const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
    const admitted = sum(keys.all.map((key) => key.admitted));
    context.diagnostic(
      `${admitted} charges admitted on ${keys.all.length} keys, none lost; ${sum(counts) - admitted} more counted`,
    );
    assert.ok(admitted > 0);
    assert.doesNotMatch(workerd.said(), /panic|unreachable/);
  } finally {
    await workerd?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

test("killed between the keys of hitAll, what is denied is given back by undos that are repeated", async (context) => {
  const keys = new Keys((_, key) => ({ key }));
  /** Undos that were sent and have no reply, and what waits for the next reply. */
  const open = new Set();
  let [undone, next, running] = [0, Promise.withResolvers(), Promise.withResolvers()];

  async function undo(items) {
    const isAgain = items.some(({ id }) => open.has(id));
    for (const { id } of items) open.add(id);
    // Repeated when it can be received: however long the start takes, it counts once.
    const { ask } = isAgain ? await running.promise : running.workerd;
    const replies = await ask("undo", items);
    for (const [at, { policy, key, id }] of items.entries()) {
      open.delete(id);
      if (replies[at].undone) undone += 1;
      // The first one was performed, or it is too late by now.
      else keys.all.find((own) => own.policy === policy && own.key === key).uncertain += 1;
    }
    next.resolve();
    next = Promise.withResolvers();
    return replies;
  }

  function limiterOf(policy, ask) {
    const fetch = async (request) => {
      const operation = new URL(request.url).pathname.split("/").at(-1);
      const items = await request.json();
      return Response.json(operation === "undo" ? await undo(items) : await ask(operation, items));
    };
    return new RemoteLimiter({ url: "http://limits.invalid/_tollgate", token, policy, timeout: "5m", fetch });
  }

  async function load(ask, round, number) {
    for (let turn = 0; ; turn += 1) {
      const both = keys.of(round, number, turn);
      const hits = both.map(({ policy, key }) => ({ limiter: limiterOf(policy, ask), key }));
      try {
        const { allowed } = await hitAll(hits);
        for (const key of both) key.admitted += Number(allowed);
      } catch (error) {
        for (const key of both) key.uncertain += 1;
        throw error;
      }
    }
  }

  await killed(context, {}, keys, load, async (workerd) => {
    running.resolve(workerd);
    while (open.size > 0) await next.promise;
    running = { ...Promise.withResolvers(), workerd };
  });
  context.diagnostic(`${undone} hits undone`);
  assert.ok(undone > 0);
});

test("killed between the keys of a rule with limits, no limit is exceeded and little stays charged", async (context) => {
  const parts = { own: "X-Own", scarce: "X-Pair" };
  const partOf = (policy) => (policy.startsWith("scarce") ? parts.scarce : parts.own);
  const keys = new Keys((policy, key) => ({ parts: [`header:${partOf(policy)}=${key}`] }));
  const origin = await startOrigin({});
  const rules = names.map((name) => ({
    path: `/${name}`,
    limits: [
      { key: `header:${parts.own}`, policies: name },
      { key: `header:${parts.scarce}`, policies: `scarce-${name}` },
    ],
  }));

  /** Requests one after the other. Until one is admitted again, the undos of the denied ones may be under way. */
  async function load(ask, round, number, { url }) {
    let denied = 0;
    for (let turn = 0; ; turn += 1) {
      const [own, pair] = keys.of(round, number, turn);
      const headers = { Connection: "close", [parts.own]: own.key, [parts.scarce]: pair.key };
      try {
        const { status } = await fetch(`${url}/${own.policy}`, { headers });
        assert.ok(status === 200 || status === 429, `${status}`);
        for (const key of status === 200 ? [own, pair] : []) key.admitted += 1;
        denied = status === 200 ? 0 : denied + 1;
        // It only counts as an answer, after some of which workerd is killed.
        await ask("peek", { policy: "window", key: "answers" });
      } catch (error) {
        own.uncertain += 1 + denied;
        pair.uncertain += 1;
        throw error;
      }
    }
  }

  try {
    await killed(context, { upstream: origin.url, denyCache: false, rules }, keys, load);
  } finally {
    origin.close();
  }
});
