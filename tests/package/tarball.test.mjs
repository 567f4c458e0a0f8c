import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { bin } from "../../scripts/lib/paths.mjs";
import { freshProject, run, tarball } from "./lib/project.mjs";

test("every entry exports the same, and all of it has types", async () => {
  const dist = join(
    await freshProject("entries", "tests/package/fixtures/empty"),
    "node_modules/tollgate/dist",
  );
  const text = (file) => readFileSync(join(dist, file), "utf8");
  const names = Object.keys(await import(join(dist, "index.js")));
  assert.deepEqual(Object.keys(await import(join(dist, "node.js"))), names);
  for (const file of ["index.cjs", "node.cjs"])
    assert.deepEqual(Object.keys(createRequire(dist)(`./dist/${file}`)).sort(), names, file);
  // Only workerd can import the one for workerd.
  assert.deepEqual(
    text("workerd.js")
      .match(/export \{([^}]*)\};\s*$/)?.[1]
      .match(/\w+/g),
    names,
  );
  for (const name of names)
    assert.match(text("index.d.ts"), new RegExp(`^export declare \\w+ ${name}\\b`, "m"));
  assert.equal(text("index.d.cts"), text("index.d.ts"));
});

test("it needs no other package", async () => {
  const manifest = JSON.parse(await run("tar", ["-xzOf", tarball, "package/package.json"]));
  for (const kind of ["dependencies", "peerDependencies", "optionalDependencies"])
    assert.deepEqual(manifest[kind] ?? {}, {}, kind);
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

test("nor are those of the client, where subpaths are resolved at all", () =>
  attw("--profile", "node16", "--entrypoints", "./client"));

test("nor are those of the Worker, where modules are", () =>
  attw("--profile", "esm-only", "--entrypoints", "./cloudflare"));
