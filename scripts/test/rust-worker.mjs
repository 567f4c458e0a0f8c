import { cpSync, mkdirSync, realpathSync, rmSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { releaseFolder, rustFlags } from "../build.mjs";
import { nodeTestFlags, testFilesIn } from "../lib/node-test.mjs";
import { atFullPriority } from "../lib/output.mjs";
import { bin, inProject, withPath } from "../lib/paths.mjs";
import { show } from "../lib/run.mjs";
import { setUp } from "../lib/steps.mjs";
import { workerBuild } from "../setup/worker-build.mjs";

/** The Workers in Rust, and where each is built: at the same depth, so that its path to the crate is valid. */
const workers = [
  ["examples/rust-worker", "build/rust-worker"],
  ["tests/cloudflare/rust-worker/limits", "build/tests/rust-worker/limits"],
];

/** Builds the Rust Worker of the examples, and that of the tests, as their authors would, then runs them in workerd. */
export async function rustWorker({ rust, wasmBindgen }) {
  // Set up here, since it takes minutes to compile and no other suite needs it.
  const tool = await setUp([workerBuild]);
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
  for (const [source, target] of workers) {
    await show("rustfmt", ["--check", "--edition", "2024", inProject(source, "src/lib.rs")]);
    const cwd = copied(inProject(source), inProject(target));
    await show(join(tool.workerBuild, "worker-build"), ["--release"], { cwd, env });
  }
  // At full priority: workerd closes connections when it gets no core for seconds.
  await atFullPriority(() =>
    show(bin("node"), [...nodeTestFlags, ...testFilesIn(["cloudflare/rust-worker"])]),
  );
}

/** Copies the folder of a Worker, without what was built there. */
function copied(source, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const isBuilt = /\/(build|target|Cargo.lock)$/;
  cpSync(source, folder, { recursive: true, filter: (path) => !isBuilt.test(path.slice(source.length)) });
  // The versions of the project, which are downloaded already.
  cpSync(inProject("Cargo.lock"), join(folder, "Cargo.lock"));
  return folder;
}
