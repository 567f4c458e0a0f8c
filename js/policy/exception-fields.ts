import { invalidField } from "../errors/error.ts";
import type { Exception, ExceptionEnd, KeyException } from "../types.ts";
import { isRecord } from "./costs.ts";
import { readEnd } from "./exceptions.ts";

/** An exception and its end as a message has them; who decides checks the numbers. */
export interface ExceptionFields {
  readonly exception: unknown;
  readonly until?: number;
  readonly for?: number;
}

/** An exception in JSON, with its end. */
export interface JsonException {
  readonly exception: Readonly<Record<string, unknown>> | null;
  readonly until?: number;
}

/** Copies an exception and its end, which are read once. Null lifts an exception, and has no end. */
export function exceptionFields(exception: Exception | null, end?: ExceptionEnd): ExceptionFields {
  if (exception === null) return { exception };
  const given = readEnd(end);
  return {
    exception: copied("exception", exception),
    ...("length" in given ? { for: given.length } : { until: given.until }),
  };
}

/** Copies a value of an exception. A number that is not finite would become null in JSON, as if it were left out. */
function copied(path: string, value: unknown): unknown {
  if (isRecord(value))
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, field]) => field !== undefined)
        .map(([name, field]) => [name, copied(`${path}.${name}`, field)]),
    );
  if (typeof value === "boolean" || typeof value === "string" || Number.isFinite(value)) return value;
  throw invalidField("invalid_option", path, value, "a number, a duration, true, or an object of them");
}

/** Returns an exception from JSON; null if there is none. */
export function keyException({ exception, until = 0 }: JsonException): KeyException | null {
  if (exception === null) return null;
  // A policy may be named so, too, but then has an object of numbers.
  if (exception["allow"] === true) return { until, allow: true };
  if (exception["deny"] === true) return { until, deny: true };
  return { until, policies: exception as NonNullable<KeyException["policies"]> };
}
