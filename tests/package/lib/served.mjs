import assert from "node:assert/strict";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { serve } from "../../../scripts/lib/run.mjs";

/** Starts the server of an example until the test ends, and returns the address that it prints. */
export async function served(t, folder) {
  const { child: server } = serve(process.execPath, ["server.mjs"], {
    cwd: folder,
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => server.kill());
  const ended = once(server, "exit").then(([code]) => assert.fail(`the server ended with exit code ${code}`));
  const [line] = await Promise.race([once(createInterface(server.stdout), "line"), ended]);
  return `http://127.0.0.1:${new URL(line).port}/`;
}
