// The playground shows what is reserved, settled, cancelled, extended and expired.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { RateLimiter } from "tollgate";
import { packedActions, unpackedActions } from "../../www/actions.js";
import { policyOf } from "../../www/algorithms.js";
import { origin } from "../../www/state.js";
import { launch } from "../lib/browser/chromium.mjs";
import { drawn, playingIn, simulations, stateOf } from "../lib/browser/playing.mjs";
import { serveSite } from "../lib/browser/site.mjs";
import { after, before } from "../lib/hooks.mjs";

let chromium;
let site;
let playing;
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite()]);
  playing = playingIn(await chromium.newContext({ reducedMotion: "reduce" }), site);
});
after(async () => {
  await chromium?.close();
  site?.close();
});

/** Two hits and a reservation of four, made by hand. */
const begun = [
  { at: 1_000, act: "hit" },
  { at: 1_000, act: "hit" },
  { at: 2_000, act: "reserve", amount: 4, ttl: 30_000 },
];
const link = (actions, rest) => `#traffic=none&mine=${packedActions(actions)}&${rest}`;
const sliding = "algorithm=sliding_window&limit=10&scale=10000";

/** Returns the core's level after each action, asked here in Node. */
function levels(id, state) {
  let now = origin;
  const limiter = new RateLimiter(policyOf(id, state), { clock: () => now });
  const made = [];
  const acts = {
    hit: () =>
      id === "concurrency" ? limiter.reserve("visitor", state.cost) : limiter.hit("visitor", state.cost),
    reserve: ({ amount, ttl }) => made.push(limiter.reserve("visitor", amount, { ttl })),
    settle: ({ number, used }) => made[number].settle(used),
    cancel: ({ number }) => made[number].cancel(),
    extend: ({ number, ttl }) => made[number].extend(ttl),
    refund: ({ amount }) => id === "concurrency" || limiter.inc("visitor", -amount),
  };
  return state.mine.map((action) => {
    now = origin + action.at;
    acts[action.act](action);
    return limiter.get("visitor");
  });
}

/** Asserts that every simulation ended where the core does. */
async function agrees(page) {
  const [state, seen] = [await stateOf(page), await simulations(page)];
  for (const [id, simulation] of Object.entries(seen)) {
    const { at } = state.mine.at(-1);
    const { level } = simulation.levels.findLast((each) => each.at === at);
    assert.equal(level, levels(id, state).at(-1), id);
  }
}

const [early, late] = [
  [0, 0.6],
  [0.7, 0.84],
];

/** Returns how many rows of the large timeline are hatched within each part of its width. */
const hatchedRows = (page, ...parts) =>
  page.evaluate((parts) => {
    const canvas = document.getElementById("timeline");
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const isDark = (left, top) => data[4 * (top * width + left) + 3] > 128;
    const strokes = (top, left, right) => {
      let found = 0;
      for (let at = left + 1; at < right; at += 1) if (isDark(at, top) && !isDark(at - 1, top)) found += 1;
      return found;
    };
    return parts.map((part) => {
      const [left, right] = part.map((share) => Math.round(share * width));
      let rows = 0;
      // The limit's dashes are as many, on a single row.
      for (let top = 0; top < height; top += 1)
        if (strokes(top, left, right) > (right - left) / 12) rows += 1;
      return rows;
    });
  }, parts);

const row = (page, number) => page.textContent(`#reservations [data-number="${number}"]`);
const said = (page, words) =>
  page.waitForFunction((words) => document.getElementById("announcer").textContent === words, words);

