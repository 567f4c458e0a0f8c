import { moment } from "../access-log/words.ts";
import type { KeyException } from "../types.ts";

/** Returns what an exception says, in words: `api.limit=1000`. */
export function valuesInWords({ allow, deny, policies = {} }: KeyException): string {
  const numbers = Object.entries(policies).flatMap(([policy, fields]) =>
    Object.entries(fields).map(([field, number]) => `${policy}.${field}=${number}`),
  );
  return allow ? "everything allowed" : deny ? "everything denied" : numbers.join(" ");
}

/** Returns an exception in words: `api.limit=1000 until 2026-12-01 00:00:00 UTC`. */
export const exceptionInWords = (exception: KeyException): string =>
  `${valuesInWords(exception)} until ${moment(exception.until)} UTC`;
