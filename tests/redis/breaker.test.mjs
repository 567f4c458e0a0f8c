// A Redis that does not reply costs a few calls their timeout, and not every request of every limiter; it is found again by
// itself, without a request.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { elapse } from "../lib/elapse.mjs";
import { connect, startServer } from "./lib/server.mjs";

const policy = { algorithm: "fix_window", limit: 1_000, scale: "365d" };

test("after three timeouts all limiters of a client decide at once, and a probe ends that", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(console, "warn", () => {});
  let replies;
  const sent = [];
  const client = {
    send(_key, [command, script]) {
      sent.push(command === "EVAL" && script === "return 1" ? "probe" : "call");
      return replies === undefined ? new Promise(() => {}) : replies(script);
    },
  };
  const limiters = ["a", "b"].map(
    (name) => new RedisLimiter(policy, { client, name, timeout: 160, onError: "deny" }),
  );
  const late = [limiters[0].hit("1"), limiters[0].hit("2"), limiters[1].hit("3")];
  await elapse(t.mock.timers, 150);
  assert.deepEqual(sent, ["call", "call"]);
  await elapse(t.mock.timers, 30);
  for (const { reason } of await Promise.all(late)) assert.equal(reason, "error");
  assert.deepEqual(sent, ["call", "call", "probe"]);

  // No timer runs: these are decided at once.
  for (const limiter of limiters)
    for (const key of ["1", "9"]) assert.equal((await limiter.hit(key)).reason, "error");
  await assert.rejects(limiters[0].get("1"), {
    code: "unanswered",
    message: /the last 3 calls have no reply/,
  });
  assert.equal(sent.length, 3);

  // Probed after 250 ms, 500 ms, and so on, however many requests there are.
  await elapse(t.mock.timers, 800);
  assert.deepEqual(sent.slice(3), ["probe", "probe"]);
  replies = (script) =>
    script === "return 1" ? Promise.resolve(1) : Promise.reject(new Error("ERR reached"));
  await elapse(t.mock.timers, 1_000);
  assert.equal(sent.at(-1), "probe");
  t.mock.timers.reset();
  await assert.rejects(limiters[1].get("1"), { message: /ERR reached/ });
  assert.equal(sent.at(-1), "call");
});

test("a Redis that was stopped works again with the first request after it", {
  timeout: 120_000,
}, async (t) => {
  t.mock.method(console, "warn", () => {});
  const server = await startServer();
  const client = connect(server.port);
  t.after(async () => {
    client.disconnect();
    await server.stop();
  });
  const limiter = new RedisLimiter(policy, { client, timeout: 50, onError: "deny" });
  while ((await limiter.hit("a")).reason === "error");
  server.signal("SIGSTOP");
  for (let hits = 0; hits < 4; hits++) assert.equal((await limiter.hit(`${hits}`)).reason, "error");
  const { calls } = limiter.stats;
  for (let hits = 0; hits < 100; hits++) assert.equal((await limiter.hit(`${hits}`)).reason, "error");
  assert.equal(limiter.stats.calls, calls);
  server.signal("SIGCONT");
  // Replies to what was sent before arrive first.
  await client.ping();
  const patient = new RedisLimiter(policy, { client, timeout: "20s" });
  assert.equal((await patient.hit("new")).count, 1);
});
