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
import { buildPackage } from "./package.mjs";
import { buildPage } from "./page.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";

/** What rustc emits by default for this target; wasm-opt must be told. */
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

const wasmOptFlags = [
  "--strip-debug",
  "--strip-producers",
  "--strip-target-features",
  ...wasmFeatures.map((name) => `--enable-${name}`),
];

/** Web glue that is given its module; the reset function makes a new instance after a trap. */
const glue = ["--target", "web", "--omit-default-module-path", "--experimental-reset-state-function"];

/** As small as wasm-opt makes it. Nothing lies in the first kilobyte of memory: there the stack ends. */
const smallest = ["-Oz", "--low-memory-unused", "--converge"];

/** As fast: for servers, where a log is replayed for every reply. */
const fastest = ["-O3", "--low-memory-unused"];

const cargoHome = process.env.CARGO_HOME ?? join(homedir(), ".cargo");

/** Nothing of this machine's folders in what is shipped, and SHA-256 in a loop instead of unrolled. */
const rustFlags = [
  `--remap-path-prefix=${join(cargoHome, "registry/src")}=`,
  "--cfg",
  'sha2_backend_soft="compact"',
];

/** Functions that are shorter than the calls of them are inlined: the default of "z" inlines fewer. */
const inlining = "-Cllvm-args=-inline-threshold=25";

/** The crates in bindings/ that are compiled to wasm. */
const bindings = ["worker", "npm", "redis", "headers", "lease"];

/** Compiles a crate of bindings/ into build/<name>/: the wasm and its glue. */
export async function buildBinding(name, { rust, wasmBindgen }) {
  const crate = `tollgate-${name}`;
  // In a folder of its own, since cargo lets only one build at a time into a folder.
  const target = join(folderOf(rust), "wasm", name);
  // Other bindings contain the one for leases, which is a wasm of its own only here.
  const build =
    name === "lease" ? ["rustc", "--crate-type", "cdylib", "--features", "standalone"] : ["build"];
  const args = [...build, "--release", "--lib", "-p", crate, ...forWasm, "--target-dir", target];
  const isFast = name === "redis";
  const flags = name === "worker" || isFast ? rustFlags : [...rustFlags, inlining];
  const optimized = isFast ? fastest : smallest;
  // Small first: elsewhere the time goes into other things than arithmetic.
  const env = {
    ...rust.env,
    CARGO_PROFILE_RELEASE_OPT_LEVEL: isFast ? "3" : "z",
    CARGO_ENCODED_RUSTFLAGS: flags.join("\x1f"),
  };
  await show(rust.cargo, args, { env });
  const file = `wasm32-unknown-unknown/release/${crate.replaceAll("-", "_")}.wasm`;
  const compiled = join(target, file);
  const out = inProject("build", name);
  const stamp = createHash("sha256")
    .update(readFileSync(compiled))
    .update(JSON.stringify([wasmBindgen, glue, optimized, wasmOptFlags]))
    .digest("hex");
  if (readText(join(out, "stamp")) === stamp) return;
  await finished(out, async (folder) => {
    const wasm = join(folder, "tollgate_bg.wasm");
    const files = [compiled, "--out-dir", folder, "--out-name", "tollgate"];
    await quiet("wasm-bindgen", join(wasmBindgen, "wasm-bindgen"), [...files, ...glue]);
    await quiet("wasm-opt", bin("wasm-opt"), [wasm, "-o", wasm, ...optimized, ...wasmOptFlags]);
    writeFileSync(join(folder, "stamp"), stamp);
  });
  saySize(join(out, "tollgate_bg.wasm"));
}

/** Writes what TypeScript must know of Rust. */
async function generate() {
  const file = inProject("js/core/generated.ts");
  await quiet("generated.ts", "cargo", ["run", "--quiet", "-p", "tollgate-npm", "--bin", "generate", file]);
  await quiet("biome", bin("biome"), ["format", "--write", file]);
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
  // Each ends in work for one core: link-time optimisation, then wasm-opt.
  await together(bindings.map((name) => buildBinding(name, found)));
  await buildPackage();
  await buildPage();
}

if (isMain(import.meta)) await afterSetUp(toBuild, build);
