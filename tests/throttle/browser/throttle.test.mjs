// `Throttle` runs calls in order, at the exact times, with one timer, in Chromium.

import assert from "node:assert/strict";
import test from "node:test";
import { launch, openPage } from "../../lib/browser/chromium.mjs";
import { serveSite } from "../../lib/browser/site.mjs";
import { after, before } from "../../lib/hooks.mjs";

let chromium;
let site;
let page;
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite()]);
  ({ page } = await openPage(await chromium.newContext(), `${site.url}/blank`));
  await page.evaluate(prepare);
});
after(async () => {
  await chromium?.close();
  site?.close();
});

/** In the page: a throttle under a clock and a timer that move only when told. */
async function prepare() {
  const { Throttle } = await import("/package.js");
  globalThis.start = (policy, options) => {
    const time = { now: 1_800_000_000_000, timers: new Set() };
    const timer = (callback, wait) => {
      const entry = { at: time.now + wait, callback };
      time.timers.add(entry);
      return () => time.timers.delete(entry);
    };
    const throttle = new Throttle(policy, { clock: () => time.now, timer, ...options });
    const began = time.now;
    const done = [];
    const wait = (name, asked) =>
      throttle.acquire(asked).then(
        () => done.push(`${name} ${time.now - began}`),
        (error) => done.push(`${name} ${error.code ?? error}`),
      );
    const settled = () => new Promise((resolve) => setTimeout(resolve));
    const pass = async (milliseconds) => {
      const until = time.now + milliseconds;
      await settled();
      const next = () =>
        [...time.timers].sort((one, other) => one.at - other.at).find(({ at }) => at <= until);
      for (let due = next(); due; due = next()) {
        time.now = due.at;
        time.timers.delete(due);
        due.callback();
        await settled();
      }
      time.now = until;
    };
    return { time, throttle, done, wait, pass, settled };
  };
}

test("in order, each exactly when the policy allows it, with one timer", async () => {
  const seen = await page.evaluate(async () => {
    const { time, done, wait, pass, throttle } = start({
      algorithm: "token_bucket",
      capacity: 1,
      refillRate: 1,
    });
    for (const name of "abc") wait(name);
    const timers = time.timers.size;
    await pass(999);
    const early = [...done];
    await pass(2_000);
    return { timers, early, done, pending: throttle.pending, left: time.timers.size };
  });
  assert.deepEqual(seen, {
    timers: 1,
    early: ["a 0"],
    done: ["a 0", "b 1000", "c 2000"],
    pending: 0,
    left: 0,
  });
});

test("an aborted wait frees its place at once", async () => {
  const done = await page.evaluate(async () => {
    const { done, wait, settled } = start({ algorithm: "token_bucket", capacity: 3, refillRate: 1 });
    const controller = new AbortController();
    wait("two", { cost: 2 });
    wait("three", { cost: 3, signal: controller.signal });
    wait("one");
    controller.abort("left");
    await settled();
    return done;
  });
  assert.deepEqual(done, ["two 0", "three left", "one 0"]);
});

test("maxWait rejects a longer wait at once", async () => {
  const done = await page.evaluate(async () => {
    const { done, wait, pass } = start({ algorithm: "fix_window_per_key", limit: 1, scale: "1s" });
    wait("a");
    wait("b", { maxWait: 999 });
    wait("c", { maxWait: 1_000 });
    await pass(1_000);
    return done;
  });
  assert.deepEqual(done, ["a 0", "b max_wait", "c 1000"]);
});

test("the platform's own clock and timer", async () => {
  const { waited, allowed } = await page.evaluate(async () => {
    const { Throttle } = await import("/package.js");
    const throttle = new Throttle({ algorithm: "fix_window_per_key", limit: 1, scale: 50 });
    const began = Date.now();
    await throttle.acquire();
    const { allowed } = await throttle.acquire();
    return { waited: Date.now() - began, allowed };
  });
  assert.equal(allowed, true);
  assert.ok(waited >= 50, `waited ${waited} ms`);
});

test("a leading call under a shared budget is not dropped for a slow store", async () => {
  const answers = await page.evaluate(async () => {
    const { Throttle } = await import("/package.js");
    const policy = { algorithm: "fix_window_per_key", limit: 3, scale: "1h" };
    const press = new Throttle(policy, { shared: "leading" }).wrap((name) => name, { edge: "leading" });
    return Promise.all(["a", "b", "c", "d"].map((name) => press(name)));
  });
  assert.deepEqual(answers, ["a", "b", "c", undefined]);
});
