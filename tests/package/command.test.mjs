// `npx tollgate` as the package brings it.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import test, { before } from "node:test";
import { bin } from "../../scripts/lib/paths.mjs";
import { outputOf, serve } from "../../scripts/lib/run.mjs";
import { wranglerEnv } from "../../scripts/lib/wrangler.mjs";
import { patiently } from "../lib/patience.mjs";
import { edit, freshProject, run, tarball } from "./lib/project.mjs";

let project;
before(async () => {
  project = await freshProject("command", "tests/package/fixtures/empty");
});

const tollgate = (args, options = {}) =>
  run(join(project, "node_modules/.bin/tollgate"), args, { cwd: project, ...options });

const policy = '{"algorithm":"fix_window","limit":1,"scale":"1m"}';
const line = '192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 9\n';

test("it replays a log, on every Node there is", async () => {
  writeFileSync(join(project, "access.txt"), line.repeat(3));
  const nodes = outputOf("which", ["-a", "node"]).split("\n");
  for (const node of new Set([process.execPath, ...nodes])) {
    const args = [
      "node_modules/tollgate/dist/command.js",
      "replay",
      "access.txt",
      "--policy",
      policy,
      "--json",
    ];
    const { candidates } = JSON.parse(await run(node, args, { cwd: project }));
    assert.deepEqual([candidates[0].allowed, candidates[0].denied], [1, 2], node);
  }
});

