// Every command has help, and every invalid command line an error in one line and an exit code.

import assert from "node:assert/strict";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";
import { folderWith, tollgate } from "./lib/tollgate.mjs";

const policy = '{"algorithm":"fix_window","limit":1,"scale":"1m"}';

test("every command has its help, and names its options there", async () => {
  const { stdout, code } = await tollgate(["--help"]);
  assert.equal(code, 0);
  const names = [...stdout.matchAll(/^ {2}(\w+) {2}/gm)].map(([, name]) => name);
  assert.deepEqual(names, [
    "replay",
    "check",
    "init",
    "get",
    "reset",
    "ban",
    "unban",
    "except",
    "exceptions",
    "why",
    "top",
  ]);
  for (const name of names) {
    for (const args of [
      [name, "--help"],
      [name, "-h"],
      ["help", name],
      [name, "--nonsense", "--help"],
    ]) {
      const help = await tollgate(args);
      assert.equal(help.code, 0);
      assert.match(
        help.stdout,
        new RegExp(`^tollgate ${name} .*\n\n[\\s\\S]*\n  -h, --help +show this help\n`),
      );
    }
  }
  const { version } = JSON.parse(readFileSync(inProject("package.json"), "utf8"));
  assert.equal((await tollgate(["--version"])).stdout, `${version}\n`);
});

