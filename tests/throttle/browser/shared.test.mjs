// Tabs of an origin share one budget and never exceed it, also when pages are killed or reloaded.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { describe } from "node:test";
import { launch, openPage } from "../../lib/browser/chromium.mjs";
import { serveSite } from "../../lib/browser/site.mjs";
import { after, before } from "../../lib/hooks.mjs";

let chromium;
let site;
/** Serves a program beside this file. */
const program = (name) => (_, response) =>
  response
    .writeHead(200, { "Content-Type": "text/javascript" })
    .end(readFileSync(new URL(`programs/${name}`, import.meta.url)));

/** What the site serves beside its files. */
const routes = { "/take.js": program("take.js"), "/worker.js": program("worker.js") };
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite(routes)]);
});
after(async () => {
  await chromium?.close();
  site?.close();
});

const blank = () => `${site.url}/blank`;
const limit = 80;

/** In the page: takes what there is, one at a time, and reports each. */
async function takeAll({ shared, limit }) {
  const { Throttle } = await import("/package.js");
  const throttle = new Throttle({ algorithm: "sliding_window", limit, scale: "1h" }, { shared });
  try {
    for (;;) {
      await throttle.acquire({ maxWait: 0 });
      await globalThis.granted();
    }
  } catch (error) {
    return error.code;
  }
}

/** Pages of one context that share a budget, and how much they were granted in all. */
async function sharing(shared) {
  const context = await chromium.newContext();
  let total = 0;
  let wake = () => {};
  await context.exposeFunction("granted", () => {
    total += 1;
    wake();
  });
  return {
    context,
    open: async () => (await openPage(context, blank())).page,
    take: (page) => page.evaluate(takeAll, { shared, limit }).catch(() => "killed"),
    total: () => total,
    /** When that many were granted. */
    until: (count) =>
      new Promise((resolve) => {
        wake = () => total >= count && resolve();
        wake();
      }),
  };
}

test("ten times two pages, one killed and one reloaded in the middle: never more than the limit", async (t) => {
  for (let round = 0; round < 10; round += 1) {
    const { context, open, take, total, until } = await sharing(`round ${round}`);
    const [first, second] = [await open(), await open()];
    const ends = [take(first), take(second)];
    await until(10 + round);
    // Every second time its process dies, without a word to the page.
    if (round % 2 === 0) await first.close();
    else first.goto("chrome://crash").catch(() => {});
    await until(40 + round);
    await second.reload();
    const third = await open();
    ends.push(take(second), take(third));
    await Promise.all(ends.slice(2));
    const granted = total();
    t.diagnostic(`round ${round}: ${granted} of ${limit}`);
    assert.ok(granted <= limit, `${granted} is more than ${limit}`);
    // What was granted to a page as it died is all that may be missing.
    assert.ok(granted >= limit - 2, `${granted} is too few`);
    await context.close();
  }
});

test("waiting calls run in turn, whichever page they are in", async () => {
  const context = await chromium.newContext();
  const pages = [(await openPage(context, blank())).page, (await openPage(context, blank())).page];
  const work = async ({ name }) => {
    const { Throttle } = await import("/package.js");
    const policy = { algorithm: "token_bucket", capacity: 1, refillRate: 50 };
    const throttle = new Throttle(policy, { shared: "waiting" });
    const times = [];
    const began = Date.now();
    await Promise.all(
      Array.from({ length: 10 }, () => throttle.acquire().then(() => times.push(Date.now()))),
    );
    return { name, began, times };
  };
  const answers = await Promise.all(pages.map((page, name) => page.evaluate(work, { name })));
  const times = answers.flatMap(({ times }) => times);
  assert.equal(times.length, 20);
  // Twenty with room for one at first: nineteen refills of 20 ms lie between the first, whenever it is told, and the last.
  const took = Math.max(...times) - Math.min(...answers.map(({ began }) => began));
  assert.ok(took >= 19 * 20, `${took} ms`);
  await context.close();
});

test("a worker and its page share one too", async () => {
  const context = await chromium.newContext();
  const { page } = await openPage(context, blank());
  const answers = await page.evaluate(async () => {
    const worker = new Worker("/worker.js", { type: "module" });
    const inWorker = new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
    });
    const { take } = await import("/take.js");
    return Promise.all([inWorker, take()]);
  });
  assert.equal(answers[0] + answers[1], 3);
  await context.close();
});

