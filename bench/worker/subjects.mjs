import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inProject } from "../../scripts/lib/paths.mjs";
import { prepare, start } from "../../scripts/lib/workerd.mjs";
import { policies } from "./workers/policies.js";

export const packages = ["workerd"];

export const worker = (name) => inProject("bench/worker/workers", name);
export const upstream = worker("upstream.js");

/** The gateway's configuration: the paths and policies that the Workers by hand have. */
export const gateway = (more) => ({
  TOLLGATE: {
    upstream: "UPSTREAM",
    policies,
    rules: Object.keys(policies).map((name) => ({ path: `/${name}`, key: "ip", policies: name })),
    timeout: "10s",
    // An object that does not answer must not pass for one that allows.
    onError: "deny",
    ...more,
  },
});

const own = (more) => ({ entry: inProject("js/cloudflare/worker.ts"), upstream, bindings: gateway(more) });

/** What is compared: each in a workerd of its own. */
export const subjects = {
  "object by hand": { entry: worker("by-hand.js") },
  "Tollgate's object": { entry: worker("own-object.js") },
  "gateway by hand": { entry: worker("by-hand-proxy.js"), upstream },
  "Tollgate's gateway": own({}),
  "Tollgate's gateway, deny cache off": own({ denyCache: false }),
  "Tollgate's object with credit": {
    entry: worker("own-object.js"),
    bindings: { TOLLGATE: { credit: true } },
  },
  "Tollgate's gateway with credit": own({ credit: true }),
  "Tollgate's gateway with leases": own({ leases: true, credit: true }),
  "a gateway without limits": { entry: worker("pass.js"), upstream },
};

/** Starts each of these in a folder of its own, lends them out, and leaves nothing behind. */
export async function running(chosen, work) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-bench-"));
  const started = {};
  try {
    for (const [number, [name, { entry, ...options }]] of Object.entries(chosen).entries()) {
      const own = join(folder, String(number));
      mkdirSync(own);
      // What is measured is objects in memory, however long the others take.
      await prepare(own, entry, { ...options, evicts: false });
      started[name] = await start(own, { output: "ignore" });
    }
    return await work(started);
  } finally {
    for (const { kill } of Object.values(started)) await kill();
    rmSync(folder, { recursive: true, force: true });
  }
}
