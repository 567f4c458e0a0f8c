import type { Fields } from "./verdict.ts";

/** Reads and writes the headers of a response. */
export interface FieldAccess {
  get(name: string): unknown;
  set(name: string, value: string): void;
}

/** Adds the headers of a guard to those of the guards before it on the same route. */
export function mergeFields(fields: Fields, response: FieldAccess): void {
  const isFirst = response.get("RateLimit-Policy") == null;
  // There can be only one set of the older headers: that of the policy with the fewest hits left.
  const isRoomier = !isFirst && isLess(response.get(remaining), fields[remaining]);
  for (const name in fields) {
    const own = fields[name] as string;
    const present = isFirst ? undefined : response.get(name);
    if (present == null) response.set(name, own);
    else if (name === "Retry-After") response.set(name, isLess(own, present) ? String(present) : own);
    else if (!name.startsWith("X-")) response.set(name, listed(String(present), own));
    else if (!isRoomier) response.set(name, own);
  }
}

const remaining = "X-RateLimit-Remaining";

const isLess = (one: unknown, other: unknown) => one != null && Number(one) < Number(other);

/** Adds an item to a list unless it is there: a request that passes a guard twice has its policy once. */
const listed = (list: string, own: string) => (list.split(", ").includes(own) ? list : `${list}, ${own}`);
