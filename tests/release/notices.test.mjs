// THIRD_PARTY.md has the licence of every package and crate whose code is bundled or compiled into the npm package.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";
import { notice, noticeText, thirdParties } from "../../scripts/notices.mjs";

test("the notice is what the script writes", () => {
  assert.equal(readFileSync(notice, "utf8"), noticeText(), "run: node scripts/notices.mjs");
});

test("every third party has its name, its version and a text", () => {
  const text = readFileSync(notice, "utf8");
  const parties = thirdParties();
  assert.ok(parties.length > 20);
  for (const name of ["serde", "hashbrown", "wasm-bindgen", "worker", "jsonc-parser", "toml-eslint-parser"])
    assert.ok(
      parties.some((party) => party.name === name),
      name,
    );
  for (const { name, version } of parties) assert.ok(text.includes(`${name} ${version}`), name);
});

test("no other package is in what is published", () => {
  const npm = thirdParties().filter(({ from }) => from === "npm");
  const names = new Set(npm.map(({ name }) => name));
  for (const file of readdirSync(inProject("dist")).filter((name) => /\.c?js$/.test(name))) {
    const text = readFileSync(inProject("dist", file), "utf8");
    // esbuild says which file each part is of.
    for (const [, name] of text.matchAll(/^\/\/ (?:\.\.\/)*node_modules\/((?:@[^/]+\/)?[^/\s]+)/gm))
      assert.ok(names.has(name), `${file}: ${name}`);
  }
});

test("every licence is one that allows its use here", () => {
  const allowed = /\b(MIT|Apache-2\.0|BSD-\d-Clause|ISC|Zlib|Unicode-3\.0|Unlicense|0BSD)\b/;
  for (const { name, license } of thirdParties()) {
    assert.match(license, allowed, name);
    assert.doesNotMatch(license, /GPL|AGPL|SSPL|BUSL/, name);
  }
});
