// `tollgate check` finds every error of a configuration, with its line and field.

import assert from "node:assert/strict";
import test from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";
import { folderWith, tollgate } from "./lib/tollgate.mjs";

const whole = `name = "gateway"
main = "worker.js"
compatibility_date = "2026-09-01"

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

[[vars.TOLLGATE.rules]]
path = "/*"
policies = "api"
`;

async function found(t, text, { name = "wrangler.toml", args = [] } = {}) {
  const at = folderWith(t, { [name]: text });
  const { code, stdout, stderr } = await tollgate(["check", at(name), ...args, "--json"]);
  assert.equal(stderr, "");
  const { errors } = JSON.parse(stdout);
  assert.equal(code, errors.length === 0 ? 0 : 1);
  return errors.map(({ line, field }) => [line, field]);
}

test("a configuration without errors passes", async (t) => {
  assert.deepEqual(await found(t, whole), []);
  const text = JSON.stringify({ policies: { api: { algorithm: "fix_window", limit: 9, scale: "1m" } } });
  const asText = whole.replace(/\[vars\.TOLLGATE\][\s\S]*/, `[vars]\nTOLLGATE = '${text}'\n`);
  assert.deepEqual(await found(t, asText), []);
  const service = whole.replace("https://origin.example", "ORIGIN");
  assert.deepEqual(await found(t, `${service}[[services]]\nbinding = "ORIGIN"\nservice = "origin"\n`), []);
  const { code } = await tollgate(["check", inProject("wrangler.toml")]);
  assert.equal(code, 0);
});

test("a rule that counts by address is noted: outside Cloudflare the client writes the header", async (t) => {
  const notes = async (rule) => {
    const at = folderWith(t, { "wrangler.toml": whole.replace('path = "/*"', `path = "/*"\n${rule}`) });
    const { code, stdout } = await tollgate(["check", at("wrangler.toml")]);
    assert.equal(code, 0);
    return stdout.split("\n").filter((line) => line.includes(": note: "));
  };
  const [note] = await notes("");
  assert.match(
    note,
    /wrangler\.toml:2\d: note: vars\.TOLLGATE\.rules\[0\]\.path: this rule counts by CF-Connecting-IP; without Cloudflare/,
  );
  for (const rule of ['key = ["path", "ip"]', 'key = "header:X-Key"', 'key = "cookie:id"\nmissing = "ip"'])
    assert.equal((await notes(rule)).length, 1, rule);
  for (const rule of ['key = "path"', 'key = "header:X-Key"\nmissing = "deny"', 'key = "constant:all"'])
    assert.deepEqual(await notes(rule), [], rule);
});

