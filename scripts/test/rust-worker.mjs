import { cpSync, mkdirSync, realpathSync, rmSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { bin, inProject, withPath } from "../lib/paths.mjs";
import { show } from "../lib/run.mjs";

/** At the same depth as the example, so that the crate is where it looks for it. */
const folder = inProject("build/rust-worker");

/** Builds the Rust Worker of the examples as its author would, then runs it in workerd. */
export async function rustWorker({ rust, wasmBindgen, workerBuild }) {
  await show("rustfmt", ["--check", "--edition", "2024", inProject("examples/rust-worker/src/lib.rs")]);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  cpSync(inProject("examples/rust-worker"), folder, {
    recursive: true,
    filter: (path) => !/rust-worker\/(build|target|Cargo.lock)$/.test(path),
  });
  // The versions that the project was tried with, which are here already.
  cpSync(inProject("Cargo.lock"), join(folder, "Cargo.lock"));
  // Its own toolchain, tools and target folder; it downloads what it is not given.
  const env = {
    ...withPath(isAbsolute(rust.cargo) ? [dirname(rust.cargo)] : [], rust.env),
    CARGO_NET_OFFLINE: "true",
    CARGO_TARGET_DIR: inProject("target/rust-worker"),
    WASM_BINDGEN_BIN: join(wasmBindgen, "wasm-bindgen"),
    WASM_OPT_BIN: realpathSync(bin("wasm-opt")),
    ESBUILD_BIN: realpathSync(bin("esbuild")),
  };
  await show(join(workerBuild, "worker-build"), ["--release"], { cwd: folder, env });
  await show(bin("node"), ["--test", "tests/rust-worker/*.test.mjs"]);
}