test("the files of init pass their own tests and check, and run in wrangler dev at once", async (t) => {
  await tollgate(["init", "gateway"]);
  const folder = join(project, "gateway");
  assert.match(await tollgate(["check"], { cwd: folder }), /has no errors/);
  await installs(folder);
  // A busy machine is not what is tested, and takes its time.
  edit(join(folder, "wrangler.toml"), ["[vars.TOLLGATE]\n", '[vars.TOLLGATE]\ntimeout = "1m"\n']);
  const tests = await run(process.execPath, ["--test", "--test-reporter=tap"], { cwd: folder, env });
  assert.match(tests, /^# pass 2$/m);

  edit(
    join(folder, "wrangler.toml"),
    ['timeout = "1m"\n', 'timeout = "1m"\nwatch = true\n'],
    [
      'scale = "1m" }\n',
      'scale = "1h" }\nblock = { algorithm = "ban", after = 9, scale = "1h", for = "1h" }\n',
    ],
  );
  const url = await served(t, folder);
  const login = () => fetch(`${url}/login`, { method: "POST", headers: { "CF-Connecting-IP": "192.0.2.1" } });
  assert.equal(await (await login()).text(), "POST /login came through\n");
  for (let count = 1; count < 5; count += 1) assert.equal((await login()).status, 200);
  assert.equal((await login()).status, 429);

  await t.test("get and reset ask the Worker", async () => {
    const asked = patiently({
      ...process.env,
      TOLLGATE_TOKEN: "local",
      TOLLGATE_URL: `${url}/_tollgate`,
    });
    const get = async () =>
      JSON.parse(await tollgate(["get", "user:42", "--policy", "login", "--json"], { env: asked }));
    assert.deepEqual(await get(), {
      key: "user:42",
      count: 0,
      limit: 5,
      remaining: 5,
      allowed: true,
      retryAfter: 0,
      expiresAt: 0,
    });
    const headers = { Authorization: "Bearer local", "Content-Type": "application/json" };
    const body = JSON.stringify({ policy: "login", key: "user:42", cost: 5 });
    assert.equal((await fetch(`${url}/_tollgate/v1/hit`, { method: "POST", headers, body })).status, 200);
    const { count, allowed, retryAfter, expiresAt } = await get();
    assert.deepEqual([count, allowed], [5, false]);
    assert.ok(retryAfter > 0 && retryAfter <= 3_600_000 && expiresAt > Date.now());
    assert.match(
      await tollgate(["get", "user:42", "--policy", "login"], { env: asked }),
      /^count {6}5\nlimit {6}5\n/,
    );
    assert.equal(
      await tollgate(["reset", "user:42", "--policy", "login"], { env: asked }),
      "user:42 was reset.\n",
    );
    assert.equal(
      await tollgate(["reset", "user:42", "--policy", "login"], { env: asked }),
      "user:42 had no state.\n",
    );
    assert.equal((await get()).count, 0);

    const reserving = JSON.stringify({ policy: "login", key: "user:42", cost: 2, ttl: "1h" });
    await fetch(`${url}/_tollgate/v1/reserve`, { method: "POST", headers, body: reserving });
    const reset = ["reset", "user:42", "--policy", "login"];
    await tollgate(reset, { env: asked });
    assert.equal((await get()).count, 2);
    assert.equal(await tollgate([...reset, "--reservations"], { env: asked }), "user:42 was reset.\n");
    assert.equal((await get()).count, 0);

    const ban = ["ban", "user:42", "--policy", "block", "--for", "2h", "--json"];
    const { bannedUntil } = JSON.parse(await tollgate(ban, { env: asked }));
    assert.ok(Math.abs(bannedUntil - Date.now() - 7_200_000) < 600_000);
    const unban = ["unban", "user:42", "--policy", "block"];
    assert.equal(await tollgate(unban, { env: asked }), "user:42 is not banned by block any more.\n");
    assert.equal(await tollgate(unban, { env: asked }), "user:42 was not banned by block.\n");
    await assert.rejects(tollgate(["ban", "a", "--policy", "login", "--for", "1h"], { env: asked }), {
      code: 1,
      stderr: /^tollgate ban: .*\n$/,
    });
    const except = ["except", "user:42", "--policy", "login"];
    const set = ["limit=1000", "--for", "3d", "--json"];
    assert.ok(JSON.parse(await tollgate([...except, ...set], { env: asked })).until > Date.now());
    assert.match(
      await tollgate(except, { env: asked }),
      /^user:42 has login\.limit=1000 until 20.* UTC\.\n$/,
    );
    assert.equal((await get()).limit, 1_000);
    assert.equal(
      await tollgate([...except, "--lift"], { env: asked }),
      "user:42 has no exception any more.\n",
    );
    assert.equal((await get()).limit, 5);
    const visitor = ["--part", "ip=::ffff:192.0.2.1", "--policy", "login"];
    const {
      parts,
      count: visits,
      ...rest
    } = JSON.parse(await tollgate(["get", ...visitor, "--json"], { env: asked }));
    assert.deepEqual([parts, visits, rest.key, rest.allowed], [["ip=::ffff:192.0.2.1"], 5, undefined, false]);
    // The isolate may repeat the denial for two seconds.
    assert.equal(await tollgate(["reset", ...visitor], { env: asked }), "ip=::ffff:192.0.2.1 was reset.\n");
    await eyes(asked);
    assert.equal(
      await tollgate(["reset", "--part", "constant:a", ...visitor, "--json"], { env: asked }),
      '{"parts":["constant:a","ip=::ffff:192.0.2.1"],"reset":false}\n',
    );
    assert.match(
      await tollgate(["reset", "--part", "/ip=9:192.0.2.1", "--policy", "login"], { env: asked }),
      /^\/ip=9:192\.0\.2\.1 had no state\. Check the policy, and the parts and their order\.\n$/,
    );
    assert.match(
      await tollgate(["get", "--part", "/ip=9:192.0.2.1", "--policy", "login"], { env: asked }),
      /^expires {4}never: it has no state\. Check the policy, and the parts and their order\.$/m,
    );
    await assert.rejects(tollgate(["reset", "--part", "user=4", "--policy", "login"], { env: asked }), {
      code: 1,
      stderr: /^tollgate reset: parts\[0\]: "user=4" is not "ip=<address>", .*\n$/,
    });
    await assert.rejects(
      tollgate(["get", "a", "--policy", "login"], { env: { ...asked, TOLLGATE_TOKEN: "wrong" } }),
      {
        code: 1,
        stderr: /^tollgate get: .*\n$/,
      },
    );
  });
});

/** Checks what the command shows of a Worker that watches its keys, once its isolates have reported. */
async function eyes(env) {
  const top = async () => JSON.parse(await tollgate(["top", "--once", "--json"], { env }));
  let seen = await top();
  // In a few seconds; only a Worker that never reports takes a minute.
  for (const end = Date.now() + 60_000; seen.keys.length === 0 && Date.now() < end; ) seen = await top();
  const [{ key, object, denied, policy, limit }] = seen.keys;
  assert.deepEqual([denied, policy, limit], [1, "login", 5]);
  assert.match(`${key} ${object}`, /^[0-9a-f]+ #[0-9a-f]{64}$/);
  assert.ok(seen.groups.some(({ name, policies }) => name === "POST /login" && policies === "login"));
  for (const named of ["ip=192.0.2.1", object]) {
    const story = JSON.parse(await tollgate(["why", "--part", named, "--json"], { env }));
    assert.deepEqual(
      story.now.map(({ policy, count }) => [policy, count]),
      [["login", 0]],
    );
    assert.deepEqual(
      story.denials.map(({ rule, policy, count, limit }) => [rule, policy, count, limit]),
      [["POST /login", "login", 5, 5]],
    );
  }
  assert.match(
    await tollgate(["why", "--part", object], { env }),
    /^policy +used +now +more in\nlogin +0 of 5/,
  );
  await tollgate(["reset", "--part", object, "--policy", "login"], { env });
}

/** Fails unless the dependency of a project is the tarball, and npm can install it. */
async function installs(folder) {
  const { dependencies, engines } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  assert.deepEqual(engines, { node: ">=22.12" });
  assert.equal(dependencies.tollgate, `file:${relative(folder, tarball)}`);
  const copy = join(project, "copy");
  mkdirSync(copy);
  writeFileSync(join(copy, "package.json"), JSON.stringify({ dependencies }));
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: copy });
  assert.ok(existsSync(join(copy, "node_modules/tollgate/dist/command.js")));
}

