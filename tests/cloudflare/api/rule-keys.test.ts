// An operator reaches the key of a rule by its parts, in any spelling a client may send.

import { createExecutionContext } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RemoteLimiter, type RuleParts } from "../../../js/client/index.ts";
import { Tollgate } from "../../../js/cloudflare/index.ts";
import { logged, someone, start, statuses, token, workerWith } from "../lib.ts";

const rule = (path: string, key: unknown, more = {}) => ({ path, key, policies: "two", ...more });
const config = {
  upstream: "ORIGIN",
  logKeys: "plain",
  denyCache: false,
  policies: {
    two: { algorithm: "fix_window", limit: 2, scale: "1h" },
    day: { algorithm: "fix_window", limit: 99, scale: "1d" },
  },
  rules: [
    rule("/ip", "ip"),
    rule("/login", ["ip", "constant:login"]),
    rule("/key", ["header:X-Api-Key"]),
    rule("/token", ["header:Authorization"]),
    rule("/cookie", ["cookie:session"]),
    rule("/Exact/*", ["path", "ip"], { caseSensitive: true, policies: ["day", "two"] }),
    rule("/folded/*", ["ip", "path"]),
    {
      path: "/limits",
      limits: [
        { key: "ip", policies: "two" },
        { key: "header:X-Api-Key", policies: "day" },
      ],
    },
  ],
};
const worker = workerWith(config);

async function call(operation: string, body: unknown, on = worker) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  const response = await on.fetch(`/_tollgate/v1/${operation}`, init);
  return (await response.json()) as never;
}

const addressOf = (client: Record<string, string>) => client["CF-Connecting-IP"] as string;

/** Denies the client by a rule, and frees it by the parts. */
async function denyAndReset(path: string, headers: Record<string, string>, parts: RuleParts) {
  const ask = () => worker.fetch(path, { headers });
  expect(await statuses(3, ask), path).toEqual([200, 200, 429]);
  const item = { policy: "two", parts };
  expect(await call("get", item), String(parts)).toEqual({ count: 2 });
  expect(await call("reset", item)).toEqual({ reset: true });
  expect(await statuses(3, ask), path).toEqual([200, 200, 429]);
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
  logged();
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("an operator frees a client", () => {
  it("by its address", async () => {
    const client = someone();
    await denyAndReset("/ip", client, [`ip=${addressOf(client)}`]);
    const other = someone();
    await denyAndReset("/login", other, [`ip=::ffff:${addressOf(other)}`, "constant:login"]);
    await denyAndReset("/ip", {}, "ip=unknown");
  });

  it("by any spelling of an address in its network", async () => {
    const spellings = ["2001:DB8:0:1::7", "2001:db8:0:2:ffff::", "2001:0db8:0000:0003::/64"];
    for (const [at, spelling] of spellings.entries())
      await denyAndReset("/ip", { "CF-Connecting-IP": `2001:db8:0:${at + 1}::42` }, `ip=${spelling}`);
  });

  it("by a header or a cookie, spelled as the client sends it", async () => {
    await denyAndReset("/key", { "X-Api-Key": "k e y" }, ["header:x-api-key= \tk e y "]);
    await denyAndReset("/token", { Authorization: "Bearer aB=" }, ["header:Authorization=BEARER   aB= more"]);
    await denyAndReset("/token", { Authorization: "Basic dTpwYQ==" }, ["header:authorization=basic dTpwYR"]);
    await denyAndReset("/cookie", { Cookie: 'a=b; session="c%20d"' }, ["cookie:session=c d"]);
  });

  it("by the address in the place of a missing part", async () => {
    const client = someone();
    await denyAndReset("/key", client, `ip=${addressOf(client)}`);
  });

  it("by a path, in the letter case of the rule", async () => {
    const client = someone();
    const ip = `ip=${addressOf(client)}`;
    await denyAndReset("/Exact/A", client, ["path=//Exact/%41/", ip]);
    expect(await call("get", { policy: "two", parts: ["path=/exact/a", ip] })).toEqual({ count: 0 });
    await denyAndReset("/folded/A", client, [ip, "path=/Folded/a"]);
  });

  it("of a rule with several keys", async () => {
    const client = { ...someone(), "X-Api-Key": "several" };
    expect(await statuses(3, () => worker.fetch("/limits", { headers: client }))).toEqual([200, 200, 429]);
    const [ip, key] = [`ip=${addressOf(client)}`, "header:x-api-key=several"];
    expect(
      await call("get", [
        { policy: "two", parts: ip },
        { policy: "day", parts: key },
      ]),
    ).toEqual([{ count: 2 }, { count: 2 }]);
    expect(await call("reset", { policy: "two", parts: ip })).toEqual({ reset: true });
    expect((await worker.fetch("/limits", { headers: client })).status).toBe(200);
  });

  it("by the key in the log", async () => {
    for (const key of ["short", "k".repeat(600)]) {
      const log = logged();
      await statuses(3, () => worker.fetch("/key", { headers: { "X-Api-Key": key } }));
      const parts = log.lines("denied").at(-1).key;
      expect(parts).toMatch(key === "short" ? /^\/header:x-api-key=5:short$/ : /^\/sha256=/);
      expect(await call("reset", { policy: "two", parts })).toEqual({ reset: true });
      expect((await worker.fetch("/key", { headers: { "X-Api-Key": key } })).status).toBe(200);
      vi.restoreAllMocks();
    }
  });

  it("within two seconds where denials are remembered", async () => {
    const own = workerWith({ ...config, denyCache: true });
    const client = someone();
    const ask = async () => (await own.fetch("/ip", { headers: client })).status;
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429]);
    await call("reset", { policy: "two", parts: `ip=${addressOf(client)}` }, own);
    expect(await ask()).toBe(429);
    vi.setSystemTime(start + 2_000);
    expect(await ask()).toBe(200);
  });

  it("but not by parts in another order, or by a key that looks the same", async () => {
    const client = someone();
    const ip = `ip=${addressOf(client)}`;
    await statuses(2, () => worker.fetch("/login", { headers: client }));
    const others = [
      { parts: ["constant:login", ip] },
      { parts: [ip] },
      { parts: [ip, "constant:Login"] },
      { key: `/ip=${addressOf(client).length}:${addressOf(client)}/constant=5:login` },
    ];
    for (const other of others) {
      expect(await call("get", { policy: "two", ...other })).toEqual({ count: 0 });
      expect(await call("reset", { policy: "two", ...other })).toEqual({ reset: false });
    }
    expect((await worker.fetch("/login", { headers: client })).status).toBe(429);
  });
});

