import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { finished } from "../lib/finished.mjs";
import { inProject, tools } from "../lib/paths.mjs";
import { quiet } from "../lib/run.mjs";

/** The CLI reads what the crate wrote into the wasm: the two must be of one version. */
const locked = readFileSync(inProject("Cargo.lock"), "utf8");
const version = locked.match(/name = "wasm-bindgen"\nversion = "(.+)"/)[1];
const home = join(tools, `wasm-bindgen-${version}`);

async function install(folder, ...more) {
  // The debug profile compiles in a third of the time and is fast enough for files of this size.
  const args = ["install", "wasm-bindgen-cli", "--version", `=${version}`, "--debug", "--root", folder];
  await quiet("compiling wasm-bindgen", "cargo", [...args, ...more], {
    env: { ...process.env, CARGO_TARGET_DIR: join(folder, "target"), CARGO_PROFILE_DEV_DEBUG: "0" },
    remedy: "see cargo's words above; a registry out of reach is the usual cause. Then run this again.",
  });
}

export const wasmBindgen = {
  id: "wasmBindgen",
  name: `wasm-bindgen ${version}`,
  what: "compiling it with cargo (1 to 2 minutes)",
  check: () => (existsSync(home) ? join(home, "bin") : null),
  make: () =>
    finished(home, async (folder) => {
      // An index that lags behind may lack a locked version.
      await install(folder, "--locked").catch(() => install(folder));
      rmSync(join(folder, "target"), { recursive: true, force: true });
    }),
};
