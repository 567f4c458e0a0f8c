import { ipKey } from "../http/address.ts";
import { warnOnce } from "./warnings.ts";

/** Reads what a framework knows of a client: its address, a header that was not used for it, and what to set for that. */
export type ReadClient<Result> = (address: string | undefined, forwarded: unknown, hint: string) => Result;

/** The key of requests without an address: they share one budget. */
const unknown = "0.0.0.0";

const guide = "see docs/frameworks.md";

/** Loopback, private and link-local networks, by the keys of their addresses. */
const inner =
  /^(127|10|192\.168|169\.254|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\.|^(f[cd]|fe[89ab]|(0000:){4}:)/;

/**
 * Returns the key of a client by its address. Warns once if the address is missing, or if it is that of a proxy whose
 * `forwarded` header was not used; `hint` says what to set.
 */
export function keyOfClient(address: string | undefined, forwarded: unknown, hint: string): string {
  const key = address === undefined ? undefined : keyOf(address);
  if (key === undefined) {
    warnOnce(
      `address ${hint}`,
      `a request without a client address shares one budget with all such; ${hint}; ${guide}`,
    );
    return unknown;
  }
  if (forwarded != null && inner.test(key))
    warnOnce(
      `proxy ${hint}`,
      `requests come from ${address} with X-Forwarded-For, so all clients of that proxy share one budget; ${hint}; ${guide}`,
    );
  return key;
}

/** Returns the address of a client; undefined if it is that of a proxy whose `forwarded` header was not used. */
export function addressOfClient(
  address: string | undefined,
  forwarded: unknown,
  hint: string,
): string | undefined {
  const key = keyOfClient(address, forwarded, hint);
  return forwarded != null && inner.test(key) ? undefined : address;
}

/** Returns the key of an address; undefined if invalid. Some proxies forward words such as "unknown". */
function keyOf(address: string): string | undefined {
  try {
    return ipKey(address);
  } catch {
    return undefined;
  }
}
