// With `watch = true` isolates report their decisions to one object, which shows them to those who have the token.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Tollgate } from "../../../js/cloudflare/index.ts";
import { logged, someone, start } from "../lib.ts";
import { forgetAll, period, type Shown, useFakeTime, watchingWorker } from "./lib.ts";

beforeEach(() => {
  useFakeTime();
});

afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await forgetAll();
});

const hash = expect.stringMatching(/^[0-9a-f]{24}$/);
const id = expect.stringMatching(/^#[0-9a-f]{64}$/);

/** A request of a client that no other test has. */
let login: { method: string; headers: Record<string, string> };
let address: string;
beforeEach(() => {
  login = { method: "POST", headers: someone() };
  address = login.headers["CF-Connecting-IP"] as string;
});

/** Sends so many requests at a time. */
async function logins(worker: ReturnType<typeof watchingWorker>, times: number, init: RequestInit = login) {
  for (let time = 0; time < times; time += 1) await (await worker.fetch("/login", init)).text();
}

/** The rules of a view, each with the sums of its hours. */
const sums = ({ rules }: Shown) =>
  rules.map(({ hours, rule, via, policies, mode }) => {
    const sum = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);
    const { allowed, denied, errors } = hours;
    return { rule, via, policies, mode, allowed: sum(allowed), denied: sum(denied), errors: sum(errors) };
  });

