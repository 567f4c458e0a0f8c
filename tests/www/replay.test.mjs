// The playground replays a log as the command does, and the report of the command is readable, light and dark.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { looped } from "../cli/lib/loop.mjs";
import { tollgate } from "../cli/lib/tollgate.mjs";
import { logOf, traffic } from "../cli/lib/traffic.mjs";
import { objections, pastPolicy } from "../lib/browser/axe.mjs";
import { launch, openPage, openPlayground } from "../lib/browser/chromium.mjs";
import { serveSite } from "../lib/browser/site.mjs";
import { after, before } from "../lib/hooks.mjs";

const folder = mkdtempSync(join(tmpdir(), "tollgate-browser-"));
const hits = traffic({ hits: 6_000, clients: 30 });

let chromium;
let site;
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite()]);
});
after(async () => {
  await chromium?.close();
  site?.close();
  rmSync(folder, { recursive: true });
});

const looks = [
  ["light", { width: 1280, height: 900 }],
  ["dark", { width: 390, height: 844 }],
];

/** Opens the playground, does something there, and holds it to it that nothing was complained of. */
async function playing(work, [colorScheme, viewport] = looks[0]) {
  const context = await chromium.newContext({ colorScheme, viewport, reducedMotion: "reduce" });
  const { page, complaints } = await openPlayground(context, `${site.url}/#at=18000`);
  await work(page);
  assert.deepEqual(complaints, []);
  await context.close();
}

/** In the page: the captions that are wider than the visible part of their table. */
const cutCaptions = (regions) =>
  regions
    .filter((region) => region.querySelector("caption span").offsetWidth > region.clientWidth)
    .map((region) => region.querySelector("caption").textContent);

const drop = (page, files) =>
  page.evaluate(
    (files) => {
      const dataTransfer = new DataTransfer();
      for (const [name, bytes] of files)
        dataTransfer.items.add(
          new File([Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))], name),
        );
      document
        .getElementById("replay-drop")
        .dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    },
    files.map(([name, content]) => [name, Buffer.from(content).toString("base64")]),
  );

const noted = (page, text) =>
  page.waitForFunction((text) => document.getElementById("replay-note").textContent === text, text);

/** The numbers that a summary shows. */
const figures = async (page) =>
  Object.fromEntries(
    await page.$$eval(".replay-figures > div", (all) =>
      all.map((each) => [
        each.querySelector("dt").textContent,
        Number(each.querySelector("dd").firstChild.textContent.replaceAll(",", "")),
      ]),
    ),
  );

const expected = (policy, options) => {
  const { hits: all, allowed, denied, keys, keysDenied } = looped(hits, policy, options);
  return { hits: all, allowed, denied, keys, "keys ever denied": keysDenied };
};

for (const look of looks) {
  test(`a whole log is dropped and replayed, keys apart: ${look[0]}`, () =>
    playing(async (page) => {
      await drop(page, [["access.log", logOf(hits)]]);
      await noted(page, "6,000 lines of access.log.");
      assert.deepEqual(
        await figures(page),
        expected({ algorithm: "sliding_window", limit: 60, scale: "1m", denied: "free" }),
      );
      assert.deepEqual(await objections(page), [0]);

      await page.fill("#replay-form [name=limit]", "150");
      await page.fill("#replay-form [name=scale]", "1h");
      await page.fill("#replay-form [name=key]", "path");
      await page.selectOption("#replay-form [name=algorithm]", "token_bucket");
      await page.waitForFunction(() =>
        document.querySelector("#replay-result h3")?.textContent.startsWith("token_bucket, 150"),
      );
      await noted(page, "6,000 lines of access.log.");
      const policy = { algorithm: "token_bucket", capacity: 150, refillRate: 150, per: "1h" };
      const wanted = expected(policy, { keyOf: ({ path }) => path });
      assert.ok(wanted.denied > 0);
      assert.deepEqual(await figures(page), wanted);
      assert.equal(
        await page.textContent("#replay-command"),
        `npx tollgate replay \\\n  access.log \\\n  --key path \\\n  --policy '${JSON.stringify(policy)}'`,
      );
    }, look));
}

