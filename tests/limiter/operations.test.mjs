// Every surface has the operations that the table in src/operations.rs says, and the guides name them with their fields.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { describe } from "node:test";
import { step } from "tollgate";
import { lacking, operations, resultFields } from "../../js/wasm/operations.ts";
import { inProject } from "../../scripts/lib/paths.mjs";
import { pinned } from "../api/names.mjs";

const names = Object.keys(operations);

/** Returns the name of an operation's method. */
const methodOf = (name) => name.replaceAll(/_(\w)/g, (_, letter) => letter.toUpperCase());

const text = (file) => readFileSync(inProject(file), "utf8");

/** Returns a function that tells whether a class declares the method of an operation to its users. */
const inClass = (name) => {
  const listed = pinned("limiters").split("\n\n");
  const own = listed.find((members) => members.startsWith(`${name}\n`));
  return (operation) => own.includes(`\n  ${methodOf(operation)}(`);
};

/** Returns a function that tells whether a file declares the method of an operation. */
const inFile = (file, declaration) => {
  const found = new Set([...text(file).matchAll(declaration)].map(([, name]) => name));
  return (name) => found.has(name) || found.has(methodOf(name));
};

const policy = { algorithm: "fix_window", limit: 5, scale: "1m" };
const method = /^ {2}(?:async )?(\w+)\(/gm;

const surfaces = {
  memory: inClass("RateLimiter"),
  ledger: inClass("Ledger"),
  store: inClass("StoreLimiter"),
  redis: inClass("RedisLimiter"),
  remote: inClass("RemoteLimiter"),
  rule: inClass("RemoteKey"),
  step: (name) => {
    try {
      step(policy, null, methodOf(name), 1, 0);
      return true;
    } catch ({ code }) {
      return code !== "invalid_operation";
    }
  },
  object: inFile("js/cloudflare/object/object.ts", method),
  rpc: inFile("js/cloudflare/api/entrypoint.ts", method),
  limits: inFile("src/cloudflare/client.rs", /pub async fn (\w+)\(/g),
  command: inFile("js/cli/main.ts", /\b(\w+)\b/g),
  http: () => true,
};

describe("operations of", () => {
  // An object has a method `lease` and `undo` for the Worker alone.
  for (const [surface, has] of Object.entries(surfaces))
    test(surface, () => {
      const lacks = Object.keys(lacking[surface]);
      assert.deepEqual(
        names.filter((name) => !has(name)),
        names.filter((name) => lacks.includes(name)),
      );
    });
  test("all surfaces", () => assert.deepEqual(Object.keys(surfaces).sort(), Object.keys(lacking).sort()));
});

test("the fields of results are those of operations that have one", () => {
  for (const name of Object.keys(resultFields)) assert.ok(names.includes(name), name);
});

/** Returns the names in code spans. */
const inSpans = (words) => [...words.matchAll(/`(\w+)[^`]*`/g)].map(([, name]) => name);

test("docs/gateway.md has every operation of the HTTP API, with its fields", () => {
  const [, table] = text("docs/gateway.md").split(/^\| operation \|.*\n\|---.*\n/m);
  const rows = [...table.matchAll(/^\| (.*?) \| (.*) \|$/gm)].filter((_, at) => at < names.length);
  const found = new Map(rows.flatMap(([, own, about]) => inSpans(own).map((name) => [name, inSpans(about)])));
  for (const name of names) {
    assert.ok(found.has(name), name);
    for (const [field, { required }] of Object.entries(operations[name].takes))
      if (required || field !== "undoable")
        assert.ok(found.get(name).includes(field) || isBelow(name, field), `${name}: ${field}`);
  }
});

/** Fields that the guide describes below its table. */
const isBelow = (name, field) =>
  name === "settle" && field === "used"
    ? /`settle` charges/.test(text("docs/gateway.md"))
    : name === "extend" && field === "ttl";

describe("the methods of limiters in", () => {
  for (const [file, surface, part, isLeftOut = () => false] of [
    ["docs/own-store.md", "store", /It has these methods[\s\S]*?\n\n/],
    ["docs/redis.md", "redis", /It has these methods[\s\S]*?\n\n/],
    ["docs/node.md", "memory", /^\| method \|[\s\S]*?\n\n/m],
    // Those are for the Worker.
    ["docs/embed.md", "object", /^\| method \|[\s\S]*?\n\n/m, (name) => ["undo", "lease"].includes(name)],
  ])
    test(file, () => {
      const found = inSpans(text(file).match(part)[0]);
      for (const name of names.filter((name) => !isLeftOut(name)))
        assert.equal(found.includes(methodOf(name)), !(name in lacking[surface]), name);
    });
});
