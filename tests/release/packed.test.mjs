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
  "dist/client.cjs",
  "dist/client.d.cts",
  "dist/client.d.ts",
  "dist/client.js",
  "dist/client.workerd.js",
  "dist/cloudflare.d.ts",
  "dist/cloudflare.js",
  "dist/command.js",
  "dist/express.cjs",
  "dist/express.d.cts",
  "dist/express.d.ts",
  "dist/express.js",
  "dist/fastify.cjs",
  "dist/fastify.d.cts",
  "dist/fastify.d.ts",
  "dist/fastify.js",
  "dist/fetch.cjs",
  "dist/fetch.d.cts",
  "dist/fetch.d.ts",
  "dist/fetch.js",
  "dist/guard.d.cts",
  "dist/guard.d.ts",
  "dist/hono.cjs",
  "dist/hono.d.cts",
  "dist/hono.d.ts",
  "dist/hono.js",
  "dist/index.cjs",
  "dist/index.d.cts",
  "dist/index.d.ts",
  "dist/index.js",
  "dist/koa.cjs",
  "dist/koa.d.cts",
  "dist/koa.d.ts",
  "dist/koa.js",
  "dist/leases.js",
  "dist/leases.workerd.js",
  "dist/node.cjs",
  "dist/node.js",
  "dist/redis.cjs",
  "dist/redis.d.cts",
  "dist/redis.d.ts",
  "dist/redis.js",
  "dist/stores.cjs",
  "dist/stores.d.cts",
  "dist/stores.d.ts",
  "dist/stores.js",
  "dist/tollgate-headers.wasm",
  "dist/tollgate-lease.wasm",
  "dist/tollgate-worker.wasm",
  "dist/tollgate.wasm",
  "dist/workerd.js",
  "package.json",
];

const inCrate = ["CHANGELOG.md", "Cargo.lock", "Cargo.toml", "Cargo.toml.orig", "LICENSE", "README.md"];

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
  assert.deepEqual(packed(), [...inPackage, ...beside].sort());
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