test("denied hits are free as in the main panel, or they count", () =>
  playing(async (page) => {
    const policy = { algorithm: "sliding_window", limit: 5, scale: "1m" };
    await page.fill("#replay-form [name=limit]", "5");
    await drop(page, [["access.log", logOf(hits)]]);
    const counts = [];
    for (const [denied, label] of [
      ["free", "sliding_window, 5 in 1m, denied hits are free"],
      ["count", "sliding_window, 5 in 1m, denied hits count"],
    ]) {
      if (denied === "free")
        assert.equal(
          await page.inputValue("#replay-form [name=denied]"),
          (await page.evaluate(() => globalThis.playground.state)).denied,
        );
      else await page.selectOption("#replay-form [name=denied]", denied);
      await page.waitForFunction(
        (label) => document.querySelector("#replay-result h3")?.textContent === label,
        label,
      );
      assert.deepEqual(await figures(page), expected({ ...policy, denied }));
      counts.push((await figures(page)).denied);
      assert.ok(
        (await page.textContent("#replay-command")).endsWith(
          `--policy '${JSON.stringify({ ...policy, denied })}'`,
        ),
      );
    }
    assert.ok(counts[0] < counts[1], String(counts));
    await page.selectOption("#replay-form [name=algorithm]", "leaky_bucket");
    assert.ok(await page.isDisabled("#replay-form [name=denied]"));
    await page.selectOption("#replay-form [name=algorithm]", "");
    assert.ok(await page.isEnabled("#replay-form [name=denied]"));
  }));

test("all six side by side, from files that are packed", () =>
  playing(async (page) => {
    await page.selectOption("#replay-form [name=algorithm]", "");
    const half = hits.length / 2;
    await drop(page, [
      ["new.gz", gzipSync(logOf(hits.slice(half)))],
      ["old.json", logOf(hits.slice(0, half), "json")],
    ]);
    await noted(page, "6,000 lines of new.gz, old.json.");
    assert.equal((await page.$$("#replay-result h3")).length, 7);
    assert.deepEqual(await objections(page), [0]);
  }));

test("an error is shown in place of a result", () =>
  playing(async (page) => {
    await drop(page, [["story.txt", "once upon a time\n"]]);
    await noted(
      page,
      'story.txt is not a combined, common, JSON lines or CSV log; its first line is "once upon a time"',
    );
    await drop(page, [["access.log", logOf(hits)]]);
    await noted(page, "6,000 lines of access.log.");
    await page.fill("#replay-form [name=limit]", "0");
    await page.click("#replay-form button");
    await page.waitForFunction(() =>
      /^limit: 0 is not/.test(document.getElementById("replay-note").textContent),
    );
    assert.equal(await page.innerHTML("#replay-result"), "");
  }));

test("the report of the command is a page by itself, for every eye", async () => {
  const [log, report] = ["access.log", "report.html"].map((name) => join(folder, name));
  const attack = '<script>alert(1)</script>" onload="alert(1)';
  const line = `192.0.2.1 - - [10/Oct/2026:23:55:36 +0000] "GET /${attack} HTTP/1.1" 200 9 "-" "-"\n`;
  writeFileSync(log, `${logOf(hits)}${line.repeat(50)}rubbish ${attack}\n`);
  const policies = [
    { algorithm: "sliding_window", limit: 5, scale: "1m" },
    { algorithm: "token_bucket", capacity: 9, refillRate: 1 },
  ].flatMap((policy) => ["--policy", JSON.stringify(policy)]);
  const args = ["replay", log, ...policies, "--key", "path", "--suggest", "99", "--html", report];
  assert.equal((await tollgate(args)).code, 0);
  assert.doesNotMatch(readFileSync(report, "utf8"), /<script|<link|src=|url\(/);
  for (const colorScheme of ["light", "dark"]) {
    for (const viewport of looks.map(([, viewport]) => viewport)) {
      // Its own policy forbids scripts, axe among them.
      const context = await chromium.newContext({ colorScheme, viewport, bypassCSP: true });
      const { page, complaints } = await openPage(context, pathToFileURL(report).href);
      assert.deepEqual(await objections(page, pastPolicy), [0]);
      assert.equal((await page.$$("svg[role=img]")).length, 2);
      assert.deepEqual(await page.$$eval(".replay-table", cutCaptions), []);
      assert.ok((await page.textContent("main")).includes("<script>alert(1)</script>"));
      assert.deepEqual(complaints, []);
      await context.close();
    }
  }
});
