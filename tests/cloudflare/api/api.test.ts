// The HTTP API performs every operation, checks tokens, and answers every invalid request with a typed error.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { logged, seeded, someone, start, token, workerWith } from "../lib.ts";

const config = {
  upstream: "ORIGIN",
  policies: {
    api: { algorithm: "token_bucket", capacity: 5, refillRate: 1 },
    daily: { algorithm: "fix_window", limit: 100, scale: "1d" },
    strikes: { algorithm: "ban", after: 3, scale: "10m", for: "1h" },
  },
};
const { fetch } = workerWith(config);

async function call(operation: string, body: unknown, own: Record<string, string> = {}, on = fetch) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...own };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await on(`/_tollgate/v1/${operation}`, { method: "POST", headers, body: text });
  return { status: response.status, headers: response.headers, body: (await response.json()) as never };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("operations", () => {
  it("are all there", async () => {
    const item = { policy: "api", key: "all" };
    const asked = [
      ["get", item, { count: 5 }],
      ["expires_at", item, { expiresAt: 0 }],
      ["reset", item, { reset: false }],
      ["peek", { ...item, cost: 6 }, { allowed: false, retryAfter: null, violated: ["api"] }],
      ["hit", item, { allowed: true, remaining: 4, retryAfter: 0, policy: "api" }],
      ["inc", { ...item, cost: 2 }, { count: 2 }],
      ["set", { ...item, count: 1 }, { count: 1 }],
      ["hit", { ...item, cost: 2 }, { allowed: false, retryAfter: 1_000 }],
      ["expires_at", item, { expiresAt: start + 4_000 }],
      ["reset", item, { reset: true }],
    ] as const;
    for (const [operation, body, answer] of asked) {
      expect(await call(operation, body), operation).toMatchObject({ status: 200, body: answer });
    }
  });

  it("may be of several policies", async () => {
    const item = { policy: ["api", "daily"], key: "both" };
    expect((await call("hit", { ...item, cost: 3 })).body).toMatchObject({ allowed: true, policy: "api" });
    expect((await call("hit", { ...item, cost: 3 })).body).toMatchObject({
      allowed: false,
      violated: ["api"],
    });
    expect((await call("get", { ...item, of: "daily" })).body).toEqual({ count: 3 });
    expect((await call("get", item)).body).toMatchObject({ code: "unknown_policy" });
  });

  it("come in batches of independent items", async () => {
    const items = [
      ...Array.from({ length: 7 }, () => ({ policy: "api", key: "batch" })),
      { policy: "none", key: "batch" },
      { policy: "api", key: "" },
      { policy: "api", key: "other", cost: 6 },
    ];
    const { status, body } = await call("hit", items);
    expect(status).toBe(200);
    const answers = body as { allowed?: boolean; error?: { code: string } }[];
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(5);
    expect(answers.slice(7)).toMatchObject([
      { error: { code: "unknown_policy" } },
      { error: { code: "invalid_key" } },
      { allowed: false },
    ]);
    const hundred = Array.from({ length: 100 }, (_, number) => ({ policy: "daily", key: `batch:${number}` }));
    expect((await call("hit", hundred)).body).toHaveLength(100);
    expect((await call("hit", [...hundred, hundred[0]])).status).toBe(400);
  });

  it("come a hundred at a time, however long they are", async () => {
    const names = Array.from({ length: 32 }, (_, number) => `${number}`.padStart(64, "p"));
    const policies = Object.fromEntries(names.map((name) => [name, config.policies.daily]));
    const own = workerWith({ policies });
    const items = Array.from({ length: 100 }, (_, number) => ({
      policy: names,
      key: `${String.fromCharCode(number)}`.padEnd(1_024, "\u0001"),
    }));
    const { body } = await call("hit", items, {}, own.fetch);
    expect((body as { allowed: boolean }[]).filter(({ allowed }) => allowed)).toHaveLength(100);
    const held = items.map((item) => ({ ...item, id: `${"0".repeat(32)}.lw.a.s${item.key}`, size: 9 }));
    expect((await call("lease", held, {}, own.fetch)).body).toHaveLength(100);
  });
});