describe("reports", () => {
  it("reach the view five seconds after the first decision, in one message", async () => {
    logged();
    const worker = watchingWorker();
    await logins(worker, 5);
    await vi.advanceTimersByTimeAsync(period - 1);
    expect(worker.found.messages).toEqual([]);
    await worker.report();
    expect(worker.reports()).toHaveLength(1);
    const view = await worker.view();
    expect(view).toMatchObject({
      now: start + 2 * period - 1,
      since: start,
      keys: "hashed",
      policies: ["login", "api"],
      step: { seconds: 5_000, minutes: 60_000, hours: 3_600_000 },
      start: { seconds: start - 10 * 5_000, minutes: start - 59 * 60_000, hours: start - 23 * 3_600_000 },
      top: [{ key: hash, object: id, denied: 3, error: 0 }],
    });
    expect(sums(view)).toMatchObject([
      {
        rule: "POST /login",
        via: "gateway",
        policies: ["login"],
        mode: "enforce",
        allowed: 2,
        denied: 3,
        errors: 0,
      },
    ]);
    const { seconds, minutes } = view.rules[0] as Shown["rules"][number];
    expect([seconds.denied.length, minutes.denied.length]).toEqual([12, 60]);
    expect([seconds.denied.at(-1), minutes.allowed.at(-1)]).toEqual([3, 2]);
    expect(view.denials).toEqual([
      {
        key: hash,
        object: view.top[0]?.object,
        at: start,
        first: start,
        times: 3,
        via: "gateway",
        rule: "POST /login",
        mode: "enforce",
        policies: ["login"],
        policy: "login",
        count: 2,
        limit: 2,
        remaining: 0,
        cost: 1,
        retryAfter: 3_600_000,
        banned: false,
      },
    ]);
  });

  it("are one in five seconds, however many the requests and the keys are", async () => {
    logged();
    const worker = watchingWorker();
    for (let key = 0; key < 300; key += 1) await logins(worker, 3, { method: "POST", headers: someone() });
    await worker.report();
    expect(worker.reports()).toHaveLength(1);
    const [{ report }] = worker.reports() as [
      { report: { counts: object[]; top: object[]; denials: object[] } },
    ];
    expect(report.counts).toMatchObject([{ allowed: 600, denied: 300 }]);
    expect([report.top.length, report.denials.length]).toEqual([100, 200]);
    expect(JSON.stringify(report).length).toBeLessThan(150_000);
    await worker.report();
    expect(worker.reports(), "nothing happened since").toHaveLength(1);
    await logins(worker, 1);
    await worker.report();
    expect(worker.reports()).toHaveLength(2);
    expect(worker.reports()[1]).toMatchObject({ report: { counts: [{ allowed: 1, denied: 0 }], top: [] } });
  });

  it("are sent by a later request if the one that was to send them was cut off", async () => {
    logged();
    const worker = watchingWorker();
    await logins(worker, 1);
    worker.cutOff();
    await vi.advanceTimersByTimeAsync(2 * period);
    await logins(worker, 1);
    await worker.report();
    expect(worker.reports(), "it may only be late").toHaveLength(0);
    await vi.advanceTimersByTimeAsync(2 * period);
    await logins(worker, 1);
    await worker.report();
    expect(worker.reports()).toMatchObject([{ report: { counts: [{ allowed: 2, denied: 1 }] } }]);
  });

  it("that fail are logged, and change no response", async () => {
    const log = logged();
    const worker = watchingWorker();
    worker.found.broken = true;
    expect((await worker.fetch("/login", login)).status).toBe(200);
    await worker.report();
    expect(log.lines("error")).toMatchObject([{ via: "watch", failure: "failed", cause: "Error: broken" }]);
    expect((await worker.fetch("/login", login)).status).toBe(200);
    expect((await worker.fetch("/login", login)).status).toBe(429);
    expect((await worker.get("watch")).status).toBe(503);
  });

  it("have shadow rules, several limits, leases and errors by what was decided", async () => {
    logged();
    const limits = [
      { key: "ip", policies: "login" },
      { key: "header:X-Key", policies: "api" },
    ];
    const rules = [
      { path: "/shadow", policies: "login", mode: "shadow" },
      { path: "/both", limits },
      { path: "/leased", policies: "api", key: "constant:leased", leases: true },
    ];
    const worker = watchingWorker({ rules, leases: true });
    const headers = { "CF-Connecting-IP": "192.0.2.2", "X-Key": "k" };
    for (let time = 0; time < 3; time += 1) {
      expect((await worker.fetch("/shadow", { headers: someone() })).status).toBe(200);
    }
    for (let time = 0; time < 3; time += 1) await worker.fetch("/both", { headers });
    for (let time = 0; time < 4; time += 1) await worker.fetch("/leased");
    await worker.report();
    const view = await worker.view();
    const found = Object.fromEntries(
      sums(view).map(({ rule, policies, mode, allowed, denied, errors }) => [
        `${rule} ${policies}`,
        [mode, allowed, denied, errors],
      ]),
    );
    expect(found).toEqual({
      "/shadow login": ["shadow", 3, 0, 0],
      "/both login": ["enforce", 2, 1, 0],
      "/both api": ["enforce", 2, 0, 0],
      "/leased api": ["enforce", 3, 1, 0],
    });
  });

  it("have the calls of the API and by RPC", async () => {
    logged();
    const worker = watchingWorker();
    await worker.post("hit", [
      { policy: "login", key: "a" },
      { policy: ["login", "api"], key: "b", cost: 3 },
    ]);
    await worker.post("reserve", { policy: "api", key: "b", cost: 4, ttl: "1m" });
    await worker.post("peek", { policy: "login", key: "a", cost: 9 });
    const rpc = new Tollgate(worker.context(), worker.env);
    expect((await rpc.hit("login", "c", 3)).allowed).toBe(false);
    await worker.report();
    const view = await worker.view();
    expect(
      sums(view)
        .map(({ rule, via, policies, allowed, denied }) => [rule, via, policies.join(), allowed, denied])
        .toSorted((one, other) => (`${one}` < `${other}` ? -1 : 1)),
    ).toEqual([
      ["", "api", "api", 0, 1],
      ["", "api", "login", 1, 0],
      ["", "api", "login,api", 0, 1],
      ["", "rpc", "login", 0, 1],
    ]);
    expect(view.denials.map(({ via, cost, retryAfter }) => [via, cost, retryAfter])).toContainEqual([
      "rpc",
      3,
      null,
    ]);
  });

  it("are not sent without watch, and nothing is loaded for them", async () => {
    logged();
    const worker = watchingWorker({ watch: false });
    await logins(worker, 5);
    expect(vi.getTimerCount()).toBe(0);
    await worker.report();
    expect(worker.found.messages).toEqual([]);
    const response = await worker.get("watch");
    expect([response.status, await response.json()]).toMatchObject([404, { code: "watch_off" }]);
  });
});

