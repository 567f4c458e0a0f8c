import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { bin } from "../../scripts/lib/paths.mjs";
import { run, tarball } from "./lib/project.mjs";

/** Whatever else gets in was not meant to be published. */
const files = [
  "LICENSE",
  "README.md",
  "dist/index.cjs",
  "dist/index.d.cts",
  "dist/index.d.ts",
  "dist/index.js",
  "dist/tollgate.wasm",
  "dist/workerd.js",
  "package.json",
];

test("the tarball holds these files and no others", async () => {
  const list = await run("tar", ["-tzf", tarball]);
  assert.deepEqual(list.trim().split("\n").sort(), files.map((file) => `package/${file}`).sort());
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

test("are the types wrong? In no way of resolving them", () =>
  run(bin("attw"), [tarball, "--profile", "strict", "--no-color", "--no-emoji"]));