describe("tokens", () => {
  it.each([
    ["none", {}],
    ["no scheme", { Authorization: token }],
    ["another scheme", { Authorization: `Basic ${token}` }],
    ["an empty one", { Authorization: "Bearer " }],
    ["one of the same length", { Authorization: `Bearer ${token.replace("c", "k")}` }],
    ["a shorter one", { Authorization: `Bearer ${token.slice(1)}` }],
    ["a longer one", { Authorization: `Bearer ${token}x` }],
    ["a very long one", { Authorization: `Bearer ${token.repeat(100)}` }],
  ])("%s: 401", async (_, own) => {
    const headers = { "Content-Type": "application/json", ...own };
    const response = await fetch("/_tollgate/v1/hit", { method: "POST", headers, body: "{}" });
    expect(response.status).toBe(401);
    expect(response.headers.get("WWW-Authenticate")).toContain("Bearer");
  });

  it("are compared in constant time: by digests of one length", async () => {
    const compare = vi.spyOn(crypto.subtle, "timingSafeEqual");
    for (const given of ["a", token.slice(1), token, token.repeat(100)])
      await call("hit", {}, { Authorization: `Bearer ${given}` });
    const lengths = compare.mock.calls.flat().map((digest) => (digest as ArrayBuffer).byteLength);
    expect(lengths).toEqual(Array(8).fill(32));
    expect(compare.mock.results.map(({ value }) => value)).toEqual([false, false, true, false]);
  });

  it("that are wrong are limited by address, and the right one of that address is not", async () => {
    const log = logged();
    const client = someone();
    const right = { ...client, Authorization: `Bearer ${token}` };
    const wrong = { ...client, Authorization: "Bearer wrong" };
    const item = { policy: "api", key: "guessed" };
    const guess = async () => (await call("hit", item, wrong)).status;
    for (let count = 0; count < 10; count += 1) expect(await guess()).toBe(401);
    const denied = await call("hit", item, wrong);
    expect([denied.status, denied.headers.get("Retry-After")]).toEqual([429, "6"]);
    expect(denied.body).toMatchObject({ "violated-policies": ["wrong-tokens"] });
    expect(log.lines("denied")).toMatchObject([
      { via: "api", operation: "token", policies: ["wrong-tokens"], cost: 1 },
    ]);
    // Four wrong ones a second, and the right one in between: remembered denials are for wrong ones too.
    for (let count = 1; count <= 20; count += 1) {
      vi.setSystemTime(start + count * 250);
      expect((await call("peek", item, right)).status).toBe(200);
      expect(await guess()).toBe(429);
    }
    vi.setSystemTime(start + 6_000);
    expect([await guess(), await guess()]).toEqual([401, 429]);
  });

  it("that are right or not there are not counted", async () => {
    const client = someone();
    const asked = vi.fn();
    const own = workerWith(config, { LIMITERS: { getByName: asked } });
    for (const Authorization of ["", "Bearer", `Bearer ${token}`])
      await call("other", {}, { ...client, Authorization }, own.fetch);
    expect((await call("hit", [], { ...client, Authorization: "" }, own.fetch)).status).toBe(401);
    expect((await call("hit", [], { ...client }, own.fetch)).status).toBe(400);
    expect(asked).not.toHaveBeenCalled();
  });

  it("that are wrong are rejected also if they cannot be counted", async () => {
    logged();
    const fail = () => Promise.reject(new Error("broken"));
    const LIMITERS = { getByName: () => ({ count: fail, lease: fail, question: fail }) };
    const own = workerWith(config, { LIMITERS });
    const wrong = { ...someone(), Authorization: "Bearer wrong" };
    for (let count = 0; count < 12; count += 1)
      expect((await call("hit", {}, wrong, own.fetch)).status).toBe(401);
  });

  it("403 where none is configured, and how to set one", async () => {
    const own = workerWith(config, { TOLLGATE_TOKEN: undefined });
    const answer = await call("hit", {}, {}, own.fetch);
    expect(answer).toMatchObject({
      status: 403,
      body: { detail: expect.stringContaining("secret put TOLLGATE_TOKEN") },
    });
  });
});

