import { cpSync, mkdirSync, realpathSync, rmSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { releaseFolder, rustFlags } from "../build.mjs";
import { nodeTestFlags, testFilesIn } from "../lib/node-test.mjs";
import { atFullPriority } from "../lib/output.mjs";
import { bin, inProject, withPath } from "../lib/paths.mjs";
import { show } from "../lib/run.mjs";
import { setUp } from "../lib/steps.mjs";
import { workerBuild } from "../setup/worker-build.mjs";

/** At the same depth as the example, so that its path to the crate is valid. */
const folder = inProject("build/rust-worker");

/** Builds the Rust Worker of the examples as its author would, then runs it in workerd. */
export async function rustWorker({ rust, wasmBindgen }) {
  // Set up here, since it takes minutes to compile and no other suite needs it.
  const tool = await setUp([workerBuild]);
  await show("rustfmt", ["--check", "--edition", "2024", inProject("examples/rust-worker/src/lib.rs")]);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  cpSync(inProject("examples/rust-worker"), folder, {
    recursive: true,
    filter: (path) => !/rust-worker\/(build|target|Cargo.lock)$/.test(path),
  });
  // The versions of the project, which are downloaded already.
  cpSync(inProject("Cargo.lock"), join(folder, "Cargo.lock"));
  // The project's toolchain and tools, since it would download others.
  const env = {
    ...withPath(isAbsolute(rust.cargo) ? [dirname(rust.cargo)] : [], rust.env),
    CARGO_NET_OFFLINE: "true",
    // Where the project's own Worker is compiled, with the same flags: most dependencies are compiled already.
    CARGO_TARGET_DIR: releaseFolder(rust),
    CARGO_ENCODED_RUSTFLAGS: rustFlags.join("\x1f"),
    WASM_BINDGEN_BIN: join(wasmBindgen, "wasm-bindgen"),
    WASM_OPT_BIN: realpathSync(bin("wasm-opt")),
    ESBUILD_BIN: realpathSync(bin("esbuild")),
  };
  await show(join(tool.workerBuild, "worker-build"), ["--release"], { cwd: folder, env });
  // At full priority: workerd closes connections when it gets no core for seconds.
  await atFullPriority(() =>
    show(bin("node"), [...nodeTestFlags, ...testFilesIn(["cloudflare/rust-worker"])]),
  );
}
