// Rate-limit headers of a hostile server: well-formed ones are parsed, others are ignored, in linear time for any text.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RateLimiter, rateLimitHeaders, Throttle } from "tollgate";
import { items } from "../../js/throttle/fields.ts";
import fc from "../lib/properties.mjs";
import { FakeTime, settled } from "./lib/time.mjs";

const plain = (found) => found.map(({ name, numbers }) => [name, Object.fromEntries(numbers)]);

describe("a field", () => {
  for (const [text, expected] of [
    ['"a"', [["a", {}]]],
    ['"a";r=0;t=3', [["a", { r: 0, t: 3 }]]],
    [
      ' "a" ; r=0 ;\tt=3 , "b" ',
      [
        ["a", { r: 0, t: 3 }],
        ["b", {}],
      ],
    ],
    ['"a \\"b\\" \\\\"', [['a "b" \\', {}]]],
    ['""', [["", {}]]],
    ['"a";pk=:YWJj:;r=1', [["a", { r: 1 }]]],
    ['"a";qu="requests";flag;on=?1;at=@9;f=1.5;r=-2', [["a", { r: -2 }]]],
    // What stands in quotes is no parameter.
    ['"a";qu="x;r=0;t=9;y";r=5', [["a", { r: 5 }]]],
    // The last of several counts, also if it is no integer.
    ['"a";r=1;r=2', [["a", { r: 2 }]]],
    ['"a";r=1;r="2"', [["a", {}]]],
    ['"a";t=999999999999999;u=1000000000000000', [["a", { t: 999_999_999_999_999 }]]],
  ])
    test(text, () => assert.deepEqual(plain(items(text)), expected));

  const malformed = [
    ...[
      "",
      " ",
      ",",
      "a",
      "a;r=0",
      '"a',
      '"a\\"',
      '"a\\x"',
      '"a"b',
      '"a""b"',
      '"a" "b"',
      '"a",',
      ',"a"',
      '"a",,"b"',
    ],
    ...[
      '"a";',
      '"a";;r=0',
      '"a";=0',
      '"a";R=0',
      '"a";0=1',
      '"a";r=',
      '"a";r=;t=1',
      '"a";r="',
      '"a";r=0"',
      '"a";r = 0',
    ],
    ...['("a");r=0', '"a\n"', '"é"', '"a\x7f"', '"a";r=é', '\u00a0"a"', '"a";r=0\u2028', '"\u0130"'],
  ];
  for (const text of malformed)
    test(`${JSON.stringify(text)} is malformed`, () => assert.deepEqual(items(text), []));

  test("that is not there", () => assert.deepEqual(items(null), []));
});

const blanks = fc.stringMatching(/^[ \t]{0,3}$/);
const quoted = fc
  .stringMatching(/^[ -~]{0,8}$/)
  .map((text) => ({ text, written: `"${text.replace(/["\\]/g, "\\$&")}"` }));
const parameter = fc.record({
  key: fc.stringMatching(/^[a-z*][a-z0-9_.*-]{0,3}$/),
  value: fc.oneof(
    fc.integer({ min: -999_999, max: 999_999 }).map((number) => ({ number, written: `=${number}` })),
    quoted.map(({ written }) => ({ written: `=${written}` })),
    fc.constantFrom("", "=?1", "=:YWJj:", "=token/x", "=1.5", "=@1", "=::").map((written) => ({ written })),
  ),
  around: fc.tuple(blanks, blanks),
});
const item = fc.record({
  name: quoted,
  parameters: fc.array(parameter, { maxLength: 5 }),
  around: fc.tuple(blanks, blanks),
});

const written = (list) =>
  list
    .map(({ name, parameters, around: [before, after] }) => {
      const rest = parameters.map(
        ({ key, value, around: [left, right] }) => `${left};${right}${key}${value.written}`,
      );
      return before + name.written + rest.join("") + after;
    })
    .join(",");

