// Rules of the gateway enforce, shadow, forward and fail as they are configured.

import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import handlers from "../../../js/cloudflare/index.ts";
import { logged, seeded, someone, start, statuses, token, workerWith } from "../lib.ts";

const two = { algorithm: "fix_window", limit: 2, scale: "1h" };
const config = (rule: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  upstream: "ORIGIN",
  policies: { two },
  rules: [{ path: "/*", policies: ["two"], ...rule }],
  ...more,
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("a rule that enforces", () => {
  it("forwards allowed requests with headers, and responds to denied ones", async () => {
    const { fetch, reached } = workerWith(config({}));
    const headers = someone();
    const first = await fetch("/a?b=c", { method: "POST", body: "streamed", headers });
    expect(first.status).toBe(200);
    expect(await first.text()).toBe("origin: /a");
    expect(first.headers.get("X-Origin")).toBe("yes");
    expect(first.headers.get("RateLimit-Policy")).toBe('"two";q=2;w=3600');
    expect(first.headers.get("RateLimit")).toBe('"two";r=1;t=3600');
    expect(first.headers.get("Access-Control-Expose-Headers")).toBe("RateLimit-Policy, RateLimit");
    expect(await reached[0]?.text()).toBe("streamed");
    expect(reached[0]?.url).toBe("https://example.com/a?b=c");

    await fetch("/a", { headers });
    const denied = await fetch("/a", { headers });
    expect(denied.status).toBe(429);
    expect(denied.headers.get("Retry-After")).toBe("3600");
    expect(denied.headers.get("Content-Type")).toBe("application/problem+json");
    expect(denied.headers.get("Access-Control-Expose-Headers")).toContain("Retry-After");
    expect(await denied.json()).toMatchObject({ status: 429, "violated-policies": ["two"] });
    expect(reached).toHaveLength(2);
  });

  it("sends legacy headers, or none, as configured", async () => {
    const legacy = await workerWith(config({}, { headers: "legacy" })).fetch("/", { headers: someone() });
    expect(legacy.headers.get("X-RateLimit-Remaining")).toBe("1");
    const none = await workerWith(config({}, { headers: "none" })).fetch("/", { headers: someone() });
    expect([...none.headers.keys()].filter((name) => name.includes("ratelimit"))).toEqual([]);
  });

  it("responds with 502 if the upstream does not respond, and logs it", async () => {
    const log = logged();
    const ORIGIN = { fetch: () => Promise.reject(new Error("no route")) };
    const response = await workerWith(config({}), { ORIGIN }).fetch("/", { headers: someone() });
    expect([response.status, response.headers.get("RateLimit")]).toEqual([502, '"two";r=1;t=3600']);
    expect(log.lines("error")).toMatchObject([{ failure: "upstream", cause: "Error: no route" }]);
  });

  it("forwards an error response of the upstream unchanged", async () => {
    const ORIGIN = { fetch: () => new Response("down", { status: 502 }) };
    const { fetch } = workerWith(config({}), { ORIGIN });
    const response = await fetch("/", { headers: someone() });
    expect([response.status, await response.text()]).toEqual([502, "down"]);
    expect(response.headers.get("RateLimit")).toContain("r=1");
  });

  it("drops headers by which some origins replace the URL, unless configured otherwise", async () => {
    const headers = { ...someone(), "X-Original-URL": "/login", "X-Rewrite-URL": "/login", "X-Own": "yes" };
    const names = async (more: Record<string, unknown>) => {
      const { fetch, reached } = workerWith(config({}, more));
      await fetch("/", { headers });
      return [...(reached[0]?.headers.keys() ?? [])].filter((name) => name.startsWith("x-"));
    };
    expect(await names({})).toEqual(["x-own"]);
    expect(await names({ forwardRewrites: true })).toEqual(["x-original-url", "x-own", "x-rewrite-url"]);
  });

  it("rejects a key that origins read differently, and logs it; a shadow rule does not", async () => {
    const log = logged();
    const headers = { Cookie: "id=a; id=b" };
    const { fetch, reached } = workerWith(config({ key: "cookie:id" }));
    const response = await fetch("/", { headers });
    expect([response.status, (await response.json<{ rule: number }>()).rule]).toEqual([400, 0]);
    expect(log.lines("rejected")).toMatchObject([{ via: "gateway", rule: 0, reason: "ambiguous" }]);
    expect(reached).toHaveLength(0);
    const shadow = workerWith(config({ key: "cookie:id", mode: "shadow" }));
    expect((await shadow.fetch("/", { headers })).status).toBe(200);
  });

  it("does not count requests that no rule matches", async () => {
    const { fetch } = workerWith(config({ path: "/limited", method: ["POST"] }));
    const headers = someone();
    expect(await statuses(4, () => fetch("/limited", { headers }))).toEqual([200, 200, 200, 200]);
    expect(await statuses(3, () => fetch("/limited", { headers, method: "POST" }))).toEqual([200, 200, 429]);
  });
});

describe("an upstream by URL", () => {
  it("gets the request as it was, body and all, and redirects are the client's to follow", async () => {
    const fetched = vi
      .spyOn(globalThis, "fetch")
      .mockImplementation(async () => new Response(null, { status: 302 }));
    const { fetch } = workerWith(config({}, { upstream: "https://origin.example/base/" }));
    const init = { method: "PUT", body: "streamed", headers: { ...someone(), "X-Own": "kept" } };
    expect((await fetch("//a/%2e/b?c=d", init)).status).toBe(302);
    const [request, options] = fetched.mock.calls[0] as unknown as [Request, RequestInit];
    expect(request.url).toBe("https://origin.example/base//a/b?c=d");
    expect([request.method, request.headers.get("X-Own"), await request.text()]).toEqual([
      "PUT",
      "kept",
      "streamed",
    ]);
    expect(options).toEqual({ redirect: "manual" });
  });
});

describe("1,000 requests at random", () => {
  it("reach the origin, are denied, or are rejected as ambiguous", async () => {
    const log = logged();
    const errors = vi.spyOn(console, "error");
    const random = seeded(1);
    const text = (alphabet: string) =>
      Array.from({ length: random(30) }, () => alphabet[random(alphabet.length)]).join("");
    const rules = [
      { path: "/a/*", mode: "skip" },
      { path: "/:x", key: ["header:x-key", "cookie:id", "path"], policies: "two" },
      { path: "/*", key: ["cookie:id"], policies: "two", method: ["GET", "POST"] },
    ];
    const { fetch, reached } = workerWith({ ...config({}), rules });
    const once = async () => {
      const headers = {
        "X-Key": text("ab:/=%"),
        Cookie: text('id=;" ab'),
        "CF-Connecting-IP": text("0123:.f"),
      };
      const method = ["GET", "POST", "patch"][random(3)] as string;
      return (await fetch(`/${text("/ab.%2f5c;\\e?#é")}`, { headers, method })).status;
    };
    let passed = 0;
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(Array.from({ length: 50 }, once));
      for (const status of answers) expect([200, 400, 429]).toContain(status);
      passed += answers.filter((status) => status === 200).length;
    }
    expect(reached).toHaveLength(passed);
    for (const { reason } of log.lines("rejected")) expect(reason).toBe("ambiguous");
    expect(errors).not.toHaveBeenCalled();
    expect(log.lines("error")).toEqual([]);
  });
});

