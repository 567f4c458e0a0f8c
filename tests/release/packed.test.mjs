// The npm package and the crate hold the intended files and no others.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { inProject, root } from "../../scripts/lib/paths.mjs";

const run = (command, ...args) => execFileSync(command, args, { cwd: root, encoding: "utf8" });
const read = (file) => readFileSync(inProject(file), "utf8");

/** Beside the documents and examples. Whatever else gets in was not meant to be published. */
const inPackage = [
  "dist/ai.cjs",
  "dist/ai.js",
  "dist/client.cjs",
  "dist/client.js",
  "dist/client.edge-light.js",
  "dist/client.workerd.js",
  "dist/cloudflare.js",
  "dist/command-redis.js",
  "dist/command.js",
  "dist/edge-light.js",
  "dist/errors.cjs",
  "dist/errors.js",
  "dist/express.cjs",
  "dist/express.js",
  "dist/fastify.cjs",
  "dist/fastify.js",
  "dist/fetch.cjs",
  "dist/fetch.js",
  "dist/hono.cjs",
  "dist/hono.js",
  "dist/index.cjs",
  "dist/index.js",
  "dist/js.cjs",
  "dist/js.js",
  "dist/koa.cjs",
  "dist/koa.js",
  "dist/learn.cjs",
  "dist/learn.js",
  "dist/leases.js",
  "dist/leases.edge-light.js",
  "dist/leases.workerd.js",
  "dist/metrics.cjs",
  "dist/metrics.js",
  "dist/nest.cjs",
  "dist/nest.js",
  "dist/node.cjs",
  "dist/node.js",
  "dist/react.cjs",
  "dist/react.js",
  "dist/redis.cjs",
  "dist/redis.js",
  "dist/shared.cjs",
  "dist/shared.js",
  "dist/store.cjs",
  "dist/store.js",
  "dist/stores.cjs",
  "dist/stores.js",
  "dist/testing.cjs",
  "dist/testing.js",
  "dist/throttle-js.js",
  "dist/throttle.cjs",
  "dist/throttle.js",
  "dist/throttle.edge-light.js",
  "dist/throttle.workerd.js",
  "dist/tollgate-headers.wasm",
  "dist/tollgate-lease.wasm",
  "dist/tollgate-throttle.wasm",
  "dist/tollgate-worker.wasm",
  "dist/tollgate.wasm",
  "dist/watch.html",
  "dist/watch.js",
  "dist/workerd.js",
  "package.json",
];

const inCrate = [
  "CHANGELOG.md",
  "Cargo.lock",
  "Cargo.toml",
  "Cargo.toml.orig",
  "LICENSE",
  "README.md",
  "SECURITY.md",
  "THIRD_PARTY.md",
];

/** The types are as many files as the sources that declare something public, and the same again for `require`. */
const isTypes = (file) => /^dist\/types(-cjs)?\//.test(file);

const packed = () => {
  const [{ files }] = JSON.parse(run("npm", "pack", "--dry-run", "--json", "--ignore-scripts"));
  return files.map(({ path }) => path).sort();
};

const tracked = (...patterns) =>
  run("git", "ls-files", "--cached", "--others", "--exclude-standard", ...patterns)
    .trim()
    .split("\n");

/** Errors name a guide, and guides link to examples, so both are in the package. */
const documents = ["LICENSE", "llms.txt", "*.md", "docs/*.md", "bench/RESULTS.md", "examples"];

test("the npm package holds these files and no others", () => {
  const beside = tracked(
    ...documents.map((pattern) => `:(glob)${pattern}`.replace("examples", "examples/**")),
  );
  assert.deepEqual(
    packed().filter((file) => !isTypes(file)),
    [...inPackage, ...beside].sort(),
  );
});

test("its types are those of sources, and the same for require", () => {
  const files = packed().filter(isTypes);
  const imported = files.filter((file) => file.startsWith("dist/types/"));
  const required = imported.map((file) => file.replace("dist/types/", "dist/types-cjs/"));
  assert.deepEqual(files, [...required, "dist/types-cjs/package.json", ...imported].sort());
  for (const file of imported) {
    const source = file.replace("dist/types/", "js/").replace(/\.d\.ts$/, ".ts");
    assert.deepEqual(tracked(source), [source]);
  }
});

test("in the npm package, every link of README and guides leads somewhere", () => {
  const files = packed();
  // Pictures are large, and shown only where the repository is.
  const isThere = (path) =>
    /\.png$/.test(path) || files.some((file) => file === path || file.startsWith(`${path}/`));
  for (const document of files.filter((file) => /^(?!examples\/).*\.md$/.test(file))) {
    const links = read(document)
      .replaceAll(/^```[\s\S]*?^```$/gm, "")
      .matchAll(/\]\(([^)#\s]+)[^)]*\)/g);
    for (const [, link] of links)
      assert.ok(/^https?:/.test(link) || isThere(join(dirname(document), link)), `${document}: ${link}`);
  }
});

test("the crate holds these files, its sources, and no others", () => {
  const list = run("cargo", "package", "--list", "--allow-dirty", "--quiet").trim().split("\n");
  const rest = list.filter((path) => !/^src\/.*\.rs$/.test(path));
  // Which commit it is of; it is left out where there is no git.
  assert.deepEqual(rest.filter((path) => path !== ".cargo_vcs_info.json").sort(), inCrate);
  assert.deepEqual(list.filter((path) => path.startsWith("src/")).sort(), tracked("src").sort());
});

test("both say the same of themselves", () => {
  const { description, license, keywords, name } = JSON.parse(read("package.json"));
  const ofCrate = (field) => JSON.parse(read("Cargo.toml").match(new RegExp(`^${field} = (.*)$`, "m"))[1]);
  assert.equal(ofCrate("name"), name);
  assert.equal(ofCrate("description"), description);
  assert.equal(ofCrate("license"), license);
  for (const keyword of ofCrate("keywords")) assert.ok(keywords.includes(keyword), keyword);
  assert.match(read("LICENSE"), new RegExp(`^${license} License`));
});

test("npm may publish it, signed and for everyone", () => {
  const manifest = JSON.parse(read("package.json"));
  assert.equal(manifest.private, undefined);
  assert.deepEqual(manifest.publishConfig, { access: "public", provenance: true });
});
