import assert from "node:assert/strict";
import { inProject } from "../../../scripts/lib/paths.mjs";
import * as workerd from "../../../scripts/lib/workerd.mjs";

export const token = "durable";

/** Puts the Worker as it would be deployed into a folder, with a place for its objects beside it. */
export const bundle = (folder, config) =>
  workerd.prepare(folder, inProject("js/cloudflare/worker.ts"), {
    bindings: { TOLLGATE: config, TOLLGATE_TOKEN: token },
  });

/** Starts workerd on that folder: the way to ask it, what it says, and the way to end it at once. */
export async function start(folder) {
  const { url, port, said, kill } = await workerd.start(folder);
  return { url, port, said, kill, ask: (operation, item) => ask(url, operation, item) };
}

/** Opens a connection for each request: workerd closes a kept one after five seconds, which may be just before its use. */
async function ask(url, operation, item) {
  const response = await fetch(`${url}/_tollgate/v1/${operation}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Connection: "close" },
    body: JSON.stringify(item),
  });
  const body = await response.json();
  if (!response.ok) throw new Error(`${response.status}: ${JSON.stringify(body)}`);
  return body;
}

/**
 * Loads workerd on all connections, and kills it after a number of answers. Each connection gets the way to ask, and
 * asks until workerd is gone. Answers are counted, not time, since a busy machine gives few answers in a time.
 */
export async function killUnderLoad(workerd, answers, connections) {
  const enough = Promise.withResolvers();
  let left = answers;
  const counted = async (operation, item) => {
    const answer = await workerd.ask(operation, item);
    left -= 1;
    if (left === 0) enough.resolve();
    return answer;
  };
  const loads = connections.map((connection) => connection(counted));
  const ends = Promise.allSettled(loads);
  try {
    // A connection that ends before the kill has failed.
    await Promise.race([enough.promise, ...loads]);
  } finally {
    await workerd.kill();
  }
  for (const { reason } of await ends) assert.notEqual(reason.code, "ERR_ASSERTION", reason.message);
}

/** How many answers come before each kill: from few to many, in no order, and the same in every run. */
export const kills = (rounds, [least, most]) =>
  Array.from({ length: rounds }, (_, round) => {
    const share = ((round * 0.618_034) % 1) * (most - least);
    return least + Math.round(share);
  });
