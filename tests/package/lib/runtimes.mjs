import { bin } from "../../../scripts/lib/paths.mjs";
import { node20, node22 } from "../../../scripts/setup/older-nodes.mjs";

const older = [
  { name: "Node 20", ...(node20.check() ?? { why: "Node 20 is not set up" }) },
  { name: "Node 22", ...(node22.check() ?? { why: "Node 22 is not set up" }) },
];

/** The versions of Node: `{ name, program, args, why }`, where `why` says why there is no program. */
export const nodes = [
  ...older,
  { name: `Node ${Number.parseInt(process.versions.node, 10)}`, program: process.execPath },
].map((node) => ({ args: [], ...node }));

/** The runtimes that run programs as Node does. Deno has no permissions. */
export const runtimes = [
  ...nodes,
  { name: "Bun", program: bin("bun"), args: [] },
  { name: "Deno", program: bin("deno"), args: ["run", "--no-prompt", "--cached-only"] },
].map((runtime) => ({ skip: runtime.why ?? false, ...runtime }));
