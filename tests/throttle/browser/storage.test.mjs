// A budget that tabs share stays one budget when its storage is cleared, fails for a while, or is held by another page, and
// an idle page holds no connection to it.

import assert from "node:assert/strict";
import test from "node:test";
import { launch, openPage } from "../../lib/browser/chromium.mjs";
import { keepConnections } from "../../lib/browser/connections.mjs";
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

/** In the page: what the tests call there. */
function helpers() {
  globalThis.done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  globalThis.make = async (options, policy = { algorithm: "fix_window_per_key", limit: 2, scale: "1h" }) => {
    const { Throttle } = await import("/package.js");
    return new Throttle(policy, { shared: "budget", ...options });
  };
  globalThis.take = async (throttle, options = { maxWait: 0 }) => {
    try {
      return (await throttle.acquire(options)).remaining;
    } catch (error) {
      return error.code ?? String(error);
    }
  };
}

/** A context, and a function that opens pages in it. */
async function context(t) {
  const made = await chromium.newContext();
  t.after(() => made.close());
  await made.addInitScript(helpers);
  return { context: made, open: () => openPage(made, `${site.url}/blank`) };
}

/** Clears the site's data, as the page's developer tools do. */
async function clearSiteData(made, page) {
  const session = await made.newCDPSession(page);
  await session.send("Storage.clearDataForOrigin", { origin: site.url, storageTypes: "all" });
}

test("site data is cleared under many tabs: every call ends, and one budget is left", async (t) => {
  const { context: made, open } = await context(t);
  const count = 12;
  const opened = await Promise.all(Array.from({ length: count }, open));
  const limit = 40;
  /** In the page: asks again and again, and counts what it is granted since it was last told so. */
  const start = async (limit) => {
    const throttle = await make({}, { algorithm: "fix_window_per_key", limit, scale: "1h" });
    globalThis.asked = { ended: 0, granted: 0, stops: false };
    globalThis.loop = (async () => {
      while (!asked.stops) {
        if (typeof (await take(throttle)) === "number") asked.granted += 1;
        asked.ended += 1;
      }
    })();
  };
  const all = (work, argument) => Promise.all(opened.map(({ page }) => page.evaluate(work, argument)));
  const progress = async () => {
    await all(() => (asked.ended = 0));
    // Each page decides again, or waits for ever.
    await Promise.all(opened.map(({ page }) => page.waitForFunction(() => asked.ended > 2)));
  };
  await all(start, limit);
  const rounds = 6;
  for (let round = 0; round < rounds; round += 1) {
    await progress();
    await clearSiteData(made, opened[round % count].page);
  }
  await progress();
  const granted = await all(async () => {
    asked.stops = true;
    await loop;
    return asked.granted;
  });
  const sum = granted.reduce((one, other) => one + other, 0);
  t.diagnostic(`${sum} granted of ${limit} and ${rounds} times cleared`);
  assert.ok(sum <= limit * (rounds + 1), `${sum} of ${limit * (rounds + 1)}`);
  for (const { complaints } of opened) assert.deepEqual(complaints, []);
});

test("a transaction that neither completes nor aborts when its database is closed", async (t) => {
  const { open } = await context(t);
  const { page, complaints } = await open();
  const seen = await page.evaluate(async () => {
    const own = await make({}, { algorithm: "fix_window_per_key", limit: 9, scale: "1h" });
    const before = await take(own);
    // Chromium sometimes closes a connection so: only the connection hears of it.
    const { transaction } = IDBDatabase.prototype;
    let closed = 0;
    IDBDatabase.prototype.transaction = function (...args) {
      const made = transaction.apply(this, args);
      if (closed < 2) {
        closed += 1;
        for (const name of ["oncomplete", "onabort"]) Object.defineProperty(made, name, { set() {} });
        made.addEventListener("complete", () => this.dispatchEvent(new Event("close")));
      }
      return made;
    };
    return [before, typeof (await take(own)), closed];
  });
  assert.deepEqual(seen, [8, "number", 2]);
  assert.deepEqual(complaints, []);
});

