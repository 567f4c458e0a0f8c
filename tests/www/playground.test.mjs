// The playground draws what the core decides; it works by keyboard, mouse and link, and without a network.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test, { describe } from "node:test";
import { gzipSync } from "node:zlib";
import { RateLimiter } from "tollgate";
import { inProject } from "../../scripts/lib/paths.mjs";
import { policiesOf } from "../../www/algorithms.js";
import { origin } from "../../www/state.js";
import { launch, openPlayground } from "../lib/browser/chromium.mjs";
import { drawn, playingIn, simulations, stateOf } from "../lib/browser/playing.mjs";
import { serveSite } from "../lib/browser/site.mjs";
import { after, before } from "../lib/hooks.mjs";

let chromium;
let site;
let context;
let playing;
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite()]);
  context = await chromium.newContext({ reducedMotion: "reduce" });
  playing = playingIn(context, site);
});
after(async () => {
  await chromium?.close();
  site?.close();
});

/** What the core says to the same hits, asked here in Node. */
function answers(id, state, hits) {
  let now = origin;
  const limiter = new RateLimiter(policiesOf(id, state), { clock: () => now });
  return hits.map(({ at }) => {
    now = origin + at;
    const { allowed, count, remaining, retryAfter } =
      id === "concurrency"
        ? limiter.reserve("visitor", state.cost).decision
        : limiter.hit("visitor", state.cost);
    return { at, allowed, count, remaining, retryAfter };
  });
}

const spoken = ({ at, allowed, count, remaining, retryAfter }) => ({
  at,
  allowed,
  count,
  remaining,
  retryAfter,
});

