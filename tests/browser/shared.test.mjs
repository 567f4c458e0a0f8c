import assert from "node:assert/strict";
import test, { after, before, describe } from "node:test";
import { launch, openPage } from "./lib/chromium.mjs";
import { serveSite } from "./lib/site.mjs";

let chromium;
let site;
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite()]);
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

test("who waits is let through in turn, whichever page it is in", async () => {
  const context = await chromium.newContext();
  const pages = [(await openPage(context, blank())).page, (await openPage(context, blank())).page];
  const work = async ({ name }) => {
    const { Throttle } = await import("/package.js");
    const policy = { algorithm: "token_bucket", capacity: 1, refillRate: 50 };
    const throttle = new Throttle(policy, { shared: "waiting" });
    const times = [];
    await Promise.all(
      Array.from({ length: 10 }, () => throttle.acquire().then(() => times.push(Date.now()))),
    );
    return { name, times };
  };
  const answers = await Promise.all(pages.map((page, name) => page.evaluate(work, { name })));
  const times = answers.flatMap(({ times }) => times).sort((one, other) => one - other);
  assert.equal(times.length, 20);
  // Twenty with room for one at first: nineteen refills of 20 ms lie between the first and the last.
  assert.ok(times.at(-1) - times[0] >= 19 * 20 - 20, `${times.at(-1) - times[0]} ms`);
  await context.close();
});

test("a worker and its page share one too", async () => {
  const context = await chromium.newContext();
  const { page } = await openPage(context, blank());
  const answers = await page.evaluate(async () => {
    const code = `
      const take = async () => {
        const { Throttle } = await import("${location.origin}/package.js");
        const policy = { algorithm: "fix_window_per_key", limit: 3, scale: "1h" };
        const throttle = new Throttle(policy, { shared: "with a worker" });
        const all = [1, 2, 3].map(() => throttle.acquire({ maxWait: 0 }).then(() => 1, () => 0));
        return (await Promise.all(all)).reduce((sum, each) => sum + each);
      };
    `;
    const source = `${code} take().then(postMessage)`;
    const worker = new Worker(URL.createObjectURL(new Blob([source])));
    const inWorker = new Promise((resolve) => {
      worker.onmessage = ({ data }) => resolve(data);
    });
    const inPage = new Function(`${code} return take()`)();
    return Promise.all([inWorker, inPage]);
  });
  assert.equal(answers[0] + answers[1], 3);
  await context.close();
});

describe("storage", () => {
  /** Takes so many at once, in a fresh page of a fresh context. */
  async function inPage(work, { before: prepare, argument } = {}) {
    const context = await chromium.newContext();
    if (prepare) await context.addInitScript(prepare);
    const { page, complaints } = await openPage(context, blank());
    const answer = await page.evaluate(work, argument);
    await context.close();
    return { answer, complaints };
  }

  /** Defined in the page by each test that uses it. */
  const helpers = `
    globalThis.throttle = async (policy = { algorithm: "fix_window_per_key", limit: 2, scale: "1h" }) => {
      const { Throttle } = await import("/package.js");
      return new Throttle(policy, { shared: "budget" });
    };
    globalThis.take = async (throttle) => {
      try { return (await throttle.acquire({ maxWait: 0 })).remaining; } catch (error) { return error.code ?? String(error); }
    };
    globalThis.done = (request) => new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
      request.onblocked = () => reject(new Error("blocked"));
    });
  `;

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
    const { answer, complaints } = await inPage(
      async () => {
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
      },
      { before: helpers },
    );
    assert.deepEqual(answer, [1, 0, "max_wait", 1, 1, 1, 1]);
    assert.equal(complaints.length, 1);
    assert.match(complaints[0], /starts afresh/);
  });

  test("cleared under it: starts afresh, and nobody is blocked", async () => {
    const { answer, complaints } = await inPage(
      async () => {
        const own = await throttle();
        const seen = [await take(own), await take(own), await take(own)];
        await done(indexedDB.deleteDatabase("tollgate"));
        seen.push(await take(own), await take(own), await take(own));
        return seen;
      },
      { before: helpers },
    );
    assert.deepEqual(answer, [1, 0, "max_wait", 1, 0, "max_wait"]);
    assert.deepEqual(complaints, []);
  });

  test("cleared while someone waits: goes on at once", async () => {
    const { answer } = await inPage(
      async () => {
        const own = await throttle();
        await Promise.all([own.acquire(), own.acquire()]);
        const third = own.acquire();
        await done(indexedDB.deleteDatabase("tollgate"));
        return (await third).remaining;
      },
      { before: helpers },
    );
    assert.equal(answer, 1);
  });

  test("a database of that name that is not ours: starts afresh", async () => {
    const { answer, complaints } = await inPage(
      async () => {
        const request = indexedDB.open("tollgate", 1);
        request.onupgradeneeded = () => request.result.createObjectStore("something else");
        (await done(request)).close();
        const own = await throttle();
        return [await take(own), await take(own), await take(own)];
      },
      { before: helpers },
    );
    assert.deepEqual(answer, [1, 0, "max_wait"]);
    assert.equal(complaints.length, 1);
  });

  test("no IndexedDB: a budget of its own, and it says so once", async () => {
    const { answer, complaints } = await inPage(
      async () => {
        const own = await throttle();
        return [await take(own), await take(own), await take(own)];
      },
      { before: `${helpers} Object.defineProperty(globalThis, "indexedDB", { value: undefined });` },
    );
    assert.deepEqual(answer, [1, 0, "max_wait"]);
    assert.equal(complaints.length, 1);
    assert.match(complaints[0], /budget of its own/);
  });

  test("another version of the page, with another policy", async () => {
    const { answer } = await inPage(
      async () => {
        const [two, three, bucket] = await Promise.all([
          throttle(),
          throttle({ algorithm: "fix_window_per_key", limit: 3, scale: "1h" }),
          throttle({ algorithm: "token_bucket", capacity: 1, refillRate: 1, per: "1h" }),
        ]);
        const seen = [];
        // Each sees what the other took; another algorithm keeps its own account and wipes none.
        for (const each of [two, three, bucket, two, three, bucket, three, two]) seen.push(await take(each));
        return seen;
      },
      { before: helpers },
    );
    assert.deepEqual(answer, [1, 1, 0, "max_wait", 0, "max_wait", "max_wait", "max_wait"]);
  });

  test("what has ended goes when a page comes next, and what has not stays", async () => {
    const { answer } = await inPage(
      async () => {
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
      },
      { before: helpers },
    );
    assert.deepEqual(answer, ["last", "late", 0]);
  });

  test("disposed of, it holds neither the database nor its channel", async () => {
    const { answer } = await inPage(
      async () => {
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
      },
      { before: helpers },
    );
    assert.deepEqual(answer, [1, "disposed", "BroadcastChannel", "IDBDatabase"]);
  });

  test("a cost that is none is refused, and spends nothing", async () => {
    const { answer } = await inPage(
      async () => {
        const own = await throttle();
        const wrong = await own.acquire({ cost: -1 }).catch(({ code }) => code);
        return [wrong, await take(own)];
      },
      { before: helpers },
    );
    assert.deepEqual(answer, ["invalid_cost", 1]);
  });
});