/** What is wrong, what is said of it, and the exit code. */
const wrong = [
  [[], /^tollgate: name a command: replay, check, init, get, reset/, 2],
  [["repaly"], /^tollgate: repaly is not a command; did you mean replay\?/, 2],
  [["launch"], /launch is not a command; there are replay, check/, 2],
  [["replay", "--polcy", policy], /^tollgate replay: --polcy is not an option; did you mean --policy\?/, 2],
  [["replay", "-x"], /-x is not an option; there are --policy, --config/, 2],
  [["replay", "--sugest=9"], /--sugest is not an option; did you mean --suggest\?/, 2],
  [["replay", "--policy"], /--policy needs a value: --policy <policy>/, 2],
  [["replay", "--json=1", "--policy", policy], /--json takes no value/, 2],
  [
    ["replay", "--format", "jsn"],
    /--format: "jsn" is not one of combined, common, json, csv; did you mean json\?/,
    2,
  ],
  [["replay", "--zone", "CET", "--policy", policy], /--zone: "CET" is not an offset such as \+02:00 or Z/, 2],
  [["replay", "--suggest", "0"], /--suggest: "0" is not a percentage above 0 and up to 100/, 2],
  [["replay", "--worst", "-1", "--policy", policy], /--worst/, 2],
  [["replay", "--worst", "many", "--policy", policy], /--worst: "many" is not an integer from 0 to 10000/, 2],
  [["replay", "--time", "a", "--time", "b"], /--time is given twice/, 2],
  [["replay"], /--policy, --config or --suggest is required/, 2],
  [["replay", "--env", "a", "--policy", policy], /--env needs --config/, 2],
  [["replay", "--policy", "{"], /--policy: it is not JSON/, 2],
  [
    ["replay", "--policy", "nothing"],
    /--policy: "nothing" is neither JSON, a limit such as 100\/1m, nor a file/,
    2,
  ],
  [["replay", "--policy", "100/1x"], /--policy: scale: "1x" is not a duration/, 2],
  [["replay", "--policy", "0/1m"], /--policy: limit: 0 is not an integer from 1/, 2],
  [
    ["replay", "--policy", "9/1m", "--where", "status"],
    /--where: "status" is not a condition; write it as/,
    2,
  ],
  [
    ["replay", "--policy", "9/1m", "--where", "status = 401"],
    /--where: "status = 401" is not a condition/,
    2,
  ],
  [["replay", "--policy", "9/1m", "--where", "bytes > big"], /> compares numbers, and "big" is none/, 2],
  [
    ["replay", "--policy", "9/1m", "--only", "192.0.2.7"],
    /--only: "192\.0\.2\.7" is not a key; write --only key=/,
    2,
  ],
  [
    ["replay", "--policy", "9/1m", "--against", "nothing"],
    /--against: "nothing" is neither JSON, a limit/,
    2,
  ],
  [["replay", "--suggest", "99", "--against", "9/1m"], /--against needs one policy, and one --policy/, 2],
  [["replay", "--policy", "9/1m", "--policy", "8/1m", "--against", "7/1m"], /--against needs one policy/, 2],
  [
    [
      "replay",
      "--suggest",
      "9",
      "--policy",
      '{"algorithm":"token_bucket","capacity":5}',
      "--against",
      "7/1m",
    ],
    /--against compares whole policies/,
    2,
  ],
  [
    ["replay", "--suggest", "99", "--policy", '{"algorithm":"token_bucket","capacity":0}'],
    /--policy: capacity: 0 is not an integer from 1/,
    2,
  ],
  [
    ["replay", "--policy", '{"algorithm":"fix_window","limit":0,"scale":"1m"}'],
    /--policy: limit: 0 is not an integer from 1/,
    2,
  ],
  [["replay", "--policy", '{"algoritm":"fix_window"}'], /--policy: /, 2],
  [["replay", "missing.txt", "--policy", policy], /^tollgate replay: missing\.txt does not exist\n$/, 1],
  [["replay", "--config", "missing.toml"], /^tollgate replay: missing\.toml does not exist\n$/, 1],
  [
    ["replay", "--policy", '{"algorithm":"concurrency","limit":1}'],
    /--policy: a concurrency policy cannot be replayed: a log has no durations/,
    2,
  ],
  [
    ["replay", "--suggest", "99", "--policy", '{"algorithm":"concurrency","limit":1}'],
    /--policy: a concurrency policy cannot be replayed: a log has no durations/,
    2,
  ],
  [
    ["replay", "--policy", '{"algorithm":"sliding_window","limit":1,"scale":"month"}'],
    /"1d"; use fix_window for "day", "week" or "month"/,
    2,
  ],
  [["replay", ".", "--policy", policy], /\. is a folder; name the files in it/, 1],
  [["replay", "-", "-", "--policy", policy], /"-" is standard input, of which there is one/, 2],
  [["check", "missing.toml"], /missing\.toml does not exist/, 2],
  [["check", "a", "b"], /name one file/, 2],
  [["check"], /there is no wrangler\.toml, wrangler\.jsonc, wrangler\.json here; name a file/, 2],
  [["init", "a", "b"], /name one folder/, 2],
  [["check", "."], /\. is a folder; name the file in it/, 2],
  [["replay", "--config", "."], /\. is a folder; name the file in it/, 2],
  [["replay", "--policy", "."], /\. is a folder; name the file in it/, 2],
  [["get"], /name one key, or use --ip for that of an address, or --part for that of a rule/, 2],
  [["get", "a", "b"], /name one key/, 2],
  [["get", "a", "--part", "ip=::1"], /name a key, or use --part or --ip, not both/, 2],
  [["get", "--ip", "::1", "--part", "ip=::1"], /use --part or --ip, not both/, 2],
  [["get", "--ip", "localhost", "--redis", "redis://localhost"], /--ip: "localhost" is not an IP address/, 2],
  [["reset", "--prat", "ip=::1"], /--prat is not an option; did you mean --part\?/, 2],
  [["reset", "--part"], /--part needs a value: --part <part>/, 2],
  [["reset", "--part", "ip=::1"], /--redis or TOLLGATE_REDIS is required, or --url or TOLLGATE_URL/, 2],
  [["get", "a"], /--redis or TOLLGATE_REDIS is required, or --url or TOLLGATE_URL/, 2],
  [
    ["get", "a", "--url", "http://localhost", "--redis", "redis://localhost"],
    /use --redis or --url, not both/,
    2,
  ],
  [["get", "--part", "ip=::1", "--redis", "redis://localhost"], /--part is for a Worker/, 2],
  [["get", "a", "--name", "b", "--url", "http://localhost"], /--name is for Redis/, 2],
  [["get", "a", "--name", "b c", "--redis", "redis://localhost"], /--name: "b c" is not 1 to 64 letters/, 2],
  [
    ["ban", "a", "--for", "1h", "--policies", "{", "--redis", "redis://localhost"],
    /--policies: it is not JSON/,
    2,
  ],
  [["ban", "a", "--redis", "redis://localhost"], /--for is required/, 2],
  [["top", "--redis", "redis://localhost"], /this is not a terminal; use --once/, 2],
  [["top", "--json", "--redis", "redis://localhost"], /--json needs --once/, 2],
  [["top", "a", "--once", "--redis", "redis://localhost"], /name no key; use --filter/, 2],
  [
    ["top", "--once", "--sort", "ratee"],
    /--sort: "ratee" is not one of denied, rate, .*did you mean rate\?/,
    2,
  ],
  [["top", "--once", "--interval", "1"], /--interval: "1" is not an integer from 200/, 2],
  [["top", "--once", "--redis", "redis://127.0.0.1:1"], /127\.0\.0\.1:1 refused the connection/, 1],
  [["get", "a", "--url", "http://localhost"], /TOLLGATE_TOKEN is required in the environment/, 2],
];

