// Keys that a client makes up: one address brings so many new ones and no more, and a key that is in use costs nothing for it.

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { logged, someone, start, statuses, workerWith } from "../lib.ts";

const policies = {
  api: { algorithm: "token_bucket", capacity: 100, refillRate: 10 },
  perIp: { algorithm: "fix_window", limit: 1_000, scale: "1d" },
};

let cases = 0;

/** A Worker with one rule by the bearer, and functions that send requests. */
function gatewayWith(rule: Record<string, unknown> = {}, more: Record<string, unknown> = {}, isGone = false) {
  cases += 1;
  const own = `case-${cases}`;
  const rules = [
    {
      path: "/*",
      key: ["header:Authorization", `constant:${own}`],
      policies: "api",
      newKeys: { limit: 100, scale: "1h" },
      ...rule,
    },
  ];
  const asked: string[] = [];
  const LIMITERS = {
    getByName: (name: string) => {
      asked.push(name);
      if (name.startsWith("/new-keys=") && isGone) throw new Error("gone");
      return env.LIMITERS.getByName(name);
    },
  };
  const { fetch, reached } = workerWith({ upstream: "ORIGIN", policies, rules, ...more }, { LIMITERS });
  const send = (bearer: string, client: Record<string, string>) =>
    fetch("/", { headers: { ...client, Authorization: `Bearer ${bearer}` } });
  const object = (bearer: string) => {
    const text = `bearer ${bearer}`;
    return `/header:authorization=${text.length}:${text}/constant=${own.length}:${own}`;
  };
  return { send, asked, reached, object };
}

const stored = (name: string) =>
  runInDurableObject(
    env.LIMITERS.getByName(name),
    (_, { storage }) => storage.kv.get("states") !== undefined,
  );

beforeEach(() => {
  vi.restoreAllMocks();
  vi.useFakeTimers({ toFake: ["Date"], now: start });
  logged();
});

