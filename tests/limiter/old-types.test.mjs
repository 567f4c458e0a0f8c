// The types can be used by projects with older settings: `moduleResolution: "node10"`, and the library of ES2020.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { root } from "../../scripts/lib/paths.mjs";

/** The last compiler that has these settings, which another development dependency brings along. */
const require = createRequire(createRequire(import.meta.url).resolve("@arethetypeswrong/core"));
const tsc = join(dirname(require.resolve("typescript")), "tsc.js");

const { exports, typesVersions } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const subpaths = Object.keys(exports).flatMap((path) => (/^\.\/\w+$/.test(path) ? [path.slice(2)] : []));

/** Entries whose types need those of a framework, or of Workers. */
const ofOthers = ["cloudflare", "express", "fastify", "hono", "koa", "nest", "react"];

test("every entry has its types for node10", () => {
  assert.ok(subpaths.length > 10);
  assert.deepEqual(Object.keys(typesVersions["*"]).toSorted(), subpaths.toSorted());
});

for (const library of ["es2020", "es2022"])
  test(`node10 and ${library}`, { timeout: 120_000 }, (t) => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(root, join(folder, "node_modules", "tollgate"));
    const entries = subpaths.filter((path) => !ofOthers.includes(path));
    const imports = entries.map((path, at) => `import * as entry${at} from "tollgate/${path}";\n`);
    const names = entries.map((_, at) => `entry${at}`);
    writeFileSync(
      join(folder, "project.ts"),
      `${imports.join("")}import { RateLimiter, TollgateError } from "tollgate";
const limiter = new RateLimiter({ algorithm: "fix_window", limit: 1, scale: "1m" });
const allowed: boolean = limiter.hit("a").allowed;
console.log(${[...names, "allowed", "TollgateError"].join(", ")});
// @ts-expect-error: no such member, so the types are there
limiter.hits;
`,
    );
    const flags = ["--noEmit", "--strict", "--module", "commonjs", "--moduleResolution", "node10"];
    const run = spawnSync(
      process.execPath,
      [tsc, ...flags, "--target", library, "--lib", `${library},dom`, "project.ts"],
      { cwd: folder, encoding: "utf8" },
    );
    assert.equal(run.stdout, "");
  });
