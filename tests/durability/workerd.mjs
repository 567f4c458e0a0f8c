import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import { inProject } from "../../scripts/lib/paths.mjs";

export const token = "durable";

/** Puts the Worker as it would be deployed into a folder, with a place for its objects beside it. */
export async function bundle(folder, config) {
  await build({
    entryPoints: [inProject("js/cloudflare/worker.ts")],
    outfile: join(folder, "worker.js"),
    bundle: true,
    format: "esm",
    target: "es2024",
    external: ["cloudflare:workers"],
    logLevel: "warning",
    plugins: [wasmBeside],
  });
  cpSync(inProject("build/cloudflare/tollgate_bg.wasm"), join(folder, "tollgate.wasm"));
  mkdirSync(join(folder, "objects"));
  writeFileSync(join(folder, "config.capnp"), capnp(config));
}

const wasmBeside = {
  name: "wasm beside the script",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\.wasm$/ }, () => ({ path: "./tollgate.wasm", external: true })),
};

const capnp = (config) => `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "tollgate", worker = .tollgate),
    (name = "objects", disk = (path = "objects", writable = true)),
  ],
  sockets = [(name = "http", http = (), service = "tollgate")],
);

const tollgate :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "worker.js"),
    (name = "./tollgate.wasm", wasm = embed "tollgate.wasm"),
  ],
  compatibilityDate = "2026-09-01",
  bindings = [
    (name = "LIMITERS", durableObjectNamespace = "RateLimiterObject"),
    (name = "TOLLGATE_TOKEN", text = ${JSON.stringify(token)}),
    (name = "TOLLGATE", json = ${JSON.stringify(JSON.stringify(config))}),
  ],
  durableObjectNamespaces = [
    (className = "RateLimiterObject", uniqueKey = "tollgate", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "objects"),
);
`;

/** Starts workerd on that folder: what it says, and the way to end it at once. */
export async function start(folder) {
  const port = await freePort();
  const workerd = createRequire(import.meta.url)("workerd").default;
  const args = ["serve", "config.capnp", "--socket-addr", `http=localhost:${port}`, "--control-fd=3"];
  const child = spawn(workerd, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe", "pipe"] });
  const said = [];
  child.stdout.on("data", (chunk) => said.push(String(chunk)));
  child.stderr.on("data", (chunk) => said.push(String(chunk)));
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`workerd ended with ${code}: ${said.join("")}`);
  });
  ended.catch(() => {});
  await Promise.race([once(child.stdio[3], "data"), ended]);
  return {
    url: `http://localhost:${port}`,
    said: () => said.join(""),
    ask: (operation, item) => ask(port, operation, item),
    kill: async () => {
      child.kill("SIGKILL");
      await ended.catch(() => {});
    },
  };
}

async function ask(port, operation, item) {
  const response = await fetch(`http://localhost:${port}/_tollgate/v1/${operation}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(item),
  });
  const body = await response.json();
  if (!response.ok) throw new Error(`${response.status}: ${JSON.stringify(body)}`);
  return body;
}

async function freePort() {
  const server = createServer().listen(0, "localhost");
  await once(server, "listening");
  const { port } = server.address();
  await once(server.close(), "close");
  return port;
}
