import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { finished } from "./lib/finished.mjs";
import { isMain } from "./lib/main.mjs";
import { bin, inProject } from "./lib/paths.mjs";
import { quiet, show } from "./lib/run.mjs";
import { dim, say } from "./lib/say.mjs";
import { readText } from "./lib/text.mjs";
import { together } from "./lib/together.mjs";
import { writeWithoutWasm } from "./lib/without-wasm.mjs";
import { buildPackage } from "./package.mjs";
import { buildPage } from "./page.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

/** The features that rustc uses by default for this target. wasm-opt enables them only by flags. */
const wasmFeatures = [
  "bulk-memory",
  "multivalue",
  "mutable-globals",
  "nontrapping-float-to-int",
  "reference-types",
  "sign-ext",
];

const forWasm = ["--target", "wasm32-unknown-unknown"];

/** Debian's Rust has a folder of its own: cargo does not notice that a standard library was built again. */
const folderOf = (rust) => (rust.from === "rustup" ? inProject("target") : inProject("target", rust.id));

/** Checks and tests for wasm, beside those for this machine: macros and build scripts are compiled once for both. */
export const wasmTargetArgs = (rust) => [...forWasm, "--target-dir", folderOf(rust)];

/** The target folder of the wasm that is shipped. */
export const releaseFolder = (rust) => join(folderOf(rust), "wasm");

const wasmOptFlags = [
  "--strip-debug",
  "--strip-producers",
  "--strip-target-features",
  ...wasmFeatures.map((name) => `--enable-${name}`),
];

/** Web glue that is given its module; the reset function makes a new instance after a trap. */
const glue = ["--target", "web", "--omit-default-module-path", "--experimental-reset-state-function"];

/**
 * Makes the wasm small. The first kilobyte of memory is unused: the stack ends there. Leaving functions of one caller alone
 * would take off another half kilobyte, and make a hit under several policies 5% slower.
 */
const smallest = ["--merge-similar-functions", "-Oz", "--low-memory-unused", "--converge"];

/** Makes the wasm fast. */
const fastest = ["-O3", "--low-memory-unused"];

const cargoHome = process.env.CARGO_HOME ?? join(homedir(), ".cargo");

/** Keeps this machine's folders out of the wasm, and SHA-256 in a loop instead of unrolled. */
export const rustFlags = [
  `--remap-path-prefix=${join(cargoHome, "registry/src")}=`,
  "--cfg",
  'sha2_backend_soft="compact"',
];

/** The crates in bindings/ that are compiled to wasm. The first takes the longest to finish. */
const bindings = ["worker", "redis", "npm", "throttle", "lease", "headers"];

/** Whether all exports of a binding are plain functions of numbers, so that it needs no glue. */
const isPlain = (name) => name === "npm" || name === "throttle";

/** Whether a binding is compiled for speed: that for Redis, which replays a log for every reply. */
const isFast = (name) => name === "redis";

/** Compiles a crate of bindings/ to wasm, for size or for speed. Returns the file. */
async function compileBinding(name, rust) {
  const crate = `tollgate-${name}`;
  // As a cdylib alone: beside an rlib, which the tests and other bindings use, cargo does no LTO.
  const types = ["--crate-type", "cdylib", ...(name === "lease" ? ["--features", "standalone"] : [])];
  const target = releaseFolder(rust);
  const args = ["rustc", ...types, "--release", "--lib", "-p", crate, ...forWasm, "--target-dir", target];
  // Size by default: only the replay spends its time in arithmetic.
  const env = {
    ...rust.env,
    CARGO_PROFILE_RELEASE_OPT_LEVEL: isFast(name) ? "3" : "z",
    CARGO_ENCODED_RUSTFLAGS: rustFlags.join("\x1f"),
  };
  await show(rust.cargo, args, { env });
  return join(target, "wasm32-unknown-unknown/release", `${crate.replaceAll("-", "_")}.wasm`);
}

/** Writes build/<name>/: the optimised wasm and its glue; if it needs none, the same as JavaScript as well. */
async function finishBinding(name, compiled, wasmBindgen) {
  const optimized = isFast(name) ? fastest : smallest;
  const out = inProject("build", name);
  const stamp = createHash("sha256")
    .update(readFileSync(compiled))
    .update(JSON.stringify([wasmBindgen, glue, optimized, wasmOptFlags]))
    .digest("hex");
  if (readText(join(out, "stamp")) === stamp) return;
  await finished(out, async (folder) => {
    const wasm = join(folder, "tollgate_bg.wasm");
    if (!isPlain(name)) {
      const files = [compiled, "--out-dir", folder, "--out-name", "tollgate"];
      await quiet("wasm-bindgen", join(wasmBindgen, "wasm-bindgen"), [...files, ...glue]);
    }
    const from = isPlain(name) ? compiled : wasm;
    await quiet("wasm-opt", bin("wasm-opt"), [from, "-o", wasm, ...optimized, ...wasmOptFlags]);
    if (isPlain(name)) await writeWithoutWasm(wasm, join(folder, "without-wasm.js"), wasmOptFlags);
    writeFileSync(join(folder, "stamp"), stamp);
  });
  saySize(join(out, "tollgate_bg.wasm"));
}

/** Compiles one crate after the other, since they share most dependencies, and finishes each beside the next. */
async function buildBindings({ rust, wasmBindgen }) {
  const finishing = [];
  try {
    for (const name of bindings) {
      const compiled = await compileBinding(name, rust);
      const finish = finishBinding(name, compiled, wasmBindgen);
      // Its error is thrown below, when the others have ended.
      finish.catch(() => {});
      finishing.push(finish);
    }
  } finally {
    await together(finishing);
  }
}

/** Writes the constants and texts that TypeScript shares with Rust. */
export async function generate() {
  const folder = inProject("js/wasm");
  await quiet("generated.ts", "cargo", ["run", "--quiet", "-p", "tollgate-npm", "--bin", "generate", folder]);
  const files = ["generated.ts", "operations.ts"].map((name) => join(folder, name));
  await quiet("biome", bin("biome"), ["format", "--write", ...files]);
}

function saySize(file) {
  const kilobytes = (bytes) => `${(bytes / 1_000).toFixed(1)} kB`;
  const zipped = gzipSync(readFileSync(file), { level: 9 }).length;
  say(
    dim(
      `      ${file.slice(inProject().length)}: ${kilobytes(statSync(file).size)}, ${kilobytes(zipped)} gzipped`,
    ),
  );
}

export async function build(found) {
  await generate();
  await buildGenerated(found);
}

/** Builds everything else, from the generated sources. */
export async function buildGenerated(found) {
  await buildBindings(found);
  await buildPackage();
  await buildPage();
}

if (isMain(import.meta)) await afterSetUp(toBuild, build);
