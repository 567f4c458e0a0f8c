// Next builds with the packed package and limits: a route handler, an edge route with wasm as modules, and a proxy.

import assert from "node:assert/strict";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test from "node:test";
import { serve } from "../../scripts/lib/run.mjs";
import { next } from "../../scripts/setup/next.mjs";
import { freshProject, run } from "./lib/project.mjs";

const { modules, why: skip = false } = next.check() ?? { why: "Next is not set up" };

/** How long Next may take on a busy machine, in milliseconds. */
const timeout = 600_000;

const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };

/** Returns the fixture, in which Next and React are linked. */
async function app() {
  const project = await freshProject("next", "tests/package/fixtures/next");
  for (const name of ["next", "react", "react-dom"])
    symlinkSync(join(modules, name), join(project, "node_modules", name));
  return { project, program: join(project, "node_modules/next/dist/bin/next") };
}

/** Starts the server until the test ends. Returns its address, and a function that returns what it has said. */
async function started(t, { project, program }) {
  const { child } = serve(process.execPath, [program, "start", "--port", "0"], {
    cwd: project,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.after(() => child.kill());
  let said = "";
  child.stderr.on("data", (text) => {
    said += text;
  });
  const ended = once(child, "exit").then(([code]) => assert.fail(`it ended with exit code ${code}: ${said}`));
  const address = (async () => {
    for await (const line of createInterface(child.stdout)) {
      const [url] = line.match(/http:\/\/localhost:\d+/) ?? [];
      if (url) return url;
    }
    return ended;
  })();
  return { url: await Promise.race([address, ended]), said: () => said };
}

test("Next", { skip, timeout }, async (t) => {
  const built = await app();
  const output = await run(process.execPath, [built.program, "build"], { cwd: built.project, env });
  assert.match(output, /Proxy/);
  assert.doesNotMatch(output, /not supported in the Edge Runtime/);

  const { url, said } = await started(t, built);
  const ask = (path, user) => fetch(url + path, { headers: { "X-User": user } });
  const numbers = async (path) => {
    const responses = [];
    for (const user of ["ann", "ann", "ann", "bob"]) responses.push(await ask(path, user));
    return responses.map(({ status, headers }) => [status, headers.get("RateLimit")?.replace(/;t=\d+$/, "")]);
  };

  for (const name of ["route", "edge"])
    await t.test(name, async () => {
      assert.deepEqual(await numbers(`/${name}`), [
        [200, `"${name}";r=1`],
        [200, `"${name}";r=0`],
        [429, `"${name}";r=0`],
        [200, `"${name}";r=1`],
      ]);
    });

  await t.test("proxy", async () => {
    const denied = [429, '"proxy";r=0'];
    assert.deepEqual(await numbers("/proxied"), [[200, undefined], denied, denied, [200, undefined]]);
    assert.deepEqual(await (await ask("/proxied", "cid")).json(), { hello: "cid" });
  });

  await t.test("without an address, an error says what to set", async () => {
    assert.equal((await ask("/addressless", "ann")).status, 500);
    assert.match(said(), /key is required, since the server passes no client address \(Next never does\)/);
    assert.doesNotMatch(said(), /tollgate:/);
  });
});