test("any well-formed field is read as it was meant", () => {
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 4 }), (list) => {
      const expected = list.map(({ name, parameters }) => {
        const numbers = new Map();
        for (const { key, value } of parameters) {
          if (value.number === undefined) numbers.delete(key);
          else numbers.set(key, value.number);
        }
        return { name: name.text, numbers };
      });
      assert.deepEqual(
        items(written(list)).map(({ name, numbers }) => ({ name, numbers })),
        expected,
      );
    }),
    { numRuns: 5_000 },
  );
});

/** How many characters were looked at. */
function steps(text) {
  const { charCodeAt } = String.prototype;
  let count = 0;
  String.prototype.charCodeAt = function (at) {
    count += 1;
    return charCodeAt.call(this, at);
  };
  try {
    items(text);
  } finally {
    String.prototype.charCodeAt = charCodeAt;
  }
  return count;
}

/** Those that froze the process with their growth, and others that could: a unit that is repeated, and an end. */
const attacks = [
  ['"a"', ";ab=::", ' "'],
  ['"a"', ";a=::", "\x00"],
  ["", '"a";r=0,', "!"],
  ['"', "\\\\", ""],
  ['"', "\\", ""],
  ['"', "a", ""],
  ['"a"', " ", "x"],
  ['"a";r=', "0", '"'],
  ['"a";', "a", "="],
  ['"a"', "; ", ""],
  ['"a"', ';a=""', "x"],
  ["", " \t", '"'],
  ["", '"a" , ', ""],
  ['"a";x=', ":", '"'],
];

test("the 161 bytes that took four seconds", () => {
  const [start, unit, end] = attacks[0];
  const text = start + unit.repeat(26) + end;
  assert.equal(text.length, 161);
  assert.deepEqual(items(text), []);
  assert.ok(steps(text) <= 3 * 161, `${steps(text)} steps`);
});

test("ten times the text takes ten times the steps, for any text", () => {
  for (const [start, unit, end] of attacks) {
    for (const count of [100, 1_000, 10_000, 100_000]) {
      const text = start + unit.repeat(count) + end;
      assert.ok(steps(text) <= 3 * text.length, `${unit}: ${steps(text)} steps for ${text.length}`);
    }
  }
});

const soup = fc
  .array(fc.constantFrom(...'"\\;,=:*a0 \t?@%-.é\x00', '"a"', ";r=0", ";t=9", '";', "::", '\\"'), {
    maxLength: 60,
  })
  .map((pieces) => pieces.join(""));

test("any text: no items or items with integers, in at most as many steps as characters", () => {
  fc.assert(
    fc.property(fc.oneof(soup, fc.string({ unit: "binary" })), (text) => {
      for (const { name, numbers } of items(text)) {
        assert.equal(typeof name, "string");
        for (const number of numbers.values()) assert.ok(Number.isSafeInteger(number));
      }
      assert.ok(steps(text) <= 3 * text.length + 3);
    }),
    { numRuns: 20_000 },
  );
});

/** A throttle whose server answers what it is told, and who asks it once. */
function asking(headers, { status = 429, ...options } = {}) {
  const time = new FakeTime();
  const throttle = new Throttle(
    { algorithm: "token_bucket", capacity: 1_000, refillRate: 1_000 },
    {
      clock: time.clock,
      timer: time.timer,
      retries: 0,
      keyOf: () => "server",
      random: () => 0,
      fetch: async () => new Response("", { status, headers }),
      ...options,
    },
  );
  const ask = () => throttle.fetch("https://api.example.com/");
  /** How long the next one waits, up to two hours; undefined if it is longer. */
  const wait = async () => {
    const began = time.now;
    let waited;
    throttle.acquire({ key: "server" }).then(() => {
      waited = time.now - began;
    });
    await time.pass(7_200_000);
    return waited;
  };
  return { time, throttle, ask, wait };
}

const hour = 3_600_000;

test("a bucket's headers make the next request wait for a token, not for all of them", async () => {
  const limiter = new RateLimiter(
    { name: "api", algorithm: "token_bucket", capacity: 60, refillRate: 1 },
    { clock: () => 0 },
  );
  const { ask, wait } = asking(rateLimitHeaders(limiter.hit("a", 60), limiter.policies), { status: 200 });
  await ask();
  assert.equal(await wait(), 1_000);
});