describe("it draws what the core decides", () => {
  const links = [
    "#at=18000",
    "#algorithm=sliding_window&traffic=poisson&pace=6&seed=12&at=25000&denied=count",
    "#algorithm=token_bucket&capacity=7&rate=3&traffic=steady&pace=9&cost=2&at=12000",
    "#algorithm=leaky_bucket&capacity=5&rate=1&traffic=poisson&pace=3&at=30000",
    "#algorithm=sliding_counter&limit=4&scale=2000&traffic=steady&pace=5&at=9000",
    "#algorithm=concurrency&limit=3&run=1000&traffic=poisson&pace=5&at=9000",
    "#algorithm=fix_window_per_key&limit=3&scale=1000&traffic=poisson&pace=20&at=4000&cost=4",
    "#algorithm=sliding_window&limit=3&traffic=steady&pace=9&at=9000&denied=count&banAfter=4&banFor=2000",
  ];
  for (const link of links) {
    test(link, () =>
      playing(link, async (page) => {
        const [state, seen] = [await stateOf(page), await simulations(page)];
        for (const [id, { hits, allowed, denied }] of Object.entries(seen)) {
          const expected = answers(id, state, hits);
          assert.deepEqual(hits.map(spoken), expected, id);
          assert.equal(allowed, expected.filter((each) => each.allowed).length);
          assert.equal(denied, expected.filter((each) => !each.allowed).length);
        }
        const marks = await page.evaluate(() => globalThis.playground.marks);
        const chosen = seen[state.algorithm].hits;
        assert.ok(marks.large.length > 0);
        assert.deepEqual(marks.large.map(spoken), chosen.slice(-marks.large.length).map(spoken));
        assert.deepEqual(marks[state.algorithm].map(spoken), marks.large.map(spoken));
        assert.equal(await page.textContent("#passed"), String(seen[state.algorithm].allowed));
        assert.equal(await page.textContent("#denied-hits"), String(seen[state.algorithm].denied));
      }),
    );
  }

  test("a denial's line ends when it would pass", () =>
    playing("#algorithm=fix_window&traffic=steady&pace=10&limit=5&scale=1000&at=3300", async (page) => {
      const marks = await page.evaluate(() => globalThis.playground.marks.large);
      const [one, other] = [marks[0], marks.at(-1)];
      const perMillisecond = (other.x - one.x) / (other.at - one.at);
      const waiting = marks.filter(({ allowed, at, retryAfter }) => !allowed && at + retryAfter <= 3_700);
      assert.ok(waiting.length > 3);
      for (const { x, until, retryAfter } of waiting)
        assert.ok(Math.abs(until - x - retryAfter * perMillisecond) < 0.01);
    }));

  test("a banned stretch begins with the denial that is one too many, and nothing passes until its end", () =>
    playing(
      "#algorithm=fix_window&traffic=steady&pace=10&limit=3&at=9000&banAfter=5&banFor=2000",
      async (page) => {
        const { fix_window: simulation, concurrency } = await simulations(page);
        // What only reservations are in the way of is no violation.
        assert.deepEqual(concurrency.bans, []);
        for (const { hits, bans } of [simulation]) {
          assert.ok(bans.length > 1);
          for (const { from, until } of bans) {
            assert.equal(until - from, 2_000);
            const during = hits.filter(({ at }) => at >= from && at < until);
            assert.ok(during.every(({ isBanned, allowed }) => isBanned && !allowed));
          }
          const banned = hits.filter(({ isBanned }) => isBanned);
          assert.ok(banned.every(({ at }) => bans.some(({ from, until }) => at >= from && at < until)));
          assert.equal(hits.filter(({ at, allowed }) => !allowed && at <= bans[0].from).length, 5);
        }
        assert.ok(await page.isVisible("#ban-legend"));
        assert.ok(await page.isHidden('[data-field="denied"]'));
        assert.match(await page.textContent("#code"), /algorithm: "ban",\n {4}after: 5,/);
        const last = simulation.bans.at(-1);
        const tinted = await page.evaluate(({ from, until }) => {
          const canvas = document.getElementById("timeline");
          const { large } = globalThis.playground.marks;
          const [one, other] = [large[0], large.at(-1)];
          const perMillisecond = (other.x - one.x) / (other.at - one.at);
          const ratio = canvas.width / canvas.clientWidth;
          const middle = (one.x + ((from + until) / 2 - one.at) * perMillisecond) * ratio;
          const { data } = canvas.getContext("2d").getImageData(middle - 20, 30, 40, 40);
          return data.some((alpha, index) => index % 4 === 3 && alpha > 0);
        }, last);
        assert.ok(tinted);
      },
    ));

  test("and it is on the canvas, in the colours of the page", () =>
    playing("#algorithm=sliding_window&at=18000", async (page) => {
      const found = await page.evaluate(() => {
        const canvas = document.getElementById("timeline");
        const ratio = canvas.width / canvas.clientWidth;
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return globalThis.playground.marks.large.map(({ x, y, allowed }) => {
          const at = 4 * (Math.round(y * ratio) * canvas.width + Math.round(x * ratio));
          const [red, green] = data.subarray(at, at + 2);
          return { allowed, isGreen: green > red };
        });
      });
      assert.ok(found.some(({ allowed }) => allowed) && found.some(({ allowed }) => !allowed));
      for (const { allowed, isGreen } of found) assert.equal(isGreen, allowed);
    }));
});

test("the double burst at a window's edge: there for fix_window, absent for sliding_window", () =>
  playing("#traffic=edge&size=10&limit=10&scale=5000&at=20000", async (page) => {
    const { fix_window: fixed, sliding_window: sliding } = await simulations(page);
    const mostWithin = (hits, scale) => {
      const times = hits.filter(({ allowed }) => allowed).map(({ at }) => at);
      return Math.max(...times.map((end) => times.filter((at) => at > end - scale && at <= end).length));
    };
    assert.equal(mostWithin(fixed.hits, 5_000), 20);
    assert.equal(mostWithin(sliding.hits, 5_000), 10);
    // The page says the same of itself.
    assert.equal(fixed.busiest.count, 20);
    assert.equal(sliding.busiest.count, 10);
    assert.match(
      await page.textContent('[data-algorithm="fix_window"]'),
      /40 of 40 let through20 in the busiest 5s/,
    );
    assert.match(
      await page.textContent('[data-algorithm="sliding_window"]'),
      /20 of 40 let through10 in the busiest 5s/,
    );
  }));

/** A strip's label and colour, and whether it has shading: most of it is transparent in the rows above the level. */
const strip = (page, id) =>
  page.evaluate((id) => {
    const item = document.querySelector(`[data-algorithm="${id}"]`);
    const canvas = item.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 4, canvas.width, 1);
    const shaded = data.filter((value, at) => at % 4 === 3 && value > 0).length;
    return {
      label: canvas.getAttribute("aria-label"),
      isOver: item.querySelector(".busiest").dataset.over,
      isShaded: shaded > canvas.width / 10,
    };
  }, id);

