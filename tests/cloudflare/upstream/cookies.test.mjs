// Proves that once the budget of a cookie is spent, no Cookie header reaches a server that reads that cookie in it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import * as rust from "../../../build/worker/tollgate.js";
import { inProject } from "../../../scripts/lib/paths.mjs";
import { prepare, start } from "../../../scripts/lib/workerd.mjs";
import { after, before } from "../../lib/hooks.mjs";
import { readAll } from "./cookie-readers.mjs";
import { fuzzed, hostile } from "./hostile-cookies.mjs";
import { send, sendAll, written } from "./raw.mjs";

const config = {
  policies: { one: { algorithm: "fix_window_per_key", limit: 1, scale: "1d" } },
  rules: [{ path: "/*", key: "cookie:id", missing: "skip", policies: "one" }],
  timeout: "1m",
  denyCache: false,
};

/** Returns the readers that find `abc` in each header, and the headers; only headers in which one does. */
function findings(headers) {
  const { values } = readAll(headers);
  return headers.flatMap((header, at) => {
    const readers = Object.keys(values).filter((name) => values[name][at] === "abc");
    return readers.length === 0 ? [] : [{ header, readers }];
  });
}

test("the readers of this machine find the value in hostile headers", (t) => {
  const headers = hostile.filter((header) => !header.includes("\r\n"));
  const { values, missing } = readAll(headers);
  for (const name of missing) t.diagnostic(`skipped: ${name} is not on this machine`);
  for (const [name, found] of Object.entries(values)) {
    const count = found.filter((value) => value === "abc").length;
    assert.ok(count > 5 && count < headers.length, `${name}: ${count}`);
  }
});

test("no reader finds another value than the plan counts", { timeout: 300_000 }, () => {
  rust.initSync({ module: readFileSync(inProject("build/worker/tollgate_bg.wasm")) });
  const gateway = new rust.Gateway(JSON.stringify({ ...config, upstream: "ORIGIN" }));
  // The platform decodes headers as UTF-8.
  const planned = (header) => {
    const cookie = Buffer.from(header, "latin1").toString();
    return gateway.plan("GET", "/", false, { get: (name) => (name === "cookie" ? cookie : undefined) });
  };
  const counted = planned("id=abc");
  const headers = [...hostile.filter((header) => !header.includes("\r\n")), ...fuzzed(60_000, 7)];
  const outcomes = headers.map(planned);
  const slipped = findings(
    headers.filter((_, at) => outcomes[at] !== counted && !outcomes[at]?.endsWith("?")),
  );
  assert.deepEqual(slipped.slice(0, 5), []);
  // Both ways out were taken, so that something was tested.
  for (const outcome of [counted, "0?", undefined])
    assert.ok(outcomes.filter((own) => own === outcome).length > 100);
});

const folder = mkdtempSync(join(tmpdir(), "tollgate-cookies-"));
const reached = [];
let origin;
let workerd;
before(async () => {
  origin = createServer((request, response) => {
    reached.push(request.rawHeaders);
    response.end("origin");
  });
  // A connection that is closed between two requests would be an answer of the gateway's.
  origin.keepAliveTimeout = 0;
  await once(origin.listen(0, "localhost"), "listening");
  const upstream = `http://localhost:${origin.address().port}`;
  await prepare(folder, inProject("js/cloudflare/worker.ts"), {
    bindings: { TOLLGATE: { ...config, upstream } },
  });
  workerd = await start(folder);
});
after(async () => {
  await workerd?.kill();
  origin?.close();
  origin?.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns what a server may make of the lines of a Cookie header: each by itself, and all of them joined. */
function headersOf(rawHeaders) {
  const lines = rawHeaders.filter((_, at) => at % 2 === 1 && /^cookie$/i.test(rawHeaders[at - 1]));
  return [...lines, lines.join("; "), lines.join(", "), lines.join(",")];
}

test("a spent cookie does not reach the origin in any spelling", { timeout: 600_000 }, async () => {
  const ask = (header) => written("GET", "/", [`Cookie: ${header}`]);
  assert.equal((await send(workerd.port, ask("id=abc"))).status, 200);
  const before = reached.length;
  const answers = await sendAll(workerd.port, [...hostile, ...fuzzed(700, 11)].map(ask));
  assert.deepEqual(findings(reached.slice(before).flatMap(headersOf)), []);
  const statuses = new Set(answers.map(({ status }) => status));
  assert.deepEqual([...statuses].sort(), [200, 400, 429]);
  const rejected = answers.find(({ status }) => status === 400);
  assert.match(rejected.body, /"title":"A header or cookie of the request is ambiguous"/);
});

test("cookies as browsers send them pass", async () => {
  const usual = [
    "id=user1",
    'theme=dark; id=user2; prefs={"a":1,"b":[2, 3]}; name="J. Doe"; q=a=b&c=d',
    'id="user3=="; _ga=GA1.2.3.4',
    "a=x y, z; id=us%C3%A9r4",
    "id=user5; id=user5",
    "other=1",
  ];
  for (const cookie of usual) {
    const { status } = await send(workerd.port, written("GET", "/", [`Cookie: ${cookie}`]));
    assert.equal(status, 200, cookie);
    assert.deepEqual(headersOf(reached.at(-1))[0], cookie);
  }
});