describe("a wait that a server sent to one tab", () => {
  /** What the server was asked, by which tab, and what it answers next. */
  let asked = [];
  let answers = [];
  routes["/api"] = (request, response) => {
    asked.push(new URL(request.url, "http://localhost").searchParams.get("tab"));
    const [status, headers = {}] = answers.shift() ?? [200];
    response.writeHead(status, { "Cache-Control": "no-store", ...headers }).end();
  };

  /** In the page: a throttled fetch under a clock that the test sets, whose timers ring when it says so. */
  async function prepare({ shared, began }) {
    const { Throttle } = await import("/package.js");
    const time = { now: began, timers: new Set() };
    const timer = (callback, wait) => {
      const entry = { at: time.now + wait, callback };
      time.timers.add(entry);
      return () => time.timers.delete(entry);
    };
    globalThis.make = (
      policy = { algorithm: "token_bucket", capacity: 100, refillRate: 100 },
      options = {},
    ) =>
      new Throttle(policy, {
        shared,
        clock: () => time.now,
        timer,
        random: () => 0,
        retries: 0,
        ...options,
      });
    globalThis.throttle = globalThis.make();
    globalThis.timers = () => time.timers.size;
    globalThis.pass = (milliseconds) => {
      time.now += milliseconds;
      for (const entry of time.timers) {
        if (entry.at > time.now) continue;
        time.timers.delete(entry);
        entry.callback();
      }
    };
    /** What the next request comes to, if it may not wait. */
    globalThis.ask = async (tab, own = throttle) => {
      const key = location.origin;
      return own.acquire({ key, maxWait: 0 }).then(
        async () => (await fetch(`/api?tab=${tab}`)).status,
        (error) => error.code ?? String(error),
      );
    };
  }

  /** Two tabs of one context that share a budget and a clock. */
  async function tabs(shared) {
    [asked, answers] = [[], []];
    const context = await chromium.newContext();
    let now = 1_800_000_000_000;
    const open = async () => {
      const { page, complaints } = await openPage(context, blank());
      await page.evaluate(prepare, { shared, began: now });
      return { page, complaints, ask: (tab) => page.evaluate((tab) => ask(tab), tab) };
    };
    const both = [await open(), await open()];
    const pass = async (milliseconds, pages) => {
      now += milliseconds;
      for (const { page } of pages) await page.evaluate((milliseconds) => pass(milliseconds), milliseconds);
    };
    return { context, open, both, pass };
  }

  /** A request by the throttle itself, which heeds what the answer says. */
  const told = (page) => page.evaluate(async () => (await throttle.fetch("/api?tab=first")).status);

  /** In the page: how many holds are stored. */
  async function storedHolds() {
    const done = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const database = await done(indexedDB.open("tollgate", 1));
    const keys = await done(database.transaction("states").objectStore("states").getAllKeys());
    database.close();
    return keys.filter(([kind]) => kind === "hold").length;
  }

  /** When a hold is written, which no request waits for. */
  const stored = (page) => page.waitForFunction(storedHolds);

  test("holds all tabs, also one that opens later, until it is over", async () => {
    const { context, open, both, pass } = await tabs("told");
    const [first, second] = both;
    assert.equal(await second.ask("second"), 200);
    answers = [[429, { "Retry-After": "30" }]];
    assert.equal(await told(first.page), 429);
    await stored(first.page);
    const third = await open();
    for (const tab of [first, second, third]) assert.equal(await tab.ask("held"), "max_wait");
    await pass(29_999, [first, second, third]);
    for (const tab of [first, second, third]) assert.equal(await tab.ask("held"), "max_wait");
    // Nobody waits there, so no timer runs.
    assert.equal(await second.page.evaluate(() => timers()), 0);
    await pass(1, [first, second, third]);
    for (const tab of [first, second, third]) assert.equal(await tab.ask("free"), 200);
    assert.deepEqual(asked, ["second", "first", "free", "free", "free"]);
    for (const { complaints } of [second, third]) assert.deepEqual(complaints, []);
    await context.close();
  });

  test("a call that waits in another tab already runs when it is over, not before", async () => {
    const { context, both, pass } = await tabs("waiting tab");
    const [first, second] = both;
    answers = [[429, { "Retry-After": "10" }]];
    assert.equal(await told(first.page), 429);
    await stored(first.page);
    await second.page.evaluate(() => {
      globalThis.through = [];
      for (const name of ["a", "b"])
        throttle.acquire({ key: location.origin }).then(() => globalThis.through.push(name));
    });
    // Transactions take turns: when one that came later is answered, so are those before.
    const through = () =>
      second.page.evaluate(async () => {
        await throttle.acquire({ key: "elsewhere" });
        return globalThis.through;
      });
    assert.deepEqual(await through(), []);
    await pass(9_999, both);
    assert.deepEqual(await through(), []);
    await pass(1, both);
    await second.page.waitForFunction(() => globalThis.through.length === 2);
    assert.deepEqual(await through(), ["a", "b"]);
    await context.close();
  });

  test("another key, another budget and another origin's server are not held", async () => {
    const { context, both } = await tabs("one budget");
    const [first, second] = both;
    answers = [[429, { "Retry-After": "60" }]];
    await told(first.page);
    await stored(first.page);
    const seen = await second.page.evaluate(async () => {
      const { Throttle } = await import("/package.js");
      const policy = { algorithm: "token_bucket", capacity: 100, refillRate: 100 };
      const others = [throttle.acquire({ key: "elsewhere", maxWait: 0 })];
      others.push(new Throttle(policy, { shared: "another" }).acquire({ key: location.origin, maxWait: 0 }));
      const allowed = (await Promise.all(others)).map((decision) => decision.allowed);
      return [...allowed, await ask("second")];
    });
    assert.deepEqual(seen, [true, true, "max_wait"]);
    await context.close();
  });

  test("another version of the page, with another policy, is held too", async () => {
    const { context, both } = await tabs("versions");
    const [first, second] = both;
    answers = [[429, { "Retry-After": "60" }]];
    await told(first.page);
    await stored(first.page);
    const other = { algorithm: "fix_window", limit: 5, scale: "1h" };
    assert.equal(await second.page.evaluate((other) => ask("second", make(other)), other), "max_wait");
    await context.close();
  });

  test("a shorter wait does not end a longer one, and a hold charges nothing", async () => {
    const { context, both, pass } = await tabs("longest");
    const [first, second] = both;
    const seen = [];
    for (const [page, milliseconds] of [
      [first.page, 10_000],
      [second.page, 3_000],
    ]) {
      await page.evaluate((wait) => throttle.hold(location.origin, wait), milliseconds);
      await stored(page);
      // A transaction that comes later is answered later.
      await page.evaluate(() => ask("held"));
    }
    await pass(9_999, both);
    seen.push(await first.ask("held"), await second.ask("held"));
    await pass(1, both);
    const remaining = await second.page.evaluate(
      async () => (await throttle.acquire({ key: location.origin, maxWait: 0 })).remaining,
    );
    assert.deepEqual([...seen, remaining], ["max_wait", "max_wait", 99]);
    await context.close();
  });

  test("a clock that was set back does not make it longer than the server's wait", async () => {
    const { context, both, pass } = await tabs("clock");
    const [first, second] = both;
    await first.page.evaluate(() => throttle.hold(location.origin, 60_000));
    await stored(first.page);
    await pass(-86_400_000, [second]);
    assert.equal(await second.ask("held"), "max_wait");
    await pass(59_999, [second]);
    assert.equal(await second.ask("held"), "max_wait");
    await pass(1, [second]);
    assert.equal(await second.ask("free"), 200);
    await context.close();
  });

  test("an invalid stored hold is ignored and overwritten", async () => {
    const { context, both } = await tabs("garbage");
    const [first, second] = both;
    await first.page.evaluate(() => throttle.hold(location.origin, 60_000));
    await stored(first.page);
    const garbage = [
      "text",
      7,
      null,
      { expiresAt: Number.NaN, length: 1 },
      { expiresAt: 9e15 },
      { expiresAt: "9e15", length: 9e15 },
    ];
    const seen = await second.page.evaluate(async (garbage) => {
      const done = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
      const database = await done(indexedDB.open("tollgate", 1));
      const states = () => database.transaction("states", "readwrite").objectStore("states");
      const [id] = (await done(states().getAllKeys())).filter(([kind]) => kind === "hold");
      const seen = [];
      for (const each of [...garbage, { expiresAt: Number.NaN, length: Number.NaN }]) {
        await done(states().put(each, id));
        const fresh = make();
        seen.push(await ask("second", fresh));
        fresh.hold(location.origin, 60_000);
        // Asked by another, which knows of the hold only by what is stored.
        seen.push(await ask("second", make()));
      }
      database.close();
      return seen;
    }, garbage);
    assert.deepEqual(seen, Array.from({ length: 7 }, () => [200, "max_wait"]).flat());
    assert.deepEqual(second.complaints, []);
    await context.close();
  });

  test("no page holds another for longer than its maxHold, and the next call removes a hold that is over", async () => {
    const { context, both, pass } = await tabs("far");
    const [first, second] = both;
    await first.page.evaluate(() => throttle.hold(location.origin, 7_200_000));
    await stored(first.page);
    assert.equal(await second.ask("held"), "max_wait");
    await pass(3_599_999, [second]);
    assert.equal(await second.ask("held"), "max_wait");
    await pass(1, [second]);
    assert.equal(await second.ask("free"), 200);
    await pass(3_600_000, [second]);
    assert.equal(await second.ask("free"), 200);
    assert.equal(await second.page.evaluate(storedHolds), 0);
    await context.close();
  });

  test("a small maxHold ends it for that page only", async () => {
    const { context, both, pass, open } = await tabs("small maxHold");
    const [first, second] = both;
    await first.page.evaluate(() => throttle.hold(location.origin, 60_000));
    await stored(first.page);
    const impatient = (tab) =>
      tab.page.evaluate(() => {
        globalThis.impatient ??= make(undefined, { maxHold: 1_000 });
        return ask("impatient", impatient);
      });
    assert.equal(await impatient(second), "max_wait");
    await pass(1_000, both);
    assert.equal(await impatient(second), 200);
    const third = await open();
    for (const tab of [first, third]) assert.equal(await tab.ask("held"), "max_wait");
    // Not even at first: the hold began a second ago.
    assert.equal(await impatient(third), 200);
    await pass(58_999, [first, second, third]);
    for (const tab of [first, third]) assert.equal(await tab.ask("held"), "max_wait");
    await pass(1, [first, second, third]);
    for (const tab of [first, second, third]) assert.equal(await tab.ask("free"), 200);
    await context.close();
  });

  test("an invalid key is an error that names it", async () => {
    const { context, both } = await tabs("keys");
    const codes = await both[0].page.evaluate(async () => {
      const keys = [{}, null, Symbol("key"), Number.NaN, ["a"], () => 1];
      return Promise.all(keys.map((key) => throttle.acquire({ key }).catch(({ code }) => code)));
    });
    assert.deepEqual(codes, Array(6).fill("invalid_key"));
    await context.close();
  });

  test("one that is over is removed when a page comes next", async () => {
    const { context, both, pass, open } = await tabs("ended");
    await both[0].page.evaluate(() => throttle.hold(location.origin, 60_000));
    await stored(both[0].page);
    await pass(60_000, both);
    const third = await open();
    await third.page.evaluate(() => throttle.acquire({ key: "elsewhere" }));
    assert.equal(await third.page.evaluate(storedHolds), 0);
    await context.close();
  });
});

