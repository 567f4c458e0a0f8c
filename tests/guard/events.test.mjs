// Every decision and every error is published once on Node's diagnostics_channel, with the request.

import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import test, { mock } from "node:test";
import { ask } from "./lib/client.mjs";
import { frameworks, served } from "./lib/frameworks.mjs";
import { limiterOf, policyOf } from "./lib/limits.mjs";

const warn = mock.method(console, "warn", () => {});

/** Collects what a channel publishes until the test ends. */
function heard(t, channel) {
  const messages = [];
  const listener = (message, name) => {
    assert.equal(name, channel);
    messages.push(message);
  };
  subscribe(channel, listener);
  t.after(() => unsubscribe(channel, listener));
  return messages;
}

for (const [name, framework] of Object.entries(frameworks)) {
  test(`${name}: every decision, with its key and request`, async (t) => {
    const messages = heard(t, "tollgate:decision");
    const guard = { limiter: limiterOf(policyOf(1)), key: () => "user:42" };
    const url = await served(t, framework, { "/": { guards: [guard] } });
    await ask(url, { headers: { "X-Number": "1" } });
    await ask(url, { headers: { "X-Number": "2" } });
    assert.deepEqual(
      messages.map(({ adapter, key, decision: { allowed, violated }, request }) => [
        adapter,
        key,
        allowed,
        violated,
        framework.header(request, "X-Number"),
      ]),
      [
        [name, "user:42", true, [], "1"],
        [name, "user:42", false, ["api"], "2"],
      ],
    );
  });

  test(`${name}: a decision is published once, whoever makes it`, async (t) => {
    const messages = heard(t, "tollgate:decision");
    const own = { policies: [policyOf(1)], hit: async () => limiterOf(policyOf(1)).peek("x") };
    const object = { hit: async () => limiterOf(policyOf(1)).peek("x") };
    const limiters = {
      memory: { limiter: limiterOf(policyOf(1)) },
      "memory, reserved": { limiter: limiterOf(policyOf(1)), charge: "failures" },
      other: { limiter: own },
      "other, by a limiter of Tollgate": {
        limiter: { policies: [policyOf(1)], hit: (key) => limiterOf(policyOf(1)).hit(key) },
      },
      object: { limiter: { getByName: () => object }, policy: policyOf(1) },
    };
    for (const guard of Object.values(limiters))
      await ask(await served(t, framework, { "/": { guards: [{ ...guard, key: () => "user:42" }] } }));
    assert.deepEqual(
      messages.map(({ limiter, operation, adapter, by, allowed, request }) => [
        limiter,
        operation,
        adapter,
        by,
        allowed,
        request !== undefined,
      ]),
      [
        ["memory", "hit", name, "limiter", true, true],
        ["memory", "reserve", name, "limiter", true, true],
        ["other", "hit", name, "limiter", true, true],
        ["memory", "hit", name, "limiter", true, true],
        ["object", "hit", name, "limiter", true, true],
      ],
    );
  });

  test(`${name}: a listener that throws breaks no response`, async (t) => {
    const logged = t.mock.method(console, "error", () => {});
    for (const onDecision of [() => assert.fail("mine"), async () => assert.fail("mine")]) {
      const guard = { limiter: limiterOf(policyOf(1)), key: () => "user:42", onDecision };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      assert.deepEqual([(await ask(url)).status, (await ask(url)).status], [200, 429]);
    }
    const ours = logged.mock.calls.filter(({ arguments: [text] }) => /onDecision/.test(text));
    assert.equal(ours.length, 4);
  });

  test(`${name}: every error, with what became of the request; one line of log, listener or not`, async (t) => {
    const error = new Error("no connection");
    const limiter = { policies: [policyOf(1)], hit: async () => Promise.reject(error) };
    const serve = (options) =>
      served(t, framework, { "/": { guards: [{ limiter, key: () => 7, ...options }] } });
    warn.mock.resetCalls();
    const url = await serve({ onError: "allow" });
    await ask(url);
    await ask(url);
    assert.deepEqual(
      warn.mock.calls.map(({ arguments: [text] }) => text),
      [
        'tollgate: the limiter failed, and hits are decided without it (onError: "allow"): Error: no connection',
      ],
    );
    const messages = heard(t, "tollgate:error");
    for (const options of [
      { onError: "allow" },
      { onError: "deny" },
      { onError: "throw" },
      { fallback: policyOf(1) },
    ])
      await ask(await serve(options));
    assert.deepEqual(
      messages.map(({ adapter, key, error: { message }, verdict }) => [adapter, key, message, verdict]),
      ["allow", "deny", "throw", "fallback"].map((verdict) => [name, 7, "no connection", verdict]),
    );
    assert.equal(warn.mock.callCount(), 1);
  });
}
