import type { Fields } from "./guard.ts";

/** Reads and writes the headers of a response. */
export interface FieldAccess {
  get(name: string): unknown;
  set(name: string, value: string): void;
}

/** Adds the headers of a guard to those of the guards before it on the same route. */
export function mergeFields(fields: Fields, response: FieldAccess): void {
  const isFirst = response.get("RateLimit-Policy") == null;
  // Of the older headers there can be one set: that of the policy with the fewest hits left.
  const isRoomier = !isFirst && isLess(response.get(remaining), fields[remaining]);
  for (const name in fields) {
    const own = fields[name] as string;
    const there = isFirst ? undefined : response.get(name);
    if (there == null) response.set(name, own);
    else if (name === "Retry-After") response.set(name, isLess(own, there) ? String(there) : own);
    else if (!name.startsWith("X-")) response.set(name, listed(String(there), own));
    else if (!isRoomier) response.set(name, own);
  }
}

const remaining = "X-RateLimit-Remaining";

const isLess = (one: unknown, other: unknown) => one != null && Number(one) < Number(other);

/** Adds to a list what is not in it: a guard that is passed twice names its policy once. */
const listed = (list: string, own: string) => (list.split(", ").includes(own) ? list : `${list}, ${own}`);
