import { inWords, TollgateError } from "../errors/error.ts";
import { addressOf, isMapped } from "./address.ts";

/** Tells whether an address is in one of some ranges. */
export interface AddressRanges {
  (address: string): boolean;
  /** The ranges, as they were given. */
  readonly ranges: readonly string[];
}

/** A range of addresses of one family. */
interface Range {
  /** The groups of 16 bits: two for IPv4, eight for IPv6. */
  readonly groups: readonly number[];
  readonly prefix: number;
}

/**
 * Returns a function that tells whether an address is in one of these ranges: `"192.0.2.0/24"`, `"2001:db8::/32"`, or an
 * address. As the `skip` of a `rateLimit` it is called with the client's address.
 *
 * IPv4-mapped IPv6 (`::ffff:192.0.2.1`) is IPv4, in addresses and in ranges. A text that is not an address is in no range.
 *
 * @throws TollgateError `invalid_option` if an entry is not a range, or has bits after its prefix.
 *
 * @example
 * ```ts
 * import { inRanges } from "tollgate";
 *
 * const isOffice = inRanges(["192.0.2.0/24", "2001:db8::/32"]);
 * console.log(isOffice("192.0.2.7")); // => true
 * console.log(isOffice("198.51.100.7")); // => false
 * ```
 */
export function inRanges(ranges: readonly string[]): AddressRanges {
  if (!Array.isArray(ranges))
    throw new TollgateError("invalid_option", `ranges: ${inWords(ranges)} is not a list; use [${example}]`);
  const texts: unknown[] = Array.from(ranges);
  const read = texts.map((text, at) => rangeOf(text, `ranges[${at}]`));
  const isIn = (address: string): boolean => {
    const groups = typeof address === "string" ? addressOf(address) : undefined;
    return groups !== undefined && read.some((range) => contains(range, groups));
  };
  return Object.assign(isIn, { ranges: Object.freeze(texts as string[]) });
}

const example = '"192.0.2.0/24", "2001:db8::/32"';

const expected = 'an address such as "192.0.2.7", or a range such as "192.0.2.0/24" or "2001:db8::/32"';

/** The texts of an address without a port, brackets, blanks and a zone id, which are no part of a range. */
const plain = /^(?:[\d.]+|[\da-f:]+:[\d.]*|[\da-f:]+)$/i;

function rangeOf(text: unknown, field: string): Range {
  const wrong = () => new TollgateError("invalid_option", `${field}: ${inWords(text)} is not ${expected}`);
  if (typeof text !== "string") throw wrong();
  const slash = text.indexOf("/");
  const address = slash < 0 ? text : text.slice(0, slash);
  const given = plain.test(address) && isHost(address) ? addressOf(address) : undefined;
  if (given === undefined) throw wrong();
  const isIpv6 = address.includes(":");
  const longest = isIpv6 ? 128 : 32;
  const written = slash < 0 ? longest : prefixOf(text.slice(slash + 1));
  if (written === undefined || written > longest) throw wrong();
  const groups = isIpv6 && given.length === 2 ? [0, 0, 0, 0, 0, 0xffff, ...given] : given;
  const network = groups.map((group, at) => group & maskOf(written, at));
  if (network.some((group, at) => group !== groups[at])) {
    const use = inWords(`${textOf(network)}/${written}`);
    throw new TollgateError(
      "invalid_option",
      `${field}: ${inWords(text)} has bits after its prefix; use ${use}`,
    );
  }
  // Of a shorter prefix, the mark of mapped addresses is behind it.
  return { groups: given, prefix: groups === given ? written : written - 96 };
}

/** Returns false for an IPv4 address with a port: one colon is in no other address. */
const isHost = (address: string) => address.split(":").length !== 2;

/** Parses the length of a prefix: digits, without a zero in front. */
const prefixOf = (text: string): number | undefined =>
  /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) : undefined;

/** Returns the bits of a group that a prefix includes. */
function maskOf(prefix: number, group: number): number {
  const bits = Math.min(Math.max(prefix - 16 * group, 0), 16);
  return (0xffff << (16 - bits)) & 0xffff;
}

const contains = ({ groups, prefix }: Range, address: readonly number[]): boolean =>
  groups.length === address.length &&
  groups.every((group, at) => ((group ^ (address[at] as number)) & maskOf(prefix, at)) === 0);

/** Returns the spelling of an address. */
function textOf(groups: readonly number[]): string {
  if (groups.length === 2) return groups.flatMap((group) => [group >> 8, group & 255]).join(".");
  if (isMapped(groups)) return `::ffff:${textOf(groups.slice(6))}`;
  const text = groups.map((group) => group.toString(16)).join(":");
  return text.replace(/(^|:)0(:0)+(:|$)/, "::");
}
