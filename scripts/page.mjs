import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { inProject } from "./lib/paths.mjs";

const source = (name) => inProject("www", name);
const served = (name) => inProject("www/public", name);

/** Bundles the files of the playground beside its HTML, ready for any static host. */
export async function buildPage() {
  // Not at the top: on a fresh clone this file is read before there is an esbuild.
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: { page: source("main.js"), style: source("style.css"), theme: source("theme.js") },
    outdir: inProject("www/public"),
    bundle: true,
    minify: true,
    platform: "browser",
    format: "esm",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
    write: false,
    plugins: [thisPackage],
    // The page does not use the wasm of the headers.
    loader: { ".wasm": "empty" },
  });
  for (const { path, contents } of outputFiles) writeIfNew(path, Buffer.from(contents));
  writeIfNew(served("tollgate.wasm"), readFileSync(inProject("build/npm/tollgate_bg.wasm")));
}

/** The package from its sources, with the wasm as a file beside the page instead of as text in it. */
const thisPackage = {
  name: "this package",
  setup({ onResolve }) {
    onResolve({ filter: /^tollgate$/ }, () => ({ path: inProject("js/index.ts") }));
    onResolve({ filter: /\/compiled\.ts$/ }, () => ({ path: inProject("js/wasm/compiled.workerd.ts") }));
    onResolve({ filter: /\/npm\/tollgate_bg\.wasm$/ }, () => ({ path: source("module.js") }));
  },
};

/** wrangler reloads the page for every file that is written, changed or not. */
function writeIfNew(path, bytes) {
  if (!existsSync(path) || !readFileSync(path).equals(bytes)) writeFileSync(path, bytes);
}
