// `replay --price` estimates what `docs/cost.md` has measured, in each mode, and knows no other prices.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { pricesAsOf } from "../../bench/worker/prices.mjs";
import { inProject } from "../../scripts/lib/paths.mjs";
import { folderWith, replay, tollgate } from "./lib/tollgate.mjs";

const start = Date.UTC(2026, 9, 10);
const guide = readFileSync(inProject("docs/cost.md"), "utf8");

/** Returns the numbers of a row of the guide: of a million hits, or of a million keys. */
function measured(name) {
  const row = guide.split("\n").find((line) => line.startsWith(`| ${name} |`));
  assert.ok(row, name);
  const [, , ...cells] = row.split("|").map((cell) => Number(cell.replaceAll(",", "")));
  return { objectRequests: cells[0], rowsWritten: cells[1], usd: cells[2] };
}

/** Returns a log in which key `keyOf(n)` has hit number n at `timeOf(n)`. */
const log = (hits, timeOf, keyOf = () => "key") =>
  Array.from({ length: hits }, (_, n) => JSON.stringify({ time: start + timeOf(n), key: keyOf(n) })).join(
    "\n",
  );

async function priced(input, policy, more = []) {
  const args = ["--key", "key", "--price", "--policy", JSON.stringify(policy), ...more];
  const { candidates } = await replay(args, { input });
  const { asOf, modes, perMonth } = candidates[0].price;
  assert.equal(asOf, pricesAsOf);
  return { ...Object.fromEntries(modes.map((mode) => [mode.mode, mode])), perMonth };
}

/** Checks that a mode costs what the guide says of a million, within some percent. */
function agrees(estimate, hits, name, percent) {
  const expected = measured(name);
  for (const field of ["objectRequests", "rowsWritten", "usd"]) {
    const scaled = (estimate[field] / hits) * 1e6;
    const isNear = Math.abs(scaled - expected[field]) <= (expected[field] * percent) / 100;
    assert.ok(isNear, `${name}: ${field} is ${scaled}, not ${expected[field]}`);
  }
}

test("a hot key costs what was counted in workerd, in each mode", async () => {
  const hits = 200_000;
  const policy = { algorithm: "fix_window", limit: 1_000_000, scale: "1h" };
  const price = await priced(
    log(hits, (n) => 10 * n),
    policy,
  );
  for (const mode of ["by default", "credit = true", "leases = true", "both"]) {
    const name = mode === "both" ? mode : mode.replace(/^(\w+ = true)$/, "`$1`");
    agrees(price[mode], hits, name, 10);
  }
});

test("allowed and denied hits of keys cost a request each, and allowed ones a row", async () => {
  // One hit of each key in ten seconds: neither leases nor credit, nor the deny cache, save anything.
  const hits = 20_000;
  const [at, key] = [(n) => 10_000 * Math.floor(n / 100), (n) => `key${n % 100}`];
  const all = await priced(log(hits, at, key), { algorithm: "fix_window", limit: 1_000_000, scale: "day" });
  for (const mode of ["without the deny cache", "by default", "credit = true", "leases = true", "both"])
    agrees(all[mode], hits, "all allowed", 1.5);
  assert.equal(all.perMonth, undefined);
  const none = await priced(log(hits, at, key), { algorithm: "fix_window", limit: 1, scale: "month" });
  const { objectRequests, rowsWritten } = none["by default"];
  // A first hit writes two rows; the end of a key is a request.
  assert.deepEqual([objectRequests, rowsWritten], [hits + 100, 200]);
});

test("a flood of denials is a request in two seconds, unless denied hits count", async () => {
  const hits = 10_000;
  const flood = log(hits, (n) => 10 * n);
  const policy = { algorithm: "fix_window", limit: 1, scale: "day" };
  const { "by default": cached, "without the deny cache": uncached } = await priced(flood, policy);
  assert.deepEqual([uncached.objectRequests, uncached.rowsWritten], [hits + 1, 2]);
  // 9,999 denials in a hundred seconds, and the first hit, and the end of the key.
  assert.deepEqual([cached.objectRequests, cached.rowsWritten], [50 + 2, 2]);
  const { perMonth, ...counting } = await priced(flood, { ...policy, denied: "count" });
  assert.deepEqual(Object.keys(counting), ["without the deny cache"]);
  const list = [policy, { algorithm: "ban", after: 5, scale: "1h", for: "1h" }];
  const { "by default": banned } = await priced(flood, list);
  // Each violation writes a row, and none is repeated; the ban is.
  assert.equal(banned.rowsWritten, 2 + 4);
});

test("a rule with two limits is two requests, and gives back what the other denied", async (t) => {
  const at = folderWith(t, {
    "wrangler.toml": [
      'name = "limits"\nmain = "worker.js"\ncompatibility_date = "2026-01-01"',
      '[[durable_objects.bindings]]\nname = "LIMITERS"\nclass_name = "RateLimiterObject"',
      '[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["RateLimiterObject"]',
      '[vars.TOLLGATE]\nupstream = "https://example.com"',
      '[vars.TOLLGATE.policies]\nsmall = { algorithm = "fix_window", limit = 2, scale = "day" }',
      'large = { algorithm = "fix_window", limit = 100, scale = "day" }',
      '[[vars.TOLLGATE.rules]]\npath = "/*"',
      'limits = [{ key = "ip", policies = "small" }, { key = "constant:all", policies = "large" }]',
    ].join("\n"),
    "access.log": Array.from(
      { length: 4 },
      (_, n) => `192.0.2.1 - - [10/Oct/2026:13:5${n}:00 +0000] "GET / HTTP/1.1" 200 9`,
    ).join("\n"),
  });
  const { candidates } = await replay([at("access.log"), "--config", at("wrangler.toml"), "--price"]);
  const { objectRequests, rowsWritten } = candidates[0].price.modes[1];
  // Two allowed are two each; of two denied one object denies, and one sets aside and is called again. Two keys.
  assert.deepEqual([objectRequests, rowsWritten], [4 + 2 * 3 + 2, 4 + 2 * 2 + 2]);
});

test("text and report show the modes, and a month only of a log that is long enough", async (t) => {
  const at = folderWith(t, {});
  const args = ["replay", "--key", "key", "--policy", "100/1m", "--price", "--html", at("report.html")];
  const { stdout } = await tollgate(args, { input: log(500, (n) => 60_000 * n) });
  assert.match(stdout, /^ {2}as a Worker +object requests +rows written +USD +USD a month$/m);
  assert.match(stdout, /^ {2}by default +501 +501 +0\.00058 +0\.\d\d$/m);
  assert.match(stdout, /^ {2}An estimate through one isolate, by the prices of September 2026; /m);
  const html = readFileSync(at("report.html"), "utf8");
  assert.match(html, /What it would cost as a Worker on Cloudflare/);
  assert.match(html, /<th scope="row">both<\/th><td>501<\/td>/);
  const short = await tollgate(args, { input: log(5, (n) => 1_000 * n) });
  assert.doesNotMatch(short.stdout, /a month/);
  const without = await tollgate(
    args.filter((arg) => arg !== "--price"),
    { input: log(5, (n) => 1_000 * n) },
  );
  assert.doesNotMatch(without.stdout, /as a Worker/);
});
