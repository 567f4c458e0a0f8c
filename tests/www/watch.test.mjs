// The Worker's live page, as workerd serves it, in Chromium: what it shows, what it keeps to itself, and what axe says of it.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { bundle, start, token } from "../cloudflare/durability/workerd.mjs";
import { keepRefused, objections, pastPolicy } from "../lib/browser/axe.mjs";
import { launch, openPage } from "../lib/browser/chromium.mjs";
import { after, before } from "../lib/hooks.mjs";

const folder = mkdtempSync(join(tmpdir(), "tollgate-watch-"));

let chromium;
let origin;
let workerd;
before(async () => {
  origin = createServer((_, response) => response.end("ok")).listen(0, "127.0.0.1");
  const upstream = new Promise((resolve) => origin.on("listening", resolve)).then(
    () => `http://127.0.0.1:${origin.address().port}`,
  );
  const policies = {
    login: { algorithm: "fix_window", limit: 2, scale: "1d" },
    strikes: { algorithm: "ban", after: 50, scale: "1d", for: "1h" },
  };
  const rules = [{ method: "POST", path: "/login", policies: ["login", "strikes"] }];
  await bundle(folder, { upstream: await upstream, watch: true, timeout: "1m", policies, rules });
  [chromium, workerd] = await Promise.all([launch(), start(folder)]);
});
after(async () => {
  await chromium?.close();
  await workerd?.kill();
  origin?.close();
  rmSync(folder, { recursive: true, force: true });
});

const address = () => `${workerd.url}/_tollgate/watch`;

async function enter(page, given = token) {
  await page.getByLabel("Token").fill(given);
  await page.keyboard.press("Enter");
}

/** An answer of the Worker, with keys that nobody should have to read. */
const hostile = '<img src=x onerror="globalThis.ran = true">';
const steps = (length, at, count) => Array.from({ length }, (_, step) => (step % at === 0 ? count : 0));
const counts = (length) => ({
  allowed: steps(length, 1, 900),
  denied: steps(length, 3, 120),
  errors: steps(length, 7, 1),
});
const now = Date.UTC(2100, 0, 1, 12);
const denial = (key) => ({
  key,
  object: `#${"a".repeat(64)}`,
  at: now - 90_000,
  first: now - 300_000,
  times: 1_234,
  via: "gateway",
  rule: `POST /${hostile}`,
  mode: "shadow",
  policies: ["login"],
  policy: "login",
  count: 5,
  limit: 5,
  remaining: 0,
  cost: 3,
  retryAfter: null,
  banned: false,
});
const full = {
  now,
  since: now,
  keys: "plain",
  policies: ["login", "strikes", "others"],
  bans: ["strikes", "others"],
  start: { seconds: now - 55_000, minutes: now - 59 * 60_000, hours: now - 23 * 3_600_000 },
  step: { seconds: 5_000, minutes: 60_000, hours: 3_600_000 },
  rules: ["enforce", "shadow"].map((mode) => ({
    rule: `/users/:id/${"posts/".repeat(20)}${hostile}`,
    via: "gateway",
    policies: ["login", "a policy with a long name"],
    mode,
    seconds: counts(12),
    minutes: counts(60),
    hours: counts(24),
  })),
  top: [hostile, "k".repeat(10_000), "/ip=9:192.0.2.1"].map((key, at) => ({
    key,
    object: `#${`${at}`.repeat(64)}`,
    denied: 1_000 - at,
    error: at,
  })),
  denials: [denial(hostile), denial("k".repeat(10_000))],
};
const empty = { ...full, since: null, rules: [], top: [], denials: [], bans: [] };
const decision = { allowed: false, limit: 5, count: 5, remaining: 0, retryAfter: 60_000, resetAfter: 90_000 };
const story = {
  now,
  key: hostile,
  object: `#${"0".repeat(64)}`,
  policies: [
    { policy: "login", count: 5, remaining: 0, exception: { login: { limit: 5 } }, until: now, decision },
    { policy: "api", count: 5, remaining: 3, decision: { ...decision, allowed: true, retryAfter: 0 } },
    {
      policy: "strikes",
      count: 7,
      remaining: 0,
      decision: { ...decision, retryAfter: null, reason: "banned" },
    },
    { policy: "gone", error: { code: "unknown_policy", message: "there is no such policy" } },
  ],
  denials: [denial(hostile), { ...denial(hostile), banned: true, times: 1, cost: 1, mode: "enforce" }],
};

/** Answers in the place of the Worker's API. */
const answering = (view) => async (page) => {
  await page.route("**/_tollgate/v1/watch", (route) => route.fulfill({ json: view }));
  await page.route("**/_tollgate/v1/why?*", (route) => route.fulfill({ json: story }));
};

