import { buildGenerated, generate, wasmTargetArgs } from "../build.mjs";
import { nodeTestFlags, testFilesIn } from "../lib/node-test.mjs";
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

/** The native tests of all crates, with one set of features, so that each crate is compiled once. */
const cargoTest = ["test", "--workspace", "--features", "system-clock,tower"];

/** Clippy for the bindings, as they are compiled to wasm. */
const clippyWasm = (name, what) => ({
  name: `clippy ${name}`,
  run: (found) => show("cargo", ["clippy", ...what, ...clippyTarget(found), ...denyWarnings]),
});

/** Runs two files at a time: by default Node leaves a core free, and a small machine has only two. */
const nodeTest = (folders, flags = [], options = {}) =>
  show(bin("node"), [...nodeTestFlags, "--test-concurrency=2", ...flags, ...testFilesIn(folders)], options);

/** Returns a suite of the `*.test.mjs` in folders of `tests`. `tests/release/suites.test.mjs` compares `folders`. */
const nodeSuite = (name, folders, flags, options) => ({
  name,
  folders,
  run: () => nodeTest(folders, flags, options),
});

/** The suites of the crates. They mostly compile, and leave the cores to the package's when those want them. */
const ofCrates = [
  { name: "cargo fmt", run: () => show("cargo", ["fmt", "--all", "--check"]) },
  {
    name: "clippy",
    // Cargo locks a target folder for one command: before "generate", this one would block the queue of the package.
    after: "generate",
    run: () =>
      show("cargo", [
        "clippy",
        "--workspace",
        // Its dependencies take longest, and are checked once: for wasm, with its tests.
        "--exclude",
        "tollgate-worker",
        "--all-targets",
        "--features",
        "system-clock,tower",
        ...denyWarnings,
      ]),
  },
  clippyWasm("worker", [
    "-p",
    "tollgate-worker",
    "-p",
    "tollgate",
    "--features",
    "tollgate/cloudflare,tollgate/tower",
    "--all-targets",
  ]),
  clippyWasm("npm", [
    "--lib",
    "-p",
    "tollgate-npm",
    "-p",
    "tollgate-headers",
    "-p",
    "tollgate-lease",
    "-p",
    "tollgate-redis",
    "-p",
    "tollgate-platform",
    "-p",
    "tollgate-throttle",
  ]),
  {
    name: "cargo test",
    run: () => show("cargo", [...cargoTest, "--exclude", "tollgate-exhaustive"], { env: seeded }),
  },
  {
    // By itself, so that its counts are shown.
    name: "exhaustive",
    run: () => show("cargo", [...cargoTest, "--test", "exhaustive", "--", "--nocapture"], { env: seeded }),
  },
  {
    name: "rustdoc",
    folders: ["api"],
    run: async () => {
      await rustdoc();
      await nodeTest(["api"]);
    },
  },
  { name: "wasm in Node", after: "build", run: inNode },
  { name: "wasm in Chromium", after: "build", run: inChromium },
];

/** Suites of the crates that compile in folders of their own. */
const ofCratesElsewhere = [
  { name: "miri", run: underMiri },
  { name: "Rust Worker", folders: ["cloudflare/rust-worker"], after: "build", run: rustWorker },
];

/** The suites of what is built: the package, the Worker, the page and the documents. */
const ofPackage = [
  { name: "generate", run: generate },
  { name: "build", run: buildGenerated },
  { name: "biome", run: () => show(bin("biome"), ["ci", "--error-on-warnings"]) },
  {
    name: "tsc",
    run: async () => {
      await show(bin("tsc"), []);
      await show(bin("tsc"), ["-p", "js"]);
      await show(bin("tsc"), ["-p", "js/cli"]);
      await show(bin("tsc"), ["-p", "js/middleware"]);
      await show(bin("tsc"), ["-p", "js/react"]);
      await show(bin("tsc"), ["-p", "tests/limiter"]);
      await show(bin("tsc"), ["-p", "tests/guard"]);
      await show(bin("tsc"), ["-p", "tests/redis"]);
      await show(bin("tsc"), ["-p", "tests/store"]);
      await show(bin("tsc"), ["-p", "tests/ai"]);
    },
  },
  { name: "typedoc", run: typedoc },
  nodeSuite(
    "package in Node",
    ["errors", "events", "http", "limiter", "metrics", "policy", "reservation", "throttle", "wasm"],
    ["--expose-gc"],
    { env: seeded },
  ),
  nodeSuite("command", ["cli"]),
  nodeSuite("frameworks", ["guard", "stores", "frameworks"], [], { env: seeded }),
  nodeSuite("redis", ["redis"], [], { env: seeded }),
  nodeSuite("language models", ["ai"], [], { env: seeded }),
  nodeSuite("own stores", ["store"], [], { env: seeded }),
  nodeSuite("release", ["release"]),
  {
    name: "workerd",
    run: () =>
      show(bin("vitest"), ["run", "--config", "tests/cloudflare/vitest.config.ts"], { env: wranglerEnv }),
  },
  nodeSuite("workerd and an origin", ["cloudflare/upstream"]),
  nodeSuite("workerd killed", ["cloudflare/durability"]),
  { name: "packed tarball", folders: ["package"], run: inFreshProjects },
  { name: "documents", folders: ["documents"], run: ofDocuments },
  // One at a time: two Chromiums on a small machine wait for each other.
  nodeSuite("browser", ["www", "throttle/browser", "client/browser"], ["--test-concurrency=1"]),
];

/** Returns a queue of suites. Those of a queue with a higher niceness leave the cores to the others. */
const inQueue = (queue, suites, niceness) => suites.map((suite) => ({ ...suite, queue, niceness }));

/** The suites, in queues that run side by side: while one waits for a socket or a browser, the others compile. */
export const suites = [
  ...inQueue("crates", ofCrates, 10),
  ...inQueue("crates elsewhere", ofCratesElsewhere, 15),
  ...inQueue("package", ofPackage, 0),
];