describe("no spelling of a path slips past", () => {
  const spellings = [
    "/admin/login",
    "//admin//login",
    "/admin/login/",
    "/admin/./login",
    "/admin/x/../login",
    "/%61dmin/login",
    "/%2561dmin/login",
    "/admin%2flogin",
    "/admin%2Flogin",
    "/admin%252flogin",
    "/admin\\login",
    "/admin%5Clogin",
    "/public/%2e%2e/admin/login",
    "/public/..%2fadmin/login",
    "/public/..;/admin/login",
    "/admin;x=1/login",
    "/admin/login?x",
    "/admin/login#x",
    "/ADMIN/Login",
    "/public/..%2fadmin%5clogin",
    "/admin/login;/x",
    "/admin%3bv/login",
  ];

  it.each(spellings)("%s", async (spelling) => {
    const { fetch } = workerWith({
      ...config({ path: "/admin/login" }),
      rules: [
        { path: "/public/*", mode: "skip" },
        { path: "/admin/login", policies: "two" },
      ],
    });
    const headers = someone();
    await statuses(2, () => fetch("/admin/login", { headers }));
    expect((await fetch(spelling, { headers })).status).toBe(429);
  });
});

describe("the key", () => {
  it("is the address of CF-Connecting-IP alone, and an IPv6 network however it is spelled", async () => {
    const { fetch } = workerWith(config({}));
    const from = (address: string, more = {}) =>
      fetch("/", { headers: { "CF-Connecting-IP": address, ...more } });
    await from("2001:db8:7::1", { "X-Forwarded-For": "203.0.113.1" });
    await from("2001:0DB8:0007:0000:ffff::2", { "X-Forwarded-For": "203.0.113.2" });
    expect((await from("2001:db8:7:0:1:2:3:4", { "X-Real-IP": "203.0.113.3" })).status).toBe(429);
    expect((await from("2001:db8:7:1::1")).status).toBe(200);
    await from("203.0.113.77");
    await from("::ffff:203.0.113.77");
    expect((await from("::FFFF:cb00:714d")).status).toBe(429);
  });

  it("of one kind cannot spend the budget of another", async () => {
    const { fetch } = workerWith({
      ...config({}),
      rules: [
        { path: "/key", key: ["header:x-key"], policies: "two" },
        { path: "/ip", key: ["ip"], policies: "two" },
      ],
    });
    const { "CF-Connecting-IP": address } = someone();
    const forged = [address, `${address?.length}:${address}`, `1:x/ip=${address?.length}:${address}`];
    for (const value of forged)
      await statuses(3, () => fetch("/key", { headers: { "X-Key": value as string } }));
    expect((await fetch("/ip", { headers: { "CF-Connecting-IP": address as string } })).status).toBe(200);
  });

  it("that lacks a part follows the rule: by IP, denied, or not counted", async () => {
    const log = logged();
    const keyed = (missing: string) => workerWith(config({ key: ["header:x-key"], missing }));
    const headers = someone();
    expect(await statuses(3, () => keyed("ip").fetch("/", { headers }))).toEqual([200, 200, 429]);
    const denied = keyed("deny");
    const response = await denied.fetch("/", { headers });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({
      title: "The request lacks a header or cookie that is required",
    });
    expect(denied.reached).toHaveLength(0);
    expect(log.lines("rejected")).toEqual([
      { event: "rejected", via: "gateway", rule: 0, reason: "missing" },
    ]);
    expect(await statuses(3, () => keyed("skip").fetch("/", { headers: someone() }))).toEqual([
      200, 200, 200,
    ]);
    expect((await denied.fetch("/", { headers: { "X-Key": "k".repeat(4_000) } })).status).toBe(200);
  });
});