test("what is denied appears, with why, and a key can be reset, by keys alone", async () => {
  const login = () =>
    fetch(`${workerd.url}/login`, {
      method: "POST",
      headers: { "CF-Connecting-IP": "192.0.2.1", Connection: "close" },
    });
  for (let hit = 0; hit < 5; hit += 1) await (await login()).text();
  const context = await chromium.newContext();
  await context.addInitScript(keepRefused);
  const { page, complaints } = await openPage(context, address());
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  await enter(page);
  const key = page.locator("#top button.key");
  await key.waitFor();
  assert.equal(await page.locator("#top td.number").textContent(), "3");
  assert.match(await page.locator("#rules tbody").textContent(), /^POST \/login · login, strikes2360%03$/);
  assert.equal(await page.locator(":focus").getAttribute("id"), "pause");
  await key.focus();
  await page.keyboard.press("Enter");
  await page.locator("#story h3").first().waitFor();
  const told = await page.locator("#story").textContent();
  assert.match(told, /login02denied, again in /);
  assert.match(told, /login: 0 of 2 left3 times/);
  await page.getByRole("button", { name: "Reset" }).focus();
  await page.keyboard.press("Enter");
  assert.match(
    await page.locator("#question").textContent(),
    /^Remove what counts for [0-9a-f]{24} under login\?$/,
  );
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#sure").isVisible(), false);
  await page.getByRole("button", { name: "Deny all" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("There is an exception until").waitFor();
  await page.locator("#story").getByText("everything is denied until").waitFor();
  assert.equal((await login()).status, 429);
  await page.getByRole("button", { name: "Lift exception" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("There is no exception now.").waitFor();
  await page.getByRole("button", { name: "Ban", exact: true }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Banned until").waitFor();
  await page.getByRole("button", { name: "Unban" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("The ban is lifted.").waitFor();
  await page.getByRole("button", { name: "Reset" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Nothing counts any more.").waitFor();
  await page.getByLabel("A key of a rule").fill("ip=192.0.2.1");
  await page.keyboard.press("Enter");
  await page.locator("#story").getByText("allowed").waitFor();
  await page.getByLabel("A key of a rule").fill("192.0.2.1");
  await page.keyboard.press("Enter");
  await page.locator("#unfound:not(:empty)").waitFor();
  assert.match(await page.locator("#unfound").textContent(), /parts/);
  assert.ok(requests.length > 0 && requests.every((url) => url.startsWith(workerd.url)), "no third party");
  assert.deepEqual(await page.evaluate(() => globalThis.refused), []);
  assert.deepEqual(
    complaints.filter((text) => !text.includes("400")),
    [],
  );
  await context.close();
});

test("the token is kept in memory only", async () => {
  const context = await chromium.newContext();
  const { page } = await openPage(context, address());
  await enter(page, "wrong");
  await page.locator("#refused:not(:empty)").waitFor();
  assert.equal(await page.locator("#live").isVisible(), false);
  await enter(page);
  await page.locator("#live").waitFor();
  const kept = await page.evaluate(() => [
    { ...localStorage },
    { ...sessionStorage },
    document.cookie,
    location.href,
    document.querySelector("#token").value,
  ]);
  assert.deepEqual(kept, [{}, {}, "", address(), ""]);
  await page.reload();
  await page.getByLabel("Token").waitFor();
  await enter(page);
  await page.getByRole("button", { name: "Forget the token" }).click();
  await page.getByLabel("Token").waitFor();
  assert.equal(await page.locator("#rules").textContent(), "");
  await context.close();
});

test("an operation acts on the key that the question names, whatever is shown meanwhile", async () => {
  const context = await chromium.newContext();
  const acted = [];
  const { page } = await openPage(context, address(), async (page) => {
    await page.clock.install({ time: now });
    await page.route("**/_tollgate/v1/watch", (route) => route.fulfill({ json: full }));
    await page.route("**/_tollgate/v1/why?*", async (route) => {
      const parts = new URL(route.request().url()).searchParams.get("parts");
      const key = parts.slice(0, 8);
      await route.fulfill({ json: { ...story, key, object: parts } });
    });
    await page.route("**/_tollgate/v1/reset", (route) => {
      acted.push(route.request().postDataJSON().parts);
      return route.fulfill({ json: { reset: true } });
    });
  });
  await enter(page);
  await page.locator("#top button.key").first().click();
  await page.getByText("Key #0000000").waitFor();
  await page.getByRole("button", { name: "Reset" }).click();
  const question = await page.locator("#question").textContent();
  assert.match(question, /^Remove what counts for #0000000 under /);
  // Another key is shown behind the question, as by an answer that comes late.
  await page.evaluate(() => document.querySelectorAll("#top button.key")[1].click());
  await page.getByText("Key #1111111").waitFor();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Nothing counts any more.").waitFor();
  assert.deepEqual(acted, [`#${"0".repeat(64)}`]);
  await context.close();
});

test("an older question that is answered later does not show its key", async () => {
  const context = await chromium.newContext();
  let release;
  const held = new Promise((resolve) => {
    release = resolve;
  });
  const { page } = await openPage(context, address(), async (page) => {
    await page.clock.install({ time: now });
    await page.route("**/_tollgate/v1/watch", (route) => route.fulfill({ json: full }));
    await page.route("**/_tollgate/v1/why?*", async (route) => {
      const parts = new URL(route.request().url()).searchParams.get("parts");
      if (parts.startsWith("#0")) await held;
      await route.fulfill({ json: { ...story, key: parts.slice(0, 8), object: parts } });
    });
  });
  await enter(page);
  await page.locator("#top button.key").first().click();
  await page.locator("#top button.key").nth(1).click();
  await page.getByText("Key #1111111").waitFor();
  const late = page.waitForResponse("**/v1/why?parts=%230*");
  release();
  await (await late).finished();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  assert.equal(await page.locator("#story h3").first().textContent(), "Key #1111111");
  await context.close();
});

test("a page that is left forgets the token and all that it showed, and is not stored", async () => {
  const context = await chromium.newContext();
  const { page } = await openPage(context, address(), async (page) => {
    await page.clock.install({ time: now });
    await answering(full)(page);
  });
  const response = await page.reload();
  assert.equal(response.headers()["cache-control"], "no-store");
  await enter(page);
  await page.locator("#rules table").waitFor();
  // As when the page goes into the cache of a browser that may go back to it.
  await page.evaluate(() => window.dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true })));
  assert.equal(await page.locator("#live").isVisible(), false);
  assert.equal(await page.locator("#rules").textContent(), "");
  let asked = 0;
  page.on("request", () => {
    asked += 1;
  });
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.clock.runFor(60_000);
  assert.equal(asked, 0);
  await context.close();
});

test("a page that is paused or hidden asks for nothing", async () => {
  const context = await chromium.newContext();
  const { page } = await openPage(context, address(), async (page) => {
    await page.clock.install({ time: now });
    await answering(full)(page);
  });
  let asked = 0;
  page.on("request", () => {
    asked += 1;
  });
  await enter(page);
  await page.locator("#rules table").waitFor();
  const answered = page.waitForResponse("**/v1/watch");
  await page.clock.runFor(3_000);
  await (await answered).finished();
  assert.equal(asked, 2);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.clock.runFor(60_000);
  assert.equal(asked, 2);
  const again = page.waitForResponse("**/v1/watch");
  await page.getByRole("button", { name: "Go on" }).click();
  await (await again).finished();
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.clock.runFor(60_000);
  assert.equal(asked, 3);
  await context.close();
});

test("an inline script is blocked, and the page cannot be framed", async () => {
  const context = await chromium.newContext();
  await context.addInitScript(keepRefused);
  const { page } = await openPage(context, address());
  await page.evaluate(() => {
    const script = document.createElement("script");
    try {
      script.textContent = "globalThis.ran = true";
    } catch {
      // Trusted types refuse it before the policy for scripts does.
    }
    document.head.append(script);
  });
  assert.equal(await page.evaluate(() => globalThis.ran), undefined);
  assert.ok((await page.evaluate(() => globalThis.refused)).length > 0);
  const policy = (await page.reload()).headers()["content-security-policy"];
  assert.match(
    policy,
    /^default-src 'none'; script-src 'sha256-[^;]+'; style-src 'sha256-[^;]+'; connect-src 'self';/,
  );
  assert.match(policy, /frame-ancestors 'none'/);
  await context.close();
});

const widths = { wide: { width: 1280, height: 900 }, narrow: { width: 390, height: 844 } };

for (const colorScheme of ["light", "dark"])
  for (const [name, viewport] of Object.entries(widths))
    for (const [what, view] of Object.entries({ full, empty }))
      test(`axe: ${colorScheme}, ${name}, ${what}`, async () => {
        const context = await chromium.newContext({ colorScheme, viewport, reducedMotion: "reduce" });
        await context.addInitScript(keepRefused);
        const { page, complaints } = await openPage(context, address(), async (page) => {
          await page.clock.install({ time: now });
          await answering(view)(page);
        });
        assert.deepEqual(await objections(page, pastPolicy), [0], "as it opens");
        await enter(page);
        await page.locator("#live").waitFor();
        assert.deepEqual(await objections(page, pastPolicy), [0]);
        await page.getByLabel("A key of a rule").fill("ip=192.0.2.1");
        await page.keyboard.press("Enter");
        await page.locator("#story table").first().waitFor();
        assert.deepEqual(await objections(page, pastPolicy), [0], "with a key");
        await page.getByRole("button", { name: "Reset" }).click();
        assert.deepEqual(await objections(page, pastPolicy), [0], "with a question");
        assert.equal(await page.evaluate(() => globalThis.ran), undefined);
        assert.deepEqual(await page.evaluate(() => globalThis.refused), []);
        assert.deepEqual(complaints, []);
        await context.close();
      });
