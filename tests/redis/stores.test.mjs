// A limiter over Redis behind another rate limiter's store.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { ExpressStore } from "tollgate/stores";
import { withServer } from "./lib/setting.mjs";

const setting = withServer();
const policy = { algorithm: "sliding_window", limit: 5, scale: "1d" };

test("the stores of other rate limiters count in it", async () => {
  const store = new ExpressStore(new RedisLimiter({ ...policy, denied: "count" }, setting.options()));
  store.init?.({ windowMs: 86_400_000 });
  const hits = [];
  for (let turn = 0; turn < 7; turn++) hits.push((await store.increment("a")).totalHits);
  assert.deepEqual(hits.slice(0, 5), [1, 2, 3, 4, 5]);
  assert.ok(hits[5] > 5 && hits[6] > 5);
});