describe("several rules that match a request", () => {
  const rules = [
    { path: "/wide/*", policies: "three" },
    { path: "/narrow", policies: "two" },
  ];
  const both = "/wide/..%2fnarrow";
  const configured = { ...config({}, { policies: { two, three: { ...two, limit: 3 } } }), rules };

  it("are checked in order until one denies", async () => {
    const log = logged();
    const { fetch, reached } = workerWith(configured);
    const headers = someone();
    const first = await fetch(both, { headers });
    expect(first.headers.get("RateLimit")).toBe('"three";r=2;t=3600, "two";r=1;t=3600');
    expect(first.headers.get("RateLimit-Policy")).toBe('"three";q=3;w=3600, "two";q=2;w=3600');
    expect(await statuses(2, () => fetch(both, { headers }))).toEqual([200, 429]);
    expect(log.lines("denied")).toMatchObject([{ rule: 1, policies: ["two"] }]);
    // The denial by the second rule came after the first one had counted.
    expect(await statuses(1, () => fetch("/wide/x", { headers }))).toEqual([429]);
    expect(reached).toHaveLength(2);
  });

  it("send no message while one of them is known to deny", async () => {
    const { fetch } = workerWith(configured);
    const headers = someone();
    await statuses(3, () => fetch("/narrow", { headers }));
    expect((await fetch(both, { headers })).status).toBe(429);
    const { headers: told } = await fetch("/wide/x", { headers });
    expect(told.get("RateLimit")).toBe('"three";r=2;t=3600');
  });

  it("may only report, each for itself", async () => {
    const log = logged();
    const shadow = { ...rules[1], mode: "shadow" };
    const { fetch } = workerWith({ ...configured, rules: [rules[0], shadow] });
    const headers = someone();
    expect(await statuses(4, () => fetch(both, { headers }))).toEqual([200, 200, 200, 429]);
    expect(log.lines("denied")).toMatchObject([
      { rule: 1, mode: "shadow" },
      { rule: 1, mode: "shadow" },
      { rule: 0, mode: "enforce" },
    ]);
  });

  it("deny a request without a key before any of them is charged", async () => {
    logged();
    const keyed = { ...rules[1], key: "header:x-key", missing: "deny" };
    const { fetch } = workerWith({ ...configured, rules: [rules[0], keyed] });
    const headers = someone();
    expect((await fetch(both, { headers })).status).toBe(403);
    expect((await fetch("/wide/x", { headers })).headers.get("RateLimit")).toContain("r=2");
  });
});

