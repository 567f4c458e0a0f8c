// `RemoteLimiter` works in a page of a configured origin, and in no other.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { inProject } from "../../../scripts/lib/paths.mjs";
import { bundle, start, token } from "../../cloudflare/durability/workerd.mjs";
import { launch, openPage } from "../../lib/browser/chromium.mjs";
import { serveSite } from "../../lib/browser/site.mjs";
import { after, before } from "../../lib/hooks.mjs";

const folder = mkdtempSync(join(tmpdir(), "tollgate-remote-"));
const client = (_, response) =>
  response
    .writeHead(200, { "Content-Type": "text/javascript" })
    .end(readFileSync(inProject("dist/client.js")));

let chromium;
let named;
let other;
let workerd;
before(async () => {
  [chromium, named, other] = await Promise.all([
    launch(),
    serveSite({ "/client.js": client }),
    serveSite({ "/client.js": client }),
  ]);
  const policies = { api: { algorithm: "fix_window_per_key", limit: 2, scale: "1d" } };
  await bundle(folder, { policies, origins: [named.url], timeout: "1m" });
  workerd = await start(folder);
});
after(async () => {
  await chromium?.close();
  named?.close();
  other?.close();
  await workerd?.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** In the page: three hits at once, and one with a token that is wrong. */
async function hits({ url, token, key }) {
  const { RemoteLimiter } = await import("/client.js");
  const limiter = (token) =>
    new RemoteLimiter({ url: `${url}/_tollgate`, token, policy: "api", timeout: 60_000 });
  const code = (error) => error.code;
  const remote = limiter(token);
  const decisions = await Promise.all([1, 2, 3].map(() => remote.hit(key).catch(code)));
  return {
    allowed: decisions.map((decision) => decision.allowed ?? decision).sort(),
    wrong: await limiter("wrong").hit(key).catch(code),
  };
}

const hitsFrom = async (site, key) => {
  const { page } = await openPage(await chromium.newContext(), `${site.url}/blank`);
  return page.evaluate(hits, { url: workerd.url, token, key });
};

test("RemoteLimiter works in a page of a configured origin, with typed errors", async () => {
  assert.deepEqual(await hitsFrom(named, "named"), { allowed: [false, true, true], wrong: "unauthorized" });
});

test("in a page of any other origin it gets no response, and charges nothing", async () => {
  assert.deepEqual(await hitsFrom(other, "other"), {
    allowed: ["unanswered", "unanswered", "unanswered"],
    wrong: "unanswered",
  });
  assert.equal((await workerd.ask("get", { policy: "api", key: "other" })).count, 0);
});