it("every operation takes the key of a rule", async () => {
  const client = someone();
  const item = { policy: "two", parts: [`ip=${addressOf(client)}`] };
  const asked = [
    ["hit", item, { allowed: true, remaining: 1 }],
    ["hit", { ...item, cost: { two: 1 } }, { allowed: true, remaining: 0 }],
    ["peek", item, { allowed: false }],
    ["inc", { ...item, cost: -1 }, { count: 1 }],
    ["set", { ...item, count: 2 }, { count: 2 }],
    ["expires_at", item, { expiresAt: start + 3_600_000 }],
    ["get", { ...item, policy: ["two", "day"], of: "day" }, { count: 0 }],
  ] as const;
  for (const [operation, body, answer] of asked)
    expect(await call(operation, body), operation).toMatchObject(answer);
  expect((await worker.fetch("/ip", { headers: client })).status).toBe(429);
});

it("the id of a reservation names the key of a rule", async () => {
  const client = someone();
  const address = addressOf(client);
  const item = { policy: "two", parts: `ip=${address}` };
  const reserve = async () => (await call("reserve", item)) as { id: string };
  const [one, two] = [await reserve(), await reserve()];
  expect(one.id).toMatch(new RegExp(`\\.a\\.o/ip=${address.length}:${address.replaceAll(".", "\\.")}$`));
  expect((await worker.fetch("/ip", { headers: client })).status).toBe(429);
  const { id } = (await call("extend", { policy: "two", id: one.id, ttl: "2m" })) as { id: string };
  expect(id.split(".").slice(3)).toEqual(one.id.split(".").slice(3));
  expect(await call("cancel", { policy: "two", id })).toEqual({ settlement: "settled" });
  expect(await call("settle", { policy: "two", id: two.id })).toEqual({ settlement: "settled" });
  expect(await call("settle", { policy: "two", id: two.id })).toEqual({ settlement: "closed" });
  expect(await call("get", item)).toEqual({ count: 1 });

  const hot = { policy: "day", parts: item.parts };
  const leased = (await call("lease", { ...hot, cost: 1, size: 5 })) as { lease: { id: string } };
  expect(leased.lease.id).toContain(".o/ip=");
  const report = { ...hot, id: leased.lease.id, used: 1, size: 0 };
  expect(await call("lease", report)).toMatchObject({ lease: null });
  expect(await call("lease", { ...report, parts: "ip=192.0.2.9" })).toMatchObject({
    code: "invalid_reservation",
  });
  expect(await call("get", hot)).toEqual({ count: 2 });
});

it("errors name the field, and change nothing", async () => {
  const wrong = [
    [{ key: "a", parts: "ip=::1" }, "invalid_request", "parts: there is a key too; use one of them"],
    [
      {},
      "invalid_request",
      "key: is required (a string of 1 to 1024 UTF-8 bytes, or parts with the key of a rule)",
    ],
    [{ parts: [] }, "invalid_request", "parts: an empty list is not a key; expected "],
    [
      { parts: ["ip=::1", "user=4"] },
      "invalid_request",
      'parts[1]: "user=4" is not "ip=<address>", "path=/<path without ; ? #>", ',
    ],
    [{ parts: "ip" }, "invalid_request", 'parts: "ip" is not "ip=<address>"'],
    [{ parts: "ip=here" }, "invalid_request", 'parts: "ip=here" is not "ip=<address>"'],
    [
      { parts: "path=/a;b/c" },
      "invalid_request",
      'parts: "path=/a;b/c" is not "ip=<address>", "path=/<path without ; ? #>"',
    ],
    [{ parts: "path=/a?b=c" }, "invalid_request", 'parts: "path=/a?b=c" is not "ip=<address>"'],
    [{ parts: "cookie:session=a; b=c" }, "invalid_request", 'parts: "cookie:session=a; b=c" is not '],
    [{ parts: ["header:x-api-key=a\ud800"] }, "invalid_key", "parts: "],
    [{ parts: "constant:\udfff" }, "invalid_key", 'parts: "constant:'],
  ] as const;
  const items = wrong.map(([fields]) => ({ policy: "two", ...fields }));
  const results = (await call("hit", items)) as { error: { code: string; message: string } }[];
  for (const [at, [, code, message]] of wrong.entries())
    expect(results[at]?.error).toMatchObject({ code, message: expect.stringContaining(message) });
});