describe("requests that pass", () => {
  it("preflights, unless a rule names OPTIONS", async () => {
    const headers = { ...someone(), Origin: "https://page.example", "Access-Control-Request-Method": "POST" };
    const preflight = { method: "OPTIONS", headers };
    const { fetch } = workerWith(config({}));
    expect(await statuses(4, () => fetch("/", preflight))).toEqual([200, 200, 200, 200]);
    const named = workerWith(config({ method: "OPTIONS" }));
    expect(await statuses(3, () => named.fetch("/", preflight))).toEqual([200, 200, 429]);
  });

  it("WebSockets, which stay as the upstream opened them", async () => {
    const ORIGIN = {
      fetch: (request: Request) => {
        expect(request.headers.get("Upgrade")).toBe("websocket");
        const [client, server] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
        server.accept();
        server.send("hello");
        return new Response(null, { status: 101, webSocket: client });
      },
    };
    const { fetch } = workerWith(config({}), { ORIGIN });
    const response = await fetch("/", { headers: { ...someone(), Upgrade: "websocket" } });
    expect(response.status).toBe(101);
    const message = new Promise((resolve) => response.webSocket?.addEventListener("message", resolve));
    response.webSocket?.accept();
    expect(await message).toMatchObject({ data: "hello" });
  });

  it("no WebSocket that is denied", async () => {
    const { fetch, reached } = workerWith(config({}));
    const headers = { ...someone(), Upgrade: "websocket" };
    expect(await statuses(3, () => fetch("/", { headers }))).toEqual([200, 200, 429]);
    expect(reached).toHaveLength(2);
  });

  it("everything under a shadow rule, which only reports", async () => {
    const log = logged();
    const { fetch, reached } = workerWith(config({ mode: "shadow" }));
    const headers = someone();
    expect(await statuses(4, () => fetch("/", { headers }))).toEqual([200, 200, 200, 200]);
    expect(reached).toHaveLength(4);
    expect(log.lines("denied")).toMatchObject([{ mode: "shadow" }, { mode: "shadow", remembered: false }]);
  });
});