test("a busiest period over the limit is shaded; out of view, the strip says how long ago it was", async () => {
  // Four hits before the edge at 2 s, and four after it.
  const link = "#traffic=none&limit=4&scale=1000&mine=19c.1.1.1.dw.1.1.1";
  const seen = (at) =>
    playing(`${link}&at=${at}`, async (page) => {
      await page.evaluate(() => globalThis.playground.marks);
      return [await strip(page, "fix_window"), await strip(page, "sliding_window")];
    });
  const sliding = {
    label: "Sliding window: 4 of 8 hits let through, 4 in the busiest 1s.",
    isOver: "false",
    isShaded: false,
  };
  const fixed = "Fixed window: 8 of 8 hits let through, 8 in the busiest 1s";
  assert.deepEqual(await seen(2_600), [{ label: `${fixed}.`, isOver: "true", isShaded: true }, sliding]);
  assert.deepEqual(await seen(42_600), [
    { label: `${fixed}, 40 s ago.`, isOver: "true", isShaded: false },
    sliding,
  ]);
});

test("edge bursts are explained while they are the traffic", () =>
  playing("#at=18000", async (page) => {
    const note = page.locator("#edge-note");
    assert.match(await note.textContent(), /a burst on each side of its edge/);
    assert.ok(await note.isVisible());
    await page.click('label[for="traffic-poisson"]');
    assert.ok(!(await note.isVisible()));
    await page.click('label[for="traffic-edge"]');
    assert.ok(await note.isVisible());
  }));

describe("by keyboard", () => {
  test("an algorithm is chosen, a number changed, and the decision of a hit announced", () =>
    playing("#traffic=none&limit=2&at=1000", async (page) => {
      await page.focus("#algorithm-fix_window");
      await page.keyboard.press("ArrowDown");
      assert.equal((await stateOf(page)).algorithm, "fix_window_per_key");
      await page.focus("#limit");
      await page.keyboard.press("ArrowRight");
      assert.equal((await stateOf(page)).limit, 3);

      await page.focus("#press");
      const said = [];
      for (const words of [
        /^Allowed, 2 left/,
        /^Allowed, 1 left/,
        /^Allowed, 0 left/,
        /^Denied: it would pass in 1.00 s/,
      ]) {
        await page.keyboard.press("Space");
        await page.waitForFunction(
          ([source, count]) => {
            const { hits } = globalThis.playground.simulations.fix_window_per_key;
            return (
              hits.length === count &&
              new RegExp(source).test(document.getElementById("announcer").textContent)
            );
          },
          [words.source, said.length + 1],
        );
        said.push(await page.textContent("#announcer"));
      }
      assert.equal(await page.getAttribute("#announcer", "aria-live"), "polite");
      const { hits } = (await simulations(page)).fix_window_per_key;
      assert.deepEqual(
        hits.map(({ allowed }) => allowed),
        [true, true, true, false],
      );
    }));

  test("the clock stands still, steps, and the timeline is read hit by hit", () =>
    playing("#at=5000", async (page) => {
      assert.equal(await page.textContent("#clock"), "00:05.000");
      await page.focus("#step");
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => globalThis.playground.state.at > 5_000);
      await page.focus("#timeline");
      await page.keyboard.press("Home");
      assert.match(await page.getAttribute("#timeline", "aria-valuetext"), /^Hit 1 at .* Allowed, 9 left/);
      await page.keyboard.press("ArrowRight");
      assert.match(await page.getAttribute("#timeline", "aria-valuetext"), /^Hit 2 at /);
      await page.keyboard.press("Escape");
    }));

  test("the tabs of the code", () =>
    playing("#algorithm=token_bucket&capacity=9&rate=3&cost=2&at=0", async (page) => {
      assert.match(await page.textContent("#code"), /capacity: 9,\n {2}refillRate: 3,\n {2}per: "1s"/);
      await page.focus("#language-typescript");
      await page.keyboard.press("ArrowRight");
      assert.match(await page.textContent("#code"), /Policy::token_bucket\(9, 3, "1s"\)\?/);
      await page.keyboard.press("ArrowRight");
      assert.match(
        await page.textContent("#code"),
        /\[vars\.TOLLGATE\.policies\.api\]\nalgorithm = "token_bucket"\ncapacity = 9\nrefillRate = 3/,
      );
    }));
});

