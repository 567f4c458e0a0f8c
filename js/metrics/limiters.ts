import { heading, labelValue, sample } from "./exposition.ts";

/** A limiter with counters: `RateLimiter`, `RedisLimiter` or `StoreLimiter`. */
export interface CountingLimiter {
  /** The number of keys in memory. */
  readonly size?: number;
  /** How many live keys were evicted. */
  readonly evicted?: number;
  /** Counters since the limiter was created. */
  readonly stats?: object;
}

/** Returns the counters of a limiter by their names, and its number of keys if it knows it. */
function numbersOf({ size, evicted, stats }: CountingLimiter): [events: Map<string, number>, keys: unknown] {
  const { keys = size, ...events } = { ...(evicted === undefined ? {} : { evicted }), ...stats } as Record<
    string,
    unknown
  >;
  const counted = Object.entries(events).filter((each): each is [string, number] => Number.isFinite(each[1]));
  return [new Map(counted), keys];
}

/** Returns the text about limiters, by the names that the caller gave them. */
export function limitersText(limiters: Readonly<Record<string, CountingLimiter>>): string {
  let events = heading("tollgate_limiter_events", "counter", "What limiters count, by their names.");
  let sizes = heading("tollgate_limiter_keys", "gauge", "Keys that limiters have in memory, by their names.");
  for (const [given, limiter] of Object.entries(limiters)) {
    const name = labelValue(given);
    const [counted, keys] = numbersOf(limiter);
    for (const [event, count] of counted)
      events += sample("tollgate_limiter_events_total", { name, event: snakeCase(event) }, count);
    if (typeof keys === "number") sizes += sample("tollgate_limiter_keys", { name }, keys);
  }
  return events + sizes;
}

const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