describe("invalid requests", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

  it.each([
    ["no JSON", "{", 400],
    ["nothing", "", 400],
    ["a number", "7", 400],
    ["null", "null", 400],
    ["an empty batch", "[]", 400],
    ["deep JSON", nested(100_000), 400],
    ["deep items", `{"policy":${nested(50)},"key":"a"}`, 400],
    ["a huge body", JSON.stringify({ policy: "api", key: "a".repeat(2_100_000) }), 413],
    ["a cost of null", '{"policy":"api","key":"a","cost":null}', 400],
    ["a cost of no policy", '{"policy":"api","key":"a","cost":{}}', 400],
    ["a cost that is a list", '{"policy":"api","key":"a","cost":[1]}', 400],
    ["a long key", JSON.stringify({ policy: "api", key: "a".repeat(1_025) }), 400],
    ["a line break in the policy", JSON.stringify({ policy: "api\r\nX: y", key: "a" }), 400],
    ["a prototype", '{"__proto__":{"policy":"api"},"key":"a"}', 400],
  ])("%s", async (_, body, status) => {
    expect(await call("hit", body)).toMatchObject({ status, body: { status } });
  });

  it("keys without a spelling in UTF-8 are rejected", async () => {
    for (const key of ["\ud800", "a\udfffb", "\udc00\ud800"]) {
      const { status, body } = await call("hit", { policy: "api", key });
      expect({ status, body }).toMatchObject({ status: 400, body: { code: "invalid_key" } });
    }
    for (const byte of [0x80, 0xff]) {
      const [start, end] = ['{"policy":"api","key":"', '"}'].map((text) => new TextEncoder().encode(text));
      const bytes = new Uint8Array([...(start as Uint8Array), byte, ...(end as Uint8Array)]);
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      const response = await fetch("/_tollgate/v1/hit", { method: "POST", headers, body: bytes });
      expect([response.status, await response.json()]).toMatchObject([400, { code: "invalid_request" }]);
    }
    const policy = (await call("hit", { policy: "\ud800", key: "a" })).body;
    expect(policy).toMatchObject({ status: 400, code: "unknown_policy" });
    expect((await call("get", { policy: "api", key: "\ufffd" })).body).toEqual({ count: 5 });
  });

  it("of another type, method or path", async () => {
    expect((await call("hit", {}, { "Content-Type": "text/plain" })).status).toBe(415);
    expect((await call("hit", {}, { "Content-Type": "" })).status).toBe(415);
    expect((await call("destroy", {})).status).toBe(404);
    const get = await fetch("/_tollgate/v1/hit", { headers: { Authorization: `Bearer ${token}` } });
    expect([get.status, get.headers.get("Allow")]).toEqual([405, "POST, OPTIONS"]);
    expect(await get.json()).toMatchObject({ title: "Use POST with a JSON body" });
  });

  it("change no header, whatever the key is", async () => {
    for (const key of ["a\r\nSet-Cookie: b", "\u0000", "😀", "../../x"]) {
      const answer = await call("hit", { policy: "api", key });
      expect(answer.status).toBe(200);
      expect(answer.headers.has("Set-Cookie")).toBe(false);
    }
  });

  it("10,000 at random: no failure, and the limit holds", async () => {
    const log = logged();
    const errors = vi.spyOn(console, "error");
    const random = seeded(2);
    const pick = <Value>(...values: Value[]) => values[random(values.length)];
    const value = (): unknown =>
      pick<() => unknown>(
        () => null,
        () => random(2 ** 32) * 1e9 - 1e17,
        () => pick(0, 1, 2, -1, 1.5),
        () => pick("api", "daily", "x", "", "ip", "\r\n"),
        () => pick("ip=192.0.2.7", "ip=::1/64", "ip=", "path=/a;b/c", "path=/%", "constant:a", "constant:"),
        () =>
          pick("header:x=\ud800", "header:authorization=Basic =", "cookie:id=%4", "cookie:id=;", "cookie:=a"),
        () => pick("/ip=9:192.0.2.7", "/ip=9:", "/key=1:é", "/sha256=", "/a=99999999999999999999:", "/"),
        () => [value()],
        () => ({ key: value() }),
      )?.();
    const body = (): unknown =>
      pick<() => unknown>(
        value,
        () => ({ policy: value(), key: value(), cost: value() }),
        () => ({
          policy: pick("api", value()),
          parts: pick(value(), [value(), value()]),
          count: pick(1, undefined),
        }),
        () => [body()],
      )?.();
    const names = ["hit", "peek", "inc", "set", "get", "expires_at", "reset", "lease", "", "x"];
    const taken: Record<string, number> = {};
    /** A hit that is right, on a key that nothing else touches. */
    const hit = async () => {
      const item = { policy: "daily", key: `among the random:${random(5)}`, cost: random(3) };
      const { status, body } = await call("hit", item);
      if ((body as { allowed: boolean }).allowed) taken[item.key] = (taken[item.key] ?? 0) + item.cost;
      return { status };
    };
    for (let round = 0; round < 100; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, at) => (at % 10 ? call(pick(...names) as string, body()) : hit())),
      );
      for (const { status } of answers) expect([200, 400, 404]).toContain(status);
    }
    expect(Object.values(taken)).toEqual(Array(5).fill(config.policies.daily.limit));
    expect(errors).not.toHaveBeenCalled();
    expect(log.lines("error")).toEqual([]);
  });
});

