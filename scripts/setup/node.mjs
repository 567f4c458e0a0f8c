import { dirname } from "node:path";
import { ownNode, withPath } from "../lib/paths.mjs";
import { outputOf, show } from "../lib/run.mjs";
import { Failure } from "../lib/say.mjs";

/** The oldest Node for wrangler and vitest; the published package runs on older ones. */
const needed = 22;

/**
 * Runs this program again under the Node of package.json, so that every machine runs the same one.
 * Returns true if that process has done all the work.
 */
export async function continuedUnderOwnNode() {
  const version = outputOf(ownNode, ["--version"]);
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
    // Its children find the same Node, as they would under npm.
    await show(ownNode, process.argv.slice(1), { env: withPath([dirname(ownNode)]) });
  } catch {
    // The child has printed the error.
    process.exitCode ||= 1;
  }
  return true;
}