describe("an open amount", () => {
  test("is shown in the figures, the gauge and the list", () =>
    playing(link(begun.slice(0, 2), `${sliding}&amount=4&ttl=30000&at=2000`), async (page) => {
      await page.click("#reserve");
      await said(page, "Allowed, 4 left.");
      await drawn(page);
      assert.equal(await page.textContent("#open"), "4");
      assert.equal(await page.textContent("#remaining"), "4");
      assert.equal(await page.textContent("#gauge-note"), "2 used, 4 open, 4 left of 10.");
      assert.match(await row(page, 0), /^#1: 430\.0 s left/);
      const widths = await page.evaluate(() =>
        ["used", "open"].map((name) => document.querySelector(`.gauge .${name}`).clientWidth),
      );
      assert.ok(Math.abs(widths[1] - 2 * widths[0]) <= 2, String(widths));
      const { hits, open } = (await simulations(page)).sliding_window;
      assert.equal(open, 4);
      assert.equal(hits.at(-1).reserved, 4);
      await agrees(page);
    }));

  test("is hatched beside the used amount, from the moment it is made", () =>
    playing(link(begun, `${sliding}&at=9000`), async (page) => {
      const [before, since] = await hatchedRows(page, early, late);
      assert.ok(since > 20, String(since));
      assert.ok(before <= 1, String(before));
    }));

  test("of eight is twice as high as one of four, in a token bucket too", async () => {
    for (const algorithm of ["sliding_window", "token_bucket"]) {
      const rows = [];
      for (const amount of [4, 8]) {
        const action = { at: 1_000, act: "reserve", amount, ttl: 30_000 };
        const rest = `algorithm=${algorithm}&limit=10&capacity=10&scale=10000&at=9000`;
        rows.push(...(await playing(link([action], rest), (page) => hatchedRows(page, late))));
      }
      const [four, eight] = rows;
      assert.ok(four > 20 && Math.abs(eight - 2 * four) <= 3, `${algorithm}: ${rows}`);
    }
  });

  test("is denied if it does not fit, and then nothing is open", () =>
    playing(link(begun, `${sliding}&amount=5&at=3000`), async (page) => {
      await page.click("#reserve");
      await drawn(page);
      assert.match(await row(page, 1), /^#2: 5denied$/);
      const { open, denied } = (await simulations(page)).sliding_window;
      assert.deepEqual({ open, denied }, { open: 4, denied: 1 });
      await agrees(page);
    }));
});

describe("settled", () => {
  test("the used part is charged, and the rest is shown as returned", () =>
    playing(link(begun, `${sliding}&at=9000`), async (page) => {
      await page.fill('[data-number="0"] input', "1");
      await page.click('[data-number="0"] [data-act="settle"]');
      await said(page, "Reservation 1 settled: 1 charged, 3 given back.");
      await drawn(page);
      assert.equal(await row(page, 0), "#1: 4settled: 1 charged, 3 given back");
      assert.equal(await page.textContent("#gauge-note"), "3 used, 0 open, 7 left of 10.");
      const { changes, open } = (await simulations(page)).sliding_window;
      assert.equal(open, 0);
      assert.deepEqual(changes, [
        { at: 9_000, what: "settled", charged: 1, from: 6, number: 0, amount: 4, back: 3, to: 3 },
      ]);
      const share = await page.evaluate(() => {
        const { firstElementChild, clientWidth } = document.querySelector("#reservations .share");
        return firstElementChild.getBoundingClientRect().width / clientWidth;
      });
      assert.equal(share, 0.25);
      await agrees(page);
    }));

  test("and from then on nothing is hatched", () =>
    playing(
      link([...begun, { at: 4_000, act: "settle", number: 0, used: 4 }], `${sliding}&at=9000`),
      async (page) => {
        const [rows] = await hatchedRows(page, late);
        assert.ok(rows <= 1, String(rows));
        assert.equal((await simulations(page)).sliding_window.levels.at(-1).level, 6);
      },
    ));

  test("more than was reserved is charged too", () =>
    playing(link(begun, `${sliding}&at=9000`), async (page) => {
      await page.fill('[data-number="0"] input', "7");
      await page.press('[data-number="0"] input', "Enter");
      await drawn(page);
      assert.equal(await row(page, 0), "#1: 4settled: 7 charged, 0 given back");
      assert.equal((await simulations(page)).sliding_window.levels.at(-1).level, 9);
      await agrees(page);
    }));
});

test("extended and cancelled by keyboard, and the focus is not lost", () =>
  playing(link(begun, `${sliding}&ttl=60000&at=9000`), async (page) => {
    await drawn(page);
    assert.match(await row(page, 0), /23\.0 s left/);
    await page.focus('[data-number="0"] [data-act="extend"]');
    await page.keyboard.press("Enter");
    await said(page, "Reservation 1 extended: it expires in 60.0 s.");
    await drawn(page);
    assert.match(await row(page, 0), /60\.0 s left/);
    await page.focus('[data-number="0"] [data-act="cancel"]');
    await page.keyboard.press("Space");
    await said(page, "Reservation 1 cancelled: 4 given back.");
    await drawn(page);
    assert.equal(await row(page, 0), "#1: 4cancelled: 4 given back");
    assert.equal(await page.evaluate(() => document.activeElement.id), "reserve");
    assert.equal((await simulations(page)).sliding_window.levels.at(-1).level, 2);
    await agrees(page);
  }));

test("a refund lowers the used amount, not the open one", () =>
  playing(link(begun, `${sliding}&amount=5&at=9000`), async (page) => {
    await page.click("#refund");
    await said(page, "Refund: 2 given back.");
    await drawn(page);
    assert.equal(await page.textContent("#gauge-note"), "0 used, 4 open, 6 left of 10.");
    const { changes } = (await simulations(page)).sliding_window;
    assert.deepEqual(changes, [{ at: 9_000, what: "refunded", charged: 0, back: 2, from: 6, to: 4 }]);
    await agrees(page);
  }));

test("an expired reservation is charged in full, and announced", () =>
  playing(
    `#traffic=none&algorithm=sliding_window&limit=10&scale=2000&amount=4&ttl=250&at=1000`,
    async (page) => {
      await page.click("#reserve");
      for (let steps = 0; steps < 4; steps += 1) await page.click("#step");
      await said(page, "Reservation 1 expired: 4 charged.");
      await drawn(page);
      assert.equal(await row(page, 0), "#1: 4expired: 4 charged");
      assert.equal(await page.getAttribute('[data-number="0"]', "data-what"), "expired");
      assert.equal(await page.textContent("#gauge-note"), "4 used, 0 open, 6 left of 10.");
      const { levels: seen, changes } = (await simulations(page)).sliding_window;
      assert.deepEqual(
        seen.filter(({ at }) => at === 1_249 || at === 1_250).map(({ at, level, open }) => [at, level, open]),
        [
          [1_249, 4, 4],
          [1_250, 4, 0],
        ],
      );
      assert.deepEqual(
        changes.map(({ at, what, charged, back }) => ({ at, what, charged, back })),
        [{ at: 1_250, what: "expired", charged: 4, back: 0 }],
      );
    },
  ));

describe("concurrency", () => {
  test("is chosen by keyboard; each hit holds a slot, and a slot is released at its end", () =>
    playing("#traffic=none&algorithm=leaky_bucket&limit=2&run=250&scale=2000&at=1000", async (page) => {
      await page.focus("#algorithm-leaky_bucket");
      await page.keyboard.press("ArrowDown");
      assert.equal((await stateOf(page)).algorithm, "concurrency");
      for (let presses = 0; presses < 3; presses += 1) await page.click("#press");
      await drawn(page);
      assert.equal(await page.textContent("#gauge-note"), "0 used, 2 open, 0 left of 2.");
      assert.equal(await page.textContent("#wait"), "250 ms");
      assert.equal(await page.isDisabled("#refund"), true);
      for (let steps = 0; steps < 3; steps += 1) await page.click("#step");
      await drawn(page);
      assert.equal(await page.textContent("#gauge-note"), "0 used, 0 open, 2 left of 2.");
      const { hits } = (await simulations(page)).concurrency;
      assert.deepEqual(
        hits.map(({ allowed, retryAfter }) => [allowed, retryAfter]),
        [
          [true, 0],
          [true, 0],
          [false, 250],
        ],
      );
      assert.match(
        await page.textContent('[data-algorithm="concurrency"]'),
        /2 of 3 let throughat most 2 at once/,
      );
      assert.match(
        await page.textContent("#code"),
        /algorithm: "concurrency",\n {2}limit: 2,\n {2}ttl: "250ms"/,
      );
    }));

  test("an open reservation is hatched, and released when it is settled", () =>
    playing(link(begun.slice(2), "algorithm=concurrency&limit=10&scale=10000&at=9000"), async (page) => {
      const [rows] = await hatchedRows(page, late);
      assert.ok(rows > 20, String(rows));
      await page.click('[data-number="0"] [data-act="settle"]');
      await said(page, "Reservation 1 settled: 4 given back.");
      await drawn(page);
      assert.equal((await simulations(page)).concurrency.levels.at(-1).level, 0);
      await agrees(page);
    }));
});

test("a link shows the same reservations", async () => {
  const first = await playing(link(begun, `${sliding}&amount=3&ttl=10000&at=9000`), async (page) => {
    await page.click("#reserve");
    await page.click('[data-number="0"] [data-act="extend"]');
    await page.click("#press");
    await page.fill('[data-number="0"] input', "1");
    await page.click('[data-number="0"] [data-act="settle"]');
    await page.click("#refund");
    const state = await stateOf(page);
    const text = packedActions(state.mine);
    await page.waitForFunction((text) => location.hash.includes(`mine=${text}`), text);
    return { state, simulations: await simulations(page), hash: new URL(page.url()).hash };
  });
  await playing(first.hash, async (page) => {
    assert.deepEqual(await stateOf(page), first.state);
    for (const [id, { changes, hits, open }] of Object.entries(await simulations(page))) {
      assert.deepEqual(
        { changes, hits, open },
        (({ changes, hits, open }) => ({ changes, hits, open }))(first.simulations[id]),
      );
    }
    await agrees(page);
  });
});

describe("actions in an address", () => {
  test("are read as they were written", () => {
    const actions = [
      { at: 5, act: "hit" },
      { at: 5, act: "reserve", amount: 50, ttl: 250 },
      { at: 9, act: "extend", number: 0, ttl: 60_000 },
      { at: 9, act: "settle", number: 0, used: 0 },
      { at: 80, act: "cancel", number: 0 },
      { at: 99, act: "refund", amount: 1 },
    ];
    assert.deepEqual(unpackedActions(packedActions(actions)), actions);
    // As links had it when there were only hits.
    assert.deepEqual(unpackedActions("rs.2"), [
      { at: 1_000, act: "hit" },
      { at: 1_002, act: "hit" },
    ]);
  });

  const wrong = [
    "",
    "!",
    "1.",
    "1R",
    "1R5",
    "1R0-6y",
    "1R1f-6y",
    "1R5-1",
    "1S0-1",
    "1R1-6y.1S1-1",
    "1X1",
    "1G0",
    "1G1-1",
    "1G-1",
  ];
  for (const text of wrong)
    test(`${JSON.stringify(text)} is not read`, () => assert.equal(unpackedActions(text), undefined));

  test("and the page shows the first state", () =>
    playing("#mine=1R5-1&at=1000", async (page) => assert.deepEqual((await stateOf(page)).mine, [])));
});