describe("a client in JavaScript names it by its parts", () => {
  const fetch = async (request: Request) => {
    const { method, headers } = request;
    return worker.fetch(new URL(request.url).pathname, { method, headers, body: await request.text() });
  };
  const remote = new RemoteLimiter({ url: "https://example.com/_tollgate", token, policy: "two", fetch });
  const bound = () => new Tollgate(createExecutionContext(), worker.env);
  const byRpc = (parts: RuleParts) => {
    const key = bound().ofRule(parts);
    return {
      peek: (cost?: number) => key.peek("two", cost),
      inc: (cost?: number) => key.inc("two", cost),
      set: (count: number) => key.set("two", count),
      get: () => key.get("two"),
      expiresAt: () => key.expiresAt("two"),
      reset: (options = {}) => key.reset("two", options),
    };
  };

  it.each([
    ["by HTTP", (parts: RuleParts) => remote.ofRule(parts)],
    ["by RPC", byRpc],
  ])("%s", async (_, ofRule) => {
    const client = someone();
    const ip = `ip=${addressOf(client)}`;
    const key = ofRule([ip]);
    await statuses(3, () => worker.fetch("/ip", { headers: client }));
    expect(await key.get()).toBe(2);
    expect(await key.peek()).toMatchObject({ allowed: false });
    expect(await key.reset()).toBe(true);
    expect(await key.peek(2)).toMatchObject({ allowed: true });
    expect(await key.inc(2)).toBe(2);
    expect(await ofRule(ip).expiresAt()).toBe(start + 3_600_000);
    expect((await worker.fetch("/ip", { headers: client })).status).toBe(429);
    expect([await key.inc(-1), await key.set(2)]).toEqual([1, 2]);
    expect(await key.reset({ reservations: true })).toBe(true);
    for (const parts of [[7], "constant:\ud800", undefined, { length: 1 }, { parts: [ip] }])
      expect(() => ofRule(parts as never)).toThrow(expect.objectContaining({ code: "invalid_key" }));
    await expect(ofRule([]).get()).rejects.toMatchObject({ code: "invalid_request" });
  });

  it("and no key from a request's JSON names it", async () => {
    const client = someone();
    const forged = { parts: [`ip=${addressOf(client)}`] } as never;
    await statuses(3, () => worker.fetch("/ip", { headers: client }));
    const rpc = bound();
    const calls = [
      () => remote.hit(forged),
      () => remote.peek(forged),
      () => remote.reserve(forged),
      () => remote.inc(forged),
      () => remote.set(forged, 0),
      () => remote.get(forged),
      () => remote.expiresAt(forged),
      () => remote.reset(forged),
      () => rpc.hit("two", forged),
      () => rpc.hit("two", forged, { two: 1 }),
      () => rpc.peek("two", forged),
      () => rpc.reserve("two", forged),
      () => rpc.inc("two", forged),
      () => rpc.set("two", forged, 0),
      () => rpc.get("two", forged),
      () => rpc.expiresAt("two", forged),
      () => rpc.reset("two", forged),
      () => rpc.reset("two", forged, { reservations: true }),
    ];
    for (const call of calls)
      await expect(call(), String(call)).rejects.toMatchObject({ code: "invalid_key" });
    expect((await worker.fetch("/ip", { headers: client })).status).toBe(429);
  });

  it("and parts that are far too long concern one caller only", async () => {
    const long = [
      `header:x-api-key=${"k".repeat(2 ** 21)}`,
      `header:x-api-key=${"é".repeat(16_000)}`,
      `header:x-api-key=${'"'.repeat(16_000)}`,
      Array.from({ length: 2 ** 20 }, () => ""),
    ];
    const [good, ...bad] = await Promise.allSettled(
      ["ip=::1", ...long, ...Array.from({ length: 95 }, () => `header:x-api-key=${"k".repeat(16_000)}`)].map(
        async (parts) => remote.ofRule(parts).get(),
      ),
    );
    expect(good?.status).toBe("fulfilled");
    for (const result of bad.slice(0, long.length))
      expect(result).toMatchObject({ status: "rejected", reason: { code: "invalid_key" } });
    for (const result of bad.slice(long.length)) expect(result.status).toBe("fulfilled");
  });
});