describe("storage", () => {
  /** Takes so many at once, in a fresh page of a fresh context. */
  async function inPage(work, ...prepare) {
    const context = await chromium.newContext();
    for (const script of [helpers, ...prepare]) await context.addInitScript(script);
    const { page, complaints } = await openPage(context, blank());
    const answer = await page.evaluate(work);
    await context.close();
    return { answer, complaints };
  }

  /** Defines in the page what the tests call there. */
  function helpers() {
    globalThis.throttle = async (policy = { algorithm: "fix_window_per_key", limit: 2, scale: "1h" }) => {
      const { Throttle } = await import("/package.js");
      return new Throttle(policy, { shared: "budget" });
    };
    globalThis.take = async (throttle) => {
      try {
        return (await throttle.acquire({ maxWait: 0 })).remaining;
      } catch (error) {
        return error.code ?? String(error);
      }
    };
    globalThis.done = (request) =>
      new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
        request.onblocked = () => reject(new Error("blocked"));
      });
  }

  function withoutIndexedDb() {
    Object.defineProperty(globalThis, "indexedDB", { value: undefined });
  }

  test("survives a reload", async () => {
    const context = await chromium.newContext();
    await context.addInitScript(helpers);
    const { page } = await openPage(context, blank());
    const work = async () => take(await throttle());
    assert.equal(await page.evaluate(work), 1);
    await page.reload();
    assert.equal(await page.evaluate(work), 0);
    await page.reload();
    assert.equal(await page.evaluate(work), "max_wait");
    await context.close();
  });

  test("corrupted under it: starts afresh and warns once", async () => {
    const { answer, complaints } = await inPage(async () => {
      const own = await throttle();
      const seen = [await take(own), await take(own), await take(own)];
      const database = await done(indexedDB.open("tollgate", 1));
      for (const garbage of ["garbage", 7, { version: 2, policies: [], states: "x" }, { version: 99 }]) {
        const states = database.transaction("states", "readwrite").objectStore("states");
        const [key] = await done(states.getAllKeys());
        await done(states.put(garbage, key));
        seen.push(await take(own));
      }
      return seen;
    });
    assert.deepEqual(answer, [1, 0, "max_wait", 1, 1, 1, 1]);
    assert.equal(complaints.length, 1);
    assert.match(complaints[0], /starts afresh/);
  });

  test("cleared under it: starts afresh, and no page is blocked", async () => {
    const { answer, complaints } = await inPage(async () => {
      const own = await throttle();
      const seen = [await take(own), await take(own), await take(own)];
      await done(indexedDB.deleteDatabase("tollgate"));
      seen.push(await take(own), await take(own), await take(own));
      return seen;
    });
    assert.deepEqual(answer, [1, 0, "max_wait", 1, 0, "max_wait"]);
    assert.deepEqual(complaints, []);
  });

  test("cleared while a call waits: goes on at once", async () => {
    const { answer } = await inPage(async () => {
      const own = await throttle();
      await Promise.all([own.acquire(), own.acquire()]);
      const third = own.acquire();
      await done(indexedDB.deleteDatabase("tollgate"));
      return (await third).remaining;
    });
    assert.equal(answer, 1);
  });

  test("a database of that name that is not ours: starts afresh", async () => {
    const { answer, complaints } = await inPage(async () => {
      const request = indexedDB.open("tollgate", 1);
      request.onupgradeneeded = () => request.result.createObjectStore("something else");
      (await done(request)).close();
      const own = await throttle();
      return [await take(own), await take(own), await take(own)];
    });
    assert.deepEqual(answer, [1, 0, "max_wait"]);
    assert.equal(complaints.length, 1);
  });

  test("no IndexedDB: a budget of its own, and it says so once", async () => {
    const { answer, complaints } = await inPage(async () => {
      const own = await throttle();
      return [await take(own), await take(own), await take(own)];
    }, withoutIndexedDb);
    assert.deepEqual(answer, [1, 0, "max_wait"]);
    assert.equal(complaints.length, 1);
    assert.match(complaints[0], /budget of its own/);
  });

  test("another version of the page, with another policy", async () => {
    const { answer } = await inPage(async () => {
      const [two, three, bucket] = await Promise.all([
        throttle(),
        throttle({ algorithm: "fix_window_per_key", limit: 3, scale: "1h" }),
        throttle({ algorithm: "token_bucket", capacity: 1, refillRate: 1, per: "1h" }),
      ]);
      const seen = [];
      // Each sees what the other took; another algorithm keeps its own account and wipes none.
      for (const each of [two, three, bucket, two, three, bucket, three, two]) seen.push(await take(each));
      return seen;
    });
    assert.deepEqual(answer, [1, 1, 0, "max_wait", 0, "max_wait", "max_wait", "max_wait"]);
  });

  test("the next page removes ended states, and keeps others", async () => {
    const { answer } = await inPage(async () => {
      const { Throttle } = await import("/package.js");
      const policy = { algorithm: "fix_window_per_key", limit: 2, scale: "1h" };
      const at = (now) => new Throttle(policy, { shared: "budget", clock: () => now });
      await at(0).acquire({ key: "early" });
      await at(1_800_000).acquire({ key: "late" });
      const last = at(3_600_000);
      await last.acquire({ key: "last" });
      const database = await done(indexedDB.open("tollgate", 1));
      const keys = await done(database.transaction("states").objectStore("states").getAllKeys());
      const seen = keys.map((key) => key.split("\0").at(-1));
      return [...seen, (await last.acquire({ key: "late" })).remaining];
    });
    assert.deepEqual(answer, ["last", "late", 0]);
  });

  test("disposed of, it holds neither the database nor its channel", async () => {
    const { answer } = await inPage(async () => {
      const closed = [];
      for (const Held of [BroadcastChannel, IDBDatabase]) {
        const { close } = Held.prototype;
        Held.prototype.close = function () {
          closed.push(Held.name);
          return close.call(this);
        };
      }
      const own = await throttle();
      const seen = [await take(own)];
      own[Symbol.dispose]();
      return [...seen, await take(own), ...closed];
    });
    assert.deepEqual(answer, [1, "disposed", "BroadcastChannel", "IDBDatabase"]);
  });

  test("an invalid cost is rejected, and charges nothing", async () => {
    const { answer } = await inPage(async () => {
      const own = await throttle();
      const wrong = await own.acquire({ cost: -1 }).catch(({ code }) => code);
      return [wrong, await take(own)];
    });
    assert.deepEqual(answer, ["invalid_cost", 1]);
  });
});
