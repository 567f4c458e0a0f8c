// The option `ban` of a guard: a ban beside its policy, for plans and objects too, and errors that say what to write.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { RateLimiter } from "tollgate";
import { rateLimit } from "tollgate/fetch";

const policy = { algorithm: "fix_window", limit: 2, scale: "365d" };
const ban = { after: 3, scale: "1d", for: "1d" };
const request = () => new Request("https://example.com/");

/** Sends so many requests. Returns the responses; `undefined` for one that passed. */
async function responses(guard, times) {
  const all = [];
  for (let count = 0; count < times; count += 1) all.push(await guard(request()));
  return all;
}

test("a ban begins with the last of the denials", async () => {
  const reasons = [];
  const onDecision = ({ reason }) => reasons.push(reason);
  const all = await responses(rateLimit({ policy, ban, key: () => "a", onDecision }), 6);
  assert.deepEqual(
    all.map((response) => response?.status),
    [undefined, undefined, 429, 429, 429, 429],
  );
  assert.deepEqual(reasons, [undefined, undefined, undefined, undefined, "banned", "banned"]);
  const types = await Promise.all(all.slice(3).map(async (response) => (await response.json()).type));
  const names = types.map((type) => type.split("#")[1]);
  assert.deepEqual(names, ["quota-exceeded", "abnormal-usage-detected", "abnormal-usage-detected"]);
  assert.equal(all[5].headers.get("RateLimit-Policy"), '"fix_window";q=2;w=31536000');
});

test("with several policies, and with a name", async () => {
  const several = [policy, { algorithm: "token_bucket", capacity: 9, refillRate: 1 }];
  const violated = [];
  const onDecision = (decision) => violated.push(decision.violated);
  const guard = rateLimit({
    policy: several,
    ban: { ...ban, name: "too often" },
    key: () => "a",
    onDecision,
  });
  await responses(guard, 5);
  assert.deepEqual(violated.at(-1), ["too often"]);
});

test("with the policies of plans, which share it: an upgrade lifts no ban", async () => {
  const plans = { free: policy, paid: { ...policy, limit: 9 } };
  const reasons = [];
  const guard = rateLimit({
    policy,
    ban,
    key: () => "a",
    policyFor: async ({ headers }) => plans[headers.get("plan")],
    onDecision: ({ reason }) => reasons.push(reason),
  });
  for (const plan of ["free", "paid"])
    for (let count = 0; count < 5; count += 1)
      await guard(new Request("https://a.example/", { headers: { plan } }));
  assert.deepEqual(reasons, [...Array(4).fill(undefined), ...Array(6).fill("banned")]);
});

test("with requests that are charged by their responses, which are reservations", async () => {
  const guard = rateLimit({ policy, ban, key: () => "a", charge: "failures" }, async () =>
    Response.json({}, { status: 401 }),
  );
  const statuses = (await responses(guard, 6)).map(({ status }) => status);
  assert.deepEqual(statuses, [401, 401, 429, 429, 429, 429]);
});

/** The options of the guide's login route, as written. */
function optionsOfTheGuide() {
  const guide = readFileSync(new URL("../../docs/bans.md", import.meta.url), "utf8");
  const [, options] = guide.match(/app\.use\("\/login", rateLimit\((\{[\s\S]*?\n\})\)\);/);
  return new Function(`return ${options};`)();
}

test("an office whose good logins come at once is not banned, with the guide's own options", async () => {
  const reasons = [];
  let finish;
  const checked = new Promise((resolve) => {
    finish = resolve;
  });
  const login = rateLimit(
    { ...optionsOfTheGuide(), key: () => "office", onDecision: ({ reason }) => reasons.push(reason) },
    async (request) => {
      await checked;
      return new Response(null, { status: request.headers.get("password") === "right" ? 200 : 401 });
    },
  );
  const attempts = (password, count) =>
    Promise.all(
      Array.from({ length: count }, () =>
        login(new Request("https://a.example/login", { headers: { password } })),
      ),
    );
  const all = attempts("right", 20);
  await new Promise((resolve) => setImmediate(resolve));
  finish();
  const responses = await all;
  assert.deepEqual(
    responses.map(({ status }) => status),
    [...Array(5).fill(200), ...Array(15).fill(429)],
  );
  assert.deepEqual(reasons, [...Array(5).fill(undefined), ...Array(15).fill("reserved")]);
  for (const response of responses.slice(5)) {
    assert.equal(response.headers.get("Retry-After"), "1");
    assert.equal((await response.json()).type.split("#")[1], "quota-exceeded");
  }
  // All of them get in with their next tries, and a guesser does not.
  for (let turn = 0; turn < 3; turn += 1)
    assert.deepEqual(new Set((await attempts("right", 5)).map(({ status }) => status)), new Set([200]));
  for (let turn = 0; turn < 16; turn += 1) await attempts("wrong", 1);
  assert.equal(reasons.at(-1), "banned");
});

test("beside a limiter with its own policies it is an error, as the words of other rate limiters are", () => {
  const rejects = (options, message) =>
    assert.throws(() => rateLimit({ key: () => "a", ...options }), {
      code: /^invalid_|unknown_field/,
      message,
    });
  rejects(
    { limiter: new RateLimiter(policy), ban },
    /^ban is not accepted beside .* use one of its policies: \{ algorithm: "ban"/,
  );
  rejects(
    { policy, ban: 5 },
    'ban: 5 is not accepted; use an object such as { after: 5, scale: "10m", for: "1h" }',
  );
  rejects({ policy, ban: true }, /^ban: true is not accepted; use an object/);
  rejects({ policy, ban: { after: 5, for: "1h" } }, /^scale is required/);
  rejects({ policy, ban: { after: 5, scale: "1m", for: "1h", factor: 2 } }, /^most is required/);
  rejects({ policy, ban: { ...ban, blockDuration: 5 } }, /^"blockDuration" is not a field of ban/);
  for (const name of ["blockDuration", "inMemoryBlockDuration"])
    rejects({ policy, [name]: 900 }, /ban: \{ after: 1, scale: "1m", for: "15m" \}/);
  rejects({ policy, onBanReach: () => {} }, /onDecision/);
});
