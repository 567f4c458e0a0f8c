import { dirname } from "node:path";
import { ownNode, withPath } from "../lib/paths.mjs";
import { ask, show } from "../lib/run.mjs";
import { Failure } from "../lib/say.mjs";

/** wrangler and vitest need this; the published package does not. */
const needed = 22;

/**
 * Goes on under the Node of package.json, so that every machine runs the same one.
 * True when another process has done all the work.
 */
export async function continuedUnderOwnNode() {
  const version = ask(ownNode, ["--version"]);
  if (version === process.version) return false;
  if (version === null) {
    if (Number.parseInt(process.versions.node, 10) >= needed) return false;
    throw new Failure(
      `Node ${process.versions.node} is too old, and the npm package "node" does not run here`,
      {
        remedy: `install Node ${needed} or newer (https://nodejs.org), then run this again.`,
      },
    );
  }
  try {
    // What it starts finds the same Node, as it would under npm.
    await show(ownNode, process.argv.slice(1), { env: withPath([dirname(ownNode)]) });
  } catch {
    // The child has said what was wrong.
    process.exitCode ||= 1;
  }
  return true;
}
