import { inProject } from "../../scripts/lib/paths.mjs";
import * as workerd from "../../scripts/lib/workerd.mjs";

export const token = "durable";

/** Puts the Worker as it would be deployed into a folder, with a place for its objects beside it. */
export const bundle = (folder, config) =>
  workerd.prepare(folder, inProject("js/cloudflare/worker.ts"), {
    bindings: { TOLLGATE: config, TOLLGATE_TOKEN: token },
  });

/** Starts workerd on that folder: the way to ask it, what it says, and the way to end it at once. */
export async function start(folder) {
  const { url, said, kill } = await workerd.start(folder);
  return { url, said, kill, ask: (operation, item) => ask(url, operation, item) };
}

async function ask(url, operation, item) {
  const response = await fetch(`${url}/_tollgate/v1/${operation}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(item),
  });
  const body = await response.json();
  if (!response.ok) throw new Error(`${response.status}: ${JSON.stringify(body)}`);
  return body;
}
