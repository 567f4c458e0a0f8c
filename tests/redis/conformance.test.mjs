// The traces recorded from Hammer, through Redis.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { answer, files, inWordsOf, tracesIn } from "../lib/traces.mjs";
import { withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";

const setting = withServer();

for (const file of files) {
  const traces = tracesIn(file);

  describe(file, () => {
    for (const processes of [1, 3]) {
      test(`${processes} of a fleet by turns`, async () => {
        using time = new ControlledTime(setting.redis, traces[0].ops[0].at);
        for (const [number, { policy, ops }] of traces.entries()) {
          const options = { client: time.client, prefix: `${file}:${processes}:${number}:` };
          const fleet = Array.from({ length: processes }, () => new RedisLimiter(policy, options));
          for (const [position, op] of ops.entries()) {
            time.now = op.at;
            const context = `trace ${number}, operation ${position} (${op.op} at ${op.at})`;
            const found = await answer(fleet[position % processes], op);
            assert.deepEqual(inWordsOf(op.expect, found), op.expect, context);
          }
        }
      });
    }
  });
}

test("there is a file for every algorithm that Hammer has", () => assert.equal(files.length, 5));
