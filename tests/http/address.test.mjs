// Client addresses as keys: one key for every spelling, and an error for text that is not an address.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { isIPv4, isIPv6 } from "node:net";
import { test } from "node:test";
import { ipKey, RateLimiter, TollgateError } from "tollgate";
import fc from "../lib/properties.mjs";

const vectors = JSON.parse(readFileSync(new URL("../vectors/addresses.json", import.meta.url), "utf8"));

/** The key, or null if it is rejected as no address. Any other error fails the test. */
function keyOf(address, options) {
  try {
    return ipKey(address, options);
  } catch (error) {
    if (error instanceof TollgateError && error.code === "invalid_address") return null;
    throw error;
  }
}

test("vectors", () => {
  assert.ok(vectors.filter(({ key }) => key === null).length > 100);
  for (const { address, prefix, key } of vectors)
    assert.equal(keyOf(address, { ipv6Prefix: prefix }), key, JSON.stringify(address));
});

test("a /64 by default, so that one subscriber has one budget", () => {
  const limiter = new RateLimiter({ algorithm: "fix_window", limit: 5, scale: "1h" }, { clock: () => 0 });
  let allowed = 0;
  for (let host = 0; host < 100_000; host += 1) {
    const address = `2001:db8:1:2:${(host >> 8).toString(16)}::${(host & 255).toString(16)}`;
    if (limiter.hit(ipKey(address)).allowed) allowed += 1;
  }
  assert.equal(allowed, 5);
  assert.equal(limiter.size, 1);
});

const group = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.nat(0xffff));
const groups = fc.array(group, { minLength: 8, maxLength: 8 });
const style = fc.record({
  upper: fc.boolean(),
  padded: fc.boolean(),
  dotted: fc.boolean(),
  gap: fc.nat(7),
  around: fc.constantFrom(
    (text) => text,
    (text) => ` ${text}\t`,
    (text) => `[${text}]`,
    (text) => `[${text}]:0`,
    (text) => `[${text}%25lo]:65535`,
    (text) => `${text}%eth0.1`,
  ),
});

/** Writes eight numbers in one of the many ways that RFC 4291 has. */
function spelled(numbers, { upper, padded, dotted, gap, around }) {
  const texts = numbers.map((number) => number.toString(16).padStart(padded ? 4 : 1, "0"));
  if (dotted) {
    const bytes = numbers.slice(6).flatMap((number) => [number >> 8, number & 255]);
    texts.splice(6, 2, bytes.join("."));
  }
  // "::" for the zeros that begin at `gap`, if there are any.
  let end = gap;
  while (end < (dotted ? 6 : 8) && numbers[end] === 0) end += 1;
  const text =
    end > gap ? `${texts.slice(0, gap).join(":")}::${texts.slice(end).join(":")}` : texts.join(":");
  return around(upper ? text.toUpperCase() : text);
}

/** The same key, by arithmetic on the whole address. */
function expected(numbers, prefix) {
  const whole = numbers.reduce((sum, number) => (sum << 16n) | BigInt(number), 0n);
  if (whole >> 32n === 0xffffn) {
    return [24n, 16n, 8n, 0n].map((shift) => (whole >> shift) & 255n).join(".");
  }
  const spare = BigInt(128 - prefix);
  const network = ((whole >> spare) << spare).toString(16).padStart(32, "0");
  const texts = network.match(/.{4}/g).slice(0, Math.ceil(prefix / 16));
  return `${texts.join(":")}${texts.length < 8 ? "::" : ""}/${prefix}`;
}

test("every spelling of an address has the key of its network", () => {
  fc.assert(
    fc.property(
      groups,
      style,
      fc.integer({ min: 1, max: 128 }),
      fc.boolean(),
      (numbers, how, prefix, mapped) => {
        const own = mapped ? [0, 0, 0, 0, 0, 0xffff, ...numbers.slice(6)] : numbers;
        const text = spelled(own, how);
        assert.equal(keyOf(text, { ipv6Prefix: prefix }), expected(own, prefix), text);
      },
    ),
    { numRuns: 20_000 },
  );
});

