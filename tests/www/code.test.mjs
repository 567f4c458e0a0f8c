// The code that the playground offers to copy compiles, and decides as the page does.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { describe } from "node:test";
import { RateLimiter } from "tollgate";
import { unstable_readConfig as readConfig } from "wrangler";
import { inProject } from "../../scripts/lib/paths.mjs";
import { algorithms, policiesOf, policyOf } from "../../www/algorithms.js";
import { languages } from "../../www/parts/code.js";
import { firstState } from "../../www/state.js";

const state = { ...firstState(), limit: 7, scale: 500, capacity: 7, rate: 3, per: 60_000 };
const policies = algorithms.flatMap(({ id }) =>
  id.endsWith("bucket")
    ? [policyOf(id, state)]
    : ["free", "count"].map((denied) => policyOf(id, { ...state, denied })),
);
const title = ({ algorithm, denied }) => [algorithm, denied].filter(Boolean).join(", ");

describe("the code to copy does what the page does", () => {
  for (const policy of policies) {
    test(`TypeScript: ${title(policy)}`, () => {
      const code = languages.typescript(policy, 2).replace(/^import .*\n/, "");
      const copied = new Function("RateLimiter", `${code}; return { limiter, allowed };`)(RateLimiter);
      assert.equal(copied.allowed, true);
      assert.deepEqual(copied.limiter.policies, [policy]);
    });
  }

  const ban = policiesOf("fix_window", { ...state, banAfter: 4, banFor: 2_000 })[1];

  test("TypeScript: beside a ban", () => {
    const code = languages.typescript(policies[0], 2, ban).replace(/^import .*\n/, "");
    const { limiter } = new Function("RateLimiter", `${code}; return { limiter };`)(RateLimiter);
    assert.deepEqual(limiter.policies, [policies[0], ban]);
  });

  test("wrangler.toml: all of them, read by the Worker's own code", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-"));
    const rust = await import(inProject("build/worker/tollgate.js"));
    rust.initSync({ module: readFileSync(inProject("build/worker/tollgate_bg.wasm")) });
    for (const policy of policies) {
      const file = join(folder, "wrangler.toml");
      const text = languages.wrangler(policy, 2);
      writeFileSync(file, `name = "copied"\ncompatibility_date = "2026-01-01"\n\n${text}\n`);
      const { vars } = readConfig({ config: file });
      assert.deepEqual(vars.TOLLGATE.policies.api, policy);
      assert.doesNotThrow(() => new rust.Gateway(JSON.stringify(vars.TOLLGATE)), title(policy));
    }
    writeFileSync(
      join(folder, "wrangler.toml"),
      `name = "copied"\n\n${languages.wrangler(policies[0], 1, ban)}\n`,
    );
    const { vars } = readConfig({ config: join(folder, "wrangler.toml") });
    assert.deepEqual(vars.TOLLGATE.policies, { api: policies[0], ban });
    assert.doesNotThrow(() => new rust.Gateway(JSON.stringify(vars.TOLLGATE)));
    rmSync(folder, { recursive: true });
  });

  test("Rust: the constructors of the crate", () => {
    const source = readFileSync(inProject("src/policy.rs"), "utf8");
    for (const policy of policies) {
      assert.match(languages.rust(policy, 2, ban), /Policy::ban\(4, "1m", "2s"\)\?;\n.*\[policy, ban\]/);
      const code = languages.rust(policy, 2);
      const [, name, given] = code.match(/Policy::(\w+)\((.*?)\)\?/);
      const [, taken] = source.match(new RegExp(`pub fn ${name}\\((.*)\\) -> Result`));
      assert.equal(given.split(", ").length, taken.split(", ").length);
      assert.equal(code.includes(".denied(Denied::Free)?"), policy.denied === "free");
    }
  });
});