test("init keeps the version on npm if the package is from there, or if npm does not say where it is from", async () => {
  const { version } = JSON.parse(readFileSync(join(project, "node_modules/tollgate/package.json"), "utf8"));
  const lock = join(project, "node_modules/.package-lock.json");
  const text = readFileSync(lock, "utf8");
  const next = "Next: cd named && npm install && npm start\n";
  const unknown = `${next}If tollgate is not on npm: cd named && npm install <path to the tarball> && npm start\n`;
  try {
    for (const [content, said] of [
      [text.replace(/"file:.*?"/, '"https://registry.npmjs.org/tollgate/-/tollgate.tgz"'), next],
      [text.replace(/"file:.*?"/, '"file:../moved.tgz"'), unknown],
      ["{}", unknown],
    ]) {
      writeFileSync(lock, content);
      const folder = join(project, "named");
      assert.ok((await tollgate(["init", "named"])).endsWith(`wrangler.toml.\n${said}`));
      const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      assert.equal(dependencies.tollgate, `^${version}`);
      rmSync(folder, { recursive: true });
    }
  } finally {
    writeFileSync(lock, text);
  }
});

/** Without what a runner of tests tells its own children. */
const { NODE_TEST_CONTEXT: _, ...env } = wranglerEnv;

/** Runs `wrangler dev` until the test ends. Returns its address. */
async function served(t, folder) {
  const args = [
    bin("wrangler"),
    "dev",
    "--port",
    "0",
    "--inspector-port",
    "0",
    "--show-interactive-dev-session",
    "false",
  ];
  const { child: server } = serve(process.execPath, args, {
    cwd: folder,
    env: wranglerEnv,
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => server.kill());
  for await (const text of createInterface(server.stdout)) {
    const [, url] = text.match(/Ready on (http:\/\/\S+)/) ?? [];
    if (url !== undefined) return url;
  }
  return assert.fail("wrangler dev ended");
}
