// The packed package in surroundings that have less than Node: a vm context without TextDecoder, as jsdom makes it under
// Jest, and TypeScript projects without the types of Node or a library with Symbol.dispose.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { compileFunction, createContext, runInContext } from "node:vm";
import { bin } from "../../scripts/lib/paths.mjs";
import { before } from "../lib/hooks.mjs";
import { freshProject, run } from "./lib/project.mjs";

let project;
let dist;
before(async () => {
  project = await freshProject("contexts", "tests/package/fixtures/empty");
  dist = join(project, "node_modules/tollgate/dist");
});

/** Requires a file in a context whose globals are those of the language and some of a page. */
function requiredIn(context, file, modules = new Map()) {
  const known = modules.get(file);
  if (known) return known.exports;
  const module = { exports: {} };
  modules.set(file, module);
  const require = (name) => requiredIn(context, join(dirname(file), name), modules);
  const args = ["module", "exports", "require"];
  compileFunction(readFileSync(file, "utf8"), args, { parsingContext: context })(
    module,
    module.exports,
    require,
  );
  return module.exports;
}

/** What jsdom has of that which the package uses. */
const ofPage = { console, setTimeout, clearTimeout, crypto, atob };

const contextOf = (globals) => createContext({ ...ofPage, ...globals });

for (const entry of ["index", "throttle", "js", "client", "ai"])
  test(`${entry}.cjs is required in a context without TextDecoder and TextEncoder`, async () => {
    const context = contextOf();
    assert.equal(runInContext("typeof TextDecoder + typeof TextEncoder", context), "undefinedundefined");
    const { RateLimiter, Throttle } = requiredIn(context, join(dist, `${entry}.cjs`));
    if (RateLimiter) {
      const limiter = new RateLimiter({ algorithm: "sliding_window", limit: 1, scale: "1h" });
      assert.deepEqual([limiter.hit("a").allowed, limiter.hit("a").allowed], [true, false]);
      const copy = RateLimiter.restore(limiter.snapshot());
      assert.equal(copy.hit("a").allowed, false);
    }
    if (Throttle) {
      const throttle = new Throttle({ algorithm: "token_bucket", capacity: 2, refillRate: 1 });
      assert.equal((await throttle.acquire()).remaining, 1);
    }
  });

test("where there is a TextDecoder, it reads texts as well", () => {
  const { ipKey } = requiredIn(contextOf({ TextDecoder, TextEncoder }), join(dist, "index.cjs"));
  assert.equal(ipKey("::ffff:192.0.2.1"), "192.0.2.1");
});

/** The entries that a page or a server uses without a framework. */
const entries = ["", "/throttle", "/react", "/metrics", "/js", "/client", "/store", "/redis", "/testing"];

test("types need neither those of Node nor a library with Symbol.dispose", async () => {
  const file = join(project, "main.mts");
  const imports = entries.map((entry, at) => `import * as entry${at} from "tollgate${entry}";`);
  writeFileSync(
    file,
    `${imports.join("\n")}\nexport const all = [${entries.map((_, at) => `entry${at}`)}];\n`,
  );
  for (const lib of ["es2022,dom", "es2023,dom"]) {
    const options = ["--noEmit", "--strict", "--target", "es2022", "--types", "", "--lib", lib];
    await run(bin("tsc"), ["--ignoreConfig", ...options, "--module", "nodenext", file], { cwd: project });
  }
});

test("those of /throttle and /metrics need no page either", async () => {
  const file = join(project, "server.mts");
  const text = `import { metrics } from "tollgate/metrics";
import { Throttle } from "tollgate/throttle";
export const all = [new Throttle({ algorithm: "token_bucket", capacity: 2, refillRate: 1 }), metrics().text()];
`;
  writeFileSync(file, text);
  const options = ["--noEmit", "--strict", "--target", "es2022", "--types", "", "--lib", "es2022"];
  await run(bin("tsc"), ["--ignoreConfig", ...options, "--module", "nodenext", file], { cwd: project });
});
