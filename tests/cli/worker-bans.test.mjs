// Of a Worker, `get` and `why` show a ban without the number that stands for no limit.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";
import { tollgate } from "./lib/tollgate.mjs";

const decision = {
  allowed: false,
  count: 2,
  limit: Number.MAX_SAFE_INTEGER,
  remaining: 0,
  retryAfter: 60_000,
  resetAfter: 90_000,
  moreAfter: 60_000,
  policy: "strikes",
  violated: ["strikes"],
  reason: "banned",
};
const denial = {
  at: 4_102_444_800_000,
  times: 3,
  policy: "strikes",
  count: 2,
  limit: Number.MAX_SAFE_INTEGER,
  cost: 1,
  retryAfter: 60_000,
  banned: true,
};

/** A Worker in which a ban holds. */
async function banning(t) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const each = (answer) => JSON.parse(body).map(() => answer);
    const answers = {
      get: () => each({ count: 2 }),
      expires_at: () => each({ expiresAt: 4_102_444_860_000 }),
      peek: () => each(decision),
      why: () => ({ policies: [{ policy: "strikes", count: 2, remaining: 0, decision }], denials: [denial] }),
    };
    const [, operation] = request.url.match(/\/v1\/(\w+)/);
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(answers[operation]()));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { TOLLGATE_REDIS, ...env } = process.env;
  return {
    ...env,
    TOLLGATE_TOKEN: "secret",
    TOLLGATE_URL: `http://127.0.0.1:${server.address().port}/_tollgate`,
  };
}

test("get says that there is no limit, and that a ban denies", async (t) => {
  const env = await banning(t);
  const { stdout, stderr } = await tollgate(["get", "a", "--policy", "strikes"], { env });
  assert.equal(stderr, "");
  assert.match(
    stdout,
    /^count {6}2\nlimit {6}none\nremaining {2}0\nallowed {4}no, banned, retry after 60000 ms\n/,
  );
  const json = JSON.parse((await tollgate(["get", "a", "--policy", "strikes", "--json"], { env })).stdout);
  assert.deepEqual([json.limit, json.remaining, json.reason], [null, 0, "banned"]);
});

test("why counts denials where a ban has no limit", async (t) => {
  const env = await banning(t);
  const { stdout } = await tollgate(["why", "a"], { env });
  assert.match(stdout, /^strikes +2 denials +banned for 1 m +1 m$/m);
  assert.match(stdout, /strikes \(banned\) +2 denials +1 +1 m$/m);
  assert.doesNotMatch(stdout, /9,?007,?199/);
});