describe("the OpenAPI document", () => {
  interface Schema {
    type?: string | string[];
    oneOf?: Schema[];
    properties?: Record<string, Schema>;
    additionalProperties?: boolean | Schema;
    enum?: unknown[];
    required?: string[];
    items?: Schema;
    minItems?: number;
    minProperties?: number;
    maxItems?: number;
    pattern?: string;
    minLength?: number;
    maxLength?: number;
    minimum?: number;
    maximum?: number;
    $ref?: string;
  }

  interface Document {
    servers: { url: string }[];
    paths: Record<
      string,
      {
        post: {
          requestBody: { content: Record<string, { schema: Schema }> };
          responses: Record<string, { content: Record<string, { schema: Schema }> }>;
        };
      }
    >;
  }

  const typeOf = (value: unknown) => {
    if (value === null) return "null";
    if (Array.isArray(value)) return "array";
    return Number.isInteger(value) ? "integer" : typeof value;
  };
  const within = (number: number, least = 0, most = Number.POSITIVE_INFINITY) =>
    number >= least && number <= most;

  /** As much of JSON Schema as the document uses. */
  function fits(schema: Schema, value: unknown, root: unknown): boolean {
    if (schema.$ref) {
      const path = schema.$ref.slice(2).split("/");
      return fits(path.reduce((at, name) => (at as never)[name], root) as Schema, value, root);
    }
    if (schema.enum) return schema.enum.includes(value);
    if (schema.oneOf) return schema.oneOf.some((one) => fits(one, value, root));
    const type = typeOf(value);
    if (schema.type && ![schema.type].flat().includes(type)) return false;
    if (typeof value === "string" && !new RegExp(schema.pattern ?? "").test(value)) return false;
    if (typeof value === "string") return within([...value].length, schema.minLength, schema.maxLength);
    if (typeof value === "number") return within(value, schema.minimum, schema.maximum);
    if (Array.isArray(value))
      return (
        within(value.length, schema.minItems, schema.maxItems) &&
        value.every((each) => fits(schema.items ?? {}, each, root))
      );
    if (type !== "object") return true;
    const fields = value as Record<string, unknown>;
    return (
      within(Object.keys(fields).length, schema.minProperties) &&
      (schema.required ?? []).every((name) => name in fields) &&
      Object.keys(fields).length >= (schema.minProperties ?? 0) &&
      Object.entries(fields).every(([name, each]) => {
        const field = schema.properties?.[name];
        const others = schema.additionalProperties;
        if (field === undefined && typeof others === "object") return fits(others, each, root);
        return field ? fits(field, each, root) : others !== false;
      })
    );
  }

  const read = async () => (await fetch("/_tollgate/v1/openapi.json")).json<Document>();
  const id = "0123456789abcdef0123456789abcdef.lw.a.sdescribed";
  const fieldsOf: Record<string, Record<string, unknown>> = {
    "/v1/undo": { key: "described", id: "000000000000002a.lw.0" },
    "/v1/set": { key: "described", count: 1 },
    "/v1/settle": { id },
    "/v1/cancel": { id },
    "/v1/extend": { id, ttl: "1m" },
    "/v1/ban": { key: "described", policy: "strikes", for: "1h" },
    "/v1/unban": { key: "described", policy: "strikes" },
    "/v1/except": { key: "described", exception: { api: { limit: 5 } }, for: "1h" },
  };
  const itemOf = (path: string) => ({ policy: "api", ...(fieldsOf[path] ?? { key: "described" }) });

  it("describes every response: its status, its type and its shape", async () => {
    const document = await read();
    expect(document.servers).toEqual([{ url: "/_tollgate" }]);
    expect(Object.keys(document.paths)).toHaveLength(17);
    const fail = () => Promise.reject(new Error("broken"));
    const LIMITERS = { getByName: () => ({ count: fail, lease: fail, question: fail }) };
    const [closed, broken] = [{ TOLLGATE_TOKEN: undefined }, { LIMITERS }].map(
      (more) => workerWith(config, more).fetch,
    );
    logged();
    for (const [path, { post }] of Object.entries(document.paths)) {
      const seen: number[] = [];
      const check = async (body: unknown, own = {}, on = fetch) => {
        const answer = await call(path.replace("/v1/", ""), body, own, on);
        seen.push(answer.status);
        const type = answer.headers.get("Content-Type") as string;
        const schema = post.responses[answer.status]?.content[type]?.schema as Schema;
        expect(fits(schema, answer.body, document), `${path} ${answer.status}`).toBe(true);
        expect(fits(schema, { other: 1 }, document)).toBe(false);
      };
      const item = itemOf(path);
      await check(item);
      await check([item, { ...item, policy: "none" }]);
      await check({ ...item, policy: "none" });
      await check(item, { Authorization: "" });
      await check(item, {}, closed);
      await check("x".repeat(2_100_000));
      await check(item, { "Content-Type": "text/plain" });
      await check(item, {}, broken);
      const wrong = { ...someone(), Authorization: "Bearer wrong" };
      for (let count = 0; count < 11; count += 1) await check(item, wrong);
      expect([...new Set(seen)].sort()).toEqual(Object.keys(post.responses).map(Number));
    }
  });

  it("describes every request: the API rejects what its schema rejects, and nothing else", async () => {
    const document = await read();
    for (const [path, { post }] of Object.entries(document.paths)) {
      const { schema } = post.requestBody.content["application/json"] as { schema: Schema };
      const item = itemOf(path);
      const { key: _, ...keyless } = item as { key?: string };
      const ofRules = [
        "ip=::1",
        ["ip=::1", "constant:a"],
        "/ip=3:::1",
        "path=/",
        "header:a=b",
        ["cookie:a=b"],
      ];
      const ofNone = [[], "", [""], 7, [7], "user=4", "ip=", "ip", ["header:=a"], {}];
      const bodies: unknown[] = [
        ...[...ofRules, ...ofNone].map((parts) => ({ ...keyless, parts })),
        { ...item, parts: "ip=::1" },
        keyless,
        item,
        [item, item],
        { ...item, policy: [item.policy] },
        [],
        Array.from({ length: 101 }, () => item),
        null,
        7,
        {},
        { ...item, key: "" },
        { ...item, key: 7 },
        { ...item, key: "k".repeat(1_025) },
        { ...item, policy: 7 },
        { ...item, policy: [] },
        { ...item, other: 1 },
        { ...item, of: item.policy },
        { ...item, of: 7 },
        { ...item, id },
        { ...item, id: 7 },
        { ...item, reservations: true },
        { ...item, reservations: 1 },
        { ...item, undoable: true },
        { ...item, undoable: 1 },
        ...["1m", 1, 0, -1, 0.5, []].map((length) => ({ ...item, for: length })),
        { ...item, ttl: 1 },
        { ...item, ttl: 0 },
        { ...item, ttl: 10_001 },
        { ...item, ttl: 86_400_001 },
        { ...item, ttl: [] },
        ...["cost", "used"].flatMap((field) =>
          [{}, { api: 1 }, { api: -1 }, { api: "1" }, []].map((value) => ({ ...item, [field]: value })),
        ),
        ...["cost", "count", "used", "size"].flatMap((field) =>
          [0, 5, -1, 0.5, "1", 2 ** 53].map((value) => ({ ...item, [field]: value })),
        ),
      ];
      for (const body of bodies) {
        const { status } = await call(path.replace("/v1/", ""), body);
        expect(status, `${path} ${JSON.stringify(body).slice(0, 80)}`).toBe(
          fits(schema, body, document) ? 200 : 400,
        );
      }
    }
  });
});
