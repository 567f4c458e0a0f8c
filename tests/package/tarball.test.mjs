// The tarball holds what its manifest promises: no dependencies, types that resolve, adapters over the package.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { bin } from "../../scripts/lib/paths.mjs";
import { adapters } from "../../scripts/package.mjs";
import { freshProject, run, tarball } from "./lib/project.mjs";

test("it needs no other package; frameworks are there or not", async () => {
  const manifest = JSON.parse(await run("tar", ["-xzOf", tarball, "package/package.json"]));
  for (const kind of ["dependencies", "optionalDependencies"])
    assert.deepEqual(manifest[kind] ?? {}, {}, kind);
  const frameworks = ["@nestjs/common", "ai", "express", "fastify", "hono", "koa", "react"];
  assert.deepEqual(Object.keys(manifest.peerDependencies), frameworks);
  for (const name of frameworks) assert.deepEqual(manifest.peerDependenciesMeta[name], { optional: true });
});

const overPackage = [...adapters, "nest", "stores"];

/** What entries over the package import beside its errors. */
const imports = {
  ...Object.fromEntries(overPackage.map((name) => [name, ["tollgate"]])),
  nest: ["@nestjs/common", "tollgate"],
  store: ["tollgate"],
  testing: ["tollgate/store"],
};

test("an entry over the package imports it and its errors, and nothing else", async () => {
  const project = await freshProject("adapters", "tests/package/fixtures/empty");
  const dist = join(project, "node_modules/tollgate/dist");
  for (const [name, beside] of Object.entries(imports)) {
    const names = Object.keys(await import(join(dist, `${name}.js`)));
    assert.deepEqual(Object.keys(createRequire(dist)(`./dist/${name}.cjs`)).sort(), names, name);
    for (const file of [`${name}.js`, `${name}.cjs`]) {
      const imported = readFileSync(join(dist, file), "utf8").matchAll(
        // A line of a comment is no import.
        /^(?! *\*).*?(?:\bfrom |\bimport\(|\brequire\()["']([.@\w][^"']*)["']/gm,
      );
      const paths = new Set([...imported].map(([, path]) => path));
      assert.deepEqual(
        [...paths].sort(),
        [file.endsWith(".cjs") ? "./errors.cjs" : "./errors.js", ...beside],
        file,
      );
    }
  }
});

test("publint finds nothing", async () => {
  const { buffer } = new Uint8Array(readFileSync(tarball));
  const { messages, pkg } = await publint({ pack: { tarball: buffer }, strict: true });
  assert.deepEqual(
    messages.map((message) => formatMessage(message, pkg, { color: false })),
    [],
  );
});

const attw = (...args) => run(bin("attw"), [tarball, ...args, "--no-color", "--no-emoji"]);

test("are the types wrong? In no way of resolving them", () =>
  attw("--profile", "strict", "--entrypoints", "."));

test("nor are those of the client, the hooks and the adapters, where subpaths are resolved at all", () =>
  attw(
    "--profile",
    "node16",
    "--entrypoints",
    "./client",
    "./react",
    ...overPackage.map((name) => `./${name}`),
  ));

test("nor are those for Redis and stores", () =>
  attw("--profile", "node16", "--entrypoints", "./redis", "./store", "./testing"));

test("nor are those of the Worker, where modules are", () =>
  attw("--profile", "esm-only", "--entrypoints", "./cloudflare"));