describe("by mouse", () => {
  test("a slider is dragged, and the past is played again under the new number", () =>
    playing("#at=18000", async (page) => {
      const earlier = (await simulations(page)).fix_window.allowed;
      await page.locator("#limit").scrollIntoViewIfNeeded();
      const { x, y, width, height } = await page.locator("#limit").boundingBox();
      await page.mouse.move(x + width * 0.2, y + height / 2);
      await page.mouse.down();
      await page.mouse.move(x + 10, y + height / 2, { steps: 4 });
      await page.mouse.up();
      const [state, { fix_window: simulation }] = [await stateOf(page), await simulations(page)];
      assert.ok(state.limit < 5);
      assert.ok(simulation.allowed < earlier);
      assert.deepEqual(simulation.hits.map(spoken), answers("fix_window", state, simulation.hits));
    }));

  test("a press is one hit, holding sends more, and letting go ends it", () =>
    playing("#traffic=none&at=1000", async (page) => {
      const count = async () => (await simulations(page)).fix_window.hits.length;
      await page.click("#press");
      assert.equal(await count(), 1);
      await page.evaluate(() => {
        globalThis.isHolding = true;
      });
      const { x, y } = await page.locator("#press").boundingBox();
      await page.mouse.move(x + 20, y + 20);
      await page.mouse.down();
      await page.waitForFunction(() => globalThis.playground.simulations.fix_window.hits.length > 4);
      await page.mouse.up();
      const after = await count();
      await drawn(page);
      assert.equal(await count(), after);
    }));

  test("a pasted log is played", () =>
    playing("#traffic=log&at=2000", async (page) => {
      await page.fill(
        "#log-text",
        '1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] "GET /"\nnonsense\n2026-10-10T13:55:37.250Z GET /\n',
      );
      assert.match(await page.textContent("#log-note"), /^2 hits read, 1 line without a time\.$/);
      assert.deepEqual(
        (await simulations(page)).fix_window.hits.map(({ at }) => at),
        [0, 1_250],
      );
    }));

  test("it runs, faster or slower, and pauses", () =>
    playing("#at=0", async (page) => {
      await page.selectOption("#speed", "10");
      await page.click("#play");
      await page.waitForFunction(() => globalThis.playground.state.at > 1_000);
      await page.click("#play");
      const { at } = await stateOf(page);
      await drawn(page);
      assert.equal((await stateOf(page)).at, at);
    }));
});

test("a link shows the same thing", async () => {
  const link = await playing("#traffic=poisson&seed=3&at=7000", async (page) => {
    await page.check("#algorithm-leaky_bucket", { force: true });
    await page.click("#press");
    await page.click("#step");
    await page.click("#press");
    const seen = { state: await stateOf(page), simulations: await simulations(page) };
    const { at } = seen.state;
    await page.waitForFunction(
      (at) => location.hash.includes(`at=${at}`) && /mine=\w+\.\w+/.test(location.hash),
      at,
    );
    return { ...seen, hash: new URL(page.url()).hash };
  });
  await playing(link.hash, async (page) => {
    assert.deepEqual(await stateOf(page), link.state);
    // Levels are noted only where they are drawn.
    for (const [id, { levels, ...simulation }] of Object.entries(await simulations(page))) {
      const { levels: earlier, ...same } = link.simulations[id];
      assert.deepEqual(simulation, same);
      assert.deepEqual(levels.at(-1), earlier.at(-1));
    }
  });
});

test("an address that is nonsense shows the first state", () =>
  playing("#algorithm=nothing&limit=-4&scale=7&mine=!&at=1e9&log=zz..", async (page) => {
    const { algorithm, limit, scale, mine } = await stateOf(page);
    assert.deepEqual(
      { algorithm, limit, scale, mine },
      { algorithm: "fix_window", limit: 10, scale: 1_000, mine: [] },
    );
  }));

/** In the page: what was let through stays in view. */
const standStill = () => {
  Date.now = () => 1_800_000_000_000;
};

