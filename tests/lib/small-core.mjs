// The small core of `tollgate/throttle` for tests: the wasm, or the same as JavaScript, beside the package.

import { readFileSync } from "node:fs";
import { build } from "esbuild";
import { asText } from "../../scripts/lib/astext.mjs";
import { inProject } from "../../scripts/lib/paths.mjs";

const wasmAsText = {
  name: "wasm as text",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.wasm$/ }, ({ path }) => ({ contents: asText(readFileSync(path)), loader: "text" })),
};

/** Returns a script that exports what `small-steps.mjs` does, over the package or `tollgate/js`. Runs in Node and browsers. */
export async function smallScript(entry = "tollgate") {
  const { outputFiles } = await build({
    entryPoints: [inProject("tests/lib/small-steps.mjs")],
    bundle: true,
    platform: "browser",
    format: "esm",
    target: "es2022",
    write: false,
    plugins: [wasmAsText],
    alias: { tollgate: entry },
    logLevel: "warning",
  });
  return outputFiles[0].text;
}

/** Imports the script, as a module of its own for each `kind`: `"wasm"` or `"js"`. */
export async function smallCore(kind) {
  const text = Buffer.from(await smallScript()).toString("base64");
  const core = await import(`data:text/javascript;base64,${text}#${kind}`);
  core.start(kind);
  return core;
}
