// Three processes with one budget in Redis charge what the provider counts, to the token; where it says no usage, no less
// than what was delivered; and for a process that dies what it had reserved, however many calls were in flight.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { after, before, beforeEach, test } from "node:test";
import { budgetFetch } from "tollgate/ai";
import { RedisLimiter } from "tollgate/redis";
import { withServer } from "../redis/lib/setting.mjs";
import { ControlledTime } from "../redis/lib/time.mjs";
import { startProvider } from "./lib/provider.mjs";
import { policies, priceOf, prices, until } from "./lib/setting.mjs";

const setting = withServer();
const prefix = "budgets:";
let provider;
const members = [];

/** Starts a process, which ends with this one. */
async function startMember() {
  const worker = new URL("lib/worker.mjs", import.meta.url);
  const member = fork(worker, [String(setting.server.port), provider.url, prefix]);
  members.push(member);
  await messageOf(member);
  return member;
}

/** Returns the next message of a process; throws if it ends before. */
async function messageOf(member) {
  const end = once(member, "exit").then(() => [{ error: "a process has ended" }]);
  const [message] = await Promise.race([once(member, "message"), end]);
  assert.equal(message.error, undefined);
  return message;
}

before(async () => {
  provider = await startProvider();
});
after(async () => {
  for (const member of members) member.kill("SIGKILL");
  await provider.stop();
});
beforeEach(() => {
  provider.ledger.length = 0;
});

/** Has processes ask side by side, each its own, and returns what was delivered to each. */
function asked(fleet, asks) {
  return Promise.all(
    fleet.map(async (member, number) => {
      member.send({ asks: asks(number) });
      return (await messageOf(member)).delivered;
    }),
  );
}

const names = policies().map(({ name }) => name);

async function countsOf(limiter, key) {
  const counts = await Promise.all(names.map((name) => limiter.get(key, name)));
  return Object.fromEntries(names.map((name, at) => [name, counts[at]]));
}

const apis = ["/chat/completions", "/responses", "/messages"];
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

test("the sum of what is charged is the sum of what the provider says", async () => {
  const fleet = await Promise.all([startMember(), startMember(), startMember()]);
  const each = 40;
  await asked(fleet, (process) =>
    Array.from({ length: each }, (_, number) => ({
      key: "said",
      api: apis[number % 3],
      stream: number % 4 !== 0,
      output: 1 + ((7 * number + process) % 60),
      perEvent: 1 + (number % 3),
      cached: number % 5,
      // In the middle of a conversation.
      ...(number % 6 === 5 && { fail: 429, times: 2, id: `${process} ${number}` }),
    })),
  );
  const limiter = new RedisLimiter(policies(), { ...setting.options(), prefix });
  const counts = await countsOf(limiter, "said");
  const { ledger } = provider;
  assert.equal(ledger.length, 3 * each);
  assert.ok(ledger.every(({ said }) => said));
  const [input, output] = ["input", "output"].map((field) => sum(ledger.map((call) => call[field])));
  assert.deepEqual(counts, {
    requests: 3 * each,
    tokens: input + output,
    inputTokens: input,
    outputTokens: output,
    usd: sum(ledger.map((call) => priceOf("gpt-5", { ...call, cached: call.plan.cached }))),
    running: 0,
  });
});

test("where the provider says no usage, no less is charged than was delivered", async () => {
  const fleet = await Promise.all([startMember(), startMember(), startMember()]);
  const plans = [
    { usage: "none" },
    { usage: "none", cut: 20 },
    { cut: 20 },
    { error: 20 },
    { stall: 20, abort: 20 },
    { stall: 20, leave: 20 },
    {
      usage: {
        prompt_tokens: -1,
        completion_tokens: "9",
        input_tokens: Number.MAX_VALUE,
        output_tokens: 0.5,
      },
    },
  ];
  const each = 2 * 3 * plans.length;
  const delivered = await asked(fleet, () =>
    Array.from({ length: each }, (_, number) => ({
      key: "unsaid",
      api: apis[Math.floor(number / plans.length) % 3],
      stream: true,
      output: 50,
      ...plans[number % plans.length],
    })),
  );
  const limiter = new RedisLimiter(policies(), { ...setting.options(), prefix });
  const counts = await countsOf(limiter, "unsaid");
  const output = sum(delivered.flat());
  assert.ok(delivered.flat().every((tokens) => tokens >= 20));
  const input = sum(provider.ledger.map((call) => call.input));
  assert.ok(counts.outputTokens >= output, `${counts.outputTokens} of ${output}`);
  assert.ok(counts.outputTokens < 2 * output, `${counts.outputTokens} of ${output}`);
  assert.ok(counts.inputTokens >= input);
  assert.ok(counts.usd >= priceOf("gpt-5", { input, output }));
  assert.deepEqual([counts.requests, counts.running], [3 * each, 0]);
});