test("every error is found, with its line and field", async (t) => {
  const wrong = whole
    .replace("limit = 9", "limit = 0")
    .replace(
      'upstream = "https://origin.example"',
      'upstream = "ORIGIN"\nspeed = 1\norigins = [\n  "https://a.example",\n  "b.example",\n]',
    )
    .replace('path = "/*"', 'path = "*"');
  assert.deepEqual(await found(t, wrong), [
    [15, "vars.TOLLGATE.speed"],
    [18, "vars.TOLLGATE.origins[1]"],
    [22, "vars.TOLLGATE.policies.api.limit"],
    [25, "vars.TOLLGATE.rules[0].path"],
  ]);
  assert.deepEqual(await found(t, whole.replace("https://origin.example", "ORIGIN")), [
    [14, "vars.TOLLGATE.upstream"],
  ]);
  assert.deepEqual(await found(t, whole.replace("new_sqlite_classes", "new_classes")), [
    [11, "migrations[0].new_classes"],
  ]);
  const unmigrated = whole.replace(/\[\[migrations\]\][^[]*\["RateLimiterObject"\]\n/, "");
  assert.deepEqual(await found(t, unmigrated), [[7, "durable_objects.bindings[0].class_name"]]);
  assert.deepEqual(await found(t, whole.replace('class_name = "RateLimiterObject"', 'class_name = "Foo"')), [
    [7, "durable_objects.bindings[0].class_name"],
  ]);
  assert.deepEqual(await found(t, whole.replace('class_name = "RateLimiterObject"\n', "")), [
    [5, "durable_objects.bindings[0].class_name"],
  ]);
  assert.deepEqual(await found(t, whole.replace("LIMITERS", "OTHERS")), [[5, "durable_objects.bindings"]]);
  assert.deepEqual(
    await found(
      t,
      whole.replace("[vars.TOLLGATE]\n", '[vars]\nTOLLGATE = "{"\n').replace(/\nupstream[\s\S]*/, "\n"),
    ),
    [[14, "vars.TOLLGATE"]],
  );
});

test("the class of the objects is one that the migrations leave, or another Worker's", async (t) => {
  const foo = whole.replace('class_name = "RateLimiterObject"', 'class_name = "Foo"');
  const at = folderWith(t, {
    "foo.toml": foo,
    "none.toml": whole.replace(/\[\[migrations\]\][^[]*\["RateLimiterObject"\]\n/, ""),
  });
  const problem = async (file) => (await tollgate(["check", file], { cwd: at("") })).stdout;
  assert.equal(
    await problem("foo.toml"),
    "foo.toml:7: durable_objects.bindings[0].class_name: nothing creates the class Foo; migrations create RateLimiterObject\n",
  );
  assert.equal(
    await problem("none.toml"),
    'none.toml:7: durable_objects.bindings[0].class_name: nothing creates the class RateLimiterObject; add [exports.RateLimiterObject] with type = "durable-object" and storage = "sqlite"\n',
  );
  const renamed = `${foo}[[migrations]]\ntag = "v2"\nrenamed_classes = [{ from = "RateLimiterObject", to = "Foo" }]\n`;
  assert.deepEqual(await found(t, renamed), []);
  const deleted = `${whole}[[migrations]]\ntag = "v2"\ndeleted_classes = ["RateLimiterObject"]\n`;
  assert.deepEqual(await found(t, deleted), [[7, "durable_objects.bindings[0].class_name"]]);
  const elsewhere = foo.replace('class_name = "Foo"', 'class_name = "Foo"\nscript_name = "limits"');
  assert.deepEqual(await found(t, elsewhere), []);
});

test("the class may be declared by exports, which an environment inherits", async (t) => {
  const declared = whole.replace(
    /\[\[migrations\]\][^[]*\["RateLimiterObject"\]\n/,
    '[exports.RateLimiterObject]\ntype = "durable-object"\nstorage = "sqlite"\n',
  );
  assert.deepEqual(await found(t, declared), []);
  const field = "durable_objects.bindings[0].class_name";
  assert.deepEqual(await found(t, declared.replace("exports.Rate", "exports.Late")), [[7, field]]);
  assert.deepEqual(await found(t, declared.replace("durable-object", "worker")), [[7, field]]);
  const deleted = declared.replace('storage = "sqlite"', 'state = "deleted"');
  assert.deepEqual(await found(t, deleted), [[7, field]]);
  assert.deepEqual(await found(t, declared.replace("sqlite", "legacy-kv")), [
    [11, "exports.RateLimiterObject.storage"],
  ]);
  const both = `${declared}[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["RateLimiterObject"]\n`;
  assert.deepEqual(await found(t, both), [[22, "migrations"]]);

  const environment =
    '[[env.test.durable_objects.bindings]]\nname = "LIMITERS"\nclass_name = "RateLimiterObject"\n';
  const inherits = `${declared}${environment}[env.test.vars.TOLLGATE]\nupstream = "https://origin.example"\n`;
  assert.deepEqual(await found(t, inherits, { args: ["--env", "test"] }), []);
});

test("a Worker that is no gateway may name its binding as it likes", async (t) => {
  const own = whole.replace(/\[vars\.TOLLGATE\][\s\S]*/, "").replace("LIMITERS", "USERS");
  assert.deepEqual(await found(t, own), []);
  assert.deepEqual(await found(t, `${own}[vars.TOLLGATE]\ncredit = true\n`), []);
  assert.deepEqual(await found(t, own.replace("new_sqlite_classes", "new_classes")), [
    [11, "migrations[0].new_classes"],
  ]);
  assert.deepEqual(await found(t, 'name = "shop"\n'), [[1, "durable_objects.bindings"]]);
});

test("a table with a misspelt name is an error: the Worker would not limit anything", async (t) => {
  assert.deepEqual(await found(t, whole.replaceAll("vars.TOLLGATE", "vars.TOLGATE")), [[13, "vars.TOLGATE"]]);
  assert.deepEqual(await found(t, whole.replaceAll("vars.TOLLGATE", "vars.tollgate")), [
    [13, "vars.tollgate"],
  ]);
  const others = `${whole}[vars]\nTOLLGATE_LOG_SECRET = "a"\nTOLGATE = "b"\nGATE = { a = 1 }\n`;
  assert.deepEqual(await found(t, others), []);
});

test("a compatibility date without calls of methods is an error", async (t) => {
  const dated = (date, more = "") =>
    whole.replace('compatibility_date = "2026-09-01"', `compatibility_date = "${date}"${more}`);
  assert.deepEqual(await found(t, dated("2024-04-02")), [[3, "compatibility_date"]]);
  assert.deepEqual(await found(t, dated("2024-04-03")), []);
  assert.deepEqual(await found(t, dated("2024-04-02", '\ncompatibility_flags = ["rpc"]')), []);
  const inherited = `${dated("2024-04-02")}
[[env.staging.durable_objects.bindings]]
name = "USERS"
class_name = "RateLimiterObject"
`;
  const args = ["--env", "staging"];
  assert.deepEqual(await found(t, inherited, { args }), [[3, "compatibility_date"]]);
  const own = `${inherited}[env.staging]\ncompatibility_date = "2024-01-01"\n`;
  assert.deepEqual(await found(t, own, { args }), [[27, "env.staging.compatibility_date"]]);
});

test("an upstream that is not a binding lists the bindings", async (t) => {
  const text = `${whole.replace("https://origin.example", "ORIGINS")}[[services]]\nbinding = "ORIGIN"\nservice = "origin"\n`;
  const at = folderWith(t, { "wrangler.toml": text });
  const { stdout } = await tollgate(["check"], { cwd: at("") });
  assert.match(stdout, /"ORIGINS" is not a URL or the name of a service binding; there are ORIGIN\n$/);
});

test("a misspelt policy of a rule lists all policies, also those with errors", async (t) => {
  const text = whole
    .replace("limit = 9", "limit = 0")
    .replace('policies = "api"', 'policies = "apii"')
    .replace("\n[[vars", '\nslots = { algorithm = "fix_window", limit = 9, scale = "1m" }\n[[vars');
  const at = folderWith(t, { "wrangler.toml": text });
  const { stdout } = await tollgate(["check"], { cwd: at("") });
  assert.match(stdout, /policies: "apii" is not one of "api", "slots"$/m);
});

test("rules without an upstream are an error of upstream", async (t) => {
  const at = folderWith(t, { "wrangler.toml": whole.replace(/^upstream.*\n/m, "") });
  const { stdout } = await tollgate(["check"], { cwd: at("") });
  assert.match(
    stdout,
    /^wrangler\.toml:13: vars\.TOLLGATE\.upstream: is required with rules \(the name of a/,
  );
});

test("the text output has file, line, field and problem", async (t) => {
  const at = folderWith(t, { "wrangler.toml": whole.replace("limit = 9", "limit = 0") });
  const { code, stdout } = await tollgate(["check"], { cwd: at("") });
  assert.equal(code, 1);
  assert.match(
    stdout,
    /^wrangler\.toml:17: vars\.TOLLGATE\.policies\.api\.limit: .*integer from 1 to \d+.*\n$/,
  );
});

test("a file that is no TOML or JSON is an error on its line", async (t) => {
  assert.deepEqual(await found(t, `${whole}\nport = 08\n`), [[23, ""]]);
  assert.deepEqual(await found(t, '{ "name": "a",\n  "main" }', { name: "wrangler.json" }), [[2, ""]]);
  const at = folderWith(t, { "wrangler.json": '{ "name": "a"\n  "main": "b" }' });
  assert.equal((await tollgate(["check"], { cwd: at("") })).stdout, "wrangler.json:2: comma expected\n");
});

test("JSON with comments is read too", async (t) => {
  const json = `{
  // As wrangler takes it.
  "durable_objects": { "bindings": [{ "name": "LIMITERS", "class_name": "RateLimiterObject" }] },
  "migrations": [{ "tag": "v1", "new_sqlite_classes": ["RateLimiterObject"] }],
  "vars": {
    "TOLLGATE": {
      "policies": {
        "api": { "algorithm": "fix_window", "limit": 0, "scale": "1m" },
      },
    },
  },
}`;
  assert.deepEqual(await found(t, json, { name: "wrangler.jsonc" }), [
    [8, "vars.TOLLGATE.policies.api.limit"],
  ]);
});

test("an environment has bindings and policies of its own", async (t) => {
  const text = `${whole}
[env.staging.vars.TOLLGATE.policies]
api = { algorithm = "fix_window", limit = 9, scale = 0 }
`;
  assert.deepEqual(await found(t, text), []);
  assert.deepEqual(await found(t, text, { args: ["--env", "staging"] }), [
    [23, "env.staging.durable_objects.bindings"],
    [24, "env.staging.vars.TOLLGATE.policies.api.scale"],
  ]);
  const at = folderWith(t, { "wrangler.toml": text });
  const { code, stderr } = await tollgate(["check", at("wrangler.toml"), "--env", "stage"]);
  assert.equal(code, 2);
  assert.match(stderr, /has no environment stage; it has staging/);
});

test("a rule whose keys a client can make up is a warning, unless something caps them", async (t) => {
  const warned = async (rule) => {
    const text = whole.replace('path = "/*"\npolicies = "api"', `path = "/*"\n${rule}`);
    const at = folderWith(t, { "wrangler.toml": text });
    const { code, stdout } = await tollgate(["check", at("wrangler.toml"), "--json"]);
    const { errors, warnings } = JSON.parse(stdout);
    assert.deepEqual([code, errors], [0, []], rule);
    for (const { line, field, problem } of warnings) {
      assert.deepEqual([line, field], [20, "vars.TOLLGATE.rules[0].path"]);
      assert.match(
        problem,
        /^a client can make up keys .*; add newKeys = \{ limit = 100, scale = "1h" \}, or /,
      );
    }
    return warnings.length;
  };
  const api = 'policies = "api"';
  const byHeader = '{ key = "header:Authorization", policies = "api" }';
  for (const rule of [
    `key = "header:Authorization"\n${api}`,
    `key = ["cookie:session"]\n${api}`,
    `key = ["ip", "header:X-Api-Key"]\n${api}`,
    `key = "cookie:session"\nmode = "shadow"\n${api}`,
    `limits = [${byHeader}, { key = "cookie:id", policies = "api" }]`,
  ])
    assert.equal(await warned(rule), 1, rule);
  for (const rule of [
    api,
    `key = ["ip", "path"]\n${api}`,
    `key = "header:Authorization"\nnewKeys = { limit = 100, scale = "1h" }\n${api}`,
    `key = "header:Authorization"\nnew_keys = { limit = 100, scale = "1h" }\n${api}`,
    `limits = [{ key = "ip", policies = "api" }, ${byHeader}]`,
    'mode = "skip"',
  ])
    assert.equal(await warned(rule), 0, rule);
});

test("lists of addresses and limits on new keys: each error names its entry", async (t) => {
  const lists = 'allow = ["192.0.2.7", "192.0.2.7/24"]\ndeny = "office"\n';
  const text = whole
    .replace('upstream = "', `${lists}upstream = "`)
    .replace('path = "/*"', 'path = "/*"\nnewKeys = { limit = 0, scale = "soon", per = 1 }');
  assert.deepEqual(
    (await found(t, text)).map(([, field]) => field.replace("vars.TOLLGATE.", "")),
    ["allow[1]", "deny", "rules[0].newKeys.limit", "rules[0].newKeys.scale", "rules[0].newKeys.per"],
  );
  for (const newKeys of ["100", '"1h"', "true", "{}"])
    assert.notEqual(
      (await found(t, whole.replace('path = "/*"', `path = "/*"\nnewKeys = ${newKeys}`))).length,
      0,
    );
});

test("a duration below a second without a unit is a warning, not an error", async (t) => {
  const short = whole.replace(
    'scale = "1m" }',
    `scale = 60 }
bucket = { algorithm = "token_bucket", capacity = 9, refillRate = 1, per = 999 }
second = { algorithm = "fix_window", limit = 9, scale = 1000 }
unit = { algorithm = "fix_window", limit = 9, scale = "60ms" }`,
  );
  const at = folderWith(t, { "wrangler.toml": short });
  const { code, stdout } = await tollgate(["check", at("wrangler.toml"), "--json"]);
  const { errors, warnings } = JSON.parse(stdout);
  assert.deepEqual([code, errors], [0, []]);
  assert.deepEqual(
    warnings.map(({ line, field }) => [line, field]),
    [
      [17, "vars.TOLLGATE.policies.api.scale"],
      [18, "vars.TOLLGATE.policies.bucket.per"],
    ],
  );
  assert.match(
    warnings[0].problem,
    /^60 is in milliseconds; write "60ms" if that is meant, or "60s" for seconds$/,
  );
  const printed = await tollgate(["check", at("wrangler.toml")]);
  assert.equal(printed.code, 0);
  assert.match(printed.stdout, /wrangler\.toml:17: warning: vars\.TOLLGATE\.policies\.api\.scale: 60 is in/);
  assert.match(printed.stdout, /has no errors\.\n$/);
});
