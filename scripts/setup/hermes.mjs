import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { finished } from "../lib/finished.mjs";
import { tools } from "../lib/paths.mjs";
import { outputOf, quiet } from "../lib/run.mjs";
import { dim, say } from "../lib/say.mjs";

/** The newest version whose command is on npm. */
const version = "0.12.0";
/** The last TypeScript that lowers classes, which this Hermes does not have; React Native's tools do the same. */
const typescriptVersion = "5.9.3";

const home = join(tools, `hermes-${version}`);
const folders = { linux: "linux64-bin", darwin: "osx-bin" };
const packages = join(home, "node_modules");
const program = join(packages, "hermes-engine-cli", folders[process.platform] ?? "none", "hermes");

/** Set if Hermes cannot be had: the tests that need it are then skipped. */
let missing = null;

const check = () =>
  existsSync(program) ? { program, typescript: join(packages, "typescript/lib/typescript.js") } : missing;

async function make() {
  try {
    await finished(home, async (folder) => {
      const names = [`hermes-engine-cli@${version}`, `typescript@${typescriptVersion}`];
      await quiet("npm", "npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", ...names]);
    });
    if (outputOf(program, ["--version"]) === null) throw new Error("it does not run here");
    // The debugger is as large as the engine.
    rmSync(join(program, "../hdb"));
  } catch {
    rmSync(home, { recursive: true, force: true });
    missing = { why: "Hermes cannot be had from npm for this machine" };
    say(dim(`      ${missing.why}; the test that needs it is skipped`));
  }
}

/** The step of Hermes, the engine of React Native, which has no WebAssembly. */
export const hermes = {
  id: "hermes",
  name: "Hermes",
  what: "installing it from npm into the tools folder (a few seconds)",
  check,
  make,
};
