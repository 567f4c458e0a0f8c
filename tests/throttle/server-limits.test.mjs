// The limits that providers report: recorded headers of each are read as its documentation says, and hostile ones in linear time.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { serverLimits } from "../../js/throttle/server-limits.ts";
import { dateOf, untilReset } from "../../js/throttle/times.ts";
import fc from "../lib/properties.mjs";

const vectors = JSON.parse(readFileSync(new URL("providers.json", import.meta.url), "utf8"));
const known = (number) => (Number.isNaN(number) ? null : number);
const reading = (status, headers, now) => serverLimits({ status, headers: new Headers(headers) }, now);

describe("recorded headers", () => {
  for (const { name, at, status, headers, ...expected } of vectors)
    test(name, () => {
      const { wait, isDenied, limits } = reading(status, headers, Date.parse(at));
      const { source, ...rest } = expected;
      assert.match(source, /^https:\/\//);
      const found = limits.map(({ name, limit, remaining, resetAfter, window, ...more }) => ({
        limit: known(limit),
        remaining: known(remaining),
        resetAfter: known(resetAfter),
        window: known(window),
        ...more,
      }));
      assert.deepEqual({ wait, isDenied, limits: found }, rest);
    });

  test("in any case, and one header alone", () => {
    const now = Date.parse("2026-11-18T12:00:00Z");
    assert.equal(reading(429, { "RETRY-AFTER-MS": "7" }, now).wait, 7);
    assert.equal(reading(200, { "X-RateLimit-Remaining": "0" }, now).wait, 0);
    assert.equal(reading(200, { "X-RateLimit-Reset": "9" }, now).wait, 0);
  });
});

describe("a time until a reset", () => {
  const now = Date.parse("2026-11-18T12:00:00Z");
  for (const [text, expected] of [
    ["0", 0],
    ["1.5", 1_500],
    ["999999999", 999_999_999_000],
    ["1795003201", 1_000],
    ["1795003199", -1_000],
    ["1795003200250", 250],
    ["6m0s", 360_000],
    ["1h2m3.5s", 3_723_500],
    ["120ms", 120],
    ["1d", 86_400_000],
    ["2m59.56s", 179_560],
    ["2026-11-18T12:00:01Z", 1_000],
    ["2026-11-18T12:00:01.250Z", 1_250],
    ["2026-11-18T13:00:00+01:00", 0],
    ["Wed, 18 Nov 2026 12:00:05 GMT", 5_000],
  ])
    test(text, () => assert.equal(untilReset(text, now), expected));

  for (const text of [
    "",
    "-1",
    "+1",
    "1e3",
    "0x10",
    " 5",
    "5 ",
    "6m0",
    "m",
    "6m 0s",
    "1.s",
    "soon",
    "NaN",
    "١",
  ])
    test(`${JSON.stringify(text)} is none`, () => assert.equal(untilReset(text, now), Number.NaN));
});

describe("a date", () => {
  const now = Date.parse("2026-11-18T12:00:00Z");
  for (const text of [
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "1994-11-06T08:49:37Z",
  ])
    test(text, () => assert.equal(dateOf(text, now), 784_111_777_000));

  test("of two digits is at most 50 years ahead", () => {
    const year = (digits, from) =>
      new Date(dateOf(`Friday, 01-Jan-${digits} 00:00:00 GMT`, Date.parse(from))).getUTCFullYear();
    assert.equal(year("76", "2026-11-18T12:00:00Z"), 2076);
    assert.equal(year("77", "2026-11-18T12:00:00Z"), 1977);
    assert.equal(year("00", "1999-12-31T23:59:00Z"), 2000);
  });

  test("is read as UTC wherever the client is", () => {
    const { TZ } = process.env;
    process.env.TZ = "America/New_York";
    try {
      assert.equal(dateOf("Sun Nov  6 08:49:37 1994", now), 784_111_777_000);
    } finally {
      if (TZ === undefined) delete process.env.TZ;
      else process.env.TZ = TZ;
    }
  });

  for (const text of [
    "Sun, 06 Nov 1994 08:49:37",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "Sun, 06 Xyz 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 99:49:37 GMT",
    "06 Nov 1994 08:49:37 GMT",
    "Sun Nov 6 08:49:37 1994",
    "1994-11-06",
    `Mon, ${" ".repeat(64)}1 Jan 2900 00:00:00 GMT`,
  ])
    test(`${JSON.stringify(text)} is none`, () => assert.equal(dateOf(text, now), Number.NaN));
});

const names = [
  ...["Retry-After", "Retry-After-Ms", "RateLimit", "RateLimit-Policy", "Age", "Date"],
  ...["", "X-"].flatMap((prefix) =>
    ["Limit", "Remaining", "Reset"].map((part) => `${prefix}RateLimit-${part}`),
  ),
  ...["Limit", "Remaining", "Reset"].flatMap((part) => [
    `X-RateLimit-${part}-Requests`,
    `X-RateLimit-${part}-Tokens`,
    `Anthropic-RateLimit-Requests-${part}`,
  ]),
];

test("any headers: numbers, of which no wait is below 0", () => {
  const value = fc.oneof(
    fc.constantFrom(
      "0",
      "5",
      "-1",
      "6m0s",
      "120ms",
      '"a";r=0;t=3',
      "1795003260",
      "2026-11-18T12:00:01Z",
      "9".repeat(400),
    ),
    fc.stringMatching(/^[ -~]{0,30}$/),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(200, 301, 403, 429, 500, 503, 529),
      fc.dictionary(fc.constantFrom(...names), value),
      (status, headers) => {
        const { wait, isDenied, limits } = reading(status, headers, 1_795_003_200_000);
        assert.ok(wait >= 0, `${wait}`);
        assert.ok(isDenied === false || [403, 429, 529].includes(status));
        for (const { limit, remaining, resetAfter } of limits)
          for (const number of [limit, remaining, resetAfter]) assert.equal(typeof number, "number");
      },
    ),
    { numRuns: 20_000 },
  );
});

/** Texts that a reader with another pattern would walk through again and again: a unit that is repeated, and an end. */
const attacks = [
  ["", "0", "x"],
  ["", "0", "."],
  ["1.", "0", "x"],
  ["", "1m", "x"],
  ["", "1.1s", "!"],
  ["", "1d1h1m1s1ms", "m"],
  ["Sun, 06 Nov 1994 08:49:37", " ", "GMT"],
  ["2026-11-18T", "0:", "Z"],
  ["", "S", "un, 06 Nov 1994 08:49:37 GMT"],
];

test("a long text is not read again and again", () => {
  const began = performance.now();
  for (const [start, unit, end] of attacks) {
    const text = start + unit.repeat(200_000 / unit.length) + end;
    const get = (name) => (/remaining/i.test(name) ? "0" : text);
    serverLimits({ status: 429, headers: { get } }, 0);
    for (const name of names.filter((name) => !/tokens/i.test(name)))
      serverLimits({ status: 429, headers: { get: (asked) => (asked === name ? text : null) } }, 0);
  }
  // It ends a hang: in quadratic time each of them takes longer.
  assert.ok(performance.now() - began < 120_000);
});

test("a list of 200,000 limits", () => {
  const text = Array.from({ length: 200_000 }, (_, at) => `"${at}";r=0;t=${at}`).join();
  const headers = { get: (name) => (name === "RateLimit" ? text : null) };
  assert.equal(serverLimits({ status: 200, headers }, 0).wait, 199_999_000);
});
