// Tabs that wait for one budget take turns by how long they have waited: none waits longer than its share.

import assert from "node:assert/strict";
import test from "node:test";
import { launch, openPage } from "../../lib/browser/chromium.mjs";
import { serveSite } from "../../lib/browser/site.mjs";
import { after, before } from "../../lib/hooks.mjs";

let chromium;
let site;
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite()]);
});
after(async () => {
  await chromium?.close();
  site?.close();
});

const began = 1_800_000_000_000;

/** In the page: a throttle whose clock and timers the test moves, and calls that report when they are let through. */
async function prepare({ name, policy, began }) {
  const { Throttle } = await import("/package.js");
  const time = { now: began, timers: new Set() };
  const timer = (callback, wait) => {
    const entry = { at: time.now + wait, callback };
    time.timers.add(entry);
    return () => time.timers.delete(entry);
  };
  globalThis.throttle = new Throttle(policy, { shared: "turns", clock: () => time.now, timer });
  globalThis.call = (options) =>
    throttle.acquire(options).then(
      () => globalThis.report(name),
      (error) => globalThis.report(`${name} ${error.code ?? error}`),
    );
  globalThis.pass = (milliseconds) => {
    time.now += milliseconds;
    for (const entry of time.timers) {
      if (entry.at > time.now) continue;
      time.timers.delete(entry);
      entry.callback();
    }
  };
}

const onePerSecond = { algorithm: "token_bucket", capacity: 1, refillRate: 1 };

/** Tabs of one context that share a budget, and the order in which their calls were let through. */
async function tabs(t, names, policy = onePerSecond) {
  const context = await chromium.newContext();
  t.after(() => context.close());
  const seen = [];
  let wake = () => {};
  await context.exposeFunction("report", (name) => {
    seen.push(name);
    wake();
  });
  const pages = {};
  for (const name of names) {
    pages[name] = (await openPage(context, `${site.url}/blank`)).page;
    await pages[name].evaluate(prepare, { name, policy, began });
  }
  return {
    pages,
    seen,
    call: (name, options) =>
      pages[name].evaluate((options) => {
        globalThis.call(options);
      }, options),
    /** Every transaction that a tab has begun is complete when one that begins later is. */
    settled: async () => {
      for (const page of Object.values(pages))
        await page.evaluate(() => throttle.acquire({ key: `other ${Math.random()}` }));
    },
    /** Lets time pass in the tabs, always in the same order: the first always asks first. */
    pass: async (milliseconds, among = names) => {
      for (const name of among) await pages[name].evaluate((wait) => pass(wait), milliseconds);
    },
    /** When that many have been let through. */
    until: (count) =>
      new Promise((resolve) => {
        wake = () => seen.length >= count && resolve();
        wake();
      }),
  };
}

test("three tabs with five calls each: none waits for more than one turn of each other tab", async (t) => {
  const names = ["a", "b", "c"];
  const { call, seen, pass, until, settled } = await tabs(t, names);
  for (const name of names) {
    for (let count = 0; count < 5; count += 1) await call(name);
    await settled();
    await pass(1);
  }
  for (let count = 1; count <= 15; count += 1) {
    await until(count);
    await settled();
    await pass(1_000);
  }
  t.diagnostic(seen.join(" "));
  for (const name of names) {
    const turns = seen.flatMap((each, at) => (each === name ? [at] : []));
    assert.equal(turns.length, 5);
    const waits = turns.map((at, index) => at - (turns[index - 1] ?? 0));
    assert.ok(Math.max(...waits) <= 3, `${name}: ${seen.join(" ")}`);
  }
});

test("a tab that comes later waits for those that were there, not for all their calls", async (t) => {
  const { call, seen, pass, until, settled } = await tabs(t, ["busy", "late"]);
  for (let count = 0; count < 4; count += 1) await call("busy");
  await until(1);
  await settled();
  await pass(1);
  await call("late");
  await settled();
  for (let count = 2; count <= 5; count += 1) {
    await pass(1_000);
    await until(count);
    await settled();
  }
  assert.deepEqual(seen, ["busy", "busy", "late", "busy", "busy"]);
});

test("a dear call is not overtaken by cheap ones of another tab", async (t) => {
  const policy = { algorithm: "token_bucket", capacity: 3, refillRate: 1 };
  const { call, seen, pass, until, settled } = await tabs(t, ["cheap", "dear"], policy);
  await call("dear", { cost: 3 });
  await until(1);
  await call("dear", { cost: 3 });
  await settled();
  await pass(1);
  for (let count = 0; count < 3; count += 1) await call("cheap");
  for (let second = 0; second < 3; second += 1) {
    await settled();
    assert.deepEqual(seen, ["dear"]);
    await pass(1_000);
  }
  await until(2);
  assert.deepEqual(seen, ["dear", "dear"]);
  for (let second = 0; second < 3; second += 1) {
    await settled();
    await pass(1_000);
    await until(3 + second);
  }
  assert.deepEqual(seen.slice(2), ["cheap", "cheap", "cheap"]);
});

