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
import { speechless } from "./speechless.mjs";
import { trimmed } from "./trim.mjs";

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

/** Two features in one folder would overwrite each other's wasm. */
const featureFolder = (rust, feature) => join(folderOf(rust), "wasm", feature);

const wasmOptFlags = [
  "--strip-debug",
  "--strip-producers",
  "--strip-target-features",
  ...wasmFeatures.map((name) => `--enable-${name}`),
];

/** As small as wasm-opt makes it. Nothing lies in the first kilobyte of memory: there the stack ends. */
const smallest = ["-Oz", "--low-memory-unused", "--converge"];

const cargoHome = process.env.CARGO_HOME ?? join(homedir(), ".cargo");

/** Nothing of this machine's folders in what is shipped, and SHA-256 in a loop instead of unrolled. */
const rustFlags = [
  `--remap-path-prefix=${join(cargoHome, "registry/src")}=`,
  "--cfg",
  'sha2_backend_soft="compact"',
].join("\x1f");

/** How each binding, or feature of the crate, is compiled. All are small first: their time goes elsewhere than into arithmetic. */
const features = {
  // Web glue that is given its module; the reset function gives a fresh instance after a panic.
  worker: {
    package: "tollgate-worker",
    level: "z",
    optimize: smallest,
    glue: ["--target", "web", "--omit-default-module-path", "--experimental-reset-state-function"],
  },
  js: { level: "z", optimize: smallest, trim: (wasm) => trimmed(speechless(wasm)) },
  headers: { level: "s", optimize: smallest, trim: trimmed },
};

/** Compiles a binding, or a feature of the crate, into build/<name>/: the wasm, and its glue if it needs one. Says whether it is new. */
export async function buildFeature(feature, { rust, wasmBindgen }) {
  const { package: crate, level, optimize, glue, trim } = features[feature];
  const target = featureFolder(rust, feature);
  const what = crate ? ["-p", crate] : ["-p", "tollgate", "--features", feature];
  const args = ["build", "--release", "--lib", ...what, ...forWasm, "--target-dir", target];
  const env = { ...rust.env, CARGO_PROFILE_RELEASE_OPT_LEVEL: level, CARGO_ENCODED_RUSTFLAGS: rustFlags };
  await show(rust.cargo, args, { env });
  const file = (crate ?? "tollgate").replaceAll("-", "_");
  const compiled = join(target, `wasm32-unknown-unknown/release/${file}.wasm`);
  const out = inProject("build", feature);
  const stamp = createHash("sha256")
    .update(readFileSync(compiled))
    .update(JSON.stringify([wasmBindgen, glue, optimize, wasmOptFlags, `${trim}`]))
    .update(["trim", "speechless"].map((name) => readFileSync(inProject(`scripts/${name}.mjs`))).join())
    .digest("hex");
  if (readText(join(out, "stamp")) === stamp) return;
  await finished(out, async (folder) => {
    const wasm = join(folder, "tollgate_bg.wasm");
    if (glue) {
      const files = [compiled, "--out-dir", folder, "--out-name", "tollgate"];
      await quiet("wasm-bindgen", join(wasmBindgen, "wasm-bindgen"), [...files, ...glue]);
    } else writeFileSync(wasm, await trim(readFileSync(compiled)));
    await quiet("wasm-opt", bin("wasm-opt"), [wasm, "-o", wasm, ...optimize, ...wasmOptFlags]);
    writeFileSync(join(folder, "stamp"), stamp);
  });
  saySize(join(out, "tollgate_bg.wasm"));
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
  // Each ends in work for one core: link-time optimisation, then wasm-opt.
  await together(Object.keys(features).map((feature) => buildFeature(feature, found)));
  await buildPackage();
  await buildPage();
}

if (isMain(import.meta)) await afterSetUp(toBuild, build);
