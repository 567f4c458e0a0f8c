import { checkNames } from "../checks.ts";
import { fieldError, invalidField, inWords, type TollgateError } from "../errors/error.ts";

/** Options of `ipKey`. */
export interface IpKeyOptions {
  /** How many leading bits of an IPv6 address name one client: an integer from 1 to 128, 64 by default. */
  readonly ipv6Prefix?: number | undefined;
}

/**
 * Returns the key under which a client address is limited: an IPv4 address as it is, an IPv6 address by its network.
 *
 * One subscriber has at least a /64 of IPv6, so a limit for each address would limit no client. All spellings of an
 * address have the same key: upper case, leading zeros, `::`, IPv4-mapped (`::ffff:192.0.2.1`), brackets, a port, a
 * zone id.
 *
 * @throws {@link TollgateError} `invalid_address` if it is not an IP address, for example a host name, a list of
 * addresses, or an IPv4 number with a leading zero (octal to some readers, decimal to others).
 *
 * @example
 * ```ts
 * import { ipKey } from "tollgate";
 *
 * ipKey("192.0.2.1"); // => "192.0.2.1"
 * ipKey("[2001:DB8::1]:443"); // => "2001:0db8:0000:0000::/64"
 * ipKey("2001:db8:0:ffff::1", { ipv6Prefix: 48 }); // => "2001:0db8:0000::/48"
 * ```
 */
export function ipKey(address: string, options: IpKeyOptions = {}): string {
  checkNames(options, ["ipv6Prefix"]);
  const { ipv6Prefix = 64 } = options;
  if (!Number.isInteger(ipv6Prefix) || ipv6Prefix < 1 || ipv6Prefix > 128)
    throw invalidField("invalid_option", "ipv6Prefix", ipv6Prefix, "an integer from 1 to 128");
  const key = typeof address === "string" ? keyOf(address, ipv6Prefix) : undefined;
  if (key === undefined) throw notAnAddress(address);
  return key;
}

/** The most characters of an address with brackets, zone id, port and blanks around it. */
const longest = 128;

const dotted = /^(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/;
const port = /^:\d{1,5}$/;
const zone = /^[\w.~-]+$/;

/** Parses an address of a header or a socket, and returns its key; undefined if invalid. */
function keyOf(given: string, prefix: number): string | undefined {
  const found = hostOf(given);
  if (found === undefined || !found.includes(":")) return found;
  return networkOf(found, prefix);
}

/**
 * Parses an address of a header or a socket into its groups of 16 bits: two for IPv4, eight for IPv6. Undefined if
 * invalid.
 */
export function addressOf(given: string): readonly number[] | undefined {
  const found = hostOf(given);
  if (found === undefined) return undefined;
  if (!found.includes(":")) return pairsOf(found);
  const groups = addressGroups(found);
  return groups !== undefined && isMapped(groups) ? groups.slice(6) : groups;
}

/** Returns an IPv4 address, or a text that may be one of IPv6, without what is around it; undefined if it is neither. */
function hostOf(given: string): string | undefined {
  if (given.length > longest) return undefined;
  const text = withoutBlanks(given);
  const colon = text.indexOf(":");
  if (colon < 0) return dotted.test(text) ? text : undefined;
  if (text[0] === "[") {
    const end = text.indexOf("]");
    const [host, rest] = [text.slice(1, end), text.slice(end + 1)];
    return host.includes(":") && (rest === "" || isPort(rest)) ? host : undefined;
  }
  // The address of every IPv4 client of a socket that listens on "::" has this form.
  if (text.startsWith("::ffff:") && dotted.test(text.slice(7))) return text.slice(7);
  if (text.indexOf(":", colon + 1) >= 0) return text;
  const host = text.slice(0, colon);
  return dotted.test(host) && isPort(text.slice(colon)) ? host : undefined;
}

/** Strips the spaces and tabs around an entry of a list such as `X-Forwarded-For`. */
function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

const isBlank = (code: number) => code === 32 || code === 9;

const isPort = (text: string) => port.test(text) && Number(text.slice(1)) < 65_536;

/** Parses an IPv6 address. The client's choice of a zone id is checked and dropped. */
function addressGroups(text: string): number[] | undefined {
  const percent = text.indexOf("%");
  if (percent >= 0 && !zone.test(text.slice(percent + 1))) return undefined;
  return groupsOf(percent < 0 ? text : text.slice(0, percent));
}

/** Returns true for an IPv4 address that is written as IPv6. */
export const isMapped = ([a, b, c, d, e, f]: readonly number[]) => !(a || b || c || d || e) && f === 0xffff;

/** Returns the key of an IPv6 address; undefined if invalid. */
function networkOf(text: string, prefix: number): string | undefined {
  const groups = addressGroups(text);
  if (groups === undefined) return undefined;
  if (isMapped(groups)) {
    const [high = 0, low = 0] = groups.slice(6);
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  }
  const count = Math.ceil(prefix / 16);
  let key = "";
  for (let at = 0; at < count; at += 1) {
    const spare = Math.max(16 * (at + 1) - prefix, 0);
    const number = ((groups[at] as number) >> spare) << spare;
    key += number.toString(16).padStart(4, "0") + (at < 7 ? ":" : "");
  }
  return `${key}${count < 8 ? ":" : ""}/${prefix}`;
}

/** Parses the eight numbers of an IPv6 address, one character after the other; undefined if invalid. */
function groupsOf(text: string): number[] | undefined {
  const groups: number[] = [];
  let at = text.startsWith("::") ? 2 : 0;
  let gap = at === 2 ? 0 : -1;
  while (at < text.length) {
    const start = at;
    let number = 0;
    for (let digit = digitAt(text, at); digit >= 0; digit = digitAt(text, at)) {
      number = number * 16 + digit;
      at += 1;
    }
    if (text[at] === ".") {
      if (!dotted.test(text.slice(start))) return undefined;
      groups.push(...pairsOf(text.slice(start)));
      break;
    }
    if (at === start || at - start > 4) return undefined;
    groups.push(number);
    if (at === text.length) break;
    // A colon is followed by a group, or by a second colon, once.
    const isGap = text[at + 1] === ":";
    if (text[at] !== ":" || at + 1 === text.length || (isGap && gap >= 0)) return undefined;
    if (isGap) gap = groups.length;
    at += isGap ? 2 : 1;
  }
  const missing = 8 - groups.length;
  // "::" stands for at least one group.
  if (gap < 0 ? missing !== 0 : missing < 1) return undefined;
  if (gap >= 0) groups.splice(gap, 0, ...new Array<number>(missing).fill(0));
  return groups;
}

/** Returns the value of the hexadecimal digit at a position; -1 if there is none. */
function digitAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** Returns an IPv4 address as two groups. */
function pairsOf(text: string): [number, number] {
  const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number);
  return [(a << 8) | b, (c << 8) | d];
}

function notAnAddress(found: unknown): TollgateError {
  const examples = 'such as "192.0.2.1", "2001:db8::1" or "[2001:db8::1]:443"';
  const expected = `an IP address; use one ${examples}`;
  const words = found === undefined ? undefined : inWords(found);
  return fieldError("invalid_address", "address", words, expected, `an IP address ${examples}`);
}
