import { build, wasmTargetArgs } from "../build.mjs";
import { bin } from "../lib/paths.mjs";
import { show } from "../lib/run.mjs";
import { wranglerEnv } from "../lib/wrangler.mjs";
import { rustdoc, typedoc } from "../reference.mjs";
import { underMiri } from "./miri.mjs";
import { rustWorker } from "./rust-worker.mjs";
import { inFreshProjects, ofDocuments } from "./tarball.mjs";
import { inChromium, inNode } from "./wasm.mjs";

const denyWarnings = ["--", "-D", "warnings"];

/** Returns the target of clippy. Debian's Rust has no clippy, so the machine's own then checks for its own target. */
const clippyTarget = ({ rust }) => (rust.from === "rustup" ? wasmTargetArgs(rust) : []);

/** The same random cases on every run, so that a failure can be repeated; `TOLLGATE_SEED=7 npm test` tries others. */
const seed = process.env.TOLLGATE_SEED ?? "20260101";
const seeded = { ...process.env, PROPTEST_RNG_SEED: seed, FAST_CHECK_SEED: seed };

/** Clippy for the bindings, as they are compiled to wasm. */
const clippyWasm = (name, what) => ({
  name: `clippy ${name}`,
  run: (found) => show("cargo", ["clippy", "--lib", ...what, ...clippyTarget(found), ...denyWarnings]),
});

/** Runs two files at a time: by default Node leaves a core free, and a small machine has only two. */
const nodeTest = (files, flags = [], options = {}) =>
  show(bin("node"), [...flags, "--test", "--test-concurrency=2", files], options);

/** The suites, fastest first. */
export const suites = [
  { name: "cargo fmt", run: () => show("cargo", ["fmt", "--all", "--check"]) },
  {
    name: "clippy",
    run: () =>
      show("cargo", [
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        "system-clock",
        ...denyWarnings,
      ]),
  },
  clippyWasm("worker", ["-p", "tollgate-worker"]),
  clippyWasm("npm", [
    "-p",
    "tollgate-npm",
    "-p",
    "tollgate-headers",
    "-p",
    "tollgate-lease",
    "-p",
    "tollgate-redis",
  ]),
  {
    name: "cargo test",
    run: () => show("cargo", ["test", "--workspace", "--features", "system-clock"], { env: seeded }),
  },
  { name: "miri", run: underMiri },
  { name: "rustdoc", run: rustdoc },
  { name: "build", run: build },
  { name: "biome", run: () => show(bin("biome"), ["ci", "--error-on-warnings"]) },
  {
    name: "tsc",
    run: async () => {
      await show(bin("tsc"), []);
      await show(bin("tsc"), ["-p", "js"]);
      await show(bin("tsc"), ["-p", "js/cli"]);
      await show(bin("tsc"), ["-p", "js/middleware"]);
      await show(bin("tsc"), ["-p", "tests/node"]);
      await show(bin("tsc"), ["-p", "tests/guard"]);
      await show(bin("tsc"), ["-p", "tests/redis"]);
    },
  },
  { name: "typedoc", run: typedoc },
  {
    name: "package in Node",
    run: () => nodeTest("tests/node/*.test.mjs", ["--expose-gc"], { env: seeded }),
  },
  { name: "command", run: () => nodeTest("tests/command/*.test.mjs") },
  { name: "frameworks", run: () => nodeTest("tests/guard/*.test.mjs", [], { env: seeded }) },
  { name: "redis", run: () => nodeTest("tests/redis/*.test.mjs", [], { env: seeded }) },
  { name: "release", run: () => nodeTest("tests/release/*.test.mjs") },
  { name: "wasm in Node", run: inNode },
  { name: "wasm in Chromium", run: inChromium },
  {
    name: "workerd",
    run: () =>
      show(bin("vitest"), ["run", "--config", "tests/workerd/vitest.config.ts"], { env: wranglerEnv }),
  },
  { name: "workerd and an origin", run: () => nodeTest("tests/upstream/*.test.mjs") },
  { name: "workerd killed", run: () => nodeTest("tests/durability/*.test.mjs") },
  { name: "Rust Worker", run: rustWorker },
  { name: "packed tarball", run: inFreshProjects },
  { name: "documents", run: ofDocuments },
  {
    name: "browser",
    // One at a time: two Chromiums on a small machine wait for each other.
    run: () => show(bin("node"), ["--test", "--test-concurrency=1", "tests/browser/*.test.mjs"]),
  },
];
