import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { finished } from "./lib/finished.mjs";
import { inProject } from "./lib/paths.mjs";
import { plain, repositories } from "./release/versions.mjs";

const source = (name) => inProject("www", name);
const served = (name) => inProject("www/public", name);

/** Writes the files of the playground beside its HTML, ready for any static host. */
export async function buildPage() {
  for (const { path, contents } of await pageFiles()) writeIfNew(path, Buffer.from(contents));
  writeIfNew(served("tollgate.wasm"), readFileSync(inProject("build/npm/tollgate_bg.wasm")));
}

/** Bundles the scripts and the style. `home` is the address of the repository that the page links to; null for none. */
export async function pageFiles(home = plain(repositories()["package.json"]) ?? null) {
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
    define: { "import.meta.home": JSON.stringify(home) },
    // The page does not use the wasm of the headers.
    loader: { ".wasm": "empty" },
  });
  return outputFiles;
}

/** Returns the Worker's live page: one file of HTML with its script and its style. */
export async function watchPage() {
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: { script: source("watch/main.js"), style: source("watch/style.css") },
    outdir: inProject("build/watch"),
    bundle: true,
    minify: true,
    platform: "browser",
    format: "iife",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
    write: false,
  });
  const text = (extension) => outputFiles.find(({ path }) => path.endsWith(extension)).text.trim();
  return readFileSync(source("watch/index.html"), "utf8")
    .replace(/\n\s*/g, "\n")
    .replace("<style></style>", () => `<style>${text(".css")}</style>`)
    .replace(
      "<script></script>",
      () => `<script>${text(".js").replaceAll("</script", "<\\/script")}</script>`,
    );
}

/** Writes the live page, which the Worker serves. */
export async function buildWatchPage() {
  await finished(inProject("build/watch"), async (folder) =>
    writeFileSync(join(folder, "page.html"), await watchPage()),
  );
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