test("a limit with quota left makes no call wait, whenever more comes", async () => {
  const { ask, wait } = asking({ RateLimit: '"api";r=1;t=60' }, { status: 200 });
  await ask();
  assert.equal(await wait(), 0);
});

describe("a server's wait is capped", () => {
  for (const [headers, expected, options] of [
    [{ "Retry-After": "3599" }, 3_599_000],
    [{ "Retry-After": "3601" }, hour],
    [{ "Retry-After": "999999999" }, hour],
    [{ "Retry-After": "9".repeat(400) }, hour],
    [{ "Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT" }, hour],
    [{ RateLimit: '"a";r=0;t=999999999999999' }, hour],
    [{ RateLimit: '"a";r=0', "RateLimit-Policy": '"a";q=1;w=999999999999999' }, hour],
    [{ "Retry-After": "3601" }, 3_601_000, { maxHold: 2 * hour }],
    [{ "Retry-After": "60" }, 5_000, { maxHold: 5_000 }],
    [{}, 1_000],
    [{}, 250, { maxHold: 250 }],
    [{ "Retry-After": "60" }, 0, { maxHold: 0 }],
    // No date, though a lenient reader takes it for one.
    [{ "Retry-After": `Mon, ${" ".repeat(64)}1 Jan 2900 00:00:00 GMT` }, 1_000],
  ])
    test(`${JSON.stringify(headers)}, ${JSON.stringify(options ?? {})}`, async () => {
      const { ask, wait } = asking(headers, options);
      await ask();
      assert.equal(await wait(), expected);
    });

  test("our own pauses too, however often it tries", async () => {
    const { time, ask } = asking({}, { retries: 30 });
    const answer = ask();
    await time.pass(30 * hour);
    assert.equal((await answer).status, 429);
    assert.equal(Math.max(...time.asked), hour);
  });
});

test("any headers of any response: no error, and no wait past the cap", async () => {
  const value = fc.oneof(
    soup.map((text) => text.replaceAll("\x00", "")),
    fc.array(item, { minLength: 1, maxLength: 3 }).map(written),
    fc.nat().map(String),
    fc.bigInt({ min: 0n, max: 10n ** 30n }).map(String),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(200, 429, 503),
      fc.record(
        { "Retry-After": value, RateLimit: value, "RateLimit-Policy": value, Age: value },
        { requiredKeys: [] },
      ),
      async (status, headers) => {
        const { ask, wait, throttle, time } = asking(headers, { status, maxHold: 5_000 });
        await ask();
        const waited = await wait();
        assert.ok(waited <= 5_000, `${waited}`);
        await settled();
        assert.deepEqual([throttle.pending, time.timers], [0, 0]);
      },
    ),
    { numRuns: 500 },
  );
});

for (const [what, source] of Object.entries({
  "broke off": { start: (stream) => stream.error(new Error("reset")) },
  "cannot be cancelled": { cancel: () => Promise.reject(new Error("no")) },
  "is never done with being cancelled": { cancel: () => new Promise(() => {}) },
}))
  test(`a 429 whose body ${what} is tried again like any other`, async () => {
    const headers = { "Retry-After": "7" };
    const answers = [new Response(new ReadableStream(source), { status: 429, headers }), new Response("")];
    const { time, ask } = asking({}, { retries: 3, fetch: async () => answers.shift() });
    const answer = ask();
    await time.pass(7_000);
    assert.equal((await answer).status, 200);
  });

test("many policies are looked up by name in one step each", async () => {
  const count = 20_000;
  const names = Array.from({ length: count }, (_, at) => `"${at}";r=0`);
  const policies = names.map((_, at) => `"${at}";q=1;w=${at === count - 1 ? 7 : 1}`);
  const { find } = Array.prototype;
  let searches = 0;
  Array.prototype.find = function (...args) {
    searches += 1;
    return find.apply(this, args);
  };
  const { ask, wait } = asking(
    { RateLimit: names.join(), "RateLimit-Policy": policies.join() },
    { status: 200 },
  );
  await ask();
  Array.prototype.find = find;
  assert.equal(await wait(), 7_000);
  assert.ok(searches < 100, `${searches} searches`);
});
