import { moment } from "../access-log/words.ts";
import type { KeyException } from "../types.ts";

/** Returns an exception in words: `api.limit=1000 until 2026-12-01 00:00:00 UTC`. */
export function exceptionInWords({ until, allow, deny, policies = {} }: KeyException): string {
  const numbers = Object.entries(policies).flatMap(([policy, fields]) =>
    Object.entries(fields).map(([field, number]) => `${policy}.${field}=${number}`),
  );
  const what = allow ? "everything allowed" : deny ? "everything denied" : numbers.join(" ");
  return `${what} until ${moment(until)} UTC`;
}
