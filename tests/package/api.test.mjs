// Every entry of the packed package exports the names of tests/api/package.txt, in every kind of module, and declares the
// members of limiters as tests/api/limiters.txt has them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import test, { before } from "node:test";
import { declaredLimiters } from "../api/declared.mjs";
import { packageNames, pinned } from "../api/names.mjs";
import { freshProject } from "./lib/project.mjs";

let folder;
before(async () => {
  folder = join(await freshProject("api", "tests/package/fixtures/empty"), "node_modules/tollgate");
});

test("an editor shows the pinned members of limiters, each with a description", () => {
  const declared = declaredLimiters(folder);
  assert.equal(declared, pinned("limiters"));
  assert.doesNotMatch(declared, /undocumented/);
});

test("the types declare the pinned names", () => assert.equal(packageNames(folder), pinned("package")));

/** Returns the names that a module exports. Those with wasm as modules are read: Node cannot import them. */
async function exported(file) {
  if (file.endsWith(".cjs")) return Object.keys(createRequire(import.meta.url)(file));
  if (!/(workerd|edge-light|cloudflare)\.js$/.test(file)) return Object.keys(await import(file));
  const [, list] = readFileSync(file, "utf8").match(/export \{([^}]*)\};\s*$/);
  return list.split(",").map((name) => name.trim().replace(/.* as /, ""));
}

/** Returns the modules of an entry, under all its conditions. */
const modulesOf = (conditions) =>
  typeof conditions === "string"
    ? [conditions]
    : Object.entries(conditions).flatMap(([condition, next]) =>
        condition === "types" ? [] : modulesOf(next),
      );

test("the modules export the values among them", async () => {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const listings = pinned("package").split("\n\n");
  for (const [path, conditions] of Object.entries(manifest.exports)) {
    if (path === "./package.json") continue;
    const listing = listings.find((text) => text.startsWith(`${join("tollgate", path)}\n`));
    const values = [...listing.matchAll(/^ {2}(?:class|function|const) (\w+)/gm)].map(([, name]) => name);
    for (const file of modulesOf(conditions))
      assert.deepEqual((await exported(join(folder, file))).sort(), values.sort(), file);
  }
});
