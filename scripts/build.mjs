import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { finished } from "./lib/finished.mjs";
import { isMain } from "./lib/main.mjs";
import { bin, inProject } from "./lib/paths.mjs";
import { quiet, show } from "./lib/run.mjs";
import { dim, say } from "./lib/say.mjs";
import { buildPackage } from "./package.mjs";
import { buildPage } from "./page.mjs";
import { readText } from "./setup/debian.mjs";
import { afterSetUp, toBuild } from "./setup.mjs";
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

/** A folder per compiler and per use: two builds in one folder overwrite each other's wasm. */
export const targetFolder = (rust, use) => inProject("target", `wasm-${rust.id}`, use);

export const wasmTargetArgs = (rust, use) => [
  "--target",
  "wasm32-unknown-unknown",
  "--target-dir",
  targetFolder(rust, use),
];

const wasmOptFlags = [
  "--strip-debug",
  "--strip-producers",
  "--strip-target-features",
  ...wasmFeatures.map((name) => `--enable-${name}`),
];

/** How each feature of the crate is compiled. Both are small first: their time goes elsewhere than into arithmetic. */
const features = {
  // Web glue that is given its module; the reset function gives a fresh instance after a panic.
  cloudflare: {
    level: "z",
    optimize: ["-Oz"],
    glue: ["--target", "web", "--omit-default-module-path", "--experimental-reset-state-function"],
  },
  // Only numbers cross: no glue, and its exports are as `js/core/exports.ts` says.
  js: {
    level: "z",
    optimize: ["-Oz", "--low-memory-unused", "--converge"],
  },
};

/** Compiles one feature of the crate into build/<feature>/: the wasm, and its glue if it needs one. Says whether it is new. */
export async function buildFeature(feature, { rust, wasmBindgen }) {
  const { level, optimize, glue } = features[feature];
  const args = ["build", "--release", "--lib", "--features", feature, ...wasmTargetArgs(rust, feature)];
  await show(rust.cargo, args, { env: { ...rust.env, CARGO_PROFILE_RELEASE_OPT_LEVEL: level } });
  const compiled = join(targetFolder(rust, feature), "wasm32-unknown-unknown/release/tollgate.wasm");
  const out = inProject("build", feature);
  const stamp = createHash("sha256")
    .update(readFileSync(compiled))
    .update(JSON.stringify([wasmBindgen, glue, optimize, wasmOptFlags, `${trimmed}`]))
    .digest("hex");
  if (readText(join(out, "stamp")) === stamp) return;
  await finished(out, async (folder) => {
    const wasm = join(folder, "tollgate_bg.wasm");
    if (glue) {
      const files = [compiled, "--out-dir", folder, "--out-name", "tollgate"];
      await quiet("wasm-bindgen", join(wasmBindgen, "wasm-bindgen"), [...files, ...glue]);
    } else writeFileSync(wasm, await trimmed(readFileSync(compiled)));
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
  await buildFeature("cloudflare", found);
  await buildFeature("js", found);
  await buildPackage();
  await buildPage();
}

if (isMain(import.meta)) await afterSetUp(toBuild, build);
