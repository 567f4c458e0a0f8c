// In Chromium the small core of `tollgate/throttle` decides every trace of Hammer as recorded: as wasm, and as JavaScript on a
// page whose Content-Security-Policy forbids wasm.

import assert from "node:assert/strict";
import test from "node:test";
import { launch, openPage } from "../../lib/browser/chromium.mjs";
import { serveSite } from "../../lib/browser/site.mjs";
import { after, before } from "../../lib/hooks.mjs";
import { smallScript } from "../../lib/small-core.mjs";
import { files, tracesIn } from "../../lib/traces.mjs";

const blank = '<!doctype html><html lang="en"><title>blank</title><link rel="icon" href="data:,">';

let chromium;
let site;
before(async () => {
  const [script, strict] = [await smallScript(), await smallScript("tollgate/js")];
  const serve = (text) => (_, response) =>
    response.writeHead(200, { "Content-Type": "text/javascript" }).end(text);
  site = await serveSite({
    "/wasm.js": serve(script),
    "/js.js": serve(strict),
    "/strict": (_, response) =>
      response
        .writeHead(200, { "Content-Type": "text/html", "Content-Security-Policy": "script-src 'self'" })
        .end(blank),
  });
  chromium = await launch();
});
after(async () => {
  await chromium?.close();
  site?.close();
});

/** In the page: runs traces on a core. */
const run = async ({ kind, traces }) => {
  const core = await import(`/${kind}.js`);
  core.start(kind);
  return core.differences(traces);
};

for (const [kind, path] of [
  ["wasm", "/blank"],
  ["js", "/strict"],
])
  test(`the traces, by ${kind}`, async () => {
    const { page, complaints } = await openPage(chromium, `${site.url}${path}`);
    for (const file of files) {
      const { hits, found } = await page.evaluate(run, { kind, traces: tracesIn(file) });
      assert.deepEqual(found.slice(0, 3), [], file);
      assert.ok(hits > 100, `${file}: ${hits} hits`);
    }
    assert.deepEqual(complaints, []);
    await page.close();
  });
