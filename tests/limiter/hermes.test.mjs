// `tollgate/js` works in Hermes, the engine of React Native: it decides every trace as recorded, and calls wait their turns.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { inProject } from "../../scripts/lib/paths.mjs";
import { hermes } from "../../scripts/setup/hermes.mjs";
import { files, tracesIn } from "../lib/traces.mjs";

const { program, typescript, why } = hermes.check() ?? { why: "Hermes is not set up" };
const traces = files.flatMap(tracesIn);

const tracesInProgram = {
  name: "traces",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^tollgate:traces$/ }, ({ path }) => ({ path, namespace: "traces" }));
    onLoad({ filter: /.*/, namespace: "traces" }, () => ({
      contents: JSON.stringify(traces),
      loader: "json",
    }));
  },
};

/** Returns the program as one script without classes, as React Native's tools make it. */
async function script() {
  const { outputFiles } = await build({
    entryPoints: [inProject("tests/limiter/programs/hermes.mjs")],
    bundle: true,
    write: false,
    format: "iife",
    target: "es2020",
    plugins: [tracesInProgram],
  });
  const { ScriptTarget, ModuleKind, transpileModule } = createRequire(import.meta.url)(typescript);
  const compilerOptions = { target: ScriptTarget.ES5, downlevelIteration: true, module: ModuleKind.None };
  return transpileModule(outputFiles[0].text, { compilerOptions }).outputText;
}

test("tollgate/js in Hermes", { skip: why ?? false, timeout: 300_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-hermes-"));
  try {
    const file = join(folder, "program.js");
    writeFileSync(file, await script());
    const said = execFileSync(program, ["-w", "-O", file], { encoding: "utf8" });
    const { hasWasm, operations, different, ran } = JSON.parse(said);
    assert.equal(hasWasm, false);
    assert.deepEqual(different, []);
    assert.equal(operations, traces.flatMap(({ ops }) => ops).length);
    assert.deepEqual(ran, [
      [1, 0],
      [2, 0],
      [3, 1_000],
      [4, 1_000],
      [5, 2_000],
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
