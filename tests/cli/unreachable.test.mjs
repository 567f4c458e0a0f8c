// Rules that no request reaches, by `check` and by the gateway's own matching, which `replay --config` uses.

import assert from "node:assert/strict";
import test from "node:test";
import { folderWith, replay, tollgate } from "./lib/tollgate.mjs";

const head = `compatibility_date = "2026-09-01"
[[durable_objects.bindings]]
name = "LIMITERS"
class_name = "RateLimiterObject"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["RateLimiterObject"]
[vars.TOLLGATE]
upstream = "https://origin.example"
[vars.TOLLGATE.policies]
api = { algorithm = "fix_window", limit = 9, scale = "1m" }
later = { algorithm = "fix_window", limit = 9, scale = "1m" }
`;

const config = (rules) =>
  head +
  rules
    .map((rule) => {
      const fields = Object.entries({ policies: "api", ...rule });
      return `[[vars.TOLLGATE.rules]]\n${fields.map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`).join("")}`;
    })
    .join("");

const paths = [
  "/",
  "/a",
  "/A",
  "/a/b",
  "/a/B",
  "/A/b",
  "/a/b/c",
  "/a/x",
  "/x",
  "/x/b",
  "/a.",
  "/a/",
  "/a%2fb",
];
const methods = ["GET", "HEAD", "POST", "OPTIONS", "PROPFIND"];
const log = methods
  .flatMap((method) =>
    paths.map((path) => `${JSON.stringify({ time: 1791640536, ip: "::1", method, path })}\n`),
  )
  .join("");

/** An earlier rule, a later one, and whether requests reach the later one. */
const pairs = [
  [{ path: "/*" }, { path: "/a" }, false],
  [{ path: "/*", mode: "shadow" }, { path: "/*" }, false],
  [{ path: "/a/*" }, { path: "/a" }, false],
  [{ path: "/a/*" }, { path: "/a/:id/c" }, false],
  [{ path: "/a/:id" }, { path: "/a/b" }, false],
  [{ path: "/:one/b" }, { path: "/a/b" }, false],
  [{ path: "/a" }, { path: "/a/" }, false],
  [{ path: "/a" }, { path: "/a", caseSensitive: true }, false],
  [{ path: "/:one", caseSensitive: true }, { path: "/a" }, false],
  [{ path: "/a", method: ["GET", "POST"] }, { path: "/a", method: ["HEAD", "POST"] }, false],
  [{ path: "/a" }, { path: "/*" }, true],
  [{ path: "/a" }, { path: "/a/*" }, true],
  [{ path: "/a/b" }, { path: "/a/:id" }, true],
  [{ path: "/a/:id" }, { path: "/a/*" }, true],
  [{ path: "/a" }, { path: "/A" }, true],
  [{ path: "/a", caseSensitive: true }, { path: "/a" }, true],
  [{ path: "/*", method: "GET" }, { path: "/a" }, true],
  [{ path: "/*", method: "HEAD" }, { path: "/a", method: "GET" }, true],
];

for (const [first, second, isReached] of pairs) {
  const names = [first, second].map((rule) => JSON.stringify(rule)).join(", ");
  test(`${names}: the second rule is ${isReached ? "reached" : "an error"}`, async (t) => {
    const at = folderWith(t, { "wrangler.toml": config([first, { ...second, policies: "later" }]), log });
    const { stdout } = await tollgate(["check", "--json"], { cwd: at("") });
    assert.deepEqual(
      JSON.parse(stdout).errors.map(({ field }) => field),
      isReached ? [] : ["vars.TOLLGATE.rules[1].path"],
    );
    const { candidates } = await replay([at("log"), "--config", at("wrangler.toml")]);
    assert.equal(candidates[0].rules[1].hits > 0, isReached);
  });
}

test("an error names the rule that matches first; preflights reach a rule that names OPTIONS", async (t) => {
  const later = { path: "/a", method: ["GET", "OPTIONS"] };
  const at = folderWith(t, {
    "wrangler.toml": config([{ path: "/x" }, { path: "/:any" }, { path: "/a" }]),
    "preflights.toml": config([{ path: "/*" }, later]),
  });
  const { code, stdout } = await tollgate(["check"], { cwd: at("") });
  assert.equal(code, 1);
  assert.equal(
    stdout,
    'wrangler.toml:21: vars.TOLLGATE.rules[2].path: never applies, because rules[1] ("/:any") matches the same requests first\n',
  );
  assert.equal((await tollgate(["check", "preflights.toml"], { cwd: at("") })).code, 0);
});
