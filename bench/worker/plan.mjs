import { readFileSync } from "node:fs";
import { inProject } from "../../scripts/lib/paths.mjs";
import { median, table } from "../results.mjs";

const policy = { algorithm: "token_bucket", capacity: 10, refillRate: 1 };
const config = {
  upstream: "UPSTREAM",
  policies: { api: policy, rest: policy },
  rules: [
    { path: "/public/*", mode: "skip" },
    { method: "POST", path: "/login", policies: "api" },
    { path: "/users/:id/files", policies: "api" },
    { path: "/api/*", key: "header:Authorization", policies: "api" },
    { path: "/*", policies: "rest" },
  ],
};
const headers = new Headers({ "CF-Connecting-IP": "192.0.2.1", Authorization: "Bearer abcdefgh" });

/** Paths with one reading, with a few, and the worst that fit into 8 kB. */
const paths = {
  "/api/search": "/api/search",
  "/public/logo.png": "/public/logo.png",
  "/files/a%20b": "/files/a%20b",
  "/api/..%2flogin": "/api/..%2flogin",
  "8 kB of %25": `/${"%25".repeat(2_700)}`,
  "8 kB of /..": "/..".repeat(2_700),
  "8 kB of everything at once": "/..%2f%5c;%252e%252e%3b\\%255c%253b//".repeat(216),
};

const rounds = 15;

/** Microseconds that a plan takes, in Node: the median of rounds of about 20 ms. */
function measure(gateway, path) {
  const run = (times) => {
    const from = performance.now();
    for (let count = 0; count < times; count += 1) gateway.plan("GET", path, false, headers);
    return ((performance.now() - from) * 1_000) / times;
  };
  const times = Math.max(1, Math.round(20_000 / run(50)));
  return median(Array.from({ length: rounds }, () => run(times)));
}

/** How long it takes to find the rules and the key of a request. */
export async function plan() {
  const rust = await import(inProject("build/worker/tollgate.js"));
  rust.initSync({ module: readFileSync(inProject("build/worker/tollgate_bg.wasm")) });
  const gateway = new rust.Gateway(JSON.stringify(config));
  const rows = Object.entries(paths).map(([name, path]) => [
    `\`${name}\``,
    measure(gateway, path).toFixed(1),
  ]);
  return [
    "### Plan",
    `Finding the rules and the key of a request, five rules: the medians of ${rounds} rounds, in Node.`,
    table(["path", "µs"], rows),
  ].join("\n\n");
}