describe("the deny cache", () => {
  const counting = (own: ReturnType<typeof workerWith>) => {
    const calls = { count: 0 };
    const getByName = (name: string) => {
      calls.count += 1;
      return env.LIMITERS.getByName(name);
    };
    Object.assign(own.env, { LIMITERS: { getByName } });
    return calls;
  };

  it("repeats a denial for two seconds without a message to the object", async () => {
    const own = workerWith(config({}));
    const calls = counting(own);
    const headers = someone();
    await statuses(3, () => own.fetch("/", { headers }));
    expect(calls.count).toBe(3);
    vi.setSystemTime(start + 1_999);
    const denied = await own.fetch("/", { headers });
    expect([denied.status, denied.headers.get("Retry-After")]).toEqual([429, "3599"]);
    expect(calls.count).toBe(3);
    vi.setSystemTime(start + 2_000);
    expect((await own.fetch("/", { headers })).status).toBe(429);
    expect(calls.count).toBe(4);
  });

  it("does not apply to the same key under other policies", async () => {
    const rules = [
      { path: "/two", policies: "two" },
      { path: "/three", policies: "three" },
      { path: "/both", policies: ["three", "two"] },
    ];
    const own = workerWith({ ...config({}, { policies: { two, three: { ...two, limit: 3 } } }), rules });
    const calls = counting(own);
    const headers = someone();
    const ask = (path: string) => own.fetch(path, { headers });
    expect(await statuses(4, () => ask("/two"))).toEqual([200, 200, 429, 429]);
    expect(calls.count).toBe(3);
    // The object is the same, and so is what it has counted under each policy.
    expect(await statuses(2, () => ask("/both"))).toEqual([429, 429]);
    expect(calls.count).toBe(4);
    expect(await statuses(5, () => ask("/three"))).toEqual([200, 200, 200, 429, 429]);
    expect(calls.count).toBe(8);
  });

  it("does not apply to a policy of the same name with other numbers", async () => {
    const headers = someone();
    const first = workerWith(config({}));
    expect(await statuses(3, () => first.fetch("/", { headers }))).toEqual([200, 200, 429]);
    const raised = workerWith(config({}, { policies: { two: { ...two, limit: 3 } } }));
    expect(await statuses(2, () => raised.fetch("/", { headers }))).toEqual([200, 429]);
  });

  it("is neither read nor written by a shadow rule", async () => {
    const rules = [
      { path: "/shadow", policies: "two", mode: "shadow" },
      { path: "/enforced", policies: "two" },
    ];
    const own = workerWith({ ...config({}), rules });
    const calls = counting(own);
    const headers = someone();
    logged();
    await statuses(4, () => own.fetch("/shadow", { headers }));
    expect(calls.count).toBe(4);
    expect(await statuses(2, () => own.fetch("/enforced", { headers }))).toEqual([429, 429]);
    expect(calls.count).toBe(5);
    await own.fetch("/shadow", { headers });
    expect(calls.count).toBe(6);
  });

  it("is not used for a lower cost, if denials are counted, or if it is off", async () => {
    const rules = [
      { path: "/dear", policies: "two", cost: 3 },
      { path: "/cheap", policies: "two", cost: 1 },
    ];
    const own = workerWith({ ...config({}), rules });
    const headers = someone();
    expect((await own.fetch("/dear", { headers })).status).toBe(429);
    expect((await own.fetch("/cheap", { headers })).status).toBe(200);
    for (const asking of [
      config({}, { denyCache: false }),
      config({}, { policies: { two: { ...two, denied: "count" } } }),
    ]) {
      const own = workerWith(asking);
      const calls = counting(own);
      const headers = someone();
      await statuses(5, () => own.fetch("/", { headers }));
      expect(calls.count).toBe(5);
    }
  });
});

