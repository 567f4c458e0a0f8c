// Values that were recorded: every version reads them as the one that wrote them did.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { answers } from "./lib/corpus.mjs";
import { withServer } from "./lib/setting.mjs";

const setting = withServer();
const corpus = JSON.parse(readFileSync(new URL("corpus.json", import.meta.url), "utf8"));

test("recorded values come to what they came to", async () => {
  assert.equal(corpus.length, 34);
  for (const recorded of corpus) {
    const found = await answers(setting.redis, recorded);
    assert.deepEqual(found, recorded.expected, JSON.stringify(recorded.policies));
  }
});
