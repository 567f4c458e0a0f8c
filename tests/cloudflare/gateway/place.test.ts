// `locationHint` and `jurisdiction` reach every call of an object, and workerd takes them, as far as it has them.

import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { logged, someone, statuses, token, workerWith } from "../lib.ts";

const base = {
  upstream: "ORIGIN",
  policies: { api: { algorithm: "fix_window", limit: 2, scale: "1h" } },
  rules: [{ path: "/*", key: "ip", policies: "api" }],
};

/** A namespace that passes calls on, and records where objects were asked for. */
function recording() {
  const asked: unknown[][] = [];
  const namespaceIn = (jurisdiction: string | undefined) => ({
    getByName: (name: string, options?: unknown) => {
      asked.push([jurisdiction, options]);
      return env.LIMITERS.getByName(name);
    },
    jurisdiction: (name: string) => namespaceIn(name),
  });
  return { asked, LIMITERS: namespaceIn(undefined) };
}

/** Sends requests through the gateway, the API, and with a wrong token: each calls an object. */
async function calls(config: Record<string, unknown>): Promise<unknown[][]> {
  const { asked, LIMITERS } = recording();
  const { fetch } = workerWith({ ...base, ...config }, { LIMITERS });
  const headers = someone();
  expect(await statuses(3, () => fetch("/", { headers }))).toEqual([200, 200, 429]);
  const api = (token: string) =>
    fetch("/_tollgate/v1/hit", {
      method: "POST",
      headers: { ...headers, Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ key: "a", policy: "api" }),
    });
  expect((await api(token)).status).toBe(200);
  expect((await api("wrong")).status).toBe(401);
  expect(asked.length).toBeGreaterThanOrEqual(4);
  return [...new Set(asked.map((each) => JSON.stringify(each)))].map((each) => JSON.parse(each));
}

test("every call of an object has the place of the configuration", async () => {
  expect(await calls({})).toEqual([[null, null]]);
  expect(await calls({ locationHint: "weur" })).toEqual([[null, { locationHint: "weur" }]]);
  expect(await calls({ jurisdiction: "eu" })).toEqual([["eu", null]]);
  expect(await calls({ locationHint: "weur", jurisdiction: "eu" })).toEqual([
    ["eu", { locationHint: "weur" }],
  ]);
});

test("workerd takes a location, and counts as before", async () => {
  const { fetch } = workerWith({ ...base, locationHint: "apac-ne" });
  const headers = someone();
  expect(await statuses(3, () => fetch("/", { headers }))).toEqual([200, 200, 429]);
});

test("workerd has no jurisdictions: the limiter fails there, rather than to count elsewhere", async () => {
  const log = logged();
  const { fetch } = workerWith({ ...base, jurisdiction: "eu", onError: "deny" });
  expect((await fetch("/", { headers: someone() })).status).toBe(503);
  expect(log.text()).toContain("Jurisdiction restrictions are not implemented in workerd");
});

test("another place is an error of the configuration", async () => {
  const log = logged();
  const { fetch } = workerWith({ ...base, locationHint: "mars" });
  expect((await fetch("/", { headers: someone() })).status).toBe(500);
  const [line] = log.lines("misconfigured");
  expect(line.errors).toEqual([
    ["locationHint", expect.stringMatching(/^"mars" is not one of "wnam", "enam", /)],
  ]);
});