describe("an object that does not respond", () => {
  const failing = (count: () => Promise<unknown>) => ({ LIMITERS: { getByName: () => ({ count }) } });
  /** Answers that come only when they are told to. */
  const late: (() => void)[] = [];
  const thrown = (properties: object) => () => Promise.reject(Object.assign(new Error("broken"), properties));

  it.each([
    ["failed", thrown({}), 1],
    ["failed", thrown({ retryable: true }), 1],
    ["overloaded", thrown({ overloaded: true, retryable: true }), 1],
    ["timeout", () => new Promise(() => {}), 1],
    ["timeout", () => new Promise((resolve) => late.push(() => resolve("1 1 10 9 0 1000 0 0 1000"))), 1],
  ])("%s: the rule says allow or deny, the answer and the log say which", async (failure, count, calls) => {
    const log = logged();
    const asked = vi.fn(count as () => Promise<unknown>);
    const allowing = workerWith(config({}, { timeout: 5 }), failing(asked));
    const allowed = await allowing.fetch("/", { headers: someone() });
    expect([allowed.status, allowed.headers.get("Tollgate-Error")]).toEqual([200, `${failure}; allowed`]);
    expect(asked).toHaveBeenCalledTimes(calls as number);
    const denying = workerWith(config({ onError: "deny" }, { timeout: 5 }), failing(asked));
    const denied = await denying.fetch("/", { headers: someone() });
    expect([denied.status, denied.headers.get("Tollgate-Error")]).toEqual([503, `${failure}; denied`]);
    for (const answer of late.splice(0)) answer();
    await Promise.resolve();
    expect(denying.reached).toHaveLength(0);
    expect(log.lines("error")).toMatchObject([
      { failure, answer: "allowed", rule: 0 },
      { failure, answer: "denied", rule: 0 },
    ]);
  });

  it("denies nothing under a shadow rule", async () => {
    const log = logged();
    const own = workerWith(config({ mode: "shadow", onError: "deny" }), failing(thrown({})));
    const response = await own.fetch("/", { headers: someone() });
    expect([response.status, response.headers.has("Tollgate-Error")]).toEqual([200, false]);
    expect(log.lines("error")).toMatchObject([{ mode: "shadow", failure: "failed" }]);
  });

  it("lets pages read the response", async () => {
    logged();
    const own = workerWith(config({ onError: "deny" }), failing(thrown({})));
    const { headers } = await own.fetch("/", { headers: { ...someone(), Origin: "https://page.example" } });
    expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
    expect(headers.get("Access-Control-Expose-Headers")).toBe("Retry-After, Tollgate-Error");
  });
});

describe("logs", () => {
  it("have a keyed hash of the key, or the key if so configured", async () => {
    const points: AnalyticsEngineDataPoint[] = [];
    const metrics = {
      TOLLGATE_METRICS: { writeDataPoint: (point: AnalyticsEngineDataPoint) => points.push(point) },
    };
    const log = logged();
    const headers = someone();
    const address = headers["CF-Connecting-IP"] as string;
    await statuses(3, () => workerWith(config({}), metrics).fetch("/", { headers }));
    expect(log.lines("denied")).toMatchObject([
      {
        via: "gateway",
        rule: 0,
        cost: 1,
        mode: "enforce",
        policies: ["two"],
        key: expect.stringMatching(/^[0-9a-f]{24}$/),
      },
    ]);
    expect(log.text()).not.toContain(address);
    expect(JSON.stringify(points)).not.toContain(address);
    expect(points).toHaveLength(1);
    await workerWith(config({}, { logKeys: "plain" })).fetch("/", { headers });
    expect(log.text()).toContain(address);
  });
});