describe("why", () => {
  const denied = async (worker: ReturnType<typeof watchingWorker>) => {
    await logins(worker, 4);
    await worker.report();
  };

  it("shows what counts now and why a key was denied, by its parts, its object or as the log prints it", async () => {
    logged();
    const worker = watchingWorker();
    await denied(worker);
    const view = await worker.view();
    const { object, key } = view.top[0] as Shown["top"][number];
    const byParts = await (await worker.get(`why?parts=ip%3D${address}`)).json<Record<string, unknown>>();
    expect(byParts).toMatchObject({
      now: start + period,
      key,
      object,
      policies: [
        {
          policy: "login",
          decision: { allowed: false, count: 2, limit: 2, remaining: 0, retryAfter: 3_600_000 - period },
        },
      ],
      denials: [{ object, rule: "POST /login", times: 2 }],
    });
    expect(await (await worker.get(`why?parts=${encodeURIComponent(object)}`)).json()).toEqual(byParts);
    const logPrints = encodeURIComponent(`/ip=${address.length}:${address}`);
    expect(await (await worker.get(`why?parts=${logPrints}&policy=login`)).json()).toEqual(byParts);
  });

  it("shows all policies of a key that was not denied, or those that are asked for", async () => {
    const worker = watchingWorker();
    await worker.post("hit", { policy: "api", key: "user:42" });
    const answer = await (await worker.get("why?key=user%3A42")).json<Record<string, unknown>>();
    expect(answer).toMatchObject({
      key: hash,
      object: id,
      policies: [
        { policy: "login", count: 0, remaining: 2, decision: { allowed: true, remaining: 1 } },
        { policy: "api", count: 2, remaining: 2, decision: { allowed: true, remaining: 1 } },
      ],
      denials: [],
    });
    const one = await (await worker.get("why?key=user%3A42&policy=api&policy=none")).json<
      Record<string, unknown>
    >();
    expect(one["policies"]).toMatchObject([
      { policy: "api" },
      { policy: "none", error: { code: "unknown_policy" } },
    ]);
  });

  it("rejects what is no key", async () => {
    const worker = watchingWorker();
    const answers = await Promise.all(
      [
        "why",
        "why?key=",
        `why?key=${"k".repeat(10_000)}`,
        "why?key=a&key=b",
        "why?key=a&parts=ip%3D192.0.2.1",
        "why?parts=192.0.2.1",
        `why?parts=${encodeURIComponent(`#${"0".repeat(64)}`)}`,
        "why?key=a&policy=none",
        "why?key=a&since=now",
      ].map(async (path) => {
        const response = await worker.get(path);
        return [response.status, (await response.json<{ code?: string }>()).code];
      }),
    );
    expect(answers).toEqual([
      [400, "invalid_request"],
      [400, "invalid_key"],
      [400, "invalid_key"],
      [400, "invalid_request"],
      [400, "invalid_request"],
      [400, "invalid_request"],
      [400, "invalid_key"],
      [400, "unknown_policy"],
      [400, "invalid_request"],
    ]);
  });

  it("lets a key be reset by the id of its object alone", async () => {
    logged();
    const worker = watchingWorker();
    await denied(worker);
    const view = await worker.view();
    const parts = view.top[0]?.object;
    expect(await (await worker.post("get", { policy: "login", parts })).json()).toEqual({ count: 2 });
    expect(await (await worker.post("reset", { policy: "login", parts })).json()).toEqual({ reset: true });
    await vi.advanceTimersByTimeAsync(2_000);
    expect((await worker.fetch("/login", login)).status).toBe(200);
    const wrong = await worker.post("reset", { policy: "login", parts: `#${"f".repeat(64)}` });
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { code: "invalid_key" }]);
    const held = await worker.post("reserve", { policy: "api", parts: `#${"f".repeat(64)}` });
    expect([held.status, await held.json()]).toMatchObject([400, { code: "invalid_key" }]);
  });
});

