import { type AllHits, checkLimiter, type HitOf } from "../limiter/several-keys.ts";
import type { Costs } from "../types.ts";
import type { AsyncReservation } from "./async-reservation.ts";

/** The part of a limiter elsewhere that a decision over several keys needs. */
interface Reserving {
  reserve(key: string, cost: Costs | undefined, options: { readonly ttl: "5s" }): Promise<AsyncReservation>;
}

/** How long the reservations last while all keys are decided. One that is not settled by then is charged. */
const ttl = "5s";

/** Reserves on each key, and settles all, with the next message to each key, or cancels all. */
export async function reserveAll(hits: readonly HitOf<Reserving, string>[]): Promise<AllHits> {
  for (const { limiter } of hits)
    checkLimiter(limiter, false, "a RedisLimiter or RemoteLimiter; see docs/several-keys.md");
  const outcomes = await Promise.allSettled(
    hits.map(({ limiter, key, cost }) => limiter.reserve(key, cost, { ttl })),
  );
  const reservations = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = outcomes.find((each) => each.status === "rejected");
  const allowed = failed === undefined && reservations.every((reservation) => reservation.allowed);
  if (allowed) for (const reservation of reservations) reservation.settleLater();
  // If a message is lost, the reservation is charged at its end.
  else await Promise.allSettled(reservations.map((reservation) => reservation.cancel()));
  if (failed !== undefined) throw failed.reason;
  return { allowed, decisions: reservations.map(({ decision }) => decision) };
}
