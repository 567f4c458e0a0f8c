// Many policies on one key, over every surface of the Worker: each admits exactly its limit, alone and in lists, and one row too
// many is an error that changes nothing.

import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RemoteLimiter } from "../../js/client/index.ts";
import { Tollgate } from "../../js/cloudflare/index.ts";
import worker from "../../js/cloudflare/worker.ts";
import type { Policy } from "../../js/types.ts";
import {
  counts,
  eachAlone,
  eachInLists,
  limitersUnder,
  mixedLists,
  oneTooMany,
  policiesOf,
  type Surface,
  usedBy,
} from "../lib/many-policies.mjs";
import { logged, someone, start, token, workerWith } from "./lib.ts";

type Policies = Record<string, Policy>;

/** One key under so many policies, a key of its own in each test; calls of objects go through `LIMITERS`. */
type Open = (policies: Policies, key: string, LIMITERS?: unknown) => Surface;

const listsOf = (count: number) => [
  ...Array.from({ length: count + 1 }, (_, number) => [`p${number}`]),
  ...mixedLists(count),
  ["p0", `p${count}`, "p1"],
];

/** An error with the code that a problem of the API has. */
const failed = (code: string) => Object.assign(new Error(code), { code });

const api =
  (more: Record<string, unknown>): Open =>
  (policies, key) => {
    const { fetch } = workerWith({ policies, ...more });
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const call = async (operation: string, item: object) => {
      const body = JSON.stringify(item);
      const response = await fetch(`/_tollgate/v1/${operation}`, { method: "POST", headers, body });
      const result = (await response.json()) as { code: string; allowed: boolean; count: number };
      if (!response.ok) throw failed(result.code);
      return result;
    };
    return {
      hit: async (policy) => (await call("hit", { policy, key })).allowed,
      counted: async (name) =>
        usedBy(policies[name] as Policy, (await call("get", { policy: name, key })).count),
    };
  };

/** A client of the HTTP API that spends leases. */
const leasing: Open = (policies, key, LIMITERS = env.LIMITERS) => {
  const worker = workerWith({ policies }, { LIMITERS });
  const fetch = async (request: Request) => {
    const init = { method: "POST", headers: request.headers, body: await request.text() };
    return worker.fetch(new URL(request.url).pathname, init);
  };
  const given = { url: "https://example.com/_tollgate", token, fetch, leases: true, timeout: "1m" } as const;
  return limitersUnder(
    policies,
    (own) => new RemoteLimiter({ ...given, policy: own.map(({ name }) => name as string) }),
    key,
  );
};

const rpc: Open = (policies, key) => {
  const bound = new Tollgate({} as ExecutionContext, workerWith({ policies }).env);
  return {
    hit: async (names) => (await bound.hit(names, key)).allowed,
    counted: async (name) => usedBy(policies[name] as Policy, await bound.get(name, key)),
  };
};

/** What a Worker of one's own does, which exports the class of `tollgate/cloudflare`. */
const ownWorker: Open = (policies, key) => {
  const object = env.LIMITERS.getByName(key);
  const named = (name: string) => ({ ...policies[name], name }) as Policy;
  return {
    hit: async (names) => (await object.hit(names.map(named))).allowed,
    counted: async (name) => usedBy(named(name), await object.get(named(name))),
  };
};

/** Rules by address, each with a path and a list of policies of its own. */
const gateway =
  (more: Record<string, unknown>): Open =>
  (policies, _, LIMITERS = env.LIMITERS) => {
    const count = Object.keys(policies).length - 1;
    const path = (names: readonly string[]) => `/${names.join("-")}`;
    const rules = listsOf(count).map((names) => ({ path: path(names), policies: names, onError: "deny" }));
    const { env: own } = workerWith({ upstream: "ORIGIN", policies, rules, ...more }, { LIMITERS });
    const headers = someone();
    const address = headers["CF-Connecting-IP"] as string;
    const object = env.LIMITERS.getByName(`/ip=${address.length}:${address}`);
    const { lines } = logged();
    return {
      async hit(names) {
        const request = new Request(`https://example.com${path(names)}`, { headers });
        // What it does later is not waited for: a lease is given back seconds later.
        const { status } = await worker.fetch(request, own, createExecutionContext());
        if (status !== 503) return status === 200;
        const cause = lines("error").at(-1)?.cause as string;
        throw failed(/keeps no more/.test(cause) ? "full" : cause);
      },
      counted: async (name) => {
        const policy = { denied: "free", ...policies[name], name } as Policy;
        return usedBy(policy, await object.get(policy));
      },
    };
  };

/** The namespace of the objects, and how often it was asked for one. */
function counting() {
  let calls = 0;
  const getByName = (name: string) => {
    calls += 1;
    return env.LIMITERS.getByName(name);
  };
  return { LIMITERS: { getByName }, calls: () => calls };
}

const surfaces: [name: string, open: Open][] = [
  ["the HTTP API", api({})],
  ["the HTTP API with credit", api({ credit: true })],
  ["the HTTP API with leases", leasing],
  ["RPC", rpc],
  ["an own Worker's objects", ownWorker],
  ["the gateway", gateway({})],
  ["the gateway with credit", gateway({ credit: true })],
  ["the gateway with leases", gateway({ leases: true })],
  ["the gateway with leases and credit", gateway({ leases: true, credit: true })],
];

/** The one that is not faked. */
const realTimeout = setTimeout;

/** Waits for a hit, while time passes a little. */
async function during<Result>(hit: Promise<Result>): Promise<Result> {
  let isDone = false;
  const ended = () => {
    isDone = true;
  };
  hit.then(ended, ended);
  while (!isDone) {
    await new Promise((resolve) => realTimeout(resolve, 0));
    if (!isDone) vi.advanceTimersByTime(1);
  }
  return hit;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe.each(surfaces)("%s", (surface, open) => {
  it.each(counts)("holds the limit of each of %i policies that calls name one by one", (count) =>
    eachAlone(count, open(policiesOf(count), `alone ${count} ${surface}`).hit),
  );

  it.each(counts)("holds the limit of each of %i policies that calls name in lists", (count) =>
    eachInLists(count, open(policiesOf(count), `in lists ${count} ${surface}`).hit),
  );

  it("rejects one row too many, and changes nothing", async () => {
    await oneTooMany(open(policiesOf(counts.at(-1) as number), `too many ${surface}`));
    expect.assertions(0);
  });
});

describe.each(surfaces.filter(([surface]) => surface.includes("leases")))("%s", (surface, open) => {
  it("holds the limit of each of 10 policies of a hot key, often without its object", async () => {
    const { LIMITERS, calls } = counting();
    const { hit } = open(policiesOf(10, 60), `hot ${surface}`, LIMITERS);
    let hits = 0;
    await eachAlone(
      10,
      (names) => {
        hits += 1;
        return during(hit(names));
      },
      60,
    );
    expect(calls()).toBeLessThan(hits * 0.75);
  });
});