test("a process that is killed in a stream is charged as it had reserved, when its reservation ends", async () => {
  const member = await startMember();
  member.send({
    asks: [{ key: "killed", api: "/messages", stream: true, output: 50, stall: 10, crash: 10 }],
  });
  await messageOf(member);
  member.kill("SIGKILL");
  await once(member, "exit");
  using time = new ControlledTime(setting.redis, Date.now());
  const limiter = new RedisLimiter(policies(), { ...setting.options({ client: time.client }), prefix });
  const running = await countsOf(limiter, "killed");
  assert.deepEqual([running.running, running.outputTokens], [1, 200]);
  time.now += 60_000;
  assert.deepEqual(await countsOf(limiter, "killed"), { ...running, running: 0 });
  await until(() => provider.ledger.at(-1).hasEnded, "the end of the connection");
});

test("of three processes that are killed among many calls, no less is charged than the provider counts", async () => {
  const fleet = await Promise.all([startMember(), startMember(), startMember()]);
  const most = 200;
  const each = 60;
  /** Ends each process in the middle of its calls, and starts another that goes on with the key. */
  const killed = fleet.map(async (member, number) => {
    member.send({
      asks: Array.from({ length: each }, (_, call) => ({
        key: "kills",
        api: apis[call % 3],
        stream: call % 4 !== 0,
        output: 1 + ((11 * call + number) % 150),
        cached: call % 5,
        ...(call === 20 + 10 * number && { stall: 1, crash: 1 }),
      })),
    });
    await messageOf(member);
    member.kill("SIGKILL");
    await once(member, "exit");
    const next = await startMember();
    next.send({
      asks: Array.from({ length: 10 }, () => ({ key: "kills", api: "/responses", stream: true, output: 30 })),
    });
    await messageOf(next);
  });
  await Promise.all(killed);
  await until(() => provider.ledger.every(({ hasEnded }) => hasEnded), "the end of all connections");
  using time = new ControlledTime(setting.redis, Date.now());
  const limiter = new RedisLimiter(policies(), { ...setting.options({ client: time.client }), prefix });
  const before = await countsOf(limiter, "kills");
  // The reservations of the dead are charged when they end.
  time.now += 120_000;
  const counts = await countsOf(limiter, "kills");
  assert.deepEqual(counts, { ...before, running: 0 });
  assert.ok(before.running >= 3, `${before.running} calls of the dead`);
  const { ledger } = provider;
  const [input, output] = ["input", "output"].map((field) => sum(ledger.map((call) => call[field])));
  const usd = sum(ledger.map((call) => priceOf("gpt-5", { ...call, cached: call.plan.cached })));
  assert.ok(counts.requests >= ledger.length);
  assert.ok(counts.inputTokens >= input && counts.outputTokens >= output);
  assert.ok(counts.usd >= usd, `${counts.usd} of ${usd}`);
  // At most what the calls of the dead had reserved beyond what they used.
  assert.ok(counts.outputTokens <= output + before.running * most);
});

test("more than 128 calls of a key are in flight, up to 1,024, and each is charged", async () => {
  const limiter = new RedisLimiter(
    policies().map((policy) => (policy.name === "running" ? { ...policy, limit: 1_000 } : policy)),
    { ...setting.options(), prefix: "flight:" },
  );
  const gate = Promise.withResolvers();
  let running = 0;
  const fetch = budgetFetch({
    limiter,
    key: "a",
    prices,
    fetch: async () => {
      running += 1;
      await gate.promise;
      return Response.json({ usage: { prompt_tokens: 5, completion_tokens: 3 } });
    },
  });
  const body = JSON.stringify({ model: "gpt-5", messages: [], max_tokens: 100 });
  const ask = () => fetch("https://x/v1/chat/completions", { method: "POST", body });
  const asked = Array.from({ length: 1_000 }, ask);
  await until(() => running === 1_000, "the calls");
  assert.equal((await ask()).status, 429);
  const flying = await countsOf(limiter, "a");
  assert.deepEqual([flying.requests, flying.outputTokens, flying.running], [1_000, 100_000, 1_000]);
  gate.resolve();
  for (const { status } of await Promise.all(asked)) assert.equal(status, 200);
  assert.deepEqual(await countsOf(limiter, "a"), {
    requests: 1_000,
    tokens: 8_000,
    inputTokens: 5_000,
    outputTokens: 3_000,
    usd: 1_000 * priceOf("gpt-5", { input: 5, output: 3 }),
    running: 0,
  });
});