describe("the OpenAPI document", () => {
  it("has both paths with watch, and neither without", async () => {
    type Document = {
      paths: Record<string, { get?: { operationId: string; parameters?: { name: string }[] } }>;
    };
    const described = async (worker: ReturnType<typeof watchingWorker>) => {
      const { paths } = await (await worker.get("openapi.json")).json<Document>();
      return Object.entries(paths).flatMap(([path, { get }]) =>
        get ? [[path, get.operationId, get.parameters?.map(({ name }) => name)]] : [],
      );
    };
    expect(await described(watchingWorker())).toEqual([
      ["/v1/watch", "watch", undefined],
      ["/v1/why", "why", ["key", "parts", "policy"]],
    ]);
    expect(await described(watchingWorker({ watch: false }))).toEqual([]);
  });
});

describe("the page", () => {
  it("is at the prefix, without the token, and has no data", async () => {
    const worker = watchingWorker({ prefix: "/limits" });
    const response = await worker.fetch("/limits/watch");
    const { headers } = response;
    expect([response.status, headers.get("Content-Type")]).toEqual([200, "text/html; charset=utf-8"]);
    const policy = headers.get("Content-Security-Policy") as string;
    const html = await response.text();
    for (const name of ["script", "style"]) {
      const [, text] = html.match(new RegExp(`<${name}>([^]*?)</${name}>`)) as [string, string];
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
      const hash = btoa(String.fromCharCode(...new Uint8Array(digest)));
      expect(policy).toContain(`${name}-src 'sha256-${hash}';`);
    }
    expect(await (await worker.fetch("/limits/watch", { method: "HEAD" })).text()).toBe("");
    expect((await worker.fetch("/limits/watch", { method: "POST" })).status).toBe(405);
  });

  it("is the origin's without watch, and so are other paths", async () => {
    for (const [config, path] of [
      [{ watch: false }, "/_tollgate/watch"],
      [{}, "/_tollgate/watch/"],
      [{}, "/_tollgate/other"],
      [{}, "/watch"],
    ] as const) {
      const response = await watchingWorker(config).fetch(path);
      expect([response.status, await response.text()]).toEqual([200, `origin: ${path}`]);
    }
  });
});

describe("who may see it", () => {
  it("is who has the token", async () => {
    logged();
    const worker = watchingWorker();
    for (const path of ["watch", "why?key=a"]) {
      const without = await worker.fetch(`/_tollgate/v1/${path}`);
      expect(without.status).toBe(401);
      const wrong = await worker.fetch(`/_tollgate/v1/${path}`, { headers: { Authorization: "Bearer x" } });
      expect([wrong.status, wrong.headers.get("WWW-Authenticate")]).toEqual([
        401,
        expect.stringContaining("invalid_token"),
      ]);
      const posted = await worker.get(path, { method: "POST", body: "{}" });
      expect([posted.status, posted.headers.get("Allow")]).toEqual([405, "GET, OPTIONS"]);
    }
    const closed = watchingWorker({}, { TOLLGATE_TOKEN: undefined });
    expect((await closed.get("watch")).status).toBe(403);
    expect(worker.found.messages).toEqual([]);
  });

  it("sees keys as the logs have them", async () => {
    logged();
    const header = { "CF-Connecting-IP": "192.0.2.9", "X-Key": `<img src=x onerror="alert(1)">` };
    const rules = [{ path: "/*", key: "header:X-Key", policies: "login" }];
    const seen = async (config: Record<string, unknown>) => {
      const worker = watchingWorker({ rules, ...config });
      for (let time = 0; time < 3; time += 1) await worker.fetch("/x", { headers: header });
      await worker.report();
      return worker.view();
    };
    const hidden = await seen({});
    expect(hidden.top).toMatchObject([{ key: hash }]);
    expect(JSON.stringify(hidden)).not.toContain("onerror");
    await forgetAll();
    const plain = await seen({ logKeys: "plain" });
    expect([plain.keys, plain.top[0]?.key]).toEqual([
      "plain",
      `/header:x-key=30:<img src=x onerror="alert(1)">`,
    ]);
  });
});
