import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { wasmTargetArgs } from "../build.mjs";
import { inProject } from "../lib/paths.mjs";
import { show } from "../lib/run.mjs";

/** The Rust tests that run as wasm: the traces on the core, and those of the shipped wasm. */
const tests = ["conformance", "shipped"];

const browserFlags = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

async function runTests({ rust, wasmBindgen }, env) {
  const chosen = tests.flatMap((name) => ["--test", name]);
  await show(rust.cargo, ["test", ...chosen, ...wasmTargetArgs(rust)], {
    env: {
      ...rust.env,
      CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER: join(wasmBindgen, "wasm-bindgen-test-runner"),
      ...env,
    },
  });
}

export const inNode = (found) => runTests(found, {});

export async function inChromium(found) {
  const { browser, driver } = found.browser;
  const options = { "goog:chromeOptions": { binary: browser, args: browserFlags } };
  const capabilities = inProject("build", "webdriver.json");
  mkdirSync(inProject("build"), { recursive: true });
  writeFileSync(capabilities, JSON.stringify(options, null, 2));
  await runTests(found, {
    CHROMEDRIVER: driver,
    WASM_BINDGEN_USE_BROWSER: "1",
    // In seconds; the default of 20 is short beside suites that compile.
    WASM_BINDGEN_TEST_TIMEOUT: "600",
    WASM_BINDGEN_TEST_WEBDRIVER_JSON: capabilities,
  });
}