describe("a limit on new keys", () => {
  it("2,000 random bearers: so many pass as the rule says, and the others store nothing", async () => {
    const { send, object, reached } = gatewayWith();
    const client = someone();
    let allowed = 0;
    const denied: Response[] = [];
    for (let batch = 0; batch < 200; batch += 1) {
      const names = Array.from({ length: 10 }, (_, at) => `random-${batch}-${at}`);
      for (const response of await Promise.all(names.map((name) => send(name, client))))
        if (response.status === 200) allowed += 1;
        else denied.push(response);
    }
    expect([allowed, reached.length, denied.length]).toEqual([100, 100, 1_900]);
    const [first] = denied;
    expect(first?.status).toBe(429);
    expect(first?.headers.get("RateLimit-Policy")).toBe('"new-keys";q=100;w=3600');
    expect(Number(first?.headers.get("Retry-After"))).toBeGreaterThan(0);
    expect(await first?.json()).toMatchObject({ "violated-policies": ["new-keys"] });
    for (let batch = 150; batch < 200; batch += 1)
      expect(await stored(object(`random-${batch}-3`))).toBe(false);
    expect(await stored(object("random-0-0"))).toBe(true);
    // Another address has its own.
    expect((await send("other", someone())).status).toBe(200);
  });

  it("a key in use goes on when its address has used up all, and costs one message", async () => {
    const { send, asked, object } = gatewayWith({ newKeys: { limit: 2, scale: "1h" } });
    const client = someone();
    const name = object("mine");
    expect(await statuses(3, () => send("mine", client))).toEqual([200, 200, 200]);
    // The first request asks the key's object, the address's, and the key's object again.
    expect(asked.filter((asked) => asked === name)).toHaveLength(4);
    expect(asked).toHaveLength(5);
    expect((await send("second", client)).status).toBe(200);
    expect(await statuses(3, () => send("third", client))).toEqual([429, 429, 429]);
    asked.length = 0;
    expect((await send("mine", client)).status).toBe(200);
    expect(asked).toEqual([name]);
    // From another address, too.
    expect((await send("mine", someone())).status).toBe(200);
  });

  it("a key stays known for the period, also when its state has ended and its object was evicted", async () => {
    const { send, object } = gatewayWith({ newKeys: { limit: 1, scale: "1h" } });
    const client = someone();
    expect((await send("mine", client)).status).toBe(200);
    // The bucket is full again after a tenth of a second.
    vi.setSystemTime(start + 59 * 60_000);
    await evictDurableObject(env.LIMITERS.getByName(object("mine")));
    expect((await send("mine", client)).status).toBe(200);
    const alarm = await runInDurableObject(env.LIMITERS.getByName(object("mine")), (_, { storage }) =>
      storage.getAlarm(),
    );
    expect(alarm).toBe(start + 3_600_000);
    vi.setSystemTime(start + 3_600_000);
    await runDurableObjectAlarm(env.LIMITERS.getByName(object("mine")));
    expect(await stored(object("mine"))).toBe(false);
    // The hour of its first use is over for the address as well.
    vi.setSystemTime(start + 2 * 3_600_000);
    expect((await send("mine", client)).status).toBe(200);
  });

  it("one IPv6 client is one address, however it rotates within its /64", async () => {
    const { send } = gatewayWith({ newKeys: { limit: 3, scale: "1h" } });
    const client = (host: number) => ({ "CF-Connecting-IP": `2001:db8:77:${cases}::${host.toString(16)}` });
    let host = 0;
    expect(await statuses(6, () => send(`key-${++host}`, client(host)))).toEqual([
      200, 200, 200, 429, 429, 429,
    ]);
    const forwarded = { ...client(1), "X-Forwarded-For": "192.0.2.9", "True-Client-IP": "192.0.2.9" };
    expect((await send("key-9", forwarded)).status).toBe(429);
  });

  it("requests that bring one key together count it once", async () => {
    const { send } = gatewayWith({ newKeys: { limit: 20, scale: "1h" } });
    const client = someone();
    for (let key = 0; key < 15; key += 1) {
      const all = await Promise.all(Array.from({ length: 4 }, () => send(`page-${key}`, client)));
      expect(all.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    }
    let key = 0;
    expect(await statuses(7, () => send(`more-${++key}`, client))).toEqual([
      200, 200, 200, 200, 200, 429, 429,
    ]);
  });

  it("no burst of new keys brings more than the limit", async () => {
    const { send, reached } = gatewayWith({ newKeys: { limit: 7, scale: "1h" } });
    const client = someone();
    const all = await Promise.all(Array.from({ length: 60 }, (_, at) => send(`burst-${at >> 1}`, client)));
    expect(all.filter(({ status }) => status === 200).length).toBe(reached.length);
    expect(new Set(reached.map(({ headers }) => headers.get("Authorization"))).size).toBeLessThanOrEqual(7);
    expect(reached.length).toBeGreaterThan(0);
  });

  it("several keys: only one that a client can make up is limited, and none is charged for a denied one", async () => {
    const { send } = gatewayWith({
      key: undefined,
      policies: undefined,
      limits: [
        { key: "ip", policies: "perIp" },
        { key: ["header:Authorization", "constant:several"], policies: "api" },
      ],
      newKeys: { limit: 2, scale: "1h" },
    });
    const client = someone();
    let key = 0;
    expect(await statuses(5, () => send(`key-${++key}`, client))).toEqual([200, 200, 429, 429, 429]);
    expect(await statuses(2, () => send("key-1", client))).toEqual([200, 200]);
    const ip = client["CF-Connecting-IP"] as string;
    const object = env.LIMITERS.getByName(`/ip=${ip.length}:${ip}`);
    expect(await object.get({ ...policies.perIp, name: "perIp" } as never)).toBe(4);
  });

  it("with leases and with credit", async () => {
    const { send } = gatewayWith(
      { leases: true, credit: true, newKeys: { limit: 3, scale: "1h" } },
      { leases: true },
    );
    const client = someone();
    let key = 0;
    expect(await statuses(5, () => send(`key-${++key}`, client))).toEqual([200, 200, 200, 429, 429]);
    expect(await statuses(20, () => send("key-1", client))).toEqual(new Array(20).fill(200));
  });

  it("a shadow rule denies nothing, and logs it", async () => {
    const { send } = gatewayWith({ mode: "shadow", newKeys: { limit: 1, scale: "1h" } });
    const client = someone();
    vi.restoreAllMocks();
    const log = logged();
    let key = 0;
    expect(await statuses(3, () => send(`key-${++key}`, client))).toEqual([200, 200, 200]);
    expect(log.lines("denied").map(({ policies, mode }) => [policies, mode])).toEqual([
      [["new-keys"], "shadow"],
      [["new-keys"], "shadow"],
    ]);
  });

  it("an object of the address that fails: by onError of the rule", async () => {
    for (const [onError, status] of [
      ["allow", 200],
      ["deny", 503],
    ]) {
      const { send } = gatewayWith({ onError }, {}, true);
      expect((await send("key", someone())).status).toBe(status);
    }
  });
});

describe("lists of addresses", () => {
  const config = { allow: ["192.0.2.7", "2001:db8:a::/48"], deny: ["192.0.2.0/24", "2001:db8::/32"] };
  const rules = { policies: "perIp", key: "ip", newKeys: undefined };

  it("an allowed one is not limited, a denied one gets a 403, the narrowest range decides", async () => {
    const { send, asked } = gatewayWith(rules, config);
    const from = async (address: string) => (await send("key", { "CF-Connecting-IP": address })).status;
    expect(await from("192.0.2.7")).toBe(200);
    expect(await from("::ffff:192.0.2.7")).toBe(200);
    expect(await from("192.0.2.8")).toBe(403);
    expect(await from("2001:DB8:A::1")).toBe(200);
    expect(await from("2001:db8:b::1")).toBe(403);
    expect(asked).toEqual([]);
    expect(await from("192.0.3.7")).toBe(200);
    expect(asked).toHaveLength(1);
  });

  it("the header that counts is Cloudflare's", async () => {
    const { send } = gatewayWith(rules, config);
    const spoofed = { ...someone(), "X-Forwarded-For": "192.0.2.8", "X-Real-IP": "192.0.2.8" };
    expect((await send("key", spoofed)).status).toBe(200);
    const denied = await send("key", { "CF-Connecting-IP": "192.0.2.8", "X-Forwarded-For": "192.0.2.7" });
    expect([denied.status, await denied.json()]).toEqual([
      403,
      { type: "about:blank", title: "The address of the client is denied", status: 403 },
    ]);
  });
});
