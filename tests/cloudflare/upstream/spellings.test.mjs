// No spelling of a path reaches a limited handler of a real server uncounted.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { inProject } from "../../../scripts/lib/paths.mjs";
import { prepare, start } from "../../../scripts/lib/workerd.mjs";
import { handledBy, originNames, startOriginNamed } from "./origins.mjs";
import { sendAll, written } from "./raw.mjs";
import { spellings } from "./spellings.mjs";

const folder = mkdtempSync(join(tmpdir(), "tollgate-spellings-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A policy for each handler that is limited, of the handler's name, so that an answer's headers say what was counted. */
const many = { algorithm: "fix_window_per_key", limit: 1_000_000, scale: "1d" };
const config = {
  policies: { api: many, login: many, users: many, rest: many },
  rules: [
    { path: "/public/*", mode: "skip" },
    { path: "/api/*", policies: "api" },
    { path: "/login", policies: "login" },
    { path: "/users/:id/files", policies: "users" },
    { path: "/*", policies: "rest" },
  ],
  timeout: "1m",
  onError: "deny",
};

const paths = spellings();

/** Each origin gets one in so many, which are others for each; `TOLLGATE_SPELLINGS=all` gives each of them all. */
const share = process.env.TOLLGATE_SPELLINGS === "all" ? 1 : originNames.length;

/** Whether the handler that answered is not limited, or is one that was counted. */
function isCounted({ headers }) {
  const handler = headers[handledBy];
  if (handler === undefined || handler === "public") return true;
  return headers["ratelimit-policy"]?.includes(`"${handler}"`) ?? false;
}

test("there are tens of thousands of spellings", () => assert.ok(paths.length > 20_000, `${paths.length}`));

for (const [number, name] of originNames.entries())
  test(`no spelling reaches a limited handler of ${name} uncounted`, { timeout: 600_000 }, async () => {
    const origin = await startOriginNamed(name);
    const own = join(folder, String(number));
    const bindings = { TOLLGATE: { ...config, upstream: origin.url } };
    await prepare(own, inProject("tests/cloudflare/upstream/allowing.js"), { bindings });
    const workerd = await start(own);
    try {
      const part = paths.filter((_, at) => at < 20 || at % share === number % share);
      const requests = part.map((path) => written("GET", path));
      const answers = await sendAll(workerd.port, requests);
      const uncounted = part.filter((_, at) => !isCounted(answers[at]));
      const failed = part.filter((_, at) => answers[at].status >= 500);
      assert.deepEqual({ uncounted, failed }, { uncounted: [], failed: [] });
      const handlers = new Set(answers.map(({ headers }) => headers[handledBy]));
      for (const handler of ["public", "api", "login", "users", "rest"])
        assert.ok(handlers.has(handler), handler);
    } finally {
      await workerd.kill();
      origin.close();
    }
  });
