// Ranges of addresses: the same vectors as in the gateway, errors that name the entry, and Node's own list as an oracle.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { BlockList } from "node:net";
import { test } from "node:test";
import { inRanges, TollgateError } from "tollgate";
import fc from "../lib/properties.mjs";

const vectors = JSON.parse(readFileSync(new URL("../vectors/ranges.json", import.meta.url), "utf8"));

/** The error of a list with this entry. */
function rejected(entry) {
  try {
    inRanges(["192.0.2.1", entry]);
  } catch (error) {
    assert.ok(error instanceof TollgateError && error.code === "invalid_option", String(error));
    return error.message;
  }
  return assert.fail(`${entry} is accepted`);
}

test("vectors", () => {
  assert.ok(vectors.contains.length > 15 && vectors.invalid.length > 40);
  for (const { range, in: inside, out } of vectors.contains) {
    const isIn = inRanges([range]);
    for (const address of inside) assert.equal(isIn(address), true, `${range}: ${address}`);
    for (const address of out) assert.equal(isIn(address), false, `${range}: ${address}`);
  }
});

test("an entry that is no range is an error with its position", () => {
  for (const text of vectors.invalid)
    assert.match(rejected(text), /^ranges\[1\]: ".*" is not an address such as /, text);
  for (const entry of [undefined, null, 5, {}, ["10.0.0.0/8"]])
    assert.match(rejected(entry), /^ranges\[1\]: /);
  for (const [text, network] of Object.entries(vectors.hostBits))
    assert.equal(rejected(text), `ranges[1]: "${text}" has bits after its prefix; use "${network}"`);
  for (const ranges of [undefined, "10.0.0.0/8", 5, {}])
    assert.throws(() => inRanges(ranges), {
      code: "invalid_option",
      message: /^ranges: .* is not a list; use \[/,
    });
});

test("addresses as sockets and headers have them; anything else is in no range", () => {
  const isIn = inRanges(["192.0.2.0/24", "fe80::/10"]);
  for (const address of ["192.0.2.1:80", " 192.0.2.1 ", "fe80::1%eth0", "[fe80::1]:443", "[fe80::1%25lo]"])
    assert.equal(isIn(address), true, address);
  for (const address of [
    undefined,
    null,
    5,
    {},
    "",
    "[192.0.2.1]",
    "192.0.2.1.",
    "localhost",
    "192.0.2.1,192.0.2.2",
  ])
    assert.equal(isIn(address), false, String(address));
  assert.deepEqual(inRanges([]).ranges, []);
  assert.equal(inRanges([])("192.0.2.1"), false);
});

test("a list is copied, and each entry is read once", () => {
  const list = ["192.0.2.1"];
  const isIn = inRanges(list);
  list[0] = "0.0.0.0/0";
  assert.deepEqual([isIn("192.0.2.2"), isIn.ranges], [false, ["192.0.2.1"]]);
});

const group = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.nat(0xffff));
const words = fc.array(group, { minLength: 8, maxLength: 8 });
const textOf = (groups, isIpv4) =>
  isIpv4
    ? groups
        .slice(6)
        .flatMap((number) => [number >> 8, number & 255])
        .join(".")
    : groups.map((number) => number.toString(16)).join(":");

test("Node's list agrees, near the edges of every prefix", () => {
  const given = fc.record({ groups: words, isIpv4: fc.boolean(), prefix: fc.nat(128), flip: fc.nat(127) });
  fc.assert(
    fc.property(given, ({ groups, isIpv4, prefix, flip }) => {
      const [longest, first] = isIpv4 ? [32, 96] : [128, 0];
      const length = prefix % (longest + 1);
      const network = groups.map((number, at) => {
        const bits = Math.min(Math.max(first + length - 16 * at, 0), 16);
        return number & (0xffff << (16 - bits)) & 0xffff;
      });
      const bit = first + (flip % longest);
      const near = groups.map((number, at) => (at === bit >> 4 ? number ^ (0x8000 >> (bit & 15)) : number));
      // Node takes a mapped address for one of IPv4 in some places only.
      fc.pre(isIpv4 || [network, groups, near].every((all) => all[5] !== 0xffff));
      const [family, range] = [isIpv4 ? "ipv4" : "ipv6", `${textOf(network, isIpv4)}/${length}`];
      const list = new BlockList();
      // Node has no prefix of 0.
      if (length > 0) list.addSubnet(textOf(network, isIpv4), length, family);
      const isIn = inRanges([range]);
      for (const address of [groups, near].map((all) => textOf(all, isIpv4)))
        assert.equal(isIn(address), length === 0 || list.check(address, family), `${range}: ${address}`);
    }),
    { numRuns: 3_000 },
  );
});
