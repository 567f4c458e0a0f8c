import { build, wasmTargetArgs } from "../build.mjs";
import { bin } from "../lib/paths.mjs";
import { show } from "../lib/run.mjs";
import { wranglerEnv } from "../lib/wrangler.mjs";
import { inFreshProjects } from "./tarball.mjs";
import { inChromium, inNode } from "./wasm.mjs";

const denyWarnings = ["--", "-D", "warnings"];

/** Debian's Rust has no clippy; the machine's own then checks the same code for the machine's own target. */
const clippyTarget = ({ rust }) => (rust.from === "rustup" ? wasmTargetArgs(rust, "clippy") : []);

/** In order: what fails soonest comes first. */
export const suites = [
  { name: "cargo fmt", run: () => show("cargo", ["fmt", "--check"]) },
  {
    name: "clippy",
    run: () => show("cargo", ["clippy", "--all-targets", "--features", "system-clock", ...denyWarnings]),
  },
  {
    name: "clippy cloudflare",
    run: (found) =>
      show("cargo", ["clippy", "--lib", "--features", "cloudflare", ...clippyTarget(found), ...denyWarnings]),
  },
  { name: "cargo test", run: () => show("cargo", ["test", "--features", "system-clock"]) },
  { name: "build", run: build },
  { name: "biome", run: () => show(bin("biome"), ["ci", "--error-on-warnings"]) },
  {
    name: "tsc",
    run: async () => {
      await show(bin("tsc"), []);
      await show(bin("tsc"), ["-p", "js"]);
      await show(bin("tsc"), ["-p", "tests/node"]);
    },
  },
  {
    name: "package in Node",
    run: () => show(bin("node"), ["--expose-gc", "--test", "tests/node/*.test.mjs"]),
  },
  { name: "wasm in Node", run: inNode },
  { name: "wasm in Chromium", run: inChromium },
  {
    name: "workerd",
    run: () =>
      show(bin("vitest"), ["run", "--config", "tests/workerd/vitest.config.ts"], { env: wranglerEnv }),
  },
  { name: "workerd killed", run: () => show(bin("node"), ["--test", "tests/durability/*.test.mjs"]) },
  { name: "packed tarball", run: inFreshProjects },
  {
    name: "browser",
    // One at a time: two Chromiums on a small machine wait for each other.
    run: () => show(bin("node"), ["--test", "--test-concurrency=1", "tests/browser/*.test.mjs"]),
  },
];
