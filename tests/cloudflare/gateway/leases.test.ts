// Leases of rules and of the API are apart: a policy that is named like the number of a rule keeps its own limit.

import { createExecutionContext } from "cloudflare:test";
import { expect, test } from "vitest";
import worker from "../../../js/cloudflare/worker.ts";
import { someone, token, workerWith } from "../lib.ts";

test("a policy named 0 holds its limit beside the leases of the first rule", async () => {
  const policies = {
    "0": { algorithm: "fix_window", limit: 5, scale: "1h" },
    large: { algorithm: "fix_window", limit: 10_000, scale: "1h" },
  };
  const rules = [{ path: "/*", key: "ip", policies: "large", onError: "deny" }];
  const { env } = workerWith({ upstream: "ORIGIN", policies, rules, leases: true });
  // What they do later is not waited for: a lease is given back seconds later.
  const fetch = (path: string, init: RequestInit) =>
    worker.fetch(new Request(`https://example.com${path}`, init), env, createExecutionContext());
  const address = someone();
  const passed = async () => (await fetch("/", { headers: address })).status === 200;
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const body = JSON.stringify({ policy: "0", parts: [`ip=${address["CF-Connecting-IP"]}`] });
  const allowed = async () => {
    const response = await fetch("/_tollgate/v1/hit", { method: "POST", headers, body });
    return ((await response.json()) as { allowed: boolean }).allowed;
  };
  const counts = { passed: 0, allowed: 0 };
  for (let hit = 0; hit < 40; hit += 1) {
    counts.passed += Number(await passed());
    counts.allowed += Number(await allowed());
  }
  expect(counts).toEqual({ passed: 40, allowed: 5 });
});