for (const [args, said, exit] of wrong) {
  test(`tollgate ${args.join(" ")}: one line, exit code ${exit}`, async (t) => {
    const at = folderWith(t, {});
    const { TOLLGATE_URL, TOLLGATE_REDIS, TOLLGATE_TOKEN, ...env } = process.env;
    const { code, stdout, stderr } = await tollgate(args, { cwd: at(""), env });
    assert.match(stderr, said);
    assert.equal(stderr.split("\n").length, 2);
    assert.equal(stdout, "");
    assert.equal(code, exit);
  });
}

test("an empty log, one of no known format and a broken archive are errors of one line", async (t) => {
  const at = folderWith(t, { packed: Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3]) });
  for (const [args, input, said] of [
    [[], "\n\n", /there is no line to replay/],
    [
      [],
      "once upon a time\n",
      /standard input is not a combined, common, JSON lines or CSV log; its first line is "once upon a time"; use --format/,
    ],
    [[at("packed")], "", /packed cannot be unpacked: /],
  ]) {
    const { code, stderr } = await tollgate(["replay", ...args, "--policy", policy], { input });
    assert.match(stderr, said);
    assert.equal(stderr.split("\n").length, 2);
    assert.equal(code, 1);
  }
});

test("a report that cannot be written is an error before any log is read", async () => {
  const args = ["replay", "--policy", policy, "--html", "/nowhere/report.html"];
  const { code, stderr } = await tollgate(args, { input: "no log" });
  assert.equal(code, 1);
  assert.equal(stderr, "tollgate replay: --html: the folder /nowhere does not exist\n");
});

test("without a log, on a terminal, it does not wait for input", async () => {
  const { code, stderr } = await tollgate(["replay", "--policy", policy], {
    node: ["--import", inProject("tests/cli/programs/terminal-input.mjs")],
  });
  assert.equal(code, 2);
  assert.match(stderr, /^tollgate replay: name a log, or pipe one in/);
});

test("the help of replay names every format", async () => {
  const { stdout } = await tollgate(["replay", "--help"]);
  assert.match(stdout, /^ {2}--format <name> +combined, common, json, csv;/m);
});

test("a file that cannot be read is named with the reason, without the names of system calls", async (t) => {
  const at = folderWith(t, { file: "" });
  const { code, stderr } = await tollgate(["replay", at("file/log"), "--policy", policy]);
  assert.equal(code, 1);
  assert.equal(stderr, `tollgate replay: ${at("file/log")}: not a directory\n`);
});

test("init writes a dependency that npm can install, and says what to do next", async (t) => {
  const at = folderWith(t, {});
  const { stdout } = await tollgate(["init", "my gateway"], { cwd: at("") });
  const { dependencies, engines } = JSON.parse(readFileSync(at("my gateway/package.json"), "utf8"));
  // The command runs from this folder and not from node_modules.
  const [, path] = dependencies.tollgate.match(/^file:(.*)$/);
  assert.equal(realpathSync(join(at("my gateway"), path)), realpathSync(inProject()));
  assert.deepEqual(engines, { node: ">=22.12" });
  assert.match(stdout, /^Next: cd "my gateway" && npm install && npm start$/m);
});

test("init overwrites nothing", async (t) => {
  const at = folderWith(t, { "worker.js": "mine" });
  const { code, stderr } = await tollgate(["init"], { cwd: at("") });
  assert.equal(code, 1);
  assert.match(stderr, /^tollgate init: worker\.js exists; name another folder\n$/);
  assert.equal(readFileSync(at("worker.js"), "utf8"), "mine");
  assert.ok(!existsSync(at("wrangler.toml")));
});

test("an invalid address is an error of the command line", async () => {
  const env = { ...process.env, TOLLGATE_TOKEN: "token" };
  const { code, stderr } = await tollgate(["get", "a", "--policy", "api", "--url", "localhost:8787"], {
    env,
  });
  assert.equal(code, 2);
  assert.match(stderr, /^tollgate get: --url: "localhost:8787" is not an address such as https:/);
});

test("a Worker that does not respond is an error of one line", async () => {
  const env = { ...process.env, TOLLGATE_TOKEN: "token", TOLLGATE_URL: "http://127.0.0.1:1/_tollgate" };
  for (const command of ["get", "reset"]) {
    for (const key of [["key"], ["--part", "ip=::1", "--part=constant:login"]]) {
      const { code, stderr } = await tollgate([command, ...key, "--policy", "api"], { env });
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`^tollgate ${command}: .*\n$`));
    }
  }
});