test("storage that fails for a while: the page decides by itself, then shares again", async (t) => {
  const { open } = await context(t);
  const [{ page, complaints }, other] = [await open(), await open()];
  await page.evaluate(async () => {
    const { open } = IDBFactory.prototype;
    globalThis.fails = true;
    IDBFactory.prototype.open = function (...args) {
      if (globalThis.fails) throw new DOMException("no storage", "UnknownError");
      return open.apply(this, args);
    };
    globalThis.time = { now: 1_800_000_000_000 };
    globalThis.own = await make({ clock: () => time.now });
  });
  const ask = () => page.evaluate(() => take(own));
  assert.deepEqual([await ask(), await ask(), await ask()], [1, 0, "max_wait"]);
  const [shared] = [
    await other.page.evaluate(async () => take(await make({ clock: () => 1_800_000_000_000 }))),
  ];
  assert.equal(shared, 1);
  await page.evaluate(() => {
    globalThis.fails = false;
    time.now += 999;
  });
  assert.equal(await ask(), "max_wait");
  await page.evaluate(() => (time.now += 1));
  assert.deepEqual([await ask(), await ask()], [0, "max_wait"], "the other page has used one");
  assert.equal(complaints.length, 1, complaints.join());
});

test("a database without its store, held open elsewhere: calls do not wait for that", async (t) => {
  const { open } = await context(t);
  const [holder, first, second] = [await open(), await open(), await open()];
  await holder.page.evaluate(async () => {
    // No store is made, and the connection ignores that another page wants it closed.
    globalThis.held = await done(indexedDB.open("tollgate"));
  });
  const ask = (page) =>
    page.evaluate(async () => {
      globalThis.own ??= await make();
      return take(own);
    });
  const seen = [await ask(first.page), await ask(second.page), await ask(first.page)];
  assert.deepEqual(seen, [1, 0, "max_wait"], "one budget for both");
  assert.deepEqual([first.complaints.length, second.complaints.length], [1, 1]);
});

test("maxWait holds while another page blocks the store", async (t) => {
  const { open } = await context(t);
  const [blocking, waiting] = [await open(), await open()];
  await waiting.page.evaluate(async () => {
    globalThis.own = await make();
    await take(own);
  });
  // A transaction that goes on until the test ends it, as a page does that stands still in the middle of one.
  await blocking.page.evaluate(async () => {
    const database = await done(indexedDB.open("tollgate"));
    const states = database.transaction("states", "readwrite").objectStore("states");
    const next = () => {
      if (!globalThis.released) states.get("none").onsuccess = next;
    };
    next();
  });
  const codes = await waiting.page.evaluate(() =>
    Promise.all([take(own), take(own, { maxWait: 1_500 }), take(own, { maxWait: 10 })]),
  );
  assert.deepEqual(codes, Array(3).fill("max_wait"));
  await blocking.page.evaluate(() => (globalThis.released = true));
  assert.equal(
    await waiting.page.evaluate(() => take(own, { maxWait: 60_000 })),
    0,
    "nothing was charged for them",
  );
});

test("an idle page closes its connection, and opens it again", async (t) => {
  const { open } = await context(t);
  const { page } = await open();
  await page.clock.install();
  await page.evaluate(keepConnections);
  const seen = await page.evaluate(async () => {
    const throttles = await Promise.all(Array.from({ length: 5 }, () => make({}, undefined)));
    globalThis.throttles = throttles;
    for (const throttle of throttles) await take(throttle);
    return connections.size;
  });
  assert.equal(seen, 5);
  await page.clock.runFor(10_000);
  assert.equal(await page.evaluate(() => connections.size), 0);
  assert.equal(await page.evaluate(() => take(throttles[0])), "max_wait", "it knows what was used");
  await page.clock.runFor(10_000);
  assert.equal(await page.evaluate(() => connections.size), 0);
});