test("a closed tab, and one whose call gave up, delay no other for long", async (t) => {
  const { call, seen, pages, pass, until, settled } = await tabs(t, ["first", "gone", "left", "last"]);
  await call("first");
  await until(1);
  for (const name of ["gone", "left", "last"]) {
    await call(name);
    await settled();
    await pass(1);
  }
  await pages.gone.close();
  delete pages.gone;
  await pages.left.evaluate(() => throttle.clear());
  await until(2);
  assert.deepEqual(seen, ["first", "left cleared"]);
  await pass(997, ["last"]);
  await settled();
  assert.deepEqual(seen, ["first", "left cleared"], "it waits for the tab whose turn it is");
  await pass(249, ["last"]);
  await settled();
  assert.deepEqual(seen, ["first", "left cleared"]);
  await pass(1, ["last"]);
  await until(3);
  assert.deepEqual(seen[2], "last");
});

/** A dear call that is due in an hour, and a cheap one of another tab that lets it go first. */
async function dearAndCheap(t) {
  const policy = { algorithm: "token_bucket", capacity: 3_600, refillRate: 1 };
  const shared = await tabs(t, ["dear", "cheap"], policy);
  const { pages, call, until, settled, pass } = shared;
  await call("dear", { cost: 3_600 });
  await until(1);
  await pass(1_000);
  await call("dear", { cost: 3_600 });
  await settled();
  await pass(1);
  await pages.dear.evaluate(() => {
    globalThis.transactions = 0;
    const { transaction } = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (...args) {
      globalThis.transactions += 1;
      return transaction.apply(this, args);
    };
  });
  /** Does something after which the cheap call's tab calls the other, and waits until that has asked again. */
  const answered = async (work) => {
    const before = await pages.dear.evaluate(() => globalThis.transactions);
    await work();
    await pages.dear.waitForFunction((before) => globalThis.transactions > before, before, { polling: 20 });
    await settled();
    assert.deepEqual(shared.seen, ["dear"]);
  };
  await answered(() => call("cheap"));
  return { ...shared, answered };
}

test("a tab that was closed with a dear call delays the others for seconds, not until that call was due", async (t) => {
  const { pages, seen, until, settled, pass } = await dearAndCheap(t);
  await pages.dear.close();
  delete pages.dear;
  // It calls that tab again, and waits for a sign of it.
  for (const wait of [5_000, 4_999]) {
    await pass(wait, ["cheap"]);
    await settled();
    assert.deepEqual(seen, ["dear"]);
  }
  await pass(1, ["cheap"]);
  await until(2);
  assert.deepEqual(seen, ["dear", "cheap"]);
});

test("a tab that is there keeps the turn of its dear call until it is due", async (t) => {
  const { answered, pass } = await dearAndCheap(t);
  for (let round = 0; round < 3; round += 1) await answered(() => pass(5_000));
});

test("a call that does not wait goes through where there is room for all", async (t) => {
  const policy = { algorithm: "fix_window_per_key", limit: 3, scale: "1h" };
  const { call, seen, until, settled } = await tabs(t, ["one", "two"], policy);
  for (const name of ["one", "two", "one"]) await call(name, { maxWait: 0 });
  await until(3);
  await call("two", { maxWait: 0 });
  await until(4);
  await settled();
  assert.deepEqual(seen.sort(), ["one", "one", "two", "two max_wait"]);
});

test("invalid stored turns delay no call", async (t) => {
  const { pages, seen, call, until } = await tabs(t, ["one"], {
    algorithm: "token_bucket",
    capacity: 9,
    refillRate: 1,
  });
  await pages.one.evaluate(async () => {
    const done = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    await throttle.acquire({ key: "other" });
    const database = await done(indexedDB.open("tollgate", 1));
    const states = () => database.transaction("states", "readwrite").objectStore("states");
    const id = [
      "turns",
      (await done(states().getAllKeys()))[0].split("\0").slice(0, -2).join("\0"),
      "string",
      "",
    ];
    const turn = { id: "x", since: 0, due: 9e15, cost: 9 };
    for (const garbage of ["text", 7, { turns: 7 }, { turns: [null, "x", {}, { ...turn, cost: "9" }] }]) {
      await done(states().put(garbage, id));
      await call();
    }
    database.close();
  });
  await until(4);
  await call("one");
  await until(5);
  assert.deepEqual(seen, Array(5).fill("one"));
});
