// Known tricks with headers, methods, addresses and paths do not evade the gateway's rules.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { inProject } from "../../../scripts/lib/paths.mjs";
import { prepare, start } from "../../../scripts/lib/workerd.mjs";
import { after, before } from "../../lib/hooks.mjs";
import { send, written } from "./raw.mjs";

const folder = mkdtempSync(join(tmpdir(), "tollgate-tricks-"));
const one = { algorithm: "fix_window_per_key", limit: 1, scale: "1d" };
const many = { ...one, limit: 1_000 };
const rules = [
  { path: "/public/*", mode: "skip" },
  { path: "/api/*", policies: "many" },
  { path: "/login", policies: "one" },
  { path: "/got", method: "GET", policies: "one" },
  { path: "/deleted", method: "DELETE", policies: "one" },
  { path: "/keyed", key: "header:X-Key", missing: "skip", policies: "one" },
  { path: "/authorized", key: "header:Authorization", missing: "skip", policies: "one" },
  { path: "/session", key: "cookie:id", missing: "skip", policies: "one" },
  { path: "/exact", caseSensitive: true, policies: "one" },
];
const config = { policies: { one, many }, rules, timeout: "1m", methodOverride: true, denyCache: false };

const reached = [];
let origin;
let workerd;
before(async () => {
  origin = createServer((request, response) => {
    reached.push(request);
    response.end("origin");
  });
  origin.on("upgrade", (request, socket) => {
    reached.push(request);
    socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
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

let clients = 0;

/** A client of its own, at an address that nobody else has. */
function client() {
  clients += 1;
  const address = `CF-Connecting-IP: 198.51.${clients >> 8}.${clients & 255}`;
  return (method, target, headers = [], body = "") =>
    send(workerd.port, written(method, target, [address, ...headers], body));
}

const page = ["Origin: https://page.example", "Access-Control-Request-Method: POST"];
const upgrade = ["Upgrade: websocket", "Connection: Upgrade"];

/** What a client does after it has spent its one request by the first. */
const tricks = [
  ["a login behind a rule for something else", ["POST", "/login"], ["POST", "/api/..%2flogin"]],
  ["a login in capitals", ["POST", "/login"], ["POST", "/Login"]],
  ["a login with a slash", ["POST", "/login"], ["POST", "/login/"]],
  ["a login in a path of parameters", ["POST", "/login"], ["POST", "/login;v=1"]],
  ["a login out of what is public", ["POST", "/login"], ["POST", "/public/..%2flogin"]],
  ["a preflight without an origin", ["POST", "/login"], ["OPTIONS", "/login", page.slice(1)]],
  [
    "a preflight for nothing",
    ["POST", "/login"],
    ["OPTIONS", "/login", [page[0], `${page[1].split(" ")[0]} `]],
  ],
  ["a preflight with a body", ["POST", "/login"], ["OPTIONS", "/login", [...page, "Content-Length: 1"], "x"]],
  [
    "a preflight with a body of unknown length",
    ["POST", "/login"],
    ["OPTIONS", "/login", [...page, "Transfer-Encoding: chunked"], "1\r\nx\r\n0\r\n\r\n"],
  ],
  ["a login with an end that regular expressions drop", ["POST", "/login"], ["POST", "/login%0a"]],
  ["a preflight that is a WebSocket", ["POST", "/login"], ["OPTIONS", "/login", [...page, ...upgrade]]],
  ...["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"].map((method) => [
    `${method} that becomes GET`,
    ["GET", "/got"],
    [method, "/got", upgrade],
  ]),
  ...["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"].map((name) => [
    `DELETE by ${name}`,
    ["DELETE", "/deleted"],
    ["POST", "/deleted", [`${name}: delete`]],
  ]),
];

for (const [name, first, second] of tricks)
  test(`${name} is counted`, async () => {
    const ask = client();
    assert.equal((await ask(...first)).status, 200);
    const before = reached.length;
    assert.equal((await ask(...second)).status, 429);
    assert.equal(reached.length, before);
  });

/** The same credentials to an origin, where they are, and how often they are counted as others. */
const spellings = {
  "/keyed": [
    "X-Key: abc",
    "X-Key:abc",
    "X-Key:   abc  ",
    "X-Key:\tabc\t",
    "x-key: abc",
    "X-Key: \xa0abc",
    "X-Key: abc,",
    "X-Key: , abc",
    "X-Key: abc\r\nX-Key: ",
  ],
  "/authorized": [
    "Authorization: Bearer abc",
    "Authorization: bearer abc",
    "Authorization: BEARER abc",
    "Authorization: Bearer  abc",
    "Authorization: Bearer\tabc",
    "Authorization: Bearer abc ",
    "Authorization: Bearer abc junk",
    "Authorization: Bearer\xa0abc",
    "Authorization: Bearer abc\r\nAuthorization: Bearer x",
    "Authorization: Bearer abc;n=1",
    "Authorization: Bearer abc,n=1",
    "Authorization: Bearer abc\tn=1",
    "Authorization: Bearer\x1fabc",
    "Authorization: Token abc",
    'Authorization: Token token="abc";n=1',
    'Authorization: Token token="abc", nonce="x"',
    "Authorization: Bearer ;abc",
  ],
  "/session": [
    "Cookie: id=abc",
    "Cookie: id=%61bc",
    'Cookie: id="abc"',
    "Cookie: id= abc",
    "Cookie: id =abc",
    "Cookie: id=abc; id=abc",
    "Cookie: a=b;id=abc",
    "Cookie: ID=abc",
    "Cookie: a=b\r\nCookie: c=d;id=abc",
  ],
};

for (const [path, [first, ...others]] of Object.entries(spellings))
  test(`one credential of ${path} in every spelling is one budget`, async () => {
    assert.equal((await client()("GET", path, [first])).status, 200);
    for (const other of others) assert.equal((await client()("GET", path, [other])).status, 429, other);
    const foreign = first.replace("abc", "abd");
    assert.equal((await client()("GET", path, [foreign])).status, 200, foreign);
    // Without one there is no budget to spend.
    const answers = await Promise.all([1, 2].map(() => client()("GET", path)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    );
  });

test("credentials that servers read differently are rejected", async () => {
  const before = reached.length;
  for (const [path, header] of [
    ["/authorized", "Authorization: Basic dTpw,YQ=="],
    ["/authorized", "Authorization: Basic dTpwYQ==\r\nAuthorization: Basic eDp5"],
    ["/session", "Cookie: id=r1; id=abc"],
  ]) {
    const { status, body } = await client()("GET", path, [header]);
    assert.deepEqual(
      [status, JSON.parse(body).title],
      [400, "A header or cookie of the request is ambiguous"],
    );
  }
  assert.equal(reached.length, before);
});

/** Reads a token as ActionController::HttpAuthentication::Token does. */
function railsToken(header) {
  if (!/^(Token|Bearer)\s+/.test(header)) return undefined;
  const params = header
    .replace(/^(Token|Bearer)\s+/, "")
    .split(/,|;|\t/)
    .filter((param) => param !== "");
  if (params.length === 0) return undefined;
  const first = params[0].startsWith("token=") ? params[0] : `token=${params[0]}`;
  return first.slice("token=".length).replace(/^"|"$/g, "");
}

test("a spent token does not reach an origin that reads it as Rails does", { timeout: 300_000 }, async () => {
  assert.equal((await client()("GET", "/authorized", ["Authorization: Bearer railsbc"])).status, 200);
  const before = reached.length;
  const heads = ["Bearer ", "Token ", "Bearer\t", "Bearer  ", "Token token=", "Bearer token="];
  const tokens = ["railsbc", '"railsbc"', '"railsbc', 'railsbc"'];
  const ends = ["", ";n=1", ",n=1", "\tn=1", ";", " ;n=1", ', nonce="x"', " ,x"];
  const starts = ["", ";", ",", "\t", ",;"];
  let found = 0;
  for (const head of heads)
    for (const start of starts)
      for (const token of tokens)
        for (const end of ends) {
          const header = head + start + token + end;
          if (railsToken(header) !== "railsbc") continue;
          found += 1;
          const { status } = await client()("GET", "/authorized", [`Authorization: ${header}`]);
          assert.equal(status, 429, header);
        }
  assert.equal(reached.length, before);
  assert.ok(found > 300, String(found));
});

test("headers that replace the URL at some origins are dropped", async () => {
  const headers = ["X-Original-URL: /login", "X-Rewrite-URL: /login", "X-Other: kept"];
  // On a path that no rule limits, one that is limited, and one that is skipped.
  for (const path of ["/free", "/api/x", "/public/x"]) {
    assert.equal((await client()("POST", path, headers)).status, 200);
    const names = Object.keys(reached.at(-1).headers);
    assert.deepEqual([names.includes("x-other"), names.filter((name) => name.endsWith("-url"))], [true, []]);
  }
});

test("a header in several lines reaches the origin as it was counted", async () => {
  const lines = ["X-Key: line one", "X-Key: line two"];
  assert.equal((await client()("GET", "/keyed", lines)).status, 200);
  const { rawHeaders } = reached.at(-1);
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && /^x-key$/i.test(rawHeaders[at - 1]));
  assert.deepEqual(values, ["line one, line two"]);
  assert.equal((await client()("GET", "/keyed", ["X-Key: line one, line two"])).status, 429);
});

test("a network of IPv6 is one client, however an address is spelled", async () => {
  const from = (address) => send(workerd.port, written("GET", "/login", [`CF-Connecting-IP: ${address}`]));
  assert.equal((await from("2001:db8:5:1::1")).status, 200);
  for (const address of ["2001:db8:5:1::2", "2001:0DB8:0005:0001:ffff::", "2001:db8:5:1:0:0:1.2.3.4"])
    assert.equal((await from(address)).status, 429, address);
  assert.equal((await from("2001:db8:5:2::1")).status, 200);
});

test("a request that two rules match has the headers of both", async () => {
  const { status, headers } = await client()("POST", "/api/..%2flogin");
  assert.equal(status, 200);
  assert.equal(headers["ratelimit-policy"], '"many";q=1000;w=86400, "one";q=1;w=86400');
  assert.match(headers.ratelimit, /^"many";r=999;t=\d+, "one";r=0;t=\d+$/);
});

test("a preflight of a browser costs nothing", async () => {
  const ask = client();
  for (let count = 0; count < 3; count += 1) assert.equal((await ask("OPTIONS", "/login", page)).status, 200);
  assert.equal((await ask("POST", "/login")).status, 200);
});

test("letter case matters where a rule says so", async () => {
  const ask = client();
  assert.equal((await ask("GET", "/exact")).status, 200);
  assert.equal((await ask("GET", "/Exact")).status, 200);
  assert.equal((await ask("GET", "/exact")).status, 429);
});

test("a bound Worker gets the URL that was counted", async () => {
  const own = join(folder, "bound");
  const bindings = { TOLLGATE: { ...config, upstream: "UPSTREAM" } };
  await prepare(own, inProject("js/cloudflare/worker.ts"), {
    bindings,
    upstream: inProject("tests/cloudflare/upstream/echo.js"),
  });
  const bound = await start(own);
  try {
    for (const [target, arrives] of [
      ["/api/%2e%2e/public/x?a=%2e", "/public/x?a=%2e"],
      ["/public\\x", "/public/x"],
      ["/public/%2fx", "/public/%2fx"],
    ]) {
      const { status, body } = await send(bound.port, written("GET", target));
      assert.deepEqual([status, body], [200, `GET http://localhost${arrives}`]);
    }
  } finally {
    await bound.kill();
  }
});