describe("an invalid configuration", () => {
  it("responds with 500 and no details; the log has the errors by their paths", async () => {
    const log = logged();
    const rule = { path: "no", cost: -1, policies: ["two", "three"] };
    const own = workerWith(config(rule, { policies: { two, four: { ...two, limit: 0 } } }));
    const response = await own.fetch("/");
    expect(response.status).toBe(500);
    expect(Object.keys(await response.json<object>())).toEqual(["type", "title", "status"]);
    await own.fetch("/");
    const [line, ...more] = log.lines("misconfigured");
    expect(more).toEqual([]);
    expect(line.errors.map(([path]: [string]) => path)).toEqual([
      "policies.four.limit",
      "rules[0].path",
      "rules[0].cost",
      "rules[0].policies[1]",
    ]);
    expect(own.reached).toHaveLength(0);
  });

  it.each([
    ["rules without an upstream", { upstream: undefined }, "upstream"],
    ["an upstream that is not bound", { upstream: "NOWHERE" }, "upstream"],
    ["an upstream that is bound to something else", { upstream: "TOLLGATE_TOKEN" }, "upstream"],
  ])("%s", async (_, wrong, path) => {
    const log = logged();
    const response = await workerWith(config({}, { onMisconfigured: "pass", ...wrong })).fetch("/");
    expect(response.status).toBe(500);
    expect(log.lines("misconfigured")).toMatchObject([{ errors: [[path, expect.any(String)]] }]);
  });

  it(`passes every request under onMisconfigured = "pass", but accepts no token`, async () => {
    const log = logged();
    const own = workerWith(config({ path: "no" }, { onMisconfigured: "pass", prefix: "/limits" }));
    expect(await statuses(4, () => own.fetch("/_tollgate/v1/hit"))).toEqual([200, 200, 200, 200]);
    expect(own.reached).toHaveLength(4);
    const headers = { Authorization: `Bearer ${token}` };
    expect((await own.fetch("/limits/v1/hit", { method: "POST", headers })).status).toBe(500);
    expect(own.reached).toHaveLength(4);
    expect(log.lines("misconfigured")).toHaveLength(1);
  });

  it("may also be malformed JSON", async () => {
    logged();
    expect((await workerWith({}, { TOLLGATE: "{" }).fetch("/")).status).toBe(500);
    expect(
      (await workerWith({}, { TOLLGATE: JSON.stringify(config({})) }).fetch("/", { headers: someone() }))
        .status,
    ).toBe(200);
  });
});

describe("secrets", () => {
  it("that are empty are an error: everybody knows them", async () => {
    for (const [name, config] of [
      ["TOLLGATE_TOKEN", {}],
      ["TOLLGATE_LOG_SECRET", { upstream: "ORIGIN" }],
    ] as const) {
      const log = logged();
      const { fetch, reached } = workerWith(config, { [name]: "" });
      expect((await fetch("/anything")).status).toBe(500);
      expect(reached).toHaveLength(0);
      expect(log.lines("misconfigured")).toEqual([
        { event: "misconfigured", errors: [[name, "is empty; set it, or delete the secret"]] },
      ]);
      vi.restoreAllMocks();
    }
    const { fetch, reached } = workerWith(
      { upstream: "ORIGIN", onMisconfigured: "pass" },
      { TOLLGATE_TOKEN: "" },
    );
    logged();
    expect((await fetch("/")).status).toBe(200);
    expect(reached).toHaveLength(1);
  });
});

describe("the package's own Worker", () => {
  it("has no demo", async () => {
    const context = createExecutionContext();
    const { ASSETS, ...own } = workerWith({}).env;
    const response = await handlers.fetch(new Request("https://example.com/demo/hit"), own, context);
    expect(response.status).toBe(404);
  });
});

describe("with an upstream", () => {
  it("the page and the demo are off, and only the prefix is not the origin's", async () => {
    const { fetch, reached } = workerWith({ upstream: "ORIGIN" });
    for (const path of ["/", "/index.html", "/demo/hit", "/_tollgate", "/_tollgate/other"]) await fetch(path);
    expect(reached).toHaveLength(5);
    expect((await fetch("/_tollgate/v1/openapi.json")).status).toBe(200);
    expect(reached).toHaveLength(5);
  });
});
