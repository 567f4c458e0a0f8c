import { rmSync } from "node:fs";
import { join } from "node:path";
import { outputOf } from "../lib/run.mjs";
import { fromNpm } from "./from-npm.mjs";

const folders = { linux: "linux64-bin", darwin: "osx-bin" };

/** The step of Hermes, the engine of React Native, which has no WebAssembly. */
export const hermes = fromNpm({
  id: "hermes",
  name: "Hermes",
  what: "a few seconds",
  packages: {
    // The newest version whose command is on npm.
    "hermes-engine-cli": "0.12.0",
    // The last TypeScript that lowers classes, which this Hermes does not have; React Native's tools do the same.
    typescript: "5.9.3",
  },
  result: (modules) => ({
    program: join(modules, "hermes-engine-cli", folders[process.platform] ?? "none", "hermes"),
    typescript: join(modules, "typescript/lib/typescript.js"),
  }),
  works({ program }) {
    if (outputOf(program, ["--version"]) === null) return false;
    // The debugger is as large as the engine.
    rmSync(join(program, "../hdb"));
    return true;
  },
});
