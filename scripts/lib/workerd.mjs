import { once } from "node:events";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { build } from "esbuild";
import { inProject } from "./paths.mjs";
import { serve } from "./run.mjs";

const ownWasm = inProject("build/worker/tollgate_bg.wasm");

/**
 * Writes a Worker as it would be deployed into a folder: script, wasm, configuration, and a folder for its objects. It has
 * no wasm if `wasm` is null. Only `minify` makes its script as short as it is deployed: its errors are then hard to read.
 */
export async function prepare(
  folder,
  entry,
  { bindings = {}, upstream, evicts = true, wasm = ownWasm, minify = false } = {},
) {
  mkdirSync(join(folder, "objects"), { recursive: true });
  await script(entry, join(folder, "worker.js"), minify);
  if (upstream) await script(upstream, join(folder, "upstream.js"), minify);
  if (wasm !== null) cpSync(wasm, join(folder, "tollgate.wasm"));
  cpSync(inProject("build/watch/page.html"), join(folder, "watch.html"));
  writeFileSync(join(folder, "config.capnp"), capnp(bindings, upstream !== undefined, evicts, wasm !== null));
}

const script = async (entry, file, minify) => writeFileSync(file, await bundled(entry, { minify }));

/** Returns a Worker's script with its imports, except the wasm and the live page, which are modules of their own. */
export async function bundled(entry, options = {}) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2024",
    external: ["cloudflare:workers"],
    logLevel: "warning",
    plugins: [wasmBeside, pageBeside],
    ...options,
  });
  return outputFiles[0].contents;
}

const wasmBeside = {
  name: "wasm beside the script",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\.wasm$/ }, () => ({ path: "./tollgate.wasm", external: true })),
};

const pageBeside = {
  name: "page beside the script",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/(page|watch)\.html$/ }, () => ({ path: "./watch.html", external: true })),
};

/** Returns a binding: a string as text, any other value as JSON. */
const binding = ([name, value]) =>
  typeof value === "string"
    ? `(name = "${name}", text = ${JSON.stringify(value)})`
    : `(name = "${name}", json = ${JSON.stringify(JSON.stringify(value))})`;

const upstreamService = `(name = "upstream", worker = (
      modules = [(name = "upstream.js", esModule = embed "upstream.js")],
      compatibilityDate = "2026-09-01",
    )),`;

const wasmModule = '(name = "./tollgate.wasm", wasm = embed "tollgate.wasm"),';

const capnp = (bindings, hasUpstream, evicts, hasWasm) => `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "tollgate", worker = .tollgate),
    (name = "objects", disk = (path = "objects", writable = true)),
    (name = "internet", network = (allow = ["private"])),
    ${hasUpstream ? upstreamService : ""}
  ],
  sockets = [(name = "http", http = (), service = "tollgate")],
);

const tollgate :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "worker.js"),
    (name = "./watch.html", text = embed "watch.html"),
    ${hasWasm ? wasmModule : ""}
  ],
  compatibilityDate = "2026-09-01",
  bindings = [
    (name = "LIMITERS", durableObjectNamespace = "RateLimiterObject"),
    ${hasUpstream ? '(name = "UPSTREAM", service = "upstream"),' : ""}
    ${Object.entries(bindings).map(binding).join(",\n    ")}
  ],
  durableObjectNamespaces = [
    (
      className = "RateLimiterObject",
      uniqueKey = "tollgate",
      enableSql = true,
      preventEviction = ${!evicts},
    ),
  ],
  durableObjectStorage = (localDisk = "objects"),
);
`;

/** Starts workerd on such a folder. Returns its address, its output, and a function that kills it. */
export async function start(folder, { output = "pipe" } = {}) {
  const workerd = createRequire(import.meta.url)("workerd").default;
  const args = ["serve", "config.capnp", "--socket-addr", "http=127.0.0.1:0", "--control-fd=3"];
  // Ends with this process, also by a signal: a test runner that is stopped runs no `after`.
  const { child } = serve(workerd, args, { cwd: folder, stdio: ["ignore", output, "pipe", "pipe"] });
  const said = [];
  child.stdout?.on("data", (chunk) => said.push(String(chunk)));
  child.stderr.on("data", (chunk) => said.push(String(chunk)));
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`workerd ended with ${code}: ${said.join("")}`);
  });
  ended.catch(() => {});
  // workerd chooses a free port: one that was chosen here could be taken by then.
  const port = await Promise.race([portOf(child.stdio[3]), ended]);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid,
    said: () => said.join(""),
    kill: async () => {
      child.kill("SIGKILL");
      await ended.catch(() => {});
    },
  };
}

/** Returns the port that workerd listens on, from the first line that it writes to its control pipe. */
async function portOf(pipe) {
  const [line] = await once(createInterface(pipe), "line");
  return JSON.parse(line).port;
}