test("works with no network after load", async () => {
  const own = await chromium.newContext();
  await own.addInitScript(standStill);
  const { page, complaints } = await openPlayground(own, `${site.url}/`);
  await own.setOffline(true);
  for (const id of ["sliding_window", "token_bucket"]) await page.check(`#algorithm-${id}`, { force: true });
  await page.click("#press");
  await page.click("#language-rust");
  await page.click("#theme");
  await page.click("#shared-press");
  await page.waitForFunction(() =>
    /^1 in 30 s/.test(document.querySelector("#shared-tabs span").textContent),
  );
  assert.deepEqual(complaints, []);
  await own.close();
});

describe("against the Worker", () => {
  const decision = {
    allowed: false,
    count: 0,
    limit: 10,
    remaining: 0,
    retryAfter: 900,
    resetAfter: 9_900,
    moreAfter: 900,
  };

  test("the response and its headers are shown as they are", async () => {
    const worker = await serveSite({
      "/demo/hit": (_, response) =>
        response
          .writeHead(200, { "Content-Type": "application/json", RateLimit: '"demo";r=9;t=1' })
          .end(JSON.stringify({ decision: { ...decision, allowed: true, remaining: 9 } })),
    });
    const { page, complaints } = await openPlayground(context, `${worker.url}/#at=0`);
    await page.click("#live-press");
    await page.waitForFunction(() => document.querySelectorAll("#live-history li.allowed").length === 1);
    assert.match(await page.textContent("#live-headers"), /HTTP 200 OK\nratelimit: "demo";r=9;t=1/);
    assert.equal(await page.textContent("#live-note"), "Allowed, 9 left.");
    assert.deepEqual(complaints, []);
    await page.close();
    worker.close();
  });

  test("without one it says why, and is greyed", async () => {
    const { page } = await openPlayground(context, `${site.url}/#at=0`);
    await page.click("#live-press");
    await page.waitForSelector("#live-press:disabled");
    assert.match(await page.textContent("#live-note"), /No Worker responds here/);
    await page.close();
  });
});

test("two tabs share a budget, and each tab's part is drawn", async () => {
  const own = await chromium.newContext({ reducedMotion: "reduce" });
  await own.addInitScript(standStill);
  const link = `${site.url}/#traffic=none&limit=3&scale=60000&algorithm=sliding_window&at=0`;
  const first = await openPlayground(own, link);
  const second = await openPlayground(own, link);
  await first.page.click("#shared-press");
  await second.page.click("#shared-press");
  await second.page.click("#shared-press");
  const rows = (page) =>
    page.evaluate(() =>
      [...document.querySelectorAll("#shared-tabs li")].map(({ textContent }) => textContent),
    );
  await first.page.bringToFront();
  await first.page.waitForFunction(() =>
    document.querySelector("#shared-tabs").textContent.includes("2 in 30 s"),
  );
  assert.match((await rows(first.page)).join(), /^This tab1 in 30 s,Tab \w{4}2 in 30 s$/);
  await first.page.click("#shared-press");
  await first.page.waitForFunction(() =>
    document.querySelector("#shared-tabs").textContent.includes("1 waiting"),
  );
  await second.page.close();
  await first.page.waitForFunction(() => document.querySelectorAll("#shared-tabs li").length === 1);
  assert.deepEqual([...first.complaints, ...second.complaints], []);
  await own.close();
});

test("light and dark: as the system has it, then as one likes", async () => {
  const own = await chromium.newContext({ colorScheme: "dark" });
  const { page } = await openPlayground(own, site.url);
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), "dark");
  await page.click("#theme");
  assert.equal(await theme(), "light");
  await page.reload();
  assert.equal(await theme(), "light");
  await own.close();
});

test("no motion if the visitor prefers less", async () => {
  const own = await chromium.newContext({ reducedMotion: "no-preference" });
  const { page } = await openPlayground(own, site.url);
  await page.waitForFunction(() => globalThis.playground.state.at > 3_600);
  await own.close();
  await playing("", async (page) => assert.equal((await stateOf(page)).at, 3_600));
});

test("under 117 kB gzipped, in all", (t) => {
  const folder = inProject("www/public");
  const sizes = readdirSync(folder).map((name) => gzipSync(readFileSync(`${folder}/${name}`)).length);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  t.diagnostic(`${(total / 1_000).toFixed(1)} kB`);
  assert.ok(total < 117_000, `${total} bytes`);
});