/** Whether Node takes it for an address, once brackets, port and zone are gone. */
function isAddress(text) {
  const bare = text.replace(/^[ \t]+|[ \t]+$/g, "");
  const [, inside] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(bare) ?? [];
  const [, before] = /^([^:]*):\d{1,5}$/.exec(bare) ?? [];
  // Zone ids are not compared: Node takes colons in them.
  const isV6 = (host) => !/%(?![\w.~-]+$)/.test(host) && isIPv6(host.replace(/%.*/, ""));
  return inside === undefined ? isIPv4(before ?? bare) || isV6(bare) : isV6(inside);
}

test("text that is nearly an address is one exactly if Node says so", () => {
  const piece = fc.constantFrom(
    ..."0123456789abcdefF:.[]% -+x\0g",
    "::",
    "ffff",
    "1.2.3.4",
    "0.0.0.0",
    "255",
    "256",
    "01",
    "::ffff:",
    "]:80",
    "1:2:3:4:5:6:7",
  );
  let accepted = 0;
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join("");
      // A port past 65535 is told apart by the vectors.
      if (Number(/:(\d{5})$/.exec(text)?.[1]) > 65_535) return;
      const key = keyOf(text);
      if (key !== null) accepted += 1;
      assert.equal(key !== null, isAddress(text), JSON.stringify(text));
    }),
    { numRuns: 50_000 },
  );
  assert.ok(accepted > 500, `only ${accepted} addresses among them`);
});

test("a value that is not a string is rejected without being converted", () => {
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const hostile = new Proxy(
    {},
    {
      get: () => {
        throw new Error("asked");
      },
    },
  );
  const strange = [
    ...[undefined, null, 0, 1, 3_221_225_985, Number.NaN, true, 1n, Symbol("::1"), () => "::1"],
    ...[{}, [], ["192.0.2.1"], new String("192.0.2.1"), { toString: () => "192.0.2.1" }, new Uint8Array(4)],
    ...[hostile, revoked.proxy, Object.create(null), new Date(0), /::1/],
  ];
  for (const address of strange) assert.equal(keyOf(address), null);
});

test("the error has the value and what is accepted, in one line", () => {
  const examples = 'such as "192.0.2.1", "2001:db8::1" or "[2001:db8::1]:443"';
  const isNone = `is not an IP address; use one ${examples}`;
  for (const [address, message] of [
    ["unknown", `address: "unknown" ${isNone}`],
    ["1.2.3.4\r\nSet-Cookie: a=b", `address: "1.2.3.4\ufffd\ufffdSet-Cookie: a=b" ${isNone}`],
    ["x".repeat(10_000), `address: "${"x".repeat(64)}…" ${isNone}`],
    [undefined, `address is required (an IP address ${examples})`],
    [null, `address: null ${isNone}`],
    [{}, `address: an object ${isNone}`],
  ])
    assert.throws(() => ipKey(address), {
      name: "TollgateError",
      code: "invalid_address",
      message,
    });
});

test("an invalid prefix is rejected by name, also for IPv4", () => {
  for (const ipv6Prefix of [0, -1, 129, 64.5, Number.NaN, "64", null, {}, 64n])
    for (const address of ["192.0.2.1", "2001:db8::1"])
      assert.throws(() => ipKey(address, { ipv6Prefix }), {
        code: "invalid_option",
        message: /^ipv6Prefix: .* is not an integer from 1 to 128$/,
      });
  assert.throws(() => ipKey("::1", { ipv6prefix: 48 }), {
    code: "invalid_option",
    message: /^options: "ipv6prefix" is not an option; use one of ipv6Prefix$/,
  });
  assert.throws(() => ipKey("::1", 48), { code: "invalid_option" });
  assert.equal(ipKey("::1", { ipv6Prefix: undefined }), "0000:0000:0000:0000::/64");
});

test("a prefix is read once: a getter cannot return another value after the check", () => {
  let reads = 0;
  const options = {
    get ipv6Prefix() {
      reads += 1;
      return reads === 1 ? 48 : 1e9;
    },
  };
  assert.equal(ipKey("2001:db8:1:2::", options), "2001:0db8:0001::/48");
  assert.equal(reads, 1);
});
