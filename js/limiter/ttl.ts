import { invalidField } from "../errors/error.ts";
import { milliseconds, ttlExpected } from "../policy/durations.ts";
import { schema } from "../wasm/generated.ts";

/** Parses the `ttl` of a reservation into milliseconds. */
export function ttlOf(ttl: unknown): number {
  const time = milliseconds(ttl);
  if (time === undefined || time > schema.maxTtl)
    throw invalidField("invalid_option", "ttl", ttl, ttlExpected());
  return time;
}
